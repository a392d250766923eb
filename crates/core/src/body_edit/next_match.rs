//! The result of a search.

/// The next match in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextMatch {
    /// A match to be replaced.
    Match {
        /// The start of the match.
        start: usize,
        /// The end of the match.
        end: usize,
        /// The index of the matched string.
        string: usize,
    },
    /// No match before this position; the text after it is undecided until more data arrives.
    Clear(usize),
}
