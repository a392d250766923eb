//! Common parts of requests, responses and trailers (RFC 9113 sections 8.2 and 8.3).

use super::{Malformed, ReadError};
use crate::chars::is_word;
use crate::edits::TrailerEdits;
use crate::fields::may_be_trailer;
use crate::h1::{FieldError, TrailerError};
use crate::h2::hpack::{Excess, HeaderBlock, Line};
use crate::h2::line::{Name, Value};
use crate::message::{Field, FieldId, Span};

/// The pseudo-header fields of a list, and other facts about it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pseudo {
    pub(super) method: Option<Span>,
    pub(super) scheme: Option<Span>,
    pub(super) authority: Option<Span>,
    pub(super) path: Option<Span>,
    pub(super) protocol: Option<Span>,
    pub(super) status: Option<Span>,
    /// Number of Cookie lines.
    pub(super) cookies: usize,
}

/// Divides a list into pseudo-header fields, which come first, and fields, which are validated individually and
/// appended to `fields`.
pub(super) fn take_apart(
    block: &HeaderBlock,
    fields: &mut Vec<Field>,
) -> Result<Pseudo, Malformed> {
    let text = block.text();
    let mut pseudo = Pseudo::default();
    for line in block.lines() {
        check_value(line)?;
        let slot = match line.name_is {
            Name::Method => &mut pseudo.method,
            Name::Scheme => &mut pseudo.scheme,
            Name::Authority => &mut pseudo.authority,
            Name::Path => &mut pseudo.path,
            Name::Protocol => &mut pseudo.protocol,
            Name::Status => &mut pseudo.status,
            Name::UnknownPseudo => &mut None,
            _ => {
                pseudo.cookies += usize::from(line.name_is == Name::Cookie);
                fields.push(field(line, text)?);
                continue;
            }
        };
        if !fields.is_empty() {
            return Err(Malformed::PseudoOrder);
        }
        if line.name_is == Name::UnknownPseudo {
            return Err(Malformed::PseudoUnknown);
        }
        if slot.replace(line.value).is_some() {
            return Err(Malformed::PseudoRepeated);
        }
    }
    Ok(pseudo)
}

fn check_value(line: &Line) -> Result<(), Malformed> {
    match line.value_is {
        Value::Sound => Ok(()),
        Value::Control => Err(Malformed::Value),
        Value::Space => Err(Malformed::ValueSpace),
    }
}

/// Checks a line that is not a pseudo-header field. Section 8.2.2 forbids connection-specific fields.
#[inline]
fn field(line: &Line, text: &[u8]) -> Result<Field, Malformed> {
    let (id, forward) = match line.name_is {
        Name::Field(kind) => (kind.id, kind.forward),
        Name::Cookie => (FieldId::Other, true),
        Name::Te if is_word(line.value.of(text), b"trailers") => (FieldId::Te, false),
        Name::Te => return Err(Malformed::Te),
        Name::Connection => return Err(Malformed::ConnectionField),
        _ => return Err(Malformed::Name),
    };
    Ok(Field {
        name: line.name,
        value: line.value,
        id,
        forward,
        never_indexed: line.never_indexed,
        // The decoder writes lines in the serialisers' format.
        is_tidy: true,
    })
}

/// Reads trailers into `fields`, which is cleared first. Fields that are forbidden in trailers, or that `edits` removes, are
/// not forwarded.
pub fn read_trailers(
    block: &HeaderBlock,
    edits: TrailerEdits<'_>,
    fields: &mut Vec<Field>,
) -> Result<(), ReadError<TrailerError>> {
    fields.clear();
    let text = block.text();
    for line in block.lines() {
        if line.name_is.is_pseudo() {
            return Err(Malformed::PseudoInTrailers.into());
        }
        check_value(line)?;
        let mut field = field(line, text)?;
        let name = line.name.of(text);
        field.forward = field.forward && may_be_trailer(name) && edits.let_pass(name);
        fields.push(field);
    }
    match block.excess() {
        None => Ok(()),
        Some(Excess::Size) => Err(ReadError::Refused(TrailerError::TooLarge)),
        Some(Excess::Lines) => Err(ReadError::Refused(FieldError::TooMany.into())),
    }
}
