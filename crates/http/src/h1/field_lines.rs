//! Field lines (RFC 9112 section 5), of heads and of trailer sections.

use super::{FieldError, HeadLimits, Parsed, TrailerError, within_limit};
use crate::chars::{find_control, is_ows, is_token_byte};
use crate::fields::{classify, field, may_be_trailer};
use crate::message::{Field, FieldId, Span};

/// Parses the field lines that start at `start` up to and with the empty line, whose end it gives;
/// `None` when the input ends before.
///
/// `known` is told of every field that is not [`FieldId::Other`], in order. What is decided about a
/// byte depends on the bytes before it alone, so a section cut anywhere fails, if at all, at the
/// same byte and for the same reason as the whole one.
#[inline]
pub(super) fn parse_field_lines<E: From<FieldError>>(
    input: &[u8],
    start: usize,
    headers_max: u16,
    fields: &mut Vec<Field>,
    mut known: impl FnMut(&Field) -> Result<(), E>,
) -> Result<Option<usize>, E> {
    let mut at = start;
    loop {
        match (input.get(at), input.get(at + 1)) {
            (None, _) | (Some(b'\r'), None) => return Ok(None),
            (Some(b'\r'), Some(b'\n')) => return Ok(Some(at + 2)),
            (Some(b'\r'), Some(_)) => return Err(FieldError::BareCr.into()),
            (Some(_), _) => {}
        }
        if fields.len() == usize::from(headers_max) {
            return Err(FieldError::TooMany.into());
        }
        let Some(name) = parse_name(input, at)? else {
            return Ok(None);
        };
        let Some((value, line_end)) = parse_value(input, name.end as usize + 1)? else {
            return Ok(None);
        };
        let parsed = field(name, value, classify(name.of(input)));
        fields.push(parsed);
        if parsed.id != FieldId::Other {
            known(&parsed)?;
        }
        at = line_end;
    }
}

/// The name that starts at `start`; a colon follows it.
#[inline]
fn parse_name(input: &[u8], start: usize) -> Result<Option<Span>, FieldError> {
    let Some(length) = input[start..].iter().position(|byte| !is_token_byte(*byte)) else {
        return Ok(None);
    };
    let end = start + length;
    if input[end] == b':' && length > 0 {
        return Ok(Some(Span::new(start, end)));
    }
    Err(match input[end] {
        b':' => FieldError::NameEmpty,
        byte if is_ows(byte) && length == 0 => FieldError::Folded,
        byte if is_ows(byte) => FieldError::SpaceBeforeColon,
        b'\n' => FieldError::BareLf,
        _ => FieldError::Name,
    })
}

/// The value after the colon, trimmed, and where its line ends.
#[inline]
fn parse_value(input: &[u8], after_colon: usize) -> Result<Option<(Span, usize)>, FieldError> {
    let Some(line_end) = find_control(input, after_colon) else {
        return Ok(None);
    };
    match (input[line_end], input.get(line_end + 1)) {
        (b'\r', Some(b'\n')) => {}
        (b'\r', None) => return Ok(None),
        (b'\r', Some(_)) => return Err(FieldError::BareCr),
        (b'\n', _) => return Err(FieldError::BareLf),
        _ => return Err(FieldError::Value),
    }
    let (mut start, mut end) = (after_colon, line_end);
    while start < end && is_ows(input[start]) {
        start += 1;
    }
    while start < end && is_ows(input[end - 1]) {
        end -= 1;
    }
    Ok(Some((Span::new(start, end), line_end + 2)))
}

/// Parses the trailer section that follows the last chunk (RFC 9112 section 7.1.2), into `fields`,
/// which is cleared first. Fields that may not be trailers do not travel on.
pub fn parse_trailers(
    input: &[u8],
    limits: &HeadLimits,
    fields: &mut Vec<Field>,
) -> Result<Parsed, TrailerError> {
    fields.clear();
    let (section, may_grow) = within_limit(input, *limits);
    match parse_field_lines(section, 0, limits.headers_max, fields, |_| {
        Ok::<(), TrailerError>(())
    })? {
        Some(length) => {
            for field in fields {
                field.forward = field.forward && may_be_trailer(field.name.of(section));
            }
            Ok(Parsed::Complete { length })
        }
        None if may_grow => Ok(Parsed::Partial),
        None => Err(TrailerError::TooLarge),
    }
}
