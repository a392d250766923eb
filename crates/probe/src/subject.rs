//! The probed member.

use std::sync::Arc;

/// The names of the probed member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The name of the pool.
    pub pool: Arc<str>,
    /// The member's name in logs and metrics.
    pub member: Arc<str>,
}
