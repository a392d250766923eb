//! Comparison and membership.

use std::ops::Range;
use std::sync::Arc;

use super::{CheckResult, Checker, TypedNode, token};
use crate::expression::ExpressionError;
use crate::expression::addresses::{AddressSet, Network, NetworkError};
use crate::expression::ast::{Kind, Node, Relation};
use crate::expression::error;
use crate::expression::names::KeyedGroup;
use crate::expression::plan::{Address, Order, Test, Text, TextRelation, Trait};
use crate::expression::text_set::TextSet;

impl Checker<'_, '_> {
    pub(super) fn compare(
        &mut self,
        relation: Relation,
        left: &Node,
        right: &Node,
        range: &Range<usize>,
    ) -> CheckResult<Test> {
        let Some((order, swapped, negated)) = Order::of(relation) else {
            return self.membership(left, right);
        };
        let (left, right) = if swapped { (right, left) } else { (left, right) };
        let test = match error::both(self.typed(left), self.typed(right))? {
            (TypedNode::Text(one), TypedNode::Text(other)) => {
                Test::texts(TextRelation::Ordered(order), one, other)
            }
            (TypedNode::Integer(one), TypedNode::Integer(other)) => {
                Test::numbers(order, one, other)
            }
            (TypedNode::Boolean(one), TypedNode::Boolean(other)) if order == Order::Equal => {
                Test::same(one, other)
            }
            (TypedNode::Address(one), TypedNode::Address(other)) if order == Order::Equal => {
                Test::SameAddress(Box::new([one, other]))
            }
            (TypedNode::Address(address), TypedNode::Text(literal)) if order == Order::Equal => {
                is_address(address, &literal, right)?
            }
            (TypedNode::Text(literal), TypedNode::Address(address)) if order == Order::Equal => {
                is_address(address, &literal, left)?
            }
            (one, other) => {
                let (one, other) = if swapped { (other, one) } else { (one, other) };
                let message = format!(
                    "`{}` cannot compare {} with {}",
                    relation.symbol(),
                    one.describe(),
                    other.describe()
                );
                return Err(ExpressionError::new(range.clone(), message));
            }
        };
        Ok(Test::negated_if(negated, test))
    }

    /// `left in right`
    fn membership(&mut self, left: &Node, right: &Node) -> CheckResult<Test> {
        let (member, set) = error::both(self.typed(left), self.typed(right))?;
        Ok(match (member, set) {
            (TypedNode::Text(text), TypedNode::List(nodes)) => {
                let texts = self.text_literals(nodes)?.into_iter();
                Test::text(text, Trait::In(Arc::new(TextSet::new(texts))))
            }
            (TypedNode::Integer(number), TypedNode::List(nodes)) => {
                Test::number_in(number, self.integer_literals(nodes)?)
            }
            (TypedNode::Address(address), TypedNode::List(nodes)) => {
                let networks = self.network_literals(nodes)?;
                Test::AddressIn(address, Arc::new(AddressSet::new(networks)))
            }
            (TypedNode::Integer(_), TypedNode::Keyed(KeyedGroup::RadiusAttribute)) => {
                Test::Present(self.radius_attribute(left)?)
            }
            (TypedNode::Text(_), TypedNode::Keyed(keyed))
                if keyed != KeyedGroup::RadiusAttribute =>
            {
                let name = self.literal(left, "the name to look for")?;
                Test::Present(self.slot(keyed, &name, &left.range)?)
            }
            (TypedNode::Text(_), TypedNode::Claims(reader)) => {
                Test::Present(token::claim(self, reader, left)?)
            }
            (TypedNode::Text(text), TypedNode::Text(Text::Slot(slot)))
                if token::is_claim(self, slot) =>
            {
                token::claim_has(self, text, slot)
            }
            (TypedNode::Text(text), TypedNode::Texts(texts)) => {
                Test::text(text, Trait::In(texts.set.clone()))
            }
            (TypedNode::Address(address), TypedNode::Addresses(set)) => {
                Test::AddressIn(address, set)
            }
            (TypedNode::Text(key), TypedNode::Map(map)) => Test::has_key(key, map),
            (TypedNode::Text(text), TypedNode::Values(values)) => Test::AmongValues(text, values),
            (member, set) => {
                let message = format!("{} cannot be in {}", member.describe(), set.describe());
                let range = left.range.start..right.range.end;
                let error = ExpressionError::new(range, message);
                return Err(match (member, set) {
                    (TypedNode::Address(_), TypedNode::Text(_)) => {
                        error.help("write a list of addresses and networks: `in ['10.0.0.0/8']`")
                    }
                    (_, TypedNode::Text(_)) => {
                        error.help("`text.contains(part)` looks for a part of a text; a list stands in brackets: `['…']`")
                    }
                    (TypedNode::Text(_), TypedNode::Keyed(KeyedGroup::RadiusAttribute)) => {
                        error.help("write a number: `44 in radius.attributes`")
                    }
                    (TypedNode::Address(_), TypedNode::Network(_)) => {
                        error.help("write `cidr('…').containsIP(…)`")
                    }
                    (TypedNode::Address(_), TypedNode::Texts(_) | TypedNode::Map(_)) => {
                        error.help("`string(…)` makes text of an address")
                    }
                    _ => error,
                });
            }
        })
    }

    /// The elements of a list of texts.
    pub(super) fn text_literals(&mut self, nodes: &[Node]) -> CheckResult<Vec<Box<[u8]>>> {
        self.literals(nodes, "text", |node| match &node.kind {
            Kind::Text(text) => Some(Ok(text.as_bytes().into())),
            _ => None,
        })
    }

    fn integer_literals(&mut self, nodes: &[Node]) -> CheckResult<Vec<i64>> {
        self.literals(nodes, "an integer", |node| match node.kind {
            Kind::Integer(value) => Some(Ok(value)),
            _ => None,
        })
    }

    fn network_literals(&mut self, nodes: &[Node]) -> CheckResult<Vec<Network>> {
        self.literals(nodes, "an address or network in quotes", |node| match &node.kind {
            Kind::Text(text) => Some(network(text, &node.range)),
            _ => None,
        })
    }

    fn literals<T>(
        &mut self,
        nodes: &[Node],
        wanted: &str,
        read: impl Fn(&Node) -> Option<CheckResult<T>>,
    ) -> CheckResult<Vec<T>> {
        let mut found = Vec::with_capacity(nodes.len());
        for node in nodes {
            match read(node) {
                Some(literal) => found.push(literal?),
                None => {
                    // Errors within the argument are reported first.
                    self.typed(node)?;
                    let message = format!("only literal values can stand in this list: {wanted}");
                    return Err(ExpressionError::new(node.range.clone(), message)
                        .help("compare with other values by `==`, joined by `||`"));
                }
            }
        }
        Ok(found)
    }
}

/// Whether an address equals a literal.
fn is_address(address: Address, literal: &Text, node: &Node) -> CheckResult<Test> {
    let Text::Constant(bytes) = literal else {
        let message = "an address compares with an address, or with one in quotes";
        return Err(ExpressionError::new(node.range.clone(), message)
            .help("`string(…)` makes text of an address"));
    };
    let text = String::from_utf8_lossy(bytes);
    if text.contains('/') {
        let message = format!("`{}` is no single address", text.escape_debug());
        return Err(ExpressionError::new(node.range.clone(), message)
            .help("write `cidr('…').containsIP(…)`"));
    }
    let set = AddressSet::new([network(&text, &node.range)?]);
    Ok(Test::AddressIn(address, Arc::new(set)))
}

/// The network that a text names.
pub(super) fn network(text: &str, range: &Range<usize>) -> CheckResult<Network> {
    Network::parse(text).map_err(|error| match error {
        NetworkError::Syntax => ExpressionError::new(
            range.clone(),
            format!("`{}` is no IP address or network", text.escape_debug()),
        ),
        NetworkError::HostBits(network) => {
            ExpressionError::new(range.clone(), format!("`{text}` has bits set after its prefix"))
                .help(format!("did you mean `{network}`?"))
        }
    })
}
