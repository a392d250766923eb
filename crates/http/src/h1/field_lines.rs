//! Field lines (RFC 9112 section 5), of heads and of trailer sections.

use super::repair::{Repair, repair};
use super::{FieldError, HeadLimits, ParseProgress, TrailerError, within_limit};
use crate::chars::{behind_plain_line, find_control, is_ows, token_length, trim_ows};
use crate::edits::TrailerEdits;
use crate::fields::{Kind, classify, may_be_trailer};
use crate::flaws::Flaws;
use crate::message::{Field, Span};
use crate::usual_names::usual_name;

/// The line that ends a section.
const EMPTY_LINE: &[u8] = b"\r\n";

/// Parses the field lines from `start` up to and including the empty line, and returns its end; `None` if the input
/// ends before. The caller judges the meaning of the fields afterwards.
///
/// The decision about a byte depends only on earlier bytes, so a truncated section fails, if at all, at the same byte
/// and for the same reason as the whole one.
pub(super) fn parse_field_lines(
    input: &[u8],
    start: usize,
    headers_max: u16,
    fields: &mut Vec<Field>,
) -> Result<Option<usize>, FieldError> {
    let mut line = &input[start..];
    loop {
        let (name_length, kind) = match usual_name(line) {
            Some(found) => found,
            None if line.starts_with(EMPTY_LINE) => {
                return Ok(Some(input.len() - line.len() + EMPTY_LINE.len()));
            }
            None => match unusual_name(line)? {
                Some(found) => found,
                None => return Ok(None),
            },
        };
        let behind_colon = &line[name_length + b":".len()..];
        let next = match behind_plain_line(behind_colon) {
            Some(next) => next,
            None => match behind_unusual_line(behind_colon)? {
                Some(next) => next,
                None => return Ok(None),
            },
        };
        if fields.len() == usize::from(headers_max) {
            return Err(FieldError::TooMany);
        }
        let start = input.len() - line.len();
        let value_length = behind_colon.len() - next.len() - b"\r\n".len();
        fields.push(field(start, (name_length, kind), behind_colon, value_length));
        line = next;
    }
}

/// The field of the line that starts at `start`. The value still has the whitespace around it.
#[inline(always)]
fn field(
    start: usize,
    (name_length, kind): (usize, Kind),
    behind_colon: &[u8],
    value_length: usize,
) -> Field {
    let value_start = start + name_length + b":".len();
    // Nearly all senders write one space before the value and none after it. The value has no control character except
    // HTAB, so every other byte up to the space is whitespace or the end of the line.
    let is_tidy = matches!(behind_colon, [b' ', first, ..] if *first > b' ')
        && behind_colon.get(value_length.wrapping_sub(1)).is_some_and(|last| *last > b' ');
    Field {
        name: Span::new(start, start + name_length),
        value: if is_tidy {
            Span::new(value_start + 1, value_start + value_length)
        } else {
            trimmed(&behind_colon[..value_length], value_start)
        },
        id: kind.id,
        forward: kind.forward,
        never_indexed: false,
        is_tidy,
    }
}

/// `value`, which starts at `start`, without optional whitespace at its ends.
#[cold]
#[inline(never)]
fn trimmed(value: &[u8], start: usize) -> Span {
    let indent = value.iter().take_while(|byte| is_ows(**byte)).count();
    let start = start + indent;
    Span::new(start, start + trim_ows(&value[indent..]).len())
}

/// The length and the kind of the name before the colon of `line`, which is not the empty line; `None` where the
/// input ends earlier.
#[inline(never)]
fn unusual_name(line: &[u8]) -> Result<Option<(usize, Kind)>, FieldError> {
    let (name, behind) = line.split_at(token_length(line));
    match behind {
        [b':', ..] if !name.is_empty() => Ok(Some((name.len(), classify(name)))),
        [b':', ..] => Err(FieldError::NameEmpty),
        [] => Ok(None),
        [b'\r'] if name.is_empty() => Ok(None),
        [b'\r', ..] if name.is_empty() => Err(FieldError::BareCr),
        [b'\n', ..] => Err(FieldError::BareLf),
        [byte, ..] if !is_ows(*byte) => Err(FieldError::Name),
        _ if name.is_empty() => Err(FieldError::Folded),
        _ => Err(FieldError::SpaceBeforeColon),
    }
}

/// The bytes after the CR LF that ends `line`; `None` if it has not arrived yet.
#[cold]
fn behind_unusual_line(line: &[u8]) -> Result<Option<&[u8]>, FieldError> {
    let Some(length) = find_control(line, 0) else {
        return Ok(None);
    };
    match &line[length..] {
        [b'\r', b'\n', next @ ..] => Ok(Some(next)),
        [b'\r'] => Ok(None),
        [b'\r', ..] => Err(FieldError::BareCr),
        [b'\n', ..] => Err(FieldError::BareLf),
        _ => Err(FieldError::Value),
    }
}

/// Parses the trailer section that follows the last chunk (RFC 9112 section 7.1.2), into `fields`,
/// which is cleared first. Fields that are not allowed in trailers, or not by `edits`, are not forwarded.
pub fn parse_trailers(
    input: &[u8],
    limits: &HeadLimits,
    edits: TrailerEdits<'_>,
    fields: &mut Vec<Field>,
) -> Result<ParseProgress, TrailerError> {
    fields.clear();
    let (section, may_grow) = within_limit(input, *limits);
    match parse_field_lines(section, 0, limits.headers_max, fields)? {
        Some(length) => {
            for field in fields {
                let name = field.name.of(section);
                field.forward = field.forward && may_be_trailer(name) && edits.let_pass(name);
            }
            Ok(ParseProgress::Complete { length })
        }
        None if may_grow => Ok(ParseProgress::Partial),
        None => Err(TrailerError::TooLarge),
    }
}

/// As above, for a member whose flaws in `taken` are tolerated; found flaws are added to `flaws`.
///
/// A section with repaired lines is in `repaired`, and its spans refer to that instead of `input`; otherwise `repaired`
/// is empty. The length is always that of the received bytes.
pub fn parse_trailers_of_member(
    input: &[u8],
    limits: &HeadLimits,
    edits: TrailerEdits<'_>,
    (taken, flaws): (Flaws, &mut Flaws),
    (repaired, fields): (&mut Vec<u8>, &mut Vec<Field>),
) -> Result<ParseProgress, TrailerError> {
    use FieldError::{BareCr, BareLf, Value};
    repaired.clear();
    let error = match parse_trailers(input, limits, edits, fields) {
        Err(error @ TrailerError::Field(BareLf | BareCr | Value)) => error,
        outcome => return outcome,
    };
    match repair(input, limits, taken, flaws, repaired) {
        Repair::Partial => Ok(ParseProgress::Partial),
        Repair::TooLarge => Err(TrailerError::TooLarge),
        Repair::Refused => Err(error),
        Repair::Done(length) => {
            let limits = HeadLimits { head_size_max: u32::MAX, ..*limits };
            parse_trailers(repaired, &limits, edits, fields)?;
            Ok(ParseProgress::Complete { length })
        }
    }
}
