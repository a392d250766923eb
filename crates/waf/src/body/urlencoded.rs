//! `application/x-www-form-urlencoded` bodies (WHATWG URL section 5.1), parsed incrementally.
//!
//! The body is split at the separator, and each piece at its first `=`. Then both parts are decoded. `+` is a space. `%`
//! without two hexadecimal digits is unchanged, as in ModSecurity, and counts as a bad escape (URLENCODED_ERROR). Empty
//! pieces are skipped, as in servers; ModSecurity delivers an empty argument for each of them.

use memchr::{memchr2, memchr3};

use super::differences::{Difference, Differences};
use super::limits::{self, Limits};
use super::problem::{Failure, Problem};
use super::query::{escape, hex_digit};
use super::sink::Sink;

/// An incremental parser.
#[derive(Debug, Clone)]
pub struct UrlEncoded {
    separator: u8,
    limits: Limits,
    name: Vec<u8>,
    value: Vec<u8>,
    in_value: bool,
    escape: Escape,
    arguments: u32,
    bad_escapes: u64,
    offset: u64,
    failure: Option<Failure>,
}

/// The part of `%hh` read so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    Nothing,
    Percent,
    Digit(u8),
}

impl UrlEncoded {
    /// A parser before the first byte. The separator is `&`, except for old applications (ModSecurity's
    /// SecArgumentSeparator).
    pub fn new(separator: u8, limits: Limits) -> Self {
        Self {
            separator,
            limits,
            name: Vec::new(),
            value: Vec::new(),
            in_value: false,
            escape: Escape::Nothing,
            arguments: 0,
            bad_escapes: 0,
            offset: 0,
            failure: None,
        }
    }

    /// Parses the next piece of the body, which may be split anywhere.
    pub fn feed(&mut self, bytes: &[u8], to: &mut impl Sink) {
        let mut rest = bytes;
        while self.failure.is_none() && !rest.is_empty() {
            let plain = match self.escape {
                Escape::Nothing => self.special(rest).unwrap_or(rest.len()),
                Escape::Percent | Escape::Digit(_) => 0,
            };
            let (run, others) = rest.split_at(plain);
            if !run.is_empty() {
                self.push(run, true, to);
                rest = others;
            } else if let Some((byte, others)) = self.escaped(others) {
                self.offset += 2;
                self.push(&[byte], false, to);
                self.offset += 1;
                rest = others;
            } else if let Some((byte, others)) = others.split_first() {
                self.byte(*byte, to);
                self.offset += 1;
                rest = others;
            }
        }
    }

    /// Ends the body.
    pub fn finish(&mut self, to: &mut impl Sink) {
        self.end_escape(to);
        self.end_piece(to);
    }

    /// The problem that ended the parsing, if any.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// The number of `%` without two hexadecimal digits.
    pub fn bad_escapes(&self) -> u64 {
        self.bad_escapes
    }

    /// The differences found so far.
    pub fn differences(&self) -> Differences {
        if self.bad_escapes == 0 {
            Differences::NONE
        } else {
            Differences::NONE.with(Difference::InvalidEscape)
        }
    }

    /// The byte of an escape whose three bytes are all in `bytes`, and the rest.
    fn escaped<'a>(&self, bytes: &'a [u8]) -> Option<(u8, &'a [u8])> {
        let (sign, behind) = bytes.split_first()?;
        let is_escape = *sign == b'%' && self.escape == Escape::Nothing;
        let is_cut = bytes.iter().take(3).any(|byte| *byte == self.separator);
        escape(behind).filter(|_| is_escape && !is_cut)
    }

    /// The position of the first byte that is neither literal nor a space.
    fn special(&self, bytes: &[u8]) -> Option<usize> {
        match self.in_value {
            true => memchr2(self.separator, b'%', bytes),
            false => memchr3(self.separator, b'%', b'=', bytes),
        }
    }

    fn byte(&mut self, byte: u8, to: &mut impl Sink) {
        if byte == self.separator {
            self.end_escape(to);
            return self.end_piece(to);
        }
        match (self.escape, hex_digit(byte)) {
            (Escape::Percent, Some(_)) => return self.escape = Escape::Digit(byte),
            (Escape::Digit(first), Some(low)) => {
                self.escape = Escape::Nothing;
                let high = hex_digit(first).unwrap_or_default();
                return self.push(&[high << 4 | low], false, to);
            }
            (Escape::Nothing, _) => {}
            (Escape::Percent | Escape::Digit(_), None) => self.end_escape(to),
        }
        match byte {
            b'=' if !self.in_value => self.in_value = true,
            b'%' => self.escape = Escape::Percent,
            b'+' => self.push(b" ", false, to),
            _ => self.push(&[byte], false, to),
        }
    }

    /// Treats an incomplete escape as text.
    fn end_escape(&mut self, to: &mut impl Sink) {
        let escape = std::mem::replace(&mut self.escape, Escape::Nothing);
        match escape {
            Escape::Nothing => return,
            Escape::Percent => self.push(b"%", false, to),
            Escape::Digit(digit) => self.push(&[b'%', digit], false, to),
        }
        self.bad_escapes += 1;
    }

    /// Adds bytes to the name or value. `counted`: the bytes are copied from the body, so `+` becomes a space and the offset
    /// advances.
    fn push(&mut self, bytes: &[u8], counted: bool, to: &mut impl Sink) {
        if self.failure.is_some() {
            return;
        }
        let (buffer, bytes_max, problem) = if self.in_value {
            (&mut self.value, self.limits.value_bytes_max, Problem::ValueLimit)
        } else {
            (&mut self.name, self.limits.name_bytes_max, Problem::NameLimit)
        };
        let before = buffer.len();
        let taken = limits::append(buffer, bytes, bytes_max);
        if counted {
            // Without a branch, because every sixth byte of prose is a space.
            let added = buffer.get_mut(before..).unwrap_or_default();
            added.iter_mut().for_each(|byte| *byte = if *byte == b'+' { b' ' } else { *byte });
            self.offset += taken as u64;
        }
        if taken < bytes.len() {
            self.end_piece(to);
            self.fail(problem);
        }
    }

    fn end_piece(&mut self, to: &mut impl Sink) {
        if self.failure.is_some() || (self.name.is_empty() && !self.in_value) {
            return;
        }
        if self.arguments >= self.limits.arguments_max {
            return self.fail(Problem::ArgumentsLimit);
        }
        to.argument(&self.name, &self.value);
        self.arguments += 1;
        self.in_value = false;
        self.name.clear();
        self.value.clear();
    }

    /// Records the first problem.
    fn fail(&mut self, problem: Problem) {
        let offset = self.offset;
        self.failure.get_or_insert(Failure { problem, offset });
    }
}

#[cfg(test)]
mod tests;
