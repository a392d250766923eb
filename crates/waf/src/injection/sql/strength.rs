//! How much a comparison after AND or OR says, and how much is needed.

use super::token::Class;

/// How a value left the place in the query that it was put into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// It began with a name or a text, as most values do.
    Name,
    /// It began with a number, which is complete by itself.
    Number,
    /// It began with an operator or a clause, so it goes on from what stands before it.
    Operator,
    /// It closed the quote it was put into.
    Quote,
}

/// What an operand is, as far as comparisons go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operand<'a> {
    /// A name, or the call of a function that is not in the tables: an empty name.
    Name(&'a [u8]),
    /// A number, a text, a constant.
    Value,
    /// A call, a variable, a query.
    Computed,
}

/// How much was found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Strength {
    /// Two names are compared.
    Names,
    /// A name is compared with a value.
    NameWithValue,
    /// An injection if a comment hides the rest, or a list goes on.
    IfCommented,
    /// Two values are compared, or a name with itself: the result is known before the query runs.
    Tautology,
    /// An injection wherever it stands.
    Certain,
}

/// What comparing these says.
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

/// Whether what was found is an injection, given how the value began, and which token follows.
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
