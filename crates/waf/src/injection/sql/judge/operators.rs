//! Tokens in place of an operator: comparisons, AND and OR, clauses.

use super::super::strength::{self, Operand, Origin};
use super::super::token::{Class, Token};
use super::{Judge, Step};

impl Judge<'_> {
    /// Parses a token in place of an operator.
    pub(super) fn operator(&mut self, token: Token) -> Step {
        if let Some(held) = self.held.take() {
            // If the value closed its quote, the application appends the rest of its query, which may be invalid SQL.
            let is_tail = token.class == Class::Other && self.origin == Some(Origin::Quote);
            if !token.class.may_follow_operand() && !is_tail {
                return Step::Pass;
            }
            if strength::suffices(held, self.origin, token.class) {
                return Step::Found;
            }
        }
        if self.bitwise && self.is_closing && self.nesting.depth == 0 && is_binary(token.class) {
            return Step::Found;
        }
        match token.class {
            Class::Compare | Class::In | Class::Is => self.comparison(token),
            Class::Between => {
                self.between = true;
                self.compares = true;
                self.binary()
            }
            Class::Not => match self.tokens.peek().class {
                Class::Compare | Class::In | Class::Between => Step::Operator,
                _ => Step::Pass,
            },
            Class::Assign if self.previous == Class::Variable => Step::Found,
            Class::Star | Class::Arithmetic => self.binary(),
            Class::Sign | Class::Bitwise => {
                self.bitwise |= token.class == Class::Bitwise;
                self.is_effective = true;
                self.binary()
            }
            Class::Logic if std::mem::take(&mut self.between) => self.binary(),
            Class::Logic | Class::Where => {
                self.condition = true;
                self.compares = false;
                self.binary()
            }
            Class::Cast => {
                self.tokens.next();
                Step::Operator
            }
            Class::Comma => {
                self.compares = false;
                Step::Operand
            }
            Class::Close => {
                if self.close() {
                    self.left = Some(Operand::Computed);
                }
                Step::Operator
            }
            Class::Open if self.previous.is_name() => {
                self.open();
                Step::Operand
            }
            Class::Dot if self.previous != Class::Text => {
                if self.tokens.peek().class.is_name() {
                    self.tokens.next();
                }
                Step::Operator
            }
            Class::Text if self.previous == Class::Text => Step::Operator,
            Class::Direction | Class::CaseEnd => Step::Operator,
            Class::When | Class::From if self.nesting.depth > 0 => Step::Operand,
            Class::As => self.alias(),
            _ => self.clause(token),
        }
    }

    /// Parses a token that ends an expression.
    fn clause(&mut self, token: Token) -> Step {
        match token.class {
            Class::Union => self.union(),
            Class::Sort => {
                self.sorts = true;
                self.condition = false;
                if self.tokens.take(Class::By) { Step::Operand } else { Step::Pass }
            }
            Class::Limit => {
                self.limits = true;
                self.condition = false;
                Step::Operand
            }
            Class::Into => {
                Step::found_if(matches!(self.tokens.peek().class, Class::File | Class::Variable))
            }
            Class::Procedure => {
                let name = self.tokens.next();
                Step::found_if(name.class == Class::Name && self.tokens.peek().class == Class::Open)
            }
            Class::Semicolon => self.stacked(),
            Class::Select | Class::Verb(_) => self.adjacent_statement(token.class),
            Class::Weapon
                if self.origin == Some(Origin::Quote)
                    && self.tokens.peek().class == Class::Open =>
            {
                Step::Found
            }
            Class::Comment => Step::found_if(self.is_cut_off(token)),
            Class::End => Step::found_if(self.ends_in_text()),
            _ => Step::Pass,
        }
    }

    /// Parses an operator with an operand on each side.
    fn binary(&mut self) -> Step {
        self.operators = self.operators.saturating_add(1);
        Step::Operand
    }

    fn comparison(&mut self, token: Token) -> Step {
        while self.tokens.peek().class == Class::Not {
            self.tokens.next();
        }
        let next = self.tokens.peek();
        let sound = match token.class {
            Class::In => matches!(next.class, Class::Open | Class::Variable),
            Class::Is => {
                matches!(next.class, Class::Constant | Class::All)
                    || self.tokens.bytes(&token).len() > 2
            }
            _ => true,
        };
        if !sound {
            return Step::Pass;
        }
        // ISNULL and NOTNULL have no right side.
        if self.tokens.bytes(&token).len() > 2 && token.class == Class::Is {
            return self.complete(Operand::Computed);
        }
        self.compares = true;
        self.is_effective = !self.is_word(&token);
        // SOUNDS LIKE, SIMILAR TO.
        if !self.tokens.take(Class::Compare) {
            self.tokens.take(Class::To);
        }
        self.binary()
    }

    /// Parses AS, which a name or a type follows.
    fn alias(&mut self) -> Step {
        let name = self.tokens.next().class;
        if name.is_name() || name == Class::Text { Step::Operator } else { Step::Pass }
    }
}

fn is_binary(class: Class) -> bool {
    matches!(
        class,
        Class::Sign
            | Class::Star
            | Class::Arithmetic
            | Class::Bitwise
            | Class::Compare
            | Class::Logic
    )
}
