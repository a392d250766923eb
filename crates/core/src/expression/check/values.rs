//! All values with one name.

use super::arguments::{no_argument, one_argument};
use super::{CheckResult, Checker, TypedNode};
use crate::expression::ExpressionError;
use crate::expression::ast::{Node, Word};
use crate::expression::facts::Values;
use crate::expression::names::KeyedGroup;
use crate::expression::plan::Number;

/// `request.headers.all('name')`
pub(super) fn all(
    checker: &mut Checker<'_, '_>,
    keyed: KeyedGroup,
    name: &Word,
    arguments: &[Node],
) -> CheckResult<TypedNode<'static>> {
    let make = match keyed {
        KeyedGroup::Header => Values::Header,
        KeyedGroup::ResponseHeader => Values::ResponseHeader,
        KeyedGroup::Query
        | KeyedGroup::Cookie
        | KeyedGroup::ResponseCookie
        | KeyedGroup::SipHeader
        | KeyedGroup::RadiusAttribute => {
            let path = keyed.path();
            let message = format!("{path} has no method `{}`", name.text);
            return Err(ExpressionError::new(name.range.clone(), message).help(format!(
                "`all` is called on request.headers and response.headers; `{path}[{}]` is the first",
                keyed.sample_key()
            )));
        }
    };
    let argument = one_argument(name, arguments)?;
    let header = checker.literal(argument, "the name of a header")?;
    // An invalid header name is reported as elsewhere.
    checker.slot(keyed, &header, &argument.range)?;
    Ok(TypedNode::Values(make(header.to_ascii_lowercase().into())))
}

/// The only method of several values.
pub(super) fn method(
    values: Values,
    name: &Word,
    arguments: &[Node],
) -> CheckResult<TypedNode<'static>> {
    if name.text == "size" {
        no_argument(name, arguments)?;
        return Ok(TypedNode::Integer(Number::Count(values)));
    }
    let message = format!("several values have no method `{}`", name.text);
    Err(ExpressionError::new(name.range.clone(), message)
        .help("`[0]` is the first of them, `'…' in …` asks for one, and `size()` counts them"))
}
