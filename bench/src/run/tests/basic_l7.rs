//! Basic L7: a growing number of keep-alive connections, at the same rate for all products.
//!
//! The 24 virtual servers share one pool of all 72 servers of the origin, as in F5's report. This pool has more members
//! than one worker has requests in progress, so multiplexing must find an idle connection to the chosen member.

use super::{grouped, wide_scene, workload};
use crate::catalogue::is_yardstick;
use crate::record::TestRecord;
use crate::run::extent::Budget;
use crate::run::host;
use crate::run::lineup::Scene;
use crate::run::products::InstalledProduct;
use crate::run::rotation::{Judge, Stop, omit};
use crate::run::session::{Session, slowest_and_best};
use crate::run::workload::Workload;

const BODY_BYTES: u64 = 8_192;
/// Share of the slowest product's capacity. Every product is far from saturation, so that latency shows the cost of
/// connections, not of load.
const RATE_SHARE: f64 = 0.6;
/// Estimated memory of a connection: both sockets on the client's side, and the state of product and load generator.
const MEMORY_PER_CONNECTION_BYTES: u64 = 24 * 1024;
/// Maximum share of the available memory.
const MEMORY_SHARE_MAX: f64 = 0.7;

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let mut rate = None;
    for &at in budget.settings {
        let connections = at as usize;
        if let Some(reason) = short_of_memory(connections, host::memory_available_bytes()) {
            session.note(Some(test), &reason);
            for name in session.products.iter().map(InstalledProduct::name) {
                if is_yardstick(name) {
                    continue;
                }
                omit(record, name, Some(at), reason.clone());
            }
            continue;
        }
        let workload = workload(budget, BODY_BYTES, connections);
        // The number of workers follows the connections, so each setting has its own configurations.
        let scene = format!("{test}-{connections}");
        let scene = Scene { object_bytes: BODY_BYTES, ..wide_scene(&scene, connections) };
        let mut live = session.open(test, scene, Some(at), record)?;
        if rate.is_none() {
            let capacities = live.capacities(&workload, "", Some(at), record)?;
            rate = slowest_and_best(&capacities).map(|(slowest, _)| slowest * RATE_SHARE);
            record.facts.extend(rate.map(|rate| ("offered_requests_per_second".into(), rate)));
        }
        // Without a capacity, no product could serve the first setting.
        let Some(rate) = rate else { return Ok(()) };
        let label = format!("{} connections", grouped(at));
        let workload = Workload { rate: Some(rate), ..workload };
        let setting = live.setting(at, label, Judge::OfferedRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}

fn short_of_memory(connections: usize, available_bytes: u64) -> Option<String> {
    let needed = connections as u64 * MEMORY_PER_CONNECTION_BYTES;
    let is_enough = needed as f64 <= available_bytes as f64 * MEMORY_SHARE_MAX;
    let mib = |bytes: u64| grouped(bytes as f64 / f64::from(1 << 20));
    (!is_enough).then(|| {
        format!(
            "{} connections need about {} MiB of memory, and {} MiB are available",
            grouped(connections as f64),
            mib(needed),
            mib(available_bytes)
        )
    })
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn memory() {
        let check = |connections, mib: u64, is_short| {
            assert_eq!(short_of_memory(connections, mib << 20).is_some(), is_short);
        };
        check(1_000, 100, false);
        check(192_000, 8_192, false);
        check(192_000, 4_096, true);
        let text = short_of_memory(192_000, 1 << 30).expect("short");
        assert_eq!(
            text,
            "192,000 connections need about 4,500 MiB of memory, and 1,024 MiB are available"
        );
    }
}
