//! An interpreter of SecLang according to the reference manual: it evaluates the directives rule by rule and value by value.
//!
//! **Invariant:** the interpreter shares only these parts with the engine: the parser of directives, transformations,
//! injection detectors, body parsers, and the matching of one pattern with one text. It has no optimizations, so it is slow
//! and simple.

mod effects;
mod expand;
mod machine;
mod markup;
mod message;
mod names;
mod operators;
mod program;
mod targets;

pub use machine::{Held, Machine};
pub use program::{Program, Words};

/// The number at the beginning of a text, as in C's `atoi`.
fn number(text: &[u8]) -> i64 {
    let text = String::from_utf8_lossy(text).into_owned();
    let text = text.trim_start_matches(['\t', '\n', '\x0c', '\r', ' ']);
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1i128, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits: String = digits.chars().take_while(char::is_ascii_digit).take(30).collect();
    let number = sign * digits.parse::<i128>().unwrap_or(0);
    number.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
