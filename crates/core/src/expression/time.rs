//! Dates and times of day in local time.

use std::io::Write as _;

const DAY_S: i64 = 86_400;
/// 9999-12-31T23:59:59: the date format has four digits for the year.
const SECOND_MAX: i64 = 253_402_300_799;

/// A part of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimePart {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    /// The day of the week, from 1 (Monday) to 7.
    Weekday,
}

impl TimePart {
    /// The part of a time in seconds since 1970.
    pub fn of(self, second: i64) -> i64 {
        let second = within(second);
        let date = || date(second / DAY_S);
        match self {
            Self::Year => date().0,
            Self::Month => date().1,
            Self::Day => date().2,
            Self::Hour => second % DAY_S / 3_600,
            Self::Minute => second % 3_600 / 60,
            // 1970-01-01 was a Thursday.
            Self::Weekday => (second / DAY_S + 3) % 7 + 1,
        }
    }
}

/// Appends a date: `2026-11-21`.
pub(super) fn write_date(second: i64, out: &mut Vec<u8>) {
    let (year, month, day) = date(within(second) / DAY_S);
    write!(out, "{year:04}-{month:02}-{day:02}").expect("a vector takes what is written to it");
}

/// Appends a time of day: `03:55:33`.
pub(super) fn write_clock(second: i64, out: &mut Vec<u8>) {
    let second = within(second) % DAY_S;
    let (hour, minute, second) = (second / 3_600, second % 3_600 / 60, second % 60);
    write!(out, "{hour:02}:{minute:02}:{second:02}").expect("a vector takes what is written to it");
}

fn within(second: i64) -> i64 {
    second.clamp(0, SECOND_MAX)
}

/// Year, month and day, from the number of days since 1970-01-01.
fn date(day: i64) -> (i64, i64, i64) {
    // Calculates with years that begin in March, so that a leap day is the last day of its year.
    const ERA_DAYS: i64 = 146_097;
    let day = day + 719_468;
    let (era, day) = (day / ERA_DAYS, day % ERA_DAYS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + 400 * era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: fn(i64, &mut Vec<u8>), second: i64) -> String {
        let mut out = Vec::new();
        write(second, &mut out);
        String::from_utf8(out).expect("a text")
    }

    #[test]
    fn dates_and_times() {
        for (second, date, clock, weekday) in [
            (0, "1970-01-01", "00:00:00", 4),
            (951_782_400, "2000-02-29", "00:00:00", 2),
            (951_868_799, "2000-02-29", "23:59:59", 2),
            (951_868_800, "2000-03-01", "00:00:00", 3),
            (1_709_164_800, "2024-02-29", "00:00:00", 4),
            (1_767_225_599, "2025-12-31", "23:59:59", 3),
            (1_795_924_533, "2026-11-29", "03:55:33", 7),
            (1_795_996_800, "2026-11-30", "00:00:00", 1),
            (4_107_542_400, "2100-03-01", "00:00:00", 1),
            (i64::MAX, "9999-12-31", "23:59:59", 5),
            (-1, "1970-01-01", "00:00:00", 4),
        ] {
            assert_eq!(text(write_date, second), date, "{second}");
            assert_eq!(text(write_clock, second), clock, "{second}");
            assert_eq!(TimePart::Weekday.of(second), weekday, "{second}");
            let part = |part: TimePart, range: std::ops::Range<usize>, text: &str| {
                assert_eq!(
                    part.of(second),
                    text[range].parse::<i64>().expect("a number"),
                    "{second}"
                );
            };
            part(TimePart::Year, 0..4, date);
            part(TimePart::Month, 5..7, date);
            part(TimePart::Day, 8..10, date);
            part(TimePart::Hour, 0..2, clock);
            part(TimePart::Minute, 3..5, clock);
        }
    }

    /// Each day follows the previous one.
    #[test]
    fn days_follow_each_other() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for number in 0..60_000 {
            assert_eq!(date(number), (year, month, day));
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 if is_leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }
}
