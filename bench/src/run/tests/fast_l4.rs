//! Connections and throughput at layer 4: weir's packet path compared with products that relay connections.

use super::{plain_scene, workload};
use crate::catalogue::{FAST_CASES, FAST_SHAPES};
use crate::record::TestRecord;
use crate::run::devices::run_in;
use crate::run::extent::Budget;
use crate::run::lineup::Scene;
use crate::run::namespaces::{Namespaces, Role};
use crate::run::products::Layer;
use crate::run::rotation::{Judge, Stop, omit};
use crate::run::session::Session;
use crate::run::workload::Workload;

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let users = session.users();
    if let Err(reason) = forward(session.bed.namespaces()) {
        let names: Vec<String> =
            session.products.iter().map(|found| found.name().to_owned()).collect();
        names.iter().for_each(|name| omit(record, name, None, reason.clone()));
        return Ok(());
    }
    for &at in budget.settings {
        let shape = FAST_SHAPES[at as usize];
        let label = FAST_CASES[at as usize];
        let name = format!("{test}-{}", shape.bytes);
        let scene = Scene {
            object_bytes: shape.bytes,
            layer: Layer::Packets,
            ..plain_scene(&name, budget, users)
        };
        let mut live = session.open(test, scene, Some(at), record)?;
        let workload = Workload {
            requests_per_connection: Some(shape.requests_per_connection),
            ..workload(budget, shape.bytes, users)
        };
        let setting = live.setting(at, label.to_owned(), Judge::AnyRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}

/// Switches on IP forwarding in the product's namespace.
fn forward(namespaces: Option<&Namespaces>) -> Result<(), String> {
    let namespaces = namespaces
        .ok_or("packets need a network of their own: run as root with --network namespaces")?;
    run_in(namespaces, Role::Product, &["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
}
