//! Cost of requests at one rate for all products: of plain requests (requests per CPU second) and of those that need
//! features of an ADC.

use super::{CONNECTIONS, features, plain_scene, workload};
use crate::record::TestRecord;
use crate::run::extent::Budget;
use crate::run::rotation::{Judge, Stop};
use crate::run::session::{Session, slowest_and_best};
use crate::run::workload::Workload;

const BODY_BYTES: u64 = 128;
/// Share of the slowest product's capacity: a usual load in production.
const RATE_SHARE: f64 = 0.65;

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let feature = features::of_test(test);
    let base = features::asking_for(feature, workload(budget, BODY_BYTES, CONNECTIONS));
    let scene = features::with(feature, plain_scene(test, budget, CONNECTIONS));
    let mut live = session.open(test, scene, None, record)?;
    let capacities = live.capacities(&base, "", None, record)?;
    let Some((slowest, _)) = slowest_and_best(&capacities) else { return Ok(()) };
    let rate = slowest * RATE_SHARE;
    record.facts.insert("offered_requests_per_second".into(), rate);
    for &at in budget.settings {
        let workload = Workload { rate: Some(rate), ..base.clone() };
        let mut setting = live.setting(at, String::new(), Judge::OfferedRate, &workload);
        features::bring_cookies(&mut live, feature, &mut setting, record)?;
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}
