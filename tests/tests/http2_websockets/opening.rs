//! Requests for a WebSocket, accepted and refused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_tests::http2::{Frame, Http2Member, setting};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::websocket::WebSocket;
use weir_tests::{STEP_TIMEOUT, eventually, websocket};

use super::{
    BOTH, Ended, Socket, TAKES, Version, assert_logged, assert_nothing_is_left, before, echo,
    echoing, is_asked_for, with_socket,
};

#[test]
fn websockets_cross_two_proxies_to_an_upgrade() {
    let member = websocket::echo_member();
    let inner = Proxy::start(&Setup::new(&[member.address()]).http("http2: true"));
    let outer = Proxy::start(&before(inner.address()));
    let mut sockets: Vec<WebSocket> = (0..5).map(|_| WebSocket::connect(outer.address())).collect();
    let mut streams: Vec<Socket> = Vec::new();
    for _ in 0..5 {
        // The response of this member does not select a subprotocol.
        let mut socket = Socket::ask(&outer, Version::Two, "/chat");
        if let Socket::Two(peer, stream) = &mut socket {
            assert_eq!(peer.response_head(*stream).status(), 200);
        }
        streams.push(socket);
    }
    for round in 0..20_u8 {
        for socket in &mut sockets {
            let text = format!("round {round}");
            assert_eq!(socket.echo(&text).expect("an echo"), text);
        }
        for socket in &mut streams {
            // A frame with a text of five bytes and a zero mask.
            let text = [b"he", &[b'a' + round][..], b"lo"].concat();
            socket.send(&[b"\x81\x85\0\0\0\0", &text[..]].concat()).expect("sending");
            assert_eq!(socket.receive(7), [b"\x81\x05", &text[..]].concat());
        }
        outer.client().get("/").assert_status(200);
    }
    let upgrade = &member.requests()[0].head;
    assert_eq!(upgrade.start, "GET /chat HTTP/1.1");
    assert_eq!(upgrade.field("sec-websocket-key").map(str::len), Some(24));
    assert_eq!(outer.metric("weir_virtual_server_tunnels_total", &[]), 10.0);
    for socket in sockets {
        assert!(socket.close(), "the closing handshake was not relayed");
    }
    for mut socket in streams {
        socket.send(b"\x88\x80\0\0\0\0").expect("sending");
        assert_eq!(socket.receive(2), b"\x88\x00");
        socket.finish();
        assert_eq!(socket.rest(), (Vec::new(), Ended::InOrder));
    }
    assert_nothing_is_left(&outer);
}

#[test]
fn a_member_is_asked_by_an_extended_connect() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heads = Arc::clone(&seen);
    let member = with_socket(move |peer, stream| {
        let mut seen = heads.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(peer.streams[&stream].head.clone());
        drop(seen);
        echo(peer)
    });
    let rules = "rules: [ { then: [ { set_header: { X-To: member } }, { set_response_header: { X-From: weir } } ] } ]";
    let setup = before(member.address())
        .virtual_server("policies: [ both ]")
        .top(&format!("policies: {{ both: {{ {rules} }} }}"))
        // One connection per request.
        .pool("reuse: { requests_max: 1 }");
    let proxy = Proxy::start(&setup);
    for version in BOTH {
        let mut socket = Socket::ask(&proxy, version, "/chat?a=b");
        let added = match &mut socket {
            Socket::One(client) => client.response().head.field("x-from").map(str::to_owned),
            Socket::Two(peer, stream) => {
                peer.response_head(*stream).field("x-from").map(str::to_owned)
            }
        };
        assert_eq!(added.as_deref(), Some("weir"), "{version:?}");
        let mut head = Vec::new();
        eventually("the member has seen it", STEP_TIMEOUT, || {
            let last = seen.lock().unwrap_or_else(PoisonError::into_inner).pop();
            last.map(|last| head = last).is_some()
        });
        head.sort();
        let expected = [
            (":authority", "test"),
            (":method", "CONNECT"),
            (":path", "/chat?a=b"),
            (":protocol", "websocket"),
            (":scheme", "http"),
            ("sec-websocket-protocol", "chat"),
            ("sec-websocket-version", "13"),
            ("x-to", "member"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(head, expected, "{version:?}");
        socket.assert_echo("hello");
    }
}

#[test]
fn a_refusal_of_the_member_is_passed_on() {
    let member = Http2Member::new(&TAKES, |peer, _| {
        while let Some(stream) = peer.next_request() {
            if is_asked_for(&peer.streams[&stream]) {
                peer.headers(stream, &[(":status", "403"), ("content-length", "2")], false);
                peer.data(stream, b"no", true);
            } else {
                peer.answer_with(stream, b"a page")?;
            }
        }
        Ok(())
    });
    let mut proxy = Proxy::start(&before(member.address()));
    for version in BOTH {
        let mut socket = Socket::ask(&proxy, version, "/");
        assert_eq!(socket.refusal(), (403, "no".to_owned()), "{version:?}");
        // The connection can be used for another request.
        match &mut socket {
            Socket::One(client) => client.get("/").assert_status(200).text(),
            Socket::Two(peer, _) => peer.get("/").assert_status(200).text(),
        };
    }
    assert_eq!(member.connection_count(), 1);
    assert_logged(&mut proxy, 403, "complete");
    assert_nothing_is_left(&proxy);
}

#[test]
fn a_member_that_has_not_said_that_it_takes_them_is_not_asked() {
    let is_asked = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_asked);
    let member = Http2Member::new(&[], move |peer, _| {
        while let Some(stream) = peer.next_request() {
            asked.fetch_or(is_asked_for(&peer.streams[&stream]), Ordering::AcqRel);
            peer.answer_with(stream, b"a page")?;
        }
        Ok(())
    });
    let setup = before(member.address()).pool("passive: { failures: 1 }");
    let mut proxy = Proxy::start(&setup);
    for version in BOTH {
        let mut socket = Socket::ask(&proxy, version, "/");
        assert_eq!(socket.refusal().0, 502, "{version:?}");
        proxy.client().get("/").assert_status(200);
    }
    assert!(!is_asked.load(Ordering::Acquire));
    // A refusal is not a failure of the member.
    assert_eq!(proxy.metric("weir_member_failures_total", &[]), 0.0);
    assert_eq!(member.connection_count(), 1);
    assert_logged(&mut proxy, 502, "member_connect");
    eventually("an event says why", STEP_TIMEOUT, || {
        proxy.process().output().contains("lack ENABLE_CONNECT_PROTOCOL")
    });
    assert_nothing_is_left(&proxy);
}

#[test]
fn what_is_no_websocket_goes_on_as_a_plain_request() {
    let member = echoing();
    let proxy = Proxy::start(&before(member.address()));
    let mut client = proxy.client();
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (upgrade, key) in
        [("raw", key), ("websocket", ""), ("websocket", "Sec-WebSocket-Key: x\r\n")]
    {
        client.send(format!(
            "GET /{upgrade} HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n{key}\r\n"
        ));
        let response = client.response();
        assert_eq!(response.assert_status(200).text(), format!("page /{upgrade}"));
    }
}

#[test]
fn settings_that_come_late_are_waited_for() {
    let was_early = Arc::new(AtomicBool::new(false));
    let early = Arc::clone(&was_early);
    let member = Http2Member::without_settings(move |peer, _| {
        std::thread::sleep(Duration::from_millis(300));
        peer.send(&Frame::settings(&TAKES));
        while peer.streams.is_empty() && peer.pump() {}
        early.fetch_or(!peer.acknowledged, Ordering::AcqRel);
        echo(peer)
    });
    let setup = before(member.address()).pool("response_timeout: 40s");
    let proxy = Proxy::start(&setup);
    for version in BOTH {
        let mut sockets = [0; 2].map(|_| Socket::ask(&proxy, version, "/"));
        for socket in &mut sockets {
            match socket {
                Socket::One(client) => assert_eq!(client.response().status, 101),
                Socket::Two(peer, stream) => assert_eq!(peer.response_head(*stream).status(), 200),
            }
            socket.assert_echo("late");
        }
    }
    assert!(!was_early.load(Ordering::Acquire), "asked before it had said anything");
}

#[test]
fn settings_that_do_not_come_are_a_connect_that_failed() {
    let member = Http2Member::without_settings(|peer, number| {
        if number < 4 {
            while peer.frame().is_some() {}
            return Ok(());
        }
        peer.send(&Frame::settings(&TAKES));
        echo(peer)
    });
    let setup = before(member.address()).pool("connect_timeout: 3s").pool("retries: 0");
    let mut proxy = Proxy::start(&setup);
    let mut waiting: Vec<Socket> = [Version::One, Version::Two, Version::One, Version::Two]
        .map(|version| Socket::ask(&proxy, version, "/"))
        .into();
    for socket in &mut waiting {
        assert_eq!(socket.refusal().0, 504);
    }
    assert_eq!(proxy.metric("weir_member_failures_total", &["\"connect\""]), 4.0);
    assert_eq!(proxy.metric("weir_member_failures_total", &[]), 4.0);
    assert_logged(&mut proxy, 504, "member_connect");
    assert_eq!(proxy.metric("weir_pool_retries_total", &[]), 0.0);
    // These connections are not used again.
    Socket::open(&proxy, Version::One, "/").assert_echo("second");
    assert_eq!(member.connection_count(), 5);
}

#[test]
fn each_tunnel_has_a_connection_for_itself() {
    let member = Http2Member::new(&TAKES, |peer, _| echo(peer));
    let proxy = Proxy::start(&before(member.address()));
    // The first tunnel uses an idle connection.
    proxy.client().get("/page").assert_status(200);
    let mut sockets: Vec<Socket> =
        (0..5).map(|number| Socket::open(&proxy, BOTH[number % 2], "/")).collect();
    for socket in &mut sockets {
        socket.assert_echo("hello");
    }
    assert_eq!(member.connection_count(), 5);
    proxy.client().get("/page").assert_status(200);
    assert_eq!(member.connection_count(), 6);
    assert_eq!(proxy.metric("weir_pool_retries_total", &[]), 0.0);
}

#[test]
fn a_member_that_allows_no_stream_is_not_connected_to_without_end() {
    let settings = [TAKES[0], (setting::MAX_CONCURRENT_STREAMS, 0)];
    let member = Http2Member::new(&settings, |peer, _| {
        while peer.frame().is_some() {}
        Ok(())
    });
    let proxy = Proxy::start(&before(member.address()));
    for version in BOTH {
        assert_eq!(Socket::ask(&proxy, version, "/").refusal().0, 502, "{version:?}");
    }
    assert_eq!(member.connection_count(), 4, "one more each");
    eventually("they are not kept", STEP_TIMEOUT, || {
        proxy.metric("weir_member_connections_open", &[]) == 0.0
    });
    assert_nothing_is_left(&proxy);
}

#[test]
fn what_comes_before_the_answer_is_the_tunnels() {
    let member = Http2Member::new(&TAKES, |peer, _| {
        while let Some(stream) = peer.next_request() {
            // By now the client has sent data and has ended its half. weir must not forward them before the response.
            peer.pump_for(Duration::from_millis(200));
            assert!(!peer.streams[&stream].ended && peer.streams[&stream].body.is_empty());
            peer.headers(stream, &[(":status", "299")], false);
            let request = peer.response(stream);
            peer.body(stream, &request.body, true)?;
        }
        Ok(())
    });
    let proxy = Proxy::start(&before(member.address()));
    for version in BOTH {
        let mut socket = Socket::ask(&proxy, version, "/");
        socket.send(b"early").expect("sending");
        socket.finish();
        match &mut socket {
            Socket::One(client) => assert_eq!(client.response().status, 101),
            Socket::Two(peer, stream) => assert_eq!(peer.response_head(*stream).status(), 200),
        }
        assert_eq!(socket.rest(), (b"early".to_vec(), Ended::InOrder), "{version:?}");
    }
}
