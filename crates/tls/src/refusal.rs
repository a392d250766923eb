//! What a client is told whose handshake is not even begun, and why (RFC 8446 section 6).

use crate::record::{ContentType, LEGACY_VERSION};

/// Why it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// What it sent is no ClientHello.
    DecodeError = 50,
    /// Nobody here has the name that it asked for.
    UnrecognizedName = 112,
}

impl Refusal {
    /// The alert, as a record without protection: no key has been agreed on.
    pub fn record(self) -> [u8; 7] {
        const FATAL: u8 = 2;
        let [major, minor] = LEGACY_VERSION;
        [ContentType::Alert.number(), major, minor, 0, 2, FATAL, self as u8]
    }
}

/// Whether somebody who sends this would know what an alert is.
pub fn begins_a_handshake(input: &[u8]) -> bool {
    input.first() == Some(&ContentType::Handshake.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_are_records() {
        assert_eq!(Refusal::UnrecognizedName.record(), [21, 3, 3, 0, 2, 2, 112]);
        assert_eq!(Refusal::DecodeError.record(), [21, 3, 3, 0, 2, 2, 50]);
    }

    #[test]
    fn who_would_know_them() {
        assert!(begins_a_handshake(b"\x16\x03"));
        assert!(!begins_a_handshake(b"GET / HTTP/1.1"));
        assert!(!begins_a_handshake(b""));
    }
}
