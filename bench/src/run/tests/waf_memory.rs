//! Memory of many virtual servers that share one firewall, and time to load its rules.

use std::time::{Duration, Instant};

use super::{all_good, grouped, waf, workload};
use crate::record::{Counts, FirewallSteps, Point, TestRecord};
use crate::run::accounting::resident_bytes;
use crate::run::asks::{self, FirewallLoad};
use crate::run::extent::{Budget, Extent};
use crate::run::lineup::{Scene, check};
use crate::run::products::{Feature, Guard, InspectedRequests, InstalledProduct, takes_part};
use crate::run::rotation::{Failure, Sample, Stage, Stop, omit};
use crate::run::session::Session;
use crate::run::workload::{Count, Workload};

const BODY_BYTES: u64 = 1_024;
const CLIENTS: usize = 4;
/// Warm-up requests: some memory is allocated only on first use.
const REQUESTS: u64 = 200;
/// Time for a product to release memory.
const SETTLING: Duration = Duration::from_millis(500);
const FEATURE: Feature = Feature::Waf(InspectedRequests::Everywhere);

fn virtual_servers(extent: Extent) -> usize {
    if extent == Extent::Smoke { 20 } else { 1_000 }
}

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let is_wanted = |found: &&InstalledProduct| takes_part(found.definition.name, FEATURE);
    let products: Vec<InstalledProduct> =
        session.products.iter().filter(is_wanted).cloned().collect();
    for round in 0..budget.rounds {
        for found in &products {
            match measure(session, test, found, budget, record) {
                Ok(Some((Sample { load, cost, .. }, steps))) => {
                    let counts = Counts { firewall: Some(steps), ..Counts::default() };
                    let product = found.name().to_owned();
                    record.points.push(Point { product, round, at: 0.0, load, cost, counts });
                }
                // The product did not start; the start recorded the omission.
                Ok(None) => {}
                Err(Failure::Stop(stop)) => return Err(stop),
                Err(Failure::Dead(reason) | Failure::Unable(reason)) => {
                    session.note(Some(test), &format!("{} is left out: {reason}", found.name()));
                    omit(record, found.name(), None, reason);
                }
            }
        }
    }
    Ok(())
}

/// Measures with one virtual server and with many. Returns `None` if the product did not start.
fn measure(
    session: &mut Session<'_>,
    test: &'static str,
    found: &InstalledProduct,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<Option<(Sample, FirewallSteps)>, Failure> {
    let count = virtual_servers(session.extent);
    let Some((_, one_bytes)) = resident(session, test, found, (1, budget), record)? else {
        return Ok(None);
    };
    let begun = Instant::now();
    check(found, &place(test, 1), &session.store)?.map_err(Failure::Unable)?;
    let check_s = begun.elapsed().as_secs_f64();
    let Some((sample, many_bytes)) = resident(session, test, found, (count, budget), record)?
    else {
        return Ok(None);
    };
    let virtual_servers = count as u64;
    let steps = FirewallSteps { check_s, one_bytes, many_bytes, virtual_servers };
    Ok(Some((sample, steps)))
}

/// The name of the scene and its folder.
fn place(test: &str, count: usize) -> String {
    format!("{test}-{count}")
}

/// Resident memory after a few requests.
fn resident(
    session: &mut Session<'_>,
    test: &'static str,
    found: &InstalledProduct,
    (count, budget): (usize, &Budget),
    record: &mut TestRecord,
) -> Result<Option<(Sample, u64)>, Failure> {
    let name = place(test, count);
    let scene = Scene {
        virtual_servers: count,
        feature: FEATURE,
        ..waf::scene(&name, budget, CLIENTS, BODY_BYTES)
    };
    let mut live = session.open_some(test, scene, std::slice::from_ref(found), None, record)?;
    if live.products().is_empty() {
        return Ok(None);
    }
    let product = found.name();
    live.begin_step(&format!("{} virtual servers: {product}", grouped(count as f64)));
    let workload = Workload {
        count: Some(Count { requests: REQUESTS, one_at_a_time: false }),
        // Every virtual server has the same firewall. [`Guard::Off`] selects the first one, which always exists.
        firewall: Some(FirewallLoad {
            guard: Guard::Off,
            asks: asks::GET,
            is_beside_unguarded: false,
        }),
        ..workload(budget, BODY_BYTES, CLIENTS)
    };
    let sample = all_good(live.measure(product, &workload, 0.0)?)?;
    std::thread::sleep(SETTLING);
    Ok(Some((sample, live.process(product).map_or(0, resident_bytes))))
}
