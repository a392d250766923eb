use super::*;
use weir_testing::Random;

fn rate(requests: u32, period_ms: u32, burst: u32) -> Rate {
    Rate::new(requests, period_ms, burst).unwrap()
}

/// How many of `requests` pass at one instant.
fn passed_at_once(word: &mut u64, now_us: u64, rate: &Rate, requests: u64) -> u64 {
    let mut passed = 0;
    for _ in 0..requests {
        if let Admission::Pass { word: next } = admit(*word, now_us, rate) {
            *word = next;
            passed += 1;
        }
    }
    passed
}

#[test]
fn a_burst_passes_and_then_the_rate() {
    let ten = rate(10, 1_000, 5);
    let mut word = 0;
    let start_us = 1_000_000_000;
    assert_eq!(passed_at_once(&mut word, start_us, &ten, 100), 5);
    assert_eq!(admit(word, start_us, &ten), Admission::Refuse { retry_after_us: 100_000 });
    assert_eq!(admit(word, start_us + 99_999, &ten), Admission::Refuse { retry_after_us: 1 });
    assert_eq!(passed_at_once(&mut word, start_us + 100_000, &ten, 9), 1);
    assert_eq!(passed_at_once(&mut word, start_us + 400_000, &ten, 9), 3);
    assert_eq!(passed_at_once(&mut word, start_us + 60_000_000, &ten, 100), 5);
}

#[test]
fn a_burst_of_one_takes_a_turns_requests_at_high_rates() {
    assert_eq!(rate(10, 1_000, 1).burst(), 1);
    assert_eq!(rate(20_000, 1_000, 1).burst(), 41);
    assert_eq!(rate(20_000, 1_000, 100).burst(), 100);
    assert_eq!(rate(1_000_000, 1_000, 1).burst(), 2_001);
}

#[test]
fn delays_space_requests_out() {
    let ten = rate(10, 1_000, 1).delaying(250_000).unwrap();
    let early_us = TOLERANCE_US_MIN;
    let mut word = 0;
    let mut outcomes = Vec::new();
    for _ in 0..5 {
        let admission = admit(word, 1_000_000, &ten);
        word = admission.word().unwrap_or(word);
        outcomes.push(match admission {
            Admission::Pass { .. } => "pass".to_owned(),
            Admission::Delay { until_us, .. } => format!("{}", until_us - 1_000_000),
            Admission::Refuse { retry_after_us } => format!("after {retry_after_us}"),
        });
    }
    let second = (100_000 - early_us).to_string();
    let third = (200_000 - early_us).to_string();
    let refused = format!("after {}", 300_000 - early_us - 250_000);
    assert_eq!(outcomes, ["pass", &second, &third, &refused, &refused]);
}

#[test]
fn limits_that_cannot_be() {
    use RateError::*;
    for (requests, period_ms, burst, error) in [
        (0, 1_000, 1, Requests),
        (PER_SECOND_MAX + 1, 1_000, 1, Requests),
        (PER_SECOND_MAX, 999, 1, Requests),
        (1, 0, 1, Period),
        (1, PERIOD_MS_MAX + 1, 1, Period),
        (1, 1_000, 0, Burst),
        (1, PERIOD_MS_MAX, 32, Burst),
        (1, 1_000, u32::MAX, Burst),
    ] {
        assert_eq!(
            Rate::new(requests, period_ms, burst),
            Err(error),
            "{requests} {period_ms} {burst}"
        );
    }
    assert_eq!(rate(1, 1_000, 1).delaying(TOLERANCE_US_MAX + 1), Err(Delay));
    assert!(Rate::new(1, PERIOD_MS_MAX, 31).is_ok());
}

#[test]
fn a_word_fits_56_bits_for_ten_years() {
    let slowest = rate(1, PERIOD_MS_MAX, 31).delaying(TOLERANCE_US_MAX).unwrap();
    let mut word = 0;
    let ten_years_us = 10 * 366 * 24 * 3_600 * 1_000_000;
    while let Some(next) = admit(word, ten_years_us, &slowest).word() {
        word = next;
    }
    assert!(word < (1 << 56) - 1);
}

/// After a reload with a higher rate, no client pays for debts under the lower one.
#[test]
fn a_word_of_a_slower_rate_is_forgotten() {
    let slow = rate(1, PERIOD_MS_MAX, 10);
    let fast = rate(10, 1_000, 5);
    let mut word = 0;
    assert_eq!(passed_at_once(&mut word, 1_000_000, &slow, 100), 10);
    assert_eq!(passed_at_once(&mut word, 1_000_000, &fast, 100), 1);
    assert_eq!(passed_at_once(&mut word, 1_100_000, &fast, 100), 1);
}

#[test]
fn times_round_up() {
    assert_eq!(retry_after_s(0), 1);
    assert_eq!(retry_after_s(1_000_000), 1);
    assert_eq!(retry_after_s(1_000_001), 2);
    assert_eq!(forgotten_us(0), 0);
    assert_eq!(forgotten_us(TICKS_PER_US + 1), 2);
}

/// Cores with clocks of their own, more offered than passes.
struct Cores {
    word: u64,
    skew_us: Vec<u64>,
    /// When requests passed, by the true clock.
    passed_us: Vec<u64>,
}

impl Cores {
    fn offer(&mut self, random: &mut Random, true_us: u64, rate: &Rate) {
        let skew_us = self.skew_us[random.below(self.skew_us.len())];
        if let Admission::Pass { word } = admit(self.word, true_us + skew_us, rate) {
            self.word = word;
            self.passed_us.push(true_us);
        }
    }
}

/// In every second the rate holds within 5% after the first burst, and every burst stays within the
/// module's bound.
#[test]
fn several_cores_keep_to_the_rate() {
    const SKEW_US_MAX: u64 = 1_000;
    const SECONDS: u64 = 3;
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let per_second = [100, 1_000, 33_333, 70_000][random.below(4)];
        let burst = [1, 50, per_second / 10][random.below(3)];
        let limit = rate(per_second, 1_000, burst);
        let cores = 1 + random.below(8);
        let skew_us: Vec<u64> =
            (0..cores).map(|_| random.below(SKEW_US_MAX as usize + 1) as u64).collect();
        let mut pool = Cores { word: 0, skew_us, passed_us: Vec::new() };
        // 1.5 to 3 times the rate, at random times.
        let offered_per_second = u64::from(per_second) * (150 + random.below(150) as u64) / 100;
        let start_us = 5_000_000;
        let mut offers: Vec<u64> = (0..offered_per_second * SECONDS)
            .map(|_| start_us + random.next() % (SECONDS * 1_000_000))
            .collect();
        offers.sort_unstable();
        for offer in offers {
            pool.offer(&mut random, offer, &limit);
        }
        check_bursts(seed, &pool, &limit, SKEW_US_MAX);
        let last_second = start_us + (SECONDS - 1) * 1_000_000;
        let in_last = pool.passed_us.iter().filter(|&&at| at >= last_second).count() as f64;
        let share = in_last / f64::from(per_second);
        assert!(share <= 1.05, "seed {seed}: {share} of {per_second}/s");
        // Without a burst, a gap between random requests is lost; bursts exist for this reason.
        assert!(share >= 0.95 || limit.burst() < 10, "seed {seed}: {share} of {per_second}/s");
    }
}

/// No stretch of time holds more than `1 + (tolerance + stretch + skew) / interval`.
fn check_bursts(seed: u64, pool: &Cores, limit: &Rate, skew_us_max: u64) {
    // In virtual time: with n passed at once the bucket falls behind by n intervals, and recovers one
    // interval per interval. The furthest it falls behind is the worst stretch.
    let mut virtual_us = 0.0_f64;
    let interval_us = limit.interval_ticks as f64 / TICKS_PER_US as f64;
    let tolerance_us = limit.tolerance_ticks as f64 / TICKS_PER_US as f64;
    for &at in &pool.passed_us {
        virtual_us = virtual_us.max(at as f64) + interval_us;
        let ahead_us = virtual_us - at as f64;
        let allowed_us = tolerance_us + interval_us + skew_us_max as f64 + 1.0;
        assert!(ahead_us <= allowed_us, "seed {seed}: {ahead_us} us ahead, {allowed_us} allowed");
    }
}

/// A million per second is kept, by workers that read the clock once in a millisecond.
#[test]
fn a_million_per_second_by_coarse_clocks() {
    let limit = rate(1_000_000, 1_000, 1);
    let mut word = 0;
    let mut passed = 0;
    for turn in 0..500 {
        passed += passed_at_once(&mut word, 1_000_000 + turn * 1_000, &limit, 1_500);
    }
    assert!((475_000..=525_000).contains(&passed), "{passed} in half a second");
}

#[test]
fn room_is_what_passes_at_once() {
    let mut random = Random::new(3);
    for _ in 0..2_000 {
        let limit = rate(1 + random.below(50) as u32, 1_000, 1 + random.below(20) as u32);
        let limit = match random.below(2) {
            0 => limit,
            _ => limit.delaying(500_000).unwrap(),
        };
        let now_us = 1_000_000_000;
        let mut word = 0;
        for _ in 0..random.below(30) {
            let before_us = now_us - random.below(3_000_000) as u64;
            word = admit(word, before_us, &limit).word().unwrap_or(word);
        }
        let expected = room(word, now_us, &limit);
        assert_eq!(passed_at_once(&mut word, now_us, &limit, 1_000), expected, "{limit:?}");
    }
    // The debt of a slower rate counts as a used burst for both.
    let (slow, fast) = (rate(1, 3_600_000, 5), rate(1_000, 1_000, 5));
    let mut word = admit(0, 1_000_000, &slow).word().unwrap();
    let expected = room(word, 1_000_000, &fast);
    assert_eq!(passed_at_once(&mut word, 1_000_000, &fast, 100), expected);
}
