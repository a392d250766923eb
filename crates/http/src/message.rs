//! The version-neutral message: a request or response head as ranges of the received bytes.
//!
//! A codec fills a head, which is reused for the next message and keeps its capacity, so that nothing is allocated once it
//! has grown. Spans are valid only with the bytes that the head was parsed from, called `input` here.

use crate::authority;
use crate::flaws::Flaws;

/// Bytes `start..end` of the buffer that the head was parsed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span `start..end` of a buffer that is shorter than 4 GiB, as every head is.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        debug_assert!(start <= end && u32::try_from(end).is_ok());
        Self { start: start as u32, end: end as u32 }
    }
    /// The bytes of `buffer` in this span.
    pub fn of(self, buffer: &[u8]) -> &[u8] {
        &buffer[self.start as usize..self.end as usize]
    }
    /// Whether the span is empty.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
    /// Length in bytes.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

/// A request method (RFC 9110 section 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// GET
    Get,
    /// HEAD
    Head,
    /// POST
    Post,
    /// PUT
    Put,
    /// DELETE
    Delete,
    /// OPTIONS
    Options,
    /// TRACE
    Trace,
    /// PATCH
    Patch,
    /// CONNECT
    Connect,
    /// Any other token.
    Other,
}

impl Method {
    /// Parses a method token.
    pub fn of(text: &[u8]) -> Self {
        match text {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"OPTIONS" => Self::Options,
            b"TRACE" => Self::Trace,
            b"PATCH" => Self::Patch,
            b"CONNECT" => Self::Connect,
            _ => Self::Other,
        }
    }

    /// Whether a repeated request has the same effect as a single one (RFC 9110 section 9.2.2).
    pub fn is_idempotent(self) -> bool {
        matches!(
            self,
            Self::Get | Self::Head | Self::Put | Self::Delete | Self::Options | Self::Trace
        )
    }
}

/// HTTP version of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
    /// HTTP/2
    Http2,
}

/// The framing of a body (RFC 9112 section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    None,
    /// A body of exactly this number of bytes.
    Length(u64),
    /// A body of unknown length, whose end the message marks: by the last chunk in HTTP/1.1, by END_STREAM in HTTP/2. A
    /// trailer section may follow.
    Chunked,
    /// A body that ends with the connection; responses only.
    UntilClose,
}

impl Framing {
    /// The framing for a client of `version` when a response body has this framing. HTTP/1.0 does not support chunks. Later
    /// versions get a body of unknown length in chunks or frames.
    pub fn toward(self, version: Version) -> Self {
        match (self, version) {
            (Self::Chunked, Version::Http10) => Self::UntilClose,
            (Self::UntilClose, Version::Http11 | Version::Http2) => Self::Chunked,
            (same, _) => same,
        }
    }

    /// Whether the body is certainly empty.
    pub fn is_empty(self) -> bool {
        matches!(self, Self::None | Self::Length(0))
    }
}

/// The fields that matter to an intermediary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldId {
    /// Any other field.
    Other,
    /// Host
    Host,
    /// Content-Length
    ContentLength,
    /// Transfer-Encoding
    TransferEncoding,
    /// Connection
    Connection,
    /// Keep-Alive
    KeepAlive,
    /// Proxy-Connection
    ProxyConnection,
    /// TE
    Te,
    /// Trailer
    Trailer,
    /// Upgrade
    Upgrade,
    /// Expect
    Expect,
    /// HTTP2-Settings
    Http2Settings,
    /// Date
    Date,
    /// Max-Forwards
    MaxForwards,
    /// Proxy
    Proxy,
    /// Authorization and Proxy-Authorization
    Credentials,
    /// WWW-Authenticate, Proxy-Authenticate and Persistent-Auth
    Challenge,
}

impl FieldId {
    /// Whether intermediaries forward the field as any other: they only look at it.
    pub fn is_ordinary(self) -> bool {
        matches!(self, Self::Other | Self::Credentials | Self::Challenge)
    }
}

/// One field line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Name as received.
    pub name: Span,
    /// Value without the whitespace around it.
    pub value: Span,
    /// The field's id, if it matters to an intermediary.
    pub id: FieldId,
    /// Whether it is forwarded unchanged. Not set for hop-by-hop fields and those named in Connection, and not for
    /// Host, the framing fields and a valid Max-Forwards, which the serialisers write themselves.
    pub forward: bool,
    /// The field must not enter a table of HPACK (RFC 7541 section 7.1.3).
    pub(crate) never_indexed: bool,
    /// The received bytes, from the start of the name to two bytes after the value, are exactly the line that a serialiser
    /// would write, with its CR LF.
    pub(crate) is_tidy: bool,
}

/// The scheme of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

impl Scheme {
    /// The default port of the scheme.
    pub(crate) fn default_port(self) -> &'static [u8] {
        match self {
            Self::Http => b"80",
            Self::Https => b"443",
        }
    }

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Properties that few requests have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unusual {
    /// The request needs a look before it is forwarded: it has one of the properties below, or
    /// [`max_forwards`](RequestHead::max_forwards).
    pub is_any: bool,
    /// The head may have to be changed for the member: it announces trailers, or offers an upgrade behind a body. This alone
    /// is not [`is_any`](Self::is_any).
    pub may_need_edits: bool,
    /// The client sent an Upgrade field that Connection names, whether it may be offered or not.
    pub has_upgrade: bool,
    /// Its credentials authenticate the connection to the member (NTLM, Negotiate), not only the request.
    pub binds_connection: bool,
    /// Its method asks for the request itself as the response: TRACE, and TRACK of old servers.
    pub reflects: bool,
}

/// A request head.
#[derive(Debug, Clone)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// The method as received.
    pub method_text: Span,
    /// The client's version.
    pub version: Version,
    /// The received target, for logs; requests are served by [`path`](Self::path) and [`query`](Self::query).
    pub target: Span,
    /// The scheme, if the request contains one: in absolute-form, and always in HTTP/2.
    pub scheme: Option<Scheme>,
    /// The authority from the absolute-form target or `:authority`, otherwise from the Host field; empty if the client sent
    /// none of these. Without the colon of an empty port.
    pub authority: Span,
    /// The fields, in received order.
    pub fields: Vec<Field>,
    /// How the body ends; never [`Framing::UntilClose`].
    pub framing: Framing,
    /// Whether the client permits another request on the connection.
    pub keep_alive: bool,
    /// The client waits for 100 (Continue) before it sends the body. Its Expect field is forwarded.
    pub expect_continue: bool,
    /// The protocols of the client's Upgrade field, if they may be offered to a member.
    pub upgrade: Option<Span>,
    /// The client sent an extended CONNECT (RFC 8441), which appears here as GET with Upgrade, as in HTTP/1.1. HTTP/1.1
    /// members require a Sec-WebSocket-Key, which the caller adds; the status for the client is 200 instead of 101.
    pub extended_connect: bool,
    /// The client accepts a trailer section in the response.
    pub te_trailers: bool,
    /// A Trailer field announces trailers.
    pub announces_trailers: bool,
    /// What few requests have.
    pub unusual: Unusual,
    /// The value of Max-Forwards for TRACE or OPTIONS: the number of further intermediaries, this one included. With 0, weir
    /// must respond itself. A number that does not fit counts as the maximum. `None` with other methods.
    pub max_forwards: Option<u32>,
    pub(crate) path: Part,
    /// The text after the `?` of the target; `Some` and empty for a `?` at the end.
    pub(crate) query: Option<Part>,
    /// The path for decisions, if it differs from the member's path; in `canonical`.
    pub(crate) decided_path: Option<Span>,
    /// Paths and queries that differ from the received bytes.
    pub(crate) canonical: Vec<u8>,
}

/// The position of a part of the target that the member gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// In the received bytes.
    Received(Span),
    /// In `canonical`.
    Made(Span),
}

impl Part {
    /// The span, and the bytes that it refers to.
    fn place<'a>(self, head: &'a RequestHead, input: &'a [u8]) -> (Span, &'a [u8]) {
        match self {
            Self::Received(span) => (span, input),
            Self::Made(span) => (span, &head.canonical),
        }
    }
}

impl RequestHead {
    /// An empty head, to parse into.
    pub fn new() -> Self {
        Self {
            method: Method::Other,
            method_text: Span::default(),
            version: Version::Http11,
            target: Span::default(),
            scheme: None,
            authority: Span::default(),
            fields: Vec::new(),
            framing: Framing::None,
            keep_alive: false,
            expect_continue: false,
            upgrade: None,
            extended_connect: false,
            te_trailers: false,
            announces_trailers: false,
            unusual: Unusual::default(),
            max_forwards: None,
            path: Part::Received(Span::default()),
            query: None,
            decided_path: None,
            canonical: Vec::new(),
        }
    }

    /// Empties the head, and keeps its capacity.
    pub fn clear(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        let mut canonical = std::mem::take(&mut self.canonical);
        fields.clear();
        canonical.clear();
        *self = Self { fields, canonical, ..Self::new() };
    }

    /// Lets trailers follow a request on a stream that announces no body and goes on behind its head. Such a request has the
    /// framing of a body of unknown length, because no other framing has room for trailers.
    pub fn expect_trailers(&mut self) {
        if self.framing == Framing::Length(0) && !self.extended_connect {
            self.framing = Framing::Chunked;
            let announcements = self.fields.iter_mut().filter(|it| it.id == FieldId::Trailer);
            announcements.for_each(|field| field.forward = true);
        }
    }

    /// Copies `other`, and reuses this head's capacity.
    pub fn copy_from(&mut self, other: &Self) {
        let mut fields = std::mem::take(&mut self.fields);
        let mut canonical = std::mem::take(&mut self.canonical);
        fields.clear();
        fields.extend_from_slice(&other.fields);
        canonical.clear();
        canonical.extend_from_slice(&other.canonical);
        *self = Self {
            fields,
            canonical,
            method: other.method,
            method_text: other.method_text,
            version: other.version,
            target: other.target,
            scheme: other.scheme,
            authority: other.authority,
            framing: other.framing,
            keep_alive: other.keep_alive,
            expect_continue: other.expect_continue,
            upgrade: other.upgrade,
            extended_connect: other.extended_connect,
            te_trailers: other.te_trailers,
            announces_trailers: other.announces_trailers,
            unusual: other.unusual,
            max_forwards: other.max_forwards,
            path: other.path,
            query: other.query,
            decided_path: other.decided_path,
        };
    }

    /// The path for decisions: one spelling for all paths that members would treat as the same; see
    /// [`path`](crate::path). `*` for a request about the server itself (`OPTIONS *`).
    pub fn path<'a>(&'a self, input: &'a [u8]) -> &'a [u8] {
        match self.decided_path {
            Some(span) => span.of(&self.canonical),
            None => self.member_path(input),
        }
    }

    /// The path for the member.
    pub fn member_path<'a>(&'a self, input: &'a [u8]) -> &'a [u8] {
        let (span, text) = self.path.place(self, input);
        span.of(text)
    }

    /// The path as received; `/` if an absolute-form target has no path.
    pub fn received_path<'a>(&self, input: &'a [u8]) -> &'a [u8] {
        let target = self.target.of(input);
        let target = memchr::memchr(b'?', target).map_or(target, |end| &target[..end]);
        if target.first().is_none_or(|byte| matches!(byte, b'/' | b'*')) {
            return target;
        }
        let authority = memchr::memmem::find(target, b"://").map_or(0, |at| at + 3);
        match memchr::memchr(b'/', &target[authority..]) {
            Some(start) => &target[authority + start..],
            None if self.member_path(input) == b"*" => b"*",
            None => b"/",
        }
    }

    /// The query, without its question mark.
    pub fn query<'a>(&'a self, input: &'a [u8]) -> Option<&'a [u8]> {
        self.query_place(input).map(|(span, text)| span.of(text))
    }

    /// The span of the query, and the bytes that it refers to: `input`, unless raw bytes of the query were encoded.
    pub fn query_place<'a>(&'a self, input: &'a [u8]) -> Option<(Span, &'a [u8])> {
        self.query.map(|query| query.place(self, input))
    }

    /// The span of the member's path, question mark and query in the received bytes, if they are unchanged.
    pub fn target_span(&self) -> Option<Span> {
        match (self.path, self.query) {
            (Part::Received(path), None) => Some(path),
            (Part::Received(path), Some(Part::Received(query))) if query.start == path.end + 1 => {
                Some(Span { start: path.start, end: query.end })
            }
            _ => None,
        }
    }

    /// Host and port as received; empty if absent.
    pub fn authority<'a>(&self, input: &'a [u8]) -> &'a [u8] {
        self.authority.of(input)
    }

    /// The requested host, without port.
    pub fn host<'a>(&self, input: &'a [u8]) -> &'a [u8] {
        authority::host(self.authority(input))
    }
}

impl Default for RequestHead {
    fn default() -> Self {
        Self::new()
    }
}

/// A response head.
#[derive(Debug, Clone)]
pub struct ResponseHead {
    /// The status: 100 to 599; up to 999 if [an unknown status](crate::flaws::Flaw::UnknownStatus) is tolerated.
    pub status: u16,
    /// The reason phrase, possibly empty.
    pub reason: Span,
    /// The member's version.
    pub version: Version,
    /// The fields, in received order.
    pub fields: Vec<Field>,
    /// How the body ends.
    pub framing: Framing,
    /// The value of Content-Length. With [`Framing::None`] it is the length of the body that a GET would have got
    /// (answers to HEAD, and 304).
    pub content_length: Option<u64>,
    /// Whether the member's connection can carry another request once this response has ended.
    pub keep_alive: bool,
    /// The member's timeout for idle connections, if it announces one.
    pub keep_alive_timeout_s: Option<u32>,
    /// The new protocol (101), or the required ones (426).
    pub upgrade: Option<Span>,
    /// Whether a Date field is forwarded.
    pub has_date: bool,
    /// Whether the stream goes on behind this head, though the message has no body: trailers may follow (HTTP/2).
    pub is_open: bool,
    /// Tolerated flaws.
    pub flaws: Flaws,
    /// It challenges the client to authenticate the connection (NTLM, Negotiate), or says that it is authenticated. Only
    /// in HTTP/1.
    pub binds_connection: bool,
}

impl ResponseHead {
    /// An empty head, to parse into.
    pub fn new() -> Self {
        Self {
            status: 0,
            reason: Span::default(),
            version: Version::Http11,
            fields: Vec::new(),
            framing: Framing::None,
            content_length: None,
            keep_alive: false,
            keep_alive_timeout_s: None,
            upgrade: None,
            has_date: false,
            is_open: false,
            flaws: Flaws::NONE,
            binds_connection: false,
        }
    }

    /// Empties the head, and keeps its capacity.
    pub fn clear(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        *self = Self { fields, ..Self::new() };
    }

    /// Whether another response to the same request follows: 1xx except 101.
    pub fn is_interim(&self) -> bool {
        matches!(self.status, 100 | 102..=199)
    }
}

impl Default for ResponseHead {
    fn default() -> Self {
        Self::new()
    }
}

/// Maximum number of digits of a number.
pub(crate) const DIGITS_MAX: usize = 20;

/// Writes a number in decimal digits to the end of `place`, which must hold [`DIGITS_MAX`] digits. Returns the start of the
/// digits.
#[inline(always)]
pub(crate) fn put_number(number: u64, place: &mut [u8]) -> usize {
    let mut start = place.len();
    let mut rest = number;
    while rest >= 10 {
        start -= 2;
        place[start..start + 2].copy_from_slice(&DIGIT_PAIRS[(rest % 100) as usize]);
        rest /= 100;
    }
    if rest > 0 || start == place.len() {
        start -= 1;
        place[start] = b'0' + rest as u8;
    }
    start
}

/// The numbers below 100, in two digits each.
static DIGIT_PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < pairs.len() {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Appends a number in decimal digits.
pub(crate) fn write_number(number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; DIGITS_MAX];
    let start = put_number(number, &mut digits);
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_standard_library_writes_them() {
        let powers = (0..20).map(|exponent| 10_u64.pow(exponent));
        let around = powers.flat_map(|power| [power - 1, power, power + 1, power.wrapping_mul(7)]);
        for number in (0..2000).chain(around).chain([u64::MAX]) {
            let mut out = b">".to_vec();
            write_number(number, &mut out);
            assert_eq!(out, format!(">{number}").as_bytes());
        }
    }
}
