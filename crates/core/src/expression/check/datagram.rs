//! What is called on a datagram.

use super::call::{one_argument, wrong_number};
use super::{Checked, Checker, Typed};
use crate::expression::ExpressionError;
use crate::expression::ast::{Kind, Node, Word};
use crate::expression::datagram::{LENGTH_MAX, OFFSET_MAX, Part};
use crate::expression::names::{DATAGRAM_METHODS, DatagramMethod};
use crate::expression::plan::Text;
use crate::expression::slots::Source;

impl Checker<'_, '_> {
    /// `datagram.name(arguments)`
    pub(super) fn datagram_method(
        &mut self,
        name: &Word,
        arguments: &[Node],
    ) -> Checked<Typed<'static>> {
        let found = DATAGRAM_METHODS.iter().find(|(known, _)| *known == name.text);
        let Some((_, method)) = found else {
            let message = format!("datagram has no method `{}`", name.text);
            return Err(ExpressionError::new(name.range.clone(), message)
                .suggest(&name.text, DATAGRAM_METHODS.iter().map(|(name, _)| *name)));
        };
        let part = match method {
            DatagramMethod::Bytes => {
                let [offset, length] = arguments else {
                    return Err(wrong_number(name, "two arguments", arguments));
                };
                let offset = number(offset, "an offset", 0..=OFFSET_MAX)?;
                let length = number(length, "a length", 1..=LENGTH_MAX)?;
                Part::Bytes { offset: offset as u16, length: length as u16 }
            }
            DatagramMethod::Line => {
                let argument = one_argument(name, arguments)?;
                let line = self.literal(argument, "the name of a line")?;
                Part::Line(line.to_ascii_lowercase().into())
            }
            DatagramMethod::Attribute => {
                let argument = one_argument(name, arguments)?;
                Part::Attribute(number(argument, "the number of an attribute", 1..=255)? as u8)
            }
        };
        Ok(Typed::Text(Text::Slot(self.scope.slots.of(Source::Datagram(part)))))
    }
}

/// A number that is written out and within these bounds.
fn number(node: &Node, what: &str, bounds: std::ops::RangeInclusive<i64>) -> Checked<i64> {
    match node.kind {
        Kind::Integer(value) if bounds.contains(&value) => Ok(value),
        _ => {
            let (least, most) = (bounds.start(), bounds.end());
            let message = format!("{what} is written out here, from {least} to {most}");
            Err(ExpressionError::new(node.range.clone(), message))
        }
    }
}
