//! The coarse clock of an event loop. It is read once per turn, and everything in the turn uses that time.

use rustix::time::{ClockId, clock_gettime};

pub use weir_core::clock::Clock;

/// CPU time of the calling thread, in microseconds.
pub fn thread_cpu_us() -> u64 {
    #[cfg(feature = "simulation")]
    if let Some(now_us) = crate::memory::time_us() {
        return now_us;
    }
    let ran = clock_gettime(ClockId::ThreadCPUTime);
    ran.tv_sec as u64 * 1_000_000 + ran.tv_nsec as u64 / 1_000
}

/// The current time.
#[inline]
pub fn now() -> Clock {
    #[cfg(feature = "simulation")]
    if let Some(now_us) = crate::memory::time_us() {
        return Clock::at_us(now_us);
    }
    let now = clock_gettime(ClockId::Monotonic);
    Clock::at_us(now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000)
}
