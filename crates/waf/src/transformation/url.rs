//! Percent-encoding of URLs and forms.

use memchr::memchr2;

use super::best_fit::best_fit;
use super::digits::{hex_digits, hex_four, hex_pair, narrow};
use super::replace::replace_escapes;
use super::scan;

/// `%XX` and `+`; an invalid escape stands as it is.
pub(super) fn decode(input: &[u8], output: &mut Vec<u8>) -> bool {
    replace_escapes(input, output, |rest| memchr2(b'%', b'+', rest), plain_escape)
}

/// As [`decode`], and `%uXXXX`: the character of ASCII that looks like it, or else the low byte (as ModSecurity does with its Unicode
/// map).
pub(super) fn decode_with_unicode(input: &[u8], output: &mut Vec<u8>) -> bool {
    replace_escapes(
        input,
        output,
        |rest| memchr2(b'%', b'+', rest),
        |rest| match rest {
            [b'%', b'u' | b'U', digits @ ..] => {
                let code = hex_four(digits)?;
                Some((best_fit(code).unwrap_or_else(|| narrow(code)), 6))
            }
            _ => plain_escape(rest),
        },
    )
}

fn plain_escape(rest: &[u8]) -> Option<(u8, usize)> {
    match rest {
        [b'+', ..] => Some((b' ', 1)),
        [b'%', digits @ ..] => Some((hex_pair(digits)?, 3)),
        _ => None,
    }
}

fn stands_for_itself(byte: u8) -> bool {
    byte.is_ascii_digit() | byte.is_ascii_lowercase() | byte.is_ascii_uppercase() | (byte == b'*')
}

/// `+` for the space, `%XX` for all but letters, digits and `*`.
pub(super) fn encode(input: &[u8], output: &mut Vec<u8>) -> bool {
    if !scan::any(input, |byte| !stands_for_itself(byte)) {
        return false;
    }
    output.reserve(input.len());
    for &byte in input {
        match byte {
            b' ' => output.push(b'+'),
            _ if stands_for_itself(byte) => output.push(byte),
            _ => {
                let [high, low] = hex_digits(byte);
                output.extend_from_slice(&[b'%', high, low]);
            }
        }
    }
    true
}
