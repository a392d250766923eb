//! Dates for people and protocols, derived from the coarse clock.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::clock::Clock;

/// Interval of updates from the wall clock, because it may be set while the process runs.
const SYNCHRONISE_INTERVAL_US: u64 = 1_000_000;

/// The wall clock, as an offset to the monotonic clock, and the text of the current second.
#[derive(Default)]
pub struct WallClock {
    offset_us: u64,
    synchronised_us: u64,
    date: Date,
}

/// Length of [`Date::http`], for every time.
pub const HTTP_DATE_BYTES: usize = 29;
/// The maximum time, 9999-12-31T23:59:59: the date formats cannot represent later years.
const SECOND_MAX: u64 = 253_402_300_799;

/// A second in UTC, in the formats that weir writes.
#[derive(Default)]
pub struct Date {
    second: u64,
    /// `2026-11-21T03:55:33`
    pub iso: String,
    /// `21/Nov/2026:03:55:33 +0000`
    pub combined: String,
    /// `Sat, 21 Nov 2026 03:55:33 GMT` (IMF-fixdate, RFC 9110 section 5.6.7)
    pub http: String,
}

impl WallClock {
    /// The date at the time of the current turn, and the milliseconds within the second.
    pub fn at(&mut self, clock: Clock) -> (&Date, u64) {
        let now_us = self.unix_us(clock);
        self.date.set(now_us / 1_000_000);
        (&self.date, now_us / 1_000 % 1_000)
    }

    /// Milliseconds since 1970 at the time of the current turn.
    pub fn unix_ms(&mut self, clock: Clock) -> u64 {
        self.unix_us(clock) / 1_000
    }

    /// Microseconds since 1970 at the time of the current turn.
    #[inline]
    pub fn unix_us(&mut self, clock: Clock) -> u64 {
        if clock.now_us() >= self.synchronised_us + SYNCHRONISE_INTERVAL_US {
            self.offset_us = unix_us().saturating_sub(clock.now_us());
            self.synchronised_us = clock.now_us();
        }
        clock.now_us() + self.offset_us
    }
}

impl Date {
    /// The date of a time in seconds since 1970-01-01 UTC.
    pub fn of(second: u64) -> Self {
        let mut date = Self::default();
        date.set(second);
        date
    }

    fn set(&mut self, second: u64) {
        let second = second.min(SECOND_MAX);
        if self.second == second && !self.iso.is_empty() {
            return;
        }
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        // Day 0 of the epoch was a Thursday.
        const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        let (year, month, day) = civil_date(second / 86_400);
        let (hour, minute) = (second / 3_600 % 24, second / 60 % 60);
        let seconds = second % 60;
        let name = MONTHS[month as usize - 1];
        let weekday = WEEKDAYS[(second / 86_400 % 7) as usize];
        let time = format!("{hour:02}:{minute:02}:{seconds:02}");
        self.second = second;
        self.iso = format!("{year:04}-{month:02}-{day:02}T{time}");
        self.combined = format!("{day:02}/{name}/{year:04}:{time} +0000");
        self.http = format!("{weekday}, {day:02} {name} {year:04} {time} GMT");
    }
}

/// Seconds since 1970, by the clock of the host.
pub fn unix_s() -> u64 {
    unix_us() / 1_000_000
}

/// Microseconds since 1970, by the clock of the host.
fn unix_us() -> u64 {
    #[cfg(feature = "simulation")]
    if let Some(now_us) = crate::memory::time_us() {
        return crate::memory::BEGINNING_UNIX_US + now_us;
    }
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    wall.as_micros() as u64
}

/// Year, month and day of a day number since 1970-01-01, in the proleptic Gregorian calendar (Howard Hinnant,
/// "chrono-compatible low-level date algorithms", `civil_from_days`).
fn civil_date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (second, iso, http) in [
            (0, "1970-01-01T00:00:00", "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "1994-11-06T08:49:37", "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "2000-02-29T00:00:00", "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_251_199, "2024-02-29T23:59:59", "Thu, 29 Feb 2024 23:59:59 GMT"),
            (4_102_444_800, "2100-01-01T00:00:00", "Fri, 01 Jan 2100 00:00:00 GMT"),
            (SECOND_MAX, "9999-12-31T23:59:59", "Fri, 31 Dec 9999 23:59:59 GMT"),
            (SECOND_MAX + 1, "9999-12-31T23:59:59", "Fri, 31 Dec 9999 23:59:59 GMT"),
            (u64::MAX, "9999-12-31T23:59:59", "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            let date = Date::of(second);
            assert_eq!((&*date.iso, &*date.http), (iso, http));
            assert_eq!(date.http.len(), HTTP_DATE_BYTES);
        }
    }
}
