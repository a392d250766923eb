//! ANSI C escapes.

use memchr::memchr;

use super::digits::{hex_pair, octal};
use super::replace::replace_escapes;

/// The control character of a letter after a backslash.
pub(super) fn control(letter: u8) -> Option<u8> {
    match letter {
        b'a' => Some(0x07),
        b'b' => Some(0x08),
        b'f' => Some(0x0c),
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        b't' => Some(b'\t'),
        b'v' => Some(0x0b),
        _ => None,
    }
}

/// Decodes `\n` and similar escapes, `\xHH`, and `\O` to `\OOO`. Before any other byte, the backslash is removed. Of octal
/// numbers above 255, the low byte is used, as in shells. A backslash at the end is unchanged.
pub(super) fn decode(input: &[u8], output: &mut Vec<u8>) -> bool {
    replace_escapes(
        input,
        output,
        |rest| memchr(b'\\', rest),
        |rest| {
            let (&kind, digits) = rest.get(1..)?.split_first()?;
            if let Some(byte) = control(kind) {
                return Some((byte, 2));
            }
            if matches!(kind, b'x' | b'X')
                && let Some(byte) = hex_pair(digits)
            {
                return Some((byte, 4));
            }
            if let Some((value, count)) = octal(rest.get(1..)?) {
                return Some((value.to_le_bytes()[0], 1 + count));
            }
            Some((kind, 2))
        },
    )
}
