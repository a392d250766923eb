//! As fast as answered: L7 requests, connections, throughput, and the envelope.

use super::{features, of_size, plain_scene, size, workload};
use crate::record::TestRecord;
use crate::run::extent::Budget;
use crate::run::lineup::Scene;
use crate::run::rotation::{Judge, Stop};
use crate::run::session::Session;
use crate::run::workload::Workload;

/// Requests on a connection, and the object's size where the test's axis does not say it.
fn shape(test: &str) -> (u64, u64) {
    match test {
        "l7-connections" => (1, 128),
        "l7-throughput" | "ssl-bulk" | "ssl-envelope" => (100, 128 * 1024),
        _ => (10, 128),
    }
}

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let users = session.users();
    let feature = features::of_test(test);
    let (requests_per_connection, object_bytes) = shape(test);
    for &at in budget.settings {
        let has_sizes = at > 0.0;
        let body_bytes = if has_sizes { at as u64 } else { object_bytes };
        let label = if has_sizes { size(at) } else { String::new() };
        let name = if has_sizes { of_size(test, at) } else { test.to_owned() };
        let scene = Scene { object_bytes: body_bytes, ..plain_scene(&name, budget, users) };
        let mut live = session.open(test, features::with(feature, scene), Some(at), record)?;
        let workload = Workload {
            requests_per_connection: Some(requests_per_connection),
            ..features::asking_for(feature, workload(budget, body_bytes, users))
        };
        let setting = live.setting(at, label, Judge::AnyRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}
