//! Limits: weir rejects requests above them with the correct status, closes the connection, and counts them.

use std::collections::BTreeSet;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use weir_tests::client::Client;
use weir_tests::datagrams::{DatagramClient, DatagramMember, UdpLease};
use weir_tests::load::{Load, Plan};
use weir_tests::member::Member;
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, require};

/// The descriptor limit of a weir that runs out of descriptors.
const DESCRIPTORS: usize = 64;

#[test]
fn a_slow_loris_is_dropped_and_counted() {
    let member = Member::echo();
    let proxy = Proxy::start(&Setup::new(&[member.address()]).http("header_timeout: 1s"));
    let mut clients: Vec<_> = (0..20).map(|_| proxy.client()).collect();
    let timeouts = || proxy.metric("weir_virtual_server_timeouts_total", &["\"main\"", "\"head\""]);
    let mut drips =
        b"GET / HTTP/1.1\r\nHost: test\r\nX-Slow: ".iter().chain(std::iter::repeat(&b'a'));
    // A byte sooner than each timeout does not put it off.
    weir_tests::eventually("all time out while they send", weir_tests::STEP_TIMEOUT, || {
        let byte = drips.next().expect("endless");
        for client in &mut clients {
            // An error means that weir has closed the connection, as it must.
            let _ = client.try_send([*byte]);
        }
        std::thread::sleep(Duration::from_millis(100));
        timeouts() == 20.0
    });
    for client in &mut clients {
        if let Ok(response) = client.try_response(false) {
            assert_eq!(response.status, 408, "{response:?}");
        }
        client.reader().rest();
    }
    assert!(!member.saw_anything());
    assert_eq!(timeouts(), 20.0);
}

#[test]
fn an_incomplete_head_gets_408_after_header_timeout() {
    let member = Member::echo();
    let proxy = Proxy::start(&Setup::new(&[member.address()]).http("header_timeout: 1s"));
    let mut client = proxy.client();
    let started = Instant::now();
    client.send("GET / HTTP/1.1\r\nHost: te");
    client.response().assert_status(408);
    client.assert_closed();
    assert!(started.elapsed() >= Duration::from_millis(900), "{:?}", started.elapsed());
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let member = Member::echo();
    let proxy = Proxy::start(&Setup::new(&[member.address()]).http("idle_timeout: 1s"));
    let mut client = proxy.client();
    client.get("/").assert_status(200);
    let started = Instant::now();
    client.assert_closed();
    assert!(started.elapsed() >= Duration::from_millis(900), "{:?}", started.elapsed());
}

#[test]
fn a_body_that_stalls_is_given_up() {
    let member = Member::echo();
    let proxy = Proxy::start(&Setup::new(&[member.address()]).http("body_timeout: 1s"));
    let mut client = proxy.client();
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nhalf");
    if let Ok(response) = client.try_response(false) {
        assert_eq!(response.status, 408, "{response:?}");
    }
    assert!(client.reader().rest().is_empty());
    assert_eq!(member.request_count(), 0);
}

#[test]
fn a_body_beyond_body_size_max_gets_413() {
    let member = Member::echo();
    let proxy = Proxy::start(&Setup::new(&[member.address()]).http("body_size_max: 1KiB"));
    proxy.client().post("/", &[b'x'; 1024]).assert_status(200);

    let mut client = proxy.client();
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1025\r\n\r\n");
    client.response().assert_status(413);
    client.reader().rest();

    let mut client = proxy.client();
    client.send("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n");
    client.send([b'x'; 1024]);
    client.send("\r\n1\r\nx\r\n0\r\n\r\n");
    client.response().assert_status(413);
    // The member has received the start of that body, but not its end.
    assert_eq!(member.request_count(), 1);
}

#[test]
fn heads_beyond_their_limits_are_refused() {
    let member = Member::echo();
    let setup = Setup::new(&[member.address()]).http("head_size_max: 4KiB").http("headers_max: 20");
    let proxy = Proxy::start(&setup);
    let long = "x".repeat(5_000);
    let many: String = (0..21).map(|number| format!("X-{number}: 1\r\n")).collect();
    let table = [
        (414, format!("GET /{long} HTTP/1.1\r\nHost: test\r\n\r\n")),
        (431, format!("GET / HTTP/1.1\r\nHost: test\r\nX: {long}\r\n\r\n")),
        (431, format!("GET / HTTP/1.1\r\nHost: test\r\n{many}\r\n")),
    ];
    for (status, request) in table {
        let mut client = proxy.client();
        // weir may close before the client has sent everything.
        let _ = client.try_send(&request);
        client.response().assert_status(status);
    }
    assert!(!member.saw_anything());
}

/// A client that weir serves. The harness has connected once to check the listener. weir rejects clients until that
/// connection has ended.
fn admitted(proxy: &Proxy) -> Client {
    let mut admitted = None;
    weir_tests::eventually("room for a client", weir_tests::STEP_TIMEOUT, || {
        let mut client = proxy.client();
        // The response may arrive before the request is sent.
        let _ = client.try_send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        let response = client.try_response(false);
        let served = response.is_ok_and(|response| response.status == 200);
        admitted = served.then_some(client);
        served
    });
    admitted.expect("set by the condition")
}

#[test]
fn connections_beyond_the_limit_get_503() {
    let member = Member::echo();
    let setup = Setup::new(&[member.address()])
        .virtual_server("limits: { connections: 3 }")
        .top("data_plane: { workers: 2 }");
    let proxy = Proxy::start(&setup);
    let held = [(); 3].map(|()| admitted(&proxy));
    let mut refused = proxy.client();
    // The response may arrive before the request is sent.
    let _ = refused.try_send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    refused.response().assert_status(503);
    drop(held);
    admitted(&proxy);
}

#[test]
fn a_refused_client_that_stays_does_not_count_against_the_limit() {
    let member = Member::echo();
    let setup = Setup::new(&[member.address()]).virtual_server("limits: { connections: 1 }");
    let proxy = Proxy::start(&setup);
    let first = admitted(&proxy);
    let mut refused = proxy.client();
    refused.response().assert_status(503);
    // The rejected client has received its response but does not close, so weir waits for its close.
    assert_eq!(proxy.metric("weir_virtual_server_connections_open", &["\"main\""]), 1.0);
    drop(first);
    proxy.wait_for_open_connections("main", 0.0);
    proxy.client().get("/").assert_status(200);
}

#[test]
fn a_member_takes_no_more_requests_than_connections_max() {
    let (member, gate) = Member::gated("slow");
    let setup = Setup::new(&[])
        .member(&format!("{{ address: {}, connections_max: 2 }}", member.address()))
        .pool("retries: 0");
    let proxy = Proxy::start(&setup);
    let address = proxy.address();
    let refused = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..6)
        .map(|_| {
            let refused = Arc::clone(&refused);
            std::thread::spawn(move || {
                let status = Client::connect(address).get("/").status;
                refused.fetch_add(usize::from(status == 503), Ordering::AcqRel);
                status
            })
        })
        .collect();
    weir_tests::eventually("four are refused", weir_tests::STEP_TIMEOUT, || {
        refused.load(Ordering::Acquire) == 4
    });
    gate.open();
    let statuses: Vec<u16> =
        clients.into_iter().map(|client| client.join().expect("a response")).collect();
    assert_eq!(statuses.iter().filter(|&&status| status == 200).count(), 2, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|&&status| status == 503).count(), 4, "{statuses:?}");
}

#[test]
fn a_member_that_does_not_answer_in_time_gives_504() {
    let (member, _closed) = Member::gated("too late");
    let setup = Setup::new(&[member.address()]).pool("response_timeout: 1s").pool("retries: 0");
    Proxy::start(&setup).client().get("/").assert_status(504);
}

#[test]
fn idle_connections_of_all_workers_leave_room_under_connections_max() {
    let member = Member::new(|exchange| {
        std::thread::sleep(Duration::from_millis(5));
        exchange.answer("slow")
    });
    let setup = Setup::new(&[])
        .member(&format!("{{ address: {}, connections_max: 4 }}", member.address()))
        .pool("retries: 0")
        .top("data_plane: { workers: 2 }");
    let proxy = Proxy::start(&setup);
    let idle = || proxy.metric("weir_member_connections_idle", &[]);
    let plan = Plan { connections: 32, pause: Duration::ZERO, requests_per_connection: None };
    let load = Load::start(proxy.address(), "/", plan);
    // By then, both workers have used all four connections at different times.
    weir_tests::eventually("many requests", weir_tests::STEP_TIMEOUT, || {
        member.request_count() > 400
    });
    load.stop();
    proxy.wait_for_open_connections("main", 0.0);
    assert!((1.0..=4.0).contains(&idle()), "{} are kept", idle());
    weir_tests::eventually("the others are closed", weir_tests::STEP_TIMEOUT, || {
        member.open_connections() as f64 == idle()
    });
}

#[test]
fn clients_that_take_all_descriptors_leave_some_to_members_and_listeners() {
    require!("prlimit");
    let member = Member::named("here");
    let extra = Lease::new();
    let setup =
        Setup::new(&[member.address()]).top("data_plane: { workers: 1 }").descriptors(DESCRIPTORS);
    let mut proxy = Proxy::start(&setup);
    // More connections than descriptors. The rest remain in the listener's queue.
    let mut clients: Vec<Client> = (0..DESCRIPTORS + 16).map(|_| proxy.client()).collect();
    weir_tests::eventually("accepting rests", weir_tests::STEP_TIMEOUT, || {
        proxy.metric("weir_socket_failures_total", &[]) > 0.0
    });
    assert_eq!(clients[0].get("/").assert_status(200).text(), "here");
    proxy.reload_and_wait(&setup.also_listen(extra.address()));
    let mut late = Client::connect(extra.address());
    late.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    clients.clear();
    assert_eq!(late.response().assert_status(200).text(), "here");
    assert!(!proxy.process().output().contains("was lost"), "{}", proxy.process().output());
}

/// A UDP virtual server beside `main`, in a weir with one worker and few descriptors.
fn beside_udp(http: &Member, port: &UdpLease, member: &DatagramMember, data_plane: &str) -> Setup {
    let (listen, address) = (port.address(), member.address());
    Setup::new(&[http.address()])
        .top(&format!("data_plane: {{ workers: 1{data_plane} }}"))
        .also_virtual_server(&format!(
            "dgrams: {{ listen: \"{listen}\", type: udp, udp: {{ idle_timeout: 1h }}, pool: dgrams }}"
        ))
        .also_pool(&format!("dgrams: {{ members: [ {address} ] }}"))
        .descriptors(2 * DESCRIPTORS)
}

#[test]
fn sessions_of_datagrams_leave_descriptors_to_connections() {
    require!("prlimit");
    let (http, udp, port) = (Member::named("here"), DatagramMember::echo("u"), UdpLease::new());
    let mut proxy = Proxy::start(&beside_udp(&http, &port, &udp, ""));
    let sockets = |proxy: &Proxy| {
        let now = proxy.metric("weir_udp_sockets", &[]);
        (now, proxy.metric("weir_udp_sockets_max", &[]))
    };
    let flood = |count: usize| -> Vec<DatagramClient> {
        let clients = (0..count).map(|_| DatagramClient::of(port.address()));
        clients.inspect(|client| client.send("x")).collect()
    };
    let refused = "weir_udp_sessions_without_descriptor_total";
    let clients = [DatagramClient::of(port.address()), DatagramClient::of(port.address())];
    clients.iter().for_each(|client| assert_eq!(client.ask("x"), "u x"));
    let _flood = flood(2 * DESCRIPTORS);
    weir_tests::eventually("sessions are refused", STEP_TIMEOUT, || {
        proxy.metric(refused, &[]) > 0.0
    });
    let (open, max) = sockets(&proxy);
    assert_eq!(open, max);
    assert!((40.0..64.0).contains(&max), "half of the descriptors for clients: {max}");
    let mut requests: Vec<Client> = (0..16).map(|_| proxy.client()).collect();
    for client in &mut requests {
        assert_eq!(client.get("/").assert_status(200).text(), "here");
    }
    assert_eq!(proxy.metric("weir_socket_failures_total", &[]), 0.0);
    assert!(proxy.admin_get("/v1/status").contains("UDP sessions use all descriptors"));
    assert_eq!(clients[0].ask("y"), "u y", "sessions that are open go on");
    weir_tests::eventually("the event", STEP_TIMEOUT, || {
        proxy.process().output().contains("data path UDP sessions use all descriptors")
    });
    // A smaller share ends nothing; a larger one takes further sessions.
    let before = proxy.metric(refused, &[]);
    proxy.reload_and_wait(&beside_udp(&http, &port, &udp, ", udp_descriptors_max: 10%"));
    assert_eq!(clients[1].ask("y"), "u y");
    let (open, max) = sockets(&proxy);
    assert!(open > max && max > 0.0, "{open} of {max}");
    proxy.reload_and_wait(&beside_udp(&http, &port, &udp, ", udp_descriptors_max: 60%"));
    assert_eq!(DatagramClient::of(port.address()).ask("z"), "u z");
    assert_eq!(proxy.metric(refused, &[]), before);
}

#[test]
fn idle_connections_to_members_make_room_for_clients() {
    require!("prlimit");
    const IDLE: usize = 20;
    let all_arrived = Barrier::new(IDLE);
    let member = Member::new(move |exchange| {
        if exchange.request.target() == "/together" {
            all_arrived.wait();
        }
        exchange.answer("here")
    });
    let setup = Setup::new(&[member.address()])
        .top("data_plane: { workers: 1 }")
        .pool("reuse: { idle_timeout: 1h }")
        .descriptors(DESCRIPTORS);
    let proxy = Proxy::start(&setup);
    std::thread::scope(|scope| {
        for _ in 0..IDLE {
            scope.spawn(|| proxy.client().get("/together").assert_status(200).text());
        }
    });
    let idle = || proxy.metric("weir_member_connections_idle", &[]);
    weir_tests::eventually("all connections are idle", STEP_TIMEOUT, || idle() == IDLE as f64);
    // These and the idle ones are more than the descriptors.
    let mut clients: Vec<Client> = (0..40).map(|_| proxy.client()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").assert_status(200).text(), "here");
    }
    assert!(idle() < IDLE as f64);
}

#[test]
fn idle_connections_to_members_make_room_for_other_members() {
    require!("prlimit");
    let named = |name: usize| Member::new(move |exchange| exchange.answer(name.to_string()));
    let members: Vec<Member> = (0..DESCRIPTORS).map(named).collect();
    let addresses: Vec<_> = members.iter().map(Member::address).collect();
    let setup = Setup::new(&addresses)
        .top("data_plane: { workers: 1 }")
        .pool("reuse: { idle_timeout: 1h }")
        .descriptors(DESCRIPTORS);
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    // Each member gets a connection in turn, and not all of them have room.
    for round in 0..3 {
        let answered = (0..DESCRIPTORS).map(|_| client.get("/").assert_status(200).text());
        let answered: BTreeSet<String> = answered.collect();
        assert_eq!(answered.len(), DESCRIPTORS, "round {round}");
    }
}

#[test]
fn clients_that_go_away_within_a_head_are_counted_and_logged() {
    let member = Member::echo();
    let mut proxy = Proxy::start(&Setup::new(&[member.address()]).access_log());
    let aborts = |proxy: &Proxy| proxy.metric("weir_virtual_server_client_aborts_total", &[]);
    for (number, resets) in [(1.0, false), (2.0, true)] {
        let mut client = proxy.client();
        client.send("GET / HT");
        // The bytes must arrive before the close, which would otherwise end an idle connection.
        weir_tests::eventually("the bytes are read", weir_tests::STEP_TIMEOUT, || {
            proxy.metric("weir_virtual_server_received_bytes_total", &[]) >= 8.0 * number
        });
        if resets {
            client.reset()
        } else {
            drop(client)
        }
        weir_tests::eventually("the abort is counted", weir_tests::STEP_TIMEOUT, || {
            aborts(&proxy) == number
        });
    }
    weir_tests::eventually("both are logged", weir_tests::STEP_TIMEOUT, || {
        let log = proxy.process().output();
        log.lines().filter(|line| line.contains("\"termination\":\"client_abort\"")).count() == 2
    });
    assert!(!member.saw_anything());
}

#[test]
fn a_hung_member_on_a_unix_socket_gives_504_in_time() {
    let directory = TempDir::new("hung");
    let path = directory.path().join("member");
    // The kernel establishes connections, but the listener never accepts them.
    let _listener = UnixListener::bind(&path).expect("a listener");
    let member = format!("\"unix:{}\"", path.display());
    let setup = Setup::new(&[]).member(&member).pool("response_timeout: 1s").pool("retries: 0");
    let proxy = Proxy::start(&setup);
    proxy.client().get("/").assert_status(504);
}
