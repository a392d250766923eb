//! Documents that were read, or made by a program.

use std::path::Path;

use super::finding::Finding;
use super::format::{CommentUse, Format, ParsedText};
use super::lines::Lines;
use super::node::Node;
use super::span::{SourceId, Span};
use super::{writer, yaml};

/// Maximum size of a document.
pub const DOCUMENT_BYTES_MAX: u64 = 16 << 20;

/// All formats. A file with another ending is read as the first.
pub static FORMATS: [Format; 1] = [yaml::FORMAT];

/// A text with its values, or values that a program has made.
#[derive(Debug, Clone)]
pub struct Document {
    /// The name in diagnostics: the path of a file as it was given or included.
    pub name: String,
    /// The number that the places of its values have.
    pub source: SourceId,
    /// The text, without a byte order mark; of a text that is not UTF-8, what can be shown.
    pub text: String,
    /// The values; `None`: there are none, or the text is not valid.
    pub root: Option<Node>,
    /// Comments after the last value, each the rest of a line after its `#`; none, if comments have been skipped.
    pub end: Vec<String>,
    /// The number of values.
    pub values: usize,
    /// What the text has that the language does not allow.
    pub findings: Vec<Finding>,
}

impl Document {
    /// Reads a text, in the format that its name has, without its comments: a configuration does not need them, and they may be
    /// far larger in a tree than in the text. `values_before`: the number of values in the configuration's documents before it, for
    /// their maximum ([`NODES_MAX`](super::NODES_MAX)).
    pub fn read(name: String, source: SourceId, text: String, values_before: usize) -> Self {
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > DOCUMENT_BYTES_MAX {
            return Self::too_large(name, source);
        }
        // A byte order mark is common in files from Windows editors, and has no meaning in UTF-8.
        let text = match text.strip_prefix('\u{feff}') {
            Some(text) => text.to_owned(),
            None => text,
        };
        let mut values = values_before;
        let read = format_of(&name).read;
        let ParsedText { root, end, findings } =
            read(&Lines::new(&text), source, &mut values, CommentUse::Skip);
        Self { name, source, text, root, end, values: values - values_before, findings }
    }

    /// This document with the comments of its text, which is read again for that. A document that a program has made has no
    /// text, and keeps its comments.
    #[must_use]
    pub fn with_comments(self) -> Self {
        if self.text.is_empty() {
            return self;
        }
        let read = format_of(&self.name).read;
        let ParsedText { root, end, .. } =
            read(&Lines::new(&self.text), self.source, &mut 0, CommentUse::Keep);
        Self { root, end, ..self }
    }

    /// A text that cannot be read, or only in part. The place of the finding is one of the main file.
    pub fn unreadable(name: String, source: SourceId, shown: String, finding: Finding) -> Self {
        let finding = Finding { span: finding.span.of(source), ..finding };
        let (end, findings) = (Vec::new(), vec![finding]);
        Self { name, source, text: shown, root: None, end, values: 0, findings }
    }

    /// A text of more than [`DOCUMENT_BYTES_MAX`] bytes.
    pub fn too_large(name: String, source: SourceId) -> Self {
        let message = format!("the file is larger than {} MiB", DOCUMENT_BYTES_MAX >> 20);
        let finding = Finding::new(Span::whole(SourceId::MAIN), message);
        Self::unreadable(name, source, String::new(), finding)
    }

    /// Whether nothing is known of its values, because it is not valid.
    pub fn is_unknown(&self) -> bool {
        self.root.is_none() && !self.findings.is_empty()
    }

    /// The values and the comments of this document as YAML. It is read as the same document. Without a tree: only comments.
    pub fn to_yaml(&self) -> String {
        let mut text = self.root.as_ref().map_or_else(String::new, writer::write);
        for comment in &self.end {
            writer::write_comment(&mut text, comment);
        }
        text
    }
}

/// The format of a file, by its name.
fn format_of(name: &str) -> &'static Format {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    let found = FORMATS.iter().find(|format| ending == Some(format.ending));
    found.unwrap_or(&FORMATS[0])
}
