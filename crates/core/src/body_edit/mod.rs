//! Replaces text in bodies while they stream: several strings at once, or matches of a regular expression.
//!
//! A body arrives in pieces, and a match may begin in one piece and end in another. The output does not depend on the
//! division into pieces. A [`Rewriter`] holds back only bytes that may be the beginning of a match:
//!
//! | replaced | rule | held back at most |
//! |---|---|---|
//! | strings | the leftmost; of several at one place, the longest | the longest of them, less one byte |
//! | a pattern | the leftmost match that has at most [`PatternEdit::match_bytes_max`] bytes | that many bytes, less one |
//!
//! Matches do not overlap, and replacements are not searched again. A pattern cannot look around its matches (`^`, `$`,
//! `\b`) and cannot match the empty text: neither could be decided before more data has arrived.
//!
//! A rewriter is the state of one body. [`Searchers`] lends a searcher for each piece; a searcher stores no data of the
//! body.

mod edit;
mod next_match;
mod pattern;
mod rewriter;
mod searchers;
mod strings;

pub use edit::{BodyEdit, EditKind};
pub use pattern::{
    MATCH_BYTES_DEFAULT, MATCH_BYTES_MAX, PatternEdit, PatternError, REPLACEMENT_BYTES_MAX,
};
pub use rewriter::Rewriter;
pub use searchers::{SPARE_MAX, Searchers};
pub use strings::{STRING_BYTES_MAX, STRINGS_MAX, StringEdit, StringError};

#[cfg(test)]
mod tests;
