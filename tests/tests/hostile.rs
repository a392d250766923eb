//! Hostile clients, failing members and races have only a limited effect.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_tests::STEP_TIMEOUT;
use weir_tests::client::Client;
use weir_tests::member::{Member, Then};
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};

const GET: &str = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";

fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

#[test]
fn refused_clients_that_stay_take_no_place_of_others() {
    let member = Member::echo();
    let setup = Setup::new(&[member.address()]).virtual_server("limits: { connections: 2 }");
    let proxy = Proxy::start(&setup);
    weir_tests::eventually("no client is there", STEP_TIMEOUT, || {
        proxy.metric("weir_virtual_server_connections_open", &[]) == 0.0
    });
    let mut admitted = [proxy.client(), proxy.client()];
    for client in &mut admitted {
        client.get("/").assert_status(200);
    }
    // These connections are rejected, and their clients do not close them.
    let refused: Vec<Client> = (0..20).map(|_| proxy.client()).collect();
    weir_tests::eventually("all of them are refused", STEP_TIMEOUT, || {
        proxy.metric("weir_virtual_server_connections_refused_total", &[]) >= 20.0
    });
    drop(admitted);
    proxy.wait_for_open_connections("main", 0.0);
    proxy.client().get("/").assert_status(200);
    drop(refused);
}

#[test]
fn a_virtual_server_that_comes_back_counts_its_connections_right() {
    let (member, gate) = Member::gated("ok");
    let other = Lease::new();
    let limited = "limits: { connections: 10 }";
    let setup = Setup::new(&[member.address()]).virtual_server(limited);
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    client.send("GET /slow HTTP/1.1\r\nHost: test\r\n\r\n");
    member.wait_for_requests(1);
    let text = format!(
        "admin: {{ listen: \"{}\" }}\nvirtual_servers: {{ other: {{ listen: \"{}\", pool: members }} }}\n\
         pools: {{ members: {{ members: [ \"{}\" ] }} }}\n",
        proxy.admin(),
        other.address(),
        member.address()
    );
    proxy.reload_text(&text);
    weir_tests::eventually("the other one is there instead", STEP_TIMEOUT, || {
        Client::try_connect(other.address()).is_ok()
    });
    proxy.reload_and_wait(&setup);
    gate.open();
    client.response().assert_status(200);
    client.get("/").assert_status(200);
    drop(client);
    proxy.wait_for_open_connections("main", 0.0);
    proxy.client().get("/").assert_status(200);
}

#[test]
fn a_half_close_before_101_reaches_the_member() {
    let saw_end = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&saw_end);
    let member = Member::new(move |exchange| {
        pause(300);
        exchange.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n",
        )?;
        exchange.stream().set_read_timeout(Some(STEP_TIMEOUT))?;
        let ended = matches!(exchange.receive(&mut [0; 16]), Ok(0));
        seen.store(ended, Ordering::Release);
        exchange.send("bye")?;
        Ok(Then::Close)
    });
    let proxy = Proxy::start(&Setup::new(&[member.address()]).http("half_closed: wait"));
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n");
    client.finish();
    assert_eq!(client.response().status, 101);
    assert_eq!(client.reader().rest(), b"bye");
    assert!(saw_end.load(Ordering::Acquire), "the member saw no end");
}

/// Any member of a pool may fail while weir connects.
#[test]
fn more_failures_than_retries_do_not_panic_the_worker() {
    let folder = std::env::temp_dir().join(format!("weir-hostile-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = |name: &str| folder.join(name).display().to_string();
    // The member responds to the first request of each connection, and closes at the second one without a response.
    let listener = UnixListener::bind(path("stale")).expect("a unix socket");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut buffer = [0; 4096];
            let asked = stream.read(&mut buffer);
            if asked.is_ok_and(|count| count > 0) {
                let answered = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nS");
                if answered.is_ok() {
                    let _ = stream.read(&mut buffer);
                }
            }
        }
    });
    let other = Member::named("other");
    let mut setup = Setup::new(&[])
        .member(&format!("\"unix:{}\"", path("stale")))
        .pool("retries: 8")
        .top("data_plane: { workers: 1 }");
    for number in 0..8 {
        setup = setup.member(&format!("\"unix:{}\"", path(&format!("dead-{number}"))));
    }
    setup = setup.member(&format!("\"{}\"", other.address()));
    for number in 8..16 {
        setup = setup.member(&format!("\"unix:{}\"", path(&format!("dead-{number}"))));
    }
    let proxy = Proxy::start(&setup);
    for _ in 0..6 {
        let mut client = proxy.client();
        client.send(GET);
        if client.try_response(false).is_ok_and(|response| response.body == b"S") {
            std::fs::remove_file(path("stale")).expect("the stale member's socket");
        }
    }
    let panics = proxy.metric("weir_worker_panics_total", &[]);
    std::fs::remove_dir_all(&folder).expect("removing the folder");
    assert_eq!(panics, 0.0);
}

/// The number of response bytes that weir and the kernel buffer for a client that does not read.
fn unread_bytes(proxy: &Proxy, member: &Member) -> u64 {
    let label = format!("\"{}\"", member.address());
    let received = || proxy.metric("weir_member_received_bytes_total", &[&label]) as u64;
    let before = received();
    let mut client = proxy.client();
    client.send("GET /67108864 HTTP/1.1\r\nHost: test\r\n\r\n");
    // Until the transfer stands still at each of several looks, because it may pause on a busy machine.
    let (mut taken, mut stands) = (0, 0);
    weir_tests::eventually("the transfer stands still", STEP_TIMEOUT, || {
        pause(200);
        let so_far = received() - before;
        stands = if so_far > 0 && so_far == taken { stands + 1 } else { 0 };
        taken = so_far;
        stands == 3
    });
    client.reset();
    taken
}

fn sized_member() -> Member {
    Member::new(|exchange| {
        let bytes = exchange.request.target()[1..].parse().unwrap_or(5);
        exchange.answer(vec![b'x'; bytes])
    })
}

#[test]
fn a_pipelined_request_before_a_half_close_is_answered_to_a_slow_reader() {
    let member = sized_member();
    let proxy = Proxy::start(&Setup::new(&[member.address()]).top("data_plane: { workers: 1 }"));
    let taken = unread_bytes(&proxy, &member);
    for spare in [5_000, 20_000, 35_000] {
        let bytes = taken - spare;
        let mut client = proxy.client();
        client.send(format!(
            "GET /{bytes} HTTP/1.1\r\nHost: test\r\n\r\nGET /5 HTTP/1.1\r\nHost: test\r\n\r\n"
        ));
        client.finish();
        pause(500);
        client.response().assert_status(200);
        let second = client.try_response(false).expect("a second response");
        second.assert_status(200);
    }
}

#[test]
fn a_partial_head_that_came_during_a_slow_download_is_completed() {
    let member = sized_member();
    let proxy = Proxy::start(&Setup::new(&[member.address()]).top("data_plane: { workers: 1 }"));
    let taken = unread_bytes(&proxy, &member);
    for spare in [5_000, 20_000, 35_000] {
        let bytes = taken - spare;
        let mut client = proxy.client();
        client.send(format!("GET /{bytes} HTTP/1.1\r\nHost: test\r\n\r\n"));
        pause(500);
        client.send("GET /5 HT");
        pause(200);
        client.response().assert_status(200);
        pause(200);
        client.send("TP/1.1\r\nHost: test\r\n\r\n");
        client.response().assert_status(200);
    }
}

#[test]
fn a_client_that_does_not_take_interim_responses_is_blamed_itself() {
    for (head, rest) in [
        ("GET / HTTP/1.1\r\nHost: test\r\n\r\n", ""),
        // The rest of the request arrives when the responses are already queued.
        ("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\nha", "lf"),
    ] {
        client_takes_no_interim_responses(head, rest);
    }
}

fn client_takes_no_interim_responses(head: &str, rest: &str) {
    let member = Member::streaming(|exchange| {
        let hint = format!("HTTP/1.1 103 Early Hints\r\nLink: {}\r\n\r\n", "x".repeat(4_000));
        // Until the connection breaks.
        loop {
            exchange.send(&hint)?;
        }
    });
    let setup = Setup::new(&[member.address()]).http("body_timeout: 3s").access_log();
    let mut proxy = Proxy::start(&setup.pool("response_timeout: 1s"));
    let mut client = proxy.client();
    client.send(head);
    // Until all buffers are full.
    std::thread::sleep(Duration::from_millis(500));
    client.send(rest);
    weir_tests::eventually("the request is logged", STEP_TIMEOUT, || {
        proxy.process().output().contains("\"termination\"")
    });
    let log = proxy.process().output();
    assert!(log.contains("\"termination\":\"client_timeout\""), "{log}");
}
