//! Evaluation of plans.
//!
//! Nothing is allocated once the buffers of [`Fields`] have grown. The recursion depth is that of the plan, which the
//! compiler limits. The time is limited by the size of the expression times the length of the head; each value of a slot is
//! searched only once.

use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use weir_http::write_ip;

use super::chance;
use super::facts::{Facts, Values};
use super::fields::{Fields, Piece};
use super::plan::{Address, Choice, Number, Test, Text};
use super::slots::{HOST, Slots};
use super::text_functions::{hash, integer};
use super::{Condition, Purpose, ReplaceResult, Replacement, Template, Value};
use crate::jwt::{Claims, Refusal};

/// An evaluation about one request, or about it and its response.
#[derive(Debug)]
pub struct Evaluation<'a> {
    fields: &'a mut Fields,
    facts: Facts<'a>,
}

impl Fields {
    /// Begins an evaluation with these facts.
    pub fn begin<'a>(&'a mut self, facts: Facts<'a>) -> Evaluation<'a> {
        self.forget();
        Evaluation { fields: self, facts }
    }
}

/// All functions expect expressions compiled into the slots that the [`Fields`] were made from; with others they read
/// wrong values, or panic.
impl<'a> Evaluation<'a> {
    /// Whether a condition holds.
    pub fn holds(&mut self, condition: &Condition) -> bool {
        self.test(&condition.test)
    }

    /// Appends a value to `out` unchanged.
    pub fn value(&mut self, value: &Value, out: &mut Vec<u8>) {
        self.append(&value.text, Purpose::Plain, out);
    }

    /// Appends the text of a template to `out`.
    pub fn render(&mut self, template: &Template, out: &mut Vec<u8>) {
        template.render(self, out);
    }

    /// Appends `text` with all matches replaced to `out`; see [`Replacement`].
    pub fn replace(
        &mut self,
        replacement: &Replacement,
        text: &[u8],
        out: &mut Vec<u8>,
    ) -> ReplaceResult {
        replacement.apply(self.fields, text, out)
    }

    /// `request.host`, for a [`RuleIndex`](crate::policy::RuleIndex).
    pub fn host(&mut self) -> &[u8] {
        let host = self.fields.slot(HOST, &self.facts).unwrap_or(Piece::Bytes(b""));
        self.fields.resolve(host)
    }

    /// The claims of the request's token, found by the reader of this number.
    ///
    /// # Errors
    /// The reason why the token is not accepted.
    pub fn token(&mut self, reader: u32) -> Result<Arc<Claims>, Refusal> {
        self.fields.token(reader, &self.facts)
    }

    /// `request.user`: the user accepted by a rule.
    pub fn user(&self) -> &[u8] {
        self.fields.resolve(self.fields.user())
    }

    /// Sets `request.user`.
    pub fn set_user(&mut self, name: &[u8]) {
        self.fields.set_user(name);
    }

    /// The slots of the evaluation.
    pub(super) fn slots(&self) -> &Slots {
        self.fields.slots()
    }

    /// The value of a slot, if it is present.
    pub(super) fn slot_value(&mut self, slot: u32) -> Option<Vec<u8>> {
        let piece = self.fields.slot(slot, &self.facts)?;
        Some(self.fields.resolve(piece).to_vec())
    }

    /// The value of a text.
    pub(super) fn text_value(&mut self, text: &Text) -> Vec<u8> {
        self.of_text(text, <[u8]>::to_vec)
    }

    /// The value of a number.
    pub(super) fn number_value(&mut self, number: &Number) -> i64 {
        self.number(number)
    }

    /// The value of an address, if there is one.
    pub(super) fn address_value(&mut self, address: &Address) -> Option<IpAddr> {
        self.address(address)
    }

    /// Several values, joined; `None`: no values.
    pub(super) fn all_values(&self, values: &Values) -> Option<Vec<u8>> {
        let mut all: Option<Vec<u8>> = None;
        self.facts.any_value(values, |value| {
            match &mut all {
                Some(all) => all.extend_from_slice(&[b", ", value].concat()),
                None => all = Some(value.to_vec()),
            }
            false
        });
        all
    }

    /// Appends a text to `out`, escaped for its purpose.
    pub(super) fn append(&mut self, text: &Text, purpose: Purpose, out: &mut Vec<u8>) {
        let mark = self.fields.mark();
        let piece = self.text(text);
        purpose.append(self.fields.resolve(piece), out);
        self.fields.release(mark);
    }

    fn test(&mut self, test: &Test) -> bool {
        match test {
            Test::Constant(value) => *value,
            Test::Not(of) => !self.test(of),
            Test::All(tests) => tests.iter().all(|test| self.test(test)),
            Test::Any(tests) => tests.iter().any(|test| self.test(test)),
            Test::Choice(choice) => {
                let chosen = self.choose(choice);
                self.test(chosen)
            }
            Test::Same(sides) => self.test(&sides[0]) == self.test(&sides[1]),
            Test::Numbers(order, sides) => {
                order.holds(&self.number(&sides[0]), &self.number(&sides[1]))
            }
            Test::NumberIn(number, values) => values.binary_search(&self.number(number)).is_ok(),
            Test::AddressIn(address, set) => {
                self.address(address).is_some_and(|address| set.contains(address))
            }
            Test::SameAddress(sides) => self.address(&sides[0]) == self.address(&sides[1]),
            Test::Present(slot) => self.fields.slot(*slot, &self.facts).is_some(),
            Test::TokenValid(reader) => self.fields.token(*reader, &self.facts).is_ok(),
            Test::Text(..)
            | Test::Matches(..)
            | Test::Texts(..)
            | Test::HasKey(..)
            | Test::AmongValues(..)
            | Test::ClaimHas(..) => {
                let mark = self.fields.mark();
                let holds = self.text_test(test);
                self.fields.release(mark);
                holds
            }
        }
    }

    /// A test of texts, which may leave data in the temporary buffer.
    fn text_test(&mut self, test: &Test) -> bool {
        match test {
            Test::Text(text, quality) => {
                let piece = self.text(text);
                quality.holds(self.fields.resolve(piece))
            }
            Test::Matches(text, pattern) => {
                let piece = self.text(text);
                self.fields.matches(*pattern, piece)
            }
            Test::Texts(relation, sides) => {
                let left = self.text(&sides[0]);
                let right = self.text(&sides[1]);
                relation.holds(self.fields.resolve(left), self.fields.resolve(right))
            }
            Test::HasKey(key, map) => {
                let piece = self.text(key);
                map.get(self.fields.resolve(piece)).is_some()
            }
            Test::AmongValues(text, values) => {
                let piece = self.text(text);
                let text = self.fields.resolve(piece);
                self.facts.any_value(values, |value| value == text)
            }
            Test::ClaimHas(asked) => {
                let (reader, name, text) = &**asked;
                let Ok(claims) = self.fields.token(*reader, &self.facts) else { return false };
                let piece = self.text(text);
                claims.has(name, self.fields.resolve(piece))
            }
            other => self.test(other),
        }
    }

    fn text<'v>(&mut self, text: &'v Text) -> Piece<'v>
    where
        'a: 'v,
    {
        match text {
            Text::Constant(bytes) => Piece::Bytes(bytes),
            Text::Fact(fact) => Piece::Bytes(self.facts.text(*fact)),
            Text::Slot(slot) => self.fields.slot(*slot, &self.facts).unwrap_or(Piece::Bytes(b"")),
            Text::Lower(of) => {
                let piece = self.text(of);
                self.fields.lower(piece)
            }
            Text::Made(made) => {
                let piece = self.text(&made.1);
                self.fields.make(&made.0, piece)
            }
            Text::Lookup(map, key) => {
                let key = self.text(key);
                Piece::Bytes(map.get(self.fields.resolve(key)).unwrap_or_default())
            }
            Text::Choice(choice) => {
                let chosen = self.choose(choice);
                self.text(chosen)
            }
            Text::Value(values, number) => {
                let (mut left, mut found) = (*number, &b""[..]);
                self.facts.any_value(values, |value| {
                    let is_it = left == 0;
                    if is_it {
                        found = value;
                    }
                    left = left.saturating_sub(1);
                    is_it
                });
                Piece::Bytes(found)
            }
            Text::Number(number) => {
                let number = self.number(number);
                self.fields.temporary(|out| write(out, number))
            }
            Text::Address(address) => match self.address(address) {
                Some(address) => self.fields.temporary(|out| write_ip(address, out)),
                None => Piece::Bytes(b""),
            },
            Text::User => self.fields.user(),
        }
    }

    /// A value computed from a text.
    fn of_text<T>(&mut self, text: &Text, read: impl FnOnce(&[u8]) -> T) -> T {
        let mark = self.fields.mark();
        let piece = self.text(text);
        let found = read(self.fields.resolve(piece));
        self.fields.release(mark);
        found
    }

    fn number(&mut self, number: &Number) -> i64 {
        match number {
            Number::Constant(value) => *value,
            Number::Fact(fact) => self.facts.number(*fact),
            Number::Size(text) => {
                let size = self.of_text(text, <[u8]>::len);
                i64::try_from(size).unwrap_or(i64::MAX)
            }
            Number::Hash(text, below) => self.of_text(text, |text| hash(text, *below)),
            Number::Parsed(text) => self.of_text(text, integer),
            Number::Random { call, below } => chance::draw(self.facts.around.seed(), *call, *below),
            Number::Time(part) => part.of(self.facts.around.local_s()),
            Number::Pool(pool, fact) => self.facts.around.pool(*pool, *fact),
            Number::Count(values) => {
                let mut count = 0;
                self.facts.any_value(values, |_| {
                    count += 1;
                    false
                });
                count
            }
            Number::Arithmetic(operator, sides) => {
                operator.apply(self.number(&sides[0]), self.number(&sides[1]))
            }
            Number::Choice(choice) => {
                let chosen = self.choose(choice);
                self.number(chosen)
            }
        }
    }

    fn address(&mut self, address: &Address) -> Option<IpAddr> {
        match address {
            Address::Fact(fact) => self.facts.address(*fact),
            Address::Choice(choice) => {
                let chosen = self.choose(choice);
                self.address(chosen)
            }
        }
    }

    fn choose<'v, T>(&mut self, choice: &'v Choice<T>) -> &'v T {
        if self.test(&choice.condition) { &choice.yes } else { &choice.no }
    }
}

fn write(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    write!(out, "{value}").expect("a vector takes what is written to it");
}
