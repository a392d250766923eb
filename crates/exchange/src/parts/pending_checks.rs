//! The checks that must succeed before decisions about a request take effect.

use crate::parts::deferred_work::Mirrors;
use crate::parts::identity::{AuthorisationQuery, PasswordCheck};

/// The checks that must succeed before decisions about a request take effect.
#[derive(Debug, Default)]
pub struct PendingChecks {
    /// Pending password checks.
    pub checks: Vec<PasswordCheck>,
    /// Services to ask afterwards, from the last to the first.
    pub asks: Vec<AuthorisationQuery>,
    /// The destinations of copies, which are sent after the checks.
    pub mirrors: Option<Box<Mirrors>>,
}

impl PendingChecks {
    /// Whether there are no checks.
    pub fn is_settled(&self) -> bool {
        self.checks.is_empty() && self.asks.is_empty()
    }
}
