//! Replacements in bodies.

use weir_http::media_types::MediaTypes;

use super::next_match::NextMatch;
use super::pattern::{PatternEdit, Searcher};
use super::strings::{StringEdit, Tail};

/// The replacements in a body.
#[derive(Debug)]
pub struct BodyEdit {
    /// The texts to replace.
    pub what: EditKind,
    /// The content types of bodies in which text is replaced.
    pub types: MediaTypes,
    /// Data after this many bytes, in the input or the output, stays unchanged.
    pub size_bytes_max: u64,
}

/// The texts to replace.
#[derive(Debug)]
pub enum EditKind {
    /// Strings, each with its replacement.
    Strings(StringEdit),
    /// Matches of a pattern.
    Pattern(Box<PatternEdit>),
}

impl EditKind {
    pub(super) fn searcher(&self) -> Option<Searcher> {
        match self {
            Self::Strings(_) => None,
            Self::Pattern(pattern) => Some(pattern.searcher()),
        }
    }

    /// The next match in `text` from this place on; `is_end`: nothing follows the text. `tail` is state for the
    /// searches of one text.
    pub(super) fn find(
        &self,
        (searcher, tail): (Option<&mut Searcher>, &mut Option<Tail>),
        (text, from): (&[u8], usize),
        is_end: bool,
    ) -> NextMatch {
        match (self, searcher) {
            (Self::Strings(strings), _) => strings.find(tail, (text, from), is_end),
            (Self::Pattern(pattern), Some(searcher)) => pattern.find(searcher, text, from, is_end),
            (Self::Pattern(_), None) => NextMatch::Clear(text.len()),
        }
    }

    /// Appends the replacement of the last match.
    pub(super) fn write(
        &self,
        searcher: Option<&Searcher>,
        text: &[u8],
        (start, end, string): (usize, usize, usize),
        out: &mut Vec<u8>,
    ) {
        match (self, searcher) {
            (Self::Strings(strings), _) => out.extend_from_slice(strings.to(string)),
            (Self::Pattern(pattern), Some(searcher)) => {
                pattern.write(searcher, text, (start, end), out);
            }
            (Self::Pattern(_), None) => out.extend_from_slice(&text[start..end]),
        }
    }
}
