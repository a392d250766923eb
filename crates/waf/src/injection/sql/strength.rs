//! The strength of a comparison after AND or OR, and the required strength.

use super::token::Class;

/// How a value broke out of its place in the query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// It began with a name or a text, like most values.
    Name,
    /// It began with a number, which is a complete operand.
    Number,
    /// It began with an operator or a clause, so it continues the preceding expression.
    Operator,
    /// It closed the quote that surrounds its place.
    Quote,
}

/// The kind of an operand in a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operand<'a> {
    /// A name; empty for the call of a function that is not in the tables.
    Name(&'a [u8]),
    /// A number, a text, a constant.
    Value,
    /// A call, a variable, a query.
    Computed,
}

/// The strength of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Strength {
    /// A comparison of two names.
    Names,
    /// A comparison of a name with a value.
    NameWithValue,
    /// An injection only if a comment hides the rest, or a list continues.
    IfCommented,
    /// A comparison of two values, or of a name with itself: the result is constant.
    Tautology,
    /// An injection in every context.
    Certain,
}

/// The strength of a comparison of these operands.
pub(super) fn of_comparison(left: Operand<'_>, right: Operand<'_>) -> Strength {
    match (left, right) {
        (Operand::Name(one), Operand::Name(other))
            if !one.is_empty() && one.eq_ignore_ascii_case(other) =>
        {
            Strength::Tautology
        }
        (Operand::Name(_), Operand::Name(_)) => Strength::Names,
        (Operand::Name(_), Operand::Computed) | (Operand::Computed, Operand::Name(_)) => {
            Strength::IfCommented
        }
        (Operand::Name(_), _) | (_, Operand::Name(_)) => Strength::NameWithValue,
        _ => Strength::Tautology,
    }
}

/// Whether a finding is an injection, for the value's origin and the next token.
pub(super) fn suffices(found: Strength, origin: Option<Origin>, next: Class) -> bool {
    let commented = matches!(next, Class::Comment);
    let needed = match origin {
        Some(Origin::Quote) => Strength::Names,
        Some(Origin::Number) => Strength::NameWithValue,
        Some(Origin::Operator) if commented => Strength::Names,
        Some(Origin::Operator) => Strength::Tautology,
        Some(Origin::Name) | None => Strength::Tautology,
    };
    let is_list = found == Strength::IfCommented && next == Class::Comma;
    found >= needed || is_list
}
