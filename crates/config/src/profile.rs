//! A key with a profile as its value: a name or an inline map.

use serde_json::{Value, json};

use crate::decode::{Context, Decode, Registry};
use crate::document::{Node, NodeValue};
use crate::scalar::Name;

/// A profile by name, or inline settings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ProfileOr<T> {
    Name(Name),
    Inline(Box<T>),
}

impl<T: Decode> Decode for ProfileOr<T> {
    fn expected() -> String {
        format!("a name, or {}", T::expected())
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({ "anyOf": [Name::schema(registry), T::schema(registry)] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match node.value {
            NodeValue::Scalar(_) => Name::decode(node, context).map(Self::Name),
            _ => T::decode(node, context).map(|value| Self::Inline(Box::new(value))),
        }
    }
}
