//! P99 latency, idle, stressed and near the limit.

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

/// Rate of the tests at rest.
pub const IDLE_REQUESTS_PER_SECOND: f64 = 100.0;
/// Each connection is used several times a second.
const IDLE_CONNECTIONS: usize = 10;
/// Share of the sustained rate.
const STRESSED_SHARE: f64 = 0.95;
/// A rate near the limit that is not kept is lowered to this share, so often at most.
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

/// Starts the products, fitted to objects of that size.
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

/// At what the slowest product still sustains: every product takes part.
pub(super) fn stressed(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    under_load(session, test, budget, Limit::OfTheSlowest, record)
}

/// At what the slower of weir and its best peer still sustains; who sustains less is not asked.
pub(super) fn near_limit(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    under_load(session, test, budget, Limit::OfWeirAndBestPeer, record)
}

/// Whose limit is gone near to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    OfTheSlowest,
    /// Those that are asked show first that they keep the rate: as fast as answered a product does more than it
    /// keeps when requests come by the clock, and near the limit that would be the whole result.
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

/// The given rate, or the first lower rate that products keep.
fn lowered(mut rate: f64, is_kept: &mut dyn FnMut(f64) -> Result<bool, Stop>) -> Result<f64, Stop> {
    for _ in 0..LOWERINGS_MAX {
        if is_kept(rate)? {
            break;
        }
        rate *= LOWERING_SHARE;
    }
    Ok(rate)
}

/// Whether all of these but yardsticks keep a rate. One that cannot even be looked at is no reason to lower it:
/// the rotation finds that, too, and records it.
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
