//! Percent-encoding of URLs and forms.

use memchr::{memchr, memchr2};

use super::best_fit::best_fit;
use super::digits::{hex_digits, hex_four, hex_pair, narrow};
use super::scan;

/// Decodes `%XX` and `+`. An invalid escape is unchanged.
pub(super) fn decode(input: &[u8], output: &mut Vec<u8>) -> bool {
    decoded(input, output, escape)
}

/// Like [`decode`], but also decodes `%uXXXX`: to the best-fit ASCII character, or else to the low byte, as ModSecurity does
/// with its Unicode map.
pub(super) fn decode_with_unicode(input: &[u8], output: &mut Vec<u8>) -> bool {
    decoded(input, output, |rest| match rest {
        [b'%', b'u' | b'U', digits @ ..] => {
            let code = hex_four(digits)?;
            Some((best_fit(code).unwrap_or_else(|| narrow(code)), 6))
        }
        _ => escape(rest),
    })
}

fn escape(rest: &[u8]) -> Option<(u8, usize)> {
    match rest {
        [b'%', digits @ ..] => Some((hex_pair(digits)?, 3)),
        _ => None,
    }
}

/// Replaces each `+` by a space. `escape` returns the value of an escape at a `%`, and its length.
fn decoded(
    input: &[u8],
    output: &mut Vec<u8>,
    escape: impl Fn(&[u8]) -> Option<(u8, usize)>,
) -> bool {
    if memchr2(b'%', b'+', input).is_none() {
        return false;
    }
    output.reserve(input.len());
    let (mut rest, mut is_changed) = (input, false);
    loop {
        let plain = memchr(b'%', rest).unwrap_or(rest.len());
        let (words, escaped) = rest.split_at_checked(plain).unwrap_or((rest, &[]));
        output.extend(words.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }));
        let Some(first) = escaped.first() else { break };
        let (byte, length) = match escape(escaped) {
            Some(found) => {
                is_changed = true;
                found
            }
            None => (*first, 1),
        };
        output.push(byte);
        rest = scan::tail(escaped, length);
    }
    is_changed |= memchr(b'+', input).is_some();
    if !is_changed {
        output.clear();
    }
    is_changed
}

fn stands_for_itself(byte: u8) -> bool {
    byte.is_ascii_digit() | byte.is_ascii_lowercase() | byte.is_ascii_uppercase() | (byte == b'*')
}

/// Encodes spaces as `+`, and all other bytes except letters, digits and `*` as `%XX`.
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
