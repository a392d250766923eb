//! What a request waits for before anything that was decided about it takes effect.

use crate::parts::errand::Mirrors;
use crate::parts::identity::{Asking, Checking};

/// What has to be known of a request before anything that was decided about it takes effect.
#[derive(Debug, Default)]
pub struct Pending {
    /// Passwords that are checked.
    pub checks: Vec<Checking>,
    /// Services that are asked then, the last first.
    pub asks: Vec<Asking>,
    /// Where copies of it go once it may go on.
    pub mirrors: Option<Box<Mirrors>>,
}

impl Pending {
    /// Whether nobody has to be asked.
    pub fn is_settled(&self) -> bool {
        self.checks.is_empty() && self.asks.is_empty()
    }
}
