//! A value that is there, sound or not.

use serde_json::Value;

use crate::decode::{Context, Decode, Registry};
use crate::tree::Node;

/// A value of a key that is given; `None`: it is unsound, which was reported. So a key that may be missing is told from one
/// that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tried<T>(pub Option<T>);

impl<T: Decode> Decode for Tried<T> {
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
