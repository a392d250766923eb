//! Clients of HTTP/1 that end their sending side while they wait for a response: most have closed their connection.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_tests::member::{Member, Then};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually, require, tls};

/// A member that says nothing more after `begin`, until its connection ends. `/now` is answered at once.
fn silent(begin: &'static str) -> Member {
    Member::new(move |exchange| {
        if exchange.request.target() == "/now" {
            return exchange.answer("now");
        }
        exchange.send(begin)?;
        exchange.stream().set_read_timeout(None)?;
        while exchange.receive(&mut [0; 16])? > 0 {}
        Ok(Then::Close)
    })
}

const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n";

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n\r\n")
}

fn gone(proxy: &Proxy, member: &Member, about: &str) {
    eventually(about, STEP_TIMEOUT, || {
        let active = proxy.metric("weir_virtual_server_requests_active", &[]);
        active == 0.0 && member.open_connections() == 0
    });
}

#[test]
fn a_client_that_goes_while_its_response_is_pending_or_silent_is_noticed() {
    for (begin, by_http2) in [("", false), (EVENTS, false), (EVENTS, true)] {
        let member = silent(begin);
        let inner = by_http2.then(|| {
            Proxy::start(&Setup::new(&[member.address()]).http("http2: true").named("inner"))
        });
        let address = inner.as_ref().map_or(member.address(), Proxy::address);
        let setup = Setup::new(&[address]).pool(&format!("http2: {by_http2}"));
        let proxy = Proxy::start(&setup.http("tunnel_timeout: 1h").access_log());
        for requests in [1, 2] {
            let mut client = proxy.client();
            // The end may come behind a request that waits for the one before it.
            let first = if requests == 2 { request("/now") } else { String::new() };
            client.send(first + &request("/stream"));
            client.finish();
            if requests == 2 {
                assert_eq!(client.response().text(), "now");
            }
            gone(&proxy, &member, "its member is told");
            client.reader().rest();
        }
    }
}

/// A request with a body, which comes with the head, or later, or in chunks.
#[test]
fn a_client_that_goes_behind_its_body_is_noticed() {
    let long = "x".repeat(100_000);
    for more in ["", "waf: { mode: block }", "waf: { mode: detect }", "compression: {}"] {
        let member = silent("");
        let setup = Setup::new(&[member.address()]);
        let setup = if more.is_empty() { setup } else { setup.virtual_server(more) };
        let proxy = Proxy::start(&setup);
        let mut sent = 0;
        for (framing, body, is_apart) in [
            ("Content-Length: 7", "{\"a\":1}", false),
            ("Content-Length: 7", "{\"a\":1}", true),
            ("Content-Length: 100000", &*long, false),
            ("Transfer-Encoding: chunked", "7\r\n{\"a\":1}\r\n0\r\n\r\n", false),
        ] {
            let head = format!(
                "POST /stream HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: test\r\nAccept: */*\r\n\
                 Content-Type: text/plain\r\n{framing}\r\n\r\n"
            );
            let mut client = proxy.client();
            if is_apart {
                client.send(head);
                eventually("the head has arrived", STEP_TIMEOUT, || {
                    proxy.metric("weir_virtual_server_requests_active", &[]) == 1.0
                });
                client.send(body);
            } else {
                client.send(head + body);
            }
            sent += 1;
            member.wait_for_requests(sent);
            client.finish();
            gone(&proxy, &member, "its member is told");
        }
    }
}

#[test]
fn a_close_notify_of_tls_counts_like_a_fin() {
    require!("openssl");
    let member = silent(EVENTS);
    let proxy = Proxy::start(&Setup::new(&[member.address()]).virtual_server(&tls::shop("")));
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-no_ign_eof", "-connect", &proxy.address().to_string()])
        .args(["-servername", "shop.example", "-CAfile", &tls::file("root.crt")])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl runs");
    let mut input = client.stdin.take().expect("its input");
    input.write_all(request("/stream").as_bytes()).expect("a request");
    member.wait_for_requests(1);
    drop(input);
    gone(&proxy, &member, "its member is told");
    client.wait().expect("its end");
}

#[test]
fn a_client_may_be_waited_for() {
    let open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&open);
    let patient = Member::new(move |exchange| {
        eventually("it may answer", STEP_TIMEOUT, || gate.load(Ordering::Acquire));
        exchange.answer("late")
    });
    let setup = Setup::new(&[patient.address()]).http("half_closed: wait");
    let waits = Proxy::start(&setup);
    let mut client = waits.client();
    client.send(request("/")).finish();
    patient.wait_for_requests(1);
    // A client that came later, where clients are not waited for, has had its grace.
    let member = silent("");
    let leaves = Proxy::start(&Setup::new(&[member.address()]));
    let mut other = leaves.client();
    other.send(request("/stream")).finish();
    member.wait_for_requests(1);
    gone(&leaves, &member, "the grace is over");
    open.store(true, Ordering::Release);
    assert_eq!(client.response().assert_status(200).text(), "late");
}

#[test]
fn a_queue_may_say_otherwise_for_its_own_requests() {
    let (member, gate) = Member::gated("done");
    let member_of = format!("{{ address: {}, connections_max: 1 }}", member.address());
    let queue = |how: &str| format!("queue: {{ timeout: 60s, half_closed: {how} }}");
    let setup = |how: &str, http: &str| {
        let setup = Setup::new(&[]).member(&member_of).pool(&queue(how));
        setup.http(http).top("data_plane: { workers: 1 }")
    };
    let proxy = Proxy::start(&setup("wait", "half_closed: leave"));
    let mut first = proxy.client();
    first.send(request("/first"));
    member.wait_for_requests(1);
    let mut second = proxy.client();
    second.send(request("/second")).finish();
    let waiting = |count: f64| proxy.metric("weir_pool_queue_requests", &[]) == count;
    eventually("it waits", STEP_TIMEOUT, || waiting(1.0));
    // A client that came later has had its grace.
    let silent = silent("");
    let leaves = Proxy::start(&Setup::new(&[silent.address()]));
    let mut other = leaves.client();
    other.send(request("/stream")).finish();
    silent.wait_for_requests(1);
    gone(&leaves, &silent, "the grace is over");
    assert!(waiting(1.0), "it has its place");
    gate.open();
    first.response().assert_status(200);
    second.response().assert_status(200);
}
