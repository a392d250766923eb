//! What requests, responses and trailers have in common (RFC 9113 sections 8.2 and 8.3).

use super::{Malformed, ReadError};
use crate::chars::{find_control, is_ows, is_token_byte, is_word};
use crate::fields::{classify, may_be_trailer};
use crate::h1::{FieldError, TrailerError};
use crate::h2::hpack::{Excess, HeaderBlock, Line};
use crate::message::{Field, FieldId, Span};

/// The pseudo-header fields of a list.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pseudo {
    pub(super) method: Option<Span>,
    pub(super) scheme: Option<Span>,
    pub(super) authority: Option<Span>,
    pub(super) path: Option<Span>,
    pub(super) protocol: Option<Span>,
    pub(super) status: Option<Span>,
}

/// Takes a list apart: pseudo-header fields, which come first, and fields, which are appended to `fields`
/// once each is sound by itself.
pub(super) fn take_apart(
    block: &HeaderBlock,
    fields: &mut Vec<Field>,
) -> Result<Pseudo, Malformed> {
    let text = block.text();
    let mut pseudo = Pseudo::default();
    for line in block.lines() {
        check_value(line, text)?;
        if line.name.of(text).first() != Some(&b':') {
            fields.push(field(line, text)?);
            continue;
        }
        if !fields.is_empty() {
            return Err(Malformed::PseudoOrder);
        }
        let slot = match line.name.of(text) {
            b":method" => &mut pseudo.method,
            b":scheme" => &mut pseudo.scheme,
            b":authority" => &mut pseudo.authority,
            b":path" => &mut pseudo.path,
            b":protocol" => &mut pseudo.protocol,
            b":status" => &mut pseudo.status,
            _ => return Err(Malformed::PseudoUnknown),
        };
        if slot.replace(line.value).is_some() {
            return Err(Malformed::PseudoRepeated);
        }
    }
    Ok(pseudo)
}

/// Section 8.2.1; all control characters but the tab are refused, not only those named there, as RFC
/// 9110 section 5.5 has it and HTTP/1 does.
#[inline]
fn check_value(line: &Line, text: &[u8]) -> Result<(), Malformed> {
    let (start, end) = (line.value.start as usize, line.value.end as usize);
    if find_control(&text[..end], start).is_some() {
        return Err(Malformed::Value);
    }
    if start < end && (is_ows(text[start]) || is_ows(text[end - 1])) {
        return Err(Malformed::ValueSpace);
    }
    Ok(())
}

/// A line that is no pseudo-header field. Section 8.2.2 forbids those that concern a connection.
#[inline]
fn field(line: &Line, text: &[u8]) -> Result<Field, Malformed> {
    let name = line.name.of(text);
    if name.is_empty() || !name.iter().all(|byte| is_name_byte(*byte)) {
        return Err(Malformed::Name);
    }
    let kind = classify(name);
    match kind.id {
        FieldId::Connection
        | FieldId::KeepAlive
        | FieldId::ProxyConnection
        | FieldId::TransferEncoding
        | FieldId::Upgrade => return Err(Malformed::ConnectionField),
        FieldId::Te if !is_word(line.value.of(text), b"trailers") => return Err(Malformed::Te),
        _ => {}
    }
    Ok(Field {
        name: line.name,
        value: line.value,
        id: kind.id,
        forward: kind.forward,
        never_indexed: line.never_indexed,
        // The decoder writes lines as serialisers do.
        is_tidy: true,
    })
}

const fn is_name_byte(byte: u8) -> bool {
    is_token_byte(byte) && !byte.is_ascii_uppercase()
}

/// Reads trailers into `fields`, which is cleared first. Fields that may not be trailers do not travel on.
pub fn read_trailers(
    block: &HeaderBlock,
    fields: &mut Vec<Field>,
) -> Result<(), ReadError<TrailerError>> {
    fields.clear();
    let text = block.text();
    for line in block.lines() {
        if line.name.of(text).first() == Some(&b':') {
            return Err(Malformed::PseudoInTrailers.into());
        }
        check_value(line, text)?;
        let mut field = field(line, text)?;
        field.forward = field.forward && may_be_trailer(line.name.of(text));
        fields.push(field);
    }
    match block.excess() {
        None => Ok(()),
        Some(Excess::Size) => Err(ReadError::Refused(TrailerError::TooLarge)),
        Some(Excess::Lines) => Err(ReadError::Refused(FieldError::TooMany.into())),
    }
}
