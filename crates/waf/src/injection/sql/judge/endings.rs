//! Tokens that end the query into which a value was inserted: a second query, another statement, a comment, or the text
//! after the value.
//! that follows.

use super::super::selection::{self, Weight};
use super::super::statements;
use super::super::strength::{Operand, Origin};
use super::super::token::{Class, Token};
use super::{Judge, Step};

impl Judge<'_> {
    /// Parses UNION: an injection if a second query follows.
    pub(super) fn union(&mut self) -> Step {
        while self.tokens.take(Class::All) || self.tokens.take(Class::Open) {}
        let is_row = self.tokens.take(Class::Values);
        if is_row || (!self.is_loose() && self.tokens.take(Class::Object)) {
            self.tokens.take(Class::Values);
            let next = self.tokens.peek().class;
            return Step::found_if(next == Class::Open || (!is_row && next.is_name()));
        }
        if !self.tokens.take(Class::Select) {
            return Step::Pass;
        }
        let first = self.tokens.peek().class;
        let wanted = match self.origin {
            Some(Origin::Quote | Origin::Number) => Weight::None,
            _ if first == Class::End && self.tokens.commented() => Weight::None,
            _ => Weight::Likely,
        };
        Step::found_if(selection::read(&mut self.tokens) >= wanted)
    }

    /// Parses a semicolon: another statement may follow.
    pub(super) fn stacked(&mut self) -> Step {
        let wanted = match self.origin {
            Some(Origin::Quote | Origin::Number) => Weight::Likely,
            _ => Weight::Sure,
        };
        while self.tokens.take(Class::Open) || self.tokens.take(Class::Semicolon) {}
        let first = self.tokens.next().class;
        match first {
            Class::Select => Step::found_if(selection::read(&mut self.tokens) >= wanted),
            Class::Verb(verb) => Step::found_if(statements::read(verb, &mut self.tokens) >= wanted),
            Class::Comment => Step::found_if(self.origin == Some(Origin::Quote)),
            _ => Step::Pass,
        }
    }

    /// Parses a statement without a preceding semicolon, as SQL Server permits.
    pub(super) fn adjacent_statement(&mut self, first: Class) -> Step {
        if self.origin == Some(Origin::Name) && self.previous != Class::Close {
            return Step::Pass;
        }
        let weight = match first {
            Class::Verb(verb) => statements::read(verb, &mut self.tokens),
            _ => selection::read(&mut self.tokens),
        };
        let wanted = if self.origin == Some(Origin::Quote) { Weight::Likely } else { Weight::Sure };
        Step::found_if(weight >= wanted)
    }

    /// Whether a comment hides the rest of a query and so completes an attack.
    pub(super) fn is_cut_off(&self, comment: Token) -> bool {
        let bytes = self.tokens.bytes(&comment);
        let is_hash = bytes.first() == Some(&b'#');
        let text = bytes.get(if is_hash { 1 } else { 2 }..).unwrap_or_default();
        let is_blank = text.iter().all(|byte| matches!(byte, b' ' | b'-' | b'+'));
        // `"#1"` and `'--help'` may begin a quoted text, and `#1` may follow an apostrophe: `Dads' #1`.
        let begins_word = is_hash || text.first().is_some_and(u8::is_ascii_alphanumeric);
        let is_word = (is_hash && comment.gap) || (begins_word && text.contains(&self.quote));
        match self.origin {
            Some(Origin::Quote) if self.operators == 0 => is_blank || (self.is_closing && !is_word),
            Some(Origin::Quote) => self.is_last_value() || self.limits || self.sorts,
            Some(Origin::Operator) => (self.condition || self.sorts) && self.is_last_value(),
            Some(Origin::Number) if self.operators == 0 => is_blank && !is_hash && !comment.gap,
            Some(Origin::Number) => {
                (self.condition && self.is_last_value() || self.sorts || self.limits) && is_blank
            }
            Some(Origin::Name) | None => false,
        }
    }

    /// Whether the value ends in a text after an operator, and the query's own quote closes this text: `' or '1`, `'='`.
    pub(super) fn ends_in_text(&self) -> bool {
        if !self.is_closing || self.operators == 0 || self.previous != Class::Text {
            return false;
        }
        let text = self.tokens.last();
        match self.tokens.bytes(&text).get(1) {
            _ if text.open_quote != self.quote => false,
            None => self.values > 1 || (!self.condition && self.is_effective),
            Some(first) => first.is_ascii_alphanumeric() || matches!(first, b'%' | b'_' | b'^'),
        }
    }

    /// Whether the previous operand is not just a name.
    pub(super) fn is_last_value(&self) -> bool {
        matches!(self.left, Some(Operand::Value | Operand::Computed))
    }
}
