//! Policies: which of their rules a request is to be asked about.

mod index;

pub use index::RuleIndex;
