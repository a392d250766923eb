//! Objects of several sizes, all at one rate.

use super::{of_size, plain_scene, size, workload};
use crate::record::TestRecord;
use crate::run::extent::{Budget, Extent};
use crate::run::lineup::Scene;
use crate::run::rotation::{Judge, Stop};
use crate::run::session::{Session, slowest_and_best};
use crate::run::workload::Workload;

/// More connections than are ever busy, but few enough for products with a single process. The reports had 24,000
/// connections, on machines with higher limits.
const CONNECTIONS: usize = 1_000;
const CONNECTIONS_SMOKE: usize = 100;
/// Share of the slowest product's capacity at the largest size.
const RATE_SHARE: f64 = 0.4;

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let connections = if session.extent == Extent::Smoke { CONNECTIONS_SMOKE } else { CONNECTIONS };
    let largest = budget.settings.iter().fold(0.0_f64, |largest, at| largest.max(*at));
    let mut rate = None;
    // The largest size comes first, because it determines the rate.
    for &at in budget.settings.iter().rev() {
        let name = of_size(test, at);
        let scene = Scene { object_bytes: at as u64, ..plain_scene(&name, budget, connections) };
        let mut live = session.open(test, scene, Some(at), record)?;
        if at == largest {
            let hardest = workload(budget, at as u64, connections);
            let capacities = live.capacities(&hardest, "", Some(at), record)?;
            rate = slowest_and_best(&capacities).map(|(slowest, _)| slowest * RATE_SHARE);
            record.facts.extend(rate.map(|rate| ("offered_requests_per_second".into(), rate)));
        }
        let Some(rate) = rate else { return Ok(()) };
        let workload = Workload { rate: Some(rate), ..workload(budget, at as u64, connections) };
        let setting = live.setting(at, size(at), Judge::OfferedRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}
