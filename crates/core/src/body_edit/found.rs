//! The result of a search.

/// The next match in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A match to be replaced.
    Match {
        /// Where it begins.
        start: usize,
        /// Where it ends.
        end: usize,
        /// Which of the strings it is.
        string: usize,
    },
    /// Nothing up to here; from here on more has to come.
    Clear(usize),
}
