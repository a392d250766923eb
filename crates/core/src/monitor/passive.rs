//! Passive monitoring: a member whose requests fail in a row is ejected for a while, and then tried with a single
//! request.
//!
//! This is a circuit breaker per member (Nygard: "Release it!", chapter 5). The whole state is one word, so any number
//! of workers can change it by compare-and-swap. The word of a healthy member is [`Passive::CLEAN`]: a success on it
//! needs no write.
//!
//! | state | circuit | failure | success |
//! |---|---|---|---|
//! | clean | closed | counting 1 | clean |
//! | counting n | closed | n + 1, or 1 if the first is older than the window; ejected at `failures` | clean |
//! | ejected | open | ejected (the result of an older request) | ejected (likewise) |
//! | ejected, time over | half open | ejected again, twice as long | clean |
//! | trial open | half open, taken | ejected again, twice as long | clean |
//!
//! **One failure after an ejection ejects again.** All of the member's latest requests had failed, so the member is on
//! trial: one request per ejection is enough to see whether it still fails. The first success ends the trial. A caller
//! that wants to try a single request, instead of all requests until the first answer, uses [`Passive::begin_trial`]. A
//! trial without a result (because its client has gone) ends after [`TRIAL_MS`].
//!
//! **Ejections in a row become longer.** Each is twice as long as the one before, up to
//! [`EjectionBounds::eject_max_ms`]. After a success, the next ejection has the initial length again.
//!
//! **A pool keeps members.** If a failure would eject ([`Passive::would_eject`]), the caller counts the ejected members
//! and calls [`may_eject`]. If the result is false, the member stays, and its next failure asks again. Workers that ask
//! at the same time can exceed the share by one member each.
//!
//! The window begins with the first failure of a row. A failure after the window begins a new row, so a row is
//! recognised after at most twice the failures.

use super::PassiveSettings;

/// Number of bits of a state for a time in milliseconds: 2,229 years.
const TIME_BITS: u32 = 46;

/// Number of bits of a state for the number of failures, or of ejections, in a row.
const COUNT_BITS: u32 = 16;

/// The bits that determine the meaning of the other bits. If both are 0: the number of failures in a row, and the time
/// of the first.
const KIND: u64 = EJECTED | ON_TRIAL;

/// The number of ejections in a row, and the end of the last one.
const EJECTED: u64 = 1 << 62;

/// The number of ejections in a row, and the beginning of a trial.
const ON_TRIAL: u64 = 1 << 63;

const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

const _: () = assert!(TIME_BITS + COUNT_BITS == 62 && COUNT_BITS == u16::BITS);

/// A trial without an answer ends after this time.
pub const TRIAL_MS: u64 = 5_000;

/// The state of passive monitoring of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passive(u64);

/// Whether requests may be sent to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Circuit {
    /// Requests are permitted.
    Closed,
    /// Requests are not permitted: the member is ejected.
    Open {
        /// The end of the ejection.
        until_ms: u64,
    },
    /// One request is permitted, by [`Passive::begin_trial`].
    HalfOpen,
    /// No further request is permitted: the request of the trial has no answer yet.
    OnTrial,
}

/// Limits of an ejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EjectionBounds {
    /// The longest ejection. A value below the first ejection's time counts as that time.
    pub eject_max_ms: u32,
    /// Whether the pool can do without the member: [`may_eject`].
    pub allowed: bool,
}

/// The ejection of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ejection {
    /// The end of the ejection; after it, the member is on trial.
    pub until_ms: u64,
}

/// Whether one more member of a pool may be ejected if `ejected` of `members` already are. With it, at most
/// `share_max_percent` of all members may be ejected. One member may always be ejected, unless the share is 0.
pub fn may_eject(ejected: usize, members: usize, share_max_percent: u8) -> bool {
    let most = members.saturating_mul(usize::from(share_max_percent)) / 100;
    share_max_percent > 0 && ejected < most.max(1)
}

impl Passive {
    /// No failure since the last success.
    pub const CLEAN: Self = Self(0);

    /// The state as the word that workers share.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The state from a shared word.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Whether the state has no failures: a success does not change it.
    pub fn is_clean(self) -> bool {
        self.0 == 0
    }

    /// Whether the member gets no traffic at `now_ms`.
    pub fn is_ejected(self, now_ms: u64) -> bool {
        self.ejected_until_ms(now_ms).is_some()
    }

    /// The end of the ejection that is active at `now_ms`.
    pub fn ejected_until_ms(self, now_ms: u64) -> Option<u64> {
        (self.0 & KIND == EJECTED && now_ms < self.time_ms()).then(|| self.time_ms())
    }

    /// Whether requests may be sent at `now_ms`.
    pub fn circuit(self, now_ms: u64) -> Circuit {
        if self.is_counting() {
            return Circuit::Closed;
        }
        if let Some(until_ms) = self.ejected_until_ms(now_ms) {
            return Circuit::Open { until_ms };
        }
        let trial_is_fresh = now_ms.saturating_sub(self.time_ms()) < TRIAL_MS;
        if self.0 & KIND == ON_TRIAL && trial_is_fresh {
            Circuit::OnTrial
        } else {
            Circuit::HalfOpen
        }
    }

    /// Begins a trial: returns the state to swap in. The caller that succeeds in swapping sends the request. `None`
    /// unless the circuit is half open.
    pub fn begin_trial(self, now_ms: u64) -> Option<Self> {
        (self.circuit(now_ms) == Circuit::HalfOpen)
            .then(|| Self::pack(ON_TRIAL, self.count(), now_ms))
    }

    /// The state after a trial whose request was not sent: the next request may begin it. `None` if there is no trial.
    pub fn without_trial(self) -> Option<Self> {
        (self.0 & KIND == ON_TRIAL).then(|| Self::pack(EJECTED, self.count(), 0))
    }

    /// Number of failures in a row; 0 while ejected or on trial.
    pub fn failures(self) -> u16 {
        if self.is_counting() { self.count() } else { 0 }
    }

    /// Number of ejections in a row; 0 after a success.
    pub fn ejections(self) -> u16 {
        if self.is_counting() { 0 } else { self.count() }
    }

    /// Whether a failure at `now_ms` ejects the member if ejection is allowed.
    pub fn would_eject(self, now_ms: u64, settings: &PassiveSettings) -> bool {
        let failures = self.row_with_failure(now_ms, settings).0;
        !self.is_ejected(now_ms) && (!self.is_counting() || failures >= settings.failures)
    }

    /// A request to the member failed. All times of a state must come from one clock.
    ///
    /// The cost is constant. If compare-and-swap finds another word, the caller calls this again with that word.
    pub fn on_failure(
        self,
        now_ms: u64,
        settings: &PassiveSettings,
        bounds: EjectionBounds,
    ) -> (Self, Option<Ejection>) {
        if self.is_ejected(now_ms) {
            return (self, None);
        }
        if self.would_eject(now_ms, settings) && bounds.allowed {
            let ejections = self.ejections().saturating_add(1);
            let first_ms = u64::from(settings.eject_ms);
            let longest_ms = u64::from(bounds.eject_max_ms).max(first_ms);
            let doublings = u32::from(ejections - 1).min(u32::BITS);
            let eject_ms = (first_ms << doublings).min(longest_ms);
            let until_ms = now_ms.saturating_add(eject_ms).min(TIME_MASK);
            return (Self::pack(EJECTED, ejections, until_ms), Some(Ejection { until_ms }));
        }
        let (failures, first_ms) = self.row_with_failure(now_ms, settings);
        // The trial of a member that must not be ejected has failed: the next failure asks again.
        let failures = if self.is_counting() { failures } else { settings.failures.max(1) };
        (Self::pack(0, failures, first_ms), None)
    }

    /// A request to the member succeeded.
    ///
    /// The cost is constant. The call may be omitted for a clean state.
    pub fn on_success(self, now_ms: u64) -> Self {
        if self.is_ejected(now_ms) { self } else { Self::CLEAN }
    }

    /// The number of failures in a row, including one at `now_ms`, and the time of the first.
    fn row_with_failure(self, now_ms: u64, settings: &PassiveSettings) -> (u16, u64) {
        let is_late = now_ms.saturating_sub(self.time_ms()) > u64::from(settings.window_ms);
        match self.failures() {
            0 => (1, now_ms),
            _ if is_late => (1, now_ms),
            failures => (failures.saturating_add(1), self.time_ms()),
        }
    }

    fn pack(kind: u64, count: u16, time_ms: u64) -> Self {
        Self(kind | u64::from(count) << TIME_BITS | time_ms.min(TIME_MASK))
    }

    fn is_counting(self) -> bool {
        self.0 & KIND == 0
    }

    fn count(self) -> u16 {
        (self.0 >> TIME_BITS) as u16
    }

    fn time_ms(self) -> u64 {
        self.0 & TIME_MASK
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_testing::Random;

    const SETTINGS: PassiveSettings =
        PassiveSettings { failures: 3, window_ms: 10_000, eject_ms: 30_000 };

    /// The pool may eject the member.
    const FREE: EjectionBounds = EjectionBounds { eject_max_ms: 0, allowed: true };

    #[test]
    fn failures_in_a_row_eject() {
        let (state, ejected) = Passive::CLEAN.on_failure(1_000, &SETTINGS, FREE);
        assert_eq!((state.failures(), ejected, state.is_clean()), (1, None, false));
        let (state, ejected) = state.on_failure(2_000, &SETTINGS, FREE);
        assert_eq!((state.failures(), ejected), (2, None));
        let (state, ejected) = state.on_failure(11_000, &SETTINGS, FREE);
        assert_eq!(ejected, Some(Ejection { until_ms: 41_000 }));
        assert!(state.is_ejected(40_999) && !state.is_ejected(41_000));
    }

    #[test]
    fn a_success_ends_the_row() {
        let state =
            Passive::CLEAN.on_failure(1, &SETTINGS, FREE).0.on_failure(2, &SETTINGS, FREE).0;
        assert_eq!(state.on_success(3), Passive::CLEAN);
        assert!(Passive::CLEAN.is_clean() && Passive::CLEAN.on_success(9).is_clean());
    }

    #[test]
    fn the_window_restarts_the_row() {
        let state =
            Passive::CLEAN.on_failure(0, &SETTINGS, FREE).0.on_failure(5_000, &SETTINGS, FREE).0;
        let (state, ejected) = state.on_failure(10_001, &SETTINGS, FREE);
        assert_eq!((state.failures(), ejected), (1, None));
    }

    #[test]
    fn requests_under_way_change_nothing_during_an_ejection() {
        let ejected = Passive::from_bits(EJECTED | 500);
        assert_eq!(ejected.on_failure(499, &SETTINGS, FREE), (ejected, None));
        assert_eq!(ejected.on_success(499), ejected);
    }

    #[test]
    fn after_recovery_one_failure_ejects_and_one_success_clears() {
        let over = Passive::from_bits(EJECTED | 500);
        let (again, ejected) = over.on_failure(600, &SETTINGS, FREE);
        assert_eq!(ejected, Some(Ejection { until_ms: 30_600 }));
        assert!(again.is_ejected(600));
        let cleared = over.on_success(600);
        assert!(cleared.is_clean());
        assert_eq!(cleared.on_failure(700, &SETTINGS, FREE).1, None);
    }

    #[test]
    fn extremes() {
        let one = PassiveSettings { failures: 1, ..SETTINGS };
        assert_eq!(Passive::CLEAN.on_failure(7, &one, FREE).1, Some(Ejection { until_ms: 30_007 }));
        let none = PassiveSettings { failures: 0, ..SETTINGS };
        assert!(Passive::CLEAN.on_failure(7, &none, FREE).1.is_some());
        let most = PassiveSettings { failures: u16::MAX, window_ms: u32::MAX, eject_ms: u32::MAX };
        let mut state = Passive::CLEAN;
        for count in 1..u16::MAX {
            let ejected;
            (state, ejected) = state.on_failure(u64::from(count), &most, FREE);
            assert_eq!((state.failures(), ejected), (count, None));
        }
        assert!(state.on_failure(70_000, &most, FREE).1.is_some());
        // A clock value that does not fit is cut, and does not touch the other bits.
        let (state, _) = Passive::CLEAN.on_failure(u64::MAX, &SETTINGS, FREE);
        assert_eq!(state.failures(), 1);
        let (state, ejected) = Passive::CLEAN.on_failure(u64::MAX, &one, FREE);
        assert_eq!(ejected, Some(Ejection { until_ms: TIME_MASK }));
        assert_eq!(state.to_bits(), EJECTED | 1 << TIME_BITS | TIME_MASK);
        let forever = EjectionBounds { eject_max_ms: u32::MAX, allowed: true };
        let mut state = Passive::CLEAN;
        let mut now_ms = 0;
        for _ in 0..70_000 {
            let ejected;
            (state, ejected) = state.on_failure(now_ms, &one, forever);
            now_ms = ejected.map_or(now_ms, |ejected| ejected.until_ms);
        }
        assert_eq!((state.ejections(), state.failures()), (u16::MAX, 0));
    }

    #[test]
    fn ejections_in_a_row_grow_up_to_a_bound() {
        let bounds = EjectionBounds { eject_max_ms: 200_000, allowed: true };
        let one = PassiveSettings { failures: 1, ..SETTINGS };
        let (mut state, mut now_ms) = (Passive::CLEAN, 1_000);
        let mut times_ms = Vec::new();
        for _ in 0..5 {
            let (next, ejected) = state.on_failure(now_ms, &one, bounds);
            let until_ms = ejected.unwrap().until_ms;
            times_ms.push(until_ms - now_ms);
            (state, now_ms) = (next, until_ms);
        }
        assert_eq!(times_ms, [30_000, 60_000, 120_000, 200_000, 200_000]);
        assert_eq!(state.ejections(), 5);
        let state = state.on_success(now_ms);
        let ejected = state.on_failure(now_ms, &one, bounds).1;
        assert_eq!(ejected, Some(Ejection { until_ms: now_ms + 30_000 }));
    }

    #[test]
    fn a_trial_is_one_request() {
        let one = PassiveSettings { failures: 1, ..SETTINGS };
        let state = Passive::CLEAN.on_failure(0, &one, FREE).0;
        assert_eq!(Passive::CLEAN.circuit(0), Circuit::Closed);
        assert_eq!(state.circuit(29_999), Circuit::Open { until_ms: 30_000 });
        assert_eq!((state.begin_trial(29_999), Passive::CLEAN.begin_trial(5)), (None, None));
        assert_eq!(state.circuit(30_000), Circuit::HalfOpen);
        let trial = state.begin_trial(31_000).unwrap();
        assert_eq!((trial.circuit(31_000), trial.begin_trial(35_999)), (Circuit::OnTrial, None));
        assert!(!trial.is_ejected(31_000) && !trial.is_clean());
        // The trial succeeds, fails, or gets no answer.
        assert_eq!(trial.on_success(31_500), Passive::CLEAN);
        let (again, ejected) = trial.on_failure(31_500, &one, FREE);
        assert_eq!((again.ejections(), ejected), (2, Some(Ejection { until_ms: 61_500 })));
        assert_eq!(trial.circuit(31_000 + TRIAL_MS), Circuit::HalfOpen);
        assert_eq!(trial.begin_trial(40_000).unwrap().circuit(44_999), Circuit::OnTrial);
    }

    #[test]
    fn a_pool_keeps_members() {
        let check = |ejected, members, percent, expected| {
            assert_eq!(may_eject(ejected, members, percent), expected, "{ejected} of {members}");
        };
        check(0, 10, 50, true);
        check(4, 10, 50, true);
        check(5, 10, 50, false);
        check(0, 3, 10, true);
        check(1, 3, 10, false);
        check(1, 2, 100, true);
        check(2, 2, 100, false);
        check(0, 10, 0, false);
        check(0, 0, 50, true);
        check(7, usize::MAX, 255, true);

        let refused = EjectionBounds { allowed: false, ..FREE };
        let mut state = Passive::CLEAN;
        for count in 1..=5 {
            assert_eq!(state.would_eject(9, &SETTINGS), count >= SETTINGS.failures);
            let ejected;
            (state, ejected) = state.on_failure(9, &SETTINGS, refused);
            assert_eq!((state.failures(), ejected), (count, None));
        }
        assert!(state.on_failure(9, &SETTINGS, FREE).1.is_some());
        // On trial: it still takes traffic, and its next failure asks again.
        let trial = Passive::pack(EJECTED, 3, 500).begin_trial(600).unwrap();
        let (state, ejected) = trial.on_failure(700, &SETTINGS, refused);
        assert_eq!((state.circuit(700), ejected), (Circuit::Closed, None));
        assert!(state.would_eject(800, &SETTINGS));
    }

    /// Several workers and a member that fails for a while: while its circuit is not closed, one request
    /// per ejection reaches it, and it is back one ejection after it has recovered.
    #[test]
    fn a_broken_member_gets_one_request_per_ejection() {
        for seed in 0..64 {
            let mut random = Random::new(seed);
            let settings = PassiveSettings { failures: 3, window_ms: 10_000, eject_ms: 1_000 };
            let bounds = EjectionBounds { eject_max_ms: 8_000, allowed: true };
            let recovers_ms = 20_000 + random.below(60_000) as u64;
            let mut state = Passive::CLEAN;
            // The times at which open requests are answered.
            let mut under_way: Vec<u64> = Vec::new();
            let (mut trials, mut ejections, mut closed_ms) = (0, 0, None);
            for now_ms in 0..120_000 {
                if random.percent(10) {
                    let may_pass = match state.circuit(now_ms) {
                        Circuit::Closed => true,
                        Circuit::Open { .. } | Circuit::OnTrial => false,
                        Circuit::HalfOpen => {
                            state = state.begin_trial(now_ms).unwrap();
                            trials += 1;
                            true
                        }
                    };
                    if may_pass {
                        under_way.push(now_ms + 1 + random.below(200) as u64);
                    }
                }
                while let Some(index) = under_way.iter().position(|&at_ms| at_ms <= now_ms) {
                    under_way.swap_remove(index);
                    if now_ms >= recovers_ms {
                        let was_closed = state.circuit(now_ms) == Circuit::Closed;
                        state = state.on_success(now_ms);
                        if !was_closed && state.is_clean() {
                            closed_ms.get_or_insert(now_ms);
                        }
                    } else {
                        let (next, ejected) = state.on_failure(now_ms, &settings, bounds);
                        state = next;
                        ejections += u32::from(ejected.is_some());
                    }
                }
            }
            assert!(trials <= ejections && ejections <= trials + 1, "seed {seed}");
            let closed_ms = closed_ms.unwrap_or_else(|| panic!("seed {seed}: never closed"));
            assert!(closed_ms < recovers_ms + 8_000 + 1_000, "seed {seed}: {closed_ms}");
            assert!(ejections <= 4 + (recovers_ms / 8_000) as u32, "seed {seed}: {ejections}");
        }
    }

    /// Comparison with a model that stores every failure: an ejection needs the required failures within the window, or a
    /// failed trial, and occurs at the latest after twice the required failures.
    #[test]
    fn ejections_follow_the_failures() {
        for seed in 0..256 {
            let mut random = Random::new(seed);
            let settings = PassiveSettings {
                failures: 1 + random.below(6) as u16,
                window_ms: 1 + random.below(2_000) as u32,
                eject_ms: 1 + random.below(2_000) as u32,
            };
            let (mut now_ms, mut state) = (0, Passive::CLEAN);
            let (mut row, mut on_trial): (Vec<u64>, bool) = (Vec::new(), false);
            for _ in 0..2_000 {
                now_ms += random.below(400) as u64;
                if state.is_ejected(now_ms) {
                    continue;
                }
                if random.percent(30) {
                    state = state.on_success(now_ms);
                    (row, on_trial) = (Vec::new(), false);
                    continue;
                }
                row.push(now_ms);
                let (next, ejected) = state.on_failure(now_ms, &settings, FREE);
                let needed = usize::from(settings.failures);
                let last = &row[row.len().saturating_sub(needed)..];
                let within = now_ms - last[0] <= u64::from(settings.window_ms);
                if ejected.is_some() {
                    assert!(on_trial || (row.len() >= needed && within), "seed {seed} at {now_ms}");
                    (row, on_trial) = (Vec::new(), true);
                } else {
                    let twice = row.len() >= 2 * needed
                        && now_ms - row[row.len() - 2 * needed] <= u64::from(settings.window_ms);
                    assert!(!on_trial && !twice, "seed {seed} at {now_ms}");
                }
                state = next;
            }
        }
    }
}
