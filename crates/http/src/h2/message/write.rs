//! Serialisation of heads and trailers: the lines of the HTTP/1 serialisers become fields of a header block, without
//! connection-specific fields.

use crate::edits::{FieldEdits, RequestEdits};
use crate::fields::classify;
use crate::h1::{OwnResponse, ResponseForward};
use crate::h2::message::LineSink;
use crate::message::{Field, FieldId, Framing, RequestHead, ResponseHead, Scheme, write_number};

/// The parameters for forwarding a request to a member.
#[derive(Debug, Clone, Copy)]
pub struct RequestForward<'a> {
    /// The scheme of the member's connection.
    pub scheme: Scheme,
    /// The protocol for an extended CONNECT: one of those in [`RequestHead::upgrade`]. The member must have announced
    /// support ([`PeerSettings::extended_connect`](crate::h2::PeerSettings::extended_connect)).
    pub protocol: Option<&'a [u8]>,
}

/// Writes the head for a member; see [`h1::write_request_head`](crate::h1::write_request_head).
pub fn write_request(
    head: &RequestHead,
    input: &[u8],
    edits: &RequestEdits,
    forward: &RequestForward<'_>,
    lines: &mut impl LineSink,
) {
    match forward.protocol {
        Some(protocol) => {
            lines.field(b":method", b"CONNECT");
            lines.field(b":protocol", protocol);
        }
        None => lines.field(b":method", head.method_text.of(input)),
    }
    lines.field(b":scheme", forward.scheme.name().as_bytes());
    let authority = edits.authority().unwrap_or(head.authority(input));
    if !authority.is_empty() {
        lines.field(b":authority", authority);
    }
    let path = edits.path().unwrap_or(head.member_path(input));
    let query = match edits.query() {
        Some(query) => Some(query).filter(|query| !query.is_empty()),
        None => head.query(input),
    };
    match query {
        None => lines.field(b":path", path),
        Some(query) => lines.field_with(b":path", |out| {
            out.extend_from_slice(path);
            out.push(b'?');
            out.extend_from_slice(query);
        }),
    }
    let is_tunnel = forward.protocol.is_some();
    write_edited(&head.fields, input, &edits.fields, lines, |field| {
        // RFC 8441 section 5: an extended CONNECT has no key.
        let is_key = is_tunnel && field.name.of(input).eq_ignore_ascii_case(b"sec-websocket-key");
        field.forward && !is_key
    });
    if let Some(hops) = head.max_forwards {
        write_numbered(b"max-forwards", u64::from(hops.saturating_sub(1)), lines);
    }
    // The data after an extended CONNECT belongs to the tunnel; there is no body.
    if let (Framing::Length(length), false) = (head.framing, is_tunnel) {
        write_numbered(b"content-length", length, lines);
    }
    if head.te_trailers {
        lines.field(b"te", b"trailers");
    }
}

/// Writes the head for the client; see [`h1::write_response_head`](crate::h1::write_response_head). 101 becomes 200.
pub fn write_response(
    head: &ResponseHead,
    input: &[u8],
    forward: &ResponseForward<'_>,
    edits: &FieldEdits,
    lines: &mut impl LineSink,
) {
    let is_tunnel = head.status == 101;
    write_status(if is_tunnel { 200 } else { head.status }, lines);
    let has_trailers = forward.framing == Framing::Chunked;
    write_edited(&head.fields, input, edits, lines, |field| {
        let is_accept =
            is_tunnel && field.name.of(input).eq_ignore_ascii_case(b"sec-websocket-accept");
        field.forward && !is_accept && (has_trailers || field.id != FieldId::Trailer)
    });
    if let (false, Some(date)) = (head.has_date, forward.date) {
        lines.field(b"date", date);
    }
    match (forward.framing, head.content_length) {
        // The length of the body that a GET would have got: for responses to HEAD, and for 304.
        (Framing::Length(length), _) | (Framing::None, Some(length)) if !is_tunnel => {
            write_numbered(b"content-length", length, lines);
        }
        // No body, but trailers may follow.
        (Framing::Chunked, Some(length)) if head.is_open => {
            write_numbered(b"content-length", length, lines);
        }
        _ => {}
    }
}

/// Whether a body follows the head of a response that weir makes. If not, the head ends the stream.
pub fn own_response_has_body(response: &OwnResponse<'_>) -> bool {
    may_have_body(response.status) && !response.head_only && !response.body.is_empty()
}

fn may_have_body(status: u16) -> bool {
    !matches!(status, 100..=199 | 204 | 304)
}

/// Writes the head of a response that weir makes.
pub fn write_own_response(response: &OwnResponse<'_>, lines: &mut impl LineSink) {
    write_status(response.status, lines);
    let may_have_body = may_have_body(response.status);
    let mut has_type = !may_have_body || response.body.is_empty();
    for (name, value) in response.fields {
        if response.edits.withholds(name.as_bytes()) || !may_be_sent(name.as_bytes()) {
            continue;
        }
        has_type |= name.eq_ignore_ascii_case("content-type");
        lines.field_of_any_case(name.as_bytes(), value, false);
    }
    for (name, value) in response.edits.added().filter(|(name, _)| may_be_sent(name)) {
        has_type |= name.eq_ignore_ascii_case(b"content-type");
        lines.field_of_any_case(name, value, false);
    }
    if !has_type {
        lines.field(b"content-type", b"text/plain; charset=utf-8");
    }
    if may_have_body {
        write_numbered(b"content-length", response.body.len() as u64, lines);
    }
}

/// Writes the trailer fields that are allowed. Returns their number: without any, an empty DATA frame can end the
/// stream.
pub fn write_trailers(fields: &[Field], input: &[u8], lines: &mut impl LineSink) -> usize {
    let travelling = fields.iter().filter(|field| field.forward);
    travelling.map(|field| write_field(field, input, lines)).count()
}

fn write_edited(
    fields: &[Field],
    input: &[u8],
    edits: &FieldEdits,
    lines: &mut impl LineSink,
    travels: impl Fn(&Field) -> bool,
) {
    for field in fields.iter().filter(|field| travels(field)) {
        if !edits.withholds(field.name.of(input)) {
            write_field(field, input, lines);
        }
    }
    for (name, value) in edits.added().filter(|(name, _)| may_be_sent(name)) {
        lines.field_of_any_case(name, value, false);
    }
}

fn write_field(field: &Field, input: &[u8], lines: &mut impl LineSink) {
    lines.field_of_any_case(field.name.of(input), field.value.of(input), field.never_indexed);
}

/// Whether an added line may be sent. For a peer, a message with a connection-specific field is malformed, and the message
/// has its own framing fields.
fn may_be_sent(name: &[u8]) -> bool {
    !name.is_empty() && classify(name).forward
}

fn write_status(status: u16, lines: &mut impl LineSink) {
    write_numbered(b":status", u64::from(status), lines);
}

fn write_numbered(name: &[u8], number: u64, lines: &mut impl LineSink) {
    lines.field_with(name, |out| write_number(number, out));
}
