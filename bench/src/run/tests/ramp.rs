//! From idle to beyond saturation, in fractions of the best product's capacity.

use super::{CONNECTIONS, grouped, plain_scene, workload};
use crate::record::TestRecord;
use crate::run::extent::Budget;
use crate::run::rotation::{Judge, Stop};
use crate::run::session::{Session, slowest_and_best};
use crate::run::workload::Workload;

const BODY_BYTES: u64 = 128;

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let base = workload(budget, BODY_BYTES, CONNECTIONS);
    let mut live = session.open(test, plain_scene(test, budget, CONNECTIONS), None, record)?;
    let capacities = live.capacities(&base, "", None, record)?;
    let Some((slowest, best)) = slowest_and_best(&capacities) else { return Ok(()) };
    record.facts.insert("slowest_requests_per_second".into(), slowest);
    record.facts.insert("best_requests_per_second".into(), best);
    for &share in budget.settings {
        let rate = (best * share).round().max(1.0);
        let label = format!("{}/s ({:.0}% of the best)", grouped(rate), share * 100.0);
        let workload = Workload { rate: Some(rate), ..base.clone() };
        let setting = live.setting(rate, label, Judge::AnyRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}
