//! Durations: one table per extent, one line per test.
//!
//! Progress shows an estimate from these tables. Tests below check the promised limits: `quick` ends within 5 minutes,
//! `full` within 90.

use std::time::Duration;

use super::workload;
use crate::catalogue::OBSERVED;

/// The thoroughness of a run's measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Checks that everything works, without measuring: for the test suite.
    Smoke,
    /// Every test, shortened.
    Quick,
    /// Every test at the length that the report needs.
    Full,
}

/// The budget of one test.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// The test's name in the catalogue.
    pub test: &'static str,
    /// Values on the test's axis; for `ramp`, fractions of the best product's capacity.
    pub settings: &'static [f64],
    /// Number of good rounds.
    pub rounds: u32,
    /// Warm-up before each measurement.
    pub warm_up_ms: u64,
    /// Duration of one measurement.
    pub measure_ms: u64,
    /// Whether a yardstick takes part: the relay, or weir without the tested feature.
    pub yardstick: bool,
    /// Whether this extent runs the test only on request by name.
    pub is_extra: bool,
}

/// Times and counts around the measurements.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Duration of one capacity probe.
    pub calibration_ms: u64,
    /// Observation of the resting machine before each measurement.
    pub resting_ms: u64,
    /// Observation of the resting machine before the first measurement of a test.
    pub first_rest_ms: u64,
    /// The longest wait for a quiet machine.
    pub quiet_timeout_ms: u64,
    /// Number of disturbed rounds to repeat, per wanted good round.
    pub repeats_per_round: u32,
    /// New connections per second.
    pub connections_per_second: f64,
    /// Whether a test searches its rate in every round, or once.
    pub seeks_each_round: bool,
    /// Share of the requests in `full` that a counting test sends.
    pub counting_share: f64,
}

const fn budget(
    test: &'static str,
    settings: &'static [f64],
    rounds: u32,
    (warm_up_ms, measure_ms): (u64, u64),
    yardstick: bool,
) -> Budget {
    Budget { test, settings, rounds, warm_up_ms, measure_ms, yardstick, is_extra: false }
}

/// The budget of a test that runs only on request by name.
const fn extra(
    test: &'static str,
    settings: &'static [f64],
    rounds: u32,
    times_ms: (u64, u64),
) -> Budget {
    Budget { is_extra: true, ..budget(test, settings, rounds, times_ms, ALONE) }
}

/// As [`extra`], with a yardstick.
const fn beside(
    test: &'static str,
    settings: &'static [f64],
    rounds: u32,
    times_ms: (u64, u64),
) -> Budget {
    Budget { is_extra: true, ..budget(test, settings, rounds, times_ms, SCALED) }
}

/// The budget of a counting test; the test sets its number of requests.
const fn counting(
    test: &'static str,
    settings: &'static [f64],
    rounds: u32,
    yardstick: bool,
    is_extra: bool,
) -> Budget {
    Budget { test, settings, rounds, warm_up_ms: 0, measure_ms: 0, yardstick, is_extra }
}

/// Duration of a measurement at rest. At 100 requests per second it yields 550 requests; a P99 needs 500. A test
/// that is too long for `quick` at this duration runs there only when named; see the tests below.
const IDLE_MS: u64 = 5_500;
const SINGLE: &[f64] = &[0.0];
const TRANSACTION_AND_VOLUME: &[f64] = &[1.0, 30_720.0];
const SCALED: bool = true;
const ALONE: bool = false;
const EXTRA: bool = true;
const ONE_AND_MANY: &[f64] = &[1.0, 64.0];
const TWO_CASES: &[f64] = &[0.0, 1.0];
const THREE_CASES: &[f64] = &[0.0, 1.0, 2.0];
const FOUR_CASES: &[f64] = &[0.0, 1.0, 2.0, 3.0];
const FIVE_CASES: &[f64] = &[0.0, 1.0, 2.0, 3.0, 4.0];
const FIVE_SIZES: &[f64] = &[128.0, 5_120.0, 16_384.0, 32_768.0, 131_072.0];
const ALL_SHAPES: &[f64] =
    &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0];
const _: () = assert!(ALL_SHAPES.len() == crate::catalogue::SHAPES.len());
const ALL_WAF: &[f64] = &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
const _: () = assert!(ALL_WAF.len() == crate::catalogue::WAF_CASES.len());
const ALL_FEATURES: &[f64] = &[0.0, 1.0, 2.0, 3.0];
const ALL_CASES: &[f64] = &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];

//     test              settings                                                  rounds  ms      yardstick
const FULL: &[Budget] = &[
    budget("basic-l7", &[1e3, 12e3, 24e3, 48e3, 96e3, 192e3], 3, (500, 3_000), ALONE),
    budget("l7-requests", SINGLE, 5, (300, 2_500), SCALED),
    budget("l7-uri", SINGLE, 3, (300, 2_500), ALONE),
    budget("l7-connections", SINGLE, 5, (300, 2_500), SCALED),
    budget("l7-throughput", SINGLE, 5, (300, 2_500), SCALED),
    budget("envelope", FIVE_SIZES, 3, (300, 1_800), SCALED),
    budget(
        "object-sizes",
        &[2_048.0, 4_096.0, 8_192.0, 16_384.0, 32_768.0, 65_536.0],
        3,
        (300, 1_800),
        SCALED,
    ),
    budget("p99-idle", TRANSACTION_AND_VOLUME, 3, (300, IDLE_MS), SCALED),
    budget("p99-stressed", TRANSACTION_AND_VOLUME, 4, (300, 2_500), SCALED),
    budget("p99-near-limit", TRANSACTION_AND_VOLUME, 4, (300, 2_500), SCALED),
    budget(
        "ramp",
        &[0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0, 1.1, 1.25],
        3,
        (300, 1_800),
        SCALED,
    ),
    budget("cpu-65", SINGLE, 3, (300, 2_500), SCALED),
    budget("requests-per-cpu-second", SINGLE, 5, (300, 2_500), SCALED),
    budget("advanced-l7", SINGLE, 3, (300, 2_500), SCALED),
    budget("cookie-persistence", SINGLE, 3, (300, 2_500), SCALED),
    budget("queue", TWO_CASES, 3, (500, 2_500), ALONE),
    beside("observed", TWO_CASES, 9, (500, 6_000)),
    budget("l4-connections", SINGLE, 5, (300, 2_500), SCALED),
    budget("l4-throughput", SINGLE, 5, (300, 2_500), SCALED),
    budget("l4-envelope", ALL_SHAPES, 3, (100, 700), ALONE),
    budget("l4-512k", SINGLE, 3, (300, 5_000), SCALED),
    budget("udp-queries", TWO_CASES, 3, (300, 1_800), SCALED),
    extra("fast-l4", THREE_CASES, 3, (300, 2_500)),
    extra("l4-packets", FIVE_CASES, 3, (300, 2_000)),
    budget("ssl-tps", FOUR_CASES, 3, (300, 2_000), ALONE),
    budget("ssl-tps-resumed", TWO_CASES, 3, (300, 2_000), ALONE),
    budget("ssl-bulk", SINGLE, 3, (300, 2_000), ALONE),
    budget("ssl-envelope", FIVE_SIZES, 3, (300, 1_200), ALONE),
    budget("https-p99-idle", TRANSACTION_AND_VOLUME, 3, (300, IDLE_MS), ALONE),
    budget("https-p99-stressed", TRANSACTION_AND_VOLUME, 3, (300, 2_000), ALONE),
    budget("http2", TWO_CASES, 3, (300, 2_000), ALONE),
    budget("compression", TWO_CASES, 3, (300, 2_000), ALONE),
    budget("compression-connections", &[16.0, 64.0, 256.0, 512.0], 3, (300, 2_000), ALONE),
    extra("waf-get", SINGLE, 5, (300, 2_500)),
    extra("waf-form-1k", SINGLE, 5, (300, 2_500)),
    extra("waf-form-8k", SINGLE, 5, (300, 5_000)),
    extra("waf-json-8k", SINGLE, 5, (300, 5_000)),
    extra("waf-2020-idle", ALL_WAF, 3, (300, IDLE_MS)),
    extra("waf-2020-stressed", ALL_WAF, 3, (300, 6_000)),
    counting("waf-memory", SINGLE, 1, ALONE, EXTRA),
    counting("feature-instructions", ALL_FEATURES, 1, ALONE, EXTRA),
    counting("instructions", SINGLE, 1, SCALED, !EXTRA),
    counting("system-calls", ONE_AND_MANY, 3, SCALED, !EXTRA),
    counting("idle-memory", SINGLE, 1, ALONE, !EXTRA),
    counting("https-idle-memory", SINGLE, 1, ALONE, !EXTRA),
    counting("growth", ALL_CASES, 1, ALONE, !EXTRA),
];

const QUICK: &[Budget] = &[
    budget("basic-l7", &[1e3, 8e3], 3, (100, 500), ALONE),
    budget("l7-requests", SINGLE, 3, (100, 700), SCALED),
    extra("l7-uri", SINGLE, 3, (100, 500)),
    budget("l7-connections", SINGLE, 3, (100, 500), ALONE),
    budget("l7-throughput", SINGLE, 3, (100, 500), ALONE),
    budget("envelope", &[128.0, 16_384.0, 131_072.0], 3, (100, 400), ALONE),
    budget("object-sizes", &[2_048.0, 65_536.0], 3, (100, 400), ALONE),
    extra("p99-idle", TRANSACTION_AND_VOLUME, 3, (50, IDLE_MS)),
    budget("p99-stressed", TRANSACTION_AND_VOLUME, 3, (100, 400), ALONE),
    extra("p99-near-limit", TRANSACTION_AND_VOLUME, 3, (100, 500)),
    budget("ramp", &[0.1, 0.6, 1.1], 3, (100, 350), ALONE),
    extra("cpu-65", SINGLE, 3, (100, 700)),
    budget("requests-per-cpu-second", SINGLE, 3, (100, 500), ALONE),
    budget("advanced-l7", SINGLE, 3, (100, 500), SCALED),
    budget("cookie-persistence", SINGLE, 3, (100, 500), SCALED),
    extra("queue", TWO_CASES, 3, (300, 1_000)),
    beside("observed", TWO_CASES, 3, (100, 1_500)),
    budget("l4-connections", SINGLE, 3, (100, 300), ALONE),
    extra("l4-throughput", SINGLE, 3, (100, 500)),
    extra("l4-envelope", ALL_SHAPES, 3, (100, 300)),
    extra("l4-512k", SINGLE, 3, (100, 1_000)),
    beside("udp-queries", TWO_CASES, 3, (100, 500)),
    extra("fast-l4", THREE_CASES, 3, (100, 500)),
    extra("l4-packets", FIVE_CASES, 3, (100, 500)),
    budget("ssl-tps", SINGLE, 3, (100, 300), ALONE),
    extra("ssl-tps-resumed", TWO_CASES, 3, (100, 500)),
    budget("ssl-bulk", SINGLE, 3, (100, 300), ALONE),
    extra("ssl-envelope", &[128.0, 16_384.0, 131_072.0], 3, (100, 500)),
    extra("https-p99-idle", TRANSACTION_AND_VOLUME, 3, (50, IDLE_MS)),
    extra("https-p99-stressed", TRANSACTION_AND_VOLUME, 3, (100, 500)),
    budget("http2", SINGLE, 3, (100, 300), ALONE),
    budget("compression", SINGLE, 3, (100, 300), ALONE),
    extra("compression-connections", &[16.0, 256.0], 3, (100, 1_000)),
    extra("waf-get", SINGLE, 3, (100, 700)),
    extra("waf-form-1k", SINGLE, 3, (100, 700)),
    extra("waf-form-8k", SINGLE, 3, (100, 700)),
    extra("waf-json-8k", SINGLE, 3, (100, 700)),
    extra("waf-2020-idle", ALL_WAF, 3, (50, IDLE_MS)),
    extra("waf-2020-stressed", ALL_WAF, 3, (100, 700)),
    counting("waf-memory", SINGLE, 1, ALONE, EXTRA),
    counting("feature-instructions", ALL_FEATURES, 1, ALONE, EXTRA),
    counting("instructions", SINGLE, 1, SCALED, EXTRA),
    counting("system-calls", ONE_AND_MANY, 1, SCALED, EXTRA),
    counting("idle-memory", SINGLE, 1, ALONE, EXTRA),
    counting("https-idle-memory", SINGLE, 1, ALONE, EXTRA),
    counting("growth", ALL_CASES, 1, ALONE, EXTRA),
];

const SMOKE: &[Budget] = &[
    budget("basic-l7", &[100.0], 1, (20, 100), ALONE),
    budget("l7-requests", SINGLE, 1, (20, 100), SCALED),
    budget("l7-uri", SINGLE, 1, (20, 100), ALONE),
    budget("l7-connections", SINGLE, 1, (20, 100), SCALED),
    budget("l7-throughput", SINGLE, 1, (20, 100), SCALED),
    budget("envelope", &[128.0, 16_384.0], 1, (20, 100), ALONE),
    budget("object-sizes", &[2_048.0], 1, (20, 100), ALONE),
    budget("p99-idle", TRANSACTION_AND_VOLUME, 1, (20, 100), ALONE),
    budget("p99-stressed", &[1.0], 1, (20, 100), ALONE),
    budget("p99-near-limit", &[1.0], 1, (20, 100), ALONE),
    budget("ramp", &[0.1, 1.1], 1, (20, 100), ALONE),
    budget("cpu-65", SINGLE, 1, (10, 50), ALONE),
    budget("requests-per-cpu-second", SINGLE, 1, (20, 100), ALONE),
    budget("advanced-l7", SINGLE, 1, (20, 100), SCALED),
    budget("cookie-persistence", SINGLE, 1, (20, 100), SCALED),
    budget("queue", &[1.0], 1, (20, 100), ALONE),
    beside("observed", TWO_CASES, 1, (20, 100)),
    budget("l4-connections", SINGLE, 1, (20, 100), SCALED),
    budget("l4-throughput", SINGLE, 1, (20, 100), SCALED),
    budget("l4-envelope", &[0.0, 14.0], 1, (20, 100), ALONE),
    budget("l4-512k", SINGLE, 1, (20, 300), SCALED),
    budget("udp-queries", TWO_CASES, 1, (20, 100), SCALED),
    extra("fast-l4", THREE_CASES, 1, (20, 100)),
    extra("l4-packets", FIVE_CASES, 1, (20, 100)),
    budget("ssl-tps", &[0.0, 3.0], 1, (20, 100), ALONE),
    budget("ssl-tps-resumed", TWO_CASES, 1, (20, 100), ALONE),
    budget("ssl-bulk", SINGLE, 1, (20, 100), ALONE),
    budget("ssl-envelope", &[128.0], 1, (20, 100), ALONE),
    budget("https-p99-idle", &[1.0], 1, (20, 100), ALONE),
    budget("https-p99-stressed", &[1.0], 1, (20, 100), ALONE),
    budget("http2", TWO_CASES, 1, (20, 100), ALONE),
    budget("compression", TWO_CASES, 1, (20, 100), ALONE),
    budget("compression-connections", &[8.0], 1, (20, 100), ALONE),
    extra("waf-get", SINGLE, 1, (20, 100)),
    extra("waf-form-1k", SINGLE, 1, (20, 100)),
    extra("waf-form-8k", SINGLE, 1, (20, 100)),
    extra("waf-json-8k", SINGLE, 1, (20, 100)),
    extra("waf-2020-idle", &[1.0, 5.0], 1, (20, 100)),
    extra("waf-2020-stressed", &[0.0, 2.0], 1, (20, 100)),
    counting("waf-memory", SINGLE, 1, ALONE, EXTRA),
    counting("feature-instructions", &[0.0, 2.0, 3.0], 1, ALONE, EXTRA),
    counting("instructions", SINGLE, 1, SCALED, EXTRA),
    counting("system-calls", ONE_AND_MANY, 1, SCALED, EXTRA),
    counting("idle-memory", SINGLE, 1, ALONE, EXTRA),
    counting("https-idle-memory", SINGLE, 1, ALONE, EXTRA),
    counting("growth", &[7.0], 1, ALONE, EXTRA),
];

/// A product's start and stop, once per test and configuration.
const START_S: f64 = 0.25;
/// Time per measurement for threads, connections and counters, beyond warm-up and measurement.
const AROUND_MEASUREMENT_S: f64 = 0.12;
/// Time to close connections, as a share of the time to open them.
const CLOSING_SHARE: f64 = 0.6;
/// Probes per product for a rate near the limit: one for its capacity, the others to confirm the rate.
const CHECKING_LOOKS: f64 = 4.0;
/// Probes per product to find a rate, for tests that search one.
const SEEKING_LOOKS: f64 = 9.0;

/// Duration of a counting test in `full`, for one product, round and setting: starting and ending processes under a
/// tool, and sending the requests. Envoy under callgrind takes several times as long as the others.
fn counting_s(test: &str) -> Option<(f64, f64)> {
    match test {
        "instructions" | "feature-instructions" => Some((12.0, 9.0)),
        "growth" => Some((4.5, 3.5)),
        "system-calls" => Some((0.5, 1.0)),
        "idle-memory" => Some((5.0, 40.0)),
        "waf-memory" => Some((15.0, 0.0)),
        "https-idle-memory" => Some((8.0, 5.0)),
        _ => None,
    }
}

impl Extent {
    /// The extent's name on the command line and in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }

    /// The extent with that name.
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Smoke, Self::Quick, Self::Full].into_iter().find(|extent| extent.name() == name)
    }

    /// The extent's table.
    pub fn budgets(self) -> &'static [Budget] {
        match self {
            Self::Smoke => SMOKE,
            Self::Quick => QUICK,
            Self::Full => FULL,
        }
    }

    /// The extent's pace around the measurements.
    pub fn pace(self) -> Pace {
        let pace = |[calibration_ms, resting_ms, first_rest_ms, quiet_timeout_ms]: [u64; 4],
                    repeats_per_round,
                    share| Pace {
            calibration_ms,
            resting_ms,
            first_rest_ms,
            quiet_timeout_ms,
            repeats_per_round,
            connections_per_second: workload::CONNECTIONS_OPENED_PER_SECOND,
            seeks_each_round: self == Self::Full,
            counting_share: share,
        };
        match self {
            Self::Smoke => pace([50, 10, 10, 20], 0, 0.02),
            Self::Quick => pace([300, 60, 300, 2_000], 1, 0.4),
            Self::Full => pace([1_000, 150, 2_000, 30_000], 2, 1.0),
        }
    }

    /// The time limit of a run, within which it repeats disturbed rounds. A run with more rounds or rows may get a
    /// higher limit.
    pub fn limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Smoke => 120,
            Self::Quick => 5 * 60,
            Self::Full => 90 * 60,
        })
    }

    /// The budget for that test.
    pub fn budget(self, test: &str) -> Option<&'static Budget> {
        self.budgets().iter().find(|budget| budget.test == test)
    }

    /// The total time of those budgets without disturbances. `products` counts without yardsticks.
    pub fn estimate(self, budgets: &[Budget], products: usize, has_yardsticks: bool) -> Duration {
        budgets.iter().map(|budget| budget.estimate(&self.pace(), products, has_yardsticks)).sum()
    }
}

impl Budget {
    /// Replaces the number of rounds of a timed test. Counting tests keep theirs, because counts are repeatable.
    pub fn with_rounds(self, rounds: Option<u32>) -> Self {
        let is_timed = counting_s(self.test).is_none();
        Self { rounds: rounds.filter(|_| is_timed).unwrap_or(self.rounds), ..self }
    }

    /// The duration of the test without disturbances.
    pub fn estimate(&self, pace: &Pace, products: usize, has_yardsticks: bool) -> Duration {
        // Of observation, weir alone is asked.
        let (products, has_yardsticks) =
            if self.test == OBSERVED { (1, true) } else { (products, has_yardsticks) };
        let takers = products + usize::from(has_yardsticks && self.yardstick);
        if let Some((start_s, requests_s)) = counting_s(self.test) {
            // The growth test runs only weir.
            let takers = if self.test == "growth" { 1 } else { takers };
            let each_s = start_s + requests_s * pace.counting_share;
            let all_s = each_s * (takers * self.settings.len()) as f64 * f64::from(self.rounds);
            return Duration::from_secs_f64(all_s);
        }
        let looks = match self.test {
            "basic-l7"
            | "object-sizes"
            | "p99-stressed"
            | "https-p99-stressed"
            | "ramp"
            | "advanced-l7"
            | "cookie-persistence"
            | "requests-per-cpu-second"
            | "waf-2020-stressed" => 1.0,
            "compression" | OBSERVED => self.settings.len() as f64,
            "p99-near-limit" => CHECKING_LOOKS,
            "cpu-65" => {
                1.0 + SEEKING_LOOKS * f64::from(if pace.seeks_each_round { self.rounds } else { 1 })
            }
            _ => 0.0,
        };
        let look_ms = self.warm_up_ms + pace.calibration_ms + pace.resting_ms;
        let look_s = look_ms as f64 / 1e3 + AROUND_MEASUREMENT_S;
        // In some tests each setting has its own configuration and start.
        let starts = match self.test {
            "basic-l7" | "envelope" | "l4-envelope" | "udp-queries" | "fast-l4" | "l4-packets"
            | "object-sizes" | "p99-idle" | "p99-stressed" | "p99-near-limit" | "ssl-tps"
            | "ssl-tps-resumed" | "ssl-envelope" | "https-p99-idle" | "https-p99-stressed"
            | "http2" | "compression" | OBSERVED => self.settings.len(),
            _ => 1,
        };
        let first_rests_s = starts as f64 * pace.first_rest_ms as f64 / 1e3;
        let around = takers as f64 * (starts as f64 * START_S + looks * look_s) + first_rests_s;
        let measuring: f64 = self.settings.iter().map(|at| self.round_s(pace, *at, takers)).sum();
        Duration::from_secs_f64(around + measuring * f64::from(self.rounds))
    }

    fn round_s(&self, pace: &Pace, at: f64, takers: usize) -> f64 {
        let opening_s =
            if self.test == "basic-l7" { at / pace.connections_per_second } else { 0.0 };
        // These tests also measure the direct connection, or the virtual server without a firewall, with each product.
        let measurements = match self.test {
            "fast-l4" | "waf-get" | "waf-form-1k" | "waf-form-8k" | "waf-json-8k" => 2.0,
            _ => 1.0,
        };
        let measuring_s = measurements * (self.warm_up_ms + self.measure_ms) as f64 / 1e3;
        let one = measuring_s + AROUND_MEASUREMENT_S + opening_s * (1.0 + CLOSING_SHARE);
        takers as f64 * (one + pace.resting_ms as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::report::percentiles::is_told;
    use crate::run::tests::IDLE_REQUESTS_PER_SECOND;

    const PEERS_AND_WEIR: usize = 4;

    #[test]
    fn every_extent_has_every_test_in_order() {
        let names: Vec<&str> = catalogue::TESTS.iter().map(|test| test.name).collect();
        for extent in [Extent::Smoke, Extent::Quick, Extent::Full] {
            let budgets: Vec<&str> = extent.budgets().iter().map(|budget| budget.test).collect();
            assert_eq!(budgets, names, "{}", extent.name());
            assert_eq!(Extent::of_name(extent.name()), Some(extent));
        }
    }

    #[test]
    fn extents_keep_their_promise() {
        let check = |extent: Extent, from_s: u64, to_s: u64| {
            let own = extent.budgets().iter().filter(|budget| !budget.is_extra);
            let own: Vec<Budget> = own.copied().collect();
            assert!(to_s < extent.limit().as_secs());
            let estimate = extent.estimate(&own, PEERS_AND_WEIR, true).as_secs();
            assert!((from_s..=to_s).contains(&estimate), "{}: {estimate} s", extent.name());
        };
        check(Extent::Smoke, 5, 110);
        // The remaining time is reserved for repeated rounds.
        check(Extent::Quick, 150, 280);
        check(Extent::Full, 1_800, 5_000);
    }

    #[test]
    fn what_is_timed_has_three_rounds() {
        for extent in [Extent::Quick, Extent::Full] {
            for budget in extent.budgets() {
                let test = catalogue::test(budget.test).expect("in the catalogue");
                let is_timed = test.judged.iter().any(|figure| !figure.is_counted());
                assert!(!is_timed || budget.rounds >= 3, "{}: {}", extent.name(), test.name);
                assert_eq!(counting_s(test.name).is_some(), budget.measure_ms == 0);
            }
        }
    }

    #[test]
    fn a_p99_at_rest_has_the_requests_that_it_needs() {
        for extent in [Extent::Quick, Extent::Full] {
            let is_idle = |budget: &&Budget| {
                budget.test.ends_with("p99-idle") || budget.test == "waf-2020-idle"
            };
            let budgets: Vec<&Budget> = extent.budgets().iter().filter(is_idle).collect();
            assert_eq!(budgets.len(), 3);
            for budget in budgets {
                let seconds = budget.measure_ms as f64 / 1e3;
                let requests = (seconds * IDLE_REQUESTS_PER_SECOND) as u64;
                assert!(is_told(requests, 99.0), "{}: {requests}", budget.test);
            }
        }
    }

    #[test]
    fn fewer_tests_and_products_take_less() {
        let budgets = ["basic-l7", "ramp"].map(|test| *Extent::Quick.budget(test).expect("a row"));
        let all = Extent::Quick.estimate(&budgets, 4, true);
        assert!(Extent::Quick.estimate(&budgets[1..], 4, true) < all);
        assert!(Extent::Quick.estimate(&budgets, 2, true) < all);
        assert_eq!(Extent::Quick.estimate(&[], 4, true), Duration::ZERO);
    }

    #[test]
    fn rounds_that_are_asked_for_are_those_of_timed_tests() {
        let check = |test: &str, asked: Option<u32>, expected: u32| {
            let budget = *Extent::Full.budget(test).expect("a row");
            assert_eq!(budget.with_rounds(asked).rounds, expected, "{test}");
        };
        check("l7-requests", None, 5);
        check("l7-requests", Some(9), 9);
        check("cpu-65", Some(1), 1);
        check("instructions", Some(9), 1);
        check("system-calls", Some(9), 3);
    }
}
