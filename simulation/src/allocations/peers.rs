//! Clients and members that send the same messages repeatedly.

use weir_event_loop::memory::Peer;
use weir_testing::frame::{Frame, PREFACE, flag, kind, setting};
use weir_testing::hpack::{Decoder, Line};

/// The body of messages.
pub const BODY: &[u8] = &[b'a'; 512];
/// The flow-control window of a stream, and the initial increment of a connection's window.
const WINDOW: u32 = 1 << 30;
const FRAME_HEADER: usize = 9;

/// The HTTP version of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Http1,
    Http2,
}

/// The repeated request.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub version: Version,
    pub path: &'static str,
    /// Whether the request has the body [`BODY`].
    pub has_body: bool,
    /// Additional fields, with names in lower case.
    pub fields: &'static [(&'static str, &'static str)],
}

/// A peer's end of a connection.
struct Wire {
    peer: Peer,
    version: Version,
    received: Vec<u8>,
    /// The last received head; used only by HTTP/2.
    head: String,
    decoder: Decoder,
}

impl Wire {
    fn new(peer: Peer, version: Version) -> Self {
        Self {
            peer,
            version,
            received: Vec::new(),
            head: String::new(),
            decoder: Decoder::default(),
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        let sent = self.peer.write(bytes).expect("room");
        assert_eq!(sent, bytes.len(), "the pipe has room for a message");
    }

    fn receive(&mut self) {
        let mut buffer = [0; 4096];
        while let Ok(count) = self.peer.read(&mut buffer) {
            assert!(count > 0, "the worker closes: {}", String::from_utf8_lossy(&self.received));
            self.received.extend_from_slice(&buffer[..count]);
        }
    }

    /// Takes the next complete message: its head and its stream; `None`: no message is complete.
    fn next(&mut self) -> Option<(String, u32)> {
        match self.version {
            Version::Http1 => Some((self.next_http1()?, 0)),
            Version::Http2 => self.next_http2(),
        }
    }

    fn next_http1(&mut self) -> Option<String> {
        let head = self.received.windows(4).position(|it| it == b"\r\n\r\n")? + 4;
        let text = String::from_utf8_lossy(&self.received[..head]).into_owned();
        let lower = text.to_ascii_lowercase();
        let length = lower.split_once("\r\ncontent-length: ").map_or("0", |(_, rest)| rest);
        let length = length.lines().next().and_then(|length| length.parse().ok());
        let whole = head + length.unwrap_or(0);
        if self.received.len() < whole {
            return None;
        }
        self.received.drain(..whole);
        Some(text)
    }

    /// Takes the next complete message, and answers other frames.
    fn next_http2(&mut self) -> Option<(String, u32)> {
        if self.received.starts_with(&PREFACE[..1]) {
            let preface = self.received.get(..PREFACE.len())?;
            assert_eq!(preface, PREFACE);
            self.received.drain(..PREFACE.len());
        }
        let mut at = 0;
        while let Some(frame) = frame(&self.received[at..]) {
            at += FRAME_HEADER + frame.payload.len();
            match frame.kind {
                kind::SETTINGS if frame.flags & flag::ACK == 0 => {
                    self.send(&Frame::new(kind::SETTINGS, flag::ACK, 0, []).bytes());
                }
                kind::HEADERS => self.head = text(&self.decoder.read(&frame.payload)),
                kind::DATA if !frame.payload.is_empty() => {
                    let taken = frame.payload.len() as u32;
                    self.send(&Frame::window_update(0, taken).bytes());
                }
                kind::RST_STREAM | kind::GOAWAY => panic!("{frame:?}"),
                _ => {}
            }
            let is_message = matches!(frame.kind, kind::HEADERS | kind::DATA);
            if is_message && frame.flags & flag::END_STREAM != 0 {
                self.received.drain(..at);
                return Some((self.head.clone(), frame.stream));
            }
        }
        self.received.drain(..at);
        None
    }
}

/// The frame at the beginning of these bytes; `None`: it is incomplete.
fn frame(bytes: &[u8]) -> Option<Frame> {
    let header = bytes.get(..FRAME_HEADER)?;
    let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
    let payload = bytes.get(FRAME_HEADER..FRAME_HEADER + length)?;
    let stream = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
    Some(Frame::new(header[3], header[4], stream, payload))
}

/// Header lines as the text of an HTTP/1 head, without its first line.
fn text(lines: &[Line]) -> String {
    let one = |(name, value): &Line| {
        format!("{}: {}\r\n", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
    };
    lines.iter().map(one).collect()
}

fn settings() -> Vec<u8> {
    let settings = Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, WINDOW)]);
    [settings.bytes(), Frame::window_update(0, WINDOW).bytes()].concat()
}

fn message(version: Version, stream: u32, lines: &[(&[u8], &[u8])], body: &[u8]) -> Vec<u8> {
    if version == Version::Http2 {
        let mut bytes = Frame::headers(stream, lines, body.is_empty()).bytes();
        if !body.is_empty() {
            Frame::new(kind::DATA, flag::END_STREAM, stream, body).write(&mut bytes);
        }
        return bytes;
    }
    let mut bytes = Vec::new();
    for (name, value) in lines {
        bytes.extend_from_slice(&[name, &b": "[..], value, b"\r\n"].concat());
    }
    [&bytes, &b"\r\n"[..], body].concat()
}

/// A client that repeats its request as soon as it has the response.
pub struct Client {
    wire: Wire,
    request: Request,
    /// The received cookie.
    cookie: Option<String>,
    stream: u32,
}

impl Client {
    /// Creates a client, and sends this number of requests at once.
    pub fn new(peer: Peer, request: Request, at_once: usize) -> Self {
        let mut wire = Wire::new(peer, request.version);
        if request.version == Version::Http2 {
            wire.send(&[PREFACE, &settings()].concat());
        }
        let mut client = Self { wire, request, cookie: None, stream: 1 };
        (0..at_once).for_each(|_| client.ask());
        client
    }

    fn ask(&mut self) {
        let Request { version, path, has_body, fields } = self.request;
        let body = if has_body { BODY } else { b"" };
        let length = BODY.len().to_string();
        let method = if has_body { "POST" } else { "GET" };
        let mut lines: Vec<(&str, &str)> = match version {
            Version::Http1 => vec![("host", "a.test")],
            Version::Http2 => vec![
                (":method", method),
                (":scheme", "http"),
                (":path", path),
                (":authority", "a.test"),
            ],
        };
        lines.extend_from_slice(fields);
        lines.extend(self.cookie.as_deref().map(|cookie| ("cookie", cookie)));
        lines.extend(has_body.then_some(("content-length", &*length)));
        let lines: Vec<_> =
            lines.iter().map(|(it, value)| (it.as_bytes(), value.as_bytes())).collect();
        let mut bytes = message(version, self.stream, &lines, body);
        if version == Version::Http1 {
            bytes = [format!("{method} {path} HTTP/1.1\r\n").as_bytes(), &bytes].concat();
        }
        self.wire.send(&bytes);
        self.stream += 2;
    }

    /// Sends a request for each received response. Returns the number of responses.
    pub fn step(&mut self) -> u64 {
        self.wire.receive();
        let mut responses = 0;
        while let Some((head, _)) = self.wire.next() {
            assert!(head.lines().next().is_some_and(|first| first.contains(" 200")), "{head}");
            self.take_cookie(&head);
            self.ask();
            responses += 1;
        }
        responses
    }

    fn take_cookie(&mut self, head: &str) {
        let mut fields = head.lines().filter_map(|line| line.split_once(": "));
        if let Some((_, value)) = fields.find(|(name, _)| name.eq_ignore_ascii_case("set-cookie")) {
            assert_eq!(self.cookie, None, "a cookie is given once");
            self.cookie = value.split(';').next().map(str::to_owned);
        }
    }
}

/// A member that answers every request with status 200 and [`BODY`].
pub struct Member(Wire);

impl Member {
    /// Accepts the connection.
    pub fn new(peer: Peer, version: Version) -> Self {
        let mut wire = Wire::new(peer, version);
        if version == Version::Http2 {
            wire.send(&settings());
        }
        Self(wire)
    }

    /// Answers all received requests.
    pub fn step(&mut self) {
        self.0.receive();
        while let Some((_, stream)) = self.0.next() {
            let length = BODY.len().to_string();
            let lines: [(&[u8], &[u8]); 3] = [
                (b":status", b"200"),
                (b"content-type", b"text/html"),
                (b"content-length", length.as_bytes()),
            ];
            let version = self.0.version;
            let response = match version {
                Version::Http1 => {
                    let rest = message(version, 0, &lines[1..], BODY);
                    [&b"HTTP/1.1 200 OK\r\n"[..], &rest].concat()
                }
                Version::Http2 => message(version, stream, &lines, BODY),
            };
            self.0.send(&response);
        }
    }
}
