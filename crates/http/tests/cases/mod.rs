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

/// A request head and the expected outcome.
pub struct RequestCase {
    pub name: &'static str,
    pub section: &'static str,
    pub received: Vec<u8>,
    pub expected: RequestExpected,
}

/// The outcome of parsing and forwarding a request head.
pub enum RequestExpected {
    /// The member receives this head.
    Sent { head: Vec<u8>, keep_alive: bool },
    /// The client receives this status.
    Refused { status: u16, error: RequestError },
    /// The head is incomplete.
    Partial,
}

/// A case in which the member receives `head`, and the client's connection persists.
pub fn sent(
    name: &'static str,
    section: &'static str,
    received: &[u8],
    head: &[u8],
) -> RequestCase {
    let expected = RequestExpected::Sent { head: head.to_vec(), keep_alive: true };
    RequestCase { name, section, received: received.to_vec(), expected }
}

/// As [`sent`], but the client's connection does not persist.
pub fn sent_then_closed(
    name: &'static str,
    section: &'static str,
    received: &[u8],
    head: &[u8],
) -> RequestCase {
    let expected = RequestExpected::Sent { head: head.to_vec(), keep_alive: false };
    RequestCase { name, section, received: received.to_vec(), expected }
}

/// A case in which the client receives `status`.
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

/// A case of an incomplete head.
pub fn partial(name: &'static str, section: &'static str, received: &[u8]) -> RequestCase {
    RequestCase { name, section, received: received.to_vec(), expected: RequestExpected::Partial }
}

/// A GET of `target`, which reaches the member as a GET of `sent_target`.
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

/// A GET of `target` that is answered with 400.
pub fn target_refused(
    name: &'static str,
    section: &'static str,
    target: &[u8],
    error: RequestError,
) -> RequestCase {
    let received = [b"GET ".as_slice(), target, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
    refused(name, section, &received, 400, error)
}

/// A request with this request line and a Host field, which is answered with `status`.
pub fn line_refused(
    name: &'static str,
    section: &'static str,
    line: &[u8],
    status: u16,
    error: RequestError,
) -> RequestCase {
    refused(name, section, &[line, b"\r\nHost: a\r\n\r\n"].concat(), status, error)
}

/// A GET with these field lines, each with its line end, which reaches the member with `sent_lines`.
pub fn fields(
    name: &'static str,
    section: &'static str,
    lines: &[u8],
    sent_lines: &[u8],
) -> RequestCase {
    let wrap = |lines| [b"GET / HTTP/1.1\r\nHost: a\r\n".as_slice(), lines, b"\r\n"].concat();
    sent(name, section, &wrap(lines), &wrap(sent_lines))
}

/// A GET with these field lines, which is answered with `status`.
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

/// A GET with this Host value, which is answered with 400.
pub fn host_refused(name: &'static str, section: &'static str, host: &[u8]) -> RequestCase {
    let received = [b"GET / HTTP/1.1\r\nHost: ".as_slice(), host, b"\r\n\r\n"].concat();
    refused(name, section, &received, 400, RequestError::HostInvalid)
}

/// The request error for an invalid field section.
pub const fn in_fields(error: FieldError) -> RequestError {
    RequestError::Field(error)
}

/// The request error for invalid framing.
pub const fn in_framing(error: FramingError) -> RequestError {
    RequestError::Framing(error)
}

/// All request cases.
pub fn requests() -> Vec<RequestCase> {
    [request_line::cases(), request_fields::cases(), request_framing::cases()]
        .into_iter()
        .flatten()
        .collect()
}

/// A response head and the expected outcome.
pub struct ResponseCase {
    pub name: &'static str,
    pub section: &'static str,
    pub method: Method,
    /// The current time of weir; `None`: weir adds no Date field.
    pub date: Option<&'static [u8]>,
    pub received: Vec<u8>,
    pub expected: ResponseExpected,
}

/// The outcome of parsing and forwarding a response head.
pub enum ResponseExpected {
    /// An HTTP/1.1 client receives this head.
    Sent { head: Vec<u8>, framing: Framing, keep_alive: bool },
    /// The client receives 502.
    Refused(ResponseError),
    /// The head is incomplete.
    Partial,
}

impl ResponseCase {
    /// The same response, to a request with this method.
    pub fn to(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// The same response, received at this time.
    pub fn at(self, date: &'static [u8]) -> Self {
        Self { date: Some(date), ..self }
    }

    /// The same response, but the member's connection cannot be reused.
    pub fn then_closed(mut self) -> Self {
        if let ResponseExpected::Sent { keep_alive, .. } = &mut self.expected {
            *keep_alive = false;
        }
        self
    }
}

/// A response to GET that an HTTP/1.1 client receives with `head`. The member's body has this framing, and the member's
/// connection can be reused.
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

/// A response to GET that is answered with 502.
pub fn bad(
    name: &'static str,
    section: &'static str,
    received: &[u8],
    error: ResponseError,
) -> ResponseCase {
    let expected = ResponseExpected::Refused(error);
    response_case(name, section, received, expected)
}

/// A 200 with these field lines, which is answered with 502.
pub fn bad_fields(
    name: &'static str,
    section: &'static str,
    lines: &[u8],
    error: ResponseError,
) -> ResponseCase {
    bad(name, section, &[b"HTTP/1.1 200 OK\r\n".as_slice(), lines, b"\r\n"].concat(), error)
}

/// A case of an incomplete head.
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

/// All response cases.
pub fn responses() -> Vec<ResponseCase> {
    [response::cases(), response_framing::cases()].into_iter().flatten().collect()
}

/// The received heads of all response cases, valid or not.
pub fn received_responses() -> impl Iterator<Item = Vec<u8>> {
    let flawed = flaws::heads().into_iter().map(|case| case.received);
    responses().into_iter().map(|case| case.received).chain(flawed)
}

/// The received bytes of all body cases.
pub fn received_bodies() -> impl Iterator<Item = Vec<u8>> {
    let flawed = flaws::bodies().into_iter().map(|case| case.received);
    body::cases().into_iter().map(|case| case.received).chain(flawed)
}
