//! Transactions at 65% CPU: the highest rate at which the product's core is at most that busy.
//!
//! How busy a core is rises with the rate, but not evenly: a product that is asked more often takes more
//! requests at a time, and over a part of the way its core is hardly busier. So a rate "at which it is 65%
//! busy" may be anywhere on such a part. The highest one is looked for from above, in every round anew
//! where there is time for it: how well it can be found is then part of the spread.

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
/// Steps on the way down, of what the product answers at most.
const STEP_SHARE: f64 = 0.1;
/// The rate is found when those on both sides of it are this near, likewise.
const RESOLUTION_SHARE: f64 = 0.015;

/// Looks that lower a rate which turns out to be too high.
const VERIFICATIONS_MAX: u32 = 3;

/// Looks for the highest rate at which a product's core is not too busy.
#[derive(Debug)]
struct Seeker {
    capacity: f64,
    /// The highest rate known to be low enough.
    low: Option<f64>,
    /// The lowest rate known to be too high, or what nobody shall be asked for.
    high: f64,
}

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Next {
    /// To look how busy the core is at this rate.
    Look(f64),
    /// Nothing more: it is this rate.
    Found(f64),
    /// Nothing more: the core is too busy at the lowest rate, too.
    Nowhere,
}

impl Seeker {
    /// At its capacity itself a product has a queue; so the first step down is the first look.
    fn new(capacity: Capacity) -> Self {
        Self { capacity: capacity.per_second, low: None, high: capacity.per_second }
    }

    fn next(&self) -> Next {
        // So that ten steps of a tenth reach zero.
        const ROUNDING_SHARE: f64 = 1e-9;
        let step = self.capacity * STEP_SHARE;
        match self.low {
            None if self.high - step <= self.capacity * ROUNDING_SHARE => Next::Nowhere,
            None => Next::Look(self.high - step),
            // The first look: the core is never so busy.
            Some(low) if self.high >= self.capacity => Next::Found(low),
            Some(low) if self.high - low <= self.capacity * RESOLUTION_SHARE => Next::Found(low),
            Some(low) => Next::Look((low + self.high) / 2.0),
        }
    }

    /// Learns how busy the core is at a rate.
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

/// The rate that was found, or a lower one: at a look as long as the measurement itself, which gives the
/// core's busy share, it must not be too high.
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

    /// Looks until there is nothing more to look at; the result and the looks.
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
        // The same cost at every rate; cheaper in batches; a fixed part.
        check(&|share| share, 0.65);
        check(&|share| share.sqrt(), 0.65 * 0.65);
        check(&|share| 0.2 + 0.8 * share, 0.5625);
        // Flat, and even falling, over a long part of the way: the highest counts.
        check(&|share| if share > 0.85 { 1.0 } else { 0.64 }, 0.85);
        check(&|share| if (0.2..0.5).contains(&share) || share > 0.72 { 0.7 } else { 0.6 }, 0.72);
    }

    #[test]
    fn searches_end_where_there_is_no_such_rate() {
        // The load cannot make it so busy: nearly all that it can do, after one look.
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
        // It stays too high: lowered after the last look, too.
        check(&[0.7, 0.7, 0.7], 1_000.0 * (0.65_f64 / 0.7).powi(3), 3);
        let failed = verified(1_000.0, &mut |_| Err(Failure::Unable("no good response".into())));
        assert!(matches!(failed, Err(Failure::Unable(_))));
    }
}
