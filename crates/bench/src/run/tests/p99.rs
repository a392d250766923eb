//! P99 latency, idle, stressed and near the limit.

use super::{CONNECTIONS, grouped, plain_scene, size, workload};
use crate::record::TestRecord;
use crate::run::extent::Budget;
use crate::run::rotation::{Judge, Stop, omit};
use crate::run::session::{Capacities, Session, slower_of_weir_and_best_peer, slowest_and_best};
use crate::run::workload::Workload;

const IDLE_REQUESTS_PER_SECOND: f64 = 100.0;
/// Few enough that each of them is used several times a second.
const IDLE_CONNECTIONS: usize = 10;
/// Of what is sustained.
const STRESSED_SHARE: f64 = 0.95;

pub(super) fn idle(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let scene = plain_scene(test, budget, IDLE_CONNECTIONS);
    let mut live = session.open(test, scene, None, record)?;
    for &at in budget.settings {
        let workload = Workload {
            rate: Some(IDLE_REQUESTS_PER_SECOND),
            ..workload(budget, at as u64, IDLE_CONNECTIONS)
        };
        let setting = live.setting(at, size(at), Judge::OfferedRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}

/// At what the slowest product still sustains: every product takes part.
pub(super) fn stressed(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let slowest =
        |capacities: &Capacities| slowest_and_best(capacities).map(|(slowest, _)| slowest);
    under_load(session, test, budget, &slowest, record)
}

/// At what the slower of weir and its best peer still sustains; who sustains less is not asked.
pub(super) fn near_limit(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    under_load(session, test, budget, &slower_of_weir_and_best_peer, record)
}

fn under_load(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    sustained: &dyn Fn(&Capacities) -> Option<f64>,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let scene = plain_scene(test, budget, CONNECTIONS);
    let mut live = session.open(test, scene, None, record)?;
    for &at in budget.settings {
        let workload = workload(budget, at as u64, CONNECTIONS);
        let of = format!("_at_{at}_bytes");
        let capacities = live.capacities(&workload, &of, None, record)?;
        let Some(sustained) = sustained(&capacities) else { return Ok(()) };
        let rate = sustained * STRESSED_SHARE;
        record.facts.insert(format!("sustained{of}_requests_per_second"), sustained);
        record.facts.insert(format!("offered{of}_requests_per_second"), rate);
        let workload = Workload { rate: Some(rate), ..workload };
        let label = format!("{} at {rate:.0}/s", size(at));
        let mut setting = live.setting(at, label, Judge::OfferedRate, &workload);
        setting.workloads.retain(|(product, _)| {
            let capacity = capacities.get(product).map_or(0.0, |capacity| capacity.per_second);
            let takes_part = capacity >= sustained;
            if !takes_part {
                let (capacity, rate) = (grouped(capacity), grouped(rate));
                let reason = format!("it answers {capacity}/s at most, and {rate}/s are offered");
                omit(record, product, Some(at), reason);
            }
            takes_part
        });
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}
