//! The text of a body, and the ways in which it is inspected.

use crate::body::{self, LOOK_BYTES, Processor, significant};

/// A text that is not inspected yet.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub bytes: Vec<u8>,
    pub way: TextReading,
}

/// The way in which a text is inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TextReading {
    /// In all ways.
    #[default]
    Whole,
    /// In all ways, but control characters are nothing special: its type does not claim that it is text.
    Content,
    /// As JSON or XML, because another parser has read it already.
    Beside,
}

impl Text {
    /// The text to inspect of a body that this processor has read.
    pub fn of(processor: Processor, judges_content: bool, bytes: Vec<u8>) -> Self {
        let way = match processor {
            Processor::Text => TextReading::Whole,
            Processor::Content => TextReading::Content,
            Processor::UrlEncoded if judges_content && is_other_than_form(&bytes) => {
                TextReading::Beside
            }
            _ => return Self::default(),
        };
        Self { bytes, way }
    }
}

/// Whether a body may be read in another way than as a form.
fn is_other_than_form(bytes: &[u8]) -> bool {
    is_document(document_in(bytes)) || body::encoding_of(look_of(bytes)).is_some()
}

pub(super) fn look_of(bytes: &[u8]) -> &[u8] {
    bytes.get(..LOOK_BYTES).unwrap_or(bytes)
}

/// The part of a text from which a parser of JSON or XML reads it: behind blanks, and behind comments before JSON.
pub(super) fn document_in(text: &[u8]) -> &[u8] {
    let start = significant(text);
    let mut rest = start;
    loop {
        let end = match rest {
            [b'/', b'*', ..] => memchr::memmem::find(rest, b"*/").map(|at| at + 2),
            [b'/', b'/', ..] | [b'#', ..] => memchr::memchr2(b'\n', b'\r', rest),
            [b'{' | b'[', ..] => return rest,
            _ => return start,
        };
        let Some(end) = end else { return start };
        rest = significant(&rest[end..]);
    }
}

pub(super) fn is_document(start: &[u8]) -> bool {
    matches!(start.first(), Some(b'{' | b'[' | b'"' | b'<'))
}

/// The length of an XML declaration.
pub(super) fn declaration_bytes(start: &[u8]) -> usize {
    if !start.starts_with(b"<?xml") {
        return 0;
    }
    memchr::memmem::find(start, b"?>").map_or(0, |at| at + 2)
}
