//! A synthetic run for tests, realistic in shape and size. It is always the same.

use std::collections::BTreeMap;

use crate::catalogue::{self, Axis, Test};
use crate::load::{ErrorKind, Latency, LoadOutcome};
use crate::record::{
    Absence, Bed, Cost, Counts, Discard, FORMAT, FirewallSteps, Machine, MemorySteps, Omission,
    Point, Product, Run, TestRecord, TwoLengths,
};

/// Number of rounds of every test.
pub const ROUNDS: u32 = 3;

/// Name, version, microseconds per request, and capacity in requests per second.
const PRODUCTS: [(&str, &str, f64, f64); 5] = [
    ("weir", "weir 0.1.0", 16.2, 56_000.0),
    ("nginx", "nginx/1.22.1", 19.6, 47_000.0),
    ("haproxy", "HAProxy version 2.6.12-1+deb12u2", 20.8, 45_000.0),
    ("envoy", "envoy 1.40.0", 63.0, 15_000.0),
    ("relay", "relay 0.1.0", 13.1, 70_000.0),
];

/// Noise from a fixed seed.
struct Noise(u64);

impl Noise {
    /// Each test has its own noise, which does not change if other tests are added or removed.
    fn of_test(seed: u64, name: &str) -> Self {
        let mixed = name
            .bytes()
            .fold(seed, |mixed, byte| (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self(mixed)
    }

    /// A factor of 1 plus or minus up to `share`.
    fn around_one(&mut self, share: f64) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let uniform = (self.0 >> 11) as f64 / (1u64 << 53) as f64;
        1.0 + (uniform * 2.0 - 1.0) * share
    }
}

/// The synthetic run.
pub fn run() -> Run {
    run_of_noise(0x2545_f491_4f6c_dd1d)
}

/// The run with widely scattered rates of weir in `l7-requests`, so that nothing is decided there.
pub fn run_undecided() -> Run {
    let mut run = run();
    let record = run.tests.iter_mut().find(|test| test.name == "l7-requests").expect("a test");
    for point in record.points.iter_mut().filter(|point| point.product == "weir") {
        point.load.requests_per_second *= [0.4, 1.0, 0.7][point.round as usize];
    }
    run
}

/// The same run with other noise.
pub fn run_of_noise(seed: u64) -> Run {
    Run {
        format: FORMAT,
        command: "weir bench run full --peers haproxy,nginx,envoy,pingora".to_owned(),
        extent: "full".to_owned(),
        started: "2026-11-21T09:12:44Z".to_owned(),
        elapsed_s: 3_140.0,
        machine: Machine {
            host: "vm".to_owned(),
            kernel: "Linux 6.18.5 x86_64".to_owned(),
            system: "Debian GNU/Linux 12 (bookworm)".to_owned(),
            cpu: "Intel(R) Xeon(R) Processor @ 2.70GHz".to_owned(),
            cores: 2,
            memory_bytes: 8 << 30,
            descriptors_max: 20_000,
            energy_readable: false,
        },
        bed: Bed {
            kind: "loopback".to_owned(),
            product_cores: vec![0],
            load_cores: vec![1],
            idle: "halt".into(),
        },
        products: PRODUCTS
            .iter()
            .map(|(name, version, ..)| Product {
                name: (*name).to_owned(),
                version: (*version).to_owned(),
                ..Product::default()
            })
            .collect(),
        absent: vec![Absence {
            product: "pingora".to_owned(),
            reason: "no program of that name on PATH; name it with --pingora PATH".to_owned(),
        }],
        tests: catalogue::TESTS
            .iter()
            .map(|test| record(test, &mut Noise::of_test(seed, test.name)))
            .collect(),
    }
}

fn record(test: &Test, noise: &mut Noise) -> TestRecord {
    let mut points = Vec::new();
    let mut omissions = Vec::new();
    for at in settings(test) {
        for (name, ..) in PRODUCTS {
            if let Some(reason) = omission(test, at, name) {
                omissions.push(Omission { product: name.to_owned(), at: Some(at), reason });
            }
        }
        for round in 0..ROUNDS {
            let machine = noise.around_one(0.12);
            for (name, _, cost_us, capacity) in PRODUCTS {
                let is_alone = test.name == "growth" && name != "weir";
                if is_alone || omission(test, at, name).is_some() {
                    continue;
                }
                let slowness = machine * noise.around_one(0.03) * character(test.name, name);
                let speed = Speed { cost_us: cost_us * slowness, capacity: capacity / slowness };
                points.push(point(test, at, name, round, &speed));
            }
        }
    }
    let facts = match test.name {
        "p99-stressed" => BTreeMap::from([("sustained_requests_per_second".to_owned(), 14_820.0)]),
        _ => BTreeMap::new(),
    };
    let discarded = match test.name {
        "basic-l7" => vec![Discard {
            round: Some(0),
            at: Some(12_000.0),
            product: Some("nginx".to_owned()),
            reason: "the hypervisor took 31% of the cores".to_owned(),
            errors: Some(0),
            unsent: Some(17),
        }],
        _ => Vec::new(),
    };
    TestRecord { name: test.name.to_owned(), rounds: ROUNDS, points, omissions, discarded, facts }
}

/// The factor by which a product is slower in this test than on average.
fn character(test: &str, product: &str) -> f64 {
    match (test, product) {
        ("l7-connections", "weir") => 1.42,
        ("l7-throughput" | "object-sizes", "weir") => 1.19,
        ("p99-stressed", "haproxy") => 0.86,
        ("p99-idle", "weir") => 1.27,
        _ => 1.0,
    }
}

fn settings(test: &Test) -> Vec<f64> {
    const KB: f64 = 1024.0;
    match (test.axis, test.name) {
        (Axis::Single, _) => vec![0.0],
        (Axis::Cases(cases), _) => (0..cases.len()).map(|case| case as f64).collect(),
        (_, "system-calls") => vec![1.0, 64.0],
        (Axis::Connections, _) => vec![1e3, 12e3, 24e3, 48e3, 96e3, 192e3],
        (Axis::OfferedRate, _) => {
            (1..=12).map(|step| if step == 1 { 500.0 } else { f64::from(step) * 5e3 }).collect()
        }
        (_, "envelope") => vec![128.0, 5.0 * KB, 16.0 * KB, 32.0 * KB, 128.0 * KB],
        (_, "object-sizes") => (1..=6).map(|power| 2f64.powi(power) * KB).collect(),
        _ => vec![1.0, 30.0 * KB],
    }
}

fn omission(test: &Test, at: f64, product: &str) -> Option<String> {
    let text = match (test.name, product) {
        ("basic-l7", "envoy") if at > 90e3 => "20,000 descriptors are too few for it",
        ("basic-l7", "weir") if at > 190e3 => "memory ended at 151,000 connections",
        ("cpu-65", "haproxy") => "the rate for 65% was not found within 12 steps",
        _ => return None,
    };
    Some(text.to_owned())
}

struct Speed {
    cost_us: f64,
    capacity: f64,
}

fn point(test: &Test, at: f64, product: &str, round: u32, speed: &Speed) -> Point {
    const ELAPSED_S: f64 = 5.0;
    let size = match test.name {
        "basic-l7" => 8192.0,
        "l7-throughput" => 131_072.0,
        _ if test.axis == Axis::ObjectBytes => at,
        _ => 128.0,
    };
    let connection = if test.name == "l7-connections" { 34.0 } else { 0.0 };
    let cost_us = speed.cost_us * (1.0 + size / 40_000.0) + connection;
    let capacity = speed.capacity * speed.cost_us / cost_us;
    let offered = match test.name {
        "basic-l7" | "object-sizes" => Some(9_000.0),
        "p99-idle" => Some(100.0),
        "p99-stressed" | "p99-near-limit" => Some(8_000.0),
        "ramp" => Some(at),
        "cpu-65" => Some(capacity * 0.65),
        "requests-per-cpu-second" => Some(7_000.0),
        _ => None,
    };
    let rate = offered.map_or(capacity, |offered| offered.min(capacity));
    let load = rate / capacity;
    let queue = if offered.is_some_and(|offered| offered > capacity) {
        offered.map_or(0.0, |offered| (offered / capacity - 1.0) * 2.4e6)
    } else {
        0.0
    };
    let growth = if test.axis == Axis::Connections { (at / 1e3).powf(0.35) } else { 1.0 };
    let p50 = cost_us * 5.0 * growth / (1.02 - load * 0.9) + queue * 0.5;
    let requests = (rate * ELAPSED_S) as u64;
    let busy_s = requests as f64 * cost_us / 1e6 * 1.08;
    let errors = if product == "envoy" && test.name == "ramp" && load >= 1.0 { 41 } else { 0 };
    Point {
        product: product.to_owned(),
        round,
        at,
        load: LoadOutcome {
            requests,
            errors,
            errors_by_kind: (errors > 0)
                .then_some((ErrorKind::Timeout, errors))
                .into_iter()
                .collect(),
            error_examples: std::collections::BTreeMap::new(),
            requests_per_second: requests as f64 / ELAPSED_S,
            window: None,
            offered_per_second: offered,
            unsent: offered.map_or(0, |offered| ((offered - rate) * ELAPSED_S) as u64),
            latency_us: latency(requests, p50, queue),
            service_time_us: offered.map(|_| latency(requests, p50 * 0.8, 0.0)),
            connect_us: Latency::default(),
            bytes: (requests as f64 * size) as u64,
            connections_opened: 64,
            sessions_resumed: 0,
            handshakes: None,
            warm_up_requests: requests / 5,
            warm_up_errors: 0,
            elapsed_s: ELAPSED_S,
            cpu_seconds: requests as f64 * 11e-6,
            timeline: Vec::new(),
        },
        cost: Cost {
            elapsed_s: ELAPSED_S,
            busy_s: busy_s.min(ELAPSED_S),
            resting_share: 0.004,
            cores: 1,
            process_s: (busy_s * 0.9).min(ELAPSED_S),
            resident_bytes: (24 << 20) + (at.min(2e5) as u64) * (growth as u64 * 400),
            joules: None,
            origin_s: Some(requests as f64 * 7e-6),
            load_busy_s: Some(requests as f64 * 12e-6),
            direct_s_per_request: Some(10e-6),
            unguarded_s_per_request: Some(cost_us * 0.9e-6),
            workers_s: Some((busy_s * 0.8).min(ELAPSED_S)),
        },
        counts: counts(test.name, product, at, cost_us),
    }
}

/// Counts of a product with this cost.
fn counts(test: &str, product: &str, at: f64, cost_us: f64) -> Counts {
    let lengths = |per_request: f64| {
        let counted = [1_000.0, 6_000.0].map(|requests| (1e7 + per_request * requests) as u64);
        Some(TwoLengths { requests: [1_000, 6_000], counted })
    };
    let own = cost_us - 12.0;
    let memory = MemorySteps {
        connections: 10_000,
        before_bytes: 8 << 20,
        holding_bytes: (8 << 20) + (own * 7e5) as u64,
        requests: 1_000_000,
        warm_bytes: 12 << 20,
        worn_bytes: (12 << 20) + if product == "haproxy" { 12 << 10 } else { 0 },
    };
    let instructions = if product == "weir" { 8_000.0 } else { 28_000.0 } * own.max(1.0) / 5.0;
    match test {
        "instructions" | "feature-instructions" | "growth" => {
            Counts { instructions: lengths(instructions), ..Counts::default() }
        }
        "system-calls" => Counts {
            system_calls: lengths(if at > 1.0 { 0.0 } else { 2.0 } + own.max(4.0) * 0.9),
            ..Counts::default()
        },
        "waf-memory" => Counts {
            firewall: Some(FirewallSteps {
                check_s: own * 0.05,
                one_bytes: 40 << 20,
                many_bytes: (40 << 20) + (own * 1e6) as u64,
                virtual_servers: 1_000,
            }),
            ..Counts::default()
        },
        "idle-memory" | "https-idle-memory" => Counts { memory: Some(memory), ..Counts::default() },
        _ => Counts::default(),
    }
}

/// A latency distribution with a tail.
fn latency(count: u64, p50: f64, queue: f64) -> Latency {
    let at = |percentile: f64| {
        let nines = -(1.0 - percentile / 100.0).log10();
        (p50 * (0.55 + 0.45 * (nines / 0.301).powf(1.35)) + queue * nines * 0.1) as u64
    };
    let mut curve: Vec<(f64, u64)> = vec![(0.0, at(0.0))];
    let mut nines = 0.1;
    while 10f64.powf(nines) < count as f64 {
        let percentile = 100.0 * (1.0 - 10f64.powf(-nines));
        curve.push((percentile, at(percentile)));
        nines += 0.1;
    }
    let max = at(99.9999);
    curve.push((100.0, max));
    let (p90, p99, p999) = (at(90.0), at(99.0), at(99.9));
    Latency { count, mean: p50 * 1.1, min: at(0.0), p50: at(50.0), p90, p99, p999, max, curve }
}

/// The run with a second row of nginx, HAProxy and Envoy, of another version and 10% slower.
pub fn run_of_two_rows() -> Run {
    let mut run = run();
    for (name, version) in
        [("nginx", "1.31.4"), ("haproxy", "3.4.0 2026/06/03"), ("envoy", "1.41.0")]
    {
        let place =
            run.products.iter().position(|product| product.name == name).expect("a product");
        let first = run.products[place].clone();
        let second = format!("{name}{}", catalogue::SECOND);
        run.products[place].version = version.to_owned();
        run.products.insert(place + 1, Product { name: second.clone(), ..first });
        for test in &mut run.tests {
            let of_first: Vec<Point> =
                test.points.iter().filter(|point| point.product == name).cloned().collect();
            test.points.extend(of_first.into_iter().map(|mut point| {
                point.product.clone_from(&second);
                point.cost.busy_s *= 1.1;
                point.load.latency_us.p99 += point.load.latency_us.p99 / 10;
                point
            }));
        }
    }
    run
}

/// Writes the run and its report to the path in `WEIR_REPORT_SAMPLE`, to look at them.
#[test]
fn a_sample_is_written_where_asked_for() {
    let sample = std::env::var_os("WEIR_REPORT_SAMPLE").map(std::path::PathBuf::from);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = sample.unwrap_or_else(|| folder.path().to_owned());
    for product in ["weir", "nginx", "haproxy", "envoy"] {
        for test in catalogue::TESTS {
            let folder = folder.join("configurations").join(test.name).join(product);
            std::fs::create_dir_all(&folder).expect("a folder");
            let size = if test.axis == Axis::Connections { 24 } else { 1 };
            let text = format!("# {size} virtual servers of {product}\n").repeat(size);
            std::fs::write(folder.join(format!("{product}.conf")), text).expect("a file");
        }
    }
    crate::run_files::write(&folder, &run_of_two_rows()).expect("the run's files");
    let written = crate::report::write(&folder).expect("a report");
    assert!(written.html.is_file() && written.markdown.is_file());
}

/// Changes a point so that it kept this share of its offered rate.
pub fn keep_share(point: &mut Point, share: f64) {
    let due = point.load.offered_per_second.unwrap_or(point.at) * point.load.elapsed_s;
    point.load.requests = (due * share).round() as u64;
    point.load.errors = 0;
    point.load.unsent = due.round() as u64 - point.load.requests;
    point.load.requests_per_second = point.at * share;
}
