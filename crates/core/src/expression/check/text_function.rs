//! Functions from text to text, with literal arguments.

use super::CheckResult;
use super::arguments::{no_argument, one_argument, wrong_number};
use crate::expression::ExpressionError;
use crate::expression::ast::{Kind, Node, Word};
use crate::expression::names::Method;
use crate::expression::text_functions::TextFunction;

/// The function for a method with these arguments.
pub(super) fn of(method: Method, name: &Word, arguments: &[Node]) -> CheckResult<TextFunction> {
    match method {
        Method::Segment => Ok(TextFunction::Segment(number(one_argument(name, arguments)?, 1)?)),
        Method::Part => match arguments {
            [separator, at] => Ok(TextFunction::Part {
                separator: not_empty(separator, "the separator")?,
                number: number(at, 0)?,
            }),
            _ => Err(wrong_number(name, "what divides the text, and a number", arguments)),
        },
        Method::Substring => match arguments {
            [from] => Ok(TextFunction::Substring { from: number(from, 0)?, to: u32::MAX }),
            [from, to] => {
                Ok(TextFunction::Substring { from: number(from, 0)?, to: number(to, 0)? })
            }
            _ => Err(wrong_number(name, "one or two numbers", arguments)),
        },
        Method::Replace => match arguments {
            [what, with] => Ok(TextFunction::Replace {
                what: not_empty(what, "the text to replace")?,
                with: text(with, "the replacement")?,
            }),
            _ => Err(wrong_number(name, "two texts", arguments)),
        },
        Method::UrlDecode => no_argument(name, arguments).map(|()| TextFunction::UrlDecode),
        _ => no_argument(name, arguments).map(|()| TextFunction::Base64Decode),
    }
}

/// An integer literal of at least `least`.
pub(super) fn number(node: &Node, least: i64) -> CheckResult<u32> {
    let found = match node.kind {
        Kind::Integer(value) if value >= least => u32::try_from(value).ok(),
        _ => None,
    };
    found.ok_or_else(|| {
        let message = format!("this must be a literal number, at least {least}");
        ExpressionError::new(node.range.clone(), message)
    })
}

fn text(node: &Node, what: &str) -> CheckResult<Box<[u8]>> {
    match &node.kind {
        Kind::Text(text) => Ok(text.as_bytes().into()),
        _ => Err(ExpressionError::new(
            node.range.clone(),
            format!("{what} must be literal text: `'…'`"),
        )),
    }
}

fn not_empty(node: &Node, what: &str) -> CheckResult<Box<[u8]>> {
    let text = text(node, what)?;
    if text.is_empty() {
        return Err(ExpressionError::new(node.range.clone(), format!("{what} is not empty")));
    }
    Ok(text)
}
