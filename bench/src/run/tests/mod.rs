//! The tests of the catalogue: their settings, products and rounds.

mod basic_l7;
mod cases;
mod closed_loop;
mod cpu_65;
mod equal_rate;
mod fast_l4;
mod features;
mod idle_memory;
mod instructions;
mod object_sizes;
mod observation;
mod p99;
mod packets;
mod queue;
mod ramp;
mod system_calls;
mod tls;
mod udp_queries;
mod waf;
mod waf_memory;

use std::time::Duration;

use super::bed::VIRTUAL_SERVERS_MAX;
use super::extent::Budget;
use super::https::TlsLoad;
use super::lineup::Scene;
use super::products::{Balance, Feature, Front, Layer};
use super::rotation::{Failure, Sample, Stop};
use super::session::Session;
use super::workload::{PLAIN_PATHS, Workload};
use crate::catalogue::{Chapter, OBSERVED, RELAY, Test};
use crate::record::TestRecord;
pub use features::asks_for_feature;
#[cfg(test)]
pub use p99::IDLE_REQUESTS_PER_SECOND;
pub use packets::{PACKETS, packet_products};
pub use tls::is_beside_signatures;

/// Default object size of a scene.
const SMALL_BYTES: u64 = 128;
/// Number of keep-alive connections in tests that do not vary it.
const CONNECTIONS: usize = 64;

/// Runs a test into `record`.
pub fn run(
    session: &mut Session<'_>,
    test: &'static Test,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    match test.name {
        "basic-l7" => basic_l7::run(session, test.name, budget, record),
        "object-sizes" => object_sizes::run(session, test.name, budget, record),
        "ssl-tps" | "ssl-tps-resumed" => tls::run(session, test.name, budget, record),
        "http2" => cases::http2(session, test.name, budget, record),
        "compression" => cases::compression(session, test.name, budget, record),
        "compression-connections" => {
            cases::compression_connections(session, test.name, budget, record)
        }
        "p99-idle" | "https-p99-idle" => p99::idle(session, test.name, budget, record),
        "p99-stressed" | "https-p99-stressed" => p99::stressed(session, test.name, budget, record),
        "p99-near-limit" => p99::near_limit(session, test.name, budget, record),
        PACKETS => packets::run(session, test.name, budget, record),
        "fast-l4" => fast_l4::run(session, test.name, budget, record),
        "udp-queries" => udp_queries::run(session, test.name, budget, record),
        OBSERVED => observation::run(session, test.name, budget, record),
        "queue" => queue::run(session, test.name, budget, record),
        "ramp" => ramp::run(session, test.name, budget, record),
        "cpu-65" => cpu_65::run(session, test.name, budget, record),
        "advanced-l7" | "cookie-persistence" | "requests-per-cpu-second" => {
            equal_rate::run(session, test.name, budget, record)
        }
        "waf-get" | "waf-form-1k" | "waf-form-8k" | "waf-json-8k" => {
            waf::added(session, test.name, budget, record)
        }
        "waf-2020-idle" => waf::idle(session, test.name, budget, record),
        "waf-2020-stressed" => waf::stressed(session, test.name, budget, record),
        "waf-memory" => waf_memory::run(session, test.name, budget, record),
        "feature-instructions" => instructions::features(session, test.name, budget, record),
        "instructions" => instructions::run(session, test.name, budget, record),
        "system-calls" => system_calls::run(session, test.name, budget, record),
        "idle-memory" | "https-idle-memory" => idle_memory::run(session, test.name, budget, record),
        "growth" => instructions::growth(session, test.name, budget, record),
        _ => closed_loop::run(session, test.name, budget, record),
    }
}

/// Whether the test measures web application firewalls, which have their own peers.
pub fn is_of_firewalls(test: &Test) -> bool {
    test.chapter == Chapter::Firewall
}

/// Whether the test uses TLS on keep-alive connections.
fn is_https(test: &str) -> bool {
    ["ssl-", "https-"].iter().any(|prefix| test.starts_with(prefix))
}

/// A workload of keep-alive connections with the durations of the budget.
fn workload(budget: &Budget, body_bytes: u64, connections: usize) -> Workload {
    Workload {
        body_bytes,
        paths: PLAIN_PATHS,
        cookies: Vec::new(),
        connections,
        requests_per_connection: None,
        rate: None,
        warm_up: Duration::from_millis(budget.warm_up_ms),
        measure: Duration::from_millis(budget.measure_ms),
        count: None,
        tls: is_https(budget.test).then_some(TlsLoad::KEPT),
        streams: None,
        gzip: None,
        query_bytes: None,
        is_timed: false,
        firewall: None,
        is_observed: false,
    }
}

/// One virtual server in front of the pool.
fn plain_scene<'a>(name: &'a str, budget: &Budget, clients: usize) -> Scene<'a> {
    Scene {
        virtual_servers: 1,
        yardstick: budget.yardstick.then_some(RELAY),
        front: if is_https(budget.test) {
            Front::secure(TlsLoad::KEPT.key)
        } else {
            Front::default()
        },
        ..wide_scene(name, clients)
    }
}

/// As many virtual servers as in the NetScaler report.
fn wide_scene(name: &str, clients: usize) -> Scene<'_> {
    Scene {
        name,
        virtual_servers: VIRTUAL_SERVERS_MAX,
        clients,
        object_bytes: SMALL_BYTES,
        yardstick: None,
        members: None,
        balance: Balance::RoundRobin,
        feature: Feature::Plain,
        layer: Layer::Http,
        front: Front::default(),
        under: &[],
    }
}

/// Returns a counted measurement only if every request succeeded: a count with failed requests is meaningless.
fn all_good(sample: Sample) -> Result<Sample, Failure> {
    let load = &sample.load;
    if load.errors == 0 {
        return Ok(sample);
    }
    let example = load.error_examples.values().next().map(String::as_str).unwrap_or_default();
    let begun = load.requests + load.errors;
    Err(Failure::Unable(format!("{} of {begun} requests failed: {example}", load.errors)))
}

/// A number with thousands separators, such as `12,000`.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The name of a scene whose products are configured for this object size.
fn of_size(test: &str, bytes: f64) -> String {
    format!("{test}-{bytes}")
}

/// A size in bytes or KB, such as `128 B` or `8 KB`.
fn size(bytes: f64) -> String {
    if bytes >= 1_024.0 && bytes % 1_024.0 == 0.0 {
        format!("{} KB", bytes / 1_024.0)
    } else {
        format!("{bytes} B")
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn numbers_and_sizes() {
        let check = |number, expected| assert_eq!(grouped(number), expected);
        check(0.0, "0");
        check(999.6, "1,000");
        check(192_000.0, "192,000");
        check(1_234_567.0, "1,234,567");
        let check = |bytes, expected| assert_eq!(size(bytes), expected);
        check(1.0, "1 B");
        check(128.0, "128 B");
        check(30_720.0, "30 KB");
        check(1_025.0, "1025 B");
    }
}
