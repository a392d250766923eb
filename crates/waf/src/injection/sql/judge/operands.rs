//! Tokens in place of an operand: values, calls, subqueries.

use super::super::selection::{self, Weight};
use super::super::strength::{self, Operand, Origin, Strength};
use super::super::token::{Class, Token};
use super::{Judge, Step};

impl<'a> Judge<'a> {
    /// Parses a token in place of an operand.
    pub(super) fn operand(&mut self, token: Token) -> Step {
        let next = self.tokens.peek();
        let calls = next.class == Class::Open;
        match token.class {
            Class::Open => {
                self.open();
                // An ODBC escape: the word after the brace is not an operand.
                if self.tokens.bytes(&token) == b"{" && next.class == Class::Name {
                    self.tokens.next();
                }
                Step::Operand
            }
            Class::Close if self.previous == Class::Open => {
                let is_call = self.close();
                self.complete(if is_call { Operand::Computed } else { Operand::Name(b"") })
            }
            Class::Sign | Class::Not | Class::All => Step::Operand,
            Class::Bitwise if self.tokens.bytes(&token) == b"~" => Step::Operand,
            Class::Star if self.previous == Class::Open => self.complete(Operand::Value),
            Class::Number | Class::Text | Class::Constant => self.complete(Operand::Value),
            Class::Variable => {
                if self.condition && self.tokens.bytes(&token).starts_with(b"@@") {
                    self.armed.get_or_insert(Strength::Tautology);
                }
                self.complete(Operand::Computed)
            }
            Class::Exists => self.exists(),
            Class::Select => self.selection(),
            Class::Case
                if matches!(next.class, Class::When | Class::Name | Class::Open)
                    || next.class.is_function() =>
            {
                if self.tokens.take(Class::When) {
                    self.condition = true;
                }
                Step::Operand
            }
            class if class.is_function() && calls => self.call(token),
            // LIKE(a, b), ISNULL(a).
            Class::Compare | Class::Is if calls && self.is_word(&token) => self.call(token),
            // REPLACE and INSERT are also functions.
            Class::Verb(_) if calls && !next.gap && self.operators > 0 => self.unknown_call(),
            Class::Name | Class::Catalog if calls && !next.gap => self.unknown_call(),
            class if class.is_name() => self.complete(Operand::Name(self.tokens.bytes(&token))),
            Class::Union if self.previous == Class::Open && !self.is_loose() => {
                Step::found_if(self.tokens.take(Class::All))
            }
            _ => Step::Pass,
        }
    }

    /// Whether the value began like ordinary text.
    pub(super) fn is_loose(&self) -> bool {
        matches!(self.origin, None | Some(Origin::Name))
    }

    /// Completes an operand, and with it a comparison or an attacking call.
    pub(super) fn complete(&mut self, operand: Operand<'a>) -> Step {
        let origin = *self.origin.get_or_insert(match operand {
            Operand::Value | Operand::Computed
                if self.nesting.call_depth.is_none() && self.previous != Class::Text =>
            {
                Origin::Number
            }
            _ => Origin::Name,
        });
        if let Some(armed) = self.armed.take() {
            self.held = Some(armed);
        } else if self.compares && self.condition {
            let is_code =
                self.is_code && (self.left, operand) != (Some(Operand::Value), Operand::Value);
            self.held =
                self.left.filter(|_| !is_code).map(|left| strength::of_comparison(left, operand));
        } else if self.sorts && origin != Origin::Name && !matches!(operand, Operand::Name(_)) {
            self.held = Some(Strength::IfCommented);
        }
        self.compares = false;
        self.left = Some(operand);
        self.values = self.values.saturating_add(u32::from(self.is_last_value()));
        Step::Operator
    }

    /// Opens a parenthesis. It belongs to a call if the previous token is the name of a function.
    pub(super) fn open(&mut self) {
        self.nesting.depth = self.nesting.depth.saturating_add(1);
        self.nesting.calls = (self.nesting.calls << 1) | u64::from(self.previous.is_function());
    }

    /// Closes a parenthesis. Returns whether it belongs to a call.
    pub(super) fn close(&mut self) -> bool {
        let is_call = self.nesting.calls & 1 == 1;
        self.nesting.calls >>= 1;
        self.nesting.depth = self.nesting.depth.saturating_sub(1);
        is_call
    }

    /// Parses the call of a known function.
    fn call(&mut self, function: Token) -> Step {
        let gap = self.tokens.peek().gap;
        let is_nested = self.nesting.call_depth.is_some_and(|depth| self.nesting.depth > depth);
        let is_loose = self.is_loose();
        let is_attack = match function.class {
            Class::Weapon => !(gap && is_loose),
            Class::Function if is_nested => true,
            Class::Function => {
                (self.origin == Some(Origin::Quote) && self.operators > 0)
                    || (self.condition && !is_loose && !gap)
            }
            _ => self.origin == Some(Origin::Quote) && self.condition && !gap,
        };
        if is_attack {
            self.armed = Some(Strength::Certain);
        }
        self.compare_with_call(Operand::Computed);
        if function.class == Class::Function && self.nesting.call_depth.is_none() {
            self.nesting.call_depth = Some(self.nesting.depth);
        }
        self.origin.get_or_insert(Origin::Name);
        if self.tokens.bytes(&function).eq_ignore_ascii_case(b"if") {
            self.condition = true;
            self.is_code = is_loose;
        }
        Step::Operand
    }

    /// Parses the call of a function that is not in the tables.
    fn unknown_call(&mut self) -> Step {
        self.origin.get_or_insert(Origin::Name);
        if self.origin == Some(Origin::Quote)
            && (self.condition || (self.bitwise && self.is_closing))
        {
            self.armed = Some(Strength::Certain);
        }
        self.compare_with_call(Operand::Name(b""));
        Step::Operand
    }

    /// Compares with a call. The finding is complete after the first operand of the call.
    fn compare_with_call(&mut self, operand: Operand<'a>) {
        let compares = std::mem::take(&mut self.compares) && self.condition && !self.is_code;
        if let (true, None, Some(left)) = (compares, self.armed, self.left) {
            self.armed = Some(strength::of_comparison(left, operand));
        }
    }

    fn exists(&mut self) -> Step {
        match self.tokens.peek().class {
            Class::Open => Step::Operand,
            Class::Close => self.complete(Operand::Computed),
            _ => Step::Pass,
        }
    }

    /// Parses a subquery.
    fn selection(&mut self) -> Step {
        let wanted = match self.origin {
            None | Some(Origin::Name) => Weight::Sure,
            Some(Origin::Quote) => Weight::Phrase,
            Some(Origin::Number | Origin::Operator) => Weight::Likely,
        };
        Step::found_if(selection::read(&mut self.tokens) >= wanted)
    }
}
