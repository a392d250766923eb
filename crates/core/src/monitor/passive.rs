//! Passive marking: a member whose requests fail one after the other is ejected for a while.
//!
//! The whole state is one word, so that any number of workers can change it by compare-and-swap, and a
//! healthy member's word is [`Passive::CLEAN`]: a success on it needs no write.
//!
//! | state | failure | success |
//! |---|---|---|
//! | clean | counting 1 | clean |
//! | counting n | n + 1, or 1 if the first is older than the window; ejected at `failures` | clean |
//! | ejected | ejected (a request that was under way) | ejected (likewise) |
//! | ejected, time over | ejected again | clean |
//!
//! **One failure after recovery ejects again.** A member that comes back has failed every time when it
//! was last asked; it is on trial, and one request per ejection is enough to see that nothing has
//! changed. The first success ends the trial.
//!
//! The window is counted from the first failure of a row. When it ends, the row starts anew with the
//! failure that came too late, so a row is recognised after at most twice the failures.

use super::PassiveSettings;

/// Bits of a state that hold a time in milliseconds: 4,459 years.
const TIME_BITS: u32 = 47;

/// Bits of a state that hold the number of failures in a row.
const FAILURES_BITS: u32 = 16;

/// The bit of a state that says that its time is the end of an ejection.
const EJECTED: u64 = 1 << 63;

const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

const _: () = assert!(TIME_BITS + FAILURES_BITS == 63 && FAILURES_BITS == u16::BITS);

/// What traffic says of a member: failures in a row and the time of the first, or the end of an
/// ejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passive(u64);

/// A member gets no more traffic from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ejected {
    /// Until then; after that it is on trial.
    pub until_ms: u64,
}

impl Passive {
    /// No failure since the last success.
    pub const CLEAN: Self = Self(0);

    /// The state as the word that workers share.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The state that a shared word holds.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Nothing speaks against the member: a success changes nothing.
    pub fn is_clean(self) -> bool {
        self.0 == 0
    }

    /// Whether the member gets no traffic at `now_ms`.
    pub fn is_ejected(self, now_ms: u64) -> bool {
        self.0 & EJECTED != 0 && now_ms < self.time_ms()
    }

    /// When the ejection that holds at `now_ms` ends.
    pub fn ejected_until_ms(self, now_ms: u64) -> Option<u64> {
        self.is_ejected(now_ms).then(|| self.time_ms())
    }

    /// Failures in a row; 0 while ejected.
    pub fn failures(self) -> u16 {
        if self.0 & EJECTED != 0 { 0 } else { (self.0 >> TIME_BITS) as u16 }
    }

    /// A request on the member failed. The times of one state must come from one clock.
    ///
    /// Cost: constant. When compare-and-swap finds another word, the caller asks again with that one.
    pub fn on_failure(self, now_ms: u64, settings: &PassiveSettings) -> (Self, Option<Ejected>) {
        if self.is_ejected(now_ms) {
            return (self, None);
        }
        let on_trial = self.0 & EJECTED != 0;
        let (failures, first_ms) = match self.failures() {
            0 => (1, now_ms),
            _ if now_ms.saturating_sub(self.time_ms()) > u64::from(settings.window_ms) => {
                (1, now_ms)
            }
            failures => (failures.saturating_add(1), self.time_ms()),
        };
        if on_trial || failures >= settings.failures {
            let until_ms = now_ms.saturating_add(u64::from(settings.eject_ms)).min(TIME_MASK);
            return (Self(EJECTED | until_ms), Some(Ejected { until_ms }));
        }
        (Self(u64::from(failures) << TIME_BITS | first_ms.min(TIME_MASK)), None)
    }

    /// A request on the member succeeded.
    ///
    /// Cost: constant. Need not be called on a clean state.
    pub fn on_success(self, now_ms: u64) -> Self {
        if self.is_ejected(now_ms) { self } else { Self::CLEAN }
    }

    fn time_ms(self) -> u64 {
        self.0 & TIME_MASK
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    const SETTINGS: PassiveSettings =
        PassiveSettings { failures: 3, window_ms: 10_000, eject_ms: 30_000 };

    #[test]
    fn failures_in_a_row_eject() {
        let (state, ejected) = Passive::CLEAN.on_failure(1_000, &SETTINGS);
        assert_eq!((state.failures(), ejected, state.is_clean()), (1, None, false));
        let (state, ejected) = state.on_failure(2_000, &SETTINGS);
        assert_eq!((state.failures(), ejected), (2, None));
        let (state, ejected) = state.on_failure(11_000, &SETTINGS);
        assert_eq!(ejected, Some(Ejected { until_ms: 41_000 }));
        assert!(state.is_ejected(40_999) && !state.is_ejected(41_000));
    }

    #[test]
    fn a_success_ends_the_row() {
        let state = Passive::CLEAN.on_failure(1, &SETTINGS).0.on_failure(2, &SETTINGS).0;
        assert_eq!(state.on_success(3), Passive::CLEAN);
        assert!(Passive::CLEAN.is_clean() && Passive::CLEAN.on_success(9).is_clean());
    }

    #[test]
    fn the_window_restarts_the_row() {
        let state = Passive::CLEAN.on_failure(0, &SETTINGS).0.on_failure(5_000, &SETTINGS).0;
        let (state, ejected) = state.on_failure(10_001, &SETTINGS);
        assert_eq!((state.failures(), ejected), (1, None));
    }

    #[test]
    fn requests_under_way_change_nothing_during_an_ejection() {
        let ejected = Passive::from_bits(EJECTED | 500);
        assert_eq!(ejected.on_failure(499, &SETTINGS), (ejected, None));
        assert_eq!(ejected.on_success(499), ejected);
    }

    #[test]
    fn after_recovery_one_failure_ejects_and_one_success_clears() {
        let over = Passive::from_bits(EJECTED | 500);
        let (again, ejected) = over.on_failure(600, &SETTINGS);
        assert_eq!(ejected, Some(Ejected { until_ms: 30_600 }));
        assert!(again.is_ejected(600));
        let cleared = over.on_success(600);
        assert!(cleared.is_clean());
        assert_eq!(cleared.on_failure(700, &SETTINGS).1, None);
    }

    #[test]
    fn extremes() {
        let one = PassiveSettings { failures: 1, ..SETTINGS };
        assert_eq!(Passive::CLEAN.on_failure(7, &one).1, Some(Ejected { until_ms: 30_007 }));
        let none = PassiveSettings { failures: 0, ..SETTINGS };
        assert!(Passive::CLEAN.on_failure(7, &none).1.is_some());
        let most = PassiveSettings { failures: u16::MAX, window_ms: u32::MAX, eject_ms: u32::MAX };
        let mut state = Passive::CLEAN;
        for count in 1..u16::MAX {
            let ejected;
            (state, ejected) = state.on_failure(u64::from(count), &most);
            assert_eq!((state.failures(), ejected), (count, None));
        }
        assert!(state.on_failure(70_000, &most).1.is_some());
        // A clock beyond what fits is cut, and does not run into the other bits.
        let (state, _) = Passive::CLEAN.on_failure(u64::MAX, &SETTINGS);
        assert_eq!(state.failures(), 1);
        let (state, ejected) = Passive::CLEAN.on_failure(u64::MAX, &one);
        assert_eq!(ejected, Some(Ejected { until_ms: TIME_MASK }));
        assert_eq!(state.to_bits(), EJECTED | TIME_MASK);
    }

    /// Against a model that keeps every failure: an ejection needs its failures in its window or a
    /// trial, and never comes later than the failures doubled.
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
                let (next, ejected) = state.on_failure(now_ms, &settings);
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
