//! The values of a document.

use std::sync::Arc;

use super::span::Span;

/// A value, its place and its comments.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The place.
    pub span: Span,
    /// The value.
    pub value: NodeValue,
    /// The comments around it; `None`: there are none. Of an entry of a map, they are around the key and the value.
    pub comments: Option<Box<Comments>>,
}

/// The value of a node. Copies of lists and maps are shared until they are changed.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeValue {
    /// Nothing, `~` or `null`.
    Null,
    /// A text, not typed yet.
    Scalar(Scalar),
    /// A list.
    List(Arc<Vec<Node>>),
    /// Entries in the document's order; keys are unique.
    Map(Arc<Vec<Entry>>),
}

/// A text of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalar {
    /// The text, without quotes and escapes.
    pub text: String,
    /// How it is written.
    pub style: Style,
}

/// The style of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without quotes: only plain scalars can be numbers.
    Plain,
    /// In single or double quotes.
    Quoted,
    /// `|` or `>`.
    Block,
}

/// One key of a map with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The place of the key.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

/// Comments, each the rest of a line after its `#`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comments {
    /// The lines above.
    pub above: Vec<String>,
    /// Behind a value that fits on its line; otherwise behind its key.
    pub beside: Option<String>,
}

/// The type that YAML 1.2's core schema gives a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarKind {
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Any other text.
    Text,
}

impl Node {
    /// A value without comments.
    pub fn new(span: Span, value: NodeValue) -> Self {
        Self { span, value, comments: None }
    }

    /// A map.
    pub fn map(span: Span, entries: Vec<Entry>) -> Self {
        Self::new(span, NodeValue::Map(Arc::new(entries)))
    }

    /// A list.
    pub fn list(span: Span, items: Vec<Self>) -> Self {
        Self::new(span, NodeValue::List(Arc::new(items)))
    }

    /// The value of a key in a map.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let NodeValue::Map(entries) = &self.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The same with one place for all of it: weir has written it for a key that stands there.
    pub(crate) fn all_at(mut self, span: Span) -> Self {
        self.put_at(span);
        self
    }

    fn put_at(&mut self, span: Span) {
        self.span = span;
        match &mut self.value {
            NodeValue::Null | NodeValue::Scalar(_) => {}
            NodeValue::List(nodes) => {
                Arc::make_mut(nodes).iter_mut().for_each(|node| node.put_at(span));
            }
            NodeValue::Map(entries) => {
                for entry in Arc::make_mut(entries) {
                    entry.key_span = span;
                    entry.value.put_at(span);
                }
            }
        }
    }

    /// The comments, to be changed.
    pub fn comments_mut(&mut self) -> &mut Comments {
        self.comments.get_or_insert_default()
    }
}

impl Scalar {
    /// The type of the text.
    pub fn kind(&self) -> ScalarKind {
        if self.style != Style::Plain {
            return ScalarKind::Text;
        }
        let text = self.text.as_str();
        if matches!(text, "true" | "True" | "TRUE" | "false" | "False" | "FALSE") {
            return ScalarKind::Boolean;
        }
        let digits = text.trim_start_matches(['+', '-', '.']);
        let radix = |prefix: &str, base: u32| {
            text.strip_prefix(prefix)
                .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_digit(base)))
        };
        // `f64` also parses "inf", "nan" and "infinity"; YAML writes them with a leading dot.
        let decimal =
            digits.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok();
        let special = matches!(text, ".inf" | "-.inf" | "+.inf" | ".nan" | ".NaN");
        if decimal || special || radix("0x", 16) || radix("0o", 8) {
            ScalarKind::Number
        } else {
            ScalarKind::Text
        }
    }
}
