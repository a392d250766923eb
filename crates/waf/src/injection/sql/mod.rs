//! SQL injection.
//!
//! A value is parsed in each context where an application may have inserted it into a query: without quotes, within single
//! quotes, or within double quotes. It is parsed in both dialects if databases disagree on its comments and strings. `judge`
//! parses the tokens by a grammar with two states: it expects an operand, or an operator. Ordinary text ends the parsing at
//! once, because two adjacent words are not SQL. Valid SQL is judged by its effect: `judge` handles conditions, calls,
//! comments and clauses, `selection` the operands of SELECT, and `statements` the other statements.
//!
//! The method of parsing tokens in several contexts comes from libinjection. Instead of its table of fingerprints, this
//! detector uses a grammar, which parses the whole value rather than five tokens.

mod fingerprint;
mod judge;
mod lexer;
mod literals;
mod selection;
mod statements;
mod strength;
mod token;
mod tokens;
mod words;

#[cfg(test)]
mod tests;

pub use fingerprint::{FINGERPRINT_CHARS_MAX, Fingerprint};

use judge::Judge;
use lexer::Dialect;
use tokens::Tokens;

/// Whether the input is SQL that changes a query into which it is inserted without quotes, or within single or double
/// quotes. If so, returns the fingerprint of its tokens.
pub fn detect_sql(input: &[u8]) -> Option<Fingerprint> {
    let look = ValueScan::at(input);
    if look.is_one_word {
        return None;
    }
    let dialects: &[Dialect] =
        if look.dialects_differ { &[Dialect::MySql, Dialect::Ansi] } else { &[Dialect::MySql] };
    for &dialect in dialects {
        let unquoted = Judge::unquoted(Tokens::new(input, 0, dialect)).fingerprint();
        if unquoted.is_some() {
            return unquoted;
        }
        for (quote, is_there) in [(b'\'', look.single_quote), (b'"', look.double_quote)] {
            let end =
                is_there.then(|| literals::text_end(input, 0, quote, dialect == Dialect::MySql));
            if let Some(end) = end.flatten() {
                let before = end.checked_sub(2).and_then(|before| input.get(before)).copied();
                let quoted =
                    Judge::quoted(Tokens::new(input, end, dialect), quote, before).fingerprint();
                if quoted.is_some() {
                    return quoted;
                }
            }
        }
    }
    if look.dialects_differ { after_nested_comment(input) } else { None }
}

/// Whether the byte is significant in SQL. Every injection has at least one significant byte.
pub fn may_be_sql(byte: u8) -> bool {
    MEANINGS[usize::from(byte)] != PLAIN || byte == b'-'
}

/// The fingerprint of an injection after a nested comment. Ordinary queries have no nested comments. Databases disagree on
/// them: some execute text that others treat as a comment.
fn after_nested_comment(input: &[u8]) -> Option<Fingerprint> {
    let end = literals::nested_comment_end(input)?;
    let mut tokens = Tokens::new(input, end, Dialect::MySql);
    Judge::is_begun_query(&mut tokens).then_some(tokens.fingerprint)
}

/// The result of one pass over the bytes.
struct ValueScan {
    /// Whether the value has only letters, digits and a few signs without effect. Such a value is one token, which changes
    /// no query.
    is_one_word: bool,
    single_quote: bool,
    double_quote: bool,
    dialects_differ: bool,
}

/// The meaning of a byte, as bits.
const PLAIN: u8 = 0;
const BREAKS: u8 = 1;
const SINGLE: u8 = 2;
const DOUBLE: u8 = 4;
const DIFFERS: u8 = 8;

const MEANINGS: [u8; 256] = {
    let mut meanings = [PLAIN; 256];
    let mut byte = 0;
    while byte < 256 {
        let is_word = (byte as u8).is_ascii_alphanumeric()
            || matches!(byte as u8, b'_' | b'.' | b'-' | b':')
            || byte > 0xa0;
        meanings[byte] = match byte as u8 {
            b'\'' => SINGLE | BREAKS,
            b'"' => DOUBLE | BREAKS,
            b'\\' | b'#' | b'|' | b'/' => DIFFERS | BREAKS,
            _ if is_word => PLAIN,
            _ => BREAKS,
        };
        byte += 1;
    }
    meanings
};

impl ValueScan {
    fn at(input: &[u8]) -> Self {
        let seen = input.iter().fold(PLAIN, |seen, byte| {
            seen | MEANINGS.get(usize::from(*byte)).copied().unwrap_or(BREAKS)
        });
        let dashes = literals::find_pair(input, *b"--").is_some();
        Self {
            is_one_word: seen == PLAIN && !dashes,
            single_quote: seen & SINGLE != 0,
            double_quote: seen & DOUBLE != 0,
            dialects_differ: seen & DIFFERS != 0 || dashes,
        }
    }
}
