//! `log.access.format`: a word, or a custom format.

use serde_json::{Value, json};

use crate::decode::{Context, Decode, List, Registry, ShownDefault, Spanned};
use crate::document::{Node, NodeValue};
use crate::scalar::Text;

section! {
    /// A custom format for the access log.
    LogFormat at "log.access.format" {
        /// One JSON object per line with these fields, in this order: names from [observability.md](observability.md#a-format-of-your-own), and `request.headers['NAME']`. A field without a value is omitted.
        optional json: List<Spanned<Text>>;
        /// One line of text. `${FIELD}` is replaced by the value of a field, or by `-` if it has none. `$$` is a dollar sign.
        optional text: Text;
    }
    later []
}

choice! {
    /// Format of an access log line.
    AccessLogFormat {
        /// One JSON object per line, with timers and the termination reason.
        Json = "json",
        /// Apache's combined format.
        Combined = "combined",
        /// No access log.
        Off = "off",
    }
    later [] maps []
}

/// A word, or a custom format.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LogFormatOr {
    Word(AccessLogFormat),
    Given(LogFormat),
}

impl Decode for LogFormatOr {
    fn expected() -> String {
        format!("{} or a map with `json` or `text`", AccessLogFormat::expected())
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({ "anyOf": [AccessLogFormat::schema(registry), LogFormat::schema(registry)] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match &node.value {
            NodeValue::Map(entries) if entries.is_empty() => {
                let message = "a custom format needs `json` or `text`";
                let help = "write { json: [ time, client, status ] }, or { text: \"${client} ${status}\" }";
                context.error_help(node.span, message, help);
                None
            }
            NodeValue::Map(_) => LogFormat::decode(node, context).map(Self::Given),
            _ => AccessLogFormat::decode(node, context).map(Self::Word),
        }
    }
}

impl ShownDefault for LogFormatOr {
    fn shown(&self) -> Value {
        match self {
            Self::Word(word) => word.shown(),
            // No default is one.
            Self::Given(_) => Value::Null,
        }
    }
}
