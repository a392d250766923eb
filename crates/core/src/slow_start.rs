//! Slow start: a member that has just come up gets its share of traffic in steps, so that its caches and connection pools
//! fill before it has its full load.
//!
//! The share rises from [`FLOOR_PERCENT`] to the full share in [`STEPS`] equal steps of time: a staircase below the straight
//! line. The caller rebuilds its balancer with [`weights`] when a member comes up and at each [`Ramp::next_ms`]. There is no
//! other cost.
//!
//! Slow start works with every method that uses weights. Picks by key ignore it: see [`crate::balance::ByKey`].

use crate::balance::{WEIGHT_MAX, WEIGHT_MIN};

/// The share of a member that has just come up.
pub const FLOOR_PERCENT: u16 = 10;

/// Number of steps from there to the full share.
pub const STEPS: u64 = 10;

/// The progress of a member's slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ramp {
    /// The member's share, in percent of the share by its weight.
    pub percent: u16,
    /// The time of the next change, in milliseconds since the member came up; `None`: it has its full share.
    pub next_ms: Option<u64>,
}

impl Ramp {
    /// The full share.
    pub const FULL: Self = Self { percent: 100, next_ms: None };

    /// The progress `elapsed_ms` after the member came up, with a slow start of `total_ms`. Constant cost.
    pub fn at(elapsed_ms: u64, total_ms: u64) -> Self {
        if elapsed_ms >= total_ms {
            return Self::FULL;
        }
        // 128-bit products, so that no time overflows.
        let ended = (u128::from(elapsed_ms) * u128::from(STEPS) / u128::from(total_ms)) as u64;
        let next_ms = (u128::from(ended + 1) * u128::from(total_ms)).div_ceil(u128::from(STEPS));
        let percent = FLOOR_PERCENT + (100 - FLOOR_PERCENT) * ended as u16 / STEPS as u16;
        Self { percent, next_ms: Some(next_ms as u64) }
    }
}

/// The weights for balancing, from each member's configured weight and its percentage.
///
/// While no member is in a slow start, the result is the configured weights. Otherwise all weights are first multiplied by
/// the same number, so that a tenth of a weight of 1 can be expressed: the heaviest comes near [`WEIGHT_MAX`]. Results below
/// [`WEIGHT_MIN`] become [`WEIGHT_MIN`]: in a pool whose weights differ more than 25-fold, the lightest members start with
/// more than [`FLOOR_PERCENT`] of their small share.
pub fn weights(members: impl Iterator<Item = (u16, u16)> + Clone) -> Vec<u16> {
    let clamp = |weight: u16| weight.clamp(WEIGHT_MIN, WEIGHT_MAX);
    let heaviest = members.clone().map(|(weight, _)| clamp(weight)).max().unwrap_or(WEIGHT_MAX);
    let is_ramping = members.clone().any(|(_, percent)| percent < 100);
    let scale = if is_ramping { u32::from(WEIGHT_MAX / heaviest) } else { 1 };
    members
        .map(|(weight, percent)| {
            let scaled = u32::from(clamp(weight)) * scale;
            clamp(((scaled * u32::from(percent.min(100)) + 50) / 100) as u16)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::{Balancer, Method, View};
    use weir_testing::Random;

    #[test]
    fn steps() {
        let check = |elapsed_ms, total_ms, percent, next_ms| {
            assert_eq!(Ramp::at(elapsed_ms, total_ms), Ramp { percent, next_ms }, "{elapsed_ms}");
        };
        check(0, 30_000, 10, Some(3_000));
        check(2_999, 30_000, 10, Some(3_000));
        check(3_000, 30_000, 19, Some(6_000));
        check(15_000, 30_000, 55, Some(18_000));
        check(29_999, 30_000, 91, Some(30_000));
        check(30_000, 30_000, 100, None);
        check(0, 0, 100, None);
        check(u64::MAX, u64::MAX, 100, None);
        check(0, 1, 10, Some(1));
        check(1, 3, 37, Some(2));
    }

    /// The steps reach all weights, and nothing changes between two steps.
    #[test]
    fn the_next_step_is_the_next_change() {
        for seed in 0..64 {
            let mut random = Random::new(seed);
            let total_ms = 1 + random.next() % (1 << (1 + random.below(63)));
            let mut elapsed_ms = 0;
            let mut last = Ramp::at(0, total_ms);
            let mut steps = 0;
            while let Some(next_ms) = last.next_ms {
                assert!(next_ms > elapsed_ms, "seed {seed}");
                assert_eq!(Ramp::at(next_ms - 1, total_ms), last, "seed {seed}");
                let next = Ramp::at(next_ms, total_ms);
                assert!(next.percent > last.percent, "seed {seed}");
                (elapsed_ms, last) = (next_ms, next);
                steps += 1;
            }
            assert!(steps <= STEPS && elapsed_ms == total_ms, "seed {seed}");
        }
    }

    #[test]
    fn weights_are_scaled_only_as_needed() {
        let check = |members: &[(u16, u16)], expected: &[u16]| {
            assert_eq!(weights(members.iter().copied()), expected, "{members:?}");
        };
        check(&[], &[]);
        check(&[(1, 100), (3, 100), (0, 100)], &[1, 3, 1]);
        check(&[(1, 100), (1, 10)], &[256, 26]);
        check(&[(2, 100), (5, 50), (1, 10)], &[102, 128, 5]);
        check(&[(256, 100), (1, 10), (500, 10)], &[256, 1, 26]);
    }

    struct Free;

    impl View for Free {
        fn occupancy(&self, _: usize) -> u32 {
            0
        }
        fn admits(&self, _: usize) -> bool {
            true
        }
    }

    /// A member comes up beside three others: its share rises in a straight line with every method (except those by
    /// occupancy, which ignore weights while all members are idle).
    #[test]
    fn the_share_rises_in_a_straight_line() {
        const TOTAL_MS: u64 = 20_000;
        for (seed, method) in (0..16).zip([Method::RoundRobin, Method::RandomTwo].repeat(8)) {
            let mut ramp = Ramp::at(0, TOTAL_MS);
            let build = |ramp: Ramp, seed| {
                let members = [(2, 100), (2, 100), (2, ramp.percent), (2, 100)];
                Balancer::new(method, &weights(members.into_iter()), seed)
            };
            let mut balancer = build(ramp, seed);
            let mut shares = Vec::new();
            for second in 0..25 {
                let mut picks = 0;
                for request in 0..2_000 {
                    let now_ms = second * 1_000 + request / 2;
                    if ramp.next_ms.is_some_and(|next_ms| next_ms <= now_ms) {
                        ramp = Ramp::at(now_ms, TOTAL_MS);
                        balancer = build(ramp, seed + now_ms);
                    }
                    picks += u32::from(balancer.pick(&Free, 0) == Some(2));
                }
                shares.push(f64::from(picks) / 2_000.0);
            }
            for (second, share) in shares.iter().enumerate() {
                // A share `s` of a weight among three full ones gives s / (s + 3) of the requests.
                let done = ((second as f64 + 0.5) / 20.0).min(1.0);
                let line = 0.1 + 0.9 * done;
                let expected = line / (line + 3.0);
                assert!((share - expected).abs() < 0.05, "seed {seed}, {second} s: {share}");
            }
        }
    }
}
