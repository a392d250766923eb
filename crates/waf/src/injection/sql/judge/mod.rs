//! The grammar of a value within a query.
//!
//! The reader knows two places: an operand must come, or an operator must. What it reads is valid SQL up to where it stands; the first token
//! that has no place ends the reading without a verdict. A verdict that depends on an operand waits for the token after it: in
//! "1 or 2 = 2nd best" that is a word, and so the text is no SQL.

mod endings;
mod operands;
mod operators;

use super::fingerprint::Fingerprint;
use super::selection::Weight;
use super::statements;
use super::strength::{Operand, Origin, Strength};
use super::token::{Class, Token};
use super::tokens::Tokens;

/// What the reader does after a token.
pub(super) enum Step {
    /// An operand must come.
    Operand,
    /// An operator must come.
    Operator,
    /// No SQL from here on, or nothing left: no injection.
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
    /// How the value left the place it was put in.
    origin: Option<Origin>,
    /// The quote that the value was put into, or 0.
    quote: u8,
    /// Nothing, or the end of a word, stands before that quote: it ends a text. Else it may begin one, as in prose.
    is_closing: bool,
    /// The class of the token before.
    previous: Class,
    /// Operators since the value left its place.
    operators: u32,
    /// AND, OR, WHERE, WHEN: what follows decides which rows are met.
    condition: bool,
    /// That came from `if (`, which is code in most languages: only what is known beforehand counts.
    is_code: bool,
    /// Operands that are no names.
    values: u32,
    /// The left side of a comparison.
    left: Option<Operand<'a>>,
    /// A comparison waits for its right side.
    compares: bool,
    /// BETWEEN waits for its AND.
    between: bool,
    /// ORDER BY or GROUP BY was passed.
    sorts: bool,
    /// LIMIT was passed.
    limits: bool,
    /// An operator was passed that prose does not have.
    bitwise: bool,
    /// The last operator gives a condition to two empty texts: not those that stand between quotes in other languages too.
    is_effective: bool,
    /// What the next operand completes: a call that is an attack, or one that is compared.
    armed: Option<Strength>,
    /// What was found, if the next token is valid.
    held: Option<Strength>,
    nesting: Nesting,
}

/// Parentheses that are open.
#[derive(Default)]
struct Nesting {
    /// How many.
    depth: u32,
    /// The depth at which a function was called that has another one within, perhaps.
    call_depth: Option<u32>,
    /// Which of them are those of a call: a bit for each of the innermost ones.
    calls: u64,
}

impl<'a> Judge<'a> {
    /// Reads a value that stands in a query as it is.
    pub(super) fn unquoted(tokens: Tokens<'a>) -> Self {
        Self::new(tokens, None)
    }

    /// Reads what follows the quote that ends the text a value was put into. `before`: the byte before that quote.
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

    /// Reads what follows a comment within a comment. That is one query to some databases, and another to the rest; what lies after
    /// it is read as if it stood alone, and the beginning of a second query is enough.
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

    /// Bytes looked at up to the verdict.
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

    /// Which place a value begins with, where it stands as it is.
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

    /// Whether a word is meant, rather than a sign.
    fn is_word(&self, token: &Token) -> bool {
        self.tokens.bytes(token).first().is_some_and(u8::is_ascii_alphabetic)
    }
}
