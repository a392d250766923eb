//! The conformance tables. Sections refer to RFC 9112 unless another document is named; `policy` marks refusals or
//! actions of weir that the standards do not require.
#![allow(dead_code, reason = "each test binary, and the fuzz seeds, use a part")]

pub mod body;
pub mod cookies;
pub mod flaws;
pub mod forwarded;
pub mod h2;
pub mod h2_messages;
pub mod proxy_protocol;
pub mod request_fields;
pub mod request_framing;
pub mod request_line;
pub mod response;
pub mod response_framing;

use weir_http::h1::{FieldError, FramingError, RequestError, ResponseError};
use weir_http::message::{Framing, Method};

/// One request head.
pub struct RequestCase {
    pub name: &'static str,
    pub section: &'static str,
    pub received: Vec<u8>,
    pub expected: RequestExpected,
}

/// The outcome.
pub enum RequestExpected {
    /// The member gets this head.
    Sent { head: Vec<u8>, keep_alive: bool },
    /// The client gets this status.
    Refused { status: u16, error: RequestError },
    /// More bytes could complete it.
    Partial,
}

/// `received` reaches the member as `head`, and the client's connection persists.
pub fn sent(
    name: &'static str,
    section: &'static str,
    received: &[u8],
    head: &[u8],
) -> RequestCase {
    let expected = RequestExpected::Sent { head: head.to_vec(), keep_alive: true };
    RequestCase { name, section, received: received.to_vec(), expected }
}

/// As [`sent`], and the client's connection ends.
pub fn sent_then_closed(
    name: &'static str,
    section: &'static str,
    received: &[u8],
    head: &[u8],
) -> RequestCase {
    let expected = RequestExpected::Sent { head: head.to_vec(), keep_alive: false };
    RequestCase { name, section, received: received.to_vec(), expected }
}

/// `received` is answered with `status`.
pub fn refused(
    name: &'static str,
    section: &'static str,
    received: &[u8],
    status: u16,
    error: RequestError,
) -> RequestCase {
    RequestCase {
        name,
        section,
        received: received.to_vec(),
        expected: RequestExpected::Refused { status, error },
    }
}

/// `received` is the beginning of a valid head.
pub fn partial(name: &'static str, section: &'static str, received: &[u8]) -> RequestCase {
    RequestCase { name, section, received: received.to_vec(), expected: RequestExpected::Partial }
}

/// A GET of `target` reaches the member as one of `sent_target`.
pub fn target(
    name: &'static str,
    section: &'static str,
    target: &str,
    sent_target: &str,
) -> RequestCase {
    let received = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = format!("GET {sent_target} HTTP/1.1\r\nHost: a\r\n\r\n");
    sent(name, section, received.as_bytes(), head.as_bytes())
}

/// A GET of `target` is answered with 400.
pub fn target_refused(
    name: &'static str,
    section: &'static str,
    target: &[u8],
    error: RequestError,
) -> RequestCase {
    let received = [b"GET ".as_slice(), target, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
    refused(name, section, &received, 400, error)
}

/// A request with this request line and a Host is answered with `status`.
pub fn line_refused(
    name: &'static str,
    section: &'static str,
    line: &[u8],
    status: u16,
    error: RequestError,
) -> RequestCase {
    refused(name, section, &[line, b"\r\nHost: a\r\n\r\n"].concat(), status, error)
}

/// A GET with these field lines (each with its line end) reaches the member with those.
pub fn fields(
    name: &'static str,
    section: &'static str,
    lines: &[u8],
    sent_lines: &[u8],
) -> RequestCase {
    let wrap = |lines| [b"GET / HTTP/1.1\r\nHost: a\r\n".as_slice(), lines, b"\r\n"].concat();
    sent(name, section, &wrap(lines), &wrap(sent_lines))
}

/// A GET with these field lines is answered with `status`.
pub fn fields_refused(
    name: &'static str,
    section: &'static str,
    lines: &[u8],
    status: u16,
    error: RequestError,
) -> RequestCase {
    let received = [b"GET / HTTP/1.1\r\nHost: a\r\n".as_slice(), lines, b"\r\n"].concat();
    refused(name, section, &received, status, error)
}

/// A GET with this Host value is answered with 400.
pub fn host_refused(name: &'static str, section: &'static str, host: &[u8]) -> RequestCase {
    let received = [b"GET / HTTP/1.1\r\nHost: ".as_slice(), host, b"\r\n\r\n"].concat();
    refused(name, section, &received, 400, RequestError::HostInvalid)
}

/// A field section error of a request.
pub const fn in_fields(error: FieldError) -> RequestError {
    RequestError::Field(error)
}

/// A framing error of a request.
pub const fn in_framing(error: FramingError) -> RequestError {
    RequestError::Framing(error)
}

/// Every request head.
pub fn requests() -> Vec<RequestCase> {
    [request_line::cases(), request_fields::cases(), request_framing::cases()]
        .into_iter()
        .flatten()
        .collect()
}

/// One response head.
pub struct ResponseCase {
    pub name: &'static str,
    pub section: &'static str,
    pub method: Method,
    /// The time of weir's clock, if it is used.
    pub date: Option<&'static [u8]>,
    pub received: Vec<u8>,
    pub expected: ResponseExpected,
}

/// The outcome.
pub enum ResponseExpected {
    /// An HTTP/1.1 client gets this head.
    Sent { head: Vec<u8>, framing: Framing, keep_alive: bool },
    /// The client gets 502.
    Refused(ResponseError),
    /// More bytes could complete it.
    Partial,
}

impl ResponseCase {
    /// The same bytes in answer to another method.
    pub fn to(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// The same bytes, received at a given time.
    pub fn at(self, date: &'static [u8]) -> Self {
        Self { date: Some(date), ..self }
    }

    /// The same, and the member's connection cannot be used again.
    pub fn then_closed(mut self) -> Self {
        if let ResponseExpected::Sent { keep_alive, .. } = &mut self.expected {
            *keep_alive = false;
        }
        self
    }
}

/// `received` in answer to GET reaches an HTTP/1.1 client as `head`; the member's body has `framing`
/// and its connection can be used again.
pub fn answered(
    name: &'static str,
    section: &'static str,
    received: &[u8],
    framing: Framing,
    head: &[u8],
) -> ResponseCase {
    let expected = ResponseExpected::Sent { head: head.to_vec(), framing, keep_alive: true };
    response_case(name, section, received, expected)
}

/// `received` in answer to GET makes a 502.
pub fn bad(
    name: &'static str,
    section: &'static str,
    received: &[u8],
    error: ResponseError,
) -> ResponseCase {
    let expected = ResponseExpected::Refused(error);
    response_case(name, section, received, expected)
}

/// A 200 with these field lines makes a 502.
pub fn bad_fields(
    name: &'static str,
    section: &'static str,
    lines: &[u8],
    error: ResponseError,
) -> ResponseCase {
    bad(name, section, &[b"HTTP/1.1 200 OK\r\n".as_slice(), lines, b"\r\n"].concat(), error)
}

/// `received` is the beginning of a valid head.
pub fn partly(name: &'static str, section: &'static str, received: &[u8]) -> ResponseCase {
    let expected = ResponseExpected::Partial;
    response_case(name, section, received, expected)
}

fn response_case(
    name: &'static str,
    section: &'static str,
    received: &[u8],
    expected: ResponseExpected,
) -> ResponseCase {
    let received = received.to_vec();
    ResponseCase { name, section, method: Method::Get, date: None, received, expected }
}

/// Every response head.
pub fn responses() -> Vec<ResponseCase> {
    [response::cases(), response_framing::cases()].into_iter().flatten().collect()
}

/// Heads of members, valid or not.
pub fn received_responses() -> impl Iterator<Item = Vec<u8>> {
    let flawed = flaws::heads().into_iter().map(|case| case.received);
    responses().into_iter().map(|case| case.received).chain(flawed)
}

/// Chunked bodies.
pub fn received_bodies() -> impl Iterator<Item = Vec<u8>> {
    let flawed = flaws::bodies().into_iter().map(|case| case.received);
    body::cases().into_iter().map(|case| case.received).chain(flawed)
}
