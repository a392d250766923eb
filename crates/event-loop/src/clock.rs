//! The coarse clock of one event loop: read once per turn, used by everything in the turn.

use rustix::time::{ClockId, clock_gettime};

pub use weir_core::clock::Clock;

/// How long this thread has run, in microseconds.
pub fn thread_cpu_us() -> u64 {
    #[cfg(feature = "simulation")]
    if let Some(now_us) = crate::memory::time_us() {
        return now_us;
    }
    let ran = clock_gettime(ClockId::ThreadCPUTime);
    ran.tv_sec as u64 * 1_000_000 + ran.tv_nsec as u64 / 1_000
}

/// The time now.
#[inline]
pub fn now() -> Clock {
    #[cfg(feature = "simulation")]
    if let Some(now_us) = crate::memory::time_us() {
        return Clock::at_us(now_us);
    }
    let now = clock_gettime(ClockId::Monotonic);
    Clock::at_us(now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000)
}
