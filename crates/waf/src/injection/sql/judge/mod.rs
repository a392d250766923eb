//! The grammar of a value within a query.
//!
//! The parser has two states: it expects an operand, or an operator. All input so far is valid SQL. The first invalid token
//! ends the parsing without a verdict. A verdict that depends on an operand is postponed to the next token: in "1 or 2 = 2nd
//! best", this token is a word, so the text is not SQL.

mod endings;
mod operands;
mod operators;

use super::fingerprint::Fingerprint;
use super::selection::Weight;
use super::statements;
use super::strength::{Operand, Origin, Strength};
use super::token::{Class, Token};
use super::tokens::Tokens;

/// The state of the parser after a token.
pub(super) enum Step {
    /// An operand is expected.
    Operand,
    /// An operator is expected.
    Operator,
    /// No injection: the rest is not SQL, or the input ends.
    Pass,
    /// An injection.
    Found,
}

impl Step {
    fn found_if(found: bool) -> Self {
        if found { Step::Found } else { Step::Pass }
    }
}

/// The parser of a value within a query.
pub(super) struct Judge<'a> {
    tokens: Tokens<'a>,
    /// How the value broke out of its place in the query.
    origin: Option<Origin>,
    /// The quote around the value's place, or 0.
    quote: u8,
    /// Whether the quote ends a text: it is at the start of the value, or after the end of a word. Otherwise it may begin a
    /// text, as in prose.
    is_closing: bool,
    /// The class of the previous token.
    previous: Class,
    /// Number of operators since the value broke out of its place.
    operators: u32,
    /// Whether AND, OR, WHERE or WHEN precedes, so that the next operands decide which rows match.
    condition: bool,
    /// Whether the condition follows `if (`, which is code in most languages. Only comparisons with a constant result count
    /// then.
    is_code: bool,
    /// Number of operands other than names.
    values: u32,
    /// The left side of a comparison.
    left: Option<Operand<'a>>,
    /// Whether a comparison still needs its right side.
    compares: bool,
    /// Whether a BETWEEN still needs its AND.
    between: bool,
    /// Whether ORDER BY or GROUP BY was parsed.
    sorts: bool,
    /// Whether LIMIT was parsed.
    limits: bool,
    /// Whether an operator that does not occur in prose was parsed.
    bitwise: bool,
    /// Whether the last operator forms a condition with two empty texts. False for operators that also occur between quotes
    /// in other languages.
    is_effective: bool,
    /// The finding that the next operand completes: an attacking call, or the comparison of a call.
    armed: Option<Strength>,
    /// The finding, if the next token is valid.
    held: Option<Strength>,
    nesting: Nesting,
}

/// Open parentheses.
#[derive(Default)]
struct Nesting {
    /// The number of open parentheses.
    depth: u32,
    /// The depth of a function call that may contain another call.
    call_depth: Option<u32>,
    /// The innermost parentheses, one bit each: whether they belong to a call.
    calls: u64,
}

impl<'a> Judge<'a> {
    /// A parser of a value that was inserted into a query without quotes.
    pub(super) fn unquoted(tokens: Tokens<'a>) -> Self {
        Self::new(tokens, None)
    }

    /// A parser of the rest of a value after the quote that ends its text. `before`: the byte before this quote.
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

    /// Whether the text after a nested comment begins a second query. Databases disagree whether this text is part of the
    /// query, so it is parsed alone, and the beginning of a second query is sufficient.
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

    /// The fingerprint if the value is an injection.
    pub(super) fn fingerprint(mut self) -> Option<Fingerprint> {
        self.is_injection().then_some(self.tokens.fingerprint)
    }

    /// The number of bytes inspected up to the verdict.
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

    /// The first state for a value without quotes.
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
