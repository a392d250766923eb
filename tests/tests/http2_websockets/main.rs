//! WebSockets to HTTP/2 members, from clients of either version: extended CONNECT (RFC 8441).

mod ending;
mod flow;
mod opening;

use std::io;
use std::net::SocketAddr;

use weir_tests::client::Client;
use weir_tests::http2::{Frame, Http2Member, Message, Peer, code, setting};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

/// The setting that a member must send before weir asks it for a WebSocket.
const TAKES: [(u16, u32); 1] = [(setting::ENABLE_CONNECT_PROTOCOL, 1)];

/// A proxy with one worker whose member speaks HTTP/2, as may its clients.
fn before(member: SocketAddr) -> Setup {
    with_http2(member).top("data_plane: { workers: 1 }")
}

fn with_http2(member: SocketAddr) -> Setup {
    Setup::new(&[member]).http("http2: true").pool("http2: true").access_log()
}

/// The version of HTTP that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

const BOTH: [Version; 2] = [Version::One, Version::Two];

/// A client's end of a WebSocket, used for raw bytes.
enum Socket {
    One(Client),
    Two(Box<Peer>, u32),
}

/// How the peer has ended the stream.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    InOrder,
    /// By a reset.
    Cut,
}

impl Socket {
    /// Requests a WebSocket; the response is not read yet.
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

    /// Opens one.
    #[track_caller]
    fn open(proxy: &Proxy, version: Version, path: &str) -> Self {
        let mut socket = Self::ask(proxy, version, path);
        match &mut socket {
            Self::One(client) => {
                let head = client.response().head;
                assert_eq!(head.start, "HTTP/1.1 101 Switching Protocols", "{head:?}");
                // RFC 6455 section 1.3 gives this for the key above.
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

    /// The response that refuses a WebSocket: status and body.
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

    /// Exactly this many bytes.
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

    /// All bytes until the end, and how the end is signalled.
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

    /// How a break by the member appears.
    #[track_caller]
    fn assert_cut(&mut self) {
        assert_eq!(self.rest(), (Vec::new(), Ended::Cut));
    }

    /// How an abort by the proxy appears: HTTP/1 is closed.
    #[track_caller]
    fn assert_given_up(&mut self) {
        let end = if matches!(self, Self::One(_)) { Ended::InOrder } else { Ended::Cut };
        assert_eq!(self.rest(), (Vec::new(), end));
    }

    /// Breaks it off.
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

/// Answers received requests: 200 to those that ask for a WebSocket.
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

/// Echoes, and sends a farewell at the end.
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
            // A stream that was reset meanwhile needs nothing more.
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

/// A member with one WebSocket on each connection; a scenario controls it once it is open.
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
