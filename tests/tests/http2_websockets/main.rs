//! WebSockets to HTTP/2 members from clients of both versions: extended CONNECT (RFC 8441).

mod ending;
mod flow;
mod opening;

use std::io;
use std::net::SocketAddr;

use weir_tests::client::Client;
use weir_tests::http2::{Frame, Http2Member, Message, Peer, code, setting};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

/// The setting that a member must send before weir sends an extended CONNECT to it.
const TAKES: [(u16, u32); 1] = [(setting::ENABLE_CONNECT_PROTOCOL, 1)];

/// A proxy with one worker whose member uses HTTP/2. Clients may use it, too.
fn before(member: SocketAddr) -> Setup {
    with_http2(member).top("data_plane: { workers: 1 }")
}

fn with_http2(member: SocketAddr) -> Setup {
    Setup::new(&[member]).http("http2: true").pool("http2: true").access_log()
}

/// The HTTP version of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

const BOTH: [Version; 2] = [Version::One, Version::Two];

/// A client's end of a WebSocket, for raw bytes.
enum Socket {
    One(Client),
    Two(Box<Peer>, u32),
}

/// The end of the stream from the peer.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    InOrder,
    /// A reset.
    Cut,
}

impl Socket {
    /// Sends the request for a WebSocket, without reading the response.
    fn ask(proxy: &Proxy, version: Version, path: &str) -> Self {
        match version {
            Version::One => {
                let mut client = proxy.client();
                client.send(format!(
                    "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: keep-alive, Upgrade\r\n\
                     Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: chat\r\n\
                     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nContent-Length: 0\r\n\r\n"
                ));
                Self::One(client)
            }
            Version::Two => {
                let mut peer = Peer::connect(proxy.address());
                let stream = peer.open(
                    &[
                        (":method", "CONNECT"),
                        (":protocol", "websocket"),
                        (":scheme", "http"),
                        (":path", path),
                        (":authority", "test"),
                        ("sec-websocket-version", "13"),
                        ("sec-websocket-protocol", "chat"),
                    ],
                    false,
                );
                Self::Two(Box::new(peer), stream)
            }
        }
    }

    /// Opens a WebSocket.
    #[track_caller]
    fn open(proxy: &Proxy, version: Version, path: &str) -> Self {
        let mut socket = Self::ask(proxy, version, path);
        match &mut socket {
            Self::One(client) => {
                let head = client.response().head;
                assert_eq!(head.start, "HTTP/1.1 101 Switching Protocols", "{head:?}");
                // The value for the key above, from RFC 6455 section 1.3.
                let accept = head.field("sec-websocket-accept");
                assert_eq!(accept, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head:?}");
                assert!(head.has_token("upgrade", "websocket"), "{head:?}");
                assert!(head.has_token("connection", "upgrade"), "{head:?}");
                assert_eq!(head.field("sec-websocket-protocol"), Some("chat"), "{head:?}");
                assert!(head.framing().is_none(), "{head:?}");
            }
            Self::Two(peer, stream) => {
                let head = peer.response_head(*stream);
                assert_eq!(head.status(), 200, "{head:?}");
                assert_eq!(head.field("sec-websocket-protocol"), Some("chat"), "{head:?}");
                assert_eq!(head.field("sec-websocket-accept"), None, "{head:?}");
            }
        }
        socket
    }

    /// The status and the body of a response that refuses the WebSocket.
    #[track_caller]
    fn refusal(&mut self) -> (u16, String) {
        match self {
            Self::One(client) => {
                let response = client.response();
                assert!(response.complete, "cut short: {response:?}");
                (response.status, response.text())
            }
            Self::Two(peer, stream) => {
                let response = peer.response(*stream);
                assert!(response.ended, "cut short: {response:?}");
                (response.status(), response.text())
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::One(client) => client.try_send(bytes),
            Self::Two(peer, stream) => peer.body(*stream, bytes, false),
        }
    }

    /// Ends the client's half.
    fn finish(&mut self) {
        match self {
            Self::One(client) => {
                client.finish();
            }
            Self::Two(peer, stream) => {
                peer.data(*stream, b"", true);
            }
        }
    }

    /// Receives exactly this number of bytes.
    #[track_caller]
    fn receive(&mut self, count: usize) -> Vec<u8> {
        match self {
            Self::One(client) => {
                let mut bytes = vec![0; count];
                let mut at = 0;
                while at < count {
                    let more = client.reader().some(&mut bytes[at..]).expect("reading");
                    assert!(more > 0, "ended after {at} of {count} bytes");
                    at += more;
                }
                bytes
            }
            Self::Two(peer, stream) => {
                peer.pump_until("the bytes", |peer| peer.streams[stream].body.len() >= count);
                let (mut bytes, _) = peer.take_body(*stream);
                let rest = bytes.split_off(count);
                peer.streams.entry(*stream).or_default().body = rest;
                bytes
            }
        }
    }

    #[track_caller]
    fn assert_echo(&mut self, text: &str) {
        self.send(text.as_bytes()).expect("sending");
        assert_eq!(self.receive(text.len()), text.as_bytes());
    }

    /// Receives all bytes until the end. Also returns the kind of the end.
    fn rest(&mut self) -> (Vec<u8>, Ended) {
        match self {
            Self::One(client) => {
                let (mut bytes, mut buffer) = (Vec::new(), [0; 16 * 1024]);
                loop {
                    match client.reader().some(&mut buffer) {
                        Ok(0) => return (bytes, Ended::InOrder),
                        Ok(count) => bytes.extend_from_slice(&buffer[..count]),
                        Err(error) => {
                            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
                            return (bytes, Ended::Cut);
                        }
                    }
                }
            }
            Self::Two(peer, stream) => {
                let message = peer.response(*stream);
                let end = if message.ended { Ended::InOrder } else { Ended::Cut };
                if end == Ended::Cut {
                    assert_eq!(message.reset, Some(code::CANCEL), "{message:?}");
                }
                (message.body, end)
            }
        }
    }

    /// Panics unless the tunnel ends like one that the member breaks off.
    #[track_caller]
    fn assert_cut(&mut self) {
        assert_eq!(self.rest(), (Vec::new(), Ended::Cut));
    }

    /// Panics unless the tunnel ends like one that weir aborts. With HTTP/1, weir closes the connection.
    #[track_caller]
    fn assert_given_up(&mut self) {
        assert_eq!(self.rest(), (Vec::new(), Ended::Cut));
    }

    /// Breaks off the tunnel.
    fn abort(self) {
        match self {
            Self::One(client) => client.reset(),
            Self::Two(mut peer, stream) => {
                peer.send(&Frame::reset(stream, code::CANCEL));
                peer.settle();
            }
        }
    }
}

fn is_asked_for(message: &Message) -> bool {
    message.field(":protocol").is_some()
}

/// Responds to the received requests, with 200 to requests for a WebSocket. Returns the streams of opened tunnels.
fn answer(peer: &mut Peer) -> io::Result<Vec<u32>> {
    let mut opened = Vec::new();
    while let Some(stream) = peer.try_next_request() {
        if is_asked_for(&peer.streams[&stream]) {
            let lines = [(":status", "200"), ("sec-websocket-protocol", "chat")];
            peer.headers(stream, &lines, false);
            opened.push(stream);
        } else {
            let text = format!("page {}", peer.streams[&stream].path());
            peer.answer_with(stream, text.as_bytes())?;
        }
    }
    Ok(opened)
}

/// Echoes the bytes of each tunnel, and sends " bye" at its end.
fn echo(peer: &mut Peer) -> io::Result<()> {
    loop {
        answer(peer)?;
        let open: Vec<u32> = peer
            .streams
            .iter()
            .filter(|(_, it)| is_asked_for(it) && it.reset.is_none())
            .map(|(stream, _)| *stream)
            .collect();
        for stream in open {
            let (mut bytes, ended) = peer.take_body(stream);
            if ended {
                peer.streams.remove(&stream);
                bytes.extend_from_slice(b" bye");
            }
            // An error means that the stream was reset.
            let _ = peer.body(stream, &bytes, ended);
        }
        if !peer.pump() {
            return Ok(());
        }
    }
}

fn echoing() -> Http2Member {
    Http2Member::new(&TAKES, |peer, _| echo(peer))
}

/// A member with one WebSocket per connection. The handler gets the connection and the stream when the WebSocket is open.
fn with_socket(
    handler: impl Fn(&mut Peer, u32) -> io::Result<()> + Send + Sync + 'static,
) -> Http2Member {
    Http2Member::new(&TAKES, move |peer, _| {
        loop {
            if let [stream] = answer(peer)?[..] {
                return handler(peer, stream);
            }
            if !peer.pump() {
                return Ok(());
            }
        }
    })
}

#[track_caller]
fn assert_nothing_is_left(proxy: &Proxy) {
    for name in ["virtual_server_requests_active", "member_requests_active"] {
        eventually(name, STEP_TIMEOUT, || proxy.metric(&format!("weir_{name}"), &[]) == 0.0);
    }
}

#[track_caller]
fn assert_logged(proxy: &mut Proxy, status: u16, termination: &str) {
    let words = [format!("\"status\":{status},"), format!("\"termination\":\"{termination}\"")];
    eventually(&format!("{status} {termination} is logged"), STEP_TIMEOUT, || {
        let log = proxy.process().output();
        log.lines().any(|line| words.iter().all(|word| line.contains(word)))
    });
}
