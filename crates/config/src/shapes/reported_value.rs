//! A given value, valid or not.

use serde_json::Value;

use crate::decode::{Context, Decode, Registry};
use crate::document::Node;

/// The value of a given key; `None`: it is invalid, which was reported. This distinguishes a missing key from an
/// invalid one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReportedValue<T>(pub Option<T>);

impl<T: Decode> Decode for ReportedValue<T> {
    fn expected() -> String {
        T::expected()
    }

    fn schema(registry: &mut Registry) -> Value {
        T::schema(registry)
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        Some(Self(T::decode(node, context)))
    }
}
