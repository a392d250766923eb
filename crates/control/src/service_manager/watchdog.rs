//! Decides when to send `WATCHDOG=1` to the service manager.
//!
//! The control plane checks the workers four times within the watchdog's timeout. It sends each worker a request, and
//! examines the response at the next check. At every second check, it notifies the watchdog if all workers have responded.
//! An idle worker responds; a worker that is stuck in one turn does not.

use std::time::{Duration, Instant};

/// The number of checks within the watchdog's timeout.
const LOOKS: u32 = 4;

/// The number of checks per notification.
const LOOKS_PER_REPORT: u32 = 2;

/// Minimum interval between checks.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(1);

/// The watchdog of this process.
#[derive(Debug)]
pub(super) struct Watchdog {
    interval: Duration,
    next: Instant,
    /// The number of checks since the last notification.
    looks: u32,
}

impl Watchdog {
    /// A watchdog with this timeout, after which the service manager kills a process that sends no notification.
    pub(super) fn new(time: Duration, now: Instant) -> Self {
        let interval = (time / LOOKS).max(LOOK_INTERVAL_MIN);
        Self { interval, next: now + interval, looks: 0 }
    }

    /// The timeout from `WATCHDOG_USEC`; `None`: it is absent or invalid, or `WATCHDOG_PID` names another process.
    pub(super) fn time(usec: Option<&str>, pid: Option<&str>, own: u32) -> Option<Duration> {
        let usec: u64 = usec?.parse().ok().filter(|usec| *usec > 0)?;
        let is_ours = pid.is_none_or(|pid| pid.parse() == Ok(own));
        is_ours.then(|| Duration::from_micros(usec))
    }

    /// The time of the next check.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Records a check. Returns whether to notify the watchdog. `is_alive`: all workers have responded since the last check.
    pub(super) fn look(&mut self, now: Instant, is_alive: bool) -> bool {
        // Missed checks are not repeated.
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
        // At the fifth and the sixth check, a worker has not responded.
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
