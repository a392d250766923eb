//! The number of retries that a pool allows.
//!
//! If members fail because of overload, retries make it worse: with three attempts each, the load triples. So retries are
//! limited to a share of the recent requests, plus a small rate, so that a pool with little traffic can retry at all (the
//! retry budget of Finagle).
//!
//! In the last [`WINDOW_MS`] there are never more retries than `share_percent` of the requests in it plus `floor_per_s`
//! for each of its seconds. The window slides in ten steps, so that an event counts for [`WINDOW_MS`] less at most one
//! step.
//!
//! A budget belongs to one worker. Each worker counts its own requests and has its part of the floor, so no word is shared.

/// The time for which a request permits retries, and for which a retry counts.
pub const WINDOW_MS: u64 = 10_000;

/// Number of steps in which the window slides.
pub const SLOTS: usize = 10;

const SLOT_MS: u64 = WINDOW_MS / SLOTS as u64;

const _: () = assert!(WINDOW_MS.is_multiple_of(SLOTS as u64) && WINDOW_MS.is_multiple_of(1_000));

/// The allowance of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetSettings {
    /// Maximum number of retries per hundred requests.
    pub share_percent: u16,
    /// Number of additional retries per second.
    pub floor_per_s: u32,
}

/// Recent requests and retries of one pool on one worker.
#[derive(Debug, Clone, Default)]
pub struct RetryBudget {
    slots: [Counts; SLOTS],
    /// The sum of all slots.
    sum: Counts,
    /// The number of the newest slot since time 0; its index is the remainder of a division by [`SLOTS`].
    newest: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    requests: u64,
    retries: u64,
}

impl RetryBudget {
    /// A budget without requests and retries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a request; retries are not counted here.
    ///
    /// Cost: constant, at most `SLOTS` steps. A time before the latest one counts as the latest one.
    pub fn request(&mut self, now_ms: u64) {
        self.slide(now_ms);
        self.slots[self.newest_index()].requests += 1;
        self.sum.requests += 1;
        self.check_invariants();
    }

    /// Whether a request may be retried; if so, the retry is counted.
    ///
    /// Cost: as [`Self::request`].
    pub fn try_retry(&mut self, now_ms: u64, settings: BudgetSettings) -> bool {
        if !self.allows(now_ms, settings) {
            return false;
        }
        self.slots[self.newest_index()].retries += 1;
        self.sum.retries += 1;
        self.check_invariants();
        true
    }

    /// Whether [`Self::try_retry`] would permit a retry. Nothing is counted.
    pub fn allows(&mut self, now_ms: u64, settings: BudgetSettings) -> bool {
        self.slide(now_ms);
        let floor = u64::from(settings.floor_per_s) * (WINDOW_MS / 1_000);
        let share = self.sum.requests.saturating_mul(u64::from(settings.share_percent)) / 100;
        self.sum.retries < floor.saturating_add(share)
    }

    /// Empties the slots that have left the window.
    fn slide(&mut self, now_ms: u64) {
        let newest = (now_ms / SLOT_MS).max(self.newest);
        for _ in 0..(newest - self.newest).min(SLOTS as u64) {
            self.newest += 1;
            let index = self.newest_index();
            let left = std::mem::take(&mut self.slots[index]);
            self.sum.requests -= left.requests;
            self.sum.retries -= left.retries;
        }
        self.newest = newest;
    }

    fn newest_index(&self) -> usize {
        (self.newest % SLOTS as u64) as usize
    }

    fn check_invariants(&self) {
        let requests: u64 = self.slots.iter().map(|slot| slot.requests).sum();
        let retries: u64 = self.slots.iter().map(|slot| slot.retries).sum();
        debug_assert_eq!(self.sum, Counts { requests, retries });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_testing::Random;

    const SETTINGS: BudgetSettings = BudgetSettings { share_percent: 20, floor_per_s: 1 };

    /// The number of retries that are permitted now.
    fn drain(budget: &mut RetryBudget, now_ms: u64) -> usize {
        (0..1_000_000).take_while(|_| budget.try_retry(now_ms, SETTINGS)).count()
    }

    #[test]
    fn the_floor_needs_no_requests_and_comes_back() {
        let mut budget = RetryBudget::new();
        assert_eq!(drain(&mut budget, 5_000), 10);
        assert_eq!(drain(&mut budget, 13_999), 0);
        assert_eq!(drain(&mut budget, 15_000), 10);
        assert_eq!(drain(&mut budget, u64::MAX), 10);
        let none = BudgetSettings { share_percent: 0, floor_per_s: 0 };
        assert!(!RetryBudget::new().try_retry(0, none));
        let all = BudgetSettings { share_percent: u16::MAX, floor_per_s: u32::MAX };
        assert!(RetryBudget::new().try_retry(u64::MAX, all));
    }

    #[test]
    fn requests_pay_for_a_window() {
        let mut budget = RetryBudget::new();
        (0..100).for_each(|_| budget.request(1_000));
        assert_eq!(drain(&mut budget, 2_000), 10 + 20);
        (0..50).for_each(|_| budget.request(8_000));
        assert_eq!(drain(&mut budget, 8_000), 10);
        // The first requests have left the window, but their retries have not.
        assert_eq!(drain(&mut budget, 11_500), 0);
        // The window holds 50 requests and the 10 retries of 8 s.
        assert_eq!(drain(&mut budget, 12_000), 10);
    }

    #[test]
    fn a_clock_that_goes_back_changes_nothing() {
        let mut budget = RetryBudget::new();
        assert_eq!(drain(&mut budget, 90_000), 10);
        assert_eq!(drain(&mut budget, 1_000), 0);
        budget.request(500);
        assert_eq!(drain(&mut budget, 90_500), 0);
    }

    /// A pool in which everything fails, compared with the list of all events: no window has more retries than its budget,
    /// and the load exceeds the requests by no more than the share and the floor.
    #[test]
    fn no_window_exceeds_its_budget() {
        for seed in 0..64 {
            let mut random = Random::new(seed);
            let settings = BudgetSettings {
                share_percent: random.below(60) as u16,
                floor_per_s: random.below(4) as u32,
            };
            let mut budget = RetryBudget::new();
            let (mut requests, mut retries): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
            let mut now_ms = 0;
            for _ in 0..3_000 {
                let pause_ms = if random.percent(1) { 20_000 } else { 30 };
                now_ms += random.below(pause_ms) as u64;
                budget.request(now_ms);
                requests.push(now_ms);
                for _ in 0..random.below(4) {
                    if !budget.try_retry(now_ms, settings) {
                        continue;
                    }
                    retries.push(now_ms);
                    let within = |times: &[u64], window_ms: u64| {
                        times.iter().rev().take_while(|&&at| now_ms - at < window_ms).count() as u64
                    };
                    let floor = 10 * u64::from(settings.floor_per_s);
                    let share = u64::from(settings.share_percent);
                    // Retries that have left the budget's window one step early may still be in the exact window.
                    let sure = within(&retries, WINDOW_MS - SLOT_MS);
                    assert!(
                        sure <= floor + within(&requests, WINDOW_MS) * share / 100,
                        "seed {seed} at {now_ms}: {sure}"
                    );
                }
            }
            let windows = now_ms / WINDOW_MS + 2;
            let most = requests.len() as u64 * u64::from(settings.share_percent) / 100
                + windows * (10 * u64::from(settings.floor_per_s) + 1);
            assert!(retries.len() as u64 <= most, "seed {seed}: {} of {most}", retries.len());
        }
    }
}
