//! Twice the rate that the members can serve: waiting requests must not delay requests that have a slot.

use super::features::{asking_for, with};
use super::{plain_scene, workload};
use crate::catalogue::QUEUE_CASES;
use crate::record::TestRecord;
use crate::run::extent::Budget;
use crate::run::products::{Feature, QUEUE_CONNECTIONS_MAX};
use crate::run::rotation::{Judge, Stop};
use crate::run::session::Session;
use crate::run::workload::Workload;

const BODY_BYTES: u64 = 128;
const MEMBERS: usize = 8;
/// Far more connections than slots, so that a queue forms.
const CONNECTIONS: usize = 1_000;
/// Response time of a member. The paths of [`Feature::Queue`] request it.
pub(super) const DELAY_MS: u64 = 10;
/// Offered share of the members' capacity in each case.
const OFFERED_SHARES: [f64; 2] = [1.0, 2.0];
const _: () = assert!(OFFERED_SHARES.len() == QUEUE_CASES.len());

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let members: Vec<_> = session.origin.members.iter().take(MEMBERS).copied().collect();
    // Little's law: capacity = slots / response time.
    let places = members.len() * QUEUE_CONNECTIONS_MAX;
    let sustained = places as f64 * 1e3 / DELAY_MS as f64;
    record.facts.insert("sustained_requests_per_second".into(), sustained);
    let scene = with(Feature::Queue, plain_scene(test, budget, CONNECTIONS));
    let scene = crate::run::lineup::Scene { members: Some(&members), ..scene };
    let mut live = session.open(test, scene, None, record)?;
    for &at in budget.settings {
        let rate = sustained * OFFERED_SHARES[at as usize];
        let workload = Workload {
            rate: Some(rate),
            ..asking_for(Feature::Queue, workload(budget, BODY_BYTES, CONNECTIONS))
        };
        let label = QUEUE_CASES[at as usize].to_owned();
        let setting = live.setting(at, label, Judge::AnyRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}
