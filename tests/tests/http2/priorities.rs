//! HTTP/2 from clients: priorities (RFC 9218).

use weir_tests::http2::{Frame, Peer, setting};
use weir_tests::{STEP_TIMEOUT, eventually};

use super::{sized, start};

#[test]
fn the_urgent_come_first_when_the_window_is_short() {
    let member = sized();
    let proxy = start(&member);
    let mut peer =
        Peer::connect_with(proxy.address(), &[(setting::INITIAL_WINDOW_SIZE, 1_000_000)]);
    peer.holds_windows = true;
    // This takes the connection's window.
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
    // PRIORITY_UPDATE moves them before all others that are not urgent, whether it comes later or with the head.
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
