//! Digits of escapes, and the bytes that they encode.

use super::best_fit::is_full_width;

const LOWER_HEX: &[u8; 16] = b"0123456789abcdef";

/// The mark of a byte that is not a digit.
const NO_DIGIT: u8 = 0xff;

static HEX_VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut byte = 0;
    while byte < 256 {
        values[byte] = match byte as u8 {
            digit @ b'0'..=b'9' => digit - b'0',
            digit @ b'a'..=b'f' => digit - b'a' + 10,
            digit @ b'A'..=b'F' => digit - b'A' + 10,
            _ => NO_DIGIT,
        };
        byte += 1;
    }
    values
};

/// The value of a hexadecimal digit.
pub(super) fn hex(byte: u8) -> Option<u8> {
    match HEX_VALUES[usize::from(byte)] {
        NO_DIGIT => None,
        value => Some(value),
    }
}

/// The byte that the first two bytes encode in hexadecimal digits.
pub(super) fn hex_pair(input: &[u8]) -> Option<u8> {
    let [high, low] = *input.first_chunk()?;
    Some(hex(high)? << 4 | hex(low)?)
}

/// The number that the first four bytes encode in hexadecimal digits.
pub(super) fn hex_four(input: &[u8]) -> Option<u16> {
    Some(u16::from(hex_pair(input)?) << 8 | u16::from(hex_pair(input.get(2..)?)?))
}

/// The value of up to three octal digits, and the number of digits; `None`: no digit.
pub(super) fn octal(input: &[u8]) -> Option<(u16, usize)> {
    const DIGITS_MAX: usize = 3;
    let digits = input.iter().take(DIGITS_MAX).take_while(|byte| matches!(byte, b'0'..=b'7'));
    let (value, count) = digits
        .fold((0, 0), |(value, count), digit| (value << 3 | u16::from(digit - b'0'), count + 1));
    (count > 0).then_some((value, count))
}

/// The byte for a UTF-16 code unit. Full-width forms become their ASCII characters; of other code units, the low byte is
/// used.
pub(super) fn narrow(code: u16) -> u8 {
    let low = code.to_le_bytes()[0];
    if is_full_width(code) { low + 0x20 } else { low }
}

/// A byte as two lower-case hexadecimal digits.
pub(super) fn hex_digits(byte: u8) -> [u8; 2] {
    [LOWER_HEX[usize::from(byte >> 4)], LOWER_HEX[usize::from(byte & 15)]]
}
