//! Names of places: files, and values of an overlay.

use std::collections::HashMap;

use crate::tree::{Source, Span};

/// The name of the overlay, in place of a file name.
pub(crate) const OVERLAY: &str = "overlay";

/// The names of a configuration's files, and the pointers of its overlay.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlaceNames {
    /// The file names; the main file first.
    pub files: Vec<String>,
    pub pointers: Pointers,
}

impl PlaceNames {
    /// The name of a file, or the word for the overlay.
    pub fn file(&self, source: Source) -> &str {
        match source.index() {
            None => OVERLAY,
            Some(index) => self.files.get(index).map_or("", String::as_str),
        }
    }

    /// The pointer of a value of the overlay.
    pub fn pointer(&self, span: Span) -> Option<String> {
        (span.source == Source::OVERLAY).then(|| self.pointers.text(span.line))
    }

    /// The line as text: "line 3", or "line 3 of pools.yaml" if it is in another file than `here`.
    pub fn in_words(&self, place: Span, here: Source) -> String {
        match self.pointer(place) {
            Some(pointer) => format!("`{pointer}` of the {OVERLAY}"),
            None if place.source == here => format!("line {}", place.line),
            None => format!("line {} of {}", place.line, self.file(place.source)),
        }
    }
}

/// JSON pointers (RFC 6901), by number. Each consists of the number of its parent and its last segment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pointers {
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
pub(crate) fn escaped(segment: &str) -> String {
    segment.replace('~', "~0").replace('/', "~1")
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
        let names = PlaceNames { files: vec!["weir.yaml".into(), "more.yaml".into()], pointers };
        let check = |place: Span, here: Source, expected: &str| {
            assert_eq!(names.in_words(place, here), expected);
        };
        check(Span::at(3, 1), Source::MAIN, "line 3");
        check(Span::at(3, 1).of(Source::file(1)), Source::file(1), "line 3");
        check(Span::at(3, 1).of(Source::file(1)), Source::MAIN, "line 3 of more.yaml");
        check(Span::at(3, 1), Source::OVERLAY, "line 3 of weir.yaml");
        check(Span::overlaid(web), Source::OVERLAY, "`/pools/a~1b~0c` of the overlay");
    }
}
