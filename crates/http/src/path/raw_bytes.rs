//! Bytes that clients send raw in a target although RFC 3986 section 2 requires encoding: bytes above 0x7F, and `"`,
//! `<` and `>`. Old browsers, scripts and `curl` send them, for names in UTF-8; most servers accept them.

use std::borrow::Cow;

use super::PathForm;
use crate::chars::{is_raw_byte, push_escape};

/// The treatment of raw bytes in a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RawBytes {
    /// Percent-encode them for rules and for the member.
    #[default]
    Encode,
    /// The request is refused.
    Refuse,
}

/// The form of a request's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TargetForm {
    /// The form of the path.
    pub path: PathForm,
    /// The treatment of raw bytes in path and query.
    pub raw_bytes: RawBytes,
}

/// Appends `text`, and percent-encodes its raw bytes.
pub fn encode_raw_bytes(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        if is_raw_byte(byte) {
            push_escape(byte, out);
        } else {
            out.push(byte);
        }
    }
}

/// Whether `text` contains a raw byte.
pub fn has_raw_bytes(text: &[u8]) -> bool {
    text.iter().any(|byte| is_raw_byte(*byte))
}

pub(super) fn encoded(text: &[u8]) -> Cow<'_, [u8]> {
    if !has_raw_bytes(text) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::new();
    encode_raw_bytes(text, &mut out);
    Cow::Owned(out)
}
