//! UTF-8, including malformed sequences.

use super::digits::hex_digits;
use super::replace::replace;
use super::scan;

/// Replaces each non-ASCII character by `%uXXXX` with lower-case digits: five or six of them above U+FFFF, as in ModSecurity
/// and Coraza.
///
/// Overlong forms and surrogates are converted too, as in ModSecurity, because a lenient server decodes `C0 BC` as `<`.
/// ModSecurity then appends a byte that hides the following text; that byte is not written here. Other malformed bytes are
/// unchanged; ModSecurity drops some of them, and Coraza writes `%ufffd`.
pub(super) fn to_percent_u(input: &[u8], output: &mut Vec<u8>) -> bool {
    if input.is_ascii() {
        return false;
    }
    replace(
        input,
        output,
        |rest| scan::position(rest, |byte| byte >= 0x80),
        |rest| match sequence(rest) {
            Some((code, length)) => (length, Some(code)),
            None => (1, None),
        },
        write_percent_u,
    )
}

fn write_percent_u(output: &mut Vec<u8>, code: u32) {
    let [_, plane, high, low] = code.to_be_bytes();
    output.extend_from_slice(b"%u");
    if plane >= 0x10 {
        output.extend_from_slice(&hex_digits(plane));
    } else if plane > 0 {
        output.push(hex_digits(plane)[1]);
    }
    output.extend_from_slice(&hex_digits(high));
    output.extend_from_slice(&hex_digits(low));
}

/// The code point and the length of the multi-byte sequence at the start of the input, including overlong forms and
/// surrogates.
pub(super) fn sequence(input: &[u8]) -> Option<(u32, usize)> {
    let (&lead, rest) = input.split_first()?;
    let (bits, followers) = match lead {
        0xc0..=0xdf => (lead & 0x1f, 1),
        0xe0..=0xef => (lead & 0x0f, 2),
        0xf0..=0xf4 => (lead & 0x07, 3),
        _ => return None,
    };
    let code = rest.get(..followers)?.iter().try_fold(u32::from(bits), |code, &byte| {
        (byte & 0xc0 == 0x80).then_some(code << 6 | u32::from(byte & 0x3f))
    })?;
    (code <= u32::from(char::MAX)).then_some((code, followers + 1))
}

/// The well-formed multi-byte character at the start of the input.
pub(super) fn character(input: &[u8]) -> Option<char> {
    let (code, length) = sequence(input)?;
    char::from_u32(code).filter(|character| character.len_utf8() == length)
}
