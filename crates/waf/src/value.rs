//! Values of the variables that rules write.

use std::borrow::Cow;
use std::sync::Arc;

/// Maximum length of a value, in bytes.
const VALUE_BYTES_MAX: usize = 64 << 10;

/// A number or a byte string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A whole number.
    Number(i64),
    /// A byte string. Clones share it.
    Text(Arc<[u8]>),
}

impl Value {
    /// A value from text. A canonically written integer is stored as a number.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let bytes = &bytes[..bytes.len().min(VALUE_BYTES_MAX)];
        if !matches!(bytes.first(), Some(b'0'..=b'9' | b'-')) {
            return Self::Text(bytes.into());
        }
        let number = number_of(bytes);
        let mut written = itoa_buffer();
        if write_number(number, &mut written) == bytes {
            Self::Number(number)
        } else {
            Self::Text(bytes.into())
        }
    }

    /// The value as a number: the integer prefix of a text.
    pub fn number(&self) -> i64 {
        match self {
            Self::Number(number) => *number,
            Self::Text(bytes) => number_of(bytes),
        }
    }

    /// The value as bytes.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Number(number) => Cow::Owned(number.to_string().into_bytes()),
            Self::Text(bytes) => Cow::Borrowed(bytes),
        }
    }
}

/// A buffer for the longest number.
fn itoa_buffer() -> [u8; 20] {
    [0; 20]
}

/// Writes a number at the end of the buffer. Returns its digits and sign.
fn write_number(number: i64, buffer: &mut [u8; 20]) -> &[u8] {
    let (mut rest, mut at) = (number.unsigned_abs(), buffer.len());
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    &buffer[at..]
}

/// Parses a numeric prefix like C's `atoi`: blanks, a sign, digits; 0 without digits. Saturates at 64 bits.
pub fn number_of(bytes: &[u8]) -> i64 {
    let bytes = bytes.trim_ascii_start();
    let (is_negative, digits) = match bytes.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, bytes),
    };
    let mut number: i64 = 0;
    for digit in digits.iter().take_while(|byte| byte.is_ascii_digit()) {
        let digit = i64::from(digit - b'0');
        number = number.saturating_mul(10);
        number =
            if is_negative { number.saturating_sub(digit) } else { number.saturating_add(digit) };
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts() {
        for (text, number, is_number) in [
            ("", 0, false),
            ("0", 0, true),
            ("007", 7, false),
            ("-5", -5, true),
            ("+5", 5, false),
            (" 12ab", 12, false),
            ("ab", 0, false),
            ("9223372036854775807", i64::MAX, true),
            ("-9223372036854775808", i64::MIN, true),
            ("99999999999999999999", i64::MAX, false),
            ("-0", 0, false),
        ] {
            let value = Value::from_bytes(text.as_bytes());
            assert_eq!(value.number(), number, "{text}");
            assert_eq!(matches!(value, Value::Number(_)), is_number, "{text}");
            assert_eq!(*value.bytes(), *text.as_bytes(), "{text}");
        }
    }
}
