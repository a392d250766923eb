//! Memory that workers have released goes back to the system.

use std::time::{Duration, Instant};

use weir_event_loop::allocator;

/// Minimum time between two returns: workers wait while their heaps are searched.
const REST: Duration = Duration::from_secs(10);

/// The releases of much memory so far.
#[derive(Debug, Default)]
pub struct FreedMemory {
    /// The number of releases whose memory has gone back.
    returned: u64,
    last: Option<Instant>,
}

impl FreedMemory {
    /// Returns the memory if there were releases since the last time. `releases`: their number so far.
    pub fn look(&mut self, releases: u64) {
        if self.is_due(releases, Instant::now()) {
            allocator::give_back();
        }
    }

    fn is_due(&mut self, releases: u64, now: Instant) -> bool {
        let has_rested = self.last.is_none_or(|last| now.duration_since(last) >= REST);
        let is_due = releases != self.returned && has_rested;
        if is_due {
            (self.returned, self.last) = (releases, Some(now));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_release_is_followed_by_a_return_and_some_by_one_together() {
        let start = Instant::now();
        let mut freed = FreedMemory::default();
        for (after_s, releases, expected) in [
            (0, 0, false),
            (1, 1, true),
            (2, 1, false),
            (3, 2, false),
            (4, 3, false),
            (11, 3, true),
            (40, 3, false),
            (41, 4, true),
        ] {
            let now = start + Duration::from_secs(after_s);
            assert_eq!(freed.is_due(releases, now), expected, "after {after_s} s");
        }
    }
}
