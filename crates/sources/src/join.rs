//! Joins the sections of documents. Sections with named entries are joined by name; any other section is in one document only.

use std::collections::HashMap;
use std::sync::Arc;

use weir_config::document::{Entry, Finding, Node, NodeValue, SourceId, Span};
use weir_config::parts::{NAMED, PROFILES};
use weir_config::source_keys::INCLUDE;
use weir_config::{Places, Severity, clip};

/// Documents that are being joined.
pub(crate) struct Joiner<'a> {
    places: &'a Places,
    span: Span,
    sections: Vec<Entry>,
    /// Sections by name, as indices.
    indices: HashMap<String, usize>,
    /// Entries of sections by section and name.
    known: HashMap<(String, String), Span>,
    findings: Vec<(Severity, Finding)>,
}

impl<'a> Joiner<'a> {
    /// Nothing yet. `places`: those of the documents to join.
    pub fn new(places: &'a Places) -> Self {
        Self {
            places,
            span: Span::at(1, 1),
            sections: Vec::new(),
            indices: HashMap::new(),
            known: HashMap::new(),
            findings: Vec::new(),
        }
    }

    /// Adds the main file.
    pub fn main(&mut self, root: Node) {
        self.span = root.span;
        if let NodeValue::Map(entries) = root.value {
            for entry in Arc::unwrap_or_clone(entries) {
                self.section(entry);
            }
        }
    }

    /// Adds an included file.
    pub fn tree(&mut self, tree: Node) {
        let NodeValue::Map(entries) = tree.value else {
            let message = "an included file must be a map of sections".to_owned();
            let help = "write sections as in the file that includes it: `pools:`, …".to_owned();
            return self.error(tree.span, message, help);
        };
        for entry in Arc::unwrap_or_clone(entries) {
            if entry.key == INCLUDE {
                let main = self.places.name(SourceId::MAIN);
                let message = "an included file cannot include others".to_owned();
                let help = format!("move it to `{INCLUDE}` of {main}");
                self.error(entry.key_span, message, help);
            } else {
                self.section(entry);
            }
        }
    }

    /// The joined tree, and what could not be joined.
    pub fn end(self) -> (Node, Vec<(Severity, Finding)>) {
        (Node::map(self.span, self.sections), self.findings)
    }

    fn error(&mut self, span: Span, message: String, help: String) {
        self.findings.push((Severity::Error, Finding::new(span, message).help(help)));
    }

    fn section(&mut self, entry: Entry) {
        let depth = match &*entry.key {
            PROFILES => 2,
            key => usize::from(NAMED.contains(&key)),
        };
        let Some(&at) = self.indices.get(&entry.key) else {
            self.indices.insert(entry.key.clone(), self.sections.len());
            note(&mut self.known, &entry.key, &entry.value, depth);
            self.sections.push(entry);
            return;
        };
        // The section is put back afterwards; meanwhile both can be borrowed.
        let empty = Node::new(self.sections[at].value.span, NodeValue::Null);
        let mut first = std::mem::replace(&mut self.sections[at].value, empty);
        let (name, first_span) = (entry.key.clone(), self.sections[at].key_span);
        self.join(&name, (&mut first, first_span), entry, depth);
        self.sections[at].value = first;
    }

    /// Joins a section, or one kind of profiles, with the one of the same name.
    fn join(&mut self, path: &str, (first, place): (&mut Node, Span), entry: Entry, depth: usize) {
        if depth == 0 {
            return self.twice(path, place, entry.key_span);
        }
        let NodeValue::Map(others) = entry.value.value else {
            let message = format!("`{path}` must be a map from names to their settings");
            let help = "give it entries, or remove the key".to_owned();
            return self.error(entry.value.span, message, help);
        };
        // A value that is not a map is reported by the decoder.
        let NodeValue::Map(entries) = &mut first.value else { return };
        let entries = Arc::make_mut(entries);
        for other in Arc::unwrap_or_clone(others) {
            let key = (path.to_owned(), other.key.clone());
            let below = format!("{path}.{}", other.key);
            match self.known.get(&key).copied() {
                None => {
                    self.known.insert(key, other.key_span);
                    note(&mut self.known, &below, &other.value, depth - 1);
                    entries.push(other);
                }
                Some(place) if depth == 1 => self.twice(&below, place, other.key_span),
                Some(place) => {
                    let same = entries.iter_mut().find(|entry| entry.key == other.key);
                    if let Some(same) = same {
                        self.join(&below, (&mut same.value, place), other, depth - 1);
                    }
                }
            }
        }
    }

    fn twice(&mut self, path: &str, first: Span, second: Span) {
        let place = self.places.in_words(first, second.source);
        let message = format!("`{}` is given twice; the first is in {place}", clip(path));
        let help = match path.contains('.') {
            true => "keep one of them, or give one another name".to_owned(),
            false => {
                let named = NAMED.map(|section| format!("`{section}`")).join(", ");
                format!("keep one of them: only {named} and `{PROFILES}` may be in several files")
            }
        };
        self.error(second, message, help);
    }
}

/// Records the entries of a section, down to this depth.
fn note(known: &mut HashMap<(String, String), Span>, path: &str, node: &Node, depth: usize) {
    let NodeValue::Map(entries) = &node.value else { return };
    if depth == 0 {
        return;
    }
    for entry in entries.iter() {
        known.insert((path.to_owned(), entry.key.clone()), entry.key_span);
        note(known, &format!("{path}.{}", entry.key), &entry.value, depth - 1);
    }
}
