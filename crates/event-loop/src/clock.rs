//! The coarse clock of one event loop: read once per turn, used by everything in the turn.

use rustix::time::{ClockId, clock_gettime};

/// Monotonic time of the current turn.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    now_us: u64,
}

impl Clock {
    /// The time now.
    pub fn new() -> Self {
        let mut clock = Self { now_us: 0 };
        clock.refresh();
        clock
    }

    /// A time that a test chose.
    pub fn at_us(now_us: u64) -> Self {
        Self { now_us }
    }

    /// Reads the time anew.
    #[inline]
    pub fn refresh(&mut self) {
        #[cfg(feature = "simulation")]
        if let Some(now_us) = crate::memory::time_us() {
            self.now_us = now_us;
            return;
        }
        let now = clock_gettime(ClockId::Monotonic);
        self.now_us = now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000;
    }

    /// Microseconds since some point before the process.
    #[inline]
    pub fn now_us(self) -> u64 {
        self.now_us
    }

    /// Milliseconds since the same point.
    #[inline]
    pub fn now_ms(self) -> u64 {
        self.now_us / 1_000
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
