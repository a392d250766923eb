//! Common helpers of the runner's tests.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::meter::Surroundings;
use super::rotation::Sample;
use super::workload::Workload;
use crate::load::{Latency, LoadOutcome};
use crate::record::{Bed, Cost, FORMAT, Machine, Run, TestRecord};

/// A path in the temporary folder that does not exist yet, unique for this test and process.
pub fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("weir-bench-{name}-{}", std::process::id()));
    // A failed test with the same process id may have left the folder.
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// An empty run.
pub fn run() -> Run {
    Run {
        format: FORMAT,
        command: "weir bench run".into(),
        extent: "smoke".into(),
        started: "2026-11-21T03:55:33Z".into(),
        elapsed_s: 0.0,
        machine: Machine {
            host: "adc".into(),
            kernel: "Linux".into(),
            system: "Debian".into(),
            cpu: "one".into(),
            cores: 2,
            memory_bytes: 1,
            descriptors_max: 1,
            energy_readable: false,
        },
        bed: Bed {
            kind: "loopback".into(),
            product_cores: vec![0],
            load_cores: vec![1],
            idle: "halt".into(),
        },
        products: Vec::new(),
        absent: Vec::new(),
        tests: Vec::new(),
    }
}

/// An empty record of a test.
pub fn record(name: &str) -> TestRecord {
    TestRecord {
        name: name.into(),
        rounds: 3,
        points: Vec::new(),
        omissions: Vec::new(),
        discarded: Vec::new(),
        facts: BTreeMap::new(),
    }
}

/// The result of an undisturbed load with this rate and no errors. `busy_share` is that of the product's core.
pub fn sample(workload: &Workload, requests_per_second: f64, busy_share: f64) -> Sample {
    let elapsed_s = workload.measure.as_secs_f64();
    let requests = (requests_per_second * elapsed_s) as u64;
    let load = LoadOutcome {
        requests,
        errors: 0,
        errors_by_kind: BTreeMap::new(),
        error_examples: BTreeMap::new(),
        requests_per_second,
        window: None,
        offered_per_second: workload.rate,
        unsent: 0,
        latency_us: Latency::default(),
        service_time_us: None,
        connect_us: Latency::default(),
        bytes: requests * workload.body_bytes,
        connections_opened: workload.connections as u64,
        sessions_resumed: 0,
        handshakes: None,
        warm_up_requests: 0,
        warm_up_errors: 0,
        elapsed_s,
        cpu_seconds: 0.1,
        timeline: Vec::new(),
    };
    let cost = Cost {
        elapsed_s,
        busy_s: busy_share * elapsed_s,
        resting_share: 0.01,
        cores: 1,
        process_s: busy_share * elapsed_s,
        resident_bytes: 1 << 20,
        joules: None,
        origin_s: Some(0.2 * elapsed_s),
        load_busy_s: Some(0.3 * elapsed_s),
        direct_s_per_request: None,
        unguarded_s_per_request: None,
        workers_s: None,
    };
    let around = Surroundings {
        stolen_share: 0.0,
        product_busy_share: busy_share + 0.01,
        load_busy_share: 0.5,
        waited_share: 0.0,
        foreign_share: 0.0,
    };
    Sample { load, cost, around }
}
