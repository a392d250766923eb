//! Values read from datagrams.

use std::ops::Range;

use super::arguments::wrong_number;
use super::{CheckResult, Checker, TypedNode};
use crate::expression::ExpressionError;
use crate::expression::ast::{Kind, Node, Word};
use crate::expression::names::{Group, Reader};
use crate::expression::plan::Text;
use crate::expression::slots::Source;

/// Maximum payload of a datagram, and so the maximum useful offset.
const OFFSET_BYTES_MAX: u16 = u16::MAX;
/// Maximum number of datagram bytes in one text, which has twice as many digits.
const READ_BYTES_MAX: u16 = 1024;

/// The error for a group that reads datagrams in a context without datagrams.
pub(super) fn no_datagram(group: Group, range: &Range<usize>) -> ExpressionError {
    let message =
        format!("`{}` is read from datagrams, and there is no datagram here", group.path());
    ExpressionError::new(range.clone(), message).help(
        "use it with virtual servers of `type: udp` only: in `balance: { hash: … }` of a pool, or in a persistence \
         of type hash or learned",
    )
}

impl Checker<'_, '_> {
    /// `datagram.bytes(offset, length)` and similar functions.
    pub(super) fn reader(
        &mut self,
        reader: Reader,
        name: &Word,
        arguments: &[Node],
    ) -> CheckResult<TypedNode<'static>> {
        let [first, second] = arguments else {
            return Err(wrong_number(name, "two arguments", arguments));
        };
        let source = match reader {
            Reader::Bytes => Source::DatagramBytes(
                self.number(first, "an offset", 0, OFFSET_BYTES_MAX)?,
                self.number(second, "a length", 1, READ_BYTES_MAX)?,
            ),
            Reader::VendorAttribute => Source::RadiusVendorAttribute(
                self.number(first, "the number of a vendor", 1, 0x00ff_ffff)?,
                self.number(second, "the number of an attribute", 1, u8::MAX)?,
            ),
        };
        Ok(TypedNode::Text(Text::Slot(self.scope.slots.of(source))))
    }

    /// The slot of `radius.attributes[number]`.
    pub(super) fn radius_attribute(&mut self, key: &Node) -> CheckResult<u32> {
        let number = self.number(key, "the number of an attribute", 1, u8::MAX)?;
        Ok(self.scope.slots.of(Source::RadiusAttribute(number)))
    }

    /// An integer literal.
    fn number<T>(&mut self, node: &Node, what: &str, min: T, max: T) -> CheckResult<T>
    where
        T: TryFrom<i64> + PartialOrd + std::fmt::Display,
    {
        let Kind::Integer(value) = node.kind else {
            // Errors within the argument are reported first.
            self.typed(node)?;
            let message = format!("{what} must be a literal integer");
            return Err(ExpressionError::new(node.range.clone(), message));
        };
        let fitting = T::try_from(value).ok().filter(|value| (&min..=&max).contains(&value));
        fitting.ok_or_else(|| {
            let message = format!("{what} is from {min} to {max}, not {value}");
            ExpressionError::new(node.range.clone(), message)
        })
    }
}
