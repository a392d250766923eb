//! Checks of encodings that can hide the meaning of a target.

use super::{Check, Findings};

/// Maximum number of bytes of a value that are decoded repeatedly.
const DECODED_BYTES_MAX: usize = 64 << 10;

/// Checks a target as in the request line, without scheme and host.
pub fn target(target: &[u8], findings: &mut Findings<'_>) {
    let (path, query) = match target.iter().position(|byte| *byte == b'?') {
        Some(at) => (&target[..at], &target[at + 1..]),
        None => (target, &b""[..]),
    };
    encoding(path, "path", findings);
    encoding(query, "query", findings);
    path_forms(path, findings);
}

/// Checks the decoded value of a parameter.
pub fn argument(name: &[u8], value: &[u8], findings: &mut Findings<'_>) {
    for bytes in [name, value] {
        if memchr::memchr(0, bytes).is_some() {
            let place = format!("parameter {}", name.escape_ascii());
            findings.add(Check::NulByte, &place, bytes);
        }
    }
}

/// Checks the encoding of a part.
fn encoding(part: &[u8], place: &str, findings: &mut Findings<'_>) {
    if part.iter().any(|byte| *byte > 0x7f) {
        findings.add(Check::BareByte, place, part);
    }
    let once = decode(part);
    if once.has_bad_escape {
        findings.add(Check::BadEscape, place, part);
    }
    if once.has_percent_u {
        findings.add(Check::PercentU, place, part);
    }
    if once.has_iis_unicode {
        findings.add(Check::IisUnicode, place, part);
    }
    if memchr::memchr(0, &once.bytes).is_some() {
        findings.add(Check::NulByte, place, part);
    }
    match utf8(&once.bytes) {
        Utf8::Valid => {}
        Utf8::Overlong => findings.add(Check::Utf8Overlong, place, part),
        Utf8::Invalid => findings.add(Check::Utf8Invalid, place, part),
    }
    let max = findings.policy().limits.decodings_max;
    if decodings(part, max) > max {
        findings.add(Check::MultipleDecoding, place, part);
    }
}

/// The number of times that a part can be decoded, at most `max` plus one.
fn decodings(part: &[u8], max: u8) -> u8 {
    let mut bytes = part[..part.len().min(DECODED_BYTES_MAX)].to_vec();
    let mut count = 0;
    while count <= max {
        let decoded = decode(&bytes).bytes;
        if decoded == bytes {
            break;
        }
        (bytes, count) = (decoded, count + 1);
    }
    count
}

/// Reports forms of paths that servers interpret differently.
fn path_forms(path: &[u8], findings: &mut Findings<'_>) {
    let plain = normal_form(path);
    if plain.iter().any(|byte| byte.is_ascii_control() && *byte != 0) {
        findings.add(Check::ControlInPath, "path", path);
    }
    if memchr::memchr(b'\\', &plain).is_some() {
        findings.add(Check::Backslash, "path", path);
    }
    let is_separator = |byte: &u8| matches!(byte, b'/' | b'\\');
    let mut has_parameter = false;
    for segment in plain.split(is_separator) {
        let name = segment.split(|byte| *byte == b';').next().unwrap_or_default();
        let is_parent = name == b"..";
        let has_own = name.len() < segment.len();
        has_parameter |= has_own;
        match (is_parent, has_own) {
            (true, false) => findings.add(Check::DirectoryTraversal, "path", path),
            (true, true) => findings.add(Check::SemicolonTraversal, "path", path),
            (false, _) => {}
        }
    }
    if has_parameter {
        findings.add(Check::SemicolonInPath, "path", path);
    }
    if memchr::memmem::find(&plain, b"//").is_some() {
        findings.add(Check::MultipleSlashes, "path", path);
    }
    if plain.ends_with(b".") && !plain.ends_with(b"/.") && !plain.ends_with(b"/..") {
        findings.add(Check::TrailingDot, "path", path);
    }
    let lower = plain.to_ascii_lowercase();
    let has_stream = [&b"::$data"[..], b":$i30:", b"::$index"]
        .iter()
        .any(|stream| memchr::memmem::find(&lower, stream).is_some());
    if has_stream {
        findings.add(Check::IisStream, "path", path);
    }
}

/// Decodes a path until it does not change, at most four times. Replaces overlong forms by their characters.
fn normal_form(path: &[u8]) -> Vec<u8> {
    const TIMES_MAX: usize = 4;
    let mut bytes = path[..path.len().min(DECODED_BYTES_MAX)].to_vec();
    for _ in 0..TIMES_MAX {
        let decoded = short_forms(&decode(&bytes).bytes);
        if decoded == bytes {
            break;
        }
        bytes = decoded;
    }
    bytes
}

/// A part after one decoding.
struct DecodedPart {
    bytes: Vec<u8>,
    has_bad_escape: bool,
    has_percent_u: bool,
    has_iis_unicode: bool,
}

fn decode(part: &[u8]) -> DecodedPart {
    let mut decoded = DecodedPart {
        bytes: Vec::with_capacity(part.len()),
        has_bad_escape: false,
        has_percent_u: false,
        has_iis_unicode: false,
    };
    let mut rest = part;
    while let Some(at) = memchr::memchr(b'%', rest) {
        let (plain, from) = rest.split_at(at);
        decoded.bytes.extend_from_slice(plain);
        if let Some(byte) = from.get(1..3).and_then(number) {
            decoded.bytes.push(byte as u8);
            rest = &from[3..];
        } else if let (Some(b'u' | b'U'), Some(code)) =
            (from.get(1), from.get(2..6).and_then(number))
        {
            decoded.has_percent_u = true;
            let (bytes, is_best_fit) = character(code);
            decoded.has_iis_unicode |= is_best_fit;
            decoded.bytes.extend_from_slice(&bytes);
            rest = &from[6..];
        } else {
            decoded.has_bad_escape = true;
            decoded.bytes.push(b'%');
            rest = &from[1..];
        }
    }
    decoded.bytes.extend_from_slice(rest);
    decoded
}

/// The value of hexadecimal digits.
fn number(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0u16, |number, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(number << 4 | digit as u16)
    })
}

/// The character of a `%uXXXX` code, and whether it is a best fit of IIS: an ASCII character that replaces another
/// character.
fn character(code: u16) -> (Vec<u8>, bool) {
    let best_fit = match code {
        // Full-width forms.
        0xff01..=0xff5e => Some((code - 0xff01 + 0x21) as u8),
        0x2215 | 0x2044 | 0x29f8 => Some(b'/'),
        0x2216 | 0xfe68 | 0x29f5 => Some(b'\\'),
        0x2024 | 0x3002 => Some(b'.'),
        0x2018 | 0x2019 | 0x02b9 | 0x02bc => Some(b'\''),
        0x2039 | 0x3008 => Some(b'<'),
        0x203a | 0x3009 => Some(b'>'),
        _ => None,
    };
    match best_fit {
        Some(byte) => (vec![byte], true),
        None => {
            let char = char::from_u32(code.into()).unwrap_or(char::REPLACEMENT_CHARACTER);
            (char.to_string().into_bytes(), false)
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Utf8 {
    Valid,
    Overlong,
    Invalid,
}

fn utf8(bytes: &[u8]) -> Utf8 {
    if std::str::from_utf8(bytes).is_ok() {
        return Utf8::Valid;
    }
    if short_forms(bytes) != bytes { Utf8::Overlong } else { Utf8::Invalid }
}

/// The bytes with overlong forms of ASCII characters replaced by the characters.
fn short_forms(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, behind)) = rest.split_first() {
        match overlong(rest) {
            Some((byte, length)) => {
                out.push(byte);
                rest = &rest[length..];
            }
            None => {
                out.push(first);
                rest = behind;
            }
        }
    }
    out
}

/// The ASCII character of an overlong form, and the form's length.
fn overlong(bytes: &[u8]) -> Option<(u8, usize)> {
    let low = |byte: u8| byte & 0x3f;
    let is_more = |byte: &u8| byte & 0xc0 == 0x80;
    match *bytes {
        [first @ (0xc0 | 0xc1), second, ..] if is_more(&second) => {
            Some(((first & 1) << 6 | low(second), 2))
        }
        [0xe0, second @ (0x80 | 0x81), third, ..] if is_more(&third) => {
            Some(((second & 1) << 6 | low(third), 3))
        }
        [0xf0, 0x80, third @ (0x80 | 0x81), fourth, ..] if is_more(&fourth) => {
            Some(((third & 1) << 6 | low(fourth), 4))
        }
        _ => None,
    }
}
