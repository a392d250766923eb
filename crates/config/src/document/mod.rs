//! Documents: texts as trees of values, with the place of every value and with comments.
//!
//! The language is a part of YAML 1.2: one document; maps, lists and scalars; keys are text and
//! unique. Anchors, aliases, merge keys and tags are refused: named profiles serve the same purpose, and a reader sees
//! every value where it applies. So a tree is never larger than its text.
//!
//! A [`Document`] is read from a text, or made from values by a program. [`write()`] writes a tree with its comments; what
//! it writes is read as the same tree. Trees share what they have in common, so a copy costs nothing until it is changed.

mod comments;
mod documents;
mod finding;
mod format;
mod lines;
mod node;
mod span;
mod tree;
mod writer;
mod yaml;

pub use documents::{DOCUMENT_BYTES_MAX, Document, FORMATS};
pub use finding::Finding;
pub use format::Format;
pub use lines::Lines;
pub use node::{Comments, Entry, Node, NodeValue, Scalar, ScalarKind, Style};
pub use span::{SourceId, Span};
pub use tree::{NODE_DEPTH_MAX, NODES_MAX};
pub use writer::{write, write_values};
pub(crate) use yaml::parse;
