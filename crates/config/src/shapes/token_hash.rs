//! Hashes of tokens.

use serde_json::{Value, json};

use crate::decode::{Context, Decode, Invalid, Registry, decode_text};
use crate::tree::Node;

/// The prefix that names the hash function.
const PREFIX: &str = "sha256:";

/// SHA-256 of a token. A slow hash would add nothing: a token has 256 random bits, so nobody finds it by trying.
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
        decode_text(node, context, |text| {
            let wrong = || Invalid::plainly().help("`weir token new` prints a token and its hash");
            let digits = text.strip_prefix(PREFIX).ok_or_else(wrong)?;
            let bytes = data_encoding::HEXLOWER.decode(digits.as_bytes()).map_err(|_| wrong())?;
            bytes.try_into().map(Self).map_err(|_| wrong())
        })
    }
}
