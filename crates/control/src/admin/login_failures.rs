//! Failed logins, for events that are not too many.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum interval between events about failed logins.
const FAILURE_INTERVAL: Duration = Duration::from_secs(10);

/// The time of the last event, and the number of failed logins since.
#[derive(Debug, Default)]
pub(super) struct LastFailure(Mutex<(Option<Instant>, u64)>);

impl LastFailure {
    /// Counts a failed login. If an event is due, returns the number of failures since the last one.
    pub fn count(&self) -> Option<u64> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.1 += 1;
        let is_due = last.0.is_none_or(|told| told.elapsed() >= FAILURE_INTERVAL);
        is_due.then(|| {
            last.0 = Some(Instant::now());
            std::mem::take(&mut last.1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_between_events() {
        let last = LastFailure::default();
        assert_eq!(last.count(), Some(1));
        assert_eq!((last.count(), last.count()), (None, None));
        last.0.lock().expect("no panic").0 = None;
        assert_eq!(last.count(), Some(3));
    }
}
