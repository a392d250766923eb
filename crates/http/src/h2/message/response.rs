//! Response heads (RFC 9113 section 8.3.2).

use super::common::take_apart;
use super::{Malformed, ReadError};
use crate::facts::FieldSummary;
use crate::flaws::{Flaw, Flaws};
use crate::h1::{FieldError, ResponseError};
use crate::h2::hpack::{Excess, HeaderBlock};
use crate::message::{FieldId, Framing, Method, ResponseHead, Span, Version};

/// Facts about the request that a response answers.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredRequest<'a> {
    /// The method; GET for an extended CONNECT.
    pub method: Method,
    /// The protocol of an extended CONNECT.
    pub protocol: Option<&'a [u8]>,
}

/// Reads the response from the list in `block`; `end_stream`: the stream ends with this list. The flaws in `taken` are
/// tolerated; [`ResponseHead::flaws`] contains the flaws that were found.
///
/// A 2xx response to an extended CONNECT becomes 101 with the requested protocol, as in HTTP/1.1; the caller must add a
/// Sec-WebSocket-Accept.
pub fn read_response(
    block: &mut HeaderBlock,
    end_stream: bool,
    request: AnsweredRequest<'_>,
    taken: Flaws,
    head: &mut ResponseHead,
) -> Result<(), ReadError<ResponseError>> {
    head.clear();
    head.version = Version::Http2;
    head.keep_alive = true;
    let pseudo = take_apart(block, &mut head.fields)?;
    let others = [pseudo.method, pseudo.scheme, pseudo.authority, pseudo.path, pseudo.protocol];
    if others.iter().any(Option::is_some) {
        return Err(Malformed::PseudoUnknown.into());
    }
    match block.excess() {
        None => {}
        Some(Excess::Size) => return Err(ReadError::Refused(ResponseError::HeadTooLarge)),
        Some(Excess::Lines) => return Err(ReadError::Refused(FieldError::TooMany.into())),
    }
    let status = pseudo.status.ok_or(Malformed::PseudoSet)?;
    head.status = parse_status(status.of(block.text())).ok_or(Malformed::Status)?;
    if head.status >= 600 {
        if !taken.have(Flaw::UnknownStatus) {
            return Err(Malformed::Status.into());
        }
        head.flaws.add(Flaw::UnknownStatus);
    }
    let mut facts = FieldSummary::default();
    for field in head.fields.iter().filter(|field| field.id != FieldId::Other) {
        head.has_date |= field.id == FieldId::Date;
        if let Err(error) = facts.note(field, block.text(), Version::Http2) {
            facts
                .overlook(error, field.value.of(block.text()), taken, &mut head.flaws)
                .map_err(|_| ReadError::Malformed(Malformed::ContentLength))?;
        }
    }
    if let (Some(protocol), 200..=299) = (request.protocol, head.status) {
        settle_tunnel(protocol, block, head);
    } else {
        settle_framing(&facts, request.method, end_stream, head)?;
    }
    facts.chunked = head.framing == Framing::Chunked;
    facts.withhold_hop_by_hop(&mut head.fields, block.text());
    Ok(())
}

/// Three digits from 100, except 101 (section 8.6).
fn parse_status(text: &[u8]) -> Option<u16> {
    let digits: &[u8; 3] = text.try_into().ok()?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let status = digits.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'));
    (status >= 100 && status != 101).then_some(status)
}

fn settle_tunnel(protocol: &[u8], block: &mut HeaderBlock, head: &mut ResponseHead) {
    let start = block.text.len();
    block.text.extend_from_slice(protocol);
    head.upgrade = Some(Span::new(start, block.text.len()));
    head.status = 101;
    head.framing = Framing::None;
    head.keep_alive = false;
}

fn settle_framing(
    facts: &FieldSummary,
    request_method: Method,
    end_stream: bool,
    head: &mut ResponseHead,
) -> Result<(), ReadError<ResponseError>> {
    if head.is_interim() && facts.content_length.is_some_and(|length| length > 0) {
        return Err(ReadError::Refused(ResponseError::InterimWithBody));
    }
    if request_method == Method::Connect && matches!(head.status, 200..=299) {
        return Err(ReadError::Refused(ResponseError::Connect));
    }
    let has_no_body =
        matches!(head.status, 100..=199 | 204 | 304) || request_method == Method::Head;
    head.framing = match (facts.content_length, end_stream) {
        _ if has_no_body => Framing::None,
        (Some(length), true) if length > 0 => return Err(Malformed::ContentLength.into()),
        (Some(length), _) => Framing::Length(length),
        (None, true) => Framing::Length(0),
        (None, false) => Framing::Chunked,
    };
    // No body is not the end of the message.
    head.is_open = !end_stream && head.framing.is_empty() && !head.is_interim();
    // RFC 9110 section 8.6: responses with 1xx and 204 have no Content-Length.
    head.content_length =
        if matches!(head.status, 100..=199 | 204) { None } else { facts.content_length };
    Ok(())
}
