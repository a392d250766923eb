//! CPU cost and added latency of a web application firewall.

use super::{plain_scene, workload};
use crate::catalogue::WAF_CASES;
use crate::record::TestRecord;
use crate::run::asks::{self, Ask, FirewallLoad};
use crate::run::certificates::Key;
use crate::run::extent::{Budget, Extent};
use crate::run::https::{TlsLoad, Version};
use crate::run::lineup::Scene;
use crate::run::products::{Feature, Front, Guard, InspectedRequests};
use crate::run::rotation::{Judge, Stop};
use crate::run::session::{Live, Session, slowest_and_best};
use crate::run::workload::Workload;

/// Response size in tests that measure only the inspection of requests.
const SMALL_BYTES: u64 = 1_024;
/// Response size in the report of 2020.
const VOLUME_BYTES: u64 = 30 * 1_024;
/// Few connections, so that each is used several times a second.
const IDLE_CONNECTIONS: usize = 10;
/// Share of the capacity of the slowest product when it inspects everything.
const STRESSED_SHARE: f64 = 0.65;

/// In the order of [`WAF_CASES`], each with the three [`GUARDS`].
const VERSIONS: [Version; 2] = [Version::Tls13, Version::Tls12];
const GUARDS: [Guard; 3] = [Guard::Off, Guard::Third, Guard::All];
const _: () = assert!(VERSIONS.len() * GUARDS.len() == WAF_CASES.len());

/// Number of connections in a closed loop. With more, requests only wait for each other, in some products beyond the
/// time limit of a response.
const ADDED_CONNECTIONS: usize = 8;

/// Number of connections when a rate is offered, for the same reason.
const STRESSED_CONNECTIONS: usize = 16;

/// Number of connections. A smoke has few, because a debug build inspects slowly.
fn connections(extent: Extent, wanted: usize) -> usize {
    if extent == Extent::Smoke { 4 } else { wanted }
}

/// The requests of a test of added CPU.
fn asks_of(test: &str) -> &'static [Ask] {
    match test {
        "waf-form-1k" => asks::FORM_1K,
        "waf-form-8k" => asks::FORM_8K,
        "waf-json-8k" => asks::JSON_8K,
        _ => asks::GET,
    }
}

/// Closed loop, with the firewall and without it.
pub(super) fn added(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let connections = connections(session.extent, ADDED_CONNECTIONS);
    let scene = scene(test, budget, connections, SMALL_BYTES);
    let mut live = session.open(test, scene, None, record)?;
    live.try_firewalls(record)?;
    let asks = asks_of(test);
    let firewall = Some(FirewallLoad { guard: Guard::All, asks, is_beside_unguarded: true });
    let workload = Workload { firewall, ..workload(budget, SMALL_BYTES, connections) };
    for &at in budget.settings {
        let setting = live.setting(at, String::new(), Judge::AnyRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}

/// At a low rate, over TLS.
pub(super) fn idle(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let mut live = open_secure(session, test, budget, IDLE_CONNECTIONS, record)?;
    for &at in budget.settings {
        let rate = Some(super::p99::IDLE_REQUESTS_PER_SECOND);
        let workload = Workload { rate, ..shop(budget, at, IDLE_CONNECTIONS) };
        let label = WAF_CASES[at as usize].to_owned();
        let setting = live.setting(at, label, Judge::OfferedRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}

/// At one rate for all products, with the firewall and without it.
pub(super) fn stressed(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let connections = connections(session.extent, STRESSED_CONNECTIONS);
    let mut live = open_secure(session, test, budget, connections, record)?;
    let full = Workload {
        firewall: Some(shopping(Guard::All)),
        tls: Some(secure(Version::Tls13)),
        ..workload(budget, VOLUME_BYTES, connections)
    };
    let capacities = live.capacities(&full, "", None, record)?;
    let Some((slowest, _)) = slowest_and_best(&capacities) else { return Ok(()) };
    let rate = slowest * STRESSED_SHARE;
    record.facts.insert("sustained_requests_per_second".into(), slowest);
    record.facts.insert("offered_requests_per_second".into(), rate);
    for &at in budget.settings {
        let workload = Workload { rate: Some(rate), ..shop(budget, at, connections) };
        let label = format!("{} at {rate:.0}/s", WAF_CASES[at as usize]);
        let setting = live.setting(at, label, Judge::OfferedRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}

/// A scene with one virtual server for each guard.
pub(super) fn scene<'a>(
    name: &'a str,
    budget: &Budget,
    clients: usize,
    object_bytes: u64,
) -> Scene<'a> {
    Scene {
        virtual_servers: Guard::ALL.len(),
        object_bytes,
        feature: Feature::Waf(InspectedRequests::ByServer),
        ..plain_scene(name, budget, clients)
    }
}

fn open_secure<'s, 'a>(
    session: &'s mut Session<'a>,
    test: &'static str,
    budget: &Budget,
    clients: usize,
    record: &mut TestRecord,
) -> Result<Live<'s, 'a>, Stop> {
    let front = Front::secure(Key::P256);
    let scene = Scene { front, ..scene(test, budget, clients, VOLUME_BYTES) };
    session.open(test, scene, None, record)
}

/// The workload of a case.
fn shop(budget: &Budget, at: f64, connections: usize) -> Workload {
    let case = at as usize;
    Workload {
        firewall: Some(shopping(GUARDS[case % GUARDS.len()])),
        tls: Some(secure(VERSIONS[case / GUARDS.len()])),
        ..workload(budget, VOLUME_BYTES, connections)
    }
}

fn shopping(guard: Guard) -> FirewallLoad {
    FirewallLoad { guard, asks: asks::SHOP, is_beside_unguarded: false }
}

fn secure(version: Version) -> TlsLoad {
    TlsLoad { version, ..TlsLoad::KEPT }
}
