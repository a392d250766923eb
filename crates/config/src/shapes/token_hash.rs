//! Hashes of tokens.

use serde_json::{Value, json};

use crate::decode::{Context, Decode, Registry};
use crate::document::{Node, NodeValue};

/// The prefix with the name of the hash function.
const PREFIX: &str = "sha256:";

/// SHA-256 of a token. A slow hash would not help: a token has 256 random bits and cannot be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenHash(pub [u8; 32]);

impl Decode for TokenHash {
    fn expected() -> String {
        "`sha256:` and 64 hexadecimal digits".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^sha256:[0-9a-f]{64}$" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let text = match &node.value {
            NodeValue::Scalar(scalar) => scalar.text.as_str(),
            _ => "",
        };
        let found = hash(text);
        if found.is_none() {
            // The value is not quoted: it may be a token.
            let message = format!("{} must be {}", context.path(), Self::expected());
            let help = "`weir token new` prints a token and its hash";
            context.error_help(node.span, message, help);
        }
        found.map(Self)
    }
}

fn hash(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix(PREFIX)?;
    data_encoding::HEXLOWER.decode(digits.as_bytes()).ok()?.try_into().ok()
}
