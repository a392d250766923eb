//! The pace of sweeps over flows: once a second, with a small share of a core.
//!
//! A sweep reads the whole table. It takes a core 0.3 µs for each of the two entries of a flow: more than half a second for
//! a million flows. A sweep is divided into parts, so that commands need not wait, with a rest after each part. With a
//! million flows, it takes half a minute, so flows may end up to half a minute late. If the table is nearly full, or a
//! caller waits for flows, the rests are shorter.

use std::time::{Duration, Instant};

/// The interval between sweeps, if the previous one is finished.
const INTERVAL: Duration = Duration::from_secs(1);
/// Seconds of rest per second of work.
const REST: u32 = 39;
/// Seconds of rest per second of work if the table is filled to [`SCARCE_SHARE`], or a caller waits.
const REST_IN_A_HURRY: u32 = 2;
/// Maximum duration of a rest.
const REST_MAX: Duration = Duration::from_secs(1);
/// The share of used entries from which the table counts as nearly full.
const SCARCE_SHARE: f64 = 0.75;

/// The pace of sweeps.
#[derive(Debug)]
pub(super) struct Pace {
    began: Instant,
    due: Instant,
    is_under_way: bool,
    /// The number of sweeps with short rests, including the current one.
    hurried: u8,
}

impl Pace {
    /// A pace whose first sweep begins one second from now.
    pub fn new(now: Instant) -> Self {
        Self { began: now, due: now + INTERVAL, is_under_way: false, hurried: 0 }
    }

    /// Begins another sweep now, with short rests.
    pub fn begin_anew(&mut self, now: Instant) {
        *self = Self { due: now, hurried: 1, ..Self::new(now) };
    }

    /// Requests that all flows are examined soon. If a sweep is in progress, the next one is hastened too, because the
    /// current one may have passed some flows already.
    pub fn hasten(&mut self, now: Instant) {
        self.hurried = if self.is_under_way { 2 } else { 1 };
        self.due = self.due.min(now);
    }

    /// Whether a part of a sweep is due.
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// The time until the next part.
    pub fn rests_for(&self, now: Instant) -> Duration {
        self.due.saturating_duration_since(now)
    }

    /// Begins a part. Returns whether it is the first part of a sweep.
    pub fn begin_part(&mut self, now: Instant) -> bool {
        let is_first = !self.is_under_way;
        if is_first {
            self.began = now;
        }
        self.is_under_way = true;
        is_first
    }

    /// Records the end of a part that took `took`. `is_last`: the sweep has ended, too. `used_share`: the share of used
    /// entries in the table.
    pub fn end_part(&mut self, now: Instant, took: Duration, is_last: bool, used_share: f64) {
        let hurries = self.hurried > 0 || used_share >= SCARCE_SHARE;
        let rest = took * if hurries { REST_IN_A_HURRY } else { REST };
        self.due = now + rest.min(REST_MAX);
        if is_last {
            self.hurried = self.hurried.saturating_sub(1);
            if self.hurried == 0 {
                self.due = self.due.max(self.began + INTERVAL);
            }
            self.is_under_way = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: Duration = Duration::from_millis(10);

    /// The duration of a sweep with this number of parts, including the rests.
    fn sweep(parts: u32, used_share: f64, hurries: bool) -> Duration {
        let began = Instant::now();
        let (mut now, mut pace) = (began + INTERVAL, Pace::new(began));
        if hurries {
            pace.hasten(now);
        }
        let began = now;
        for part in 1..=parts {
            assert!(pace.is_due(now));
            assert_eq!(pace.begin_part(now), part == 1);
            now += PART;
            pace.end_part(now, PART, part == parts, used_share);
            now += pace.rests_for(now);
        }
        now - began
    }

    #[test]
    fn a_sweep_takes_a_fortieth_of_a_core_or_a_third() {
        assert_eq!(sweep(1, 0.1, false), INTERVAL);
        assert_eq!(sweep(2, 0.1, false), INTERVAL);
        assert_eq!(sweep(100, 0.1, false), PART * 100 * 40);
        assert_eq!(sweep(100, 0.8, false), PART * 100 * 3);
        assert_eq!(sweep(100, 0.1, true), PART * 100 * 3);
    }

    #[test]
    fn a_hurry_lasts_until_all_have_been_looked_at_since() {
        let mut now = Instant::now();
        let mut pace = Pace::new(now);
        now += INTERVAL;
        let mut part = |pace: &mut Pace, is_last| {
            pace.begin_part(now);
            now += PART;
            pace.end_part(now, PART, is_last, 0.0);
            let rest = pace.rests_for(now);
            now += rest;
            rest
        };
        assert_eq!(part(&mut pace, false), PART * 39);
        pace.hasten(Instant::now());
        for is_last in [true, false, false] {
            assert_eq!(part(&mut pace, is_last), PART * 2);
        }
        assert!(part(&mut pace, true) > PART * 2);
        assert_eq!(part(&mut pace, false), PART * 39);
    }

    #[test]
    fn the_first_is_due_in_a_second_and_one_that_begins_anew_at_once() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        assert_eq!(pace.rests_for(now), INTERVAL);
        assert!(!pace.is_due(now) && pace.is_due(now + INTERVAL));
        pace.begin_part(now);
        pace.begin_anew(now);
        assert!(pace.is_due(now) && pace.begin_part(now));
    }
}
