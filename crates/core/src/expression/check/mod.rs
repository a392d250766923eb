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
use super::names::{self, Group, KeyedGroup, Member};
use super::plan::{Address, Number, Test, Text};
use super::slots::{HOST, Source};
use super::text_set::TextMap;
use super::{ExpressionError, Phase, Reads, Scope};

/// The type of a part of an expression.
enum TypedNode<'n> {
    Boolean(Test),
    Text(Text),
    Integer(Number),
    Address(Address),
    /// `cidr('…')`
    Network(Network),
    List(&'n [Node]),
    /// `request.headers` and other groups that are indexed by name.
    Keyed(KeyedGroup),
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

impl TypedNode<'_> {
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

type CheckResult<T> = Result<T, ExpressionError>;

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
    pub fn boolean(&mut self, node: &Node) -> CheckResult<Test> {
        match self.typed(node)? {
            TypedNode::Boolean(test) => Ok(test),
            other => Err(mismatch(node, "a boolean", &other)),
        }
    }

    /// Text, or a value with exactly one text form.
    pub fn printable(&mut self, node: &Node) -> CheckResult<Text> {
        match self.typed(node)? {
            TypedNode::Text(text) => Ok(text),
            TypedNode::Integer(number) => Ok(Text::number(number)),
            TypedNode::Address(address) => Ok(Text::Address(address)),
            other => Err(mismatch(node, "text, an integer or an address", &other)),
        }
    }

    fn text(&mut self, node: &Node) -> CheckResult<Text> {
        match self.typed(node)? {
            TypedNode::Text(text) => Ok(text),
            other => Err(mismatch(node, "text", &other)),
        }
    }

    fn typed<'n>(&mut self, node: &'n Node) -> CheckResult<TypedNode<'n>> {
        Ok(match &node.kind {
            Kind::Text(text) => TypedNode::Text(Text::Constant(text.as_bytes().into())),
            Kind::Integer(value) => TypedNode::Integer(Number::Constant(*value)),
            Kind::Boolean(value) => TypedNode::Boolean(Test::Constant(*value)),
            Kind::Name(name) => self.root(name, node)?,
            Kind::Field { of, name } => self.field(of, name)?,
            Kind::Index { of, key } => self.index(of, key)?,
            Kind::Call { of: Some(of), name, arguments } => self.method(of, name, arguments)?,
            Kind::Call { of: None, name, arguments } => self.function(name, arguments)?,
            Kind::List(nodes) => TypedNode::List(nodes),
            Kind::Not(of) => TypedNode::Boolean(Test::not(self.boolean(of)?)),
            Kind::Negative(of) => TypedNode::Integer(number::negative(self, of)?),
            Kind::Arithmetic { operator, sides } => {
                TypedNode::Integer(number::arithmetic(self, *operator, sides)?)
            }
            Kind::Compare { relation, sides } => {
                TypedNode::Boolean(self.compare(*relation, &sides[0], &sides[1], &node.range)?)
            }
            Kind::All(nodes) => TypedNode::Boolean(Test::all(self.booleans(nodes)?)),
            Kind::Any(nodes) => TypedNode::Boolean(Test::any(self.booleans(nodes)?)),
            Kind::Choice(parts) => self.choice(parts)?,
        })
    }

    fn booleans(&mut self, nodes: &[Node]) -> CheckResult<Vec<Test>> {
        error::all(nodes.iter().map(|node| self.boolean(node)))
    }

    fn choice<'n>(&mut self, parts: &'n [Node; 3]) -> CheckResult<TypedNode<'n>> {
        let [condition, yes_node, no_node] = parts;
        let condition = self.boolean(condition);
        let branches = error::both(self.typed(yes_node), self.typed(no_node));
        let (condition, (yes, no)) = error::both(condition, branches)?;
        Ok(match (yes, no) {
            (TypedNode::Boolean(yes), TypedNode::Boolean(no)) => {
                TypedNode::Boolean(Test::choice(condition, yes, no))
            }
            (TypedNode::Text(yes), TypedNode::Text(no)) => {
                TypedNode::Text(Text::choice(condition, yes, no))
            }
            (TypedNode::Integer(yes), TypedNode::Integer(no)) => {
                TypedNode::Integer(Number::choice(condition, yes, no))
            }
            (TypedNode::Address(yes), TypedNode::Address(no)) => {
                TypedNode::Address(Address::choice(condition, yes, no))
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

    fn root(&mut self, name: &str, node: &Node) -> CheckResult<TypedNode<'static>> {
        if name == names::DATA {
            return Ok(TypedNode::Data);
        }
        if name == names::POOLS {
            return Ok(TypedNode::Pools);
        }
        if name == names::TOKENS {
            self.reads.request = true;
            return Ok(TypedNode::Tokens);
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

    fn group(&mut self, group: Group, range: &Range<usize>) -> CheckResult<TypedNode<'static>> {
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
        Ok(TypedNode::Group(group))
    }

    /// `of.name`
    fn field(&mut self, of: &Node, name: &Word) -> CheckResult<TypedNode<'static>> {
        let of_typed = self.typed(of)?;
        let error = |message: String| ExpressionError::new(name.range.clone(), message);
        let text = &name.text;
        match of_typed {
            TypedNode::Group(group) => match group.member(text) {
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
            TypedNode::Keyed(keyed) => {
                let path = keyed.path();
                let key = match keyed {
                    KeyedGroup::RadiusAttribute => keyed.sample_key().to_owned(),
                    _ => format!("'{text}'"),
                };
                Err(error(format!("{path} is read by {}", keyed.key()))
                    .help(format!("write `{path}[{key}]`")))
            }
            TypedNode::Data => Err(error("data sets are named in brackets".into())
                .help(format!("write `data['{text}']`"))),
            TypedNode::Pools => Err(error("pools are named in brackets".into())
                .help(format!("write `pools['{text}']`"))),
            TypedNode::Pool(number) => Ok(TypedNode::Integer(pool::field(number, name)?)),
            TypedNode::Tokens => Err(error("tokens are named in brackets".into()).help(format!(
                "write `jwt['NAME'].{text}`, with the name of an authentication of type jwt"
            ))),
            TypedNode::Token(reader) => token::token_field(reader, name),
            TypedNode::Claims(_) => Err(error("a claim is read by its name in brackets".into())
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

    fn member(&mut self, member: Member, range: &Range<usize>) -> CheckResult<TypedNode<'static>> {
        if let Member::Text(fact) = member {
            self.reads.server_name |= fact == TextFact::TlsSni;
            self.reads.handshake |= fact.is_of_handshake();
        }
        Ok(match member {
            Member::Text(fact) => TypedNode::Text(Text::Fact(fact)),
            Member::Number(fact) => TypedNode::Integer(Number::Fact(fact)),
            Member::Address(fact) => TypedNode::Address(Address::Fact(fact)),
            Member::Host => TypedNode::Text(Text::Slot(HOST)),
            Member::Target => TypedNode::Text(Text::Slot(self.scope.slots.of(Source::Target))),
            Member::Time(part) => TypedNode::Integer(Number::Time(part)),
            Member::Date => TypedNode::Text(Text::Slot(self.scope.slots.of(Source::Date))),
            Member::Clock => TypedNode::Text(Text::Slot(self.scope.slots.of(Source::Clock))),
            Member::User => TypedNode::Text(Text::User),
            Member::QuicConnectionId => {
                TypedNode::Text(Text::Slot(self.scope.slots.of(Source::QuicConnectionId)))
            }
            Member::Keyed(keyed) => TypedNode::Keyed(keyed),
            Member::Names(kind) => {
                self.reads.handshake = true;
                TypedNode::Values(Values::Names(kind))
            }
            Member::Group(group) => self.group(group, range)?,
        })
    }

    /// `of[key]`
    fn index(&mut self, of: &Node, key: &Node) -> CheckResult<TypedNode<'static>> {
        match self.typed(of)? {
            TypedNode::Keyed(KeyedGroup::RadiusAttribute) => {
                Ok(TypedNode::Text(Text::Slot(self.radius_attribute(key)?)))
            }
            TypedNode::Keyed(keyed) => {
                let name = self.literal(key, "a name in brackets")?;
                Ok(TypedNode::Text(Text::Slot(self.slot(keyed, &name, &key.range)?)))
            }
            TypedNode::Data => {
                let name = self.literal(key, "the name of a data set")?;
                let data = self.scope.data;
                match data.get(&name).map(data::DataSet::kind) {
                    Some(data::Kind::Texts(texts)) => Ok(TypedNode::Texts(texts.clone())),
                    Some(data::Kind::Addresses(set)) => Ok(TypedNode::Addresses(set.clone())),
                    Some(data::Kind::Map(map)) => Ok(TypedNode::Map(map.clone())),
                    None => Err(ExpressionError::new(
                        key.range.clone(),
                        format!("there is no data set `{}`", name.escape_debug()),
                    )
                    .suggest(&name, data.names())),
                }
            }
            TypedNode::Tokens => token::token(self, key),
            TypedNode::Claims(reader) => {
                Ok(TypedNode::Text(Text::Slot(token::claim(self, reader, key)?)))
            }
            TypedNode::Map(map) => Ok(TypedNode::Text(Text::lookup(map, self.text(key)?))),
            TypedNode::Pools => pool::named(self, key).map(TypedNode::Pool),
            TypedNode::Values(values) => {
                Ok(TypedNode::Text(Text::Value(values, text_function::number(key, 0)?)))
            }
            other => {
                let message = format!("{} is not read by brackets", other.describe());
                Err(ExpressionError::new(of.range.clone(), message))
            }
        }
    }

    /// The slot of a header, a parameter or a cookie.
    fn slot(&mut self, keyed: KeyedGroup, name: &str, range: &Range<usize>) -> CheckResult<u32> {
        let is_header = matches!(
            keyed,
            KeyedGroup::Header | KeyedGroup::ResponseHeader | KeyedGroup::SipHeader
        );
        if is_header && !weir_http::is_token(name.as_bytes()) {
            let message = format!("no header can be called `{}`", name.escape_debug());
            return Err(ExpressionError::new(range.clone(), message));
        }
        let source = match keyed {
            KeyedGroup::Query => Source::Query(name.into()),
            KeyedGroup::Cookie => {
                self.cookies.push(name.into());
                Source::Cookie(name.into())
            }
            KeyedGroup::ResponseCookie => Source::ResponseCookie(name.into()),
            // Header names are case-insensitive, so one spelling is enough.
            KeyedGroup::Header => Source::Header(name.to_ascii_lowercase().into()),
            KeyedGroup::ResponseHeader => Source::ResponseHeader(name.to_ascii_lowercase().into()),
            KeyedGroup::SipHeader => Source::SipHeader(name.to_ascii_lowercase().into()),
            // Indexed by number; the callers have excluded this.
            KeyedGroup::RadiusAttribute => {
                let message = format!("{} is read by {}", keyed.path(), keyed.key());
                return Err(ExpressionError::new(range.clone(), message));
            }
        };
        Ok(self.scope.slots.of(source))
    }

    /// A text literal.
    fn literal(&mut self, node: &Node, what: &str) -> CheckResult<String> {
        if let Kind::Text(text) = &node.kind {
            return Ok(text.clone());
        }
        // Errors within the argument are reported first.
        self.typed(node)?;
        let message = format!("{what} must be literal text: `'…'`");
        Err(ExpressionError::new(node.range.clone(), message))
    }
}

fn mismatch(node: &Node, wanted: &str, found: &TypedNode) -> ExpressionError {
    let message = format!("{wanted} is wanted here, and this is {}", found.describe());
    let error = ExpressionError::new(node.range.clone(), message);
    match found {
        TypedNode::Keyed(keyed) => {
            error.help(format!("write `{}[{}]`", keyed.path(), keyed.sample_key()))
        }
        TypedNode::Group(group) => match group.members().first() {
            Some((name, _)) => error.help(format!("for example `{}.{name}`", group.path())),
            None => match group.readers().first() {
                Some((name, _)) => {
                    error.help(format!("for example `{}.{name}(…, …)`", group.path()))
                }
                None => error,
            },
        },
        TypedNode::Values(_) if wanted == "text" => error.help("`[0]` is the first of them"),
        TypedNode::Pool(_) => error.help("for example `pools['…'].up_members`"),
        TypedNode::Token(_) => error.help("for example `jwt['…'].valid`"),
        TypedNode::Claims(_) => error.help("write `jwt['…'].claims['…']`"),
        TypedNode::Address(_) if wanted == "text" => {
            error.help("`string(…)` makes text of an address or an integer")
        }
        TypedNode::Integer(_) if wanted == "text" => {
            error.help("`string(…)` makes text of an address or an integer")
        }
        TypedNode::Text(_) if wanted == "a boolean" => {
            error.help("compare it, for example with `!= ''`")
        }
        _ => error,
    }
}
