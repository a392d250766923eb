//! When a service manager's watchdog is told that the process works.
//!
//! The control plane looks four times within the watchdog's time: it asks each worker for an answer, and checks the answer
//! at the next look. It reports at every second look, if each worker has answered. A worker without work answers, too; one
//! that is stuck in a turn does not.

use std::time::{Duration, Instant};

/// Looks within the watchdog's time.
const LOOKS: u32 = 4;

/// Looks from one report to the next.
const LOOKS_PER_REPORT: u32 = 2;

/// Looks come at least this far apart, however short the watchdog's time is.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(1);

/// The watchdog of this process.
#[derive(Debug)]
pub(super) struct Watchdog {
    interval: Duration,
    next: Instant,
    /// Looks since the last report.
    looks: u32,
}

impl Watchdog {
    /// For the time after which the service manager ends a process that is silent.
    pub(super) fn new(time: Duration, now: Instant) -> Self {
        let interval = (time / LOOKS).max(LOOK_INTERVAL_MIN);
        Self { interval, next: now + interval, looks: 0 }
    }

    /// From `WATCHDOG_USEC` and `WATCHDOG_PID`: the watchdog's time, if it is meant for this process.
    pub(super) fn time(usec: Option<&str>, pid: Option<&str>, own: u32) -> Option<Duration> {
        let usec: u64 = usec?.parse().ok().filter(|usec| *usec > 0)?;
        let is_ours = pid.is_none_or(|pid| pid.parse() == Ok(own));
        is_ours.then(|| Duration::from_micros(usec))
    }

    /// The time of the next look.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Notes a look; returns whether a report is due. `is_alive`: all workers have answered since the last look.
    pub(super) fn look(&mut self, now: Instant, is_alive: bool) -> bool {
        // Looks that were missed are not made up for.
        self.next = now + self.interval;
        self.looks = self.looks.saturating_add(1);
        let is_due = is_alive && self.looks >= LOOKS_PER_REPORT;
        if is_due {
            self.looks = 0;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_twice_in_its_time_while_all_answer() {
        let begin = Instant::now();
        let mut watchdog = Watchdog::new(Duration::from_secs(4), begin);
        let mut told = Vec::new();
        // At the fifth and sixth look a worker has not answered.
        for look in 1..=10 {
            let now = begin + Duration::from_secs(look);
            assert_eq!(watchdog.next(), now);
            if watchdog.look(now, look != 5 && look != 6) {
                told.push(look);
            }
        }
        assert_eq!(told, [2, 4, 7, 9]);
    }

    #[test]
    fn its_time_is_that_of_this_process() {
        let check = |usec, pid, expected| {
            assert_eq!(Watchdog::time(usec, pid, 7), expected, "{usec:?} {pid:?}");
        };
        let time = Some(Duration::from_secs(30));
        check(Some("30000000"), None, time);
        check(Some("30000000"), Some("7"), time);
        check(Some("30000000"), Some("8"), None);
        check(Some("30000000"), Some(""), None);
        check(Some("0"), None, None);
        check(Some("soon"), None, None);
        check(None, None, None);
    }
}
