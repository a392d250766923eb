//! What expressions read of a datagram: bytes at a place, a line by its name (SIP and its like), an attribute by its number
//! (RADIUS).
//!
//! Any bytes may come: what is not there has no value.

use std::ops::Range;
use std::sync::Arc;

/// Bytes of a datagram that an expression may begin to read at.
pub const OFFSET_MAX: i64 = 65_506;
/// Bytes that it may read at once.
pub const LENGTH_MAX: i64 = 256;
/// Lines that are looked through for a name.
const LINES_MAX: usize = 256;
/// Before the attributes of RADIUS (RFC 2865 section 3).
const RADIUS_HEADER_BYTES: usize = 20;

/// A part of a datagram.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// So many bytes from there on, as hexadecimal digits.
    Bytes { offset: u16, length: u16 },
    /// The value of the first line of this name, in lower case.
    Line(Arc<str>),
    /// The value of the first RADIUS attribute of this number.
    Attribute(u8),
}

/// Short names of SIP lines (RFC 3261 section 20), which mean the same as the long ones.
const SHORT: [(&str, &str); 10] = [
    ("call-id", "i"),
    ("contact", "m"),
    ("content-encoding", "e"),
    ("content-length", "l"),
    ("content-type", "c"),
    ("from", "f"),
    ("subject", "s"),
    ("supported", "k"),
    ("to", "t"),
    ("via", "v"),
];

/// Where a part stands in a datagram.
pub(super) fn find(part: &Part, datagram: &[u8]) -> Option<Range<usize>> {
    match part {
        Part::Bytes { offset, length } => {
            let start = usize::from(*offset);
            let end = start + usize::from(*length);
            (end <= datagram.len()).then_some(start..end)
        }
        Part::Line(name) => line(name, datagram),
        Part::Attribute(number) => attribute(*number, datagram),
    }
}

fn line(name: &str, datagram: &[u8]) -> Option<Range<usize>> {
    let short = SHORT.iter().find(|(long, _)| *long == name).map(|(_, short)| *short);
    let is_named = |found: &[u8]| {
        let is = |name: &str| found.eq_ignore_ascii_case(name.as_bytes());
        is(name) || short.is_some_and(is)
    };
    let mut at = 0;
    for number in 0..LINES_MAX {
        let rest = datagram.get(at..)?;
        let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let text = rest[..length].strip_suffix(b"\r").unwrap_or(&rest[..length]);
        if text.is_empty() {
            // What is behind the head is no line of it.
            return None;
        }
        // The first line says what is asked.
        if number > 0
            && let Some(colon) = memchr::memchr(b':', text)
            && is_named(text[..colon].trim_ascii_end())
        {
            let value = text[colon + 1..].trim_ascii_start();
            let start = at + text.len() - value.len();
            let value = value.trim_ascii_end();
            return (!value.is_empty()).then_some(start..start + value.len());
        }
        at += length + 1;
    }
    None
}

fn attribute(number: u8, datagram: &[u8]) -> Option<Range<usize>> {
    let told = u16::from_be_bytes([*datagram.get(2)?, *datagram.get(3)?]);
    let end = usize::from(told);
    if end > datagram.len() {
        return None;
    }
    let mut at = RADIUS_HEADER_BYTES;
    while at + 2 <= end {
        let length = usize::from(datagram[at + 1]);
        if length < 2 || at + length > end {
            return None;
        }
        if datagram[at] == number {
            return (length > 2).then_some(at + 2..at + length);
        }
        at += length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVITE: &[u8] = b"INVITE sip:bob@example.com SIP/2.0\r\nVia: SIP/2.0/UDP a\r\n\
        I : abc@host \r\nTo: Bob\r\nSubject:\r\n\r\nCall-ID: body\r\n";

    fn value(part: &Part, datagram: &[u8]) -> Option<Vec<u8>> {
        find(part, datagram).map(|range| datagram[range].to_vec())
    }

    fn named(name: &str, datagram: &[u8]) -> Option<Vec<u8>> {
        value(&Part::Line(name.into()), datagram)
    }

    #[test]
    fn lines_by_their_names_long_or_short() {
        assert_eq!(named("call-id", INVITE).as_deref(), Some(&b"abc@host"[..]));
        assert_eq!(named("to", INVITE).as_deref(), Some(&b"Bob"[..]));
        assert_eq!(named("via", INVITE).as_deref(), Some(&b"SIP/2.0/UDP a"[..]));
        assert_eq!(named("subject", INVITE), None, "without a value");
        assert_eq!(named("invite sip", INVITE), None, "the first line has no name");
        let body = b"OPTIONS sip:a SIP/2.0\n\nCall-ID: body\n";
        assert_eq!(named("call-id", body), None, "what is behind the head");
    }

    #[test]
    fn attributes_by_their_numbers() {
        let mut request = vec![4, 1, 0, 30];
        request.extend([0; 16]);
        request.extend([1, 5, b'b', b'o', b'b', 44, 5, b'x', b'y', b'z']);
        request.extend([44, 3, b'!']);
        let of = |number, datagram: &[u8]| value(&Part::Attribute(number), datagram);
        assert_eq!(of(1, &request).as_deref(), Some(&b"bob"[..]));
        assert_eq!(of(44, &request).as_deref(), Some(&b"xyz"[..]));
        assert_eq!(of(7, &request), None, "what is behind the told length is padding");
        for length in 0..30 {
            assert_eq!(of(44, &request[..length]), None, "{length}");
        }
        request[21] = 1;
        assert_eq!(of(44, &request), None, "a length below that of its own head");
    }

    #[test]
    fn bytes_are_all_there_or_none() {
        let of = |offset, length| value(&Part::Bytes { offset, length }, b"abcdef");
        assert_eq!(of(0, 2).as_deref(), Some(&b"ab"[..]));
        assert_eq!(of(4, 2).as_deref(), Some(&b"ef"[..]));
        assert_eq!(of(5, 2), None);
        assert_eq!(of(u16::MAX, 256), None);
    }
}
