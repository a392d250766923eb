//! Functions from text to text: substrings, replacement and decoding.

use std::ops::Range;

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD};
use memchr::memmem;
use weir_http::query;

use crate::keyed_hash::KeyedHash;

/// Maximum length of a result of `replace`; longer results are truncated.
pub(super) const REPLACED_BYTES_MAX: usize = 64 * 1024;

/// A function on a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextFunction {
    /// The piece with this number, from 0, between separators.
    Part { separator: Box<[u8]>, number: u32 },
    /// The segment of a path with this number, from 1.
    Segment(u32),
    /// The bytes from `from` up to, but not including, `to`.
    Substring { from: u32, to: u32 },
    /// Replaces each occurrence of a text.
    Replace { what: Box<[u8]>, with: Box<[u8]> },
    /// Decodes percent-encoding; `+` stays unchanged.
    UrlDecode,
    /// Decoded base64, in either alphabet; empty if it is invalid.
    Base64Decode,
}

impl TextFunction {
    /// The result as a part of the text; `None`: the result must be written.
    pub fn within(&self, text: &[u8]) -> Option<Range<usize>> {
        match self {
            Self::Part { separator, number } => Some(part(text, separator, *number)),
            Self::Segment(number) => {
                let start = usize::from(text.first() == Some(&b'/'));
                let range = part(&text[start..], b"/", number.saturating_sub(1));
                Some(range.start + start..range.end + start)
            }
            Self::Substring { from, to } => {
                let end = (*to as usize).min(text.len());
                Some((*from as usize).min(end)..end)
            }
            Self::UrlDecode if !text.contains(&b'%') => Some(0..text.len()),
            Self::Replace { what, .. } if memmem::find(text, what).is_none() => Some(0..text.len()),
            Self::Replace { .. } | Self::UrlDecode | Self::Base64Decode => None,
        }
    }

    /// Appends the function's result for the text.
    pub fn write(&self, text: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Replace { what, with } => replace(text, what, with, out),
            Self::UrlDecode => url_decode(text, out),
            Self::Base64Decode => base64_decode(text, out),
            Self::Part { .. } | Self::Segment(_) | Self::Substring { .. } => {
                out.extend(self.within(text).and_then(|range| text.get(range)).unwrap_or_default());
            }
        }
    }
}

/// The range of the piece with this number; the end of the text, if there are fewer.
fn part(text: &[u8], separator: &[u8], number: u32) -> Range<usize> {
    let mut start = 0;
    for _ in 0..number {
        match memmem::find(&text[start..], separator) {
            Some(at) => start += at + separator.len(),
            None => return text.len()..text.len(),
        }
    }
    let end = memmem::find(&text[start..], separator).map_or(text.len(), |at| start + at);
    start..end
}

fn replace(text: &[u8], what: &[u8], with: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let mut from = 0;
    for at in memmem::find_iter(text, what) {
        out.extend_from_slice(&text[from..at]);
        out.extend_from_slice(with);
        from = at + what.len();
        if out.len() - start > REPLACED_BYTES_MAX {
            break;
        }
    }
    out.extend_from_slice(&text[from..]);
    out.truncate(start + REPLACED_BYTES_MAX);
}

/// Decodes percent-encoding only: `+` means a space only in forms.
fn url_decode(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(plus) = rest.iter().position(|byte| *byte == b'+') {
        query::decode(&rest[..plus], out);
        out.push(b'+');
        rest = &rest[plus + 1..];
    }
    query::decode(rest, out);
}

fn base64_decode(text: &[u8], out: &mut Vec<u8>) {
    let encodings = [&BASE64, &BASE64_NOPAD, &BASE64URL, &BASE64URL_NOPAD];
    out.extend(
        encodings.iter().find_map(|encoding| encoding.decode(text).ok()).unwrap_or_default(),
    );
}

/// The integer that the whole text represents in decimal digits; 0: not an integer. Values outside the range of 64 bits
/// become the nearest integer in the range.
pub(super) fn integer(text: &[u8]) -> i64 {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_negative = digits.len() < text.len();
    if !digits.iter().all(u8::is_ascii_digit) {
        return 0;
    }
    digits.iter().fold(0, |value: i64, digit| {
        let (value, digit) = (value.saturating_mul(10), i64::from(digit - b'0'));
        if is_negative { value.saturating_sub(digit) } else { value.saturating_add(digit) }
    })
}

/// A hash of a text below `below`, equal on every weir.
pub(super) fn hash(text: &[u8], below: u32) -> i64 {
    let hash = KeyedHash::new([0; 16]).bytes(text);
    // The upper bits of a product are as evenly distributed as the hash.
    ((u128::from(hash) * u128::from(below)) >> 64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(function: &TextFunction, text: &str) -> String {
        let mut written = Vec::new();
        function.write(text.as_bytes(), &mut written);
        let written = String::from_utf8(written).expect("text");
        if let Some(range) = function.within(text.as_bytes()) {
            assert_eq!(text[range], written, "{function:?} {text}");
        }
        written
    }

    #[test]
    fn texts_are_made() {
        let part = |separator: &str, number| TextFunction::Part {
            separator: separator.as_bytes().into(),
            number,
        };
        let replace = |what: &str, with: &str| TextFunction::Replace {
            what: what.as_bytes().into(),
            with: with.as_bytes().into(),
        };
        for (function, text, expected) in [
            (part(",", 0), "a,b,c", "a"),
            (part(",", 2), "a,b,c", "c"),
            (part(",", 3), "a,b,c", ""),
            (part("--", 1), "a--b", "b"),
            (part(",", 0), "", ""),
            (TextFunction::Segment(1), "/a/b", "a"),
            (TextFunction::Segment(2), "/a/b", "b"),
            (TextFunction::Segment(3), "/a/b", ""),
            (TextFunction::Segment(1), "/", ""),
            (TextFunction::Segment(1), "a/b", "a"),
            (TextFunction::Substring { from: 1, to: 3 }, "abcd", "bc"),
            (TextFunction::Substring { from: 3, to: 1 }, "abcd", ""),
            (TextFunction::Substring { from: 2, to: u32::MAX }, "abcd", "cd"),
            (TextFunction::Substring { from: 9, to: 10 }, "abcd", ""),
            (replace("a", "bb"), "aXa", "bbXbb"),
            (replace("x", "y"), "abc", "abc"),
            (TextFunction::UrlDecode, "a%20b+c%zz", "a b+c%zz"),
            (TextFunction::UrlDecode, "abc", "abc"),
            (TextFunction::Base64Decode, "aGk=", "hi"),
            (TextFunction::Base64Decode, "aGk", "hi"),
            (TextFunction::Base64Decode, "!", ""),
        ] {
            assert_eq!(made(&function, text), expected, "{function:?} {text}");
        }
        let long = made(&replace("a", &"b".repeat(1_000)), &"a".repeat(1_000));
        assert_eq!(long.len(), REPLACED_BYTES_MAX);
    }

    #[test]
    fn texts_are_integers() {
        for (text, expected) in [
            ("0", 0),
            ("42", 42),
            ("-7", -7),
            ("007", 7),
            ("9223372036854775807", i64::MAX),
            ("9223372036854775808", i64::MAX),
            ("-9223372036854775808", i64::MIN),
            ("-99999999999999999999", i64::MIN),
            ("", 0),
            ("-", 0),
            ("+1", 0),
            (" 1", 0),
            ("1a", 0),
            ("1.5", 0),
            ("--1", 0),
            ("0x10", 0),
        ] {
            assert_eq!(integer(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn hashes_are_even() {
        let mut counts = [0u32; 10];
        for number in 0..10_000 {
            counts[hash(format!("client {number}").as_bytes(), 10) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }
}
