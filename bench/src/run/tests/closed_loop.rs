//! Closed loop: a connection sends the next request when it has the response. Requests, connections, throughput and the
//! envelope, of layer 7 and of layer 4.

use super::{features, of_size, plain_scene, size, workload};
use crate::catalogue::{self, Shape};
use crate::record::TestRecord;
use crate::run::extent::Budget;
use crate::run::lineup::Scene;
use crate::run::products::Layer;
use crate::run::rotation::{Judge, Stop};
use crate::run::session::Session;
use crate::run::workload::Workload;

/// Requests on a connection, and the object size if the test's axis has no sizes.
fn shape(test: &str) -> (u64, u64) {
    match test {
        "l7-connections" | "l4-connections" => (1, 128),
        "l4-512k" => (1, 512 * 1024),
        "l7-throughput" | "l4-throughput" | "ssl-bulk" | "ssl-envelope" => (100, 128 * 1024),
        _ => (10, 128),
    }
}

/// The workload and the names of a setting.
struct SettingOf {
    requests_per_connection: u64,
    body_bytes: u64,
    /// The label in progress messages.
    label: String,
    /// The name of the configurations' folder.
    name: String,
}

fn setting_of(test: &str, at: f64, (requests, object_bytes): (u64, u64)) -> SettingOf {
    if let Some(Shape { bytes, requests_per_connection }) = catalogue::shape_of(test, at) {
        let label = format!("{}, {requests_per_connection} per connection", size(bytes as f64));
        let name = format!("{}-{requests_per_connection}", of_size(test, bytes as f64));
        return SettingOf { requests_per_connection, body_bytes: bytes, label, name };
    }
    let has_sizes = at > 0.0;
    SettingOf {
        requests_per_connection: requests,
        body_bytes: if has_sizes { at as u64 } else { object_bytes },
        label: if has_sizes { size(at) } else { String::new() },
        name: if has_sizes { of_size(test, at) } else { test.to_owned() },
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
    let layer = if test.starts_with("l4-") { Layer::Tcp } else { Layer::Http };
    let (requests_of_test, object_bytes) = shape(test);
    for &at in budget.settings {
        let of_setting = setting_of(test, at, (requests_of_test, object_bytes));
        let SettingOf { requests_per_connection, body_bytes, label, name } = of_setting;
        let scene = Scene { object_bytes: body_bytes, layer, ..plain_scene(&name, budget, users) };
        let mut live = session.open(test, features::with(feature, scene), Some(at), record)?;
        let workload = Workload {
            requests_per_connection: Some(requests_per_connection),
            is_timed: test == "l4-512k",
            ..features::asking_for(feature, workload(budget, body_bytes, users))
        };
        let setting = live.setting(at, label, Judge::AnyRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}
