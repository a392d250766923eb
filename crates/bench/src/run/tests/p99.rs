//! P99 latency, idle and stressed.

use super::{CONNECTIONS, keep_capacities, plain_scene, size, workload};
use crate::record::TestRecord;
use crate::run::extent::Budget;
use crate::run::rotation::{Judge, Stop};
use crate::run::session::{Session, slowest_and_best};
use crate::run::workload::Workload;

const IDLE_REQUESTS_PER_SECOND: f64 = 100.0;
/// Few enough that each of them is used several times a second.
const IDLE_CONNECTIONS: usize = 10;
/// Of what the slowest product sustains.
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

pub(super) fn stressed(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let scene = plain_scene(test, budget, CONNECTIONS);
    let mut live = session.open(test, scene, None, record)?;
    for &at in budget.settings {
        let workload = workload(budget, at as u64, CONNECTIONS);
        let capacities = live.capacities(&workload, None, record)?;
        let of = format!("_at_{at}_bytes");
        keep_capacities(record, &of, &capacities);
        let Some((slowest, _)) = slowest_and_best(&capacities) else { return Ok(()) };
        let rate = slowest * STRESSED_SHARE;
        record.facts.insert(format!("slowest{of}_requests_per_second"), slowest);
        record.facts.insert(format!("offered{of}_requests_per_second"), rate);
        let workload = Workload { rate: Some(rate), ..workload };
        let label = format!("{} at {rate:.0}/s", size(at));
        let setting = live.setting(at, label, Judge::OfferedRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}
