//! The member that is probed.

use std::sync::Arc;

/// The member that is probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The pool.
    pub pool: Arc<str>,
    /// The member, as logs and metrics call it.
    pub member: Arc<str>,
}
