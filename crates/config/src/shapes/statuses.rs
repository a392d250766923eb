//! Status codes that only some statuses may be: those of redirects, and those that count as failures.
//!
//! The reference and the JSON Schema show the allowed ones. Any status is decoded; `validate` reports the others.

use serde_json::{Value, json};

use crate::decode::{Context, Decode, Registry, ShownDefault};
use crate::document::Node;
use crate::shapes::StatusCode;

/// The status of a redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RedirectStatus(pub u16);

impl Decode for RedirectStatus {
    fn expected() -> String {
        "301, 302, 303, 307 or 308".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "enum": [301, 302, 303, 307, 308] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        StatusCode::decode(node, context).map(|status| Self(status.0))
    }
}

impl ShownDefault for RedirectStatus {
    fn shown(&self) -> Value {
        self.0.into()
    }
}

/// A status that counts as a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FailureStatus(pub u16);

impl Decode for FailureStatus {
    fn expected() -> String {
        "a status code from 400 to 599".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "integer", "minimum": 400, "maximum": 599 })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        StatusCode::decode(node, context).map(|status| Self(status.0))
    }
}
