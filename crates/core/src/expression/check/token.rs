//! Values read from tokens: `jwt['name']`.

use std::sync::Arc;

use super::{CheckResult, Checker, TypedNode};
use crate::expression::ExpressionError;
use crate::expression::ast::{Node, Word};
use crate::expression::names::{self, TOKENS, TokenField};
use crate::expression::plan::{Test, Text};
use crate::expression::slots::Source;

/// `jwt['name']`
pub(super) fn token(checker: &mut Checker<'_, '_>, key: &Node) -> CheckResult<TypedNode<'static>> {
    let name = checker.literal(key, "the name of an authentication")?;
    let found = checker.scope.slots.token_reader(&name).map(TypedNode::Token);
    found.ok_or_else(|| {
        let slots = &*checker.scope.slots;
        let name_shown = name.escape_debug();
        let message = format!("there is no authentication `{name_shown}` of type jwt");
        let error = ExpressionError::new(key.range.clone(), message);
        match slots.token_names().next() {
            Some(_) => error.suggest(&name, slots.token_names()),
            None => error.help("define it under `authentication`"),
        }
    })
}

/// `jwt['name'].field`
pub(super) fn token_field(reader: u32, name: &Word) -> CheckResult<TypedNode<'static>> {
    let known = names::TOKEN_FIELDS.iter().find(|(known, _)| *known == name.text);
    match known.map(|(_, field)| field) {
        Some(TokenField::Valid) => Ok(TypedNode::Boolean(Test::TokenValid(reader))),
        Some(TokenField::Claims) => Ok(TypedNode::Claims(reader)),
        None => {
            let message = format!("{TOKENS}['…'] has no field `{}`", name.text);
            let error = ExpressionError::new(name.range.clone(), message);
            let help = format!(
                "it has `valid` and `claims`; a claim is read as `{TOKENS}['…'].claims['{}']`",
                name.text
            );
            Err(error.help(help))
        }
    }
}

/// The slot of `jwt['name'].claims[key]`
pub(super) fn claim(checker: &mut Checker<'_, '_>, reader: u32, key: &Node) -> CheckResult<u32> {
    let name = checker.literal(key, "the name of a claim")?;
    Ok(checker.scope.slots.of(Source::Claim(reader, name.into())))
}

/// Whether a slot belongs to a claim.
pub(super) fn is_claim(checker: &Checker<'_, '_>, slot: u32) -> bool {
    matches!(checker.scope.slots.sources()[slot as usize], Source::Claim(..))
}

/// `text in jwt['name'].claims[key]`
pub(super) fn claim_has(checker: &Checker<'_, '_>, text: Text, slot: u32) -> Test {
    match &checker.scope.slots.sources()[slot as usize] {
        Source::Claim(reader, name) => Test::ClaimHas(Box::new((*reader, Arc::clone(name), text))),
        _ => Test::Constant(false),
    }
}
