//! Members that fail before, during and after a response, and under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use weir_tests::client::Client;
use weir_tests::load::{Load, Plan};
use weir_tests::member::{Member, Then};
use weir_tests::nginx::Nginx;
use weir_tests::pattern::{self, Checker};
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::require;
use weir_tests::wire::Framing;

#[test]
fn a_member_that_refuses_connections_is_passed_over() {
    let (gone, member) = (Lease::new(), Member::named("alive"));
    let proxy = Proxy::start(&Setup::new(&[gone.address(), member.address()]));
    for _ in 0..10 {
        let mut client = proxy.client();
        assert_eq!(client.get("/").assert_status(200).text(), "alive");
        // weir has sent nothing to the failed member, so it may send even a POST to the next member.
        assert_eq!(client.post("/", b"body").assert_status(200).text(), "alive");
    }
}

#[test]
fn without_any_member_left_the_answer_is_502_or_503() {
    let gone = [Lease::new(), Lease::new()];
    let proxy = Proxy::start(&Setup::new(&[gone[0].address(), gone[1].address()]));
    let mut client = proxy.client();
    for _ in 0..3 {
        let status = client.get("/").status;
        assert!(matches!(status, 502 | 503), "{status}");
    }
}

#[test]
fn the_only_member_refusing_connections_is_told_from_having_no_member() {
    let gone = Lease::new();
    let mut proxy = Proxy::start(&Setup::new(&[gone.address()]).access_log());
    proxy.client().get("/").assert_status(502);
    weir_tests::eventually("the request is logged", weir_tests::STEP_TIMEOUT, || {
        proxy.process().output().contains("\"termination\"")
    });
    let log = proxy.process().output();
    assert!(log.contains("\"termination\":\"member_connect\""), "{log}");
    assert!(log.contains("\"retries\":0"), "{log}");
}

#[test]
fn a_retry_counts_where_another_member_takes_the_request() {
    let retries = |members: &[std::net::SocketAddr]| {
        let proxy = Proxy::start(&Setup::new(members).pool("balance: round_robin"));
        for _ in 0..2 {
            proxy.client().get("/");
        }
        proxy.metric("weir_pool_retries_total", &[])
    };
    let mute = || Member::new(|_| Ok(Then::Close));
    let (one, other) = (mute(), mute());
    let gone = [Lease::new(), Lease::new()];
    for (name, members, expected) in [
        ("the only member refuses", vec![gone[0].address()], 0.0),
        ("the only member closes", vec![one.address()], 0.0),
        ("both refuse", vec![gone[0].address(), gone[1].address()], 2.0),
        ("both close", vec![one.address(), other.address()], 2.0),
    ] {
        assert_eq!(retries(&members), expected, "{name}");
    }
}

#[test]
fn a_member_that_dies_within_a_response_gives_truncation() {
    let table: [(&str, &str, Then); 6] = [
        ("length, FIN", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", Then::Close),
        ("length, RST", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", Then::Reset),
        (
            "between chunks",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
            Then::Close,
        ),
        (
            "within a chunk",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nhalf",
            Then::Close,
        ),
        (
            "before the last CRLF",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n",
            Then::Close,
        ),
        (
            "malformed chunk",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n",
            Then::Close,
        ),
    ];
    for (name, response, then) in table {
        let member = Member::new(move |exchange| {
            exchange.send(response)?;
            // The client receives the head and the first bytes before the connection ends.
            std::thread::sleep(Duration::from_millis(100));
            Ok(then)
        });
        let proxy = Proxy::start(&Setup::new(&[member.address()]));
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\nGET /next HTTP/1.1\r\nHost: test\r\n\r\n");
        let response = client.response();
        assert_eq!(response.status, 200, "{name}");
        assert!(!response.complete, "{name}: a well-formed end");
        assert!(client.reader().rest().is_empty(), "{name}: more after a cut response");
        assert_eq!(member.request_count(), 1, "{name}: the response had begun, so no second try");
    }
}

#[test]
fn idempotent_requests_are_tried_again_and_others_are_not() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    let dying = Member::new(move |_| {
        counter.fetch_add(1, Ordering::AcqRel);
        Ok(Then::Reset)
    });
    let good = Member::named("good");
    let proxy = Proxy::start(&Setup::new(&[dying.address(), good.address()]));
    for _ in 0..6 {
        assert_eq!(proxy.client().get("/").assert_status(200).text(), "good");
    }
    assert!(sent.load(Ordering::Acquire) > 0, "the dying member was never tried");
    let (tried, served) = (dying.request_count(), good.request_count());
    let statuses: Vec<u16> = (0..6).map(|_| proxy.client().post("/", b"once").status).collect();
    let failed = statuses.iter().filter(|&&status| status == 502).count();
    assert_eq!(dying.request_count() - tried, failed, "{statuses:?}");
    assert_eq!(good.request_count() - served, 6 - failed, "{statuses:?}: a POST was sent twice");
}

#[test]
fn idle_connections_that_a_member_closes_cost_no_request() {
    // The member closes each connection at the time at which the next request is likely to arrive.
    let served = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&served);
    let member = Member::new(move |exchange| {
        counter.fetch_add(1, Ordering::AcqRel);
        exchange.answer("ok")?;
        let micros = 300 * u64::try_from(exchange.request.connection % 20).unwrap_or(0);
        std::thread::sleep(Duration::from_micros(micros));
        Ok(Then::Close)
    });
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let mut client = proxy.client();
    for number in 0..500 {
        let response = client.get("/");
        assert_eq!(response.status, 200, "GET {number}");
        std::thread::sleep(Duration::from_micros(150 * (number % 30)));
    }
    // weir sends a POST at most once, even if the result is 502.
    served.store(0, Ordering::Release);
    let mut good = 0;
    for number in 0..300 {
        // weir may close the client's connection after 502, because the body may be unread.
        good += usize::from(proxy.client().post("/", b"once").status == 200);
        std::thread::sleep(Duration::from_micros(150 * (number % 30)));
    }
    assert_eq!(
        served.load(Ordering::Acquire),
        good,
        "requests seen by the member and POSTs answered"
    );
}

#[test]
fn a_member_killed_under_load_costs_at_most_what_was_on_it() {
    require!("nginx");
    let mut members = ["a", "b", "c"].map(Nginx::start);
    let addresses = members.each_ref().map(Nginx::address);
    let setup = Setup::new(&addresses).pool(
        "monitors: [ { type: http, path: /healthz, expect: { status: 200, body: \"ok\" }, \
         interval: 1s, timeout: 1s, rise: 2, fall: 2 } ]",
    );
    let proxy = Proxy::start(&setup);
    proxy.wait_for_member_state(addresses[0], "up", weir_tests::STEP_TIMEOUT);
    proxy.wait_for_member_state(addresses[1], "up", weir_tests::STEP_TIMEOUT);
    proxy.wait_for_member_state(addresses[2], "up", weir_tests::STEP_TIMEOUT);
    let plan =
        Plan { connections: 12, pause: Duration::from_millis(2), requests_per_connection: None };
    let load = Load::start(proxy.address(), "/name", plan);
    load.wait_for_good(200);
    members[1].kill();
    proxy.wait_for_member_state(addresses[1], "down", weir_tests::STEP_TIMEOUT);
    members[1].restart();
    proxy.wait_for_member_state(addresses[1], "up", weir_tests::STEP_TIMEOUT);
    load.wait_for_good(200);
    let tally = load.stop();
    assert!(tally.failed() <= plan.connections, "{tally:?}");
    assert_eq!(tally.connect_failures, 0, "{tally:?}");
}

#[test]
fn passive_marking_takes_a_failing_member_out_and_tries_it_again() {
    let failing = Member::new(|exchange| {
        exchange.send("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")?;
        Ok(Then::KeepAlive)
    });
    let good = Member::named("good");
    let setup = Setup::new(&[failing.address(), good.address()])
        .pool("passive: { failures: 3, window: 10s, eject: 1s }")
        .top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    let statuses: Vec<u16> = (0..40).map(|_| client.get("/").status).collect();
    let errors = statuses.iter().filter(|&&status| status == 500).count();
    assert!((3..=4).contains(&errors), "{statuses:?}");
    let seen = failing.request_count();
    weir_tests::eventually("the member is tried again", weir_tests::STEP_TIMEOUT, || {
        client.get("/");
        failing.request_count() > seen
    });
}

/// Number of attempts at an event that occurs in most attempts, but not in all.
const TRIES: usize = 40;

#[test]
fn a_reset_that_a_send_meets_first_is_no_end() {
    let member = Member::streaming(|exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npart")?;
        // weir is about to send more of the upload than it received in one read.
        exchange.receive(&mut [0; 1])?;
        Ok(Then::Reset)
    });
    let setup = Setup::new(&[member.address()]).top("data_plane: { workers: 1 }");
    let mut proxy = Proxy::start(&setup);
    for number in 0..TRIES {
        let mut client = proxy.client();
        client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 900000\r\n\r\n");
        let head = client.reader().head().expect("a head").expect("a head");
        assert!(head.has_token("transfer-encoding", "chunked"), "{head:?}");
        proxy.process().while_stopped(|| client.send(vec![b'x'; 300_000]));
        let mut body = Vec::new();
        let whole = client.reader().body(Framing::Chunked, |data| body.extend_from_slice(data));
        assert!(whole.is_err(), "try {number}: a part is called the whole: {body:?}");
    }
}

/// More bytes of a response than the client's socket buffers.
const LARGE_BYTES: usize = 3_000_000;

/// Sends two requests at once, and reads the responses when the second request has ended.
fn ask_for_two(proxy: &Proxy, first: usize, second: &str) -> (Client, bool) {
    let mut client = proxy.client();
    client.send(format!(
        "GET /{first} HTTP/1.1\r\nHost: test\r\n\r\nGET {second} HTTP/1.0\r\nHost: test\r\n\r\n"
    ));
    // A small response has reached the client by then. A part of a large one is still in the buffer of weir's socket.
    let mut checker = Checker::default();
    let head = client.reader().head().expect("a head").expect("a head");
    let framing = head.framing().expect("a length");
    weir_tests::eventually("the second has ended", weir_tests::STEP_TIMEOUT, || {
        proxy.metric("weir_virtual_server_requests_total", &[]) >= 2.0
            && proxy.metric("weir_virtual_server_requests_active", &[]) == 0.0
    });
    let whole = client.reader().body(framing, |bytes| checker.take(bytes));
    let is_whole = whole.is_ok() && checker.verdict() == format!("{first} good bytes");
    (client, is_whole)
}

/// A member whose responses have the size in the path, or are cut.
fn sized_or_broken() -> Member {
    Member::new(|exchange| match exchange.request.target()[1..].parse() {
        Ok(size) => {
            let mut body = vec![0; size];
            pattern::fill(&mut body, 0);
            exchange.answer(body)
        }
        Err(_) => {
            exchange.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npart")?;
            Ok(Then::Reset)
        }
    })
}

#[test]
fn a_reset_takes_no_response_before_it() {
    let member = sized_or_broken();
    let setup = Setup::new(&[member.address()]).top("data_plane: { workers: 1 }");
    for size in [100, 60_000, LARGE_BYTES] {
        let proxy = Proxy::start(&setup);
        let (mut client, is_whole) = ask_for_two(&proxy, size, "/broken");
        assert!(is_whole, "{size} bytes before a response that its member broke off");
        let cut = client.try_response(false);
        let is_cut = cut.is_err() || cut.is_ok_and(|it| it.until_close && !it.complete);
        assert!(is_cut, "a part is called the whole");
    }
}

#[test]
fn a_rule_that_resets_takes_no_response_before_it() {
    let member = sized_or_broken();
    for (action, size) in
        [("reset", 100), ("reset", LARGE_BYTES), ("close", 100), ("close", LARGE_BYTES)]
    {
        let rules = format!(
            "policies:\n  test:\n    rules:\n      - {{ when: 'request.path == \"/ended\"', then: [ {action} ] }}"
        );
        let setup = Setup::new(&[member.address()]).virtual_server("policies: [ test ]");
        let proxy = Proxy::start(&setup.top("data_plane: { workers: 1 }").top(&rules));
        let (mut client, is_whole) = ask_for_two(&proxy, size, "/ended");
        assert!(is_whole, "{size} bytes before a request that a rule answers with {action}");
        assert!(client.try_response(false).is_err(), "{action} is no answer");
    }
}
