//! HTTP/2 and compression: each case configures the products' client side differently.

use super::{CONNECTIONS, grouped, plain_scene, workload};
use crate::catalogue::{COMPRESSION_CASES, HTTP2_CASES};
use crate::load::Gzip;
use crate::origin;
use crate::record::TestRecord;
use crate::run::certificates::Key;
use crate::run::extent::{Budget, Extent};
use crate::run::https::TlsLoad;
use crate::run::lineup::Scene;
use crate::run::products::{Front, GzipClass};
use crate::run::rotation::{Judge, Stop};
use crate::run::session::{Session, slowest_and_best};
use crate::run::workload::{Path, Workload};

const HTTP2_BODY_BYTES: u64 = 128;
/// Concurrent streams on a connection, and number of connections.
const STREAMS: usize = 100;
const HTTP2_CONNECTIONS: usize = 8;
const HTTP2_CONNECTIONS_SMOKE: usize = 1;
/// Over TLS and without, in the order of [`HTTP2_CASES`].
const HTTP2_KEYS: [Option<Key>; 2] = [Some(Key::P256), None];
const _: () = assert!(HTTP2_KEYS.len() == HTTP2_CASES.len());

const HTML_BYTES: u64 = 128 * 1024;
const HTML_PATHS: &[Path] = &[Path { before: "/", after: ".html", weight: 1 }];
/// In the order of [`COMPRESSION_CASES`].
const CLASSES: [GzipClass; 2] = [GzipClass::Level5, GzipClass::Fastest];
const _: () = assert!(CLASSES.len() == COMPRESSION_CASES.len());
/// Number of keep-alive connections. A smoke has few, because a debug build compresses slowly.
fn connections(extent: Extent) -> usize {
    if extent == Extent::Smoke { 4 } else { CONNECTIONS }
}

/// Share of the slowest product's capacity, at which no product's core is saturated.
const RATE_SHARE: f64 = 0.65;

/// HTTP/2 in a closed loop: each stream sends its next request when it has the response.
pub(super) fn http2(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let connections = match session.extent {
        Extent::Smoke => HTTP2_CONNECTIONS_SMOKE,
        Extent::Quick | Extent::Full => HTTP2_CONNECTIONS,
    };
    for &at in budget.settings {
        let key = HTTP2_KEYS[at as usize];
        let name = format!("{test}-{}", if key.is_some() { "tls" } else { "clear" });
        let front = Front { key, http2: true, gzip: None };
        let scene = Scene { front, ..plain_scene(&name, budget, connections) };
        let mut live = session.open(test, scene, Some(at), record)?;
        let workload = Workload {
            tls: key.map(|key| TlsLoad { key, ..TlsLoad::KEPT }),
            streams: Some(STREAMS),
            ..workload(budget, HTTP2_BODY_BYTES, connections)
        };
        let label = HTTP2_CASES[at as usize].to_owned();
        let setting = live.setting(at, label, Judge::AnyRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}

/// Compression at one rate for all products.
pub(super) fn compression(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    for &at in budget.settings {
        let class = CLASSES[at as usize];
        let place = format!("level-{}", class.level());
        let name = format!("{test}-{place}");
        let connections = connections(session.extent);
        let scene = compressing(class, plain_scene(&name, budget, connections));
        let mut live = session.open(test, scene, Some(at), record)?;
        let base = html(workload(budget, HTML_BYTES, connections));
        let of = format!("_at_{}", place.replace('-', "_"));
        let capacities = live.capacities(&base, &of, Some(at), record)?;
        let Some((slowest, _)) = slowest_and_best(&capacities) else { continue };
        let rate = slowest * RATE_SHARE;
        record.facts.insert(format!("offered{of}_requests_per_second"), rate);
        let workload = Workload { rate: Some(rate), ..base };
        let label = COMPRESSION_CASES[at as usize].to_owned();
        let setting = live.setting(at, label, Judge::OfferedRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}

/// Compression in a closed loop, over a growing number of connections.
pub(super) fn compression_connections(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let most = budget.settings.iter().fold(1.0_f64, |most, at| most.max(*at)) as usize;
    let scene = compressing(GzipClass::Level5AtMost, plain_scene(test, budget, most));
    let mut live = session.open(test, scene, None, record)?;
    for &at in budget.settings {
        let workload = html(workload(budget, HTML_BYTES, at as usize));
        let label = format!("{} connections", grouped(at));
        let setting = live.setting(at, label, Judge::AnyRate, &workload);
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}

fn compressing(class: GzipClass, scene: Scene<'_>) -> Scene<'_> {
    Scene {
        front: Front { gzip: Some(class), ..Front::default() },
        object_bytes: HTML_BYTES,
        ..scene
    }
}

/// Requests the compressible object and accepts only gzip.
fn html(workload: Workload) -> Workload {
    let (body_bytes, crc32) = (workload.body_bytes, origin::html_crc32(workload.body_bytes));
    Workload { paths: HTML_PATHS, gzip: Some(Gzip { body_bytes, crc32 }), ..workload }
}
