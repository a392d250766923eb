//! The memory that clients of HTTP/2 make weir hold has a budget. Who holds most and reads nothing loses it.

use weir_tests::http2::{Frame, Peer, setting};
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

const BUDGET: &str = "data_plane: { workers: 1, http2_memory: 1MiB }";
const NO_WINDOW: &[(u16, u32)] = &[(setting::INITIAL_WINDOW_SIZE, 0)];
/// What all connections hold beside the budget, with buffers that are larger than their data.
const SLACK_BYTES: f64 = 512.0 * 1024.0;

fn floods(proxy: &Proxy) -> f64 {
    proxy.metric("weir_virtual_server_http2_floods_total", &["kind=\"memory\""])
}

/// A proxy whose requests wait until a member has answered the one before.
fn queueing(member: &Member) -> Proxy {
    let setup = Setup::new(&[])
        .member(&format!("{{ address: {}, connections_max: 1 }}", member.address()))
        .pool("queue: { timeout: 60s }")
        .http("http2: true");
    Proxy::start(&setup.top(BUDGET))
}

#[test]
fn connections_that_hold_most_and_read_nothing_lose_it() {
    let member = Member::new(|exchange| exchange.answer(vec![b'x'; 200_000]));
    let proxy = Proxy::start(&Setup::new(&[member.address()]).http("http2: true").top(BUDGET));
    // Two clients with one response each: one reads nothing yet, the other takes its response bit by bit.
    let mut waiting = Peer::connect_with(proxy.address(), NO_WINDOW);
    let waited = waiting.request("GET", "/", &[], true);
    waiting.response_head(waited);
    let mut reading = Peer::connect(proxy.address());
    for number in 0..3 {
        let mut greedy = Peer::connect_with(proxy.address(), NO_WINDOW);
        for _ in 0..60 {
            greedy.request("GET", "/", &[], true);
        }
        eventually("it is ended", STEP_TIMEOUT, || floods(&proxy) > f64::from(number));
        while greedy.pump() {}
        eventually("what it made weir hold is gone", STEP_TIMEOUT, || {
            proxy.metric("weir_http2_memory_bytes", &[]) <= 1024.0 * 1024.0 + SLACK_BYTES
        });
        assert_eq!(reading.get("/").body.len(), 200_000, "others are served");
    }
    // The one with a single response kept it.
    waiting.send(&Frame::window_update(waited, 1_000_000));
    assert_eq!(waiting.response(waited).body.len(), 200_000);
    drop((waiting, reading));
    eventually("all of it comes back", STEP_TIMEOUT, || {
        proxy.metric("weir_http2_memory_bytes", &[]) == 0.0
    });
}

#[test]
fn uploads_that_wait_for_a_member_count() {
    let (member, gate) = Member::gated("done");
    let proxy = queueing(&member);
    let mut first = proxy.client();
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    member.wait_for_requests(1);
    let mut peers: Vec<Peer> = (0..2).map(|_| Peer::connect(proxy.address())).collect();
    for peer in &mut peers {
        peer.settle();
        let streams: Vec<u32> = (0..5).map(|_| peer.request("POST", "/", &[], false)).collect();
        for stream in streams {
            // The connection that loses what it holds may be this one.
            let _ = peer.body(stream, &[b'x'; 150_000], true);
        }
    }
    eventually("one is ended", STEP_TIMEOUT, || floods(&proxy) == 1.0);
    // It counts before its memory is free.
    eventually("what it sent is gone", STEP_TIMEOUT, || {
        proxy.metric("weir_http2_memory_bytes", &[]) <= 1024.0 * 1024.0
    });
    assert_eq!(floods(&proxy), 1.0);
    gate.open();
    first.response().assert_status(200);
}

#[test]
fn heads_and_trailers_of_requests_that_wait_for_members_count() {
    let (member, gate) = Member::gated("done");
    let proxy = queueing(&member);
    let mut usual = Peer::connect(proxy.address());
    let waiting: Vec<u32> = (0..20).map(|_| usual.request("GET", "/", &[], true)).collect();
    member.wait_for_requests(1);
    assert_eq!(proxy.metric("weir_http2_memory_bytes", &[]), 0.0, "usual heads are free");
    let value = vec![b'v'; 15_000];
    let long: (&[u8], &[u8]) = (b"x-long", &value);
    let mut head: Vec<(&[u8], &[u8])> = vec![
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/"),
        (b":authority", b"test"),
    ];
    for (number, is_in_trailers) in [false, true].into_iter().enumerate() {
        let mut greedy = Peer::connect(proxy.address());
        greedy.settle();
        if !is_in_trailers {
            head.push(long);
        }
        for _ in 0..95 {
            let stream = greedy.new_stream();
            // It may be ended before it has sent all of them.
            let _ = greedy.send_bytes(Frame::headers(stream, &head, !is_in_trailers).bytes());
            if is_in_trailers {
                let _ = greedy.send_bytes(Frame::headers(stream, &[long], true).bytes());
            }
        }
        eventually("it is ended", STEP_TIMEOUT, || floods(&proxy) == number as f64 + 1.0);
        eventually("what it sent is gone", STEP_TIMEOUT, || {
            proxy.metric("weir_http2_memory_bytes", &[]) == 0.0
        });
        head.truncate(4);
    }
    gate.open();
    for stream in waiting {
        usual.response(stream).assert_status(200);
    }
}
