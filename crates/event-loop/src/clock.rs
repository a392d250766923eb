//! The coarse clock of one event loop: read once per turn, used by everything in the turn.

use rustix::time::{ClockId, clock_gettime};

pub use weir_core::clock::Clock;

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
