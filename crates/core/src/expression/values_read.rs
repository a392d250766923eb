//! The values that a condition reads, by name, to explain its result.
//!
//! Values are determined as in an evaluation. All values in a condition are listed, including those in skipped parts.

use super::Condition;
use super::evaluate::Evaluation;
use super::facts::{PoolFact, Values};
use super::names::{Group, KeyedGroup, Member, POOL_FACTS, POOLS, ROOTS};
use super::plan::{Address, Choice, Number, Test, Text};
use super::slots::{Slots, Source};

/// Maximum number of listed values per condition.
pub const VALUES_READ_MAX: usize = 16;

/// A value that a condition reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueRead {
    /// The name as written in an expression.
    pub name: String,
    /// The part of the request that contains the value.
    pub part: PartRead,
    /// The value; `None`: it is absent.
    pub value: Option<Vec<u8>>,
}

/// A part of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartRead {
    /// The header with this name.
    Header(String),
    /// The query parameter with this name.
    Query(String),
    /// A cookie.
    Cookie,
    /// A claim of a token.
    Claim,
    /// Any other part.
    Other,
}

/// A value to read.
#[derive(Clone, Copy)]
enum Leaf<'a> {
    Text(&'a Text),
    Number(&'a Number),
    Address(&'a Address),
    Values(&'a Values),
    Slot(u32),
    Token(u32),
}

impl Evaluation<'_> {
    /// The values that a condition reads, without duplicates and at most [`VALUES_READ_MAX`]. `pool` returns the names of
    /// pools by number.
    pub fn values_read(
        &mut self,
        condition: &Condition,
        pool: &dyn Fn(u32) -> String,
    ) -> Vec<ValueRead> {
        let mut leaves = Vec::new();
        of_test(&condition.test, &mut leaves);
        let mut found: Vec<ValueRead> = Vec::new();
        for leaf in leaves {
            if found.len() == VALUES_READ_MAX {
                break;
            }
            let Some((name, part)) = self.named(leaf, pool) else { continue };
            if found.iter().all(|it| it.name != name) {
                let value = self.read(leaf);
                found.push(ValueRead { name, part, value });
            }
        }
        found
    }

    fn named(&self, leaf: Leaf<'_>, pool: &dyn Fn(u32) -> String) -> Option<(String, PartRead)> {
        let other = |name: String| Some((name, PartRead::Other));
        match leaf {
            Leaf::Text(Text::Fact(fact)) => other(path_of(|it| it == Member::Text(*fact))?),
            Leaf::Text(Text::User) => other(path_of(|it| it == Member::User)?),
            Leaf::Slot(slot) => Some(of_slot(self.slots(), slot)),
            Leaf::Token(reader) => {
                other(format!("jwt['{}'].valid", token_of(self.slots(), reader)))
            }
            Leaf::Number(Number::Fact(fact)) => other(path_of(|it| it == Member::Number(*fact))?),
            Leaf::Number(Number::Time(part)) => other(path_of(|it| it == Member::Time(*part))?),
            Leaf::Number(Number::Random { below, .. }) => other(format!("random({below})")),
            Leaf::Number(Number::Pool(number, fact)) => other(pool_fact(&pool(*number), *fact)),
            Leaf::Address(Address::Fact(fact)) => {
                other(path_of(|it| it == Member::Address(*fact))?)
            }
            Leaf::Values(values) => Some(of_values(values)),
            Leaf::Text(_) | Leaf::Number(_) | Leaf::Address(_) => None,
        }
    }

    fn read(&mut self, leaf: Leaf<'_>) -> Option<Vec<u8>> {
        match leaf {
            Leaf::Slot(slot) => self.slot_value(slot),
            Leaf::Text(text) => Some(self.text_value(text)),
            Leaf::Number(number) => Some(self.number_value(number).to_string().into_bytes()),
            Leaf::Address(address) => {
                self.address_value(address).map(|it| it.to_string().into_bytes())
            }
            Leaf::Values(values) => self.all_values(values),
            Leaf::Token(reader) => {
                Some(if self.token(reader).is_ok() { b"true" } else { &b"false"[..] }.to_vec())
            }
        }
    }
}

fn of_test<'a>(test: &'a Test, out: &mut Vec<Leaf<'a>>) {
    match test {
        Test::Constant(_) => {}
        Test::Not(of) => of_test(of, out),
        Test::All(tests) | Test::Any(tests) => tests.iter().for_each(|test| of_test(test, out)),
        Test::Choice(choice) => of_choice(choice, out, of_test),
        Test::Same(sides) => sides.iter().for_each(|side| of_test(side, out)),
        Test::Text(text, _) | Test::Matches(text, _) | Test::HasKey(text, _) => of_text(text, out),
        Test::Texts(_, sides) => sides.iter().for_each(|side| of_text(side, out)),
        Test::Numbers(_, sides) => sides.iter().for_each(|side| of_number(side, out)),
        Test::NumberIn(number, _) => of_number(number, out),
        Test::AddressIn(address, _) => of_address(address, out),
        Test::SameAddress(sides) => sides.iter().for_each(|side| of_address(side, out)),
        Test::Present(slot) => out.push(Leaf::Slot(*slot)),
        Test::AmongValues(text, values) => {
            of_text(text, out);
            out.push(Leaf::Values(values));
        }
        Test::TokenValid(reader) => out.push(Leaf::Token(*reader)),
        Test::ClaimHas(asked) => {
            out.push(Leaf::Token(asked.0));
            of_text(&asked.2, out);
        }
    }
}

fn of_text<'a>(text: &'a Text, out: &mut Vec<Leaf<'a>>) {
    match text {
        Text::Constant(_) => {}
        Text::Fact(_) | Text::User => out.push(Leaf::Text(text)),
        Text::Slot(slot) => out.push(Leaf::Slot(*slot)),
        Text::Lower(of) => of_text(of, out),
        Text::Made(made) => of_text(&made.1, out),
        Text::Lookup(_, key) => of_text(key, out),
        Text::Choice(choice) => of_choice(choice, out, of_text),
        Text::Value(values, _) => out.push(Leaf::Values(values)),
        Text::Number(number) => of_number(number, out),
        Text::Address(address) => of_address(address, out),
    }
}

fn of_number<'a>(number: &'a Number, out: &mut Vec<Leaf<'a>>) {
    match number {
        Number::Constant(_) => {}
        Number::Fact(_) | Number::Random { .. } | Number::Time(_) | Number::Pool(..) => {
            out.push(Leaf::Number(number));
        }
        Number::Size(text) | Number::Hash(text, _) | Number::Parsed(text) => of_text(text, out),
        Number::Count(values) => out.push(Leaf::Values(values)),
        Number::Arithmetic(_, sides) => sides.iter().for_each(|side| of_number(side, out)),
        Number::Choice(choice) => of_choice(choice, out, of_number),
    }
}

fn of_address<'a>(address: &'a Address, out: &mut Vec<Leaf<'a>>) {
    match address {
        Address::Fact(_) => out.push(Leaf::Address(address)),
        Address::Choice(choice) => of_choice(choice, out, of_address),
    }
}

fn of_choice<'a, T>(
    choice: &'a Choice<T>,
    out: &mut Vec<Leaf<'a>>,
    of: fn(&'a T, &mut Vec<Leaf<'a>>),
) {
    of_test(&choice.condition, out);
    of(&choice.yes, out);
    of(&choice.no, out);
}

/// The name of a group's member, as written in expressions.
fn path_of(is_it: impl Fn(Member) -> bool) -> Option<String> {
    let groups = ROOTS.into_iter().chain([Group::ClientCertificate]);
    let mut all = groups.flat_map(|group| group.members().iter().map(move |it| (group, it)));
    all.find(|(_, (_, member))| is_it(*member))
        .map(|(group, (name, _))| format!("{}.{name}", group.path()))
}

fn keyed(keyed: KeyedGroup, key: &str) -> String {
    format!("{}['{key}']", keyed.path())
}

fn of_slot(slots: &Slots, slot: u32) -> (String, PartRead) {
    let other = |name: String| (name, PartRead::Other);
    let of = |member: Member| other(path_of(|it| it == member).unwrap_or_default());
    match &slots.sources()[slot as usize] {
        Source::Host => of(Member::Host),
        Source::Target => of(Member::Target),
        Source::Query(name) => (keyed(KeyedGroup::Query, name), PartRead::Query(name.to_string())),
        Source::Header(name) => {
            (keyed(KeyedGroup::Header, name), PartRead::Header(name.to_string()))
        }
        Source::Cookie(name) => (keyed(KeyedGroup::Cookie, name), PartRead::Cookie),
        Source::ResponseHeader(name) => {
            (keyed(KeyedGroup::ResponseHeader, name), PartRead::Header(name.to_string()))
        }
        Source::ResponseCookie(name) => (keyed(KeyedGroup::ResponseCookie, name), PartRead::Cookie),
        Source::DatagramBytes(from, bytes) => other(format!("datagram.bytes({from}, {bytes})")),
        Source::SipHeader(name) => other(keyed(KeyedGroup::SipHeader, name)),
        Source::RadiusAttribute(number) => other(format!("radius.attributes[{number}]")),
        Source::RadiusVendorAttribute(vendor, number) => {
            other(format!("radius.vendor_attribute({vendor}, {number})"))
        }
        Source::QuicConnectionId => of(Member::QuicConnectionId),
        Source::Date => of(Member::Date),
        Source::Clock => of(Member::Clock),
        Source::Claim(reader, name) => {
            (format!("jwt['{}'].claims['{name}']", token_of(slots, *reader)), PartRead::Claim)
        }
    }
}

fn of_values(values: &Values) -> (String, PartRead) {
    match values {
        Values::Header(name) => {
            (keyed(KeyedGroup::Header, name), PartRead::Header(name.to_string()))
        }
        Values::ResponseHeader(name) => {
            (keyed(KeyedGroup::ResponseHeader, name), PartRead::Header(name.to_string()))
        }
        Values::Names(kind) => {
            (path_of(|it| it == Member::Names(*kind)).unwrap_or_default(), PartRead::Other)
        }
    }
}

fn token_of(slots: &Slots, reader: u32) -> &str {
    slots.token_names().nth(reader as usize).unwrap_or_default()
}

fn pool_fact(pool: &str, fact: PoolFact) -> String {
    let name = POOL_FACTS.iter().find(|(_, it)| *it == fact).map_or("", |(name, _)| name);
    format!("{POOLS}['{pool}'].{name}")
}

#[cfg(test)]
mod tests {
    use super::super::testing::Sample;
    use super::*;

    const REQUEST: &str = "GET /a.png?q=1 HTTP/1.1\r\nHost: Shop.example:80\r\nX-User: ann\r\n\
        Cookie: c=secret\r\n\r\n";

    fn read(condition: &str) -> Vec<ValueRead> {
        let mut sample = Sample::new(REQUEST);
        let condition = Condition::compile(condition, &mut sample.scope()).expect(condition);
        sample.evaluate(|evaluation| {
            evaluation.values_read(&condition, &|number| format!("pool{number}"))
        })
    }

    #[track_caller]
    fn check(condition: &str, expected: &[(&str, Option<&str>)]) {
        let found = read(condition);
        let text = |it: &Option<Vec<u8>>| it.clone().map(|it| String::from_utf8(it).expect("text"));
        let found: Vec<(&str, Option<String>)> =
            found.iter().map(|it| (&*it.name, text(&it.value))).collect();
        let expected: Vec<(&str, Option<String>)> =
            expected.iter().map(|(name, value)| (*name, value.map(str::to_owned))).collect();
        assert_eq!(found, expected, "{condition}");
    }

    #[test]
    fn values_are_listed_as_they_are_written() {
        check("request.path.endsWith('.png')", &[("request.path", Some("/a.png"))]);
        check(
            "request.host == 'x' || 'x-user' in request.headers && request.headers['x-no'] == ''",
            &[
                ("request.host", Some("shop.example")),
                ("request.headers['x-user']", Some("ann")),
                ("request.headers['x-no']", None),
            ],
        );
        check(
            "request.cookies['c'] == request.query['q'] ? client.port > 1 : request.method == 'GET'",
            &[
                ("request.cookies['c']", Some("secret")),
                ("request.query['q']", Some("1")),
                ("client.port", Some("40000")),
                ("request.method", Some("GET")),
            ],
        );
        check("request.path == '/a' && request.path == '/b'", &[("request.path", Some("/a.png"))]);
        check("cidr('10.0.0.0/8').containsIP(client.ip)", &[("client.ip", Some("192.0.2.1"))]);
        check("size(request.path) > 1 && true", &[("request.path", Some("/a.png"))]);
        check(
            "time.hour > 20 || request.user == 'x'",
            &[("time.hour", Some("3")), ("request.user", Some(""))],
        );
        check("pools['web'].up_members < 1", &[("pools['pool3'].up_members", Some("2"))]);
        check("jwt['api'].valid", &[("jwt['api'].valid", Some("false"))]);
        check("jwt['api'].claims['sub'] == 'ann'", &[("jwt['api'].claims['sub']", None)]);
    }

    #[test]
    fn parts_say_what_may_be_secret() {
        let part = |condition: &str| read(condition)[0].part.clone();
        assert_eq!(part("request.cookies['c'] == ''"), PartRead::Cookie);
        assert_eq!(part("request.headers['A'] == ''"), PartRead::Header("a".into()));
        assert_eq!(part("request.query['t'] == ''"), PartRead::Query("t".into()));
        assert_eq!(part("request.method == ''"), PartRead::Other);
    }

    #[test]
    fn a_long_list_is_cut() {
        let tests: Vec<String> =
            (0..40).map(|it| format!("request.headers['h{it}'] == 'a'")).collect();
        assert_eq!(read(&tests.join(" || ")).len(), VALUES_READ_MAX);
    }
}
