//! Timeouts of silence within a body, and bodies without them.

use std::thread;
use std::time::Duration;

use weir_tests::http2::{Frame, Http2Member, Peer};
use weir_tests::member::{Member, Then};
use weir_tests::proxy::{Proxy, Setup};

/// Longer than the timeouts that must not apply, with a margin for a busy machine.
const SILENCE: Duration = Duration::from_millis(1_200);

/// A member that pauses in the middle of its response.
fn silent(head: &'static str) -> Member {
    Member::new(move |exchange| {
        exchange.send(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n"))?;
        exchange.send("4\r\none,\r\n")?;
        thread::sleep(SILENCE);
        exchange.send("3\r\ntwo\r\n0\r\n\r\n")?;
        Ok(Then::KeepAlive)
    })
}

const CHUNKED: &str = "Transfer-Encoding: chunked";
const EVENTS: &str = "Content-Type: Text/Event-Stream; charset=utf-8\r\nTransfer-Encoding: chunked";

/// Whether the whole body arrives over HTTP/1 and over HTTP/2.
fn comes_whole(member: &Member, setup: &dyn Fn(Setup) -> Setup) -> [bool; 2] {
    let proxy = Proxy::start(&setup(Setup::new(&[member.address()]).http("http2: true")));
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let by_http1 = client.try_response(false).is_ok_and(|response| response.text() == "one,two");
    let mut peer = Peer::connect(proxy.address());
    let stream = peer.request("GET", "/", &[], true);
    let response = peer.response(stream);
    [by_http1, response.ended && response.text() == "one,two"]
}

#[test]
fn a_response_has_a_timeout_of_its_own() {
    let member = silent(CHUNKED);
    assert_eq!(comes_whole(&member, &|setup| setup.http("body_timeout: 300ms")), [true; 2]);
    let cut = comes_whole(&member, &|setup| setup.http("response_body_timeout: 300ms"));
    assert_eq!(cut, [false; 2]);
}

#[test]
fn an_event_stream_may_be_silent() {
    let member = silent(EVENTS);
    let short =
        |setup: Setup| setup.http("body_timeout: 300ms").http("response_body_timeout: 300ms");
    assert_eq!(comes_whole(&member, &short), [true; 2]);
    let cut = comes_whole(&member, &|setup| short(setup).http("tunnel_timeout: 300ms"));
    assert_eq!(cut, [false; 2]);
}

/// A gRPC call with a silent client and then a silent member. The members use HTTP/2, as gRPC does.
#[test]
fn a_grpc_call_may_be_silent_on_either_side() {
    let member = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            let head: [(&[u8], &[u8]); 2] =
                [(b":status", b"200"), (b"content-type", b"application/grpc")];
            peer.send_bytes(Frame::headers(stream, &head, false).bytes())?;
            let request = peer.response(stream);
            thread::sleep(SILENCE);
            peer.body(stream, request.text().as_bytes(), true)?;
        }
        Ok(())
    });
    let call = |tunnel_timeout: &str, content_type: &str| {
        let setup = Setup::new(&[member.address()])
            .http("http2: true")
            .http("body_timeout: 300ms")
            .http("response_body_timeout: 300ms")
            .http(&format!("tunnel_timeout: {tunnel_timeout}"))
            .pool("http2: true");
        let proxy = Proxy::start(&setup);
        let mut peer = Peer::connect(proxy.address());
        let stream = peer.request("POST", "/a.B/c", &[("content-type", content_type)], false);
        peer.data(stream, b"one,", false);
        peer.pump_for(SILENCE);
        peer.data(stream, b"two", true);
        let response = peer.response(stream);
        response.ended && response.text() == "one,two"
    };
    assert!(call("1h", "application/grpc+proto"));
    assert!(!call("300ms", "application/grpc+proto"));
    assert!(!call("1h", "text/plain"));
}

/// The type of gRPC is a statement of the client. Where no call is possible, the body has its timeout.
#[test]
fn a_type_alone_is_no_call() {
    let member = Member::echo();
    let by_http2 = Http2Member::telling(&[]);
    for (address, pool, is_http2) in [
        (member.address(), "http2: false", false),
        (member.address(), "http2: false", true),
        (by_http2.address(), "http2: true", false),
    ] {
        let setup = Setup::new(&[address]).http("http2: true").http("body_timeout: 300ms");
        let proxy = Proxy::start(&setup.pool(pool));
        // The rest of the body never comes.
        let status = if is_http2 {
            let mut peer = Peer::connect(proxy.address());
            let fields = [("content-type", "application/grpc"), ("content-length", "100")];
            let stream = peer.request("POST", "/", &fields, false);
            peer.data(stream, b"x", false);
            peer.response(stream).status()
        } else {
            let mut client = proxy.client();
            client.send(
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\n\
                 Content-Length: 100\r\n\r\nx",
            );
            client.response().status
        };
        assert_eq!(status, 408, "{pool}, HTTP/2 at the client: {is_http2}");
    }
}

/// The type of a response is a statement of the member: a stream of gRPC-Web over HTTP/1.1 may be silent.
#[test]
fn a_response_of_grpc_web_may_be_silent() {
    let grpc = silent("Content-Type: application/grpc-web+proto\r\nTransfer-Encoding: chunked");
    let other = silent(CHUNKED);
    for (member, tunnel_timeout, is_whole) in
        [(&grpc, "1h", true), (&grpc, "300ms", false), (&other, "1h", false)]
    {
        let setup = Setup::new(&[member.address()])
            .http("response_body_timeout: 300ms")
            .http(&format!("tunnel_timeout: {tunnel_timeout}"));
        let proxy = Proxy::start(&setup);
        let mut client = proxy.client();
        client.send(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc-web+proto\r\n\
             Content-Length: 5\r\n\r\n\0\0\0\0\0",
        );
        let response = client.try_response(false);
        let comes_whole = response.is_ok_and(|response| response.text() == "one,two");
        assert_eq!(comes_whole, is_whole, "{tunnel_timeout}");
    }
}

/// The timeout applies only if both sides are silent. Data from either side shows that the call is active.
#[test]
fn a_grpc_call_lives_as_long_as_one_side_speaks() {
    let member = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            let head: [(&[u8], &[u8]); 2] =
                [(b":status", b"200"), (b"content-type", b"application/grpc")];
            peer.send_bytes(Frame::headers(stream, &head, false).bytes())?;
            for _ in 0..12 {
                thread::sleep(Duration::from_millis(300));
                peer.body(stream, b"x", false)?;
            }
            let request = peer.response(stream);
            peer.body(stream, request.text().as_bytes(), true)?;
        }
        Ok(())
    });
    let setup = Setup::new(&[member.address()])
        .http("http2: true")
        .http("tunnel_timeout: 3s")
        .pool("http2: true");
    let proxy = Proxy::start(&setup);
    let mut peer = Peer::connect(proxy.address());
    let stream = peer.request("POST", "/a.B/c", &[("content-type", "application/grpc")], false);
    peer.data(stream, b"one", false);
    // The member sends for longer than the timeout. The client is silent.
    peer.pump_for(Duration::from_millis(4_000));
    peer.data(stream, b",two", true);
    let response = peer.response(stream);
    assert!(response.ended, "{response:?}");
    assert_eq!(response.text(), "xxxxxxxxxxxxone,two");
}
