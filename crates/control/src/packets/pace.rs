//! The pace of sweeps over flows: once a second, with a small share of a core.
//!
//! A sweep reads the whole table. It takes a core 13 ns for each of the two entries of a flow: 26 ms for a million flows.
//! A sweep is divided into parts, so that commands need not wait, with a rest after each part. With a million flows, it
//! takes two seconds, so flows may end that much late. If the table is nearly full and sweeps make room, or a caller waits
//! for flows, the rests are shorter.

use std::time::{Duration, Instant};

/// The interval between sweeps, if the previous one is finished.
const INTERVAL: Duration = Duration::from_secs(1);
/// Seconds of rest per second of work.
const REST: u32 = 79;
/// Seconds of rest per second of work if room is scarce, or a caller waits.
const REST_IN_A_HURRY: u32 = 2;
/// Minimum interval between sweeps in a hurry: over few flows, a sweep takes less time than its beginning and end.
const INTERVAL_IN_A_HURRY: Duration = Duration::from_millis(50);
/// Maximum duration of a rest.
const REST_MAX: Duration = Duration::from_secs(1);
/// The share of used entries from which the table counts as nearly full.
const SCARCE_SHARE: f64 = 0.75;
/// The share of flows that a sweep must have ended per second so that another is hastened for room. If flows last, a hurry makes no room, and may take
/// more CPU than forwarding.
const FREED_SHARE_PER_SECOND_MIN: f64 = 0.01;

/// A part of a sweep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub took: Duration,
    /// The sweep has ended, too.
    pub is_last: bool,
    /// The number of flows in the table, and its limit.
    pub flows: u64,
    pub flows_max: u64,
    /// The number of flows that the sweep has taken out of the table.
    pub freed: u64,
}

/// The pace of sweeps.
#[derive(Debug)]
pub(super) struct Pace {
    began: Instant,
    due: Instant,
    is_under_way: bool,
    /// The number of sweeps with short rests, including the current one.
    hurried: u8,
    /// Sweeps make room: the last one did, or this one does. It is assumed before the first.
    makes_room: bool,
    /// Sweeps end flows, so that their source ports are free again; as above.
    ends_flows: bool,
}

impl Pace {
    /// A pace whose first sweep begins one second from now.
    pub fn new(now: Instant) -> Self {
        Self {
            began: now,
            due: now + INTERVAL,
            is_under_way: false,
            hurried: 0,
            makes_room: true,
            ends_flows: true,
        }
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

    /// The same, because packets found no room for a flow.
    pub fn hasten_for_room(&mut self, now: Instant) {
        if self.makes_room {
            self.hasten(now);
        }
    }

    /// The same, because packets found no source port. A member's ports may be few among all flows, so any flow that ends counts.
    pub fn hasten_for_ports(&mut self, now: Instant) {
        if self.ends_flows {
            self.hasten(now);
        }
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

    /// Records the end of a part.
    pub fn end_part(&mut self, now: Instant, part: &Part) {
        let flows = part.flows as f64;
        let elapsed_s = (now - self.began).max(INTERVAL_IN_A_HURRY).as_secs_f64();
        let has_freed = part.freed as f64 >= flows * FREED_SHARE_PER_SECOND_MIN * elapsed_s;
        self.makes_room = has_freed || (self.makes_room && !part.is_last);
        self.ends_flows = part.freed > 0 || (self.ends_flows && !part.is_last);
        let is_scarce = flows >= part.flows_max as f64 * SCARCE_SHARE;
        let hurries = self.hurried > 0 || (is_scarce && self.makes_room);
        let rest = part.took * if hurries { REST_IN_A_HURRY } else { REST };
        self.due = now + rest.min(REST_MAX);
        if part.is_last {
            self.hurried = self.hurried.saturating_sub(1);
            let interval = if self.hurried == 0 { INTERVAL } else { INTERVAL_IN_A_HURRY };
            self.due = self.due.max(self.began + interval);
            self.is_under_way = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: Duration = Duration::from_millis(10);

    /// A part of a sweep over a table for 1,000 flows.
    fn part(is_last: bool, flows: u64, freed: u64) -> Part {
        Part { took: PART, is_last, flows, flows_max: 1_000, freed }
    }

    /// The duration of a sweep with this number of parts, including the rests.
    fn sweep(parts: u32, flows: u64, hurries: bool) -> Duration {
        let began = Instant::now();
        let (mut now, mut pace) = (began + INTERVAL, Pace::new(began));
        if hurries {
            pace.hasten(now);
        }
        let began = now;
        for number in 1..=parts {
            assert!(pace.is_due(now));
            assert_eq!(pace.begin_part(now), number == 1);
            now += PART;
            pace.end_part(now, &part(number == parts, flows, flows));
            now += pace.rests_for(now);
        }
        now - began
    }

    #[test]
    fn a_sweep_takes_an_eightieth_of_a_core_or_a_third() {
        assert_eq!(sweep(1, 100, false), INTERVAL);
        assert_eq!(sweep(100, 100, false), PART * 100 * 80);
        assert_eq!(sweep(100, 800, false), PART * 100 * 3);
        assert_eq!(sweep(100, 100, true), PART * 100 * 3);
    }

    #[test]
    fn a_hurry_lasts_until_all_have_been_looked_at_since() {
        let mut now = Instant::now();
        let mut pace = Pace::new(now);
        now += INTERVAL;
        let mut work = |pace: &mut Pace, is_last| {
            pace.begin_part(now);
            now += PART;
            pace.end_part(now, &part(is_last, 0, 0));
            let rest = pace.rests_for(now);
            now += rest;
            rest
        };
        assert_eq!(work(&mut pace, false), PART * 79);
        pace.hasten(Instant::now());
        for is_last in [true, false, false] {
            assert_eq!(work(&mut pace, is_last), PART * 2);
        }
        assert!(work(&mut pace, true) > PART * 2);
        assert_eq!(work(&mut pace, false), PART * 79);
    }

    #[test]
    fn sweeps_over_few_flows_do_not_follow_at_once() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        pace.begin_part(now);
        pace.hasten(now);
        pace.end_part(now + PART, &part(true, 10, 10));
        assert_eq!(pace.rests_for(now), INTERVAL_IN_A_HURRY);
    }

    /// Whether sweeps are hastened for room in a full table, and the rest after a part of them, if the sweep before has freed so many flows in so many
    /// milliseconds.
    fn hurries(freed: u64, took_ms: u64) -> (bool, Duration) {
        let began = Instant::now();
        let mut pace = Pace::new(began);
        pace.begin_part(began);
        let now = began + Duration::from_millis(took_ms);
        pace.end_part(now, &part(true, 1_000, freed));
        pace.hasten_for_room(now);
        let is_due = pace.is_due(now);
        pace.begin_part(now);
        pace.end_part(now, &part(false, 1_000, 0));
        (is_due, pace.rests_for(now))
    }

    #[test]
    fn sweeps_that_make_no_room_are_not_hastened_for_it() {
        let (soon, later) = ((true, PART * 2), (false, PART * 79));
        for (freed, took_ms, expected) in
            [(20, 2_000, soon), (19, 2_000, later), (2, 200, soon), (1, 200, later), (0, 1, later)]
        {
            assert_eq!(hurries(freed, took_ms), expected, "{freed} in {took_ms} ms");
        }
    }

    #[test]
    fn sweeps_that_end_no_flow_are_not_hastened_for_source_ports() {
        let hurries = |freed: u64| {
            let now = Instant::now();
            let mut pace = Pace::new(now);
            pace.begin_part(now);
            pace.end_part(now + INTERVAL, &part(true, 1_000, freed));
            pace.hasten_for_ports(now);
            pace.is_due(now)
        };
        assert_eq!([hurries(0), hurries(1)], [false, true]);
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
