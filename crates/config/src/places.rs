//! The places of a configuration's values: its documents, and the pointers of its overlay.

use std::collections::HashMap;
use std::sync::Arc;

use crate::document::{Document, SourceId, Span};

/// The name of the overlay, in place of a file name.
const OVERLAY: &str = "overlay";

/// What the places of a configuration's values refer to.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The documents, in the order in which they were merged; the main file first.
    pub documents: Vec<Arc<Document>>,
    /// The pointers of values of the overlay.
    pub pointers: Pointers,
}

impl Places {
    /// The document with this number.
    pub fn document(&self, source: SourceId) -> Option<&Document> {
        self.documents.get(self.rank(source)).map(|document| &**document)
    }

    /// The position of a document in the order; of the overlay: after all documents.
    pub(crate) fn rank(&self, source: SourceId) -> usize {
        let found = self.documents.iter().position(|document| document.source == source);
        found.unwrap_or(self.documents.len())
    }

    /// The name of a document, or the word for the overlay.
    pub fn name(&self, source: SourceId) -> &str {
        match self.document(source) {
            Some(document) => &document.name,
            None if source == SourceId::OVERLAY => OVERLAY,
            None => "",
        }
    }

    /// The pointer of a value of the overlay.
    pub fn pointer(&self, span: Span) -> Option<String> {
        (span.source == SourceId::OVERLAY).then(|| self.pointers.text(span.line))
    }

    /// The line as text: "line 3", or "line 3 of pools.yaml" if it is in another document than `here`.
    pub fn in_words(&self, place: Span, here: SourceId) -> String {
        match self.pointer(place) {
            Some(pointer) => format!("`{pointer}` of the {OVERLAY}"),
            None if place.source == here => format!("line {}", place.line),
            None => format!("line {} of {}", place.line, self.name(place.source)),
        }
    }
}

/// JSON pointers (RFC 6901), by number. Each consists of the number of its parent and its last segment.
#[derive(Debug, Clone, Default)]
pub struct Pointers {
    /// The number of the parent, and the segment with escapes.
    all: Vec<(usize, Box<str>)>,
    known: HashMap<(usize, Box<str>), usize>,
}

impl Pointers {
    /// The number of the empty pointer.
    pub const ROOT: usize = 0;

    /// The number of a pointer, from its parent's number and its last segment.
    pub fn below(&mut self, above: usize, segment: &str) -> usize {
        let key = (above, escaped(segment).into_boxed_str());
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        self.all.push(key.clone());
        self.known.insert(key, self.all.len());
        self.all.len()
    }

    /// The pointer with this number.
    pub fn text(&self, number: usize) -> String {
        let mut segments = Vec::new();
        let mut at = number;
        while let Some((above, segment)) = at.checked_sub(1).and_then(|index| self.all.get(index)) {
            segments.push(&**segment);
            at = *above;
        }
        segments.iter().rev().flat_map(|segment| ["/", segment]).collect()
    }
}

/// A segment with JSON pointer escapes.
pub fn escaped(segment: &str) -> String {
    match segment.contains(['~', '/']) {
        true => segment.replace('~', "~0").replace('/', "~1"),
        false => segment.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_names() {
        let mut pointers = Pointers::default();
        let pools = pointers.below(Pointers::ROOT, "pools");
        let web = pointers.below(pools, "a/b~c");
        assert_eq!(pointers.below(pools, "a/b~c"), web, "one number each");
        assert_eq!(pointers.text(Pointers::ROOT), "");
        // A file that was read again has a number of its own.
        let (main, more) = (SourceId::MAIN, SourceId::document(7));
        let document = |name: &str, source| {
            Arc::new(Document::read(name.to_owned(), source, String::new(), 0))
        };
        let documents = vec![document("weir.yaml", main), document("more.yaml", more)];
        let places = Places { documents, pointers };
        let check = |place: Span, here: SourceId, expected: &str| {
            assert_eq!(places.in_words(place, here), expected);
        };
        check(Span::at(3, 1), main, "line 3");
        check(Span::at(3, 1).of(more), more, "line 3");
        check(Span::at(3, 1).of(more), main, "line 3 of more.yaml");
        check(Span::at(3, 1), SourceId::OVERLAY, "line 3 of weir.yaml");
        check(Span::overlaid(web), SourceId::OVERLAY, "`/pools/a~1b~0c` of the overlay");
        let ranks = [main, more, SourceId::OVERLAY].map(|source| places.rank(source));
        assert_eq!(ranks, [0, 1, 2]);
    }
}
