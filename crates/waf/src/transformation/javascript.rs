//! JavaScript escapes.

use memchr::memchr;

use super::digits::{hex_four, hex_pair, narrow, octal};
use super::escapes::control;
use super::replace::replace_escapes;

/// Decodes `\uHHHH`, `\xHH`, `\O` to `\377`, `\n` and similar escapes. Of `\uHHHH`, the low byte is used, and full-width
/// forms become their ASCII characters. Before any other byte, the backslash is removed. A backslash at the end is
/// unchanged.
pub(super) fn decode(input: &[u8], output: &mut Vec<u8>) -> bool {
    replace_escapes(
        input,
        output,
        |rest| memchr(b'\\', rest),
        |rest| {
            let (&kind, digits) = rest.get(1..)?.split_first()?;
            if kind == b'u'
                && let Some(code) = hex_four(digits)
            {
                return Some((narrow(code), 6));
            }
            if kind == b'x'
                && let Some(byte) = hex_pair(digits)
            {
                return Some((byte, 4));
            }
            if let Some((value, count)) = octal(rest.get(1..)?) {
                return Some(match u8::try_from(value) {
                    Ok(byte) => (byte, 1 + count),
                    // If a third digit would exceed the range of a byte, that digit is text.
                    Err(_) => ((value >> 3).to_le_bytes()[0], count),
                });
            }
            Some((control(kind).unwrap_or(kind), 2))
        },
    )
}
