//! Values read from pools.

use super::{CheckResult, Checker};
use crate::expression::ExpressionError;
use crate::expression::ast::{Node, Word};
use crate::expression::names::{POOL_FACTS, POOLS};
use crate::expression::plan::Number;

/// The number of the pool in `pools[key]`.
pub(super) fn named(checker: &mut Checker<'_, '_>, key: &Node) -> CheckResult<u32> {
    let name = checker.literal(key, "the name of a pool")?;
    let pools = checker.scope.pools;
    let Some(&number) = pools.get(&*name).filter(|_| !name.is_empty()) else {
        let message = format!("there is no pool `{}`", name.escape_debug());
        let names = pools.keys().copied().filter(|name| !name.is_empty());
        return Err(ExpressionError::new(key.range.clone(), message).suggest(&name, names));
    };
    checker.scope.slots.note_pool(number);
    Ok(number as u32)
}

/// `pools['…'].name`
pub(super) fn field(number: u32, name: &Word) -> CheckResult<Number> {
    let text = &name.text;
    if let Some((_, fact)) = POOL_FACTS.iter().find(|(known, _)| known == text) {
        return Ok(Number::Pool(number, *fact));
    }
    let message = format!("`{POOLS}['…']` has no field `{text}`");
    let names = POOL_FACTS.iter().map(|(name, _)| *name);
    Err(ExpressionError::new(name.range.clone(), message).suggest(text, names))
}
