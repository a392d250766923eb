//! Arithmetic.

use super::{CheckResult, Checker, TypedNode};
use crate::expression::ExpressionError;
use crate::expression::ast::{Node, Operator};
use crate::expression::error;
use crate::expression::plan::Number;

/// The negation of a value.
pub(super) fn negative(checker: &mut Checker<'_, '_>, of: &Node) -> CheckResult<Number> {
    operand(checker, Operator::Subtract, of).map(Number::negative)
}

/// The result of an operator on two integers.
pub(super) fn arithmetic(
    checker: &mut Checker<'_, '_>,
    operator: Operator,
    [left, right]: &[Node; 2],
) -> CheckResult<Number> {
    let left = operand(checker, operator, left);
    let (left, right) = error::both(left, operand(checker, operator, right))?;
    Ok(Number::arithmetic(operator, left, right))
}

/// An integer operand.
fn operand(checker: &mut Checker<'_, '_>, operator: Operator, node: &Node) -> CheckResult<Number> {
    let found = match checker.typed(node)? {
        TypedNode::Integer(number) => return Ok(number),
        other => other,
    };
    let (symbol, found_kind) = (operator.symbol(), found.describe());
    let message = format!("`{symbol}` takes integers, and this is {found_kind}");
    let error = ExpressionError::new(node.range.clone(), message);
    Err(match (found, operator) {
        (TypedNode::Text(_), Operator::Add) => error.help(
            "`int(…)` makes an integer of text; a template joins texts: `${request.host}${request.path}`",
        ),
        (TypedNode::Text(_), _) => error.help("`int(…)` makes an integer of text"),
        _ => error,
    })
}
