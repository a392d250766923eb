//! Base64 and hexadecimal digits.

use memchr::memchr2;

use super::digits::{hex_digits, hex_pair};
use super::replace::replace;
use super::scan::tail;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The mark of a byte outside the alphabet.
const NO_DIGIT: u8 = 0xff;

static BASE64_VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < BASE64.len() {
        values[BASE64[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// Decodes Base64 up to the first byte outside the alphabet, as in ModSecurity 2 and Coraza (CRS rules 934 apply it to any
/// argument). Line breaks are skipped, and padding ends the decoding. A value that starts with a byte outside the alphabet
/// becomes empty.
pub(super) fn base64_decode(input: &[u8], output: &mut Vec<u8>) -> bool {
    let digits = input
        .iter()
        .filter(|byte| !matches!(byte, b'\r' | b'\n'))
        .map(|&byte| BASE64_VALUES[usize::from(byte)])
        .take_while(|&value| value != NO_DIGIT);
    base64_bytes(input.len(), digits, output)
}

/// Decodes Base64, and skips bytes outside the alphabet, including padding. The URL alphabet of RFC 4648 section 5 is
/// accepted too, as in Coraza, because tokens use it.
pub(super) fn base64_decode_forgiving(input: &[u8], output: &mut Vec<u8>) -> bool {
    let digits = input
        .iter()
        .map(|&byte| match byte {
            b'-' => 62,
            b'_' => 63,
            _ => BASE64_VALUES[usize::from(byte)],
        })
        .filter(|&value| value != NO_DIGIT);
    base64_bytes(input.len(), digits, output)
}

/// Writes the bytes of Base64 digits. A last group of two or three digits encodes one or two bytes; a single digit encodes
/// no byte.
fn base64_bytes(input_len: usize, digits: impl Iterator<Item = u8>, output: &mut Vec<u8>) -> bool {
    if input_len == 0 {
        return false;
    }
    output.reserve(input_len / 4 * 3 + 3);
    let mut bits = 0u32;
    let mut count = 0;
    for digit in digits {
        bits = bits << 6 | u32::from(digit);
        count += 1;
        if count == 4 {
            let [_, first, second, third] = bits.to_be_bytes();
            output.extend_from_slice(&[first, second, third]);
            (bits, count) = (0, 0);
        }
    }
    match count {
        2 => output.push((bits >> 4) as u8),
        3 => output.extend_from_slice(&[(bits >> 10) as u8, (bits >> 2) as u8]),
        _ => {}
    }
    true
}

/// Base64 of RFC 4648 section 4, with padding.
pub(super) fn base64_encode(input: &[u8], output: &mut Vec<u8>) -> bool {
    if input.is_empty() {
        return false;
    }
    output.reserve(input.len().div_ceil(3) * 4);
    for group in input.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            output.push(if digit > group.len() {
                b'='
            } else {
                BASE64[(bits >> (18 - 6 * digit) & 63) as usize]
            });
        }
    }
    true
}

/// Decodes pairs of digits, up to the first other byte. ModSecurity also decodes other characters, and Coraza rejects the
/// value.
pub(super) fn hex_decode(input: &[u8], output: &mut Vec<u8>) -> bool {
    if input.is_empty() {
        return false;
    }
    output.extend(input.chunks(2).map_while(hex_pair));
    true
}

/// Encodes each byte as two lower-case digits.
pub(super) fn hex_encode(input: &[u8], output: &mut Vec<u8>) -> bool {
    if input.is_empty() {
        return false;
    }
    output.reserve(input.len() * 2);
    output.extend(input.iter().flat_map(|&byte| hex_digits(byte)));
    true
}

/// Replaces each `0x` and the following pairs of digits by the encoded bytes, anywhere in the value.
pub(super) fn sql_hex_decode(input: &[u8], output: &mut Vec<u8>) -> bool {
    replace(
        input,
        output,
        zero_x,
        |rest| {
            let digits = tail(rest, 2);
            match digits.chunks(2).take_while(|pair| hex_pair(pair).is_some()).count() {
                0 => (1, None),
                pairs => (2 + 2 * pairs, digits.get(..2 * pairs)),
            }
        },
        |output, digits| output.extend(digits.chunks(2).map_while(hex_pair)),
    )
}

/// The position of the next `0x`. It searches for the letter, which is rarer than the digit.
fn zero_x(input: &[u8]) -> Option<usize> {
    let mut from = 1;
    loop {
        let letter = from + memchr2(b'x', b'X', tail(input, from))?;
        if input.get(letter - 1) == Some(&b'0') {
            return Some(letter - 1);
        }
        from = letter + 1;
    }
}
