//! Objects of several sizes at one rate.

use super::{plain_scene, size, workload};
use crate::record::TestRecord;
use crate::run::extent::{Budget, Extent};
use crate::run::rotation::{Judge, Stop};
use crate::run::session::{Session, slowest_and_best};
use crate::run::workload::Workload;

/// Far more than are ever busy, and few enough for the products that are one process: the reports had 24,000
/// on machines with higher limits.
const CONNECTIONS: usize = 1_000;
const CONNECTIONS_SMOKE: usize = 100;
/// Of what the slowest product sustains at the largest size.
const RATE_SHARE: f64 = 0.4;

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let connections = if session.extent == Extent::Smoke { CONNECTIONS_SMOKE } else { CONNECTIONS };
    let scene = plain_scene(test, budget, connections);
    let mut live = session.open(test, scene, None, record)?;
    let largest = budget.settings.iter().fold(0.0_f64, |largest, at| largest.max(*at));
    let hardest = workload(budget, largest as u64, connections);
    let capacities = live.capacities(&hardest, "", None, record)?;
    let Some((slowest, _)) = slowest_and_best(&capacities) else { return Ok(()) };
    let rate = slowest * RATE_SHARE;
    record.facts.insert("offered_requests_per_second".into(), rate);
    for &at in budget.settings {
        let workload = Workload { rate: Some(rate), ..workload(budget, at as u64, connections) };
        let setting = live.setting(at, size(at), Judge::OfferedRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}
