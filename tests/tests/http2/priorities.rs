//! HTTP/2 clients: priorities (RFC 9218).

use weir_tests::http2::{Frame, Peer, setting};
use weir_tests::proxy::Proxy;
use weir_tests::{STEP_TIMEOUT, eventually};

use super::{connect, h2c, sized, start};

#[test]
fn the_urgent_come_first_when_the_window_is_short() {
    let member = sized();
    let proxy = start(&member);
    let mut peer =
        Peer::connect_with(proxy.address(), &[(setting::INITIAL_WINDOW_SIZE, 1_000_000)]);
    peer.holds_windows = true;
    // This response consumes the window of the connection.
    let filler = peer.request("GET", "/65535", &[], true);
    peer.response(filler).assert_status(200);
    let ask = |peer: &mut Peer, priority| {
        let stream = peer.request("GET", "/30000", &[("priority", priority)], true);
        peer.response_head(stream);
        stream
    };
    let background = ask(&mut peer, "u=7");
    let usual = ask(&mut peer, "u=3, i");
    let urgent = ask(&mut peer, "u=0");
    // PRIORITY_UPDATE changes the priorities of these streams: one after its head, one together with its head.
    let update = |stream: u32, priority: &[u8]| {
        Frame::new(16, 0, 0, [&stream.to_be_bytes()[..], priority].concat())
    };
    let moved = ask(&mut peer, "u=6");
    peer.send(&update(moved, b"u=1"));
    let moved_at_once = peer.new_stream();
    let lines: [(&[u8], &[u8]); 5] = [
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":path", b"/30000"),
        (b":authority", b"test"),
        (b"priority", b"u=6"),
    ];
    let mut both = Frame::headers(moved_at_once, &lines, true).bytes();
    update(moved_at_once, b"u=2").write(&mut both);
    peer.send_bytes(both).expect("sent");
    peer.response_head(moved_at_once);
    eventually("all that can wait waits", STEP_TIMEOUT, || member.request_count() == 6);
    peer.settle();
    peer.data_order.clear();
    for _ in 0..15 {
        peer.send(&Frame::window_update(0, 10_000));
        peer.settle();
    }
    for stream in [background, usual, urgent, moved, moved_at_once] {
        peer.response(stream).assert_status(200);
    }
    let mut order: Vec<u32> = peer.data_order.iter().map(|(stream, _)| *stream).collect();
    order.dedup();
    assert_eq!(order, [urgent, moved, moved_at_once, usual, background]);
}

#[test]
fn a_priority_for_a_request_that_ends_its_connection_ends_nothing_else() {
    let member = sized();
    let rule = |then: &str| {
        format!(
            "policies:\n  test:\n    rules:\n      - {{ when: 'request.path == \"/ended\"', then: [ {then} ] }}"
        )
    };
    let closing = "rate_limit: { requests_per_second: 1, burst: 1, exceed: close }";
    for (then, before) in [("close", 0), ("reset", 0), (&*format!("{{ {closing} }}"), 1)] {
        let setup = h2c(&[&member]).virtual_server("policies: [ test ]").top(&rule(then));
        let proxy = Proxy::start(&setup.top("data_plane: { workers: 1 }"));
        let mut other = proxy.client();
        other.get("/5").assert_status(200);
        let mut other_peer = connect(&proxy);
        other_peer.get("/5").assert_status(200);
        let mut peer = connect(&proxy);
        let lines: [(&[u8], &[u8]); 4] = [
            (b":method", b"GET"),
            (b":scheme", b"http"),
            (b":path", b"/ended"),
            (b":authority", b"test"),
        ];
        // These requests are below the limit.
        for _ in 0..before {
            let stream = peer.new_stream();
            peer.send(&Frame::headers(stream, &lines, true));
            peer.response(stream);
        }
        let mut both = Vec::new();
        for _ in 0..3 {
            let stream = peer.new_stream();
            Frame::headers(stream, &lines, true).write(&mut both);
            let update = [&stream.to_be_bytes()[..], b"u=1"].concat();
            Frame::new(16, 0, 0, update).write(&mut both);
        }
        peer.send_bytes(both).expect("sent");
        while peer.pump() {}
        // The worker has not crashed, and its connections remain.
        other.get("/5").assert_status(200);
        other_peer.get("/5").assert_status(200);
        assert_eq!(proxy.metric("weir_worker_panics_total", &[]), 0.0, "{then}");
    }
}
