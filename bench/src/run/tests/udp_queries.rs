//! UDP queries in a closed loop: a new flow for each query, and all queries on few flows.

use super::{plain_scene, workload};
use crate::catalogue::UDP_CASES;
use crate::record::TestRecord;
use crate::run::bed::SERVERS;
use crate::run::extent::{Budget, Extent};
use crate::run::lineup::Scene;
use crate::run::origin::Origin;
use crate::run::products::{Layer, Sessions};
use crate::run::rotation::{Judge, Stop};
use crate::run::session::Session;
use crate::run::workload::Workload;

const QUERY_BYTES: u16 = 48;
const ANSWER_BYTES: u64 = 128;
/// Number of concurrent flows; each has one query outstanding.
const FLOWS: usize = 64;
const FLOWS_SMOKE: usize = 8;
/// Queries per flow, and how products keep the flow, in the order of [`UDP_CASES`].
const CASES: [(Option<u64>, Sessions, &str); 2] =
    [(Some(1), Sessions::OneShot, "one-shot"), (None, Sessions::Kept, "kept")];
const _: () = assert!(CASES.len() == UDP_CASES.len());

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    if session.udp_origin.is_none() {
        let origin = Origin::start_udp(&session.laboratory, SERVERS, &session.bed, &session.store)?;
        session.udp_origin = Some(origin);
    }
    let flows = if session.extent == Extent::Smoke { FLOWS_SMOKE } else { FLOWS };
    for &at in budget.settings {
        let (queries_per_flow, sessions, word) = CASES[at as usize];
        let name = format!("{test}-{word}");
        let scene = Scene {
            layer: Layer::Udp(sessions),
            object_bytes: ANSWER_BYTES,
            ..plain_scene(&name, budget, flows)
        };
        let mut live = session.open(test, scene, Some(at), record)?;
        let workload = Workload {
            query_bytes: Some(QUERY_BYTES),
            requests_per_connection: queries_per_flow,
            ..workload(budget, ANSWER_BYTES, flows)
        };
        let label = UDP_CASES[at as usize].to_owned();
        let setting = live.setting(at, label, Judge::AnyRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}
