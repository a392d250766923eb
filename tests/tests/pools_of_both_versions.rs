//! Pools with HTTP/1 and HTTP/2 members, and requests that move between them: to a fallback pool, at once or from a queue,
//! and after a reload that changes the version of their pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use weir_tests::client::Client;
use weir_tests::http2::Peer;
use weir_tests::member::{Member, Then};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

const BODY: &[u8] = b"all of it";

/// A client of either version with one request.
enum Caller {
    Http1(Client),
    Http2(Box<Peer>, u32),
}

impl Caller {
    /// Sends a request with a body.
    fn send(proxy: &Proxy, is_http2: bool, path: &str) -> Self {
        if is_http2 {
            let mut peer = Peer::connect(proxy.address());
            let stream = peer.request("POST", path, &[("x-mine", "yes")], false);
            peer.data(stream, BODY, true);
            return Self::Http2(Box::new(peer), stream);
        }
        let mut client = proxy.client();
        let head = "Host: test\r\nX-Mine: yes";
        let length = BODY.len();
        client.send(format!("POST {path} HTTP/1.1\r\n{head}\r\nContent-Length: {length}\r\n\r\n"));
        client.send(BODY);
        Self::Http1(client)
    }

    /// Checks the request that the member received, from the response of the echoing member.
    fn assert_echo(&mut self, path: &str) {
        let text = match self {
            Self::Http1(client) => client.response().assert_status(200).text(),
            Self::Http2(peer, stream) => peer.response(*stream).assert_status(200).text(),
        };
        let text = text.to_ascii_lowercase();
        assert!(text.starts_with(&format!("post {path} http/1.1\r\nhost: test\r\n")), "{text}");
        assert!(text.contains("\r\nx-mine: yes\r\n"), "{text}");
        assert!(text.ends_with(&format!("\r\n\r\n{}", String::from_utf8_lossy(BODY))), "{text}");
    }
}

/// A member that can be marked as down, and can hold requests for `/held`. It echoes other requests.
struct Switched {
    member: Member,
    is_up: Arc<AtomicBool>,
    is_held: Arc<AtomicBool>,
}

impl Switched {
    fn new() -> Self {
        let (is_up, is_held) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(true)));
        let (up, held) = (Arc::clone(&is_up), Arc::clone(&is_held));
        let member = Member::new(move |exchange| match exchange.request.target() {
            "/health" if up.load(Ordering::Acquire) => exchange.answer("up"),
            "/health" => exchange
                .send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
                .map(|()| Then::KeepAlive),
            target => {
                let is_held = target == "/held";
                while is_held && held.load(Ordering::Acquire) {
                    thread::sleep(Duration::from_millis(2));
                }
                exchange.echo()
            }
        });
        Self { member, is_up, is_held }
    }

    /// Another weir in front of the member, which accepts both versions.
    fn inner(&self) -> Proxy {
        Proxy::start(&Setup::new(&[self.member.address()]).http("http2: true"))
    }
}

/// A pool with another one as its fallback. One of them uses HTTP/2.
fn pools(first: &Proxy, first_is_http2: bool, behind: &Proxy) -> Setup {
    let health = "monitors: [ { type: http, path: /health, interval: 500ms, rise: 1, fall: 2 } ]";
    Setup::new(&[])
        .member(&format!("{{ address: {}, connections_max: 1 }}", first.address()))
        .http("http2: true")
        .pool(health)
        .pool(&format!("http2: {first_is_http2}"))
        .pool("queue: { length_max: 10, timeout: 60s }")
        .pool("fallback: behind")
        .also_pool(&format!(
            "behind: {{ http2: {}, members: [ {} ] }}",
            !first_is_http2,
            behind.address()
        ))
        .top("data_plane: { workers: 1 }")
}

fn wait_in_line(proxy: &Proxy) {
    eventually("it waits", STEP_TIMEOUT, || proxy.metric("weir_pool_queue_requests", &[]) == 1.0);
}

fn http2_connections(proxy: &Proxy) -> f64 {
    proxy.metric("weir_virtual_server_http2_connections_total", &[])
}

#[test]
fn a_fallback_is_asked_in_its_own_version() {
    for first_is_http2 in [false, true] {
        let (first, spare) = (Switched::new(), Switched::new());
        let (inner, behind) = (first.inner(), spare.inner());
        let proxy = Proxy::start(&pools(&inner, first_is_http2, &behind));
        // The member serves as soon as its first probe has succeeded.
        proxy.wait_for_member_state(inner.address(), "up", STEP_TIMEOUT);
        first.is_up.store(false, Ordering::Release);
        proxy.wait_for_member_state(inner.address(), "down", STEP_TIMEOUT);
        for caller_is_http2 in [false, true] {
            Caller::send(&proxy, caller_is_http2, "/spare").assert_echo("/spare");
        }
        let expected = if first_is_http2 { 0.0 } else { 1.0 };
        assert_eq!(http2_connections(&behind), expected, "first as HTTP/2: {first_is_http2}");
    }
}

#[test]
fn who_waits_in_line_goes_to_a_fallback_of_the_other_version() {
    for (first_is_http2, caller_is_http2) in
        [(false, false), (false, true), (true, false), (true, true)]
    {
        let (first, spare) = (Switched::new(), Switched::new());
        let (inner, behind) = (first.inner(), spare.inner());
        let proxy = Proxy::start(&pools(&inner, first_is_http2, &behind));
        proxy.wait_for_member_state(inner.address(), "up", STEP_TIMEOUT);
        let mut held = Caller::send(&proxy, false, "/held");
        eventually("it is held", STEP_TIMEOUT, || {
            first.member.requests().iter().any(|request| request.target() == "/held")
        });
        let mut waiting = Caller::send(&proxy, caller_is_http2, "/waiting");
        wait_in_line(&proxy);
        first.is_up.store(false, Ordering::Release);
        waiting.assert_echo("/waiting");
        let paths: Vec<_> =
            spare.member.requests().iter().map(|request| request.target().to_owned()).collect();
        assert_eq!(paths, ["/waiting"]);
        first.is_held.store(false, Ordering::Release);
        held.assert_echo("/held");
        let used = (http2_connections(&inner), http2_connections(&behind));
        assert_eq!(used, if first_is_http2 { (1.0, 0.0) } else { (0.0, 1.0) });
    }
}

#[test]
fn who_waits_while_a_reload_changes_the_version_is_served_as_it_came() {
    for (is_http2, caller_is_http2) in [(false, false), (false, true), (true, false), (true, true)]
    {
        let member = Switched::new();
        let inner = member.inner();
        let setup = |is_http2: bool| {
            Setup::new(&[])
                .member(&format!("{{ address: {}, connections_max: 1 }}", inner.address()))
                .http("http2: true")
                .pool(&format!("http2: {is_http2}"))
                .pool("queue: { length_max: 10, timeout: 60s }")
                .top("data_plane: { workers: 1 }")
        };
        let proxy = Proxy::start(&setup(is_http2));
        let mut held = Caller::send(&proxy, false, "/held");
        member.member.wait_for_requests(1);
        let mut waiting = Caller::send(&proxy, caller_is_http2, "/waiting");
        wait_in_line(&proxy);
        proxy.reload_and_wait(&setup(!is_http2));
        let mut later = Caller::send(&proxy, !caller_is_http2, "/later");
        member.is_held.store(false, Ordering::Release);
        held.assert_echo("/held");
        waiting.assert_echo("/waiting");
        later.assert_echo("/later");
        assert_eq!(http2_connections(&inner), 1.0, "first as HTTP/2: {is_http2}");
    }
}
