//! The end of a tunnel: each half on its own, by a break, by a timeout, and at shutdown.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_tests::http2::{Frame, Http2Member, Message, Peer, code, flag, kind};
use weir_tests::member::{Member, Then};
use weir_tests::pattern::{self, Checker};
use weir_tests::proxy::Proxy;
use weir_tests::{STEP_TIMEOUT, eventually};

use super::{
    BOTH, Ended, Socket, TAKES, Version, answer, assert_logged, assert_nothing_is_left, before,
    echoing, with_http2, with_socket,
};

#[test]
fn a_client_may_end_its_half_first() {
    let member = echoing();
    let mut proxy = Proxy::start(&before(member.address()));
    for version in BOTH {
        let mut socket = Socket::open(&proxy, version, "/");
        socket.send(b"the last").expect("sending");
        socket.finish();
        assert_eq!(socket.rest(), (b"the last bye".to_vec(), Ended::InOrder), "{version:?}");
    }
    assert_logged(&mut proxy, 101, "complete");
    assert_nothing_is_left(&proxy);
    assert_eq!(member.connection_count(), 1);
}

#[test]
fn a_member_may_end_its_half_first() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let said = Arc::clone(&heard);
    let member = Http2Member::new(&TAKES, move |peer, _| {
        loop {
            for stream in answer(peer)? {
                if peer.streams[&stream].path() == "/data" {
                    peer.data(stream, b"bye", false);
                }
                peer.data(stream, b"", true);
                let request = peer.response(stream);
                said.lock().unwrap_or_else(PoisonError::into_inner).push(request.text());
                peer.streams.remove(&stream);
            }
            if !peer.pump() {
                return Ok(());
            }
        }
    });
    let proxy = Proxy::start(&before(member.address()));
    for version in BOTH {
        for (path, text) in [("/data", &b"bye"[..]), ("/nothing", b"")] {
            let mut socket = Socket::open(&proxy, version, path);
            assert_eq!(socket.rest(), (text.to_vec(), Ended::InOrder), "{version:?} {path}");
            socket.send(b"still ").expect("sending");
            socket.send(b"here").expect("sending");
            socket.finish();
            eventually("the member has heard it", STEP_TIMEOUT, || {
                let last = heard.lock().unwrap_or_else(PoisonError::into_inner).pop();
                last.is_some_and(|last| last == "still here")
            });
            assert_nothing_is_left(&proxy);
        }
    }
    assert_eq!(member.connection_count(), 1);
}

#[test]
fn an_answer_that_is_the_end_at_once_is_one() {
    let member = Http2Member::new(&TAKES, |peer, _| {
        while let Some(stream) = peer.next_request() {
            peer.headers(stream, &[(":status", "200")], true);
        }
        Ok(())
    });
    let proxy = Proxy::start(&before(member.address()));
    for version in BOTH {
        let mut socket = Socket::ask(&proxy, version, "/");
        if let Socket::One(client) = &mut socket {
            assert_eq!(client.response().status, 101);
        }
        assert_eq!(socket.rest(), (Vec::new(), Ended::InOrder), "{version:?}");
        socket.finish();
        assert_nothing_is_left(&proxy);
    }
}

#[test]
fn a_member_that_leaves_has_all_of_its_words_delivered() {
    const SIZE: usize = 120_000;
    // Some members end their half and reset the stream with NO_ERROR, because they need no more data from the client.
    let member = with_socket(|peer, stream| {
        let mut bytes = vec![0; SIZE];
        pattern::fill(&mut bytes, 0);
        peer.body(stream, &bytes, true)?;
        peer.send(&Frame::reset(stream, code::NO_ERROR));
        peer.rest();
        Ok(())
    });
    let setup = before(member.address()).pool("reuse: { requests_max: 1 }");
    let mut proxy = Proxy::start(&setup);
    for version in BOTH {
        let mut socket = match version {
            Version::One => Socket::open(&proxy, version, "/"),
            Version::Two => {
                // The bytes beyond the first window wait for a window update.
                let mut socket = Socket::ask(&proxy, version, "/");
                if let Socket::Two(peer, stream) = &mut socket {
                    peer.holds_windows = true;
                    let stream = *stream;
                    peer.pump_until("a window full", |peer| {
                        peer.streams.get(&stream).is_some_and(|it| it.body.len() == 65_535)
                    });
                    peer.settle();
                    peer.release_windows();
                }
                socket
            }
        };
        let mut checker = Checker::default();
        let (bytes, end) = socket.rest();
        checker.take(&bytes);
        checker.assert_whole(SIZE as u64);
        assert_eq!(end, Ended::InOrder, "{version:?}");
        assert_nothing_is_left(&proxy);
    }
    eventually("both are logged", STEP_TIMEOUT, || {
        proxy.process().output().matches("\"termination\":\"complete\"").count() == 2
    });
}

#[test]
fn what_a_member_has_ended_is_delivered_whatever_becomes_of_it_then() {
    const SIZE: usize = 100_000;
    let member = with_socket(|peer, stream| {
        let mut bytes = vec![0; SIZE];
        pattern::fill(&mut bytes, 0);
        peer.body(stream, &bytes, true)?;
        let path = peer.streams[&stream].path().to_owned();
        if matches!(path.as_str(), "/both/stays" | "/both/closes") {
            peer.pump_until("the client's end", |peer| peer.streams[&stream].ended);
        }
        match path.as_str() {
            "/resets" => {
                peer.send(&Frame::reset(stream, code::CANCEL));
                peer.rest();
            }
            "/both/stays" => {
                peer.rest();
            }
            _ => {
                peer.send(&Frame::goaway(stream, code::NO_ERROR));
            }
        }
        Ok(())
    });
    let setup = before(member.address()).pool("reuse: { requests_max: 1 }");
    let mut proxy = Proxy::start(&setup);
    for path in ["/both/stays", "/both/closes", "/closes", "/resets"] {
        let ends_too = path.starts_with("/both");
        let mut socket = Socket::ask(&proxy, Version::Two, path);
        let Socket::Two(peer, stream) = &mut socket else { continue };
        let stream = *stream;
        peer.holds_windows = true;
        peer.pump_until("a window full", |peer| {
            peer.streams.get(&stream).is_some_and(|it| it.body.len() == 65_535)
        });
        if ends_too {
            peer.data(stream, b"", true);
        }
        // The member is finished, even if the client is slow.
        eventually("the member is free", STEP_TIMEOUT, || {
            proxy.metric("weir_member_requests_active", &[]) == 0.0
        });
        assert_eq!(proxy.metric("weir_virtual_server_requests_active", &[]), 1.0, "{path}");
        peer.release_windows();
        let mut checker = Checker::default();
        let message = peer.response(stream);
        checker.take(&message.body);
        checker.assert_whole(SIZE as u64);
        assert!(message.ended, "{path}: {:?}", message.reset);
        if !ends_too {
            // Further bytes of the client are dropped.
            peer.pump_until("the break", |peer| peer.streams[&stream].reset.is_some());
            assert_eq!(peer.streams[&stream].reset, Some(code::CANCEL), "{path}");
        }
        assert_nothing_is_left(&proxy);
    }
    for (termination, count) in [("complete", 2), ("member_abort", 2)] {
        eventually(termination, STEP_TIMEOUT, || {
            let text = format!("\"termination\":\"{termination}\"");
            proxy.process().output().matches(&text).count() == count
        });
    }
}

#[test]
fn a_member_that_dies_takes_its_tunnels_with_it() {
    let member = Http2Member::new(&TAKES, |peer, _| {
        loop {
            for stream in answer(peer)? {
                let path = peer.streams[&stream].path().to_owned();
                peer.pump_until("a word", |peer| !peer.streams[&stream].body.is_empty());
                match path.as_str() {
                    "/resets" => peer.send(&Frame::reset(stream, code::INTERNAL_ERROR)),
                    // A tunnel must not have trailers (RFC 9113 section 8.5).
                    "/trailers" => peer.headers(stream, &[("x", "y")], true),
                    _ => return Ok(()),
                };
            }
            if !peer.pump() {
                return Ok(());
            }
        }
    });
    let mut proxy = Proxy::start(&before(member.address()));
    for version in BOTH {
        for path in ["/dies", "/resets", "/trailers"] {
            let mut socket = Socket::open(&proxy, version, path);
            socket.send(b"x").expect("sending");
            socket.assert_cut();
            assert_nothing_is_left(&proxy);
        }
    }
    assert_logged(&mut proxy, 101, "member_abort");
    assert_logged(&mut proxy, 101, "member_malformed");
    // It has not sent a byte in any of them. It is not ejected for that, and takes the next tunnel.
    assert_eq!(proxy.metric("weir_member_failures_total", &[]), 6.0);
    assert_eq!(proxy.metric("weir_member_ejections_total", &[]), 0.0);
}

#[test]
fn a_tunnel_that_ends_leaves_those_beside_it() {
    let resets = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&resets);
    let member = Http2Member::new(&TAKES, move |peer, _| {
        // Counts the resets on this connection. The other tunnels have their own connections.
        let mut counted = 0;
        loop {
            answer(peer)?;
            for stream in peer.streams.keys().copied().collect::<Vec<_>>() {
                let (bytes, _) = peer.take_body(stream);
                peer.body(stream, &bytes, false)?;
            }
            let cancelled = |it: &&Message| it.reset == Some(code::CANCEL);
            let in_all = peer.streams.values().filter(cancelled).count();
            count.fetch_add(in_all - counted, Ordering::Release);
            counted = in_all;
            if !peer.pump() {
                return Ok(());
            }
        }
    });
    let mut proxy = Proxy::start(&before(member.address()));
    let mut beside = Socket::open(&proxy, Version::One, "/");
    for (number, version) in BOTH.into_iter().enumerate() {
        let mut socket = Socket::open(&proxy, version, "/");
        socket.assert_echo("hello");
        socket.abort();
        eventually("the member is told", STEP_TIMEOUT, || {
            resets.load(Ordering::Acquire) == number + 1
        });
        beside.assert_echo("still here");
    }
    assert_logged(&mut proxy, 101, "client_abort");
}

#[test]
fn an_idle_tunnel_ends_after_its_timeout() {
    let resets = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&resets);
    let member = Http2Member::new(&TAKES, move |peer, _| {
        loop {
            answer(peer)?;
            for stream in peer.streams.keys().copied().collect::<Vec<_>>() {
                let (bytes, _) = peer.take_body(stream);
                peer.body(stream, &bytes, false)?;
            }
            let cancelled = |it: &&Message| it.reset == Some(code::CANCEL);
            count.store(peer.streams.values().filter(cancelled).count(), Ordering::Release);
            if !peer.pump() {
                return Ok(());
            }
        }
    });
    let mut proxy = Proxy::start(&before(member.address()).http("tunnel_timeout: 2s"));
    for (number, version) in BOTH.into_iter().enumerate() {
        let mut socket = Socket::open(&proxy, version, "/");
        // For longer than the timeout.
        for _ in 0..9 {
            std::thread::sleep(Duration::from_millis(250));
            socket.assert_echo("in use");
        }
        socket.assert_given_up();
        eventually("the member is told", STEP_TIMEOUT, || {
            resets.load(Ordering::Acquire) == number + 1
        });
    }
    assert_logged(&mut proxy, 101, "tunnel_timeout");
    assert_nothing_is_left(&proxy);
    assert_eq!(member.connection_count(), 1);
}

#[test]
fn tunnels_outlast_a_reload_and_end_with_the_process() {
    let member = echoing();
    let brief = |member| with_http2(member).top("data_plane: { workers: 1, drain_timeout: 6s }");
    let mut proxy = Proxy::start(&brief(member.address()));
    let mut sockets = BOTH.map(|version| Socket::open(&proxy, version, "/"));
    // The reload removes the member from the pool. The tunnels remain.
    let other = Member::new(|exchange| exchange.answer("other").map(|_| Then::Close));
    proxy.reload_and_wait(&brief(other.address()));
    for socket in &mut sockets {
        socket.assert_echo("after the reload");
    }
    proxy.process().signal(rustix::process::Signal::TERM);
    for socket in &mut sockets {
        socket.assert_echo("while it drains");
    }
    for socket in &mut sockets {
        socket.rest();
    }
    assert_logged(&mut proxy, 101, "stopped");
}

/// The data of a stream, and whether END_STREAM came with the last of it.
fn frames_of(peer: &mut Peer, stream: u32) -> (Vec<u8>, bool) {
    let mut all = Vec::new();
    loop {
        let frame = peer.frame().expect("an end before the connection's");
        if frame.kind != kind::DATA || frame.stream != stream {
            continue;
        }
        all.extend_from_slice(&frame.payload);
        if frame.flags & flag::END_STREAM != 0 {
            return (all, !frame.payload.is_empty());
        }
    }
}

#[test]
fn the_end_of_a_half_comes_with_its_last_data() {
    for last in [vec![b'x'; 2], vec![b'x'; 6_000], vec![b'x'; 30_000]] {
        let (heard, to_say) = (Arc::new(Mutex::new(None)), last.clone());
        let told = Arc::clone(&heard);
        let member = Http2Member::new(&TAKES, move |peer, _| {
            let stream = loop {
                match answer(peer)?.pop() {
                    Some(stream) => break stream,
                    None if !peer.pump() => return Ok(()),
                    None => {}
                }
            };
            peer.body(stream, &to_say, true)?;
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(frames_of(peer, stream));
            while peer.pump() {}
            Ok(())
        });
        let proxy = Proxy::start(&before(member.address()));
        let Socket::Two(mut peer, stream) = Socket::open(&proxy, Version::Two, "/") else {
            unreachable!("a stream was opened")
        };
        assert_eq!(frames_of(&mut peer, stream), (last.clone(), true), "to the client");
        peer.body(stream, &last, true).expect("sending");
        eventually("the member has the end", STEP_TIMEOUT, || {
            heard.lock().unwrap_or_else(PoisonError::into_inner).is_some()
        });
        let heard = heard.lock().unwrap_or_else(PoisonError::into_inner).take();
        assert_eq!(heard, Some((last, true)), "to the member");
    }
}
