//! The documents of files, as they are read one after another.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_config::document::{Document, Finding, NODES_MAX, SourceId};
use weir_config::{Places, Severity};

use crate::text::DecodedText;

/// Documents with the findings of reading them.
#[derive(Debug, Clone)]
pub(crate) struct Documents {
    /// The directory for relative paths.
    pub directory: PathBuf,
    /// The documents, the main file first.
    pub all: Vec<Arc<Document>>,
    /// Findings of reading and joining.
    pub findings: Vec<(Severity, Finding)>,
    /// Whether a file could not be read, so its names are unknown.
    pub is_incomplete: bool,
    /// The number of values in all documents.
    values: usize,
    /// The documents of the reading before, until this one is complete.
    before: Vec<Arc<Document>>,
}

impl Documents {
    /// None yet, for a main file of this name. `before`: documents that were read before. One with the same text is taken from
    /// them, and not parsed again.
    pub fn beside(name: &str, before: &[Arc<Document>]) -> Self {
        Self {
            directory: Path::new(name).parent().unwrap_or(Path::new("")).to_owned(),
            all: Vec::new(),
            findings: Vec::new(),
            is_incomplete: false,
            values: 0,
            before: before.to_vec(),
        }
    }

    /// Adds the document of a file.
    pub fn add(&mut self, name: String, read: DecodedText) -> Arc<Document> {
        let document = match read {
            Ok(text) => self.unchanged(&name, &text).unwrap_or_else(|| {
                Arc::new(Document::read(name, self.unused_source(), text, self.values))
            }),
            Err((shown, finding)) => {
                Arc::new(Document::unreadable(name, self.unused_source(), shown, finding))
            }
        };
        self.values += document.values;
        self.is_incomplete |= document.is_unknown();
        let findings = document.findings.iter().cloned();
        self.findings.extend(findings.map(|finding| (Severity::Error, finding)));
        self.all.push(Arc::clone(&document));
        document
    }

    /// Ends the reading.
    pub fn complete(&mut self) {
        self.before.clear();
    }

    /// What the places of the documents refer to.
    pub fn places(&self) -> Places {
        Places { documents: self.all.clone(), ..Places::default() }
    }

    /// The document of this file as it was read before, if the text is the same.
    fn unchanged(&self, name: &str, text: &str) -> Option<Arc<Document>> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let document = self.before.iter().find(|document| document.name == name)?;
        // One with findings is read again, because they may depend on the number of values before it.
        let is_sound = document.findings.is_empty() && self.values + document.values <= NODES_MAX;
        (is_sound && document.text == text).then(|| Arc::clone(document))
    }

    /// A number that no other document has, neither now nor before.
    fn unused_source(&self) -> SourceId {
        if self.all.is_empty() {
            return SourceId::MAIN;
        }
        let used: HashSet<SourceId> =
            self.all.iter().chain(&self.before).map(|document| document.source).collect();
        let unused = (1..).map(SourceId::document).find(|source| !used.contains(source));
        unused.unwrap_or(SourceId::MAIN)
    }
}
