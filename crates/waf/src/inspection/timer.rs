//! Measures the time that rules need for one request. The caller provides the clock. It is read once per
//! [`WORK_BYTES_PER_LOOK`] bytes of work. Ordinary requests need less work.

use super::options::TimeLimit;

/// Number of bytes of work between two readings of the clock.
const WORK_BYTES_PER_LOOK: u64 = 64 << 10;

/// The time that rules have needed.
#[derive(Debug)]
pub(super) struct Timer {
    limit: Option<TimeLimit>,
    /// The amount of work at which the clock is next read.
    pub look_at_bytes: u64,
    /// The last reading of the clock; `None`: other requests may have run since then.
    since_us: Option<u64>,
    taken_us: u64,
}

impl Timer {
    /// A timer at zero.
    pub fn new(limit: Option<TimeLimit>) -> Self {
        Self { limit, look_at_bytes: u64::MAX, since_us: None, taken_us: 0 }
    }

    /// Starts a period of evaluation. Other requests may have run before it.
    pub fn begin(&mut self, work_bytes: u64) {
        self.since_us = None;
        self.plan(work_bytes);
    }

    fn plan(&mut self, work_bytes: u64) {
        if self.limit.is_some() {
            self.look_at_bytes = work_bytes.saturating_add(WORK_BYTES_PER_LOOK);
        }
    }

    /// Reads the clock if this is due. Returns whether the rules have exceeded their time.
    pub fn is_over(&mut self, work_bytes: u64) -> bool {
        let Some(limit) = &self.limit else { return false };
        if work_bytes > self.look_at_bytes {
            let now_us = (limit.now_us)();
            self.taken_us += self.since_us.map_or(0, |since_us| now_us.saturating_sub(since_us));
            self.since_us = Some(now_us);
        }
        let is_over = self.taken_us > limit.max_us;
        self.plan(work_bytes);
        is_over
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static NOW_US: Cell<u64> = const { Cell::new(0) };
        static LOOKS: Cell<u64> = const { Cell::new(0) };
    }

    fn now_us() -> u64 {
        LOOKS.set(LOOKS.get() + 1);
        NOW_US.get()
    }

    #[test]
    fn what_else_runs_is_not_counted() {
        let mut timer = Timer::new(Some(TimeLimit { max_us: 1_000, now_us }));
        let mut work_bytes = 0;
        let mut work = |timer: &mut Timer, bytes: u64, us: u64| {
            work_bytes += bytes;
            NOW_US.set(NOW_US.get() + us);
            timer.is_over(work_bytes)
        };
        timer.begin(0);
        assert!(!work(&mut timer, WORK_BYTES_PER_LOOK, 5_000));
        assert_eq!(LOOKS.get(), 0, "a request of little work");
        assert!(!work(&mut timer, WORK_BYTES_PER_LOOK + 1, 5_000), "it is measured from here on");
        assert!(!work(&mut timer, WORK_BYTES_PER_LOOK + 1, 600));
        assert_eq!(LOOKS.get(), 2);
        // Other requests are served while the body arrives.
        timer.begin(2 * WORK_BYTES_PER_LOOK + 2);
        assert!(!work(&mut timer, WORK_BYTES_PER_LOOK + 1, 90_000));
        assert!(!work(&mut timer, WORK_BYTES_PER_LOOK + 1, 400), "1 ms in all, and no more");
        assert!(work(&mut timer, WORK_BYTES_PER_LOOK + 1, 1));
        assert!(work(&mut timer, 1, 0), "it stays so");
        timer.begin(0);
        assert!(timer.is_over(0), "also behind the next body");
    }

    #[test]
    fn without_a_limit_nobody_looks() {
        let mut timer = Timer::new(None);
        timer.begin(0);
        assert!(!timer.is_over(1 << 40));
        assert_eq!(timer.look_at_bytes, u64::MAX);
        assert_eq!(LOOKS.get(), 0);
    }
}
