//! One monitor of one member: computes the member's health from results of probes.
//!
//! | state | passed | asked to drain | failed |
//! |---|---|---|---|
//! | pending | up | draining | down after `fall` in a row, else pending |
//! | up | up | draining | down after `fall` in a row, else up |
//! | draining | up | draining | down after `fall` in a row, else draining |
//! | down | up after `rise` passes in a row, else down | draining after `rise` in a row, else down | down |
//!
//! With `up_delay`, a member that is down must also have passed in a row for that time. New members have no such delay:
//! their first pass counts at once.
//!
//! A request to drain counts as a pass. Its beginning and its end take effect at once. Failures end a drain only when
//! they mark the member down.

use super::{Health, Schedule};

/// The first probes of a member happen within this time: it spreads the probes of many members a little, and a start
/// remains fast.
const FIRST_PROBE_SPREAD_MS: u64 = 100;

/// The result of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// The answer was as expected.
    Passed,
    /// No answer, or a wrong one.
    Failed,
    /// The answer requests a drain (`recv disable` of BIG-IP).
    Drain,
}

impl ProbeOutcome {
    /// The result for a reverse monitor, which passes when the probe fails. A drain stays a drain.
    pub fn reversed(self) -> Self {
        match self {
            Self::Passed => Self::Failed,
            Self::Failed => Self::Passed,
            Self::Drain => Self::Drain,
        }
    }
}

impl From<bool> for ProbeOutcome {
    /// The outcome of a probe that can only pass or fail.
    fn from(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Failed }
    }
}

/// The state of one monitor of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonitorState {
    health: Health,
    /// The number of results in a row that contradict `health`.
    streak: u32,
    /// The time of the first of these results.
    streak_began_ms: u64,
}

/// A change of health by a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The previous health.
    pub from: Health,
    /// The new health.
    pub to: Health,
}

impl Default for MonitorState {
    fn default() -> Self {
        Self::new()
    }
}

impl MonitorState {
    /// The state before the end of the first probe.
    pub fn new() -> Self {
        Self { health: Health::Pending, streak: 0, streak_began_ms: 0 }
    }

    /// A new monitor of a member that already takes traffic: the member keeps it until enough probes fail.
    pub fn trusting() -> Self {
        Self { health: Health::Up, streak: 0, streak_began_ms: 0 }
    }

    /// The member's health by this monitor.
    pub fn health(&self) -> Health {
        self.health
    }

    /// The number of successive results that contradict [`MonitorState::health`]: successes if it is down, else
    /// failures.
    pub fn streak(&self) -> u32 {
        self.streak
    }

    /// The earliest time at which the member may come up, if probes keep passing; `None`: no delay applies.
    pub fn held_up_until_ms(&self, schedule: &Schedule) -> Option<u64> {
        let is_held_up = self.health == Health::Down && self.streak > 0 && schedule.up_delay_ms > 0;
        is_held_up.then(|| self.streak_began_ms.saturating_add(schedule.up_delay_ms))
    }

    /// Applies the result of a probe that ended at `now_ms`. All times of a state must come from one clock. A `rise` or
    /// `fall` of 0 counts as 1.
    ///
    /// Cost: constant.
    pub fn on_result(
        &mut self,
        outcome: ProbeOutcome,
        now_ms: u64,
        schedule: &Schedule,
    ) -> Option<Transition> {
        let (to, needed) = match (outcome, self.health) {
            (ProbeOutcome::Failed, _) => (Health::Down, schedule.fall),
            (ProbeOutcome::Passed, Health::Down) => (Health::Up, schedule.rise),
            (ProbeOutcome::Drain, Health::Down) => (Health::Draining, schedule.rise),
            (ProbeOutcome::Passed, _) => (Health::Up, 1),
            (ProbeOutcome::Drain, _) => (Health::Draining, 1),
        };
        if to == self.health {
            self.streak = 0;
            return None;
        }
        if self.streak == 0 {
            self.streak_began_ms = now_ms;
        }
        self.streak = self.streak.saturating_add(1);
        let delay_ms = if self.health == Health::Down { schedule.up_delay_ms } else { 0 };
        let is_early = now_ms.saturating_sub(self.streak_began_ms) < delay_ms;
        if self.streak < needed || is_early {
            self.check_invariants(schedule);
            return None;
        }
        let from = std::mem::replace(&mut self.health, to);
        self.streak = 0;
        self.check_invariants(schedule);
        Some(Transition { from, to })
    }

    /// A streak that is long enough has changed the health, unless `up_delay` delays the change.
    fn check_invariants(&self, schedule: &Schedule) {
        let (needed, delay_ms) = match self.health {
            Health::Down => (schedule.rise, schedule.up_delay_ms),
            _ => (schedule.fall, 0),
        };
        debug_assert!(delay_ms > 0 || self.streak < needed.max(1), "{self:?} {schedule:?}");
    }
}

impl Schedule {
    /// The start of the first probe of a member that is new at `now_ms`; `random` spreads these starts.
    pub fn first_probe_at(&self, now_ms: u64, random: u64) -> u64 {
        now_ms + random % FIRST_PROBE_SPREAD_MS.min(self.interval_ms).max(1)
    }

    /// The start of the probe after the one that started at `started_ms`: an interval later, varied by `jitter_percent`
    /// with `random`, but not before `now_ms`. A probe that takes longer than the interval delays the next one.
    pub fn next_probe_at(&self, started_ms: u64, now_ms: u64, random: u64) -> u64 {
        let jitter_ms =
            self.interval_ms.saturating_mul(u64::from(self.jitter_percent.min(100))) / 100;
        let earliest_ms = started_ms.saturating_add(self.interval_ms - jitter_ms);
        earliest_ms.saturating_add(random % (2 * jitter_ms + 1)).max(now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::Health::*;
    use super::*;
    use weir_testing::Random;

    fn schedule(rise: u32, fall: u32) -> Schedule {
        let jitter_percent = 10;
        let up_delay_ms = 0;
        Schedule { interval_ms: 2_000, timeout_ms: 1_000, rise, fall, jitter_percent, up_delay_ms }
    }

    /// Results as text, `+` passed, `-` failed and `~` asked to drain; after each the state by its first
    /// letter, draining as `~`.
    #[test]
    fn transitions() {
        let check = |rise, fall, results: &str, expected: &str| {
            let mut state = MonitorState::new();
            let states: String = results
                .chars()
                .map(|result| {
                    let before = state.health();
                    let outcome = match result {
                        '~' => ProbeOutcome::Drain,
                        result => ProbeOutcome::from(result == '+'),
                    };
                    let change = state.on_result(outcome, 0, &schedule(rise, fall));
                    assert_eq!(change.is_some(), before != state.health());
                    assert_eq!(change.map_or(state.health(), |change| change.to), state.health());
                    match state.health() {
                        Draining => '~',
                        health => health.as_str().chars().next().unwrap(),
                    }
                })
                .collect();
            assert_eq!(states, expected, "rise {rise} fall {fall}: {results}");
        };
        check(2, 3, "+", "u");
        check(2, 3, "-+", "pu");
        check(2, 3, "--+", "ppu");
        check(2, 3, "---", "ppd");
        check(2, 3, "---+-++", "ppddddu");
        check(2, 3, "+--+---", "uuuuuud");
        check(1, 1, "+-+-", "udud");
        check(1, 1, "-+", "du");
        check(0, 0, "+-+-", "udud");
        check(5, 2, "+--++++-+++++", "uuddddddddddu");
        check(2, 3, "~", "~");
        check(2, 3, "-~+", "p~u");
        check(2, 3, "+~+~~+", "u~u~~u");
        check(2, 3, "~--+", "~~~u");
        check(2, 3, "~---", "~~~d");
        check(2, 3, "~--~--~", "~~~~~~~");
        check(2, 3, "+--~--+---", "uuu~~~uuud");
        check(2, 3, "---~~", "ppdd~");
        check(2, 3, "---~+", "ppddu");
        check(2, 3, "---~-~~+", "ppdddd~u");
    }

    #[test]
    fn a_reverse_monitor_is_up_when_the_probe_fails() {
        let mut state = MonitorState::new();
        let mut after = |outcome: ProbeOutcome| {
            state.on_result(outcome.reversed(), 0, &schedule(2, 2));
            state.health()
        };
        let outcomes = [
            ProbeOutcome::Failed,
            ProbeOutcome::Passed,
            ProbeOutcome::Passed,
            ProbeOutcome::Failed,
        ];
        assert_eq!(outcomes.map(&mut after), [Up, Up, Down, Down]);
        assert_eq!(after(ProbeOutcome::Failed), Up);
        assert_eq!(after(ProbeOutcome::Drain), Draining);
    }

    #[test]
    fn a_trusting_monitor_needs_its_failures() {
        let mut state = MonitorState::trusting();
        let changes: Vec<bool> = (0..3)
            .map(|_| state.on_result(ProbeOutcome::Failed, 0, &schedule(2, 3)).is_some())
            .collect();
        assert_eq!(changes, [false, false, true]);
    }

    #[test]
    fn what_is_held_up_says_until_when() {
        let with = |delay_s: u64| Schedule { up_delay_ms: delay_s * 1_000, ..schedule(2, 2) };
        let check = |delay_s: u64, results: &[(u64, bool)], expected: Option<u64>| {
            let mut state = MonitorState::new();
            for &(at_s, passed) in results {
                state.on_result(ProbeOutcome::from(passed), at_s * 1_000, &with(delay_s));
            }
            let until_s = state.held_up_until_ms(&with(delay_s)).map(|until_ms| until_ms / 1_000);
            assert_eq!(until_s, expected, "{delay_s} {results:?}");
        };
        let (down, up) = ([(0, false), (1, false)], [(2, true), (3, true)]);
        check(10, &[], None);
        check(10, &[(0, true)], None);
        check(10, &down, None);
        check(10, &[&down[..], &up[..1]].concat(), Some(12));
        check(10, &[&down[..], &up].concat(), Some(12));
        check(0, &[&down[..], &up[..1]].concat(), None);
        check(10, &[&down[..], &up, &[(4, false)]].concat(), None);
        check(10, &[&down[..], &up, &[(4, false), (5, true)]].concat(), Some(15));
        check(10, &[&down[..], &up, &[(12, true)]].concat(), None);
        // Successive failures of a member that is up are not a success.
        check(10, &[(0, true), (1, false)], None);
    }

    /// Results with their times, in seconds; after each the state by its first letter.
    #[test]
    fn a_delay_holds_up_a_member_that_was_down() {
        let check = |delay_s: u64, results: &[(u64, char)], expected: &str| {
            let schedule = Schedule { up_delay_ms: delay_s * 1_000, ..schedule(2, 2) };
            let mut state = MonitorState::new();
            let states = results.iter().map(|&(at_s, result)| {
                let outcome = match result {
                    '~' => ProbeOutcome::Drain,
                    result => ProbeOutcome::from(result == '+'),
                };
                state.on_result(outcome, at_s * 1_000, &schedule);
                match state.health() {
                    Draining => '~',
                    health => health.as_str().chars().next().unwrap(),
                }
            });
            assert_eq!(states.collect::<String>(), expected, "{delay_s} s: {results:?}");
        };
        let down = [(0, '-'), (1, '-')];
        let then = |results: &[(u64, char)]| [&down, results].concat();
        check(10, &[(0, '+')], "u");
        check(10, &[(0, '-'), (1, '+')], "pu");
        check(10, &then(&[(2, '+'), (3, '+'), (11, '+'), (12, '+')]), "pddddu");
        // `rise` is required, too.
        check(10, &then(&[(2, '+'), (90, '+')]), "pddu");
        check(10, &then(&[(2, '-'), (30, '+'), (31, '-'), (40, '+'), (50, '+')]), "pdddddu");
        check(10, &then(&[(2, '+'), (9, '-'), (12, '+'), (13, '+'), (22, '+')]), "pdddddu");
        check(10, &then(&[(2, '~'), (12, '~'), (13, '+')]), "pdd~u");
        check(0, &then(&[(2, '+'), (2, '+')]), "pddu");
        // A clock that jumps back only causes a delay.
        check(10, &then(&[(20, '+'), (3, '+'), (30, '+')]), "pdddu");
    }

    /// For any results: the health changes exactly when the required number of successive results is reached.
    #[test]
    fn a_change_has_its_results() {
        for seed in 0..256 {
            let mut random = Random::new(seed);
            let schedule = schedule(1 + random.below(5) as u32, 1 + random.below(5) as u32);
            let passes_percent = 10 + random.below(80);
            let mut state = MonitorState::new();
            let mut results: Vec<bool> = Vec::new();
            for _ in 0..500 {
                let before = state.health();
                results.push(random.percent(passes_percent));
                let result = results[results.len() - 1].into();
                let changed = state.on_result(result, 0, &schedule).is_some();
                let in_a_row = |wanted: bool| {
                    results.iter().rev().take_while(|&&result| result == wanted).count() as u32
                };
                let expected = match before {
                    Pending => in_a_row(true) == 1 || in_a_row(false) >= schedule.fall,
                    Up | Draining => in_a_row(false) >= schedule.fall,
                    Down => in_a_row(true) >= schedule.rise,
                };
                assert_eq!(changed, expected, "seed {seed} after {} results", results.len());
                assert_ne!((changed, state.health()), (true, Pending), "seed {seed}");
            }
        }
    }

    #[test]
    fn probes_keep_the_interval_on_average_and_spread() {
        let schedule = schedule(1, 1);
        let mut random = Random::new(7);
        let (mut at_ms, mut seen) = (0, std::collections::HashSet::new());
        for _ in 0..10_000 {
            let next_ms = schedule.next_probe_at(at_ms, at_ms + 5, random.next());
            assert!((1_800..=2_200).contains(&(next_ms - at_ms)));
            seen.insert(next_ms - at_ms);
            at_ms = next_ms;
        }
        assert!((19_900_000..20_100_000).contains(&at_ms), "{at_ms}");
        assert_eq!(seen.len(), 401);
    }

    #[test]
    fn odd_schedules() {
        let slow = schedule(1, 1);
        assert_eq!(slow.next_probe_at(0, 9_000, 0), 9_000, "a slow probe delays the next");
        let none = Schedule { interval_ms: 0, jitter_percent: 255, ..slow };
        assert_eq!(none.next_probe_at(5, 6, u64::MAX), 6);
        assert_eq!(none.first_probe_at(5, u64::MAX), 5);
        let endless = Schedule { interval_ms: u64::MAX / 4, jitter_percent: 0, ..slow };
        assert_eq!(endless.next_probe_at(u64::MAX - 5, 0, 3), u64::MAX);
        assert!(slow.first_probe_at(1_000, 123_456) < 1_000 + FIRST_PROBE_SPREAD_MS);
    }
}
