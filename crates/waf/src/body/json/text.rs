//! JSON strings, decoded incrementally.

use super::super::limits;
use super::super::problem::Problem;
use super::super::query::hex_digit;

/// A string without its quotes, or the text of a number.
#[derive(Debug, Clone, Default)]
pub(super) struct Text {
    bytes: Vec<u8>,
    escape: Escape,
    /// The first half of a surrogate pair, until the second half is parsed.
    high: Option<u16>,
    lone_surrogate: bool,
}

#[derive(Debug, Clone, Copy, Default)]
enum Escape {
    #[default]
    Nothing,
    Backslash,
    /// `\u`, with the number of its digits so far and their value.
    Unicode(u8, u16),
}

/// The result of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The string continues.
    More,
    /// The string has ended.
    End,
    /// The string is longer than the limit.
    Full,
    Wrong(Problem),
}

const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

impl Text {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.escape = Escape::Nothing;
        self.high = None;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether any string so far had an unpaired surrogate.
    pub(super) fn lone_surrogate(&self) -> bool {
        self.lone_surrogate
    }

    /// The number of literal bytes at the start of the input.
    pub(super) fn plain(&self, bytes: &[u8]) -> usize {
        match (self.escape, self.high) {
            (Escape::Nothing, None) => bytes
                .iter()
                .position(|byte| matches!(byte, 0..=0x1f | b'"' | b'\\'))
                .unwrap_or(bytes.len()),
            _ => 0,
        }
    }

    /// Adds literal bytes. Returns the number of bytes added.
    pub(super) fn append(&mut self, bytes: &[u8], bytes_max: u32) -> usize {
        limits::append(&mut self.bytes, bytes, bytes_max)
    }

    /// Parses a byte after the opening quote.
    pub(super) fn byte(&mut self, byte: u8, bytes_max: u32) -> Step {
        match self.escape {
            Escape::Nothing => self.outside(byte, bytes_max),
            Escape::Backslash => self.escaped(byte, bytes_max),
            Escape::Unicode(digits, number) => match hex_digit(byte) {
                None => Step::Wrong(Problem::JsonString),
                Some(digit) => {
                    let number = number << 4 | u16::from(digit);
                    if digits < 3 {
                        self.escape = Escape::Unicode(digits + 1, number);
                        return Step::More;
                    }
                    self.escape = Escape::Nothing;
                    self.unit(number, bytes_max)
                }
            },
        }
    }

    fn outside(&mut self, byte: u8, bytes_max: u32) -> Step {
        if byte == b'\\' {
            self.escape = Escape::Backslash;
            return Step::More;
        }
        if !self.end_pair(bytes_max) {
            return Step::Full;
        }
        match byte {
            b'"' if std::str::from_utf8(&self.bytes).is_err() => Step::Wrong(Problem::Utf8),
            b'"' => Step::End,
            0..=0x1f => Step::Wrong(Problem::JsonString),
            _ => self.push(&[byte], bytes_max),
        }
    }

    fn escaped(&mut self, byte: u8, bytes_max: u32) -> Step {
        let character = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                self.escape = Escape::Unicode(0, 0);
                return Step::More;
            }
            _ => return Step::Wrong(Problem::JsonString),
        };
        self.escape = Escape::Nothing;
        if !self.end_pair(bytes_max) {
            return Step::Full;
        }
        self.push(&[character], bytes_max)
    }

    /// Adds a UTF-16 code unit.
    fn unit(&mut self, unit: u16, bytes_max: u32) -> Step {
        if let (Some(high), 0xdc00..=0xdfff) = (self.high, unit) {
            self.high = None;
            let character = 0x1_0000 + (u32::from(high - 0xd800) << 10) + u32::from(unit - 0xdc00);
            return self.push_char(char::from_u32(character).unwrap_or(REPLACEMENT), bytes_max);
        }
        if !self.end_pair(bytes_max) {
            return Step::Full;
        }
        match unit {
            0xd800..=0xdbff => {
                self.high = Some(unit);
                Step::More
            }
            0xdc00..=0xdfff => {
                self.lone_surrogate = true;
                self.push_char(REPLACEMENT, bytes_max)
            }
            _ => self.push_char(char::from_u32(u32::from(unit)).unwrap_or(REPLACEMENT), bytes_max),
        }
    }

    /// Replaces an unpaired surrogate. Returns whether the replacement fits.
    fn end_pair(&mut self, bytes_max: u32) -> bool {
        if self.high.take().is_none() {
            return true;
        }
        self.lone_surrogate = true;
        self.push_char(REPLACEMENT, bytes_max) == Step::More
    }

    fn push_char(&mut self, character: char, bytes_max: u32) -> Step {
        self.push(character.encode_utf8(&mut [0; 4]).as_bytes(), bytes_max)
    }

    fn push(&mut self, bytes: &[u8], bytes_max: u32) -> Step {
        if self.append(bytes, bytes_max) < bytes.len() { Step::Full } else { Step::More }
    }
}
