//! HTTP/2 clients: extended CONNECT (RFC 8441).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_tests::http2::{Frame, Peer, code, setting};
use weir_tests::member::{Member, Then};
use weir_tests::proxy::Proxy;
use weir_tests::{STEP_TIMEOUT, eventually, websocket};

use super::{connect, h2c, metric, start};

fn websocket_head(path: &'static str) -> [(&'static str, &'static str); 7] {
    [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "test"),
        ("sec-websocket-version", "13"),
        ("origin", "http://test"),
    ]
}

#[test]
fn a_websocket_echoes_on_a_stream() {
    let member = websocket::echo_member();
    let proxy = start(&member);
    let mut peer = connect(&proxy);
    assert_eq!(peer.settings.get(&setting::ENABLE_CONNECT_PROTOCOL), Some(&1));
    let sockets: Vec<u32> = (0..5).map(|_| peer.open(&websocket_head("/chat"), false)).collect();
    for stream in &sockets {
        let head = peer.response_head(*stream);
        assert_eq!((head.status(), head.field("sec-websocket-accept")), (200, None), "{head:?}");
        assert!(head.field("connection").is_none() && head.field("upgrade").is_none());
    }
    let upgrade = &member.requests()[0].head;
    assert_eq!(upgrade.start, "GET /chat HTTP/1.1");
    assert!(
        upgrade.has_token("upgrade", "websocket") && upgrade.has_token("connection", "upgrade")
    );
    assert_eq!(upgrade.field("sec-websocket-key").map(str::len), Some(24));
    for round in 0..20_u8 {
        for stream in &sockets {
            // A frame with a text of five bytes and a zero mask.
            let text = [b"\x81\x85\0\0\0\0he", &[b'a' + round][..], b"lo"].concat();
            peer.data(*stream, &text, false);
        }
        for stream in &sockets {
            let length = (usize::from(round) + 1) * 7;
            peer.pump_until("an echo", |peer| peer.streams[stream].body.len() >= length);
            let echo = [b"\x81\x05he", &[b'a' + round][..], b"lo"].concat();
            assert_eq!(peer.streams[stream].body[length - 7..], echo);
        }
        peer.get("/beside").assert_status(200);
    }
    for stream in sockets {
        peer.data(stream, b"\x88\x80\0\0\0\0", false);
        let closed = peer.response(stream);
        assert!(closed.ended && closed.body.ends_with(b"\x88\x00"), "{closed:?}");
        peer.data(stream, b"", true);
    }
    eventually("the member's sides are closed", STEP_TIMEOUT, || member.open_connections() <= 1);
    // The connection to the member may close before the client's stream.
    eventually("no tunnel is left", STEP_TIMEOUT, || metric(&proxy, "requests_active") == 0.0);
}

/// Only DATA frames are allowed in a tunnel (RFC 9113 section 8.5).
#[test]
fn nothing_but_data_goes_through_a_tunnel() {
    let member = websocket::echo_member();
    let proxy = start(&member);
    let mut peer = connect(&proxy);
    let stream = peer.open(&websocket_head("/chat"), false);
    assert_eq!(peer.response_head(stream).status(), 200);
    peer.headers(stream, &[("x-checksum", "1")], true);
    assert_eq!(peer.response(stream).reset, Some(code::PROTOCOL_ERROR));
    eventually("the member's side is closed", STEP_TIMEOUT, || member.open_connections() == 0);
    peer.get("/beside").assert_status(200);
    assert_eq!(metric(&proxy, "requests_active"), 0.0);
}

#[test]
fn each_half_of_a_tunnel_ends_by_itself() {
    let member = Member::new(|exchange| {
        exchange.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello ",
        )?;
        let mut buffer = [0; 1024];
        loop {
            match exchange.receive(&mut buffer)? {
                0 => break,
                count => exchange.send(&buffer[..count])?,
            }
        }
        // The client has half-closed. The member has not.
        exchange.send(" bye")?;
        Ok(Then::Close)
    });
    let proxy = start(&member);
    let mut peer = connect(&proxy);
    let stream = peer.open(&websocket_head("/"), false);
    // Data that is sent before the response also belongs to the tunnel.
    peer.data(stream, b"out ", false);
    assert_eq!(peer.response_head(stream).status(), 200);
    peer.data(stream, b"there", true);
    let response = peer.response(stream);
    assert_eq!(response.text(), "hello out there bye");
    assert!(response.ended && response.reset.is_none(), "{response:?}");
    peer.get("/beside");
}

#[test]
fn a_tunnel_that_is_refused_reset_or_idle_is_over() {
    let member = Member::new(|exchange| match exchange.request.target() {
        "/refused" => exchange
            .send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
            .map(|()| Then::KeepAlive),
        "/page" => exchange.answer("a page, and no tunnel"),
        _ => websocket::serve(exchange),
    });
    let proxy = Proxy::start(&h2c(&[&member]).http("tunnel_timeout: 500ms"));
    let mut peer = connect(&proxy);
    // weir must not forward the member's 200, because 200 would open a tunnel.
    let stream = peer.open(&websocket_head("/page"), false);
    peer.response(stream).assert_status(502);
    let stream = peer.open(&websocket_head("/refused"), false);
    let refused = peer.response(stream);
    assert_eq!(refused.assert_status(403).text(), "no");
    let stream = peer.open(&websocket_head("/idle"), false);
    assert_eq!(peer.response(stream).reset, Some(code::CANCEL));
    let stream = peer.open(&websocket_head("/reset"), false);
    peer.response_head(stream);
    peer.send(&Frame::reset(stream, code::CANCEL));
    eventually("nothing is left", STEP_TIMEOUT, || metric(&proxy, "requests_active") == 0.0);
    peer.get("/").assert_status(200);
}

#[test]
fn a_tunnel_that_had_to_wait_for_an_end_is_not_cut_for_it_later() {
    const SIZE: usize = 16 * 1024 * 1024;
    const PAUSE: Duration = Duration::from_millis(1_000);
    let member = Member::new(|exchange| {
        exchange.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        )?;
        // First the member and then the client does not read for longer than `body_timeout`.
        std::thread::sleep(PAUSE);
        let (mut buffer, mut left) = (vec![0; 64 * 1024], SIZE);
        while left > 0 {
            left -= exchange.receive(&mut buffer)?;
        }
        exchange.send(vec![b'y'; SIZE])?;
        let count = exchange.receive(&mut buffer)?;
        exchange.send(&buffer[..count])?;
        Ok(Then::Close)
    });
    let proxy = Proxy::start(&h2c(&[&member]).http("body_timeout: 500ms"));
    let mut peer = connect(&proxy);
    let stream = peer.open(&websocket_head("/"), false);
    peer.body(stream, &vec![b'x'; SIZE], false).expect("sending");
    peer.holds_windows = true;
    peer.pump_until("a window full", |peer| peer.streams[&stream].body.len() == 65_535);
    // The client first opens its windows in small steps.
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(100));
        peer.send(&Frame::window_update(0, 2_000)).send(&Frame::window_update(stream, 2_000));
    }
    peer.release_windows();
    peer.pump_until("all of it", |peer| peer.streams[&stream].body.len() == SIZE);
    std::thread::sleep(PAUSE);
    peer.data(stream, b"still here", true);
    let response = peer.response(stream);
    assert!(response.ended && response.body.ends_with(b"still here"), "{:?}", response.reset);
}

/// A member that sends this number of bytes through each WebSocket, and then nothing.
fn talking_member(size: usize) -> Member {
    Member::new(move |exchange| {
        exchange.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        )?;
        exchange.send(vec![b'z'; size])?;
        while exchange.receive(&mut [0; 1024])? > 0 {}
        Ok(Then::Close)
    })
}

#[test]
fn a_client_that_takes_little_of_a_tunnel_has_the_time_of_tunnels() {
    const SIZE: usize = 300_000;
    let member = talking_member(SIZE);
    let proxy = Proxy::start(&h2c(&[&member]).http("body_timeout: 500ms"));
    let mut peer = connect(&proxy);
    peer.holds_windows = true;
    let stream = peer.open(&websocket_head("/"), false);
    peer.pump_until("a window full", |peer| {
        peer.streams.get(&stream).is_some_and(|it| it.body.len() == 65_535)
    });
    for _ in 0..3 {
        peer.send(&Frame::window_update(0, 500)).send(&Frame::window_update(stream, 500));
        peer.pump_for(Duration::from_millis(100));
    }
    peer.pump_for(Duration::from_millis(1_500));
    assert_eq!(peer.streams[&stream].reset, None);
    peer.release_windows();
    peer.pump_until("all of it", |peer| {
        let it = &peer.streams[&stream];
        it.body.len() == SIZE || it.reset.is_some()
    });
    assert_eq!(peer.streams[&stream].reset, None);
}

#[test]
fn a_tunnel_whose_client_takes_nothing_more_ends_in_its_time() {
    let member = talking_member(300_000);
    let mut proxy = Proxy::start(&h2c(&[&member]).http("tunnel_timeout: 3s").access_log());
    let mut peer = connect(&proxy);
    peer.holds_windows = true;
    let stream = peer.open(&websocket_head("/"), false);
    peer.response_head(stream);
    // A few bytes prevent the timeout.
    for _ in 0..12 {
        peer.pump_for(Duration::from_millis(300));
        peer.send(&Frame::window_update(0, 500)).send(&Frame::window_update(stream, 500));
    }
    assert_eq!(peer.streams[&stream].reset, None);
    peer.pump_until("the end", |peer| peer.streams[&stream].reset.is_some());
    assert_eq!(peer.streams[&stream].reset, Some(code::CANCEL));
    eventually("it is logged", STEP_TIMEOUT, || {
        proxy.process().output().contains("\"termination\":\"tunnel_timeout\"")
    });
}

#[test]
fn an_idle_tunnel_ends_beside_a_download() {
    let member = Member::new(|exchange| {
        if exchange.request.head.has_token("upgrade", "websocket") {
            return websocket::serve(exchange);
        }
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")?;
        loop {
            exchange.send(vec![b'x'; 64 * 1024])?;
        }
    });
    let proxy = Proxy::start(&h2c(&[&member]).http("tunnel_timeout: 500ms"));
    let mut peer = Peer::connect_with(proxy.address(), &[(setting::INITIAL_WINDOW_SIZE, 1 << 30)]);
    peer.send(&Frame::window_update(0, 1 << 30));
    (peer.holds_windows, peer.drops_data) = (true, true);
    let large = peer.request("GET", "/large", &[], true);
    assert_eq!(peer.response_head(large).status(), 200);
    let tunnel = peer.open(&websocket_head("/"), false);
    assert_eq!(peer.response_head(tunnel).status(), 200);
    let is_over = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&is_over);
    // The client reads slowly and always has data to read.
    let reader = std::thread::spawn(move || {
        while !stop.load(Ordering::Acquire) && peer.pump() {
            std::thread::sleep(Duration::from_millis(2));
        }
        peer
    });
    eventually("the tunnel is over", STEP_TIMEOUT, || metric(&proxy, "requests_active") == 1.0);
    is_over.store(true, Ordering::Release);
    let peer = reader.join().expect("the reader");
    assert!(!peer.streams[&large].ended, "the download goes on");
    assert!(!peer.closed && peer.received > 0);
}
