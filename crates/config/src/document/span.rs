//! Places of values.

use crate::diagnostic::Position;

/// The number of a document, or of the overlay, for places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(u16);

impl SourceId {
    /// The main file, or the only document.
    pub const MAIN: Self = Self(0);
    /// The overlay, whose values have pointers instead of lines.
    pub const OVERLAY: Self = Self(u16::MAX);

    /// The document with this number; 0: the main file.
    pub fn document(number: usize) -> Self {
        // There are far fewer documents.
        Self(u16::try_from(number).unwrap_or(u16::MAX - 1))
    }
}

/// A piece of one line of a document, or a value of the overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The document.
    pub source: SourceId,
    /// The line number, from 1. 0: the whole document. In the overlay: the number of a pointer.
    pub line: usize,
    /// The first character, from 1.
    pub column: usize,
    /// The length in characters; at least 1.
    pub length: usize,
}

impl Span {
    /// A character of the main file.
    pub fn at(line: usize, column: usize) -> Self {
        Self { source: SourceId::MAIN, line, column, length: 1 }
    }

    /// A whole document.
    pub fn whole(source: SourceId) -> Self {
        Self { source, line: 0, column: 0, length: 1 }
    }

    /// A value of the overlay, by the number of its pointer.
    pub fn overlaid(pointer: usize) -> Self {
        // No text is this long, so a place inside the value means the whole value.
        Self { source: SourceId::OVERLAY, line: pointer, column: 1, length: usize::MAX }
    }

    /// The same place in this document.
    pub fn of(self, source: SourceId) -> Self {
        Self { source, ..self }
    }

    /// Line and column; `None`: a whole document, or the overlay.
    pub fn position(self) -> Option<Position> {
        let is_line = self.line > 0 && self.source != SourceId::OVERLAY;
        is_line.then_some(Position { line: self.line, column: self.column })
    }

    /// The place of a character of a scalar, if the document contains the text literally: plain, or quoted without escapes.
    /// Otherwise the place of the whole scalar.
    pub fn within(self, text: &str, offset: usize) -> Self {
        let characters = text.chars().count();
        let quotes = match self.length.checked_sub(characters) {
            Some(0) => 0,
            Some(2) => 1,
            _ => return self,
        };
        Self::at(self.line, self.column + quotes + offset).of(self.source)
    }
}
