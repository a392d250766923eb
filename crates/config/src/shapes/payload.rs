//! Data that a monitor sends or expects.

use serde_json::{Value, json};

use crate::decode::{Context, Decode, Invalid, Registry, ShownDefault, decode_text};
use crate::document::{Node, NodeValue};
use crate::scalar::Text;

/// Maximum number of bytes in hexadecimal form: the payload of a datagram over IPv4.
const HEX_BYTES_MAX: usize = 65_507;

/// Bytes, written in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HexBytes(pub Vec<u8>);

impl Decode for HexBytes {
    fn expected() -> String {
        "bytes in hexadecimal digits, such as \"00 1f\"".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^ *([0-9A-Fa-f]{2} *)+$" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| {
            let digits = text.bytes().filter(|byte| *byte != b' ');
            let digits: Option<Vec<u32>> =
                digits.map(|byte| char::from(byte).to_digit(16)).collect();
            let digits = digits.ok_or_else(Invalid::plainly)?;
            if digits.is_empty() {
                return Err(Invalid::plainly());
            }
            if !digits.len().is_multiple_of(2) {
                return Err(Invalid::because("the number of digits is odd, and a byte has two"));
            }
            if digits.len() / 2 > HEX_BYTES_MAX {
                return Err(Invalid::because(format!("more than {HEX_BYTES_MAX} bytes")));
            }
            let byte = |pair: &[u32]| pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8);
            Ok(Self(digits.chunks(2).map(byte).collect()))
        })
    }
}

impl ShownDefault for HexBytes {
    fn shown(&self) -> Value {
        let digits: Vec<String> = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.join(" ").into()
    }
}

section! {
    /// Bytes to send.
    PayloadHex at "pools.NAME.monitors[].send" {
        /// The bytes in hexadecimal digits; spaces between them are ignored.
        required hex: HexBytes;
    }
    later []
}

/// Data to send: text, or `hex`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Payload {
    Text(Text),
    Hex(PayloadHex),
}

impl Payload {
    /// The bytes; `None`: they are invalid, which was reported.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(Text(text)) => Some(text.as_bytes()),
            Self::Hex(payload) => payload.hex.as_ref().map(|hex| hex.value.0.as_slice()),
        }
    }
}

impl Decode for Payload {
    fn expected() -> String {
        "text, or a map with `hex`".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({ "anyOf": [Text::schema(registry), PayloadHex::schema(registry)] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match node.value {
            NodeValue::Map(_) => PayloadHex::decode(node, context).map(Self::Hex),
            NodeValue::Scalar(_) => Text::decode(node, context).map(Self::Text),
            NodeValue::Null | NodeValue::List(_) => {
                context.mismatch(node, &Self::expected(), None);
                None
            }
        }
    }
}
