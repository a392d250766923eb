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
        exchange.stream().set_read_timeout(Some(Duration::from_secs(5)))?;
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

#[test]
fn an_idle_tunnel_ends_after_its_timeout() {
    let member = echo_member();
    let proxy = Proxy::start(&Setup::new(&[member.address()]).http("tunnel_timeout: 1s"));
    let mut socket = WebSocket::connect(proxy.address());
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(400));
        socket.echo("still here").expect("a tunnel in use is not idle");
    }
    weir_tests::eventually("the idle tunnel is closed", weir_tests::STEP_TIMEOUT, || {
        member.open_connections() == 0
    });
}
