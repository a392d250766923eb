//! When weir last told of refused host names.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum interval between events about refused names.
const REFUSAL_INTERVAL: Duration = Duration::from_secs(60);

/// The time of the last event about a refused name.
#[derive(Debug, Default)]
pub(super) struct LastRefusal(Mutex<Option<Instant>>);

impl LastRefusal {
    /// Whether an event is due.
    pub(super) fn is_due(&self) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = told.is_none_or(|told| told.elapsed() >= REFUSAL_INTERVAL);
        if is_due {
            *told = Some(Instant::now());
        }
        is_due
    }
}
