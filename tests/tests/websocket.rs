//! Tunnels: WebSockets and other protocols by Upgrade.

use std::time::Duration;

use weir_tests::member::{Member, Then};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::websocket::{WebSocket, echo_member};

#[test]
fn a_websocket_echoes_and_closes() {
    let member = echo_member();
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let mut socket = WebSocket::connect(proxy.address());
    for number in 0..200 {
        let text = format!("message {number}");
        assert_eq!(socket.echo(&text).expect("an echo"), text);
    }
    assert!(socket.close(), "the closing handshake was not relayed");
    weir_tests::eventually("the member's side is closed", weir_tests::STEP_TIMEOUT, || {
        member.open_connections() == 0
    });
}

#[test]
fn many_tunnels_do_not_disturb_requests() {
    let member = echo_member();
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let mut sockets: Vec<WebSocket> =
        (0..50).map(|_| WebSocket::connect(proxy.address())).collect();
    for round in 0..5 {
        for (number, socket) in sockets.iter_mut().enumerate() {
            let text = format!("{round} of {number}");
            assert_eq!(socket.echo(&text).expect("an echo"), text);
        }
        proxy.client().get("/").assert_status(200);
    }
}

#[test]
fn a_tunnel_passes_bytes_that_came_with_the_upgrade_and_each_half_close() {
    let member = Member::new(|exchange| {
        // The first bytes of the tunnel are in one segment with the head.
        exchange.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\nhello ",
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
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n");
    assert_eq!(client.response().status, 101);
    client.send("there").finish();
    assert_eq!(String::from_utf8_lossy(&client.reader().rest()), "hello there bye");
}

#[test]
fn a_half_close_that_comes_before_the_101_reaches_the_member() {
    let member = Member::new(|exchange| {
        // By then weir has received the client's FIN.
        std::thread::sleep(Duration::from_millis(200));
        exchange.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n",
        )?;
        exchange.stream().set_read_timeout(Some(weir_tests::STEP_TIMEOUT))?;
        let end = exchange.receive(&mut [0; 16]);
        exchange.send(format!("the member received {end:?}"))?;
        Ok(Then::Close)
    });
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let mut client = proxy.client();
    client
        .send("GET / HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n")
        .finish();
    assert_eq!(client.response().status, 101);
    assert_eq!(String::from_utf8_lossy(&client.reader().rest()), "the member received Ok(0)");
}

/// What is cut short must not look whole, on either side: `docker exec` has no length.
#[test]
fn a_break_of_one_side_is_a_break_for_the_other() {
    const AGREED: &str =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n";
    const ASKED: &str =
        "GET / HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n";
    let (told, ends) = std::sync::mpsc::channel();
    let member = Member::new(move |exchange| {
        exchange.send(AGREED)?;
        exchange.stream().set_read_timeout(Some(weir_tests::STEP_TIMEOUT))?;
        match exchange.receive(&mut [0; 16]) {
            Ok(count) if count > 0 => {
                exchange.send("half of the outp")?;
                Ok(Then::Reset)
            }
            end => {
                told.send(end.map_err(|error| error.kind())).expect("the test waits");
                Ok(Then::Close)
            }
        }
    });
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let mut client = proxy.client();
    client.send(ASKED);
    assert_eq!(client.response().status, 101);
    client.send("break");
    let (mut got, mut buffer) = (Vec::new(), [0; 64]);
    let end = loop {
        match client.reader().some(&mut buffer) {
            Ok(0) => break None,
            Ok(count) => got.extend_from_slice(&buffer[..count]),
            Err(error) => break Some(error.kind()),
        }
    };
    assert_eq!(String::from_utf8_lossy(&got), "half of the outp");
    assert_eq!(end, Some(std::io::ErrorKind::ConnectionReset));
    let mut client = proxy.client();
    client.send(ASKED);
    assert_eq!(client.response().status, 101);
    client.reset();
    let end = ends.recv_timeout(weir_tests::STEP_TIMEOUT).expect("the member is told");
    assert_eq!(end, Err(std::io::ErrorKind::ConnectionReset));
}

#[test]
fn an_idle_tunnel_ends_after_its_timeout() {
    let member = echo_member();
    let proxy = Proxy::start(&Setup::new(&[member.address()]).http("tunnel_timeout: 3s"));
    let mut socket = WebSocket::connect(proxy.address());
    for _ in 0..12 {
        std::thread::sleep(Duration::from_millis(300));
        socket.echo("still here").expect("a tunnel in use is not idle");
    }
    weir_tests::eventually("the idle tunnel is closed", weir_tests::STEP_TIMEOUT, || {
        member.open_connections() == 0
    });
}

/// A member that agrees to any Upgrade once it has read the whole body, and then echoes. Without an Upgrade it says so.
fn agreeing() -> Member {
    Member::new(|exchange| {
        if exchange.request.head.field("upgrade").is_none() {
            return exchange.answer("no upgrade");
        }
        exchange.send("HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")?;
        exchange.send(exchange.request.body.clone())?;
        let mut buffer = [0; 1024];
        loop {
            match exchange.receive(&mut buffer)? {
                0 => return Ok(Then::Close),
                count => exchange.send(&buffer[..count])?,
            }
        }
    })
}

const WITH_BODIES: [(&str, &str); 3] = [
    ("Content-Length: 5", "hello"),
    ("Transfer-Encoding: chunked", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
    ("Content-Length: 0", ""),
];

/// `docker exec` sends a POST with a body and an Upgrade.
#[test]
fn an_upgrade_with_a_body_becomes_a_tunnel() {
    let member = agreeing();
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    for (framing, body) in WITH_BODIES {
        for is_split in [false, true] {
            let mut client = proxy.client();
            let head = format!(
                "POST /exec HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n{framing}\r\n\r\n"
            );
            if is_split {
                let seen = member.connection_count();
                client.send(&head);
                if !body.is_empty() {
                    weir_tests::eventually("the head is out", weir_tests::STEP_TIMEOUT, || {
                        member.connection_count() > seen
                    });
                }
                client.send(body);
            } else {
                client.send(format!("{head}{body}"));
            }
            assert_eq!(client.response().status, 101, "{framing}");
            client.send("there").finish();
            let expected = if body.is_empty() { "there" } else { "hellothere" };
            let rest = client.reader().rest();
            assert_eq!(String::from_utf8_lossy(&rest), expected, "{framing}");
        }
    }
}

/// Whatever the reason, the log has it.
#[test]
fn an_upgrade_that_is_not_offered_has_its_reason_in_the_log() {
    let member = agreeing();
    let setup = Setup::new(&[member.address()]).http("upgrade_with_body: false").access_log();
    let mut proxy = Proxy::start(&setup);
    let ask = |request: &str| {
        let mut client = proxy.client();
        client.send(request);
        assert_eq!(client.response().assert_status(200).text(), "no upgrade");
    };
    let fields = "Connection: Upgrade\r\nUpgrade: tcp";
    for (framing, body) in &WITH_BODIES[..2] {
        ask(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n{framing}\r\n\r\n{body}"));
    }
    ask(&format!("GET / HTTP/1.0\r\nHost: a\r\n{fields}\r\n\r\n"));
    ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
    ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let count = |proxy: &mut Proxy, text: &str| proxy.process().output().matches(text).count();
    weir_tests::eventually("the log has all", weir_tests::STEP_TIMEOUT, || {
        count(&mut proxy, "\"termination\"") == 5
    });
    for (reason, times) in [
        ("the request has a body (upgrade_with_body)", 2),
        ("HTTP/1.0 has none", 1),
        ("its protocols are not passed on, or are malformed", 1),
    ] {
        let mark = format!("\"marks\":[\"upgrade not offered: {reason}\"]");
        assert_eq!(count(&mut proxy, &mark), times, "{reason}");
    }
    assert_eq!(count(&mut proxy, "upgrade not offered"), 4);
}

/// What follows would be taken for data of the new protocol although it is the rest of the body.
#[test]
fn a_protocol_does_not_begin_within_the_request() {
    let member = Member::streaming(|exchange| {
        exchange.send("HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")?;
        Ok(Then::Close)
    });
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let mut client = proxy.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 5\r\n\r\nhe",
    );
    client.response().assert_status(502);
}
