//! The compiled form of an expression: typed trees that depend only on the facts.
//!
//! A tree is at most twice as deep as its expression, which bounds recursion over it. Parts that depend on no fact are
//! folded into constants as the tree is built.

use std::sync::Arc;

use aho_corasick::AhoCorasick;
use memchr::memmem::Finder;

use super::addresses::AddressSet;
use super::ast::{Operator, Relation};
use super::facts::{AddressFact, NumberFact, PoolFact, TextFact, Values};
use super::slots::HOST;
use super::text_functions::{self, TextFunction};
use super::text_set::{Prefixes, Suffixes, TextMap, TextSet};
use super::time::TimePart;

/// A Boolean value.
#[derive(Debug, Clone)]
pub(super) enum Test {
    Constant(bool),
    Not(Box<Test>),
    /// Evaluated from left to right, up to the first false test.
    All(Box<[Test]>),
    /// Evaluated from left to right, up to the first true test.
    Any(Box<[Test]>),
    Choice(Box<Choice<Test>>),
    /// Both are true or both are false.
    Same(Box<[Test; 2]>),
    /// A text has a property with known parameters.
    Text(Text, Trait),
    /// The regular expression with this number matches anywhere.
    Matches(Text, u32),
    Texts(TextRelation, Box<[Text; 2]>),
    Numbers(Order, Box<[Number; 2]>),
    NumberIn(Number, Box<[i64]>),
    AddressIn(Address, Arc<AddressSet>),
    SameAddress(Box<[Address; 2]>),
    /// The slot's source exists, even if it is empty.
    Present(u32),
    HasKey(Text, Arc<TextMap>),
    /// The text is one of the values.
    AmongValues(Text, Values),
    /// The token is valid, by the reader with this number.
    TokenValid(u32),
    /// A claim of the token equals the text, or is a list that contains it.
    ClaimHas(Box<(u32, Arc<str>, Text)>),
}

/// A byte string.
#[derive(Debug, Clone)]
pub(super) enum Text {
    Constant(Box<[u8]>),
    Fact(TextFact),
    Slot(u32),
    Lower(Box<Text>),
    /// The result of a function on a text.
    Made(Box<(TextFunction, Text)>),
    /// The value of a key in a map; empty without an entry.
    Lookup(Arc<TextMap>, Box<Text>),
    Choice(Box<Choice<Text>>),
    /// The value with this index, from 0; empty if there are fewer values.
    Value(Values, u32),
    /// A number in decimal digits.
    Number(Box<Number>),
    /// An address in canonical form; empty if there is none.
    Address(Address),
    /// The authenticated user.
    User,
}

#[derive(Debug, Clone)]
pub(super) enum Number {
    Constant(i64),
    Fact(NumberFact),
    Size(Box<Text>),
    /// The hash of a text, reduced below a number.
    Hash(Box<Text>, u32),
    /// The integer value of a text.
    Parsed(Box<Text>),
    /// A random number below a limit, with the number of the call.
    Random {
        call: u32,
        below: u32,
    },
    Time(TimePart),
    Pool(u32, PoolFact),
    /// The number of values.
    Count(Values),
    Arithmetic(Operator, Box<[Number; 2]>),
    Choice(Box<Choice<Number>>),
}

#[derive(Debug, Clone)]
pub(super) enum Address {
    Fact(AddressFact),
    Choice(Box<Choice<Address>>),
}

/// One of two values.
#[derive(Debug, Clone)]
pub(super) struct Choice<T> {
    pub condition: Test,
    pub yes: T,
    pub no: T,
}

/// A test of a single text.
#[derive(Debug, Clone)]
pub(super) enum Trait {
    Equals(Box<[u8]>),
    StartsWith(Box<[u8]>),
    EndsWith(Box<[u8]>),
    Contains(Box<Finder<'static>>),
    In(Arc<TextSet>),
    StartsWithAny(Arc<Prefixes>),
    EndsWithAny(Arc<Suffixes>),
    ContainsAny(AhoCorasick),
}

/// A relation of two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextRelation {
    Ordered(Order),
    StartsWith,
    EndsWith,
    Contains,
}

/// An order of two values; texts are compared by bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Equal,
    Less,
    LessOrEqual,
}

impl Order {
    pub fn holds<T: Ord + ?Sized>(self, left: &T, right: &T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
        }
    }

    /// The order that a relation requires: the operation, whether to swap the sides, and whether to negate the result.
    /// `None` for `in`.
    pub fn of(relation: Relation) -> Option<(Self, bool, bool)> {
        match relation {
            Relation::Equal => Some((Self::Equal, false, false)),
            Relation::NotEqual => Some((Self::Equal, false, true)),
            Relation::Less => Some((Self::Less, false, false)),
            Relation::LessOrEqual => Some((Self::LessOrEqual, false, false)),
            Relation::Greater => Some((Self::Less, true, false)),
            Relation::GreaterOrEqual => Some((Self::LessOrEqual, true, false)),
            Relation::In => None,
        }
    }
}

impl TextRelation {
    pub fn holds(self, left: &[u8], right: &[u8]) -> bool {
        match self {
            Self::Ordered(order) => order.holds(left, right),
            Self::StartsWith => left.starts_with(right),
            Self::EndsWith => left.ends_with(right),
            Self::Contains => memchr::memmem::find(left, right).is_some(),
        }
    }

    /// The test with a known right side.
    fn to_trait(self, right: &[u8]) -> Option<Trait> {
        match self {
            Self::Ordered(Order::Equal) => Some(Trait::Equals(right.into())),
            Self::Ordered(_) => None,
            Self::StartsWith => Some(Trait::StartsWith(right.into())),
            Self::EndsWith => Some(Trait::EndsWith(right.into())),
            Self::Contains => Some(Trait::Contains(Box::new(Finder::new(right).into_owned()))),
        }
    }
}

impl Trait {
    pub fn holds(&self, text: &[u8]) -> bool {
        match self {
            Self::Equals(expected) => *text == **expected,
            Self::StartsWith(prefix) => text.starts_with(prefix),
            Self::EndsWith(suffix) => text.ends_with(suffix),
            Self::Contains(finder) => finder.find(text).is_some(),
            Self::In(set) => set.contains(text),
            Self::StartsWithAny(prefixes) => prefixes.any_starts(text),
            Self::EndsWithAny(suffixes) => suffixes.any_ends(text),
            Self::ContainsAny(search) => search.is_match(text),
        }
    }
}

/// The builders below fold constants.
impl Test {
    pub fn not(of: Test) -> Test {
        match of {
            Test::Constant(value) => Test::Constant(!value),
            Test::Not(inner) => *inner,
            other => Test::Not(Box::new(other)),
        }
    }

    pub fn negated_if(negated: bool, of: Test) -> Test {
        if negated { Test::not(of) } else { of }
    }

    pub fn all(tests: impl IntoIterator<Item = Test>) -> Test {
        let mut kept = Vec::new();
        for test in tests {
            match test {
                Test::Constant(true) => {}
                Test::All(tests) => kept.extend(tests),
                Test::Constant(false) => {
                    // The rest is never evaluated, and nothing has side effects.
                    return Test::Constant(false);
                }
                other => kept.push(other),
            }
        }
        match kept.pop() {
            None => Test::Constant(true),
            Some(only) if kept.is_empty() => only,
            Some(last) => {
                kept.push(last);
                Test::All(kept.into())
            }
        }
    }

    pub fn any(tests: impl IntoIterator<Item = Test>) -> Test {
        let mut kept = Vec::new();
        for test in tests {
            match test {
                Test::Constant(false) => {}
                Test::Any(tests) => kept.extend(tests),
                Test::Constant(true) => return Test::Constant(true),
                other => kept.push(other),
            }
        }
        match kept.pop() {
            None => Test::Constant(false),
            Some(only) if kept.is_empty() => only,
            Some(last) => {
                kept.push(last);
                Test::Any(kept.into())
            }
        }
    }

    pub fn same(one: Test, other: Test) -> Test {
        match (one, other) {
            (Test::Constant(value), test) | (test, Test::Constant(value)) => {
                Test::negated_if(!value, test)
            }
            (one, other) => Test::Same(Box::new([one, other])),
        }
    }

    pub fn text(text: Text, quality: Trait) -> Test {
        match text {
            Text::Constant(text) => Test::Constant(quality.holds(&text)),
            text => Test::Text(text, quality),
        }
    }

    pub fn texts(relation: TextRelation, left: Text, right: Text) -> Test {
        // Equality is symmetric; a constant belongs on the right.
        let (left, right) = match (&left, &right, relation) {
            (Text::Constant(_), right_side, TextRelation::Ordered(Order::Equal))
                if !matches!(right_side, Text::Constant(_)) =>
            {
                (right, left)
            }
            _ => (left, right),
        };
        match (&left, &right) {
            (Text::Constant(left), Text::Constant(right)) => {
                Test::Constant(relation.holds(left, right))
            }
            (_, Text::Constant(known)) => match relation.to_trait(known) {
                Some(quality) => Test::text(left, quality),
                None => Test::Texts(relation, Box::new([left, right])),
            },
            _ => Test::Texts(relation, Box::new([left, right])),
        }
    }

    pub fn numbers(order: Order, left: Number, right: Number) -> Test {
        match (&left, &right) {
            (Number::Constant(left), Number::Constant(right)) => {
                Test::Constant(order.holds(left, right))
            }
            _ => Test::Numbers(order, Box::new([left, right])),
        }
    }

    pub fn number_in(number: Number, mut values: Vec<i64>) -> Test {
        values.sort_unstable();
        values.dedup();
        match number {
            Number::Constant(number) => Test::Constant(values.binary_search(&number).is_ok()),
            number => Test::NumberIn(number, values.into()),
        }
    }

    pub fn has_key(key: Text, map: Arc<TextMap>) -> Test {
        match key {
            Text::Constant(key) => Test::Constant(map.get(&key).is_some()),
            key => Test::HasKey(key, map),
        }
    }

    pub fn choice(condition: Test, yes: Test, no: Test) -> Test {
        choose(condition, yes, no, Test::Choice)
    }
}

impl Text {
    pub fn lower(of: Text) -> Text {
        match of {
            Text::Constant(text) => Text::Constant(text.to_ascii_lowercase().into()),
            // Already in lower case.
            Text::Slot(HOST) | Text::Lower(_) | Text::Number(_) | Text::Address(_) => of,
            of => Text::Lower(Box::new(of)),
        }
    }

    pub fn made(function: TextFunction, of: Text) -> Text {
        match of {
            Text::Constant(text) => {
                let mut made = Vec::new();
                function.write(&text, &mut made);
                Text::Constant(made.into())
            }
            of => Text::Made(Box::new((function, of))),
        }
    }

    pub fn lookup(map: Arc<TextMap>, key: Text) -> Text {
        match key {
            Text::Constant(key) => Text::Constant(map.get(&key).unwrap_or_default().into()),
            key => Text::Lookup(map, Box::new(key)),
        }
    }

    pub fn number(of: Number) -> Text {
        match of {
            Number::Constant(value) => Text::Constant(value.to_string().into_bytes().into()),
            of => Text::Number(Box::new(of)),
        }
    }

    pub fn choice(condition: Test, yes: Text, no: Text) -> Text {
        choose(condition, yes, no, Text::Choice)
    }
}

impl Number {
    /// The length in bytes.
    pub fn size(of: Text) -> Number {
        match of {
            Text::Constant(text) => Number::Constant(i64::try_from(text.len()).unwrap_or(i64::MAX)),
            of => Number::Size(Box::new(of)),
        }
    }

    /// The hash of a text, reduced below a number.
    pub fn hash(of: Text, below: u32) -> Number {
        match of {
            Text::Constant(text) => Number::Constant(text_functions::hash(&text, below)),
            of => Number::Hash(Box::new(of), below),
        }
    }

    /// The integer value of a text.
    pub fn parsed(of: Text) -> Number {
        match of {
            Text::Constant(text) => Number::Constant(text_functions::integer(&text)),
            of => Number::Parsed(Box::new(of)),
        }
    }

    pub fn arithmetic(operator: Operator, left: Number, right: Number) -> Number {
        match (left, right) {
            (Number::Constant(left), Number::Constant(right)) => {
                Number::Constant(operator.apply(left, right))
            }
            (left, right) => Number::Arithmetic(operator, Box::new([left, right])),
        }
    }

    pub fn negative(of: Number) -> Number {
        Number::arithmetic(Operator::Subtract, Number::Constant(0), of)
    }

    pub fn choice(condition: Test, yes: Number, no: Number) -> Number {
        choose(condition, yes, no, Number::Choice)
    }
}

impl Address {
    pub fn choice(condition: Test, yes: Address, no: Address) -> Address {
        choose(condition, yes, no, Address::Choice)
    }
}

fn choose<T>(condition: Test, yes: T, no: T, wrap: impl FnOnce(Box<Choice<T>>) -> T) -> T {
    match condition {
        Test::Constant(true) => yes,
        Test::Constant(false) => no,
        condition => wrap(Box::new(Choice { condition, yes, no })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method_is(text: &str) -> Test {
        let known = Text::Constant(text.as_bytes().into());
        Test::texts(TextRelation::Ordered(Order::Equal), known, Text::Fact(TextFact::Method))
    }

    #[test]
    fn constants_fold() {
        let yes = || Test::Constant(true);
        let no = || Test::Constant(false);
        for (test, expected) in [
            (Test::not(no()), true),
            (Test::all([yes(), yes()]), true),
            (Test::all([]), true),
            (Test::all([method_is("a"), no()]), false),
            (Test::any([method_is("a"), yes()]), true),
            (Test::any([no()]), false),
            (Test::same(no(), no()), true),
            (Test::choice(no(), no(), yes()), true),
            (Test::number_in(Number::Constant(3), vec![5, 3]), true),
            (Test::numbers(Order::Less, Number::Constant(3), Number::Constant(3)), false),
        ] {
            assert!(matches!(test, Test::Constant(value) if value == expected), "{test:?}");
        }
    }

    #[test]
    fn what_changes_nothing_is_left_out() {
        let is_trait = |test: &Test| matches!(test, Test::Text(_, Trait::Equals(_)));
        assert!(is_trait(&method_is("a")), "a constant on the left");
        assert!(is_trait(&Test::not(Test::not(method_is("a")))));
        assert!(is_trait(&Test::all([Test::Constant(true), method_is("a")])));
        assert!(is_trait(&Test::any([Test::Constant(false), method_is("a")])));
        assert!(is_trait(&Test::same(Test::Constant(true), method_is("a"))));
        let nested = Test::any([Test::any([method_is("a"), method_is("b")]), method_is("c")]);
        assert!(matches!(nested, Test::Any(tests) if tests.len() == 3));
        let host = Text::lower(Text::lower(Text::Slot(HOST)));
        assert!(matches!(host, Text::Slot(HOST)));
    }
}
