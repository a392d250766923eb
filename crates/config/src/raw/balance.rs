//! How members are selected: a word, or a map.

use serde_json::{Value, json};

use crate::decode::{Context, Decode, Registry, ShownDefault};
use crate::document::{Node, NodeValue};
use crate::scalar::Text;

choice! {
    /// How a pool selects the member for a request.
    Balance {
        /// In turn, by weight.
        RoundRobin = "round_robin",
        /// The member with the fewest open requests relative to its weight.
        LeastConnections = "least_connections",
        /// The member with the lowest product of response time and open requests, relative to its weight.
        LeastResponseTime = "least_response_time",
        /// The less loaded of two random members, drawn by weight.
        RandomTwo = "random_two",
        /// The same client address gets the same member while it is up.
        SourceAddress = "source_address",
    }
    later [] maps []
}

section! {
    /// Hash of a value of the request: requests with the same value go to the same member while it is up.
    HashBalance at "pools.NAME.balance" {
        /// The value to hash: TEXT, or an expression without `${…}`.
        required hash: Text;
    }
    later []
}

/// A method of balancing: a word, or `{ hash: … }`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BalanceOr {
    Method(Balance),
    Hash(HashBalance),
}

impl Decode for BalanceOr {
    fn expected() -> String {
        format!("{} or a map with `hash`", Balance::expected())
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({ "anyOf": [Balance::schema(registry), HashBalance::schema(registry)] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match node.value {
            NodeValue::Map(_) => HashBalance::decode(node, context).map(Self::Hash),
            _ => Balance::decode(node, context).map(Self::Method),
        }
    }
}

impl ShownDefault for BalanceOr {
    fn shown(&self) -> Value {
        match self {
            Self::Method(method) => method.shown(),
            Self::Hash(hash) => {
                json!({ "hash": hash.hash.as_ref().map(|hash| hash.value.shown()) })
            }
        }
    }
}
