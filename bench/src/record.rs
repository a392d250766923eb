//! The record of a run: the format of its files, see `kept`.
//!
//! The runner writes it; the report and the comparison read it. It has all data of the report's figures; the report
//! only calculates with it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::load::LoadOutcome;

/// Version of the format. A run with another version is rejected with an error that names both.
pub const FORMAT: u32 = 2;

/// One run of `weir bench run`. With `T = String`, it names its tests only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run<T = TestRecord> {
    /// The version of the format: [`FORMAT`].
    pub format: u32,
    /// The command line.
    pub command: String,
    /// `quick`, `full`, or `chosen` if the command line named tests.
    pub extent: String,
    /// Start of the run, RFC 3339 in UTC.
    pub started: String,
    /// Duration of the run.
    pub elapsed_s: f64,
    /// The machine.
    pub machine: Machine,
    /// Network and cores.
    pub bed: Bed,
    /// The participants, in the order of the report.
    pub products: Vec<Product>,
    /// Missing products, with reasons.
    pub absent: Vec<Absence>,
    /// One entry per test, in the order of the report.
    pub tests: Vec<T>,
}

impl<T> Run<T> {
    /// The run with other entries for its tests.
    pub fn with_tests<U>(&self, tests: Vec<U>) -> Run<U> {
        Run {
            format: self.format,
            command: self.command.clone(),
            extent: self.extent.clone(),
            started: self.started.clone(),
            elapsed_s: self.elapsed_s,
            machine: self.machine.clone(),
            bed: self.bed.clone(),
            products: self.products.clone(),
            absent: self.absent.clone(),
            tests,
        }
    }
}

/// Properties of the machine that the report shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Host name.
    pub host: String,
    /// Kernel name, release and architecture.
    pub kernel: String,
    /// Distribution.
    pub system: String,
    /// Processor model.
    pub cpu: String,
    /// Number of cores that the run could use.
    pub cores: usize,
    /// Main memory.
    pub memory_bytes: u64,
    /// Maximum number of open descriptors per process.
    pub descriptors_max: u64,
    /// Whether the processor's energy counters are readable.
    pub energy_readable: bool,
}

/// Network and cores of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bed {
    /// `loopback` or `namespaces`.
    pub kind: String,
    /// Cores of the product under test.
    pub product_cores: Vec<usize>,
    /// Cores of load and origin.
    pub load_cores: Vec<usize>,
    /// The behaviour of idle cores: `halt` or `poll`.
    #[serde(default = "halting")]
    pub idle: String,
}

/// The behaviour of cores in runs of earlier versions.
fn halting() -> String {
    "halt".into()
}

/// A product of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Product {
    /// `weir`, `nginx`, `haproxy`, `envoy` or a yardstick; the second row of a product has the suffix [`SECOND`].
    ///
    /// [`SECOND`]: crate::catalogue::SECOND
    pub name: String,
    /// The version text of the product.
    pub version: String,
    /// The name and version of the product's TLS library, if known; `None` in runs of earlier versions.
    #[serde(default)]
    pub tls: Option<String>,
    /// The commit that the product was built from, if known; `None` in runs of earlier versions.
    #[serde(default)]
    pub commit: Option<String>,
    /// SHA-256 of the program, in hexadecimal; `None` in runs of earlier versions.
    #[serde(default)]
    pub sha256: Option<String>,
}

/// A missing product.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Absence {
    /// The product.
    pub product: String,
    /// The reason, as a sentence for the reader of the report.
    pub reason: String,
}

/// All measurements of one test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestRecord {
    /// The name of the test in the catalogue.
    pub name: String,
    /// Number of wanted undisturbed rounds.
    pub rounds: u32,
    /// Measurements, in the order of time.
    pub points: Vec<Point>,
    /// Settings that a product could not run, with reasons.
    pub omissions: Vec<Omission>,
    /// Disturbed measurements and rounds that were discarded, with reasons.
    pub discarded: Vec<Discard>,
    /// Values that the test determined and used, by name with unit (`slowest_requests_per_second`).
    pub facts: BTreeMap<String, f64>,
}

impl TestRecord {
    /// Whether an omission covers that product and setting.
    pub fn omits(&self, product: &str, at: f64) -> bool {
        let is_it = |omission: &Omission| omission.product == product && omission.covers(at);
        self.omissions.iter().any(is_it)
    }
}

/// A setting that a product could not run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Omission {
    /// The product.
    pub product: String,
    /// The value on the test's axis; `None`: the whole test, or the rest of it.
    pub at: Option<f64>,
    /// The reason.
    pub reason: String,
}

impl Omission {
    /// Whether the omission covers this setting.
    pub fn covers(&self, at: f64) -> bool {
        self.at.is_none_or(|omitted| omitted == at)
    }
}

/// A discarded measurement, or a discarded round whose machine was busy before a measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "WrittenDiscard")]
pub struct Discard {
    /// Number of the round, from 0; its repetition has the same number. `None` in runs of earlier versions, which have
    /// only the reason.
    pub round: Option<u32>,
    /// The value on the test's axis; `None` in runs of earlier versions.
    pub at: Option<f64>,
    /// The product of the disturbed measurement; `None` in runs of earlier versions.
    pub product: Option<String>,
    /// The reason.
    pub reason: String,
    /// Failed requests of the measurement; `None` without a measurement, and in runs of earlier versions.
    pub errors: Option<u64>,
    /// Requests of the measurement that were never sent; `None` in the same cases.
    pub unsent: Option<u64>,
}

/// A discarded round in the file; earlier versions wrote only a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenDiscard {
    Text(String),
    Whole {
        round: Option<u32>,
        at: Option<f64>,
        product: Option<String>,
        reason: String,
        #[serde(default)]
        errors: Option<u64>,
        #[serde(default)]
        unsent: Option<u64>,
    },
}

impl From<WrittenDiscard> for Discard {
    fn from(written: WrittenDiscard) -> Self {
        match written {
            WrittenDiscard::Text(reason) => Self { reason, ..Self::default() },
            WrittenDiscard::Whole { round, at, product, reason, errors, unsent } => {
                Self { round, at, product, reason, errors, unsent }
            }
        }
    }
}

/// One measurement: one product, one round, one setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The product.
    pub product: String,
    /// Number of the round, from 0. Points of the same round and setting are comparable.
    pub round: u32,
    /// The value on the test's axis (connections, bytes, requests per second).
    pub at: f64,
    /// The results of the load generator.
    pub load: LoadOutcome,
    /// The costs of the product.
    pub cost: Cost,
    /// Counts, in counting tests.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub counts: Counts,
}

/// Counts of a product.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// User-space instructions, by callgrind.
    #[serde(default)]
    pub instructions: Option<TwoLengths>,
    /// System calls, by perf.
    #[serde(default)]
    pub system_calls: Option<TwoLengths>,
    /// Resident memory before, while and after connections are open.
    #[serde(default)]
    pub memory: Option<MemorySteps>,
    /// Resident memory with one and with many virtual servers of one firewall, and time to load the rules.
    #[serde(default)]
    pub firewall: Option<FirewallSteps>,
}

impl Counts {
    /// Whether nothing was counted.
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Counts of a short and a long run. In their difference, the costs of start and end cancel out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TwoLengths {
    /// Good transactions of the short and the long run.
    pub requests: [u64; 2],
    /// Counts of the short and the long run.
    pub counted: [u64; 2],
}

impl TwoLengths {
    /// Count per additional transaction; `None` if both runs had the same number of transactions.
    pub fn per_request(&self) -> Option<f64> {
        let difference = |[short, long]: [u64; 2]| long as f64 - short as f64;
        let requests = difference(self.requests);
        (requests > 0.0).then(|| difference(self.counted) / requests)
    }
}

/// Costs of a firewall's rules, without requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FirewallSteps {
    /// Duration of a check of the configuration with the rules.
    pub check_s: f64,
    /// Resident memory with one virtual server.
    pub one_bytes: u64,
    /// Resident memory with `virtual_servers` virtual servers.
    pub many_bytes: u64,
    /// Number of virtual servers.
    pub virtual_servers: u64,
}

/// Resident memory of a product and its child processes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MemorySteps {
    /// Number of client connections. Each made one request and then stayed open.
    pub connections: u64,
    /// Memory before these connections, after a short load.
    pub before_bytes: u64,
    /// Memory while all of them were idle.
    pub holding_bytes: u64,
    /// Number of transactions between `warm_bytes` and `worn_bytes`.
    pub requests: u64,
    /// Memory after the connections were closed and the product was warm.
    pub warm_bytes: u64,
    /// Memory after these transactions.
    pub worn_bytes: u64,
}

/// Costs of the product during [`LoadOutcome::window`] (in runs of earlier versions: until the last response).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Time between the two readings of the counters. It differs from the window's length only by a delay.
    pub elapsed_s: f64,
    /// Time, summed over the product's cores, in which they were neither idle nor taken by the hypervisor, softirqs
    /// included; less [`Self::resting_share`] of the elapsed time.
    pub busy_s: f64,
    /// Busy share of a core at rest.
    pub resting_share: f64,
    /// Number of the product's cores.
    pub cores: usize,
    /// CPU time of the product's own threads, from the scheduler.
    pub process_s: f64,
    /// Resident memory of the product after the measurement.
    pub resident_bytes: u64,
    /// Energy of the processor packages, if the counters are readable.
    pub joules: Option<f64>,
    /// CPU time of the origin, which runs on the load's cores, from the scheduler; absent in runs of earlier versions.
    #[serde(default)]
    pub origin_s: Option<f64>,
    /// Busy time of the cores of load and origin, softirqs included; absent in runs of earlier versions.
    #[serde(default)]
    pub load_busy_s: Option<f64>,
    /// Busy time of all cores per transaction over a direct connection of clients and servers, measured just before.
    /// Only in tests of packet paths, which have no process.
    #[serde(default)]
    pub direct_s_per_request: Option<f64>,
    /// Busy time of the product's cores per transaction without its firewall, measured just before with the same
    /// requests. Only in tests of firewalls.
    #[serde(default)]
    pub unguarded_s_per_request: Option<f64>,
    /// CPU time of weir's worker threads, from the scheduler, as a part of [`Self::process_s`]; `None` for other
    /// products, and in runs of earlier versions.
    #[serde(default)]
    pub workers_s: Option<f64>,
}
