//! Flow control: each side limits the other.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use weir_tests::http2::{Frame, Http2Member, Peer};
use weir_tests::pattern::{self, Checker};
use weir_tests::proxy::Proxy;
use weir_tests::{STEP_TIMEOUT, eventually};

use super::{BOTH, Socket, TAKES, answer, before, echo, with_socket};

/// More bytes than the kernel's buffers and the windows can hold.
const LARGE: usize = 24 * 1024 * 1024;
/// Maximum growth of weir's memory while one side does not read these bytes.
const GROWTH_BYTES_MAX: u64 = 6 * 1024 * 1024;

/// A member that does not read until `is_open` is set, then reads everything, and reports whether it was complete.
fn slow_reader(taken: &Arc<AtomicU64>, is_open: &Arc<AtomicBool>) -> Http2Member {
    let (taken, is_open) = (Arc::clone(taken), Arc::clone(is_open));
    with_socket(move |peer, stream| {
        let mut checker = Checker::default();
        peer.holds_windows = true;
        loop {
            answer(peer)?;
            peer.pump_for(Duration::from_millis(5));
            let (bytes, _) = peer.take_body(stream);
            taken.fetch_add(bytes.len() as u64, Ordering::AcqRel);
            checker.take(&bytes);
            if is_open.load(Ordering::Acquire) {
                peer.release_windows();
            }
            if peer.closed {
                return Ok(());
            }
            if taken.load(Ordering::Acquire) == LARGE as u64 {
                break;
            }
        }
        peer.body(stream, checker.verdict().as_bytes(), false)?;
        taken.store(0, Ordering::Release);
        echo(peer)
    })
}

#[test]
fn a_member_that_takes_nothing_stops_its_client() {
    for version in BOTH {
        let (taken, is_open) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let member = slow_reader(&taken, &is_open);
        let mut proxy = Proxy::start(&before(member.address()).http("body_timeout: 400ms"));
        let mut socket = Socket::open(&proxy, version, "/");
        let before = proxy.process().resident_bytes();
        let verdict = format!("{LARGE} good bytes");
        let sender = std::thread::spawn(move || {
            let mut bytes = vec![0; LARGE];
            pattern::fill(&mut bytes, 0);
            socket.send(&bytes).expect("sending");
            let answer = socket.receive(verdict.len());
            assert_eq!(String::from_utf8_lossy(&answer), verdict);
            socket
        });
        eventually("the window is full", STEP_TIMEOUT, || taken.load(Ordering::Acquire) == 65_535);
        // weir serves other requests, for longer than `body_timeout`. Only `tunnel_timeout` applies to a tunnel.
        for _ in 0..10 {
            proxy.client().get("/").assert_status(200);
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(taken.load(Ordering::Acquire), 65_535);
        let grown = proxy.process().resident_bytes().saturating_sub(before);
        assert!(grown < GROWTH_BYTES_MAX, "{version:?}: {grown} bytes more");
        is_open.store(true, Ordering::Release);
        let mut socket = sender.join().expect("the sender");
        // A timer that was set during the stall must not end the tunnel.
        std::thread::sleep(Duration::from_millis(900));
        socket.assert_echo("still here");
    }
}

#[test]
fn a_client_that_takes_nothing_stops_its_member() {
    for version in BOTH {
        let sent = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&sent);
        let member = with_socket(move |peer, stream| {
            let mut bytes = vec![0; LARGE];
            pattern::fill(&mut bytes, 0);
            for part in bytes.chunks(16 * 1024) {
                peer.body(stream, part, false)?;
                count.fetch_add(part.len() as u64, Ordering::AcqRel);
            }
            echo(peer)
        });
        let mut proxy = Proxy::start(&before(member.address()).http("body_timeout: 1s"));
        let mut socket = Socket::ask(&proxy, version, "/");
        if let Socket::Two(peer, stream) = &mut socket {
            peer.holds_windows = true;
            peer.response_head(*stream);
        }
        let before = proxy.process().resident_bytes();
        let mut last = u64::MAX;
        eventually("nothing more is sent", STEP_TIMEOUT, || {
            std::thread::sleep(Duration::from_millis(200));
            let now = sent.load(Ordering::Acquire);
            now > 0 && std::mem::replace(&mut last, now) == now
        });
        assert!(last < LARGE as u64, "{version:?}: all of it was sent");
        let grown = proxy.process().resident_bytes().saturating_sub(before);
        assert!(grown < GROWTH_BYTES_MAX, "{version:?}: {grown} bytes more");
        match &mut socket {
            Socket::One(client) => assert_eq!(client.response().status, 101),
            Socket::Two(peer, _) => peer.release_windows(),
        }
        let mut checker = Checker::default();
        let mut left = LARGE;
        while left > 0 {
            let count = left.min(100_000);
            checker.take(&socket.receive(count));
            left -= count;
        }
        checker.assert_whole(LARGE as u64);
        std::thread::sleep(Duration::from_millis(1_500));
        socket.assert_echo("still here");
    }
}

#[test]
fn a_slow_member_of_one_tunnel_does_not_hold_up_another() {
    let member = Http2Member::new(&TAKES, |peer, _| {
        peer.holds_windows = true;
        loop {
            answer(peer)?;
            for stream in peer.streams.keys().copied().collect::<Vec<_>>() {
                let is_quick = peer.streams[&stream].path() == "/quick";
                let (bytes, _) = peer.take_body(stream);
                if is_quick && !bytes.is_empty() {
                    peer.send(&Frame::window_update(stream, bytes.len() as u32));
                    peer.body(stream, &bytes, false)?;
                }
            }
            if !peer.pump() {
                return Ok(());
            }
        }
    });
    let proxy = Proxy::start(&before(member.address()));
    for version in BOTH {
        let mut slow = Socket::open(&proxy, version, "/slow");
        let mut quick = Socket::open(&proxy, version, "/quick");
        match &mut slow {
            // As many bytes as all buffers can hold.
            Socket::One(client) => {
                client.stream().set_nonblocking(true).expect("an option");
                let part = vec![b'x'; 64 * 1024];
                while client.stream().write(&part).is_ok() {}
            }
            Socket::Two(peer, stream) => {
                peer.pump_until("its settings", |peer| !peer.settings.is_empty());
                while peer.allowance(*stream) > 0 {
                    let part = peer.allowance(*stream).min(16_000);
                    peer.data(*stream, &vec![b'x'; part], false);
                }
            }
        }
        for number in 0..100 {
            quick.assert_echo(&format!("message {number}"));
        }
        // The full tunnel does not block an upload either.
        let mut peer = Peer::connect(proxy.address());
        peer.post("/page", &[b'x'; 1_000]).assert_status(200);
    }
}
