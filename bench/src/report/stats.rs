//! Medians, spreads, and the statistics of ratios from a few rounds.

use serde::Serialize;

/// Probability that the interval of a [`Ratio`] contains the true ratio.
pub const COVERAGE: f64 = 0.95;

/// The values of one product at one setting over the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Middle value.
    pub median: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Number of rounds with a value.
    pub rounds: usize,
}

impl Spread {
    /// The spread of the finite values; `None` without any.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values = sorted(values);
        let median = median(&values)?;
        Some(Self { median, min: *values.first()?, max: *values.last()?, rounds: values.len() })
    }
}

/// The ratio of two products, paired by round.
///
/// Only values of the same round and setting are divided: they were measured within a minute, so a disturbance of the
/// machine affected both and cancels out. All calculations use logarithms, so that a ratio and its inverse have the
/// same noise.
///
/// The interval contains the true ratio with a probability of [`COVERAGE`]:
///
/// - With 6 rounds or more, it is the interval of the sign test: two order statistics of the ratios, chosen by the
///   binomial distribution (9 rounds: the second smallest and the second largest). It assumes nothing about the
///   distribution of the noise, and one bad round does not change it.
/// - With fewer rounds, the sign test has no interval of this coverage: the range of 3 ratios contains the true median
///   in only 75% of the cases, so one of four equal products would count as better or worse. A bootstrap of 3 values
///   has only 10 different samples, and cannot leave the range either. Here the range is widened by `RANGE_FACTORS`,
///   which are correct for log-normal noise: with 3 rounds, the interval extends 1.35 times the range to either side of
///   the median. It is wide, because three rounds say little.
/// - One round says nothing about noise and has no interval. Counts have a known noise, see
///   [`Ratio::with_noise_of_at_least`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// Median of the ratios of the rounds.
    pub median: f64,
    /// Ends of the interval; `None` after one round.
    pub interval: Option<(f64, f64)>,
    /// Number of rounds in which both products have a value.
    pub rounds: usize,
}

/// Half width of the interval divided by the range of the values, for 2, 3, 4 and 5 rounds: the 95th percentile of
/// |median| / range of as many standard normal values, from a simulation with at least 800,000 samples each. The test
/// `intervals_hold_the_truth` repeats it with fewer.
const RANGE_FACTORS: [f64; 4] = [6.35, 1.35, 0.74, 0.56];

/// Minimum number of rounds for the sign test.
const SIGN_TEST_ROUNDS_MIN: usize = 6;

impl Ratio {
    /// The ratio of pairs `(value, divisor)`, one per round. Pairs without a ratio (zero, negative or not finite) are
    /// left out; `None` if no pair is left.
    pub fn paired(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        let is_usable = |value: f64| value.is_finite() && value > 0.0;
        let logs = sorted(
            pairs
                .into_iter()
                .filter(|&(value, by)| is_usable(value) && is_usable(by))
                .map(|(value, by)| value.ln() - by.ln()),
        );
        let middle = median(&logs)?;
        let interval = interval(&logs, middle).map(|(low, high)| (low.exp(), high.exp()));
        Some(Self { median: middle.exp(), interval, rounds: logs.len() })
    }

    /// Widens the interval to at least this share on both sides. For counts, also after one round.
    pub fn with_noise_of_at_least(self, share: f64) -> Self {
        let (low, high) = self.interval.unwrap_or((self.median, self.median));
        let factor = 1.0 + share;
        let interval = (low.min(self.median / factor), high.max(self.median * factor));
        Self { interval: Some(interval), ..self }
    }

    /// Whether the interval excludes 1, so that the difference is significant.
    pub fn is_beyond_noise(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low > 1.0 || high < 1.0)
    }

    /// The wider half of the interval, as a logarithm.
    pub fn noise_ln(&self) -> Option<f64> {
        let (low, high) = self.interval?;
        Some((high / self.median).ln().max((self.median / low).ln()))
    }
}

fn interval(logs: &[f64], middle: f64) -> Option<(f64, f64)> {
    let rounds = logs.len();
    if rounds >= SIGN_TEST_ROUNDS_MIN {
        let skipped = skipped_on_either_side(rounds);
        return Some((*logs.get(skipped)?, *logs.get(rounds - 1 - skipped)?));
    }
    let factor = RANGE_FACTORS.get(rounds.checked_sub(2)?)?;
    let half = factor * (logs.last()? - logs.first()?);
    Some((middle - half, middle + half))
}

/// Number of values outside of the sign test's interval, on each side.
fn skipped_on_either_side(rounds: usize) -> usize {
    /// Up to this number of rounds, the probability of no head at all is a normal floating-point number.
    const EXACT_ROUNDS_MAX: usize = 1_000;
    let rounds = rounds.min(EXACT_ROUNDS_MAX);
    let mut probability = 0.5f64.powi(rounds as i32);
    let mut tail = probability;
    let mut skipped = 0;
    while skipped < rounds / 2 {
        probability *= (rounds - skipped) as f64 / (skipped + 1) as f64;
        if 2.0 * (tail + probability) > 1.0 - COVERAGE {
            break;
        }
        tail += probability;
        skipped += 1;
    }
    skipped
}

fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The middle one of sorted values, or the mean of the two middle ones.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get(sorted.len().saturating_sub(1) / 2)?;
    Some(lower + (upper - lower) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads() {
        let check = |values: &[f64], expected: Option<(f64, f64, f64, usize)>| {
            let spread = Spread::of(values.iter().copied());
            let found = spread.map(|s| (s.median, s.min, s.max, s.rounds));
            assert_eq!(found, expected, "{values:?}");
        };
        check(&[], None);
        check(&[f64::NAN, f64::INFINITY], None);
        check(&[3.0], Some((3.0, 3.0, 3.0, 1)));
        check(&[9.0, 1.0, 2.0], Some((2.0, 1.0, 9.0, 3)));
        check(&[4.0, 1.0, f64::NAN, 2.0, 9.0], Some((3.0, 1.0, 9.0, 4)));
        check(&[f64::MAX, f64::MAX], Some((f64::MAX, f64::MAX, f64::MAX, 2)));
    }

    #[test]
    fn ratios_are_paired_by_round() {
        // In the second round the machine was half as fast: the ratio is unaffected.
        let ratio = Ratio::paired([(8.0, 10.0), (16.0, 20.0), (8.0, 10.0)]).expect("a ratio");
        assert!((ratio.median - 0.8).abs() < 1e-12);
        assert!(ratio.is_beyond_noise());
        assert!(ratio.noise_ln().expect("noise") < 1e-9);
    }

    #[test]
    fn what_has_no_ratio_is_left_out() {
        let check = |pairs: &[(f64, f64)], rounds: Option<usize>| {
            let ratio = Ratio::paired(pairs.iter().copied());
            assert_eq!(ratio.map(|ratio| ratio.rounds), rounds, "{pairs:?}");
        };
        check(&[], None);
        check(&[(1.0, 0.0), (0.0, 1.0), (-1.0, 1.0), (f64::NAN, 1.0)], None);
        check(&[(1.0, 2.0), (1.0, 0.0)], Some(1));
    }

    #[test]
    fn verdicts_of_few_and_many_rounds() {
        let check = |ratios: &[f64], expected: Option<bool>| {
            let ratio = Ratio::paired(ratios.iter().map(|&ratio| (ratio, 1.0))).expect("a ratio");
            let found = ratio.interval.map(|_| ratio.is_beyond_noise());
            assert_eq!(found, expected, "{ratios:?}: {ratio:?}");
        };
        check(&[0.5], None);
        check(&[0.80, 0.81, 0.79], Some(true));
        // All three rounds show less, but with this scatter three rounds prove nothing.
        check(&[0.80, 0.95, 0.85], Some(false));
        check(&[0.80, 0.82, 0.81, 0.84, 0.79, 0.80], Some(true));
        check(&[0.80, 0.82, 0.81, 0.84, 0.79, 1.01], Some(false));
        // With nine rounds, one may disagree.
        check(&[0.8, 0.82, 0.81, 0.84, 0.79, 1.4, 0.8, 0.8, 0.8], Some(true));
        check(&[0.8, 0.82, 0.81, 0.84, 0.79, 1.4, 1.2, 0.8, 0.8], Some(false));
    }

    #[test]
    fn what_is_counted_has_a_noise_after_one_round() {
        let check = |ratios: &[f64], expected: bool| {
            let ratio = Ratio::paired(ratios.iter().map(|&ratio| (ratio, 1.0))).expect("a ratio");
            let counted = ratio.with_noise_of_at_least(0.01);
            assert_eq!(counted.is_beyond_noise(), expected, "{ratios:?}: {counted:?}");
            assert_eq!(counted.median, ratio.median);
        };
        check(&[0.5], true);
        check(&[0.995], false);
        check(&[1.009], false);
        check(&[1.02], true);
        check(&[0.98, 0.98, 0.98], true);
        check(&[0.999, 0.999, 0.999], false);
        // A difference larger than the scatter counts.
        check(&[0.80, 0.95, 0.85], false);
    }

    #[test]
    fn the_sign_test_skips_what_the_binomial_distribution_allows() {
        // Tables of the sign test at 5%, two-sided.
        for (rounds, expected) in [(6, 0), (8, 0), (9, 1), (11, 1), (12, 2), (15, 3), (20, 5)] {
            assert_eq!(skipped_on_either_side(rounds), expected, "{rounds} rounds");
        }
        assert!(skipped_on_either_side(1_000_000) < 500);
    }

    /// Standard normal values from a fixed seed (xorshift, and the sum of twelve uniform values).
    struct Noise(u64);

    impl Noise {
        fn next(&mut self) -> f64 {
            let uniform = |state: &mut u64| {
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                (*state >> 11) as f64 / (1u64 << 53) as f64
            };
            (0..12).map(|_| uniform(&mut self.0)).sum::<f64>() - 6.0
        }
    }

    #[test]
    fn intervals_hold_the_truth() {
        const CASES: usize = 20_000;
        let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
        for rounds in [2, 3, 4, 5, 6, 9] {
            let held = (0..CASES)
                .filter(|_| {
                    let pairs: Vec<_> =
                        (0..rounds).map(|_| ((noise.next() * 0.05).exp(), 1.0)).collect();
                    Ratio::paired(pairs).is_some_and(|ratio| !ratio.is_beyond_noise())
                })
                .count();
            let coverage = held as f64 / CASES as f64;
            assert!((0.94..0.975).contains(&coverage), "{rounds} rounds: {coverage}");
        }
    }
}
