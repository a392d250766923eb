//! Measures the time that rules need for one request, and that all work needs in one turn. The caller provides the clock. For
//! rules, it is read once per [`WORK_BYTES_PER_LOOK`] bytes of work, in short turns more often. Ordinary requests need less work.
//! In turns whose time is limited, it is also read between the parts of the end of a body.

use super::options::{TimeLimit, Turn};

/// Number of bytes of work between two readings of the clock.
const WORK_BYTES_PER_LOOK: u64 = 64 << 10;
/// The same in a turn whose time is limited. With expensive rules, so much work takes a part of the time of a turn.
const WORK_BYTES_PER_LOOK_IN_TURN: u64 = 8 << 10;

/// The time that rules have needed, and the turn.
#[derive(Debug)]
pub(super) struct Timer {
    limit: Option<TimeLimit>,
    /// The amount of work at which the clock is next read, or the turn is over.
    pub look_at_bytes: u64,
    /// The last reading of the clock in this turn, if any.
    since_us: Option<u64>,
    /// The time of rules, in all turns.
    taken_us: u64,
    turn: Current,
}

/// The current turn.
#[derive(Debug, Clone, Copy)]
struct Current {
    /// The time that it has taken, for rules and for bodies.
    taken_us: u64,
    /// It is over when it has taken so much time.
    us_max: u64,
    /// It is over after so much work in all turns.
    ends_at_bytes: u64,
    work_bytes_per_look: u64,
}

impl Timer {
    /// A timer at zero, in a turn without an end.
    pub fn new(limit: Option<TimeLimit>) -> Self {
        let turn = Current {
            taken_us: 0,
            us_max: u64::MAX,
            ends_at_bytes: u64::MAX,
            work_bytes_per_look: WORK_BYTES_PER_LOOK,
        };
        Self { limit, look_at_bytes: u64::MAX, since_us: None, taken_us: 0, turn }
    }

    /// Starts a turn, perhaps on another thread. `is_first`: its time is measured from the first reading on.
    pub fn begin_turn(&mut self, work_bytes: u64, turn: Turn, is_first: bool) {
        let is_timed = turn.cpu_us_max < u64::MAX;
        self.turn = Current {
            taken_us: 0,
            us_max: turn.cpu_us_max,
            ends_at_bytes: work_bytes.saturating_add(turn.work_bytes_max),
            work_bytes_per_look: match is_timed {
                true => WORK_BYTES_PER_LOOK_IN_TURN,
                false => WORK_BYTES_PER_LOOK,
            },
        };
        // Other requests may have run since the last turn.
        self.since_us = None;
        if !is_first {
            self.passed_us();
        }
        self.plan(work_bytes);
    }

    /// Plans the next reading of the clock.
    pub fn plan(&mut self, work_bytes: u64) {
        let look_at_bytes = match self.limit {
            Some(_) => work_bytes.saturating_add(self.turn.work_bytes_per_look),
            None => u64::MAX,
        };
        let is_turn_over = work_bytes >= self.turn.ends_at_bytes;
        self.look_at_bytes = match is_turn_over {
            true => look_at_bytes,
            false => look_at_bytes.min(self.turn.ends_at_bytes),
        };
    }

    /// Whether the current turn is over.
    pub fn is_turn_over(&self, work_bytes: u64) -> bool {
        self.turn.taken_us >= self.turn.us_max || work_bytes >= self.turn.ends_at_bytes
    }

    /// Reads the clock between two parts of other work than that of rules, if the time of the turn is limited.
    pub fn look_between(&mut self) {
        if self.turn.us_max < u64::MAX {
            self.turn.taken_us += self.passed_us();
        }
    }

    /// Reads the clock, if there is one. Returns the time since the last reading in this turn.
    fn passed_us(&mut self) -> u64 {
        let Some(limit) = &self.limit else { return 0 };
        let now_us = (limit.now_us)();
        let before = self.since_us.replace(now_us);
        before.map_or(0, |since_us| now_us.saturating_sub(since_us))
    }

    /// Reads the clock if this is due. Returns whether the rules have exceeded their time.
    pub fn is_over(&mut self, work_bytes: u64) -> bool {
        if work_bytes > self.look_at_bytes {
            let passed_us = self.passed_us();
            self.taken_us += passed_us;
            self.turn.taken_us += passed_us;
            self.plan(work_bytes);
        }
        self.limit.as_ref().is_some_and(|limit| self.taken_us > limit.max_us)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static NOW_US: Cell<u64> = const { Cell::new(0) };
        static LOOKS: Cell<u64> = const { Cell::new(0) };
    }

    fn now_us() -> u64 {
        LOOKS.set(LOOKS.get() + 1);
        NOW_US.get()
    }

    #[test]
    fn what_else_runs_is_not_counted() {
        let mut timer = Timer::new(Some(TimeLimit { max_us: 1_000, now_us }));
        let mut work_bytes = 0;
        let mut work = |timer: &mut Timer, bytes: u64, us: u64| {
            work_bytes += bytes;
            NOW_US.set(NOW_US.get() + us);
            timer.is_over(work_bytes)
        };
        timer.begin_turn(0, Turn::WHOLE, true);
        assert!(!work(&mut timer, WORK_BYTES_PER_LOOK, 5_000));
        assert_eq!(LOOKS.get(), 0, "a request of little work");
        assert!(!work(&mut timer, WORK_BYTES_PER_LOOK + 1, 5_000), "it is measured from here on");
        assert!(!work(&mut timer, WORK_BYTES_PER_LOOK + 1, 600));
        assert_eq!(LOOKS.get(), 2);
        // Other requests are served while the body arrives.
        timer.begin_turn(2 * WORK_BYTES_PER_LOOK + 2, Turn::WHOLE, true);
        assert!(!work(&mut timer, WORK_BYTES_PER_LOOK + 1, 90_000));
        assert!(!work(&mut timer, WORK_BYTES_PER_LOOK + 1, 400), "1 ms in all, and no more");
        assert!(work(&mut timer, WORK_BYTES_PER_LOOK + 1, 1));
        assert!(work(&mut timer, 1, 0), "it stays so");
        timer.begin_turn(0, Turn::WHOLE, true);
        assert!(timer.is_over(0), "also behind the next body");
    }

    #[test]
    fn a_turn_ends_by_its_work_or_its_time() {
        let mut timer = Timer::new(Some(TimeLimit { max_us: 1_000_000, now_us }));
        let turn = Turn { cpu_us_max: 100, ..Turn::WHOLE };
        NOW_US.set(0);
        timer.begin_turn(1_000, turn, true);
        assert_eq!(LOOKS.get(), 0, "most requests need one turn, and little of it");
        let mut work_bytes = 1_000;
        let mut work = |timer: &mut Timer, us: u64| {
            work_bytes += WORK_BYTES_PER_LOOK_IN_TURN + 1;
            NOW_US.set(NOW_US.get() + us);
            timer.is_over(work_bytes);
            timer.is_turn_over(work_bytes)
        };
        assert!(!work(&mut timer, 5_000), "the first reading");
        assert!(!work(&mut timer, 99) && work(&mut timer, 1));
        assert!(work(&mut timer, 0), "it stays so");
        timer.begin_turn(0, turn, false);
        assert!(!work(&mut timer, 99) && work(&mut timer, 1), "it is measured from the start on");
        let turn = Turn { work_bytes_max: 10, ..Turn::WHOLE };
        timer.begin_turn(50, turn, false);
        assert!(!timer.is_turn_over(59) && timer.is_turn_over(60));
        timer.begin_turn(60, Turn::WHOLE, false);
        assert!(!timer.is_turn_over(u64::MAX - 1));
    }

    #[test]
    fn time_between_parts_is_that_of_the_turn_and_not_of_rules() {
        let mut timer = Timer::new(Some(TimeLimit { max_us: 1_000, now_us }));
        let turn = Turn { cpu_us_max: 100, ..Turn::WHOLE };
        let look_after = |timer: &mut Timer, us: u64| {
            NOW_US.set(NOW_US.get() + us);
            timer.look_between();
            timer.is_turn_over(0)
        };
        timer.begin_turn(0, turn, true);
        assert!(!look_after(&mut timer, 5_000), "the first reading");
        assert!(!look_after(&mut timer, 99) && look_after(&mut timer, 1));
        timer.begin_turn(0, turn, false);
        assert!(look_after(&mut timer, 5_000), "it is measured from the start on");
        timer.plan(0);
        assert!(!timer.is_over(1 << 20), "rules have taken no time");
        timer.begin_turn(0, turn, false);
        NOW_US.set(NOW_US.get() + 60);
        timer.plan(0);
        timer.is_over(1 << 20);
        assert!(look_after(&mut timer, 40), "a phase does not begin a turn");
        let before = LOOKS.get();
        timer.begin_turn(0, Turn::WHOLE, true);
        timer.look_between();
        assert_eq!(LOOKS.get(), before, "nobody wants to know");
    }

    #[test]
    fn without_a_limit_nobody_looks() {
        let mut timer = Timer::new(None);
        timer.plan(0);
        timer.look_between();
        assert!(!timer.is_over(1 << 40));
        assert_eq!(timer.look_at_bytes, u64::MAX);
        assert_eq!(LOOKS.get(), 0);
    }
}
