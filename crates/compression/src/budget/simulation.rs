//! A worker that serves requests one after the other, with compression that may take most of its time.

use weir_testing::Random;

use super::{Budget, RISE_AFTER_US_MAX};
use crate::coding::Level;

/// A random interval with an exponential distribution.
fn interval_us(random: &mut Random, mean_us: f64) -> f64 {
    let uniform = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
    -mean_us * (1.0 - uniform).ln()
}

/// The time of a request without compression.
const PLAIN_US: f64 = 60.0;

/// The additional time of compression, by level: about that of 128 KiB with gzip.
const LEVEL_US: [f64; Level::COUNT] =
    [470.0, 780.0, 780.0, 970.0, 1_130.0, 1_280.0, 1_400.0, 1_890.0, 2_250.0];

struct Worker {
    random: Random,
    budget: Budget,
    configured: Level,
    now_us: f64,
    next_arrival_us: f64,
    /// The arrival times of waiting requests.
    waiting: std::collections::VecDeque<f64>,
    is_budgeted: bool,
}

/// The observations of a run.
#[derive(Debug, Default)]
struct Seen {
    waiting_max: usize,
    wait_us_max: f64,
    steps: Vec<u8>,
    changes: usize,
    served: usize,
    compressed: usize,
}

impl Worker {
    fn new(seed: u64, configured: u8) -> Self {
        Self {
            random: Random::new(seed),
            budget: Budget::new(0),
            configured: Level::new(configured).unwrap(),
            now_us: 0.0,
            next_arrival_us: 0.0,
            waiting: std::collections::VecDeque::new(),
            is_budgeted: true,
        }
    }

    /// Requests come at `mean_us` on average, for `length_us`.
    fn run(&mut self, mean_us: f64, length_us: f64) -> Seen {
        let mut seen = Seen::default();
        let end_us = self.now_us + length_us;
        while self.now_us < end_us {
            while self.next_arrival_us <= self.now_us {
                self.waiting.push_back(self.next_arrival_us);
                self.next_arrival_us += interval_us(&mut self.random, mean_us);
            }
            seen.waiting_max = seen.waiting_max.max(self.waiting.len());
            let step = self.budget.step();
            let busy_us = self.turn(&mut seen);
            self.budget.note_turn(busy_us as u64, self.now_us as u64);
            seen.changes += usize::from(self.budget.step() != step);
            seen.steps.push(self.budget.step());
        }
        seen
    }

    /// Serves the first request, or waits for one. Returns the busy time.
    fn turn(&mut self, seen: &mut Seen) -> f64 {
        let Some(came_us) = self.waiting.pop_front() else {
            self.now_us = self.next_arrival_us;
            return 0.0;
        };
        seen.wait_us_max = seen.wait_us_max.max(self.now_us - came_us);
        let level = self.budget.level_for(self.configured, None).filter(|_| self.is_budgeted);
        let level = if self.is_budgeted { level } else { Some(self.configured) };
        let spent_us = level.map_or(0.0, |level| LEVEL_US[level.index()]);
        self.budget.note(spent_us as u64);
        seen.served += 1;
        seen.compressed += usize::from(level.is_some());
        self.now_us += PLAIN_US + spent_us;
        PLAIN_US + spent_us
    }
}

const SECOND_US: f64 = 1e6;

#[test]
fn enough_time_changes_nothing() {
    // The load, and the maximum percentage of responses that may be affected by chance.
    for (load, touched_percent_max) in [(0.5, 1), (0.6, 5)] {
        for seed in 0..32 {
            let mut worker = Worker::new(seed, 5);
            let seen = worker.run((PLAIN_US + LEVEL_US[4]) / load, 60.0 * SECOND_US);
            let counters = worker.budget.counters();
            let touched_percent = (counters.reduced + counters.skipped) * 100 / seen.served as u64;
            assert!(touched_percent <= touched_percent_max, "seed {seed}: {touched_percent} %");
        }
    }
}

/// Two to three times the number of requests that could be served at the configured level.
#[test]
fn under_overload_the_level_falls_and_nobody_waits_long() {
    for seed in 0..32 {
        for configured in [1, 3, 5, 9] {
            let cost_us = PLAIN_US + LEVEL_US[usize::from(configured) - 1];
            // A load that leaves time to compress one of four responses at level 1.
            let mean_us = (cost_us / 3.0).max(250.0);
            let mut worker = Worker::new(seed, configured);
            let first = worker.run(mean_us, SECOND_US);
            let later = worker.run(mean_us, 20.0 * SECOND_US);
            let about = format!(
                "seed {seed}, level {configured}: {later:?}",
                later = Seen { steps: Vec::new(), ..later }
            );
            // Falling takes some windows; the backlog of that time is worked off.
            assert!(first.wait_us_max < 0.2 * SECOND_US, "{about}: {}", first.wait_us_max);
            assert!(later.wait_us_max < 0.1 * SECOND_US, "{about}");
            assert!(worker.budget.counters().reduced + worker.budget.counters().skipped > 0);
            assert!(later.compressed * 10 > later.served, "{about}");

            let mut unchecked = Worker::new(seed, configured);
            unchecked.is_budgeted = false;
            let seen = unchecked.run(mean_us, 21.0 * SECOND_US);
            assert!(seen.wait_us_max > SECOND_US, "{about}");
        }
    }
}

#[test]
fn a_constant_load_sees_few_changes() {
    for seed in 0..32 {
        for load in [1.1, 1.5, 2.0, 4.0] {
            let mut worker = Worker::new(seed, 5);
            let mean_us = (PLAIN_US + LEVEL_US[4]) / load;
            worker.run(mean_us, 30.0 * SECOND_US);
            let seen = worker.run(mean_us, 60.0 * SECOND_US);
            assert!(seen.changes <= 40, "seed {seed}, load {load}: {} changes", seen.changes);
        }
    }
}

#[test]
fn it_recovers_when_the_load_is_gone() {
    for seed in 0..32 {
        let mut worker = Worker::new(seed, 5);
        let cost_us = PLAIN_US + LEVEL_US[4];
        worker.run(cost_us / 4.0, 10.0 * SECOND_US);
        assert!(worker.budget.step() > 0, "seed {seed}");
        let longest_us = 8.0 * RISE_AFTER_US_MAX as f64;
        let seen = worker.run(cost_us / 0.3, longest_us);
        assert_eq!(worker.budget.step(), 0, "seed {seed}");
        assert!(seen.changes <= 12, "seed {seed}: {} changes", seen.changes);
    }
}
