//! Serialisation of heads, chunk lines and trailers.
//!
//! Everything is appended to the caller's buffer. A field is forwarded as `Name: value`, with its received
//! spelling; Host, framing and connection fields come from the message alone.

use std::ops::Range;

use crate::edits::{FieldEdits, RequestEdits};
use crate::message::{
    DIGITS_MAX, Field, FieldId, Framing, RequestHead, ResponseHead, Version, put_number,
    write_number,
};

/// The response's statement about the client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// Another request may follow.
    KeepAlive,
    /// The connection ends after this response.
    Close,
    /// The connection becomes a tunnel after this response (101).
    Upgrade,
}

/// The options for forwarding a member's response to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseForward<'a> {
    /// The framing of the body; see [`Framing::toward`]. [`Framing::UntilClose`] needs
    /// [`Persistence::Close`].
    pub framing: Framing,
    /// The client's version.
    pub client_version: Version,
    /// The future of the client's connection.
    pub persistence: Persistence,
    /// The time of reception, as an IMF-fixdate: the Date of a response that has none
    /// (RFC 9110 section 6.6.1). `None`: no Date is added; 1xx need none.
    pub date: Option<&'a [u8]>,
}

/// A response of weir's own.
#[derive(Debug, Clone, Copy)]
pub struct OwnResponse<'a> {
    /// The status: 200 to 599.
    pub status: u16,
    /// Names and values in addition to the framing and connection fields, with Content-Type if the body is not
    /// plain text. They must not contain CR or LF.
    pub fields: &'a [(&'a str, &'a [u8])],
    /// Further fields, and changes to all fields except those of framing and connection.
    pub edits: &'a FieldEdits,
    /// The body; not sent if the status forbids one.
    pub body: &'a [u8],
    /// The client's version.
    pub client_version: Version,
    /// The future of the client's connection.
    pub persistence: Persistence,
    /// The response answers HEAD: the head has the body's length, and the body is omitted.
    pub head_only: bool,
}

/// Size of the start line and of added field lines of a head, in nearly all cases.
const HEAD_GROWTH_SIZE: usize = 256;

/// Writes the head for a member.
///
/// Always HTTP/1.1, in origin-form (or `*`) with the canonical path, with exactly one Host, first, and with one forward
/// less where they are counted. If `max_forwards` is 0, the caller must answer the request. New values in `edits`
/// replace received ones.
pub fn write_request_head(
    head: &RequestHead,
    input: &[u8],
    edits: &RequestEdits,
    out: &mut Vec<u8>,
) {
    let path_length = edits.path().map_or(head.canonical.len(), <[u8]>::len);
    out.reserve(size_estimate(&head.fields) + path_length);
    let received = write_request_line_and_host(head, input, edits, out);
    write_edited(&head.fields, input, received, &edits.fields, out, |field| field.forward);
    if let Some(hops) = head.max_forwards {
        out.extend_from_slice(b"Max-Forwards: ");
        write_number(u64::from(hops.saturating_sub(1)), out);
        out.extend_from_slice(b"\r\n");
    }
    write_framing(head.framing, out);
    match (head.te_trailers, head.upgrade) {
        (false, None) => {}
        (true, None) => out.extend_from_slice(b"TE: trailers\r\nConnection: TE\r\n"),
        (false, Some(_)) => out.extend_from_slice(b"Connection: upgrade\r\n"),
        (true, Some(_)) => out.extend_from_slice(b"TE: trailers\r\nConnection: TE, upgrade\r\n"),
    }
    if let Some(protocols) = head.upgrade {
        write_field(b"Upgrade", protocols.of(input), out);
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes the request line and the Host field. If `input` contains exactly these bytes already,
/// returns their position instead, so that they can be copied together with the fields after them.
#[inline(always)]
fn write_request_line_and_host(
    head: &RequestHead,
    input: &[u8],
    edits: &RequestEdits,
    out: &mut Vec<u8>,
) -> Range<usize> {
    const BEHIND_TARGET: &[u8] = b" HTTP/1.1\r\nHost: ";
    let mut received = 0..0;
    match head.target_span() {
        Some(target)
            if edits.path().is_none()
                && edits.query().is_none()
                && target.start == head.method_text.end + 1 =>
        {
            debug_assert_eq!(input[head.method_text.end as usize], b' ');
            received = head.method_text.start as usize..target.end as usize;
        }
        _ => write_method_and_target(head, input, edits, out),
    }
    let authority = head.authority;
    let host_start = received.end + BEHIND_TARGET.len();
    if edits.authority().is_none()
        && authority.start as usize == host_start
        && input[received.end..].starts_with(BEHIND_TARGET)
        && input[authority.end as usize..].starts_with(b"\r\n")
    {
        received.end = authority.end as usize + b"\r\n".len();
        return received;
    }
    out.extend_from_slice(&input[received]);
    out.extend_from_slice(BEHIND_TARGET);
    out.extend_from_slice(edits.authority().unwrap_or(authority.of(input)));
    out.extend_from_slice(b"\r\n");
    0..0
}

fn write_method_and_target(
    head: &RequestHead,
    input: &[u8],
    edits: &RequestEdits,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(head.method_text.of(input));
    out.push(b' ');
    out.extend_from_slice(edits.path().unwrap_or(head.member_path(input)));
    let query = match edits.query() {
        Some(query) => Some(query).filter(|query| !query.is_empty()),
        None => head.query(input),
    };
    if let Some(query) = query {
        out.push(b'?');
        out.extend_from_slice(query);
    }
}

/// Writes the head for the client, always with an HTTP/1.1 status line: RFC 9110 section 2.5 requires this of servers
/// for any version of the client.
pub fn write_response_head(
    head: &ResponseHead,
    input: &[u8],
    forward: &ResponseForward<'_>,
    edits: &FieldEdits,
    out: &mut Vec<u8>,
) {
    out.reserve(size_estimate(&head.fields));
    let received = write_status_line(head, input, out);
    let has_trailers = forward.framing == Framing::Chunked;
    write_edited(&head.fields, input, received, edits, out, |field| {
        // The client gets no chunks, so no trailer section is announced.
        field.forward && (has_trailers || field.id != FieldId::Trailer)
    });
    if let (false, Some(date)) = (head.has_date, forward.date) {
        write_field(b"Date", date, out);
    }
    match (forward.framing, head.content_length) {
        // The length that a response to GET would have: responses to HEAD, and 304.
        (Framing::None, Some(length)) => write_framing(Framing::Length(length), out),
        (framing, _) => write_framing(framing, out),
    }
    if !head.is_interim() {
        let upgrade = head.upgrade.map(|span| span.of(input));
        write_connection(forward.persistence, forward.client_version, upgrade, out);
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes the status line. If `input` contains exactly these bytes already, returns their position instead.
#[inline(always)]
fn write_status_line(head: &ResponseHead, input: &[u8], out: &mut Vec<u8>) -> Range<usize> {
    if head.version == Version::Http2 {
        // HTTP/2 has no reason phrases.
        write_status(head.status, reason_phrase(head.status).as_bytes(), out);
        return 0..0;
    }
    let start = status_line_start(head.status);
    let reason_end = head.reason.end as usize;
    if head.reason.start as usize == start.len()
        && input.starts_with(&start)
        && input[reason_end..].starts_with(b"\r\n")
    {
        return 0..reason_end + b"\r\n".len();
    }
    write_status(head.status, head.reason.of(input), out);
    0..0
}

/// Writes a response of weir's own with its body.
///
/// The body is plain text unless `fields` contain a Content-Type. This crate has no clock: callers with a clock pass
/// Date. Returns the length of the head.
pub fn write_own_response(response: &OwnResponse<'_>, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    write_status(response.status, reason_phrase(response.status).as_bytes(), out);
    let has_body = !matches!(response.status, 100..=199 | 204 | 304);
    let mut has_type = !has_body || response.body.is_empty();
    for (name, value) in response.fields {
        debug_assert!(
            memchr::memchr2(b'\r', b'\n', value).is_none(),
            "{name} has a line end in it"
        );
        if response.edits.withholds(name.as_bytes()) {
            continue;
        }
        has_type |= name.eq_ignore_ascii_case("content-type");
        write_field(name.as_bytes(), value, out);
    }
    for (name, value) in response.edits.added() {
        has_type |= name.eq_ignore_ascii_case(b"content-type");
        write_field(name, value, out);
    }
    if !has_type {
        write_field(b"Content-Type", b"text/plain; charset=utf-8", out);
    }
    if has_body {
        write_framing(Framing::Length(response.body.len() as u64), out);
    }
    write_connection(response.persistence, response.client_version, None, out);
    out.extend_from_slice(b"\r\n");
    let head_length = out.len() - start;
    if has_body && !response.head_only {
        out.extend_from_slice(response.body);
    }
    head_length
}

/// The longest line of [`write_chunk_header`]: sixteen digits, CR, LF.
pub const CHUNK_HEADER_SIZE_MAX: usize = 18;

/// The last chunk with an empty trailer section.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The line before a chunk of `length` bytes, which is not 0. CR LF follows the data.
pub fn write_chunk_header(length: u64, buffer: &mut [u8; CHUNK_HEADER_SIZE_MAX]) -> &[u8] {
    debug_assert!(length > 0, "a chunk of no bytes would end the body");
    let mut start = CHUNK_HEADER_SIZE_MAX - 2;
    buffer[start..].copy_from_slice(b"\r\n");
    let mut rest = length;
    loop {
        start -= 1;
        buffer[start] = b"0123456789abcdef"[(rest & 15) as usize];
        rest >>= 4;
        if rest == 0 {
            return &buffer[start..];
        }
    }
}

/// The last chunk, with the trailer fields that may be forwarded.
pub fn write_trailers(fields: &[Field], input: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    write_fields(fields, input, 0..0, out, |field| field.forward);
    out.extend_from_slice(b"\r\n");
}

/// Writes the fields selected by `travels`, without those withheld by the edits, and the lines that the edits add;
/// before them, the range `received` of `input`.
#[inline(always)]
fn write_edited(
    fields: &[Field],
    input: &[u8],
    received: Range<usize>,
    edits: &FieldEdits,
    out: &mut Vec<u8>,
    travels: impl Fn(&Field) -> bool,
) {
    if edits.is_empty() {
        return write_fields(fields, input, received, out, travels);
    }
    write_fields(fields, input, received, out, |field| {
        travels(field) && !edits.withholds(field.name.of(input))
    });
    for (name, value) in edits.added() {
        write_field(name, value, out);
    }
}

/// Writes the fields selected by `travels` as `Name: value CR LF`. Adjacent lines that were received in exactly this
/// form are copied in one piece, together with the range `received` of `input` if they follow it.
#[inline(always)]
fn write_fields(
    fields: &[Field],
    input: &[u8],
    received: Range<usize>,
    out: &mut Vec<u8>,
    travels: impl Fn(&Field) -> bool,
) {
    let mut run = received;
    for field in fields.iter().filter(|field| travels(field)) {
        let (start, end) = (field.name.start as usize, field.value.end as usize + b"\r\n".len());
        if field.is_tidy && start == run.end {
            run.end = end;
            continue;
        }
        out.extend_from_slice(&input[run]);
        if field.is_tidy {
            run = start..end;
        } else {
            run = 0..0;
            write_field(field.name.of(input), field.value.of(input), out);
        }
    }
    out.extend_from_slice(&input[run]);
}

fn write_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The approximate size of a written head: its received size.
fn size_estimate(fields: &[Field]) -> usize {
    fields.last().map_or(0, |field| field.value.end as usize) + HEAD_GROWTH_SIZE
}

/// The status line up to the reason phrase.
fn status_line_start(status: u16) -> [u8; 13] {
    debug_assert!((100..=999).contains(&status));
    if status == 200 {
        return *b"HTTP/1.1 200 ";
    }
    let mut line = *b"HTTP/1.1 ddd ";
    line[9] = b'0' + (status / 100) as u8;
    line[10] = b'0' + (status / 10 % 10) as u8;
    line[11] = b'0' + (status % 10) as u8;
    line
}

fn write_status(status: u16, reason: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&status_line_start(status));
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
}

#[inline(always)]
fn write_framing(framing: Framing, out: &mut Vec<u8>) {
    match framing {
        Framing::None | Framing::UntilClose => {}
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Framing::Length(length) => write_content_length(length, out),
    }
}

#[inline(never)]
fn write_content_length(length: u64, out: &mut Vec<u8>) {
    const NAME: &[u8; 16] = b"Content-Length: ";
    const SIZE_MAX: usize = NAME.len() + DIGITS_MAX;
    let mut line = [0; SIZE_MAX + 2];
    line[SIZE_MAX..].copy_from_slice(b"\r\n");
    let start = put_number(length, &mut line[..SIZE_MAX]) - NAME.len();
    line[start..start + NAME.len()].copy_from_slice(NAME);
    out.extend_from_slice(&line[start..]);
}

fn write_connection(
    persistence: Persistence,
    client_version: Version,
    upgrade: Option<&[u8]>,
    out: &mut Vec<u8>,
) {
    let line: &[u8] = match (persistence, upgrade) {
        (Persistence::Upgrade, _) => b"Connection: upgrade\r\n",
        (Persistence::Close, Some(_)) => b"Connection: close, upgrade\r\n",
        (Persistence::Close, None) => b"Connection: close\r\n",
        (Persistence::KeepAlive, Some(_)) => b"Connection: keep-alive, upgrade\r\n",
        // HTTP/1.1 is persistent by default; an HTTP/1.0 client has requested persistence.
        (Persistence::KeepAlive, None) if client_version == Version::Http10 => {
            b"Connection: keep-alive\r\n"
        }
        (Persistence::KeepAlive, None) => b"",
    };
    out.extend_from_slice(line);
    if let Some(protocols) = upgrade {
        write_field(b"Upgrade", protocols, out);
    }
}

/// The reason phrase of a status in RFC 9110 section 15; empty for an unknown status.
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_headers() {
        let mut buffer = [0; CHUNK_HEADER_SIZE_MAX];
        for (length, expected) in [
            (1, "1\r\n"),
            (15, "f\r\n"),
            (16, "10\r\n"),
            (65536, "10000\r\n"),
            (u64::MAX, "ffffffffffffffff\r\n"),
        ] {
            assert_eq!(write_chunk_header(length, &mut buffer), expected.as_bytes());
        }
    }

    #[test]
    fn own_responses() {
        let response = OwnResponse {
            status: 503,
            fields: &[("Retry-After", b"1")],
            edits: &FieldEdits::NONE,
            body: b"no member\n",
            client_version: Version::Http11,
            persistence: Persistence::KeepAlive,
            head_only: false,
        };
        let check = |response: OwnResponse<'_>, expected: &str| {
            let mut out = Vec::new();
            write_own_response(&response, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check(
            response,
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Type: text/plain; charset=utf-8\r\n\
             Content-Length: 10\r\n\r\nno member\n",
        );
        check(
            OwnResponse {
                persistence: Persistence::Close,
                head_only: true,
                fields: &[],
                ..response
            },
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n\
             Content-Length: 10\r\nConnection: close\r\n\r\n",
        );
        check(
            OwnResponse {
                status: 200,
                fields: &[("Content-Type", b"text/html")],
                client_version: Version::Http10,
                ..response
            },
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 10\r\n\
             Connection: keep-alive\r\n\r\nno member\n",
        );
        check(
            OwnResponse { status: 204, fields: &[], ..response },
            "HTTP/1.1 204 No Content\r\n\r\n",
        );
        check(
            OwnResponse {
                status: 400,
                fields: &[],
                body: b"",
                persistence: Persistence::Close,
                ..response
            },
            "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
    }
}
