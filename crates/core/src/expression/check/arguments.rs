//! The number of arguments of calls.

use super::CheckResult;
use crate::expression::ExpressionError;
use crate::expression::ast::{Node, Word};

pub(super) fn one_argument<'n>(name: &Word, arguments: &'n [Node]) -> CheckResult<&'n Node> {
    match arguments {
        [argument] => Ok(argument),
        _ => Err(wrong_number(name, "one argument", arguments)),
    }
}

pub(super) fn no_argument(name: &Word, arguments: &[Node]) -> CheckResult<()> {
    match arguments {
        [] => Ok(()),
        _ => Err(wrong_number(name, "no argument", arguments)),
    }
}

pub(super) fn wrong_number(name: &Word, wanted: &str, arguments: &[Node]) -> ExpressionError {
    let message = format!("`{}` takes {wanted}, not {}", name.text, arguments.len());
    ExpressionError::new(name.range.clone(), message)
}
