//! The type checker: from the parsed text to a plan, or to errors.

mod arguments;
mod call;
mod datagram;
mod number;
mod pool;
mod relation;
mod text_function;
mod token;
mod values;

use std::ops::Range;
use std::sync::Arc;

use super::addresses::{AddressSet, Network};
use super::ast::{Kind, Node, Word};
use super::data::{self, Texts};
use super::error;
use super::facts::{TextFact, Values};
use super::foreign;
use super::names::{self, Group, Keyed, Member};
use super::plan::{Address, Number, Test, Text};
use super::slots::{HOST, Source};
use super::text_set::TextMap;
use super::{ExpressionError, Phase, Reads, Scope};

/// The type of a part of an expression.
enum Typed<'n> {
    Boolean(Test),
    Text(Text),
    Integer(Number),
    Address(Address),
    /// `cidr('…')`
    Network(Network),
    List(&'n [Node]),
    /// `request.headers` and other groups that are indexed by name.
    Keyed(Keyed),
    /// `data`
    Data,
    Texts(Arc<Texts>),
    Addresses(Arc<AddressSet>),
    Map(Arc<TextMap>),
    /// `jwt`
    Tokens,
    /// `jwt['name']`, by the number of the token reader.
    Token(u32),
    /// `jwt['name'].claims`
    Claims(u32),
    Group(Group),
    /// `pools`
    Pools,
    /// `pools['name']`
    Pool(u32),
    /// All values with one name.
    Values(Values),
}

impl Typed<'_> {
    fn describe(&self) -> &'static str {
        match self {
            Self::Boolean(_) => "a boolean",
            Self::Text(_) => "text",
            Self::Integer(_) => "an integer",
            Self::Address(_) => "an address",
            Self::Network(_) => "a network",
            Self::List(_) => "a list",
            Self::Keyed(_) => "a map",
            Self::Data => "all data sets",
            Self::Texts(_) => "a data set of strings",
            Self::Addresses(_) => "a data set of addresses",
            Self::Map(_) => "a data set of keys and values",
            Self::Tokens => "all tokens",
            Self::Token(_) => "a token",
            Self::Claims(_) => "a map",
            Self::Group(_) => "a group of fields",
            Self::Pools => "all pools",
            Self::Pool(_) => "a pool",
            Self::Values(_) => "several values",
        }
    }
}

type Checked<T> = Result<T, ExpressionError>;

/// Checks one expression and compiles it.
pub(super) struct Checker<'c, 's> {
    scope: &'c mut Scope<'s>,
    /// The values that the checked parts read.
    pub reads: Reads,
    /// The names of the request's cookies that the checked parts read.
    pub cookies: Vec<Box<str>>,
}

impl<'c, 's> Checker<'c, 's> {
    pub fn new(scope: &'c mut Scope<'s>) -> Self {
        Self { scope, reads: Reads::default(), cookies: Vec::new() }
    }

    /// A condition.
    pub fn boolean(&mut self, node: &Node) -> Checked<Test> {
        match self.typed(node)? {
            Typed::Boolean(test) => Ok(test),
            other => Err(mismatch(node, "a boolean", &other)),
        }
    }

    /// Text, or a value with exactly one text form.
    pub fn printable(&mut self, node: &Node) -> Checked<Text> {
        match self.typed(node)? {
            Typed::Text(text) => Ok(text),
            Typed::Integer(number) => Ok(Text::number(number)),
            Typed::Address(address) => Ok(Text::Address(address)),
            other => Err(mismatch(node, "text, an integer or an address", &other)),
        }
    }

    fn text(&mut self, node: &Node) -> Checked<Text> {
        match self.typed(node)? {
            Typed::Text(text) => Ok(text),
            other => Err(mismatch(node, "text", &other)),
        }
    }

    fn typed<'n>(&mut self, node: &'n Node) -> Checked<Typed<'n>> {
        Ok(match &node.kind {
            Kind::Text(text) => Typed::Text(Text::Constant(text.as_bytes().into())),
            Kind::Integer(value) => Typed::Integer(Number::Constant(*value)),
            Kind::Boolean(value) => Typed::Boolean(Test::Constant(*value)),
            Kind::Name(name) => self.root(name, node)?,
            Kind::Field { of, name } => self.field(of, name)?,
            Kind::Index { of, key } => self.index(of, key)?,
            Kind::Call { of: Some(of), name, arguments } => self.method(of, name, arguments)?,
            Kind::Call { of: None, name, arguments } => self.function(name, arguments)?,
            Kind::List(nodes) => Typed::List(nodes),
            Kind::Not(of) => Typed::Boolean(Test::not(self.boolean(of)?)),
            Kind::Negative(of) => Typed::Integer(number::negative(self, of)?),
            Kind::Arithmetic { operator, sides } => {
                Typed::Integer(number::arithmetic(self, *operator, sides)?)
            }
            Kind::Compare { relation, sides } => {
                Typed::Boolean(self.compare(*relation, &sides[0], &sides[1], &node.range)?)
            }
            Kind::All(nodes) => Typed::Boolean(Test::all(self.booleans(nodes)?)),
            Kind::Any(nodes) => Typed::Boolean(Test::any(self.booleans(nodes)?)),
            Kind::Choice(parts) => self.choice(parts)?,
        })
    }

    fn booleans(&mut self, nodes: &[Node]) -> Checked<Vec<Test>> {
        error::all(nodes.iter().map(|node| self.boolean(node)))
    }

    fn choice<'n>(&mut self, parts: &'n [Node; 3]) -> Checked<Typed<'n>> {
        let [condition, yes_node, no_node] = parts;
        let condition = self.boolean(condition);
        let branches = error::both(self.typed(yes_node), self.typed(no_node));
        let (condition, (yes, no)) = error::both(condition, branches)?;
        Ok(match (yes, no) {
            (Typed::Boolean(yes), Typed::Boolean(no)) => {
                Typed::Boolean(Test::choice(condition, yes, no))
            }
            (Typed::Text(yes), Typed::Text(no)) => Typed::Text(Text::choice(condition, yes, no)),
            (Typed::Integer(yes), Typed::Integer(no)) => {
                Typed::Integer(Number::choice(condition, yes, no))
            }
            (Typed::Address(yes), Typed::Address(no)) => {
                Typed::Address(Address::choice(condition, yes, no))
            }
            (yes, no) => {
                let message = format!(
                    "`?:` chooses between two of a kind, not between {} and {}",
                    yes.describe(),
                    no.describe()
                );
                return Err(ExpressionError::new(yes_node.range.start..no_node.range.end, message));
            }
        })
    }

    fn root(&mut self, name: &str, node: &Node) -> Checked<Typed<'static>> {
        if name == names::DATA {
            return Ok(Typed::Data);
        }
        if name == names::POOLS {
            return Ok(Typed::Pools);
        }
        if name == names::TOKENS {
            self.reads.request = true;
            return Ok(Typed::Tokens);
        }
        if let Some(group) = names::ROOTS.into_iter().find(|group| group.path() == name) {
            return self.group(group, &node.range);
        }
        let error = ExpressionError::new(node.range.clone(), format!("nothing is called `{name}`"));
        if names::function(name).is_some() {
            return Err(error.help(format!("`{name}` is a function: `{name}(…)`")));
        }
        // A field without its group: `path`.
        if let Some(group) = names::ROOTS.into_iter().find(|group| group.member(name).is_some()) {
            return Err(error.help(format!("did you mean `{}.{name}`?", group.path())));
        }
        let roots = names::ROOTS.iter().map(|group| group.path());
        let roots = roots.chain([names::DATA, names::POOLS, names::TOKENS, "true", "false"]);
        Err(foreign::of_root(error, name).unwrap_or_else(|error| error.suggest(name, roots)))
    }

    fn group(&mut self, group: Group, range: &Range<usize>) -> Checked<Typed<'static>> {
        if matches!(group, Group::Response | Group::Member) {
            if self.scope.phase == Phase::Request {
                let what = group.path();
                let message = format!("the {what} is not there yet where this is evaluated");
                return Err(ExpressionError::new(range.clone(), message));
            }
            self.reads.response = true;
        }
        if group == Group::Server {
            self.scope.slots.note_server();
        }
        self.reads.request |= group == Group::Request;
        if group.is_of_datagrams() {
            if !self.scope.has_datagrams {
                return Err(datagram::no_datagram(group, range));
            }
            self.reads.datagram = true;
        }
        Ok(Typed::Group(group))
    }

    /// `of.name`
    fn field(&mut self, of: &Node, name: &Word) -> Checked<Typed<'static>> {
        let of_typed = self.typed(of)?;
        let error = |message: String| ExpressionError::new(name.range.clone(), message);
        let text = &name.text;
        match of_typed {
            Typed::Group(group) => match group.member(text) {
                Some(member) => self.member(member, &name.range),
                None => {
                    if group.readers().iter().any(|(known, _)| known == text) {
                        let path = group.path();
                        let help = format!("it is called with two numbers: `{path}.{text}(…, …)`");
                        return Err(error(format!("{path} has no field `{text}`")).help(help));
                    }
                    let names = group.members().iter().map(|(name, _)| *name);
                    let error = error(format!("{} has no field `{text}`", group.path()));
                    let error = match group {
                        Group::Request => foreign::of_request(error, text),
                        _ => Err(error),
                    };
                    Err(error.unwrap_or_else(|error| error.suggest(text, names)))
                }
            },
            Typed::Keyed(keyed) => {
                let path = keyed.path();
                let key = match keyed {
                    Keyed::RadiusAttribute => keyed.sample_key().to_owned(),
                    _ => format!("'{text}'"),
                };
                Err(error(format!("{path} is read by {}", keyed.key()))
                    .help(format!("write `{path}[{key}]`")))
            }
            Typed::Data => Err(error("data sets are named in brackets".into())
                .help(format!("write `data['{text}']`"))),
            Typed::Pools => Err(error("pools are named in brackets".into())
                .help(format!("write `pools['{text}']`"))),
            Typed::Pool(number) => Ok(Typed::Integer(pool::field(number, name)?)),
            Typed::Tokens => Err(error("tokens are named in brackets".into()).help(format!(
                "write `jwt['NAME'].{text}`, with the name of an authentication of type jwt"
            ))),
            Typed::Token(reader) => token::token_field(reader, name),
            Typed::Claims(_) => Err(error("a claim is read by its name in brackets".into())
                .help(format!("write `claims['{text}']`"))),
            other => {
                let error = error(format!("{} has no field `{text}`", other.describe()));
                Err(match names::method(text) {
                    Some(_) => error.help(format!("did you mean `{text}(…)`?")),
                    None => foreign::of_call(error, text).unwrap_or_else(|error| error),
                })
            }
        }
    }

    fn member(&mut self, member: Member, range: &Range<usize>) -> Checked<Typed<'static>> {
        if let Member::Text(fact) = member {
            self.reads.server_name |= fact == TextFact::TlsSni;
            self.reads.handshake |= fact.is_of_handshake();
        }
        Ok(match member {
            Member::Text(fact) => Typed::Text(Text::Fact(fact)),
            Member::Number(fact) => Typed::Integer(Number::Fact(fact)),
            Member::Address(fact) => Typed::Address(Address::Fact(fact)),
            Member::Host => Typed::Text(Text::Slot(HOST)),
            Member::Target => Typed::Text(Text::Slot(self.scope.slots.of(Source::Target))),
            Member::Time(part) => Typed::Integer(Number::Time(part)),
            Member::Date => Typed::Text(Text::Slot(self.scope.slots.of(Source::Date))),
            Member::Clock => Typed::Text(Text::Slot(self.scope.slots.of(Source::Clock))),
            Member::User => Typed::Text(Text::User),
            Member::QuicConnectionId => {
                Typed::Text(Text::Slot(self.scope.slots.of(Source::QuicConnectionId)))
            }
            Member::Keyed(keyed) => Typed::Keyed(keyed),
            Member::Names(kind) => {
                self.reads.handshake = true;
                Typed::Values(Values::Names(kind))
            }
            Member::Group(group) => self.group(group, range)?,
        })
    }

    /// `of[key]`
    fn index(&mut self, of: &Node, key: &Node) -> Checked<Typed<'static>> {
        match self.typed(of)? {
            Typed::Keyed(Keyed::RadiusAttribute) => {
                Ok(Typed::Text(Text::Slot(self.radius_attribute(key)?)))
            }
            Typed::Keyed(keyed) => {
                let name = self.literal(key, "a name in brackets")?;
                Ok(Typed::Text(Text::Slot(self.slot(keyed, &name, &key.range)?)))
            }
            Typed::Data => {
                let name = self.literal(key, "the name of a data set")?;
                let data = self.scope.data;
                match data.get(&name).map(data::DataSet::kind) {
                    Some(data::Kind::Texts(texts)) => Ok(Typed::Texts(texts.clone())),
                    Some(data::Kind::Addresses(set)) => Ok(Typed::Addresses(set.clone())),
                    Some(data::Kind::Map(map)) => Ok(Typed::Map(map.clone())),
                    None => Err(ExpressionError::new(
                        key.range.clone(),
                        format!("there is no data set `{}`", name.escape_debug()),
                    )
                    .suggest(&name, data.names())),
                }
            }
            Typed::Tokens => token::token(self, key),
            Typed::Claims(reader) => Ok(Typed::Text(Text::Slot(token::claim(self, reader, key)?))),
            Typed::Map(map) => Ok(Typed::Text(Text::lookup(map, self.text(key)?))),
            Typed::Pools => pool::named(self, key).map(Typed::Pool),
            Typed::Values(values) => {
                Ok(Typed::Text(Text::Value(values, text_function::number(key, 0)?)))
            }
            other => {
                let message = format!("{} is not read by brackets", other.describe());
                Err(ExpressionError::new(of.range.clone(), message))
            }
        }
    }

    /// The slot of a header, a parameter or a cookie.
    fn slot(&mut self, keyed: Keyed, name: &str, range: &Range<usize>) -> Checked<u32> {
        let is_header = matches!(keyed, Keyed::Header | Keyed::ResponseHeader | Keyed::SipHeader);
        if is_header && !weir_http::is_token(name.as_bytes()) {
            let message = format!("no header can be called `{}`", name.escape_debug());
            return Err(ExpressionError::new(range.clone(), message));
        }
        let source = match keyed {
            Keyed::Query => Source::Query(name.into()),
            Keyed::Cookie => {
                self.cookies.push(name.into());
                Source::Cookie(name.into())
            }
            Keyed::ResponseCookie => Source::ResponseCookie(name.into()),
            // Header names are case-insensitive, so one spelling is enough.
            Keyed::Header => Source::Header(name.to_ascii_lowercase().into()),
            Keyed::ResponseHeader => Source::ResponseHeader(name.to_ascii_lowercase().into()),
            Keyed::SipHeader => Source::SipHeader(name.to_ascii_lowercase().into()),
            // Indexed by number; the callers have excluded this.
            Keyed::RadiusAttribute => {
                let message = format!("{} is read by {}", keyed.path(), keyed.key());
                return Err(ExpressionError::new(range.clone(), message));
            }
        };
        Ok(self.scope.slots.of(source))
    }

    /// A text literal.
    fn literal(&mut self, node: &Node, what: &str) -> Checked<String> {
        if let Kind::Text(text) = &node.kind {
            return Ok(text.clone());
        }
        // Errors within the argument are reported first.
        self.typed(node)?;
        let message = format!("{what} must be literal text: `'…'`");
        Err(ExpressionError::new(node.range.clone(), message))
    }
}

fn mismatch(node: &Node, wanted: &str, found: &Typed) -> ExpressionError {
    let message = format!("{wanted} is wanted here, and this is {}", found.describe());
    let error = ExpressionError::new(node.range.clone(), message);
    match found {
        Typed::Keyed(keyed) => {
            error.help(format!("write `{}[{}]`", keyed.path(), keyed.sample_key()))
        }
        Typed::Group(group) => match group.members().first() {
            Some((name, _)) => error.help(format!("for example `{}.{name}`", group.path())),
            None => match group.readers().first() {
                Some((name, _)) => {
                    error.help(format!("for example `{}.{name}(…, …)`", group.path()))
                }
                None => error,
            },
        },
        Typed::Values(_) if wanted == "text" => error.help("`[0]` is the first of them"),
        Typed::Pool(_) => error.help("for example `pools['…'].up_members`"),
        Typed::Token(_) => error.help("for example `jwt['…'].valid`"),
        Typed::Claims(_) => error.help("write `jwt['…'].claims['…']`"),
        Typed::Address(_) if wanted == "text" => {
            error.help("`string(…)` makes text of an address or an integer")
        }
        Typed::Integer(_) if wanted == "text" => {
            error.help("`string(…)` makes text of an address or an integer")
        }
        Typed::Text(_) if wanted == "a boolean" => {
            error.help("compare it, for example with `!= ''`")
        }
        _ => error,
    }
}
