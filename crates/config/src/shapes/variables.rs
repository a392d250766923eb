//! Variables for rules of the web application firewall.

use serde_json::{Value, json};

use super::http::AnyText;
use crate::decode::{Context, Decode, Registry, Spanned};
use crate::document::{Entry, Node, NodeValue};
use crate::quote::clip;

/// Maximum length of a variable's name.
const NAME_BYTES_MAX: usize = 128;
/// The schema's pattern for a name.
const NAME_PATTERN: &str = "^[A-Za-z0-9._-]+$";

/// Values of `TX` variables, by names in lower case.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TxTexts(pub Vec<(Spanned<String>, Spanned<AnyText>)>);

impl Decode for TxTexts {
    fn expected() -> String {
        "a map from names to texts".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({
            "type": "object",
            "additionalProperties": AnyText::schema(registry),
            "propertyNames": { "pattern": NAME_PATTERN, "maxLength": NAME_BYTES_MAX },
        })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let NodeValue::Map(entries) = &node.value else {
            context.mismatch(node, &Self::expected(), None);
            return None;
        };
        let mut found = Vec::with_capacity(entries.len());
        for entry in entries.iter() {
            let value =
                context.within_key(&entry.key, |context| Spanned::decode(&entry.value, context));
            found.extend(name(entry, context).zip(value));
        }
        Some(Self(found))
    }
}

/// A variable's name in lower case, because rules ignore case.
fn name(entry: &Entry, context: &mut Context) -> Option<Spanned<String>> {
    let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let key = entry.key.as_str();
    if key.is_empty() || key.len() > NAME_BYTES_MAX || !key.bytes().all(is_sound) {
        let message = format!("{}: \"{}\" is not a valid variable name", context.path(), clip(key));
        let help = match key.split_once(':') {
            Some((before, behind)) if before.eq_ignore_ascii_case("tx") => {
                format!("write `{}`", clip(behind))
            }
            _ => format!(
                "a name has letters, digits and `.` `_` `-`, {NAME_BYTES_MAX} of them at most"
            ),
        };
        context.error_help(entry.key_span, message, help);
        return None;
    }
    Some(Spanned { value: key.to_ascii_lowercase(), span: entry.key_span, given: true })
}
