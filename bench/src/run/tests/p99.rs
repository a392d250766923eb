//! P99 latency: idle, stressed and near the limit.

use super::{CONNECTIONS, grouped, of_size, plain_scene, size, workload};
use crate::catalogue::is_yardstick;
use crate::load::KEPT_SHARE_MIN;
use crate::record::TestRecord;
use crate::run::extent::Budget;
use crate::run::lineup::Scene;
use crate::run::rotation::{Failure, Judge, Stop, omit};
use crate::run::session::{
    Capacities, Live, Session, slower_of_weir_and_best_peer, slowest_and_best,
};
use crate::run::workload::Workload;

/// Rate of the idle tests.
pub const IDLE_REQUESTS_PER_SECOND: f64 = 100.0;
/// Few connections, so that each is used several times a second.
const IDLE_CONNECTIONS: usize = 10;
/// Offered share of the limiting capacity.
const STRESSED_SHARE: f64 = 0.95;
/// A rate near the limit that is not kept is multiplied by this, [`LOWERINGS_MAX`] times at most.
const LOWERING_SHARE: f64 = 0.9;
const LOWERINGS_MAX: usize = 5;

pub(super) fn idle(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    for &at in budget.settings {
        let mut live = open(session, (test, at), budget, IDLE_CONNECTIONS, record)?;
        let workload = Workload {
            rate: Some(IDLE_REQUESTS_PER_SECOND),
            ..workload(budget, at as u64, IDLE_CONNECTIONS)
        };
        let setting = live.setting(at, size(at), Judge::OfferedRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}

/// Starts the products, configured for objects of this size.
fn open<'s, 'a>(
    session: &'s mut Session<'a>,
    (test, at): (&'static str, f64),
    budget: &Budget,
    connections: usize,
    record: &mut TestRecord,
) -> Result<Live<'s, 'a>, Stop> {
    let name = of_size(test, at);
    let scene = Scene { object_bytes: at as u64, ..plain_scene(&name, budget, connections) };
    session.open(test, scene, Some(at), record)
}

/// Offers a rate near the slowest product's capacity. Every product takes part.
pub(super) fn stressed(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    under_load(session, test, budget, Limit::OfTheSlowest, record)
}

/// Offers a rate near the capacity of weir or its best peer, whichever is lower. Products with less capacity are
/// omitted.
pub(super) fn near_limit(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    under_load(session, test, budget, Limit::OfWeirAndBestPeer, record)
}

/// The capacity that limits the offered rate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    OfTheSlowest,
    /// Before the measurement, the products must show that they keep the rate. A closed loop yields a higher capacity
    /// than requests at fixed times do, so a rate near that capacity might only show queueing.
    OfWeirAndBestPeer,
}

impl Limit {
    fn of(self, capacities: &Capacities) -> Option<f64> {
        match self {
            Self::OfTheSlowest => slowest_and_best(capacities).map(|(slowest, _)| slowest),
            Self::OfWeirAndBestPeer => slower_of_weir_and_best_peer(capacities),
        }
    }
}

fn under_load(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    limit: Limit,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    for &at in budget.settings {
        let mut live = open(session, (test, at), budget, CONNECTIONS, record)?;
        let workload = workload(budget, at as u64, CONNECTIONS);
        let of = format!("_at_{at}_bytes");
        let capacities = live.capacities(&workload, &of, Some(at), record)?;
        let Some(sustained) = limit.of(&capacities) else { continue };
        let takers: Vec<String> = capacities
            .iter()
            .filter(|(_, capacity)| capacity.per_second >= sustained)
            .map(|(product, _)| product.clone())
            .collect();
        let mut rate = sustained * STRESSED_SHARE;
        if limit == Limit::OfWeirAndBestPeer {
            rate = lowered(rate, &mut |rate| are_keeping(&mut live, &takers, &workload, rate))?;
        }
        record.facts.insert(format!("sustained{of}_requests_per_second"), sustained);
        record.facts.insert(format!("offered{of}_requests_per_second"), rate);
        let workload = Workload { rate: Some(rate), ..workload };
        let label = format!("{} at {rate:.0}/s", size(at));
        let mut setting = live.setting(at, label, Judge::OfferedRate, &workload);
        setting.workloads.retain(|(product, _)| {
            let takes_part = is_yardstick(product) || takers.contains(product);
            if !takes_part {
                let capacity = capacities.get(product).map_or(0.0, |capacity| capacity.per_second);
                let (capacity, rate) = (grouped(capacity), grouped(rate));
                let reason = format!("a look found {capacity}/s, and {rate}/s are offered");
                omit(record, product, Some(at), reason);
            }
            takes_part
        });
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}

/// Lowers the rate until the products keep it, or [`LOWERINGS_MAX`] times.
fn lowered(mut rate: f64, is_kept: &mut dyn FnMut(f64) -> Result<bool, Stop>) -> Result<f64, Stop> {
    for _ in 0..LOWERINGS_MAX {
        if is_kept(rate)? {
            break;
        }
        rate *= LOWERING_SHARE;
    }
    Ok(rate)
}

/// Whether all products except yardsticks keep a rate. A product that fails does not lower the rate: the rotation also
/// finds the failure, and records it.
fn are_keeping(
    live: &mut Live<'_, '_>,
    products: &[String],
    workload: &Workload,
    rate: f64,
) -> Result<bool, Stop> {
    for product in products.iter().filter(|product| !is_yardstick(product)) {
        let workload = Workload { rate: Some(rate), ..workload.clone() };
        match live.look(product, &workload) {
            Ok(sample) if sample.load.kept_share().is_some_and(|kept| kept < KEPT_SHARE_MIN) => {
                return Ok(false);
            }
            Ok(_) | Err(Failure::Dead(_) | Failure::Unable(_)) => {}
            Err(Failure::Stop(stop)) => return Err(stop),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn a_rate_is_lowered_until_it_is_kept() {
        let check = |kept_below: f64, expected: f64, expected_looks: usize| {
            let mut looks = 0;
            let rate = lowered(1_000.0, &mut |rate| {
                looks += 1;
                Ok(rate < kept_below)
            });
            assert!((rate.expect("nothing failed") - expected).abs() < 1e-6);
            assert_eq!(looks, expected_looks);
        };
        check(2_000.0, 1_000.0, 1);
        check(950.0, 900.0, 2);
        check(820.0, 810.0, 3);
        check(0.0, 1_000.0 * LOWERING_SHARE.powi(LOWERINGS_MAX as i32), LOWERINGS_MAX);
        assert!(lowered(1.0, &mut |_| Err(Stop::Interrupted)).is_err());
    }
}
