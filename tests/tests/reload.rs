//! Reloads under load have no effect on clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use weir_tests::client::Client;
use weir_tests::load::{Load, Plan};
use weir_tests::member::{Member, Then};
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::websocket::{self, WebSocket};

const RELOADS: usize = 100;

#[test]
fn a_hundred_reloads_under_load_lose_nothing() {
    let members = [websocket::echo_member(), websocket::echo_member(), websocket::echo_member()];
    let addresses = members.each_ref().map(Member::address);
    let setup = Setup::new(&addresses);
    let mut proxy = Proxy::start(&setup);
    let mut socket = WebSocket::connect(proxy.address());
    let descriptors = proxy.process().descriptors();

    let kept =
        Plan { connections: 8, pause: Duration::from_millis(4), requests_per_connection: None };
    let fresh = Plan { connections: 4, requests_per_connection: Some(3), ..kept };
    let loads = [kept, fresh].map(|plan| Load::start(proxy.address(), "/", plan));
    for number in 0..RELOADS {
        // Every second configuration has one pool member less and another timeout.
        let setup = match number % 2 {
            0 => Setup::new(&addresses[..2]).http("idle_timeout: 50s"),
            _ => setup.clone(),
        };
        proxy.reload_and_wait(&setup);
        // Both loads use each configuration.
        loads.iter().for_each(|load| load.wait_for_good(1));
        let text = format!("reload {number}");
        assert_eq!(socket.echo(&text).expect("the WebSocket lives"), text);
    }
    loads.iter().for_each(|load| load.wait_for_good(100));
    let [kept, fresh] = loads.map(Load::stop);
    assert_eq!(kept.failed() + kept.lost_connections, 0, "{kept:?}");
    assert_eq!(fresh.failed(), 0, "{fresh:?}");
    assert!(proxy.process().exited().is_none());
    weir_tests::eventually(
        "no descriptor of an old configuration stays",
        weir_tests::STEP_TIMEOUT,
        || proxy.process().descriptors() <= descriptors + 30,
    );
}

#[test]
fn a_bad_file_changes_nothing_and_is_explained() {
    let member = Member::named("as before");
    let mut proxy = Proxy::start(&Setup::new(&[member.address()]));
    let mut client = proxy.client();
    client.get("/").assert_status(200);
    for (text, reason) in [
        ("virtual_servers: [", "weir.yaml"),
        ("virtual_servrs: {}\n", "virtual_servers"),
        (
            "virtual_servers: { main: { listen: \"127.0.0.1:1\", pool: nowhere } }\npools: {}\n",
            "nowhere",
        ),
    ] {
        proxy.reload_text(text);
        weir_tests::eventually(reason, weir_tests::STEP_TIMEOUT, || {
            proxy.process().output().contains(reason)
        });
        assert_eq!(client.get("/").assert_status(200).text(), "as before");
        assert_eq!(proxy.client().get("/").assert_status(200).text(), "as before");
    }
}

#[test]
fn a_removed_member_finishes_what_it_has() {
    let slow = Member::new(|exchange| {
        std::thread::sleep(Duration::from_secs(1));
        exchange.answer("slow")
    });
    let other = Member::named("other");
    let proxy = Proxy::start(&Setup::new(&[slow.address()]));
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    weir_tests::eventually("the request is on the slow member", weir_tests::STEP_TIMEOUT, || {
        slow.request_count() == 1
    });
    proxy.reload(&Setup::new(&[other.address()]));
    weir_tests::eventually("the other member serves", weir_tests::STEP_TIMEOUT, || {
        other.request_count() > 0 || proxy.client().get("/").text() == "other"
    });
    assert_eq!(client.response().assert_status(200).text(), "slow");
    // The connection continues. Each request uses the latest configuration.
    assert_eq!(client.get("/").assert_status(200).text(), "other");
    weir_tests::eventually("the removed member is let go", weir_tests::STEP_TIMEOUT, || {
        slow.open_connections() == 0
    });
}

#[test]
fn virtual_servers_come_and_go() {
    let member = Member::named("here");
    let setup = Setup::new(&[member.address()]).top("data_plane: { drain_timeout: 2s }");
    let proxy = Proxy::start(&setup);
    let extra = Lease::new();
    assert!(Client::try_connect(extra.address()).is_err());

    proxy.reload(&setup.clone().also_listen(extra.address()));
    weir_tests::eventually("the new virtual server serves", weir_tests::STEP_TIMEOUT, || {
        Client::try_connect(extra.address())
            .is_ok_and(|mut client| client.get("/").text() == "here")
    });
    let mut client = Client::connect(extra.address());
    client.get("/").assert_status(200);

    proxy.reload(&setup);
    weir_tests::eventually("the removed virtual server refuses", weir_tests::STEP_TIMEOUT, || {
        Client::try_connect(extra.address()).is_err()
    });
    // An open connection is closed in order: after its next response or when it is idle, but not within a message.
    if client.try_send("GET / HTTP/1.1\r\nHost: test\r\n\r\n").is_ok()
        && let Ok(response) = client.try_response(false)
    {
        assert!(response.complete, "{response:?}");
    }
    weir_tests::eventually("the drained connection is closed", weir_tests::STEP_TIMEOUT, || {
        client.reader().rest().is_empty()
    });
}

#[test]
fn an_address_that_is_taken_fails_the_reload_only() {
    let member = Member::named("as before");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = taken.local_addr().expect("its address");
    let setup = Setup::new(&[member.address()]);
    let mut proxy = Proxy::start(&setup);
    proxy.reload(&setup.clone().also_listen(address));
    weir_tests::eventually("the failure is explained", weir_tests::STEP_TIMEOUT, || {
        proxy.process().output().contains(&address.to_string())
    });
    assert_eq!(proxy.client().get("/").assert_status(200).text(), "as before");
}

#[test]
fn a_signal_to_a_worker_reloads_and_reaches_no_client() {
    let member = Member::named("here");
    let setup = Setup::new(&[member.address()]).top("data_plane: { workers: 1 }");
    let mut proxy = Proxy::start(&setup);
    // Enough connections that their descriptors include all numbers that the control plane uses.
    let mut clients: Vec<Client> = (0..40).map(|_| proxy.client()).collect();
    for client in &mut clients {
        client.get("/").assert_status(200);
    }
    let before = proxy.reloads("success");
    proxy.process().signal_thread("weir-0", Signal::HUP);
    weir_tests::eventually("the signal is obeyed", weir_tests::STEP_TIMEOUT, || {
        proxy.reloads("success") > before
    });
    for client in &mut clients {
        // A wrong descriptor would receive bytes before the status line.
        assert_eq!(client.get("/").assert_status(200).text(), "here");
    }
    proxy.reload_and_wait(&setup);
}

#[test]
fn a_virtual_server_that_went_and_came_back_within_a_request_counts_its_connections() {
    let goes_on = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&goes_on);
    let member = Member::new(move |exchange| {
        if exchange.request.target() == "/slow" {
            weir_tests::eventually("the reloads are done", weir_tests::STEP_TIMEOUT, || {
                told.load(Ordering::Acquire)
            });
        }
        exchange.answer("ok")
    });
    let extra = Lease::new();
    let without = Setup::new(&[member.address()])
        .virtual_server("limits: { connections: 2 }")
        .top("data_plane: { workers: 1 }");
    let with = without.clone().also_listen(extra.address());
    let proxy = Proxy::start(&with);
    let mut client = Client::connect(extra.address());
    client.send("GET /slow HTTP/1.1\r\nHost: test\r\n\r\n");
    weir_tests::eventually("the request is on the member", weir_tests::STEP_TIMEOUT, || {
        member.request_count() == 1
    });
    proxy.reload_and_wait(&without);
    // The address is in use as long as a worker listens on it.
    weir_tests::eventually("the address is free", weir_tests::STEP_TIMEOUT, || {
        Client::try_connect(extra.address()).is_err()
    });
    proxy.reload_and_wait(&with);
    // The only worker serves it again, so it has the new table.
    Client::connect(extra.address()).get("/").assert_status(200);
    goes_on.store(true, Ordering::Release);
    client.response().assert_status(200);
    client.get("/").assert_status(200);
    proxy.wait_for_open_connections("extra-0", 1.0);
    drop(client);
    proxy.wait_for_open_connections("extra-0", 0.0);
    let mut held = [(); 2].map(|()| Client::connect(extra.address()));
    for client in &mut held {
        client.get("/").assert_status(200);
    }
    Client::connect(extra.address()).response().assert_status(503);
}

#[test]
fn an_address_may_be_narrowed_on_its_port() {
    let member = Member::named("here");
    let lease = Lease::on_every_address();
    let port = lease.address().port();
    let elsewhere = SocketAddr::from(([127, 0, 0, 2], port));
    let setup = Setup::new(&[member.address()]);
    let proxy = Proxy::start(&setup.clone().also_listen(format!("0.0.0.0:{port}")));
    Client::connect(elsewhere).get("/").assert_status(200);
    proxy.reload_and_wait(&setup.also_listen(lease.address()));
    Client::connect(lease.address()).get("/").assert_status(200);
    weir_tests::eventually("the other addresses refuse", weir_tests::STEP_TIMEOUT, || {
        Client::try_connect(elsewhere).is_err()
    });
    Client::connect(lease.address()).get("/").assert_status(200);
}

#[test]
fn a_reload_that_cannot_listen_leaves_members_down_that_it_would_not_monitor() {
    let member = Member::new(|exchange| {
        exchange.send("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")?;
        Ok(Then::KeepAlive)
    });
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = taken.local_addr().expect("its address");
    let unmonitored = Setup::new(&[member.address()]);
    // One failed probe takes the member down, and the next probe is far in the future. So only the reload can change the
    // state.
    let monitored = unmonitored
        .clone()
        .pool("monitors: [ { type: http, path: /healthz, interval: 1m, timeout: 5s, fall: 1 } ]");
    let proxy = Proxy::start(&monitored);
    proxy.wait_for_member_state(member.address(), "down", weir_tests::STEP_TIMEOUT);
    proxy.reload_and_fail(&unmonitored.clone().also_listen(address));
    proxy.client().get("/").assert_status(503);
    // The same file without the occupied address is accepted, and the member is used.
    proxy.reload_and_wait(&unmonitored);
    proxy.client().get("/").assert_status(500);
}

#[test]
fn a_reload_that_cannot_listen_leaves_no_socket_file() {
    let member = Member::named("here");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = taken.local_addr().expect("its address");
    let directory = TempDir::new("socket");
    let socket = directory.path().join("clients");
    let setup = Setup::new(&[member.address()]);
    let proxy = Proxy::start(&setup);
    let with_socket = setup.also_listen(format!("unix:{}", socket.display()));
    proxy.reload_and_fail(&with_socket.clone().also_listen(address));
    assert!(!socket.exists());
    proxy.reload_and_wait(&with_socket);
    Client::connect_unix(&socket).get("/").assert_status(200);
}

#[test]
fn connections_stay_with_their_listener_when_its_virtual_server_is_renamed() {
    let member = Member::named("here");
    let setup = Setup::new(&[member.address()]).top("data_plane: { drain_timeout: 1s }");
    let proxy = Proxy::start(&setup);
    let mut idle = proxy.client();
    idle.get("/").assert_status(200);
    let mut tunnel = Client::connect(proxy.address());
    tunnel.send("GET / HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\nha");
    proxy.reload_and_wait(&setup.named("renamed"));
    // Longer than the time within which connections of a removed virtual server are closed.
    std::thread::sleep(Duration::from_millis(1_500));
    let response = idle.get("/");
    assert_eq!(response.assert_status(200).text(), "here");
    assert!(!response.head.has_token("connection", "close"), "{response:?}");
    tunnel.send("lf");
    tunnel.response().assert_status(200);
    tunnel.get("/").assert_status(200);
    proxy.wait_for_open_connections("renamed", 2.0);
}

#[test]
fn a_request_is_logged_in_the_format_that_was_in_force_when_it_came() {
    let goes_on = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&goes_on);
    let member = Member::new(move |exchange| {
        weir_tests::eventually("the reload is done", weir_tests::STEP_TIMEOUT, || {
            told.load(Ordering::Acquire)
        });
        exchange.answer("ok")
    });
    let setup = Setup::new(&[member.address()]);
    let mut proxy = Proxy::start(&setup.clone().access_log());
    let request = "GET /json HTTP/1.1\r\nHost: test\r\nUser-Agent: \"evil\r\n\r\n";
    let mut client = proxy.client();
    client.send(request);
    weir_tests::eventually("the request is on the member", weir_tests::STEP_TIMEOUT, || {
        member.request_count() == 1
    });
    proxy.reload_and_wait(&setup.clone().access_log_as("combined"));
    let mut later = proxy.client();
    later.send(request.replace("/json", "/combined"));
    weir_tests::eventually("so is the next one", weir_tests::STEP_TIMEOUT, || {
        member.request_count() == 2
    });
    proxy.reload_and_wait(&setup);
    goes_on.store(true, Ordering::Release);
    client.response().assert_status(200);
    later.response().assert_status(200);
    client.get("/unlogged").assert_status(200);
    weir_tests::eventually("both are logged", weir_tests::STEP_TIMEOUT, || {
        let output = proxy.process().output();
        output.contains("\"target\":\"/json\"")
            && output.contains("\"GET /combined HTTP/1.1\" 200 2 ")
    });
    let output = proxy.process().output();
    let line = output.lines().find(|line| line.contains("/json")).unwrap_or_default();
    assert!(line.starts_with('{') && line.ends_with("\"termination\":\"complete\"}"), "{line}");
    assert!(line.contains("\"user_agent\":\"\\\"evil\""), "{line}");
    assert!(!output.contains("/unlogged") && !output.contains('\0'), "{output}");
}

#[test]
fn a_tunnel_whose_virtual_server_was_renamed_ends_with_the_new_one() {
    let member = websocket::echo_member();
    let elsewhere = Lease::new();
    let top = "data_plane: { drain_timeout: 1s }";
    let setup = Setup::new(&[member.address()]).top(top);
    let proxy = Proxy::start(&setup);
    let mut socket = WebSocket::connect(proxy.address());
    proxy.reload_and_wait(&setup.named("renamed"));
    // Longer than the time within which connections of a removed virtual server are closed.
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(socket.echo("still there").expect("the tunnel lives"), "still there");
    proxy.reload_text(&format!(
        "admin: {{ listen: \"{}\" }}\n{top}\nlog: {{ access: {{ format: off }} }}\n\
         virtual_servers: {{ other: {{ listen: \"{}\", pool: members }} }}\n\
         pools: {{ members: {{ members: [ \"{}\" ] }} }}\n",
        proxy.admin(),
        elsewhere.address(),
        member.address(),
    ));
    weir_tests::eventually("the tunnel is ended", weir_tests::STEP_TIMEOUT, || {
        socket.echo("still there").is_err()
    });
}
