//! Wall-clock time as text and the monotonic clock that the data path uses.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since 1970-01-01 UTC; 0 for a clock before that.
pub fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

/// Milliseconds of the monotonic clock, which times in the live table refer to.
pub fn monotonic_ms() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

/// `2026-11-21T09:30:00.123Z` (RFC 3339).
pub fn rfc3339(unix_ms: u64) -> String {
    let (seconds, millis) = (unix_ms / 1_000, unix_ms % 1_000);
    let (year, month, day) = date_of(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Year, month and day of a day since 1970-01-01, by the Gregorian calendar (after Howard Hinnant,
/// "chrono-compatible low-level date algorithms": years begin in March, so that a leap day is last).
fn date_of(days: u64) -> (u64, u64, u64) {
    const DAYS_FROM_0000_03_01_TO_1970: u64 = 719_468;
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let days = days + DAYS_FROM_0000_03_01_TO_1970;
    let (era, day_of_era) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
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
