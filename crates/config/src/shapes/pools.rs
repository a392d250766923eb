//! A pool, or pools with their weights.

use serde_json::{Value, json};

use crate::decode::{Context, Decode, Registry, Spanned, check_name};
use crate::scalar::{Name, Whole};
use crate::tree::{Node, NodeValue};

/// The heaviest weight: shares of a thousandth of a percent can be said.
const WEIGHT_MAX: u64 = 100_000;

/// A weight among pools.
type Weight = Whole<u32, 0, WEIGHT_MAX>;

/// A pool, or a map from pools to their weights.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PoolChoice {
    One(Spanned<Name>),
    Split(Vec<(Spanned<Name>, u32)>),
}

impl Decode for PoolChoice {
    fn expected() -> String {
        "a pool's name, or a map from pools to weights, `{ blue: 95, green: 5 }`".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        let split = json!({
            "type": "object",
            "additionalProperties": Weight::schema(registry),
            "propertyNames": Name::schema(registry),
            "minProperties": 1,
        });
        json!({ "anyOf": [Name::schema(registry), split] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let entries = match &node.value {
            NodeValue::Map(entries) => entries,
            NodeValue::Scalar(_) => return Spanned::decode(node, context).map(Self::One),
            _ => {
                context.mismatch(node, &Self::expected(), None);
                return None;
            }
        };
        if entries.is_empty() {
            let message = format!("{} is empty; it needs at least one pool", context.path());
            context.error(node.span, message);
            return None;
        }
        let mut split = Vec::with_capacity(entries.len());
        let mut is_sound = true;
        for entry in entries {
            let weight =
                context.within_key(&entry.key, |context| Weight::decode(&entry.value, context));
            if let Err(reason) = check_name(&entry.key) {
                context.error(entry.key_span, format!("{}: {reason}", context.path()));
                is_sound = false;
            }
            let name =
                Spanned { value: Name(entry.key.clone()), span: entry.key_span, given: true };
            match weight {
                Some(Whole(weight)) => split.push((name, weight)),
                None => is_sound = false,
            }
        }
        if is_sound && split.iter().all(|(_, weight)| *weight == 0) {
            let message = format!("{} gives every pool the weight 0", context.path());
            context.error_help(node.span, message, "give one of them more");
            is_sound = false;
        }
        is_sound.then_some(Self::Split(split))
    }
}
