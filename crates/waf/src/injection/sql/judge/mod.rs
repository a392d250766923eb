//! The grammar of a value within a query.
//!
//! The reader has two states: it expects an operand, or an operator. It has read valid SQL so far; the first invalid
//! token ends the reading without a verdict. A verdict that depends on an operand waits for the next token: in "1 or 2
//! = 2nd best", this token is a word, so the text is not SQL.

mod endings;
mod operands;
mod operators;

use super::fingerprint::Fingerprint;
use super::selection::Weight;
use super::statements;
use super::strength::{Operand, Origin, Strength};
use super::token::{Class, Token};
use super::tokens::Tokens;

/// The state of the reader after a token.
pub(super) enum Step {
    /// An operand is expected.
    Operand,
    /// An operator is expected.
    Operator,
    /// No injection: the rest is not SQL, or there is no rest.
    Pass,
    /// An injection.
    Found,
}

impl Step {
    fn found_if(found: bool) -> Self {
        if found { Step::Found } else { Step::Pass }
    }
}

/// The reader.
pub(super) struct Judge<'a> {
    tokens: Tokens<'a>,
    /// How the value left the place where it was inserted.
    origin: Option<Origin>,
    /// The quote around the value's place, or 0.
    quote: u8,
    /// Whether the quote is at the start of the value or after the end of a word, so that it ends a text. Otherwise it
    /// may begin one, as in prose.
    is_closing: bool,
    /// The class of the previous token.
    previous: Class,
    /// Number of operators since the value left its place.
    operators: u32,
    /// After AND, OR, WHERE or WHEN: the next operands decide which rows match.
    condition: bool,
    /// The condition follows `if (`, which is code in most languages: only comparisons with a constant result count.
    is_code: bool,
    /// Number of operands other than names.
    values: u32,
    /// The left side of a comparison.
    left: Option<Operand<'a>>,
    /// Whether a comparison waits for its right side.
    compares: bool,
    /// Whether BETWEEN waits for its AND.
    between: bool,
    /// Whether ORDER BY or GROUP BY was read.
    sorts: bool,
    /// Whether LIMIT was read.
    limits: bool,
    /// Whether an operator was read that does not occur in prose.
    bitwise: bool,
    /// Whether the last operator makes a condition of two empty texts; false for operators that occur between quotes in
    /// other languages too.
    is_effective: bool,
    /// The finding that the next operand completes: an attacking call, or a compared one.
    armed: Option<Strength>,
    /// The finding, if the next token is valid.
    held: Option<Strength>,
    nesting: Nesting,
}

/// Open parentheses.
#[derive(Default)]
struct Nesting {
    /// Their number.
    depth: u32,
    /// The depth of a function call that may contain another call.
    call_depth: Option<u32>,
    /// The parentheses that belong to calls: a bit for each of the innermost ones.
    calls: u64,
}

impl<'a> Judge<'a> {
    /// Reads a value that was inserted into a query without quotes.
    pub(super) fn unquoted(tokens: Tokens<'a>) -> Self {
        Self::new(tokens, None)
    }

    /// Reads the rest of a value after the quote that ends its text. `before`: the byte before this quote.
    pub(super) fn quoted(mut tokens: Tokens<'a>, quote: u8, before: Option<u8>) -> Self {
        tokens.begin_with(Class::Text);
        let is_closing =
            before.is_none_or(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b')' | b'%'));
        Self { quote, is_closing, previous: Class::Text, ..Self::new(tokens, Some(Origin::Quote)) }
    }

    fn new(tokens: Tokens<'a>, origin: Option<Origin>) -> Self {
        Self {
            tokens,
            origin,
            quote: 0,
            is_closing: false,
            previous: Class::Semicolon,
            operators: 0,
            condition: false,
            is_code: false,
            values: 0,
            left: origin.map(|_| Operand::Value),
            compares: false,
            between: false,
            sorts: false,
            limits: false,
            bitwise: false,
            is_effective: false,
            armed: None,
            held: None,
            nesting: Nesting::default(),
        }
    }

    /// Reads the text after a nested comment. Databases disagree whether it is part of the query, so it is read as if
    /// it stood alone, and the beginning of a second query is sufficient.
    pub(super) fn is_begun_query(tokens: &mut Tokens<'_>) -> bool {
        if matches!(
            tokens.peek().class,
            Class::Number | Class::Close | Class::Text | Class::Constant
        ) {
            tokens.next();
        }
        tokens.take(Class::Union)
            && matches!(tokens.peek().class, Class::All | Class::Select | Class::Open)
    }

    /// The verdict: the fingerprint of an injection.
    pub(super) fn fingerprint(mut self) -> Option<Fingerprint> {
        self.is_injection().then_some(self.tokens.fingerprint)
    }

    /// Number of bytes examined up to the verdict.
    #[cfg(test)]
    pub(super) fn steps(mut self) -> usize {
        self.is_injection();
        self.tokens.steps()
    }

    fn is_injection(&mut self) -> bool {
        let mut step = if self.origin.is_some() { Step::Operator } else { self.begin() };
        loop {
            let is_operator = match step {
                Step::Operand => false,
                Step::Operator => true,
                Step::Pass => return false,
                Step::Found => return true,
            };
            let token = self.tokens.next();
            step = if is_operator { self.operator(token) } else { self.operand(token) };
            self.previous = token.class;
        }
    }

    /// The first state of a value without quotes.
    fn begin(&mut self) -> Step {
        let first = self.tokens.peek();
        match first.class {
            Class::Logic
            | Class::Where
            | Class::Sort
            | Class::Limit
            | Class::Union
            | Class::Close
            | Class::Semicolon
            | Class::Comma
            | Class::As
            | Class::Into
            | Class::Direction
            | Class::Procedure => {
                self.origin = Some(Origin::Operator);
                Step::Operator
            }
            Class::Compare if self.is_word(&first) => {
                self.origin = Some(Origin::Operator);
                Step::Operator
            }
            Class::Bitwise => Step::Operator,
            Class::Verb(verb) => {
                self.tokens.next();
                Step::found_if(statements::read(verb, &mut self.tokens) == Weight::Sure)
            }
            _ => Step::Operand,
        }
    }

    /// Whether the token is a word, not a sign.
    fn is_word(&self, token: &Token) -> bool {
        self.tokens.bytes(token).first().is_some_and(u8::is_ascii_alphabetic)
    }
}
