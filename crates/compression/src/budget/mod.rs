//! The compression level that a worker can afford under load.
//!
//! Compression can be reduced under load. A worker reports to its [`Budget`] its busy time, and the part of it that encoders
//! took. When the worker has almost no idle time left, the level of new responses falls, step by step, down to no
//! compression, before requests have to wait for each other. When there is idle time again, the level rises.
//!
//! | step | level of a response that is configured with `n` |
//! |---|---|
//! | 0 | `n` |
//! | 1, 2 | `n / 2`, `n / 4`, at least 1 |
//! | 3 | 1 |
//! | 4, 5, 6 | 1 for three, two, one of four responses, and none for the others |
//! | 7 | none |
//!
//! If a lowest level is set, no step goes below it: for hosts whose bandwidth is scarcer than CPU time.
//!
//! **Falling** is fast: two steps after each window of [`WINDOW_US`] with almost no idle time, from the third in a row on,
//! because fewer may occur by chance; and one step when the load, smoothed over some windows, is at [`BUSY_MAX_PERCENT`] or
//! more. The level stops falling when compression is no longer a significant part of the load.
//!
//! **Rising** is slow, because the cost of a higher level is only known afterwards: the level rises by one step after the
//! smoothed load has been below [`BUSY_LOW_PERCENT`] for a while. If a fall follows soon after, the next attempt waits twice
//! as long, up to [`RISE_AFTER_US_MAX`]. So under constant load, changes become rare. After a level has lasted for a long
//! time, attempts are made sooner again.
//!
//! A response keeps the level that it began with.

#[cfg(test)]
mod simulation;

use crate::coding::Level;

/// Length of the window over which the load is measured.
pub const WINDOW_US: u64 = 20_000;

/// The level falls at this smoothed load.
const BUSY_MAX_PERCENT: u64 = 85;

/// A window that was busy for this share of its time had almost no idle time.
const BUSY_FULL_PERCENT: u64 = 97;

/// This many full windows in a row are not a coincidence.
const FULL_WINDOWS_MIN: u32 = 3;

/// A smoothed load of less than this lets the level rise.
const BUSY_LOW_PERCENT: u64 = 65;

/// The weight of a window in the smoothed load: one part in eight.
const SMOOTHING: u64 = 8;

/// Windows that must pass between two steps due to load, for the smoothed load to show the effect of the first.
const SETTLING_WINDOWS: u32 = 6;

/// If compression took less than this share of a window, the level does not fall.
const SPENT_MIN_PERCENT: u64 = 2;

/// Initial time for which the load must be low before the level rises by a step.
const RISE_AFTER_US_MIN: u64 = 400_000;

/// Maximum of that time, after rises that did not last.
const RISE_AFTER_US_MAX: u64 = 12_800_000;

/// A fall within this time after a rise is a consequence of the rise.
const RISE_PROVES_AFTER_US: u64 = 1_000_000;

/// The step without compression.
const STEP_MAX: u8 = 7;

/// Counts of responses affected by load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BudgetCounters {
    /// Responses that were compressed with a lower level than configured.
    pub reduced: u64,
    /// Responses that were not compressed.
    pub skipped: u64,
}

/// A worker's time for compression.
#[derive(Debug, Clone)]
pub struct Budget {
    step: u8,
    window_start_us: u64,
    busy_us: u64,
    spent_us: u64,
    /// The smoothed load, in thousandths of a percent.
    smoothed: u64,
    /// Windows in a row without idle time.
    full_windows: u32,
    /// Windows since the last step down.
    settled_windows: u32,
    /// The time since which the load has been low; `None`: the load is not low.
    low_since_us: Option<u64>,
    risen_us: Option<u64>,
    rise_after_us: u64,
    /// Index of the next response, modulo four.
    turn: u8,
    counters: BudgetCounters,
}

impl Budget {
    /// The state without load.
    pub fn new(now_us: u64) -> Self {
        Self {
            step: 0,
            window_start_us: now_us,
            busy_us: 0,
            spent_us: 0,
            smoothed: 0,
            full_windows: 0,
            settled_windows: SETTLING_WINDOWS,
            low_since_us: None,
            risen_us: None,
            rise_after_us: RISE_AFTER_US_MIN,
            turn: 0,
            counters: BudgetCounters::default(),
        }
    }

    /// Adds time that an encoder was busy.
    pub fn note(&mut self, spent_us: u64) {
        self.spent_us += spent_us;
    }

    /// Adds time that the worker was busy since the last call, including encoders. The worker calls this once per turn of
    /// its loop, and after it has waited.
    pub fn note_turn(&mut self, busy_us: u64, now_us: u64) {
        self.busy_us += busy_us;
        let elapsed_us = now_us.saturating_sub(self.window_start_us);
        if elapsed_us < WINDOW_US {
            return;
        }
        let percent = |part_us: u64| part_us.saturating_mul(100) / elapsed_us;
        self.judge(percent(self.busy_us), percent(self.spent_us), now_us);
        self.window_start_us = now_us;
        self.busy_us = 0;
        self.spent_us = 0;
    }

    /// The level for the next response, whose configured level is `configured`, and whose lowest level is `level_min`, if
    /// set; `None`: the response is not compressed. Counts the response.
    pub fn level_for(&mut self, configured: Level, level_min: Option<Level>) -> Option<Level> {
        let halved = |times: u8| Level::new(configured.get() >> times).unwrap_or(Level::MIN);
        let level = match self.step {
            0 => Some(configured),
            step @ (1 | 2) => Some(halved(step)),
            3 => Some(Level::MIN),
            step => {
                self.turn = (self.turn + 1) % 4;
                (self.turn < STEP_MAX.saturating_sub(step)).then_some(Level::MIN)
            }
        };
        let level = level.max(level_min.map(|lowest| lowest.min(configured)));
        match level {
            None => self.counters.skipped += 1,
            Some(level) if level < configured => self.counters.reduced += 1,
            Some(_) => {}
        }
        level
    }

    /// The current step, for a metric: from 0, the configured level, to 7, no compression.
    pub fn step(&self) -> u8 {
        self.step
    }

    /// The counts so far.
    pub fn counters(&self) -> BudgetCounters {
        self.counters
    }

    /// Evaluates a complete window.
    fn judge(&mut self, busy_percent: u64, spent_percent: u64, now_us: u64) {
        let busy_percent = busy_percent.min(100);
        self.smoothed = (self.smoothed * (SMOOTHING - 1) + busy_percent * 1000) / SMOOTHING;
        let smoothed_percent = self.smoothed / 1000;
        self.settled_windows = self.settled_windows.saturating_add(1);
        let is_full = busy_percent >= BUSY_FULL_PERCENT;
        self.full_windows = if is_full { self.full_windows.saturating_add(1) } else { 0 };
        let is_settled = self.settled_windows > SETTLING_WINDOWS;
        let steps = match () {
            () if self.full_windows >= FULL_WINDOWS_MIN => 2,
            () if smoothed_percent >= BUSY_MAX_PERCENT && is_settled => 1,
            () => 0,
        };
        if steps > 0 && spent_percent >= SPENT_MIN_PERCENT {
            self.fall(steps, now_us);
        } else {
            self.rise(smoothed_percent, now_us);
        }
    }

    fn fall(&mut self, steps: u8, now_us: u64) {
        self.settled_windows = 0;
        self.low_since_us = None;
        self.step = (self.step + steps).min(STEP_MAX);
        let risen_us = self.risen_us.take();
        if risen_us.is_some_and(|at| now_us.saturating_sub(at) < RISE_PROVES_AFTER_US) {
            self.rise_after_us = (2 * self.rise_after_us).min(RISE_AFTER_US_MAX);
        }
    }

    fn rise(&mut self, smoothed_percent: u64, now_us: u64) {
        if self.risen_us.is_some_and(|at| now_us.saturating_sub(at) >= 2 * RISE_AFTER_US_MAX) {
            // The level has lasted; the knowledge about the load is outdated.
            self.risen_us = None;
            self.rise_after_us = RISE_AFTER_US_MIN;
        }
        if smoothed_percent >= BUSY_LOW_PERCENT || self.step == 0 {
            self.low_since_us = None;
            return;
        }
        let since_us = *self.low_since_us.get_or_insert(self.window_start_us);
        if now_us.saturating_sub(since_us) >= self.rise_after_us {
            self.step -= 1;
            self.low_since_us = None;
            self.risen_us = Some(now_us);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(level: u8) -> Level {
        Level::new(level).unwrap()
    }

    /// A budget after windows that were busy for these shares of their time, mostly with encoders.
    fn after(windows: &[u64]) -> (Budget, u64) {
        let mut budget = Budget::new(0);
        let mut now_us = 0;
        for percent in windows {
            now_us += WINDOW_US;
            budget.note(WINDOW_US * percent / 120);
            budget.note_turn(WINDOW_US * percent / 100, now_us);
        }
        (budget, now_us)
    }

    #[test]
    fn levels_by_step() {
        for (step, of_9, of_5, of_1) in [
            (0, Some(9), Some(5), Some(1)),
            (1, Some(4), Some(2), Some(1)),
            (2, Some(2), Some(1), Some(1)),
            (3, Some(1), Some(1), Some(1)),
            (7, None, None, None),
        ] {
            let mut budget = Budget::new(0);
            budget.step = step;
            for (configured, expected) in [(9, of_9), (5, of_5), (1, of_1)] {
                let found = budget.level_for(level(configured), None).map(Level::get);
                assert_eq!(found, expected, "{configured} at step {step}");
            }
        }
        for (step, compressed) in [(4, 3), (5, 2), (6, 1)] {
            let mut budget = Budget::new(0);
            budget.step = step;
            let count = (0..100).filter(|_| budget.level_for(level(1), None).is_some()).count();
            assert_eq!(count, compressed * 25, "step {step}");
            assert_eq!(budget.counters().skipped, 100 - 25 * compressed as u64);
        }
    }

    #[test]
    fn no_step_goes_below_a_lowest_level() {
        for (lowest, of_step, of_9, of_2) in
            [(1, 2, 2, 1), (1, 7, 1, 1), (3, 1, 4, 2), (3, 2, 3, 2), (3, 5, 3, 2), (9, 7, 9, 2)]
        {
            let mut budget = Budget::new(0);
            budget.step = of_step;
            for (configured, expected) in [(9, of_9), (2, of_2)] {
                for _ in 0..4 {
                    let found = budget.level_for(level(configured), Some(level(lowest)));
                    assert_eq!(found, Some(level(expected)), "{configured}, not below {lowest}");
                }
            }
            assert_eq!(budget.counters().skipped, 0);
        }
    }

    #[test]
    fn what_was_lowered_is_counted() {
        let mut budget = Budget::new(0);
        budget.step = 1;
        budget.level_for(level(5), None);
        budget.level_for(level(1), None);
        budget.step = 7;
        budget.level_for(level(5), None);
        assert_eq!(budget.counters(), BudgetCounters { reduced: 1, skipped: 1 });
    }

    #[test]
    fn too_much_to_do_makes_it_fall() {
        for (windows, expected) in [
            (&[84; 100][..], 0),
            (&[100, 100], 0),
            (&[100, 100, 100], 2),
            (&[100, 100, 50, 100, 100], 0),
            (&[97, 98, 99, 100], 4),
            (&[100; 6], 7),
            (&[100; 9], 7),
            (&[90; 21], 0),
            (&[90; 22], 1),
            (&[90; 28], 1),
            (&[90; 29], 2),
        ] {
            assert_eq!(after(windows).0.step(), expected, "{windows:?}");
        }
        // Compression takes no part of the load.
        let mut budget = Budget::new(0);
        for window in 1..100 {
            budget.note_turn(WINDOW_US, window * WINDOW_US);
        }
        assert_eq!(budget.step(), 0);
    }

    #[test]
    fn it_rises_after_a_while() {
        let low = |windows: usize| [vec![100; 3], vec![20; windows]].concat();
        assert_eq!(after(&low(19)).0.step(), 2);
        assert_eq!(after(&low(20)).0.step(), 1);
        assert_eq!(after(&low(39)).0.step(), 1);
        assert_eq!(after(&low(40)).0.step(), 0);
        assert_eq!(after(&[vec![100; 3], vec![70; 1_000]].concat()).0.step(), 2);
    }

    #[test]
    fn a_rise_that_does_not_last_is_not_tried_again_soon() {
        let overload = [100; 3];
        let (mut budget, mut now_us) = after(&[&overload[..], &[20; 40]].concat());
        let mut window = |percent: u64| {
            now_us += WINDOW_US;
            budget.note(WINDOW_US * percent / 120);
            budget.note_turn(WINDOW_US * percent / 100, now_us);
            budget.step()
        };
        assert_eq!(overload.map(&mut window), [0, 0, 2]);
        assert!((0..39).all(|_| window(20) == 2));
        assert_eq!(window(20), 1);
        assert_eq!(overload.map(&mut window), [1, 1, 3]);
        assert!((0..79).all(|_| window(20) == 3));
        assert_eq!(window(20), 2);
    }

    #[test]
    fn a_clock_that_stands_or_goes_back_does_no_harm() {
        let mut budget = Budget::new(1_000_000);
        for now_us in [1_000_000, 0, 1_000_000, u64::MAX, 5] {
            budget.note(u64::from(u32::MAX));
            budget.note_turn(u64::from(u32::MAX), now_us);
            assert!(budget.step() <= STEP_MAX);
        }
    }
}
