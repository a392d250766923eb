//! Rate limits: the generic cell rate algorithm (ITU-T I.371 annex A, "virtual scheduling").
//!
//! The whole state of a limit is one word: the *theoretical arrival time*, at which the next request would be due if all
//! requests were evenly spaced. A request that arrives at most the tolerance before that time passes and moves it on by one
//! interval. This is a token bucket: the tolerance is the time in which the bucket fills.
//!
//! Workers share the word by compare-and-swap, so each request is counted exactly once. The only error comes from different
//! clocks: a worker with a slow clock sees the word further ahead and passes less; a worker with a fast clock moves the word
//! on for all. In any time `t`, at most `1 + (tolerance + t + skew) / interval` requests pass, where `skew` is the
//! difference between the clocks.
//!
//! Workers read the clock once per turn of their event loop, so all requests of a turn have the same time. Therefore the
//! tolerance is at least [`TOLERANCE_US_MIN`]: with 20,000 requests per second and a burst of 1, 41 requests pass at the
//! same time, not one per turn.

use std::fmt;

/// Minimum tolerance: a long turn of an event loop.
pub const TOLERANCE_US_MIN: u64 = 2_000;

/// Maximum rate.
pub const PER_SECOND_MAX: u32 = 4_000_000;

/// Maximum period of a rate: a day.
pub const PERIOD_MS_MAX: u32 = 24 * 3_600 * 1_000;

/// Maximum time to refill a burst, and maximum delay: 30 days.
pub const TOLERANCE_US_MAX: u64 = 30 * 24 * 3_600 * 1_000_000;

/// A word that is ahead by this much beyond its rate's maximum belongs to another rate.
const STALE_US: u64 = 60_000_000;

/// Resolution of a word: an interval is exact to 2% at the maximum rate, and to 0.4% at a million per second. A word of 56
/// bits lasts 17 years.
const TICKS_PER_US: u64 = 128;

/// A limit: a number of requests per period, and a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    interval_ticks: u64,
    tolerance_ticks: u64,
    delay_max_ticks: u64,
}

/// The reason why a limit is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateError {
    /// No requests, or more than [`PER_SECOND_MAX`] per second.
    Requests,
    /// No time, or longer than [`PERIOD_MS_MAX`].
    Period,
    /// No burst, or a burst that takes longer than [`TOLERANCE_US_MAX`] to refill.
    Burst,
    /// A delay above [`TOLERANCE_US_MAX`].
    Delay,
}

impl fmt::Display for RateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests => write!(formatter, "a rate is of 1 to {PER_SECOND_MAX} per second"),
            Self::Period => formatter.write_str("a rate's period is at most a day"),
            Self::Burst => {
                formatter.write_str("a burst is of at least 1, and comes in within 30 days")
            }
            Self::Delay => formatter.write_str("a delay is of at most 30 days"),
        }
    }
}

impl std::error::Error for RateError {}

impl Rate {
    /// A rate of `requests` per `period_ms`, with a burst of `burst` requests. Requests above the rate are refused.
    pub fn new(requests: u32, period_ms: u32, burst: u32) -> Result<Self, RateError> {
        if period_ms == 0 || period_ms > PERIOD_MS_MAX {
            return Err(RateError::Period);
        }
        let too_fast =
            u64::from(requests) * 1_000 > u64::from(PER_SECOND_MAX) * u64::from(period_ms);
        if requests == 0 || too_fast {
            return Err(RateError::Requests);
        }
        let period_ticks = u64::from(period_ms) * 1_000 * TICKS_PER_US;
        let interval_ticks = (period_ticks + u64::from(requests) / 2) / u64::from(requests);
        let tolerance_ticks = burst
            .checked_sub(1)
            .and_then(|more| interval_ticks.checked_mul(u64::from(more)))
            .filter(|&ticks| ticks <= TOLERANCE_US_MAX * TICKS_PER_US)
            .ok_or(RateError::Burst)?;
        Ok(Self {
            interval_ticks,
            tolerance_ticks: tolerance_ticks.max(TOLERANCE_US_MIN * TICKS_PER_US),
            delay_max_ticks: 0,
        })
    }

    /// Delays requests that are too early by at most `delay_max_us`, instead of refusing them.
    pub fn delaying(self, delay_max_us: u64) -> Result<Self, RateError> {
        if delay_max_us > TOLERANCE_US_MAX {
            return Err(RateError::Delay);
        }
        Ok(Self { delay_max_ticks: delay_max_us * TICKS_PER_US, ..self })
    }

    /// The number of requests that pass at once after a long pause.
    pub fn burst(&self) -> u64 {
        1 + self.tolerance_ticks / self.interval_ticks
    }
}

/// The decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It continues, with this new word of the limit.
    Pass {
        /// The new word.
        word: u64,
    },
    /// It continues later, with this new word of the limit.
    Delay {
        /// The new word.
        word: u64,
        /// The time when it continues.
        until_us: u64,
    },
    /// The request is refused; the word stays the same.
    Refuse {
        /// A request would pass after this time, if no other request arrives before.
        retry_after_us: u64,
    },
}

impl Admission {
    /// The new word, if there is one.
    pub fn word(self) -> Option<u64> {
        match self {
            Self::Pass { word } | Self::Delay { word, .. } => Some(word),
            Self::Refuse { .. } => None,
        }
    }
}

/// Decides about a request that arrives now. A limit that was never used has the word 0.
///
/// Cost: constant. `now_us` may be behind the time of another worker's decision.
pub fn admit(word: u64, now_us: u64, rate: &Rate) -> Admission {
    let now = now_us.saturating_mul(TICKS_PER_US);
    let allowed = rate.tolerance_ticks + rate.delay_max_ticks;
    let mut due = word.max(now);
    if due - now > allowed + rate.interval_ticks + STALE_US * TICKS_PER_US {
        // Left by a slower rate before a reload: continue as if the burst were used up.
        due = now + rate.tolerance_ticks;
    }
    let early = due - now;
    if early > allowed {
        return Admission::Refuse { retry_after_us: (early - allowed).div_ceil(TICKS_PER_US) };
    }
    let word = due + rate.interval_ticks;
    if early > rate.tolerance_ticks {
        let until_us = (due - rate.tolerance_ticks).div_ceil(TICKS_PER_US);
        Admission::Delay { word, until_us }
    } else {
        Admission::Pass { word }
    }
}

/// The number of requests that would pass at once now, by the word of a limit.
pub fn room(word: u64, now_us: u64, rate: &Rate) -> u64 {
    let now = now_us.saturating_mul(TICKS_PER_US);
    let early = word.max(now) - now;
    let is_stale = early
        > rate.tolerance_ticks
            + rate.delay_max_ticks
            + rate.interval_ticks
            + STALE_US * TICKS_PER_US;
    let early = if is_stale { rate.tolerance_ticks } else { early };
    let left = rate.tolerance_ticks.checked_sub(early);
    left.map_or(0, |left| 1 + left / rate.interval_ticks)
}

/// The time when a limit's word equals 0 again: after it, no state is needed for a silent client.
pub fn forgotten_us(word: u64) -> u64 {
    word.div_ceil(TICKS_PER_US)
}

/// A time as the whole seconds of a Retry-After field: rounded up, at least 1.
pub fn retry_after_s(retry_after_us: u64) -> u64 {
    retry_after_us.div_ceil(1_000_000).max(1)
}

#[cfg(test)]
mod tests;
