//! Transactions at 65% CPU: finds each product's rate, then measures there.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{CONNECTIONS, keep_capacities, plain_scene, workload};
use crate::record::TestRecord;
use crate::run::extent::Budget;
use crate::run::rotation::{Failure, Judge, Stop};
use crate::run::session::{Capacity, Live, Session};
use crate::run::workload::Workload;

const BODY_BYTES: u64 = 128;
const BUSY_SHARE: f64 = 0.65;
/// A rate is found when the core is this near.
const BUSY_TOLERANCE: f64 = 0.015;
/// Looks at most.
const LOOKS_MAX: usize = 5;
/// Of what the product answers at most: beyond, a queue would be measured.
const CAPACITY_SHARE_MAX: f64 = 0.9;

/// Finds the rate at which a product's core is so busy.
#[derive(Debug)]
struct Seeker {
    rate_max: f64,
    /// The highest rate known to be too low, and its busy share.
    low: (f64, f64),
    /// The lowest rate known to be too high, and its busy share.
    high: Option<(f64, f64)>,
}

impl Seeker {
    fn new(capacity: Capacity) -> Self {
        let rate_max = capacity.per_second * CAPACITY_SHARE_MAX;
        let high = (capacity.busy_share > BUSY_SHARE)
            .then_some((capacity.per_second, capacity.busy_share));
        Self { rate_max, low: (0.0, 0.0), high }
    }

    /// The rate to look at.
    fn rate(&self) -> f64 {
        let (low_rate, low_share) = self.low;
        let rate = match self.high {
            Some((rate, share)) if share > low_share => {
                low_rate + (rate - low_rate) * (BUSY_SHARE - low_share) / (share - low_share)
            }
            Some((rate, _)) => (low_rate + rate) / 2.0,
            None if low_share > 0.0 => low_rate * BUSY_SHARE / low_share,
            None => self.rate_max,
        };
        rate.min(self.rate_max)
    }

    /// Learns what a rate costs; true when there is nothing more to learn.
    fn learn(&mut self, rate: f64, busy_share: f64) -> bool {
        if busy_share < BUSY_SHARE {
            self.low = (rate, busy_share);
        } else {
            self.high = Some((rate, busy_share));
        }
        let is_at_end = busy_share < BUSY_SHARE && rate >= self.rate_max;
        (busy_share - BUSY_SHARE).abs() <= BUSY_TOLERANCE || is_at_end
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
    let mut live = session.open(test, scene, budget.settings, record)?;
    let capacities = live.capacities(&base, budget.settings, record)?;
    keep_capacities(record, "", &capacities);
    let rates = seek_all(&mut live, &base, &capacities, budget, record)?;
    for &at in budget.settings {
        let mut setting = live.setting(at, String::new(), Judge::OfferedRate, &base);
        for (product, workload) in &mut setting.workloads {
            workload.rate = rates.get(product).copied();
        }
        setting.workloads.retain(|(_, workload)| workload.rate.is_some());
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}

fn seek_all(
    live: &mut Live<'_, '_>,
    base: &Workload,
    capacities: &BTreeMap<String, Capacity>,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<BTreeMap<String, f64>, Stop> {
    let mut rates = BTreeMap::new();
    for (product, capacity) in capacities {
        match seek(live, product, *capacity, base) {
            Ok(rate) => {
                record.facts.insert(format!("offered_{product}_requests_per_second"), rate);
                rates.insert(product.clone(), rate);
            }
            Err(Failure::Stop(stop)) => return Err(stop),
            Err(Failure::Dead(reason) | Failure::Unable(reason)) => {
                live.leave_out(product, budget.settings, &reason, record);
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
    let mut rate = seeker.rate();
    for _ in 0..LOOKS_MAX {
        let workload = Workload { rate: Some(rate), measure, ..base.clone() };
        let sample = live.look(product, &workload)?;
        let cost = &sample.cost;
        if seeker.learn(rate, cost.busy_s / cost.elapsed_s / cost.cores as f64) {
            return Ok(rate);
        }
        rate = seeker.rate();
    }
    Ok(rate)
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    /// Looks until found; the rate and its busy share.
    fn found(capacity: f64, busy_share: impl Fn(f64) -> f64) -> (f64, f64, usize) {
        let full = Capacity { per_second: capacity, busy_share: busy_share(capacity) };
        let mut seeker = Seeker::new(full);
        for looks in 1..=LOOKS_MAX {
            let rate = seeker.rate();
            if seeker.learn(rate, busy_share(rate)) {
                return (rate, busy_share(rate), looks);
            }
        }
        let rate = seeker.rate();
        (rate, busy_share(rate), LOOKS_MAX + 1)
    }

    #[test]
    fn the_rate_is_found() {
        let check = |busy_share: &dyn Fn(f64) -> f64| {
            let (rate, share, looks) = found(40_000.0, busy_share);
            assert!((share - BUSY_SHARE).abs() < 0.03, "{rate}: {share} in {looks}");
        };
        // The same cost at every rate; cheaper in batches; a fixed part.
        check(&|rate| rate / 40_000.0);
        check(&|rate| (rate / 40_000.0).sqrt());
        check(&|rate| 0.2 + 0.8 * rate / 40_000.0);
        check(&|rate| (rate / 40_000.0).powf(1.3));
    }

    #[test]
    fn a_product_that_the_load_cannot_make_so_busy_gets_the_highest_rate() {
        let (rate, _, looks) = found(40_000.0, |rate| 0.5 * rate / 40_000.0);
        assert!((rate - 36_000.0).abs() < 1.0, "{rate}");
        assert_eq!(looks, 1);
    }
}
