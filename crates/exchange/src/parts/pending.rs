//! The checks that must succeed before decisions about a request take effect.

use crate::parts::errand::Mirrors;
use crate::parts::identity::{Asking, Checking};

/// The checks that must succeed before decisions about a request take effect.
#[derive(Debug, Default)]
pub struct Pending {
    /// Pending password checks.
    pub checks: Vec<Checking>,
    /// Services to ask afterwards, from the last to the first.
    pub asks: Vec<Asking>,
    /// The destinations of copies, which are sent after the checks.
    pub mirrors: Option<Box<Mirrors>>,
}

impl Pending {
    /// Whether there are no checks.
    pub fn is_settled(&self) -> bool {
        self.checks.is_empty() && self.asks.is_empty()
    }
}
