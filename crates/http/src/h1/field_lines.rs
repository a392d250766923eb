//! Field lines (RFC 9112 section 5), of heads and of trailer sections.

use super::repair::{Repair, repair};
use super::{FieldError, HeadLimits, Parsed, TrailerError, within_limit};
use crate::chars::{find_control, is_ows, token_length};
use crate::edits::TrailerEdits;
use crate::fields::{classify, may_be_trailer};
use crate::flaws::Flaws;
use crate::message::{Field, Span};

/// Parses the field lines that start at `start` up to and with the empty line, whose end it gives;
/// `None` when the input ends before. What the fields say is for the caller to judge afterwards.
///
/// What is decided about a byte depends on the bytes before it alone, so a section cut anywhere
/// fails, if at all, at the same byte and for the same reason as the whole one.
pub(super) fn parse_field_lines(
    input: &[u8],
    start: usize,
    headers_max: u16,
    fields: &mut Vec<Field>,
) -> Result<Option<usize>, FieldError> {
    let mut at = start;
    loop {
        let name_end = at + token_length(&input[at..]);
        if name_end == at || input.get(name_end) != Some(&b':') {
            return end_of_section(input, at, name_end);
        }
        let Some(line_end) = find_control(input, name_end + 1) else {
            return Ok(None);
        };
        if input[line_end] != b'\r' || input.get(line_end + 1) != Some(&b'\n') {
            return end_of_value(input, line_end);
        }
        if fields.len() == usize::from(headers_max) {
            return Err(FieldError::TooMany);
        }
        fields.push(field(input, at, name_end, line_end));
        at = line_end + 2;
    }
}

/// The field of the line `start..line_end`.
#[inline(always)]
fn field(input: &[u8], start: usize, name_end: usize, line_end: usize) -> Field {
    let kind = classify(&input[start..name_end]);
    // One space before the value and none after it is what nearly all senders write. The value holds
    // no control character but HTAB, so every other byte up to the space is whitespace or the line's end.
    let is_tidy =
        input[name_end + 1] == b' ' && input[name_end + 2] > b' ' && input[line_end - 1] > b' ';
    let value = if is_tidy {
        Span::new(name_end + 2, line_end)
    } else {
        trimmed(input, name_end + 1, line_end)
    };
    Field {
        name: Span::new(start, name_end),
        value,
        id: kind.id,
        forward: kind.forward,
        never_indexed: false,
        is_tidy,
    }
}

/// `start..end` without optional whitespace at its ends.
fn trimmed(input: &[u8], start: usize, end: usize) -> Span {
    let (mut start, mut end) = (start, end);
    while start < end && is_ows(input[start]) {
        start += 1;
    }
    while start < end && is_ows(input[end - 1]) {
        end -= 1;
    }
    Span::new(start, end)
}

/// What follows a line start at `at` that no name with its colon follows: the empty line, the end of
/// the input, or an error. `name_end` is where the name ends.
#[cold]
fn end_of_section(input: &[u8], at: usize, name_end: usize) -> Result<Option<usize>, FieldError> {
    match (input.get(name_end), input.get(name_end + 1)) {
        (None, _) => Ok(None),
        (Some(b'\r'), None) if name_end == at => Ok(None),
        (Some(b'\r'), Some(b'\n')) if name_end == at => Ok(Some(at + 2)),
        (Some(b'\r'), _) if name_end == at => Err(FieldError::BareCr),
        (Some(b':'), _) => Err(FieldError::NameEmpty),
        (Some(b'\n'), _) => Err(FieldError::BareLf),
        (Some(byte), _) if !is_ows(*byte) => Err(FieldError::Name),
        _ if name_end == at => Err(FieldError::Folded),
        _ => Err(FieldError::SpaceBeforeColon),
    }
}

/// The control character at `line_end` is not the CR LF that ends a value.
#[cold]
fn end_of_value(input: &[u8], line_end: usize) -> Result<Option<usize>, FieldError> {
    match (input[line_end], input.get(line_end + 1)) {
        (b'\r', None) => Ok(None),
        (b'\r', _) => Err(FieldError::BareCr),
        (b'\n', _) => Err(FieldError::BareLf),
        _ => Err(FieldError::Value),
    }
}

/// Parses the trailer section that follows the last chunk (RFC 9112 section 7.1.2), into `fields`,
/// which is cleared first. Fields that may not be trailers, or not by `edits`, do not travel on.
pub fn parse_trailers(
    input: &[u8],
    limits: &HeadLimits,
    edits: TrailerEdits<'_>,
    fields: &mut Vec<Field>,
) -> Result<Parsed, TrailerError> {
    fields.clear();
    let (section, may_grow) = within_limit(input, *limits);
    match parse_field_lines(section, 0, limits.headers_max, fields)? {
        Some(length) => {
            for field in fields {
                let name = field.name.of(section);
                field.forward = field.forward && may_be_trailer(name) && edits.let_pass(name);
            }
            Ok(Parsed::Complete { length })
        }
        None if may_grow => Ok(Parsed::Partial),
        None => Err(TrailerError::TooLarge),
    }
}

/// The same for a member of which the flaws `taken` are overlooked; those found are added to `flaws`.
///
/// A section whose lines had to be mended stands mended in `repaired`, and its spans are of that instead of
/// `input`; else `repaired` is empty. The length is in any case that of what was received.
pub fn parse_trailers_of_member(
    input: &[u8],
    limits: &HeadLimits,
    edits: TrailerEdits<'_>,
    (taken, flaws): (Flaws, &mut Flaws),
    (repaired, fields): (&mut Vec<u8>, &mut Vec<Field>),
) -> Result<Parsed, TrailerError> {
    use FieldError::{BareCr, BareLf, Value};
    repaired.clear();
    let error = match parse_trailers(input, limits, edits, fields) {
        Err(error @ TrailerError::Field(BareLf | BareCr | Value)) => error,
        outcome => return outcome,
    };
    match repair(input, limits, taken, flaws, repaired) {
        Repair::Partial => Ok(Parsed::Partial),
        Repair::TooLarge => Err(TrailerError::TooLarge),
        Repair::Refused => Err(error),
        Repair::Done(length) => {
            let limits = HeadLimits { head_size_max: u32::MAX, ..*limits };
            parse_trailers(repaired, &limits, edits, fields)?;
            Ok(Parsed::Complete { length })
        }
    }
}
