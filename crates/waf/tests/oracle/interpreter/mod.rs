//! SecLang as the reference manual tells it: rule after rule, value after value, on the directives themselves.
//!
//! **Invariant:** nothing here is shared with the engine but the parser, transformations, detectors of injections, readers of bodies, and how
//! one pattern matches one text. There is no shortcut; it is slow, and that is its merit.

mod effects;
mod expand;
mod machine;
mod message;
mod names;
mod operators;
mod program;
mod targets;

pub use machine::{Held, Machine};
pub use program::{Program, Words};

/// The number that a text begins with, as C's `atoi` has it.
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
