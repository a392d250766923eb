//! Response times of a member: a moving average that rises at once and falls with time.
//!
//! Peak EWMA, as in Finagle and Linkerd: a response slower than the average becomes the average, a
//! faster one lowers it depending on the time since the last one: by half the difference in [`HALF_LIFE_MS`]. So the
//! average falls at the same pace at 10 and at 100,000 requests a second. The cost of a member is the average times the
//! open requests plus one: an estimate of the time that the next request will take.
//!
//! The whole state is one word that all cores share: they change it by compare-and-swap, and a response
//! that is not slower than the average changes it at most once in [`FALL_STEP_MS`].
//!
//! **No starvation.** The cost of an idle member decays with the time since its last response, so that a slow member is
//! tried again: one that was `r` times slower
//! than the others after [`HALF_LIFE_MS`] times log2 `r` at the latest (10 times: 13 s, 100 times: 27 s,
//! 1,000 times: 40 s), and one that has recovered has its share back about two half-lives later. Only an
//! *idle* member profits: while the trial is open the average counts in full, so that a trial is one
//! request and not a flood. For the same reason a member without any response is the cheapest of all
//! while it is idle and the dearest while it is tried for the first time.
//!
//! **Failures** may be quick, and must not attract requests: each doubles the average
//! ([`ResponseTime::failed`]), which takes a half-life of good responses to forget.

/// The time in which the average falls by half of its distance to the responses.
pub const HALF_LIFE_MS: u64 = 4_000;

/// The average falls in steps of at least this time, which bounds the writes on the shared word.
pub const FALL_STEP_MS: u64 = 64;

/// Bits of the word that hold the average in microseconds: 268 seconds.
const AVERAGE_BITS: u32 = 28;

/// Bits of the word that hold the time of the last change in milliseconds, truncated: 2.2 years. A member without any
/// response for half of that counts as just used.
const STAMP_BITS: u32 = 36;

/// Longest response time; a longer one counts as this.
pub const RESPONSE_US_MAX: u64 = (1 << AVERAGE_BITS) - 1;

/// Largest number of requests that a cost is multiplied by; more count as this.
const REQUESTS_MAX: u64 = 1 << 28;

const STAMP_MASK: u64 = (1 << STAMP_BITS) - 1;

const _: () = assert!(AVERAGE_BITS + STAMP_BITS == u64::BITS);
const _: () = assert!(RESPONSE_US_MAX * REQUESTS_MAX <= super::COST_MAX);

/// The speed of a member: an average response time and the time of its last change, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResponseTime(u64);

impl ResponseTime {
    /// No response yet.
    pub const UNKNOWN: Self = Self(0);

    /// The word that cores share.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The state from a shared word.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The average in microseconds at the last change; `None` before the first response.
    pub fn average_us(self) -> Option<u64> {
        (self != Self::UNKNOWN).then_some(self.0 >> STAMP_BITS)
    }

    /// Records a response after `response_us`, from the first sent byte of the request to the first received byte of
    /// the response. All times of a state must come from one clock.
    ///
    /// The cost is constant. Returns the same state if no write is needed. If compare-and-swap finds another word, the
    /// caller calls this again with that word.
    #[must_use]
    pub fn observe(self, now_ms: u64, response_us: u64) -> Self {
        let response_us = response_us.clamp(1, RESPONSE_US_MAX);
        let Some(average_us) = self.average_us() else {
            return Self::new(response_us, now_ms);
        };
        let elapsed_ms = self.elapsed_ms(now_ms);
        if response_us <= average_us && elapsed_ms < FALL_STEP_MS {
            return self;
        }
        let above_us = average_us.saturating_sub(response_us);
        Self::new(response_us + decayed(above_us, elapsed_ms), now_ms)
    }

    /// Records a failure after `elapsed_us`: as [`Self::observe`] of a response after twice that time, or twice the
    /// average if that is longer.
    #[must_use]
    pub fn failed(self, now_ms: u64, elapsed_us: u64) -> Self {
        let known_us = self.average_us().unwrap_or(0);
        self.observe(now_ms, elapsed_us.max(known_us).saturating_mul(2))
    }

    /// The cost of one more request on a member with `occupancy` open requests: about its duration in microseconds. At
    /// most [`super::COST_MAX`].
    pub fn cost(self, now_ms: u64, occupancy: u32) -> u64 {
        let each_us = match self.average_us() {
            None if occupancy == 0 => return 0,
            None => RESPONSE_US_MAX,
            Some(average_us) if occupancy == 0 => decayed(average_us, self.elapsed_ms(now_ms)),
            Some(average_us) => average_us,
        };
        each_us.max(1) * (u64::from(occupancy) + 1).min(REQUESTS_MAX)
    }

    fn new(average_us: u64, now_ms: u64) -> Self {
        Self(average_us << STAMP_BITS | now_ms & STAMP_MASK)
    }

    /// Time since the last change; 0 if another core with a slightly later clock has set it.
    fn elapsed_ms(self, now_ms: u64) -> u64 {
        let elapsed_ms = now_ms.wrapping_sub(self.0) & STAMP_MASK;
        if elapsed_ms > STAMP_MASK / 2 { 0 } else { elapsed_ms }
    }
}

/// `value` after `elapsed_ms` of decay: half in each [`HALF_LIFE_MS`], and 2^-f in a fraction `f` of one by its Taylor
/// polynomial bent to meet 1/2 (0.8% off at most). Rounded down, so that small values fall too.
fn decayed(value: u64, elapsed_ms: u64) -> u64 {
    // ln 2 and ln 2 - 1/2, in 2^-16.
    const SLOPE: u64 = 45_426;
    const BEND: u64 = SLOPE - (1 << 15);
    let halvings = u32::try_from(elapsed_ms / HALF_LIFE_MS).unwrap_or(u32::MAX);
    let halved = value.checked_shr(halvings).unwrap_or(0);
    let fraction = ((elapsed_ms % HALF_LIFE_MS) << 16) / HALF_LIFE_MS;
    let lost = (SLOPE * fraction - ((BEND * fraction * fraction) >> 16)) >> 16;
    (halved * ((1 << 16) - lost)) >> 16
}

#[cfg(test)]
mod tests {
    use super::super::COST_MAX;
    use super::*;
    use weir_testing::Random;

    #[test]
    fn decay_halves_and_is_monotonous() {
        let check = |value, elapsed_ms, expected| {
            assert_eq!(decayed(value, elapsed_ms), expected, "{value} after {elapsed_ms}");
        };
        check(1_000, 0, 1_000);
        check(1_000, HALF_LIFE_MS / 2, 701);
        check(1_000, HALF_LIFE_MS, 500);
        check(1_000, 3 * HALF_LIFE_MS, 125);
        check(1_000, 10 * HALF_LIFE_MS, 0);
        check(1_000, u64::MAX, 0);
        check(1, FALL_STEP_MS, 0);
        check(RESPONSE_US_MAX, 0, RESPONSE_US_MAX);
        for elapsed_ms in 0..12 * HALF_LIFE_MS {
            assert!(decayed(777_777, elapsed_ms + 1) <= decayed(777_777, elapsed_ms));
        }
    }

    #[test]
    fn the_average_rises_at_once_and_falls_with_time() {
        let average = |state: ResponseTime| state.average_us().unwrap();
        let state = ResponseTime::UNKNOWN.observe(1_000, 500);
        assert_eq!(average(state), 500);
        let state = state.observe(1_000, 90_000);
        assert_eq!(average(state), 90_000);
        // Not slower, and too early: nothing is written.
        assert_eq!(state.observe(1_000 + FALL_STEP_MS - 1, 90_000), state);
        assert_eq!(state.observe(1_000 + FALL_STEP_MS - 1, 10), state);
        assert_eq!(average(state.observe(1_000 + HALF_LIFE_MS, 10_000)), 50_000);
        assert_eq!(average(state.observe(1_000 + 1_000 * HALF_LIFE_MS, 0)), 1);
        // With an earlier clock, only peaks change the state.
        assert_eq!(state.observe(900, 10), state);
        assert_eq!(average(state.observe(900, 100_000)), 100_000);
    }

    /// The pace does not depend on the number of responses.
    #[test]
    fn many_responses_and_few_give_the_same_average() {
        let run = |every_ms: usize| {
            let mut state = ResponseTime::UNKNOWN.observe(0, 1_000_000);
            for now_ms in (0..=2 * HALF_LIFE_MS).step_by(every_ms).skip(1) {
                state = state.observe(now_ms, 1_000);
            }
            state.average_us().unwrap()
        };
        for every_ms in [1, 5, 50, 500, 4_000] {
            let average_us = run(every_ms);
            assert!((200_000..=260_000).contains(&average_us), "every {every_ms}: {average_us}");
        }
    }

    #[test]
    fn costs_of_idle_members_decay_and_those_of_busy_ones_do_not() {
        let state = ResponseTime::UNKNOWN.observe(0, 8_000);
        assert_eq!(state.cost(0, 0), 8_000);
        assert_eq!(state.cost(2 * HALF_LIFE_MS, 0), 2_000);
        assert_eq!(state.cost(2 * HALF_LIFE_MS, 1), 16_000);
        assert_eq!(state.cost(2 * HALF_LIFE_MS, 3), 32_000);
        assert_eq!(state.cost(1_000 * HALF_LIFE_MS, 0), 1);
        let unknown = ResponseTime::UNKNOWN;
        assert_eq!(unknown.cost(5, 0), 0);
        assert!(unknown.cost(5, 1) > state.cost(5, 1_000));
    }

    #[test]
    fn each_failure_doubles() {
        let state = ResponseTime::UNKNOWN.observe(0, 1_000).failed(1, 5).failed(2, 5);
        assert_eq!(state.average_us(), Some(4_000));
        assert_eq!(state.failed(3, 30_000_000).average_us(), Some(60_000_000));
        assert_eq!(ResponseTime::UNKNOWN.failed(0, 7).average_us(), Some(14));
        assert_eq!(state.failed(3, u64::MAX).average_us(), Some(RESPONSE_US_MAX));
    }

    #[test]
    fn extremes_stay_within_their_bits() {
        let mut random = Random::new(5);
        for _ in 0..100_000 {
            let mut number = || random.next() >> random.below(64);
            let state = ResponseTime::from_bits(number()).observe(number(), number());
            let average_us = state.average_us().unwrap();
            assert!((1..=RESPONSE_US_MAX).contains(&average_us));
            let now_ms = number();
            assert!(state.cost(now_ms, number() as u32) <= COST_MAX);
            assert_eq!(ResponseTime::from_bits(state.to_bits()), state);
        }
        assert!(ResponseTime::from_bits(u64::MAX).cost(0, u32::MAX) <= COST_MAX);
        assert!(ResponseTime::UNKNOWN.cost(0, u32::MAX) <= COST_MAX);
    }
}
