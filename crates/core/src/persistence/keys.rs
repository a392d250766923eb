//! The keys of persistence cookies and of sealed cookies: the key file, and derived keys.
//!
//! A key file has one key per line: 32 bytes as base64 (44 characters) or as 64 hexadecimal digits. Empty lines and
//! lines that start with `#` are ignored. The first key signs; the others are still accepted, so that a key can be
//! changed without a client losing its member: put the new key on top, and remove the old one when its cookies have
//! expired.

use std::fmt;

use aws_lc_rs::{constant_time, hmac};
use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};

use crate::keyed_hash::KeyedHash;

/// Length of a key in bytes.
pub const KEY_BYTES: usize = 32;

/// Maximum number of accepted keys; each costs a table of tokens per pool.
pub const KEYS_MAX: usize = 8;

/// Length of a truncated message authentication code in bytes.
pub const TAG_BYTES: usize = 16;

/// A secret. Values derived from it reveal nothing about it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; KEY_BYTES]);

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key")
    }
}

/// The purpose of a tag: a tag for one purpose is never valid for another.
#[derive(Debug, Clone, Copy)]
pub(super) enum Use {
    Token,
    PoolId,
    Hash,
}

impl Key {
    /// A key of these bytes, which must be random.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// The first half of the HMAC-SHA-256 (RFC 2104 section 5 permits truncation) of `parts`. Each part is preceded by its
    /// length, so that two different lists of parts never give the same message.
    pub(super) fn tag(&self, tag_use: Use, parts: &[&str]) -> [u8; TAG_BYTES] {
        let mut message = match tag_use {
            Use::Token => b"weir persistence token 1".to_vec(),
            Use::PoolId => b"weir persistence pool 1".to_vec(),
            Use::Hash => b"weir persistence hash 1".to_vec(),
        };
        for part in parts {
            message.extend_from_slice(&(part.len() as u64).to_be_bytes());
            message.extend_from_slice(part.as_bytes());
        }
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.0), &message);
        *tag.as_ref().first_chunk().expect("a SHA-256 has 32 bytes")
    }
}

/// One to [`KEYS_MAX`] keys; the first one signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys(Vec<Key>);

/// The reason why a key file cannot be used. Lines are counted from 1; no error contains a part of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFileError {
    /// The line is not a key.
    Line(usize),
    /// The key in this line is also in an earlier line.
    Repeated(usize),
    /// The file has no keys.
    Empty,
    /// The file has more than [`KEYS_MAX`] keys.
    TooMany,
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(
                formatter,
                "line {line} is no key: {KEY_BYTES} bytes as base64, or as {} hexadecimal digits",
                2 * KEY_BYTES
            ),
            Self::Repeated(line) => write!(formatter, "line {line} repeats a key"),
            Self::Empty => formatter.write_str("there is no key"),
            Self::TooMany => write!(formatter, "there are more than {KEYS_MAX} keys"),
        }
    }
}

impl std::error::Error for KeyFileError {}

impl Keys {
    /// A list of one key.
    pub fn single(key: Key) -> Self {
        Self(vec![key])
    }

    /// The bytes of the keys, for other purposes.
    pub fn secrets(&self) -> Vec<[u8; KEY_BYTES]> {
        self.0.iter().map(|key| key.0).collect()
    }

    /// The keys of a key file.
    pub fn parse(text: &str) -> Result<Self, KeyFileError> {
        let mut keys = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = parse_key(line).ok_or(KeyFileError::Line(index + 1))?;
            if keys.contains(&key) {
                return Err(KeyFileError::Repeated(index + 1));
            }
            keys.push(key);
        }
        match keys.len() {
            0 => Err(KeyFileError::Empty),
            1..=KEYS_MAX => Ok(Self(keys)),
            _ => Err(KeyFileError::TooMany),
        }
    }

    /// The text of a key file from which [`Keys::parse`] reads these keys. It is a secret: the file must be readable only by
    /// its owner (mode 0600).
    pub fn to_file(&self) -> String {
        let mut text =
            String::from("# The first key signs persistence cookies, the others are honoured.\n");
        for key in &self.0 {
            BASE64.encode_append(&key.0, &mut text);
            text.push('\n');
        }
        text
    }

    /// The sealing keys derived from these keys.
    pub fn seals(&self) -> Seals {
        let derived = |key: &Key| {
            let secret = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key.0), SEALS_PURPOSE);
            hmac::Key::new(hmac::HMAC_SHA256, secret.as_ref())
        };
        Seals(self.0.iter().map(derived).collect())
    }

    /// The keys; the first one signs.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Key> {
        self.0.iter()
    }

    /// The hash that spreads clients of this `purpose` (a persistence profile's name) over members. It is the same on every
    /// instance with the same first key.
    pub fn hash(&self, purpose: &str) -> KeyedHash {
        KeyedHash::new(self.0[0].tag(Use::Hash, &[purpose]))
    }
}

/// The purpose of sealing keys. Their tags are never valid for another purpose.
const SEALS_PURPOSE: &[u8] = b"weir sealed cookies 1";

/// Creates and verifies the tags of sealed cookies.
#[derive(Clone)]
pub struct Seals(Vec<hmac::Key>);

impl fmt::Debug for Seals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Seals")
    }
}

impl Seals {
    /// The tag of a message under the signing key.
    pub fn tag(&self, message: &[u8]) -> [u8; TAG_BYTES] {
        tag_by(&self.0[0], message)
    }

    /// Whether the tag is valid under one of the keys. Takes constant time.
    pub fn is_tag(&self, message: &[u8], tag: &[u8; TAG_BYTES]) -> bool {
        let is_by =
            |key| constant_time::verify_slices_are_equal(&tag_by(key, message), tag).is_ok();
        self.0.iter().any(is_by)
    }
}

/// The first half of the HMAC-SHA-256; RFC 2104 section 5 permits truncation.
fn tag_by(key: &hmac::Key, message: &[u8]) -> [u8; TAG_BYTES] {
    *hmac::sign(key, message).as_ref().first_chunk().expect("a SHA-256 has 32 bytes")
}

fn parse_key(text: &str) -> Option<Key> {
    let decoder = if text.len() == 2 * KEY_BYTES { HEXLOWER_PERMISSIVE } else { BASE64 };
    let bytes = decoder.decode(text.as_bytes()).ok()?;
    Some(Key(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
    const BASE64_OF_IT: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const OTHER: &str = "//////////////////////////////////////////8=";

    #[test]
    fn key_files() {
        let key = Key::new(std::array::from_fn(|index| index as u8));
        assert_eq!(Keys::parse(HEX), Ok(Keys::single(key.clone())));
        assert_eq!(Keys::parse(BASE64_OF_IT), Ok(Keys::single(key.clone())));
        let two = Keys::parse(&format!("# new\r\n\n  {OTHER}\t\r\n#old\n{HEX}")).unwrap();
        assert_eq!(two, Keys(vec![Key::new([0xff; 32]), key]));
        assert_eq!(Keys::parse(&two.to_file()), Ok(two));
    }

    #[test]
    fn key_files_that_are_none() {
        use KeyFileError::*;
        let many: String = (0..=KEYS_MAX).map(|number| format!("{number:064}\n")).collect();
        for (text, error) in [
            ("", Empty),
            ("\n# nothing\n", Empty),
            ("secret", Line(1)),
            (&HEX[2..], Line(1)),
            (format!("{OTHER}\n{}g", &HEX[1..]).as_str(), Line(2)),
            (&BASE64_OF_IT[..43], Line(1)),
            // The last character has unused bits that are not zero.
            ("//////////////////////////////////////////9=", Line(1)),
            (format!("{HEX}\n\n{BASE64_OF_IT}").as_str(), Repeated(3)),
            (many.as_str(), TooMany),
        ] {
            assert_eq!(Keys::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn seals_of_all_keys_hold() {
        let (old, new) = (Key::new([1; 32]), Key::new([2; 32]));
        let before = Keys::single(old.clone()).seals();
        let after = Keys(vec![new.clone(), old]).seals();
        let tag = before.tag(b"message");
        assert!(after.is_tag(b"message", &tag));
        assert!(!after.is_tag(b"massage", &tag));
        assert_ne!(after.tag(b"message"), tag);
        assert!(!Keys::single(new).seals().is_tag(b"message", &tag));
    }

    /// The expected tag was computed with Python's `hmac`. An unnoticed change of the format would cost every client its
    /// member.
    #[test]
    fn tags_stay_what_they_are() {
        let key = Key::new([7; 32]);
        assert_ne!(key.tag(Use::Token, &["ab", "c"]), key.tag(Use::Token, &["a", "bc"]));
        assert_ne!(key.tag(Use::Token, &["a"]), key.tag(Use::PoolId, &["a"]));
        assert_ne!(key.tag(Use::Token, &["a"]), Key::new([8; 32]).tag(Use::Token, &["a"]));
        let tag = key.tag(Use::Token, &["web", "10.0.0.1:80"]);
        assert_eq!(data_encoding::HEXLOWER.encode(&tag), "7a2c2f04287a2f9e06a8f2e996fb4cd6");
    }

    #[test]
    fn secrets_are_not_printed() {
        let keys = Keys::parse(HEX).unwrap();
        assert_eq!(format!("{keys:?} {:?}", keys.hash("a")), "Keys([Key]) KeyedHash");
    }
}
