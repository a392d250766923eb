//! Methods and functions.

use std::sync::Arc;

use super::arguments::{no_argument, one_argument};
use super::relation::network;
use super::text_function;
use super::values;
use super::{CheckResult, Checker, TypedNode, mismatch};
use crate::expression::ExpressionError;
use crate::expression::addresses::{AddressSet, Network};
use crate::expression::ast::{Node, Word};
use crate::expression::data::{SEARCHED_TEXTS_BYTES_MAX, Texts};
use crate::expression::foreign;
use crate::expression::names::{self, Function, Method};
use crate::expression::plan::{Number, Test, Text, TextRelation, Trait};

impl Checker<'_, '_> {
    /// `of.name(arguments)`
    pub(super) fn method(
        &mut self,
        of: &Node,
        name: &Word,
        arguments: &[Node],
    ) -> CheckResult<TypedNode<'static>> {
        let receiver = self.typed(of)?;
        if let TypedNode::Group(group) = receiver
            && let Some((_, reader)) = group.readers().iter().find(|(known, _)| *known == name.text)
        {
            return self.reader(*reader, name, arguments);
        }
        if let TypedNode::Values(values) = receiver {
            return values::method(values, name, arguments);
        }
        let Some(method) = names::method(&name.text) else {
            return Err(unknown_method(name, &receiver));
        };
        match (method, receiver) {
            (Method::ContainsIp, TypedNode::Network(network)) => {
                self.contains_ip(network, name, arguments)
            }
            (Method::ContainsIp, other) => Err(mismatch(of, "a network", &other)
                .help("`containsIP` is called on a network: `cidr('…').containsIP(…)`")),
            (Method::All, TypedNode::Keyed(keyed)) => values::all(self, keyed, name, arguments),
            (_, TypedNode::Text(text)) => self.text_method(text, method, name, arguments),
            (_, TypedNode::Address(_)) => {
                let message = format!("`{}` is called on text, and this is an address", name.text);
                Err(ExpressionError::new(of.range.clone(), message).help(
                    "`cidr('…').containsIP(…)` asks for a network, `string(…)` makes text of it",
                ))
            }
            (_, other) => {
                let message =
                    format!("`{}` is called on text, and this is {}", name.text, other.describe());
                Err(ExpressionError::new(of.range.clone(), message))
            }
        }
    }

    fn text_method(
        &mut self,
        text: Text,
        method: Method,
        name: &Word,
        arguments: &[Node],
    ) -> CheckResult<TypedNode<'static>> {
        let test = match method {
            Method::Size => {
                no_argument(name, arguments)?;
                return Ok(TypedNode::Integer(Number::size(text)));
            }
            Method::LowerAscii => {
                no_argument(name, arguments)?;
                return Ok(TypedNode::Text(Text::lower(text)));
            }
            Method::Part
            | Method::Segment
            | Method::Substring
            | Method::Replace
            | Method::UrlDecode
            | Method::Base64Decode => {
                let function = text_function::of(method, name, arguments)?;
                return Ok(TypedNode::Text(Text::made(function, text)));
            }
            Method::Hash => {
                let below = text_function::number(one_argument(name, arguments)?, 1)?;
                return Ok(TypedNode::Integer(Number::hash(text, below)));
            }
            Method::StartsWith => self.part(TextRelation::StartsWith, text, name, arguments)?,
            Method::EndsWith => self.part(TextRelation::EndsWith, text, name, arguments)?,
            Method::Contains => self.part(TextRelation::Contains, text, name, arguments)?,
            Method::Matches => self.matches(text, name, arguments)?,
            Method::StartsWithAny => {
                let texts = self.texts(name, arguments)?;
                Test::text(text, Trait::StartsWithAny(texts.prefixes()))
            }
            Method::EndsWithAny => {
                let texts = self.texts(name, arguments)?;
                Test::text(text, Trait::EndsWithAny(texts.suffixes()))
            }
            Method::ContainsAny => {
                let texts = self.texts(name, arguments)?;
                let Some(search) = texts.search() else {
                    let message = format!(
                        "the texts to search for are larger than {SEARCHED_TEXTS_BYTES_MAX} bytes"
                    );
                    return Err(ExpressionError::new(arguments[0].range.clone(), message));
                };
                Test::text(text, Trait::ContainsAny(search))
            }
            // Called on another type; the caller has excluded this.
            Method::ContainsIp | Method::All => {
                return Err(unknown_method(name, &TypedNode::Text(text)));
            }
        };
        Ok(TypedNode::Boolean(test))
    }

    fn part(
        &mut self,
        relation: TextRelation,
        text: Text,
        name: &Word,
        arguments: &[Node],
    ) -> CheckResult<Test> {
        let argument = one_argument(name, arguments)?;
        match self.typed(argument)? {
            TypedNode::Text(part) => Ok(Test::texts(relation, text, part)),
            other @ (TypedNode::List(_) | TypedNode::Texts(_)) => {
                Err(mismatch(argument, "text", &other)
                    .help(format!("did you mean `{}Any`?", name.text)))
            }
            other => Err(mismatch(argument, "text", &other)),
        }
    }

    fn matches(&mut self, text: Text, name: &Word, arguments: &[Node]) -> CheckResult<Test> {
        let argument = one_argument(name, arguments)?;
        let pattern = self.literal(argument, "a regular expression")?;
        match self.scope.slots.pattern(&pattern) {
            Ok(number) => Ok(Test::Matches(text, number)),
            Err(reason) => Err(ExpressionError::new(
                argument.range.clone(),
                format!("not a regular expression: {reason}"),
            )),
        }
    }

    /// The argument of `startsWithAny` and similar methods: a list of texts, or a data set.
    fn texts(&mut self, name: &Word, arguments: &[Node]) -> CheckResult<Arc<Texts>> {
        let argument = one_argument(name, arguments)?;
        match self.typed(argument)? {
            TypedNode::Texts(texts) => Ok(texts),
            TypedNode::List(nodes) => Ok(Arc::new(Texts::new(self.text_literals(nodes)?))),
            other => {
                let error = mismatch(argument, "a data set of strings or a list of texts", &other);
                Err(match (&other, name.text.strip_suffix("Any")) {
                    (TypedNode::Text(_), Some(single)) => {
                        error.help(format!("did you mean `{single}`?"))
                    }
                    _ => error,
                })
            }
        }
    }

    fn contains_ip(
        &mut self,
        network: Network,
        name: &Word,
        arguments: &[Node],
    ) -> CheckResult<TypedNode<'static>> {
        let argument = one_argument(name, arguments)?;
        match self.typed(argument)? {
            TypedNode::Address(address) => {
                let set = Arc::new(AddressSet::new([network]));
                Ok(TypedNode::Boolean(Test::AddressIn(address, set)))
            }
            other => Err(mismatch(argument, "an address", &other)),
        }
    }

    /// `name(arguments)`
    pub(super) fn function(
        &mut self,
        name: &Word,
        arguments: &[Node],
    ) -> CheckResult<TypedNode<'static>> {
        let Some(function) = names::function(&name.text) else {
            return Err(unknown_function(name));
        };
        let argument = one_argument(name, arguments)?;
        Ok(match function {
            Function::Cidr => {
                let text = self.literal(argument, "a network")?;
                TypedNode::Network(network(&text, &argument.range)?)
            }
            Function::Int => TypedNode::Integer(Number::parsed(self.text(argument)?)),
            Function::Random => {
                let below = text_function::number(argument, 1)?;
                self.reads.random = true;
                TypedNode::Integer(Number::Random { call: self.scope.slots.random_call(), below })
            }
            Function::Size => match self.typed(argument)? {
                TypedNode::Values(values) => TypedNode::Integer(Number::Count(values)),
                TypedNode::Text(text) => TypedNode::Integer(Number::size(text)),
                other => return Err(mismatch(argument, "text", &other)),
            },
            Function::String => TypedNode::Text(self.printable(argument)?),
        })
    }
}

fn unknown_method(name: &Word, receiver: &TypedNode) -> ExpressionError {
    let message = format!("{} has no method `{}`", receiver.describe(), name.text);
    let readers = match receiver {
        TypedNode::Group(group) => group.readers(),
        _ => &[],
    };
    let methods = names::METHODS.iter().map(|(name, _)| *name);
    let error = ExpressionError::new(name.range.clone(), message);
    foreign::of_call(error, &name.text).unwrap_or_else(|error| {
        error.suggest(&name.text, readers.iter().map(|(name, _)| *name).chain(methods))
    })
}

fn unknown_function(name: &Word) -> ExpressionError {
    let text = &name.text;
    let error = ExpressionError::new(name.range.clone(), format!("there is no function `{text}`"));
    if names::method(text).is_some() {
        return error.help(format!("`{text}` is called on a value: `request.path.{text}(…)`"));
    }
    foreign::of_function(error, text).unwrap_or_else(|error| {
        let names = names::FUNCTIONS.iter().map(|(name, _)| *name);
        let error = error.suggest(text, names.clone());
        if error.help.is_some() {
            return error;
        }
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        error.help(format!("the functions are {}", names.join(", ")))
    })
}
