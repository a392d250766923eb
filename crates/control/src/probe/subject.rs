//! Whose health is asked for.

use std::sync::Arc;

/// Whose health is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The pool.
    pub pool: Arc<str>,
    /// The member, as logs and metrics call it.
    pub member: Arc<str>,
}
