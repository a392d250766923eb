//! Passwords and shared keys.

use serde_json::{Value, json};

use crate::decode::{Context, Decode, Registry};
use crate::document::{Node, NodeValue};
use crate::secret::Secret;

/// A text that messages never repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretText(pub Secret);

impl Decode for SecretText {
    fn expected() -> String {
        "text".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "type": "number" }] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let wrong = match &node.value {
            // Any scalar is accepted: `12345678` is a password too.
            NodeValue::Scalar(scalar) if !scalar.text.is_empty() => {
                return Some(Self(Secret::new(&scalar.text)));
            }
            NodeValue::Scalar(_) => "the text is empty",
            NodeValue::Null => "there is nothing",
            NodeValue::List(_) => "a list is no text",
            NodeValue::Map(_) => "a map is no text",
        };
        let message = format!("{}: {wrong}", context.path());
        context.error_help(node.span, message, "write it in quotes");
        None
    }
}
