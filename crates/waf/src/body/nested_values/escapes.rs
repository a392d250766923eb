//! Escapes in strings: `\u0027`, `\u{27}`, `\x27`, and octal escapes in quoted cookies.

use memchr::memchr;

use super::super::query::hex_digit;

/// Maximum number of digits of `\u{…}`. Leading zeros count too: more digits are no escape in any language.
const BRACED_DIGITS_MAX: usize = 8;

/// Whether a text has an escape that can stand for any character.
pub(super) fn has_escape(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = memchr(b'\\', rest) {
        rest = rest.get(at..).unwrap_or_default();
        if numbered(rest).is_some() {
            return true;
        }
        // Behind an escaped backslash there may be an escape, too, for a program that decodes twice.
        rest = rest.get(1..).unwrap_or_default();
    }
    false
}

/// The text with its escapes replaced by their characters. Unknown escapes are unchanged.
pub fn without_escapes(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'\\', rest) {
        let (before, escape) = rest.split_at(at);
        plain.extend_from_slice(before);
        rest = match (pair(escape), numbered(escape), escape.get(1)) {
            (Some((character, behind)), _, _) | (None, Some((character, behind)), _) => {
                push(character, &mut plain);
                behind
            }
            (None, None, Some(letter)) => {
                match simple(*letter) {
                    Some(byte) => plain.push(byte),
                    None => plain.extend_from_slice(&[b'\\', *letter]),
                }
                escape.get(2..).unwrap_or_default()
            }
            (None, None, None) => {
                plain.push(b'\\');
                &[]
            }
        };
    }
    plain.extend_from_slice(rest);
    plain
}

/// The byte of an escape of one letter.
fn simple(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'\'' | b'\\' | b'/' | b'`' => letter,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        _ => return None,
    })
}

/// The character of two escapes that are halves of a surrogate pair.
fn pair(text: &[u8]) -> Option<(u32, &[u8])> {
    let (high @ 0xd800..=0xdbff, behind) = numbered(text)? else { return None };
    let (low @ 0xdc00..=0xdfff, behind) = numbered(behind)? else { return None };
    Some((0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00), behind))
}

/// The number of an escape at the beginning of a text, and the rest.
fn numbered(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, behind) = match text {
        [b'\\', b'u' | b'U' | b'x', b'{', inner @ ..] => {
            let window = inner.get(..=BRACED_DIGITS_MAX).unwrap_or(inner);
            let end = memchr(b'}', window)?;
            (inner.get(..end)?, inner.get(end + 1..)?)
        }
        [b'\\', b'u', inner @ ..] => inner.split_at_checked(4)?,
        [b'\\', b'U', inner @ ..] => inner.split_at_checked(8)?,
        [b'\\', b'x' | b'X', inner @ ..] => inner.split_at_checked(2)?,
        _ => return None,
    };
    if digits.is_empty() {
        return None;
    }
    let number = digits.iter().try_fold(0u32, |number, digit| {
        Some(number.checked_mul(16)? + u32::from(hex_digit(*digit)?))
    })?;
    Some((number, behind))
}

fn push(character: u32, to: &mut Vec<u8>) {
    let character = char::from_u32(character).unwrap_or(char::REPLACEMENT_CHARACTER);
    to.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// The content of a quoted cookie, as Python's frameworks decode it: `\073` is a byte in octal digits, and any other byte
/// behind a backslash stands for itself. `text` begins behind the quote. `None`: there is no closing quote.
pub fn cookie_text(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut plain = Vec::new();
    let mut rest = text;
    loop {
        rest = match rest {
            [b'"', behind @ ..] => return Some((plain, behind)),
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', behind @ ..] => {
                plain.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                behind
            }
            [b'\\', byte, behind @ ..] | [byte, behind @ ..] => {
                plain.push(*byte);
                behind
            }
            [] => return None,
        };
    }
}
