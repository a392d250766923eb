//! The grammar of a value within a query.
//!
//! The reader knows two places: an operand must come, or an operator must. What it reads is valid SQL up to where it stands; the first token
//! that has no place ends the reading without a verdict. A verdict that depends on an operand waits for the token after it: in
//! "1 or 2 = 2nd best" that is a word, and so the text is no SQL.

use super::fingerprint::Fingerprint;
use super::selection::{self, Weight};
use super::statements;
use super::strength::{self, Operand, Origin, Strength};
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
    /// Parentheses that are open.
    depth: u32,
    /// The depth at which a function was called that has another one within, perhaps.
    call_depth: Option<u32>,
    /// Which of the open parentheses are those of a call: a bit for each of the innermost ones.
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
            depth: 0,
            call_depth: None,
            calls: 0,
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
                if self.tokens.peek().class == Class::Open && !self.tokens.peek().gap {
                    return Step::found_if(
                        statements::read(verb, &mut self.tokens) == Weight::Sure,
                    );
                }
                Step::found_if(statements::read(verb, &mut self.tokens) == Weight::Sure)
            }
            _ => Step::Operand,
        }
    }

    /// Whether a word is meant, rather than a sign.
    fn is_word(&self, token: &Token) -> bool {
        self.tokens.bytes(token).first().is_some_and(u8::is_ascii_alphabetic)
    }

    /// Reads a token where an operand must come.
    fn operand(&mut self, token: Token) -> Step {
        let next = self.tokens.peek();
        let calls = next.class == Class::Open;
        match token.class {
            Class::Open => {
                self.open();
                // An ODBC escape: the word after the brace is no operand.
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
            // REPLACE, INSERT: also functions.
            Class::Verb(_) if calls && !next.gap && self.operators > 0 => self.unknown_call(),
            Class::Name | Class::Catalog if calls && !next.gap => self.unknown_call(),
            class if class.is_name() => self.complete(Operand::Name(self.tokens.bytes(&token))),
            Class::Union if self.previous == Class::Open && !self.is_loose() => {
                Step::found_if(self.tokens.take(Class::All))
            }
            _ => Step::Pass,
        }
    }

    /// Whether the value began as ordinary text does.
    fn is_loose(&self) -> bool {
        matches!(self.origin, None | Some(Origin::Name))
    }

    /// An operand is complete: the end of a comparison, or of a call that is an attack.
    fn complete(&mut self, operand: Operand<'a>) -> Step {
        let origin = *self.origin.get_or_insert(match operand {
            Operand::Value | Operand::Computed
                if self.call_depth.is_none() && self.previous != Class::Text =>
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

    /// A parenthesis opens: that of a call, if the token before is a name.
    fn open(&mut self) {
        self.depth = self.depth.saturating_add(1);
        self.calls = (self.calls << 1) | u64::from(self.previous.is_function());
    }

    /// A parenthesis closes. True: it ends a call.
    fn close(&mut self) -> bool {
        let is_call = self.calls & 1 == 1;
        self.calls >>= 1;
        self.depth = self.depth.saturating_sub(1);
        is_call
    }

    /// A known function is called.
    fn call(&mut self, function: Token) -> Step {
        let gap = self.tokens.peek().gap;
        let is_nested = self.call_depth.is_some_and(|depth| self.depth > depth);
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
        if function.class == Class::Function && self.call_depth.is_none() {
            self.call_depth = Some(self.depth);
        }
        self.origin.get_or_insert(Origin::Name);
        if self.tokens.bytes(&function).eq_ignore_ascii_case(b"if") {
            self.condition = true;
            self.is_code = is_loose;
        }
        Step::Operand
    }

    /// A function is called that is not in the tables.
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

    /// The right side of a comparison is a call: that says enough, once the call has an operand.
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

    /// A query within the query.
    fn selection(&mut self) -> Step {
        let wanted = match self.origin {
            None | Some(Origin::Name) => Weight::Sure,
            Some(Origin::Quote) => Weight::Phrase,
            Some(Origin::Number | Origin::Operator) => Weight::Likely,
        };
        Step::found_if(selection::read(&mut self.tokens) >= wanted)
    }

    /// Reads a token where an operator must come.
    fn operator(&mut self, token: Token) -> Step {
        if let Some(held) = self.held.take() {
            if !token.class.may_follow_operand() {
                return Step::Pass;
            }
            if strength::suffices(held, self.origin, token.class) {
                return Step::Found;
            }
        }
        if self.bitwise && self.is_closing && self.depth == 0 && is_binary(token.class) {
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
            Class::When | Class::From if self.depth > 0 => Step::Operand,
            Class::As => self.alias(),
            _ => self.clause(token),
        }
    }

    /// Reads a token that ends an expression.
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

    /// An operator with an operand on each side.
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

    /// AS: a name follows, or a type.
    fn alias(&mut self) -> Step {
        let name = self.tokens.next().class;
        if name.is_name() || name == Class::Text { Step::Operator } else { Step::Pass }
    }

    /// UNION: with what follows, a second query.
    fn union(&mut self) -> Step {
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

    /// A semicolon: another statement may follow.
    fn stacked(&mut self) -> Step {
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

    /// A statement without a semicolon before it, as SQL Server permits.
    fn adjacent_statement(&mut self, first: Class) -> Step {
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

    /// Whether a comment hides the rest of a query in a way that serves an attack.
    fn is_cut_off(&self, comment: Token) -> bool {
        let bytes = self.tokens.bytes(&comment);
        let is_hash = bytes.first() == Some(&b'#');
        let text = bytes.get(if is_hash { 1 } else { 2 }..).unwrap_or_default();
        let is_blank = text.iter().all(|byte| matches!(byte, b' ' | b'-' | b'+'));
        // `"#1"`, `'--help'`: what a quoted text may begin with, or `Dads' #1`.
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

    /// Whether the value ends in a text that the quote of the query closes, with an operator before: `' or '1`, `'='`.
    fn ends_in_text(&self) -> bool {
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

    /// Whether the operand before is no mere name.
    fn is_last_value(&self) -> bool {
        matches!(self.left, Some(Operand::Value | Operand::Computed))
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
