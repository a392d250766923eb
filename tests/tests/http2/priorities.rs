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
    // PRIORITY_UPDATE moves it before all others that are not urgent.
    let moved = ask(&mut peer, "u=6");
    let update = [&moved.to_be_bytes()[..], b"u=1"].concat();
    peer.send(&Frame::new(16, 0, 0, update));
    eventually("all that can wait waits", STEP_TIMEOUT, || member.request_count() == 5);
    peer.settle();
    peer.data_order.clear();
    for _ in 0..12 {
        peer.send(&Frame::window_update(0, 10_000));
        peer.settle();
    }
    for stream in [background, usual, urgent, moved] {
        peer.response(stream).assert_status(200);
    }
    let mut order: Vec<u32> = peer.data_order.iter().map(|(stream, _)| *stream).collect();
    order.dedup();
    assert_eq!(order, [urgent, moved, usual, background]);
}
