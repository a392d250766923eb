//! Texts and their replacements.

use serde_json::{Value, json};

use super::AnyText;
use crate::decode::{Context, Decode, Registry, Spanned};
use crate::document::{Node, NodeValue};

/// Texts with their replacements; `""` removes the text. Empty after a reported error.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Replacements(pub Vec<(Spanned<String>, Spanned<AnyText>)>);

impl Decode for Replacements {
    fn expected() -> String {
        "a map from texts to texts".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({
            "type": "object",
            "additionalProperties": AnyText::schema(registry),
            "minProperties": 1,
        })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let NodeValue::Map(entries) = &node.value else {
            let help = "write { \"old text\": \"new text\" }".to_owned();
            context.mismatch(node, &Self::expected(), Some(help));
            return Some(Self(Vec::new()));
        };
        if entries.is_empty() {
            let message = format!("{} is empty; it needs at least one text", context.path());
            context.error(node.span, message);
        }
        let decoded = entries.iter().filter_map(|entry| {
            let from = Spanned { value: entry.key.clone(), span: entry.key_span, given: true };
            let to =
                context.within_key(&entry.key, |context| Spanned::decode(&entry.value, context));
            Some((from, to?))
        });
        Some(Self(decoded.collect()))
    }
}
