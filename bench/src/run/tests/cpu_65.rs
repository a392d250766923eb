//! Transactions at 65% CPU: the highest rate at which the product's core is at most that busy.
//!
//! The busy share of a core rises unevenly with the rate: at higher rates a product takes more requests at a time, and
//! over part of the range its core is hardly busier. So many rates of that range match "65% busy". The search finds the
//! highest of these rates, from above. `full` repeats it in every round, so the spread of the results includes the
//! error of the search.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{CONNECTIONS, plain_scene, workload};
use crate::record::{Cost, TestRecord};
use crate::run::extent::Budget;
use crate::run::rotation::{Failure, Judge, Stop};
use crate::run::session::{Capacities, Capacity, Live, Session};
use crate::run::workload::Workload;

const BODY_BYTES: u64 = 128;
const BUSY_SHARE: f64 = 0.65;
/// Step of the search downwards, as a share of the capacity.
const STEP_SHARE: f64 = 0.1;
/// The search ends when a rate that is low enough and a rate that is too high differ by this share of the capacity.
const RESOLUTION_SHARE: f64 = 0.015;

/// Maximum number of measurements that verify a found rate and lower it.
const VERIFICATIONS_MAX: u32 = 3;

/// The search for the highest rate at which a product's core is at most [`BUSY_SHARE`] busy.
#[derive(Debug)]
struct Seeker {
    capacity: f64,
    /// The highest rate known to be low enough.
    low: Option<f64>,
    /// The lowest rate known to be too high; at first the capacity.
    high: f64,
}

/// The next step of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Next {
    /// Measure the core's busy share at this rate.
    Look(f64),
    /// The search is complete: this is the rate.
    Found(f64),
    /// The search is complete: the core is too busy at every tried rate.
    Nowhere,
}

impl Seeker {
    /// The first measurement is one step below the capacity, because at its capacity a product has a queue.
    fn new(capacity: Capacity) -> Self {
        Self { capacity: capacity.per_second, low: None, high: capacity.per_second }
    }

    fn next(&self) -> Next {
        // Without this tolerance, rounding errors would keep ten steps of a tenth from reaching zero.
        const ROUNDING_SHARE: f64 = 1e-9;
        let step = self.capacity * STEP_SHARE;
        match self.low {
            None if self.high - step <= self.capacity * ROUNDING_SHARE => Next::Nowhere,
            None => Next::Look(self.high - step),
            // The first measured rate is low enough: even near its capacity the core is not too busy.
            Some(low) if self.high >= self.capacity => Next::Found(low),
            Some(low) if self.high - low <= self.capacity * RESOLUTION_SHARE => Next::Found(low),
            Some(low) => Next::Look((low + self.high) / 2.0),
        }
    }

    /// Records the core's busy share at a rate.
    fn learn(&mut self, rate: f64, busy_share: f64) {
        if busy_share <= BUSY_SHARE {
            self.low = Some(rate);
        } else {
            self.high = rate;
        }
    }
}

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let base = workload(budget, BODY_BYTES, CONNECTIONS);
    let scene = plain_scene(test, budget, CONNECTIONS);
    let mut live = session.open(test, scene, None, record)?;
    let capacities = live.capacities(&base, "", None, record)?;
    if live.session.pace().seeks_each_round {
        for round in 0..budget.rounds {
            let rates = seek_all(&mut live, &base, &capacities, record)?;
            for &at in budget.settings {
                let setting = live.setting_at_rates(at, Judge::OfferedRate, &base, &rates);
                live.rotate_once(setting, round, budget, record)?;
            }
        }
        return Ok(());
    }
    let rates = seek_all(&mut live, &base, &capacities, record)?;
    for &at in budget.settings {
        let setting = live.setting_at_rates(at, Judge::OfferedRate, &base, &rates);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}

fn seek_all(
    live: &mut Live<'_, '_>,
    base: &Workload,
    capacities: &Capacities,
    record: &mut TestRecord,
) -> Result<BTreeMap<String, f64>, Stop> {
    let mut rates = BTreeMap::new();
    for product in live.products() {
        let Some(capacity) = capacities.get(&product) else { continue };
        match seek(live, &product, *capacity, base) {
            Ok(rate) => {
                rates.insert(product, rate);
            }
            Err(Failure::Stop(stop)) => return Err(stop),
            Err(Failure::Dead(reason) | Failure::Unable(reason)) => {
                live.leave_out(&product, None, &reason, record);
            }
        }
    }
    Ok(rates)
}

fn seek(
    live: &mut Live<'_, '_>,
    product: &str,
    capacity: Capacity,
    base: &Workload,
) -> Result<f64, Failure> {
    let mut seeker = Seeker::new(capacity);
    let measure = Duration::from_millis(live.session.pace().calibration_ms);
    loop {
        match seeker.next() {
            Next::Found(rate) => {
                return verified(rate, &mut |rate| {
                    let workload = Workload { rate: Some(rate), ..base.clone() };
                    Ok(busy_share(&live.look(product, &workload)?.cost))
                });
            }
            Next::Nowhere => {
                let text = "its core was more than 65% busy at every rate that was tried";
                return Err(Failure::Unable(text.into()));
            }
            Next::Look(rate) => {
                let workload = Workload { rate: Some(rate), measure, ..base.clone() };
                seeker.learn(rate, busy_share(&live.look(product, &workload)?.cost));
            }
        }
    }
}

/// Verifies a found rate by measurements as long as those of the test. Lowers the rate in proportion while the core is
/// too busy, [`VERIFICATIONS_MAX`] times at most.
fn verified(
    mut rate: f64,
    look: &mut dyn FnMut(f64) -> Result<f64, Failure>,
) -> Result<f64, Failure> {
    for _ in 0..VERIFICATIONS_MAX {
        let busy_share = look(rate)?;
        if busy_share <= BUSY_SHARE {
            break;
        }
        rate *= BUSY_SHARE / busy_share;
    }
    Ok(rate)
}

fn busy_share(cost: &Cost) -> f64 {
    cost.busy_s / cost.elapsed_s / cost.cores as f64
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    const CAPACITY: f64 = 40_000.0;
    const LOOKS_MAX: usize = 10;

    /// Runs the search to its end. Returns the rate, if any, and the number of measurements.
    fn sought(busy_share: &dyn Fn(f64) -> f64) -> (Option<f64>, usize) {
        let mut seeker = Seeker::new(Capacity { per_second: CAPACITY, busy_share: 1.0 });
        for looks in 0.. {
            match seeker.next() {
                Next::Found(rate) => return (Some(rate), looks),
                Next::Nowhere => return (None, looks),
                Next::Look(rate) => seeker.learn(rate, busy_share(rate / CAPACITY)),
            }
        }
        unreachable!("the loop has no end of its own")
    }

    #[test]
    fn the_highest_rate_is_found() {
        let check = |busy_share: &dyn Fn(f64) -> f64, expected_share: f64| {
            let (rate, looks) = sought(busy_share);
            let share = rate.expect("a rate") / CAPACITY;
            assert!(busy_share(share) <= BUSY_SHARE, "{share}");
            let short = expected_share - share;
            assert!((-1e-9..=RESOLUTION_SHARE).contains(&short), "{share} in {looks} looks");
            assert!(looks <= LOOKS_MAX, "{looks} looks");
        };
        // The cost is constant; falls with the rate, as with batches; has a fixed part.
        check(&|share| share, 0.65);
        check(&|share| share.sqrt(), 0.65 * 0.65);
        check(&|share| 0.2 + 0.8 * share, 0.5625);
        // The busy share is constant or even falls over a long range: the highest rate counts.
        check(&|share| if share > 0.85 { 1.0 } else { 0.64 }, 0.85);
        check(&|share| if (0.2..0.5).contains(&share) || share > 0.72 { 0.7 } else { 0.6 }, 0.72);
    }

    #[test]
    fn searches_end_where_there_is_no_such_rate() {
        // The load cannot make the core busy enough: the result is the first measured rate.
        let (rate, looks) = sought(&|_| 0.5);
        assert!((rate.expect("a rate") - 0.9 * CAPACITY).abs() < 1.0);
        assert_eq!(looks, 1);
        let (rate, looks) = sought(&|_| 0.9);
        assert_eq!((rate, looks), (None, 9));
    }

    #[test]
    fn a_rate_that_turns_out_too_high_is_lowered() {
        let check = |busy_shares: &[f64], expected: f64, expected_looks: usize| {
            let mut looks = Vec::new();
            let rate = verified(1_000.0, &mut |rate| {
                looks.push(rate);
                Ok(busy_shares[looks.len() - 1])
            });
            let rate = rate.expect("nothing failed");
            assert!((rate - expected).abs() < 1e-6, "{rate} after {looks:?}");
            assert_eq!(looks.len(), expected_looks, "{looks:?}");
        };
        check(&[0.65], 1_000.0, 1);
        check(&[0.1], 1_000.0, 1);
        check(&[0.8, 0.64], 812.5, 2);
        // The rate stays too high: it is also lowered after the last measurement.
        check(&[0.7, 0.7, 0.7], 1_000.0 * (0.65_f64 / 0.7).powi(3), 3);
        let failed = verified(1_000.0, &mut |_| Err(Failure::Unable("no good response".into())));
        assert!(matches!(failed, Err(Failure::Unable(_))));
    }
}
