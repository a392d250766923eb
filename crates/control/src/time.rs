//! Wall-clock time as text, and the monotonic clock of the data path.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use weir_event_loop::wall_clock::Date;

/// Milliseconds since 1970-01-01 UTC; 0 if the clock is set earlier.
pub fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

/// Milliseconds of the monotonic clock that times in the live table refer to.
pub fn monotonic_ms() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

/// A time as text: `2026-11-21T09:30:00.123Z` (RFC 3339).
pub fn rfc3339(unix_ms: u64) -> String {
    let date = Date::of(unix_ms / 1_000);
    format!("{}.{:03}Z", date.iso, unix_ms % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let check = |unix_ms, expected: &str| assert_eq!(rfc3339(unix_ms), expected);
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(951_868_799_999, "2000-02-29T23:59:59.999Z");
        check(1_795_253_400_123, "2026-11-21T09:30:00.123Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
        check(4_107_456_000_000, "2100-02-28T00:00:00.000Z");
    }
}
