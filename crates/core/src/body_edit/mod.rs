//! Text that is replaced in bodies while they stream: several strings at once, or what matches a regular expression.
//!
//! A body comes in pieces, and what is replaced may begin in one and end in another. What comes out is the same however the
//! body was cut: that of the whole. A [`Rewriter`] holds back no more than what may be the beginning of something to replace:
//!
//! | what is replaced | what counts | what is held back at most |
//! |---|---|---|
//! | strings | the leftmost, of several at one place the longest | the longest of them, less one byte |
//! | a pattern | the leftmost match that has at most [`PatternEdit::match_bytes_max`] bytes | so many bytes, less one |
//!
//! Matches do not overlap, and what was put in place is not searched again. A pattern reads nothing around its matches (`^`, `$`,
//! `\b`) and does not match the empty text: neither can be told before the rest has come.
//!
//! The state is the rewriter's own; what searches is lent to it by [`Searchers`], a piece at a time, and knows nothing of a body.

mod edit;
mod found;
mod pattern;
mod rewriter;
mod searchers;
mod strings;

pub use edit::{BodyEdit, What};
pub use pattern::{
    MATCH_BYTES_DEFAULT, MATCH_BYTES_MAX, PatternEdit, PatternError, REPLACEMENT_BYTES_MAX,
};
pub use rewriter::Rewriter;
pub use searchers::{SPARE_MAX, Searchers};
pub use strings::{STRING_BYTES_MAX, STRINGS_MAX, StringEdit, StringError};

#[cfg(test)]
mod tests;
