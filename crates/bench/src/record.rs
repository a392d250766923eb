//! The record of a run: the format of `run.json`.
//!
//! The runner writes it, the report and the comparison read it. It has all data behind the report's figures; the report
//! itself only adds arithmetic.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::load::Outcome;

/// Version of the shape; a run of another version is refused with a clear message.
pub const FORMAT: u32 = 1;

/// The file in a run's folder.
pub const FILE_NAME: &str = "run.json";

/// One run of `weir bench run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`FORMAT`].
    pub format: u32,
    /// The command line.
    pub command: String,
    /// `quick`, `full`, or `chosen` for tests that were named.
    pub extent: String,
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// How long it took.
    pub elapsed_s: f64,
    /// Where it ran.
    pub machine: Machine,
    /// How products, load and origin were placed.
    pub bed: Bed,
    /// The participants, in the order of the report.
    pub products: Vec<Product>,
    /// The absent ones, and the reasons.
    pub absent: Vec<Absence>,
    /// One record per test, in the order of the report.
    pub tests: Vec<TestRecord>,
}

/// The machine, as far as a reader needs it to judge the figures.
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
    /// Cores that the run could use.
    pub cores: usize,
    /// Main memory.
    pub memory_bytes: u64,
    /// Open descriptors that one process may have.
    pub descriptors_max: u64,
    /// Whether the processor's energy counters could be read.
    pub energy_readable: bool,
}

/// Where everything ran.
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

/// The behaviour of cores before runs could choose.
fn halting() -> String {
    "halt".into()
}

/// A product that took part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Product {
    /// `weir`, `nginx`, `haproxy`, `envoy` or a yardstick; of a maker's second row with [`SECOND`] behind it.
    ///
    /// [`SECOND`]: crate::catalogue::SECOND
    pub name: String,
    /// Its version text.
    pub version: String,
    /// Its TLS library with the version, if known; `None` also in runs of earlier versions.
    #[serde(default)]
    pub tls: Option<String>,
    /// The commit that it was built from, if known; likewise.
    #[serde(default)]
    pub commit: Option<String>,
    /// SHA-256 of the program that ran, in hexadecimal; `None` in runs of earlier weirs.
    #[serde(default)]
    pub sha256: Option<String>,
}

/// Something that was left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Absence {
    /// The product.
    pub product: String,
    /// Why, in a sentence for the reader of the report.
    pub reason: String,
}

/// All that was measured for one test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestRecord {
    /// Its name in the catalogue.
    pub name: String,
    /// Good rounds that were wanted.
    pub rounds: u32,
    /// Measurements, in the order in which they were made.
    pub points: Vec<Point>,
    /// Settings that a product could not run, and why.
    pub omissions: Vec<Omission>,
    /// Measurements and rounds that were thrown away, and why: the machine was disturbed.
    pub discarded: Vec<Discard>,
    /// Figures that the test found and built on, by name with its unit (`slowest_requests_per_second`).
    pub facts: BTreeMap<String, f64>,
}

impl TestRecord {
    /// Whether that product could not run that setting.
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
    /// Why.
    pub reason: String,
}

impl Omission {
    /// Whether it is about this setting, too.
    pub fn covers(&self, at: f64) -> bool {
        self.at.is_none_or(|omitted| omitted == at)
    }
}

/// A measurement that was thrown away, or a round before its first one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "WrittenDiscard")]
pub struct Discard {
    /// The round that was tried, from 0; the next try has the same number. `None` where an earlier weir
    /// wrote the reason alone.
    pub round: Option<u32>,
    /// The value on the test's axis; `None` likewise.
    pub at: Option<f64>,
    /// The product of the disturbed measurement, or of the rest before it; `None` for rounds of earlier versions.
    pub product: Option<String>,
    /// Why.
    pub reason: String,
    /// Requests of it that failed; `None` where nothing was measured, or in runs of earlier weirs.
    pub errors: Option<u64>,
    /// Requests of it that were never sent; `None` likewise.
    pub unsent: Option<u64>,
}

/// A discarded round as runs have it: earlier ones have a text.
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
    /// The round, from 0; points of one round and setting were measured side by side.
    pub round: u32,
    /// The value on the test's axis (connections, bytes, requests per second).
    pub at: f64,
    /// The results of the load generator.
    pub load: Outcome,
    /// The costs of the product.
    pub cost: Cost,
    /// Counts, in the tests that count instead of timing.
    #[serde(default)]
    pub counts: Counts,
}

/// Counts of a product.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Instructions in user space, by callgrind.
    #[serde(default)]
    pub instructions: Option<TwoLengths>,
    /// System calls, by perf.
    #[serde(default)]
    pub system_calls: Option<TwoLengths>,
    /// Resident memory, step by step.
    #[serde(default)]
    pub memory: Option<MemorySteps>,
    /// Resident memory with one and with many virtual servers of one firewall, and how long rules take to load.
    #[serde(default)]
    pub firewall: Option<FirewallSteps>,
}

/// The same load twice, short and long: in the difference, start and end of product and load cancel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TwoLengths {
    /// Good transactions of the short and of the long run.
    pub requests: [u64; 2],
    /// The counted numbers.
    pub counted: [u64; 2],
}

impl TwoLengths {
    /// Per transaction; `None` where the lengths do not differ.
    pub fn per_request(&self) -> Option<f64> {
        let difference = |[short, long]: [u64; 2]| long as f64 - short as f64;
        let requests = difference(self.requests);
        (requests > 0.0).then(|| difference(self.counted) / requests)
    }
}

/// Costs of a firewall's rules before any request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FirewallSteps {
    /// To check a configuration with the rules, from start to end.
    pub check_s: f64,
    /// Resident memory with one virtual server.
    pub one_bytes: u64,
    /// Resident memory with this many.
    pub many_bytes: u64,
    /// How many they were.
    pub virtual_servers: u64,
}

/// Resident memory of a product and its processes, step by step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MemorySteps {
    /// Client connections that were opened, each of which made one request and then rested.
    pub connections: u64,
    /// Before them, after a short load.
    pub before_bytes: u64,
    /// While all of them rested.
    pub holding_bytes: u64,
    /// Transactions between the two looks below.
    pub requests: u64,
    /// When they were closed again and the product was warm.
    pub warm_bytes: u64,
    /// After that many transactions.
    pub worn_bytes: u64,
}

/// The costs of the product during the measurement: from its beginning to the end of its time, as in
/// [`Outcome::window`] (until the last response in runs of earlier versions).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Time between the two readings of the counters; the window's length but for a delay.
    pub elapsed_s: f64,
    /// Time in which the product's cores were neither idle nor taken by the hypervisor, softirq
    /// included, less [`Self::resting_share`] of the elapsed time; summed over the cores.
    pub busy_s: f64,
    /// Share of one core that is busy while the bed rests.
    pub resting_share: f64,
    /// Number of the product's cores.
    pub cores: usize,
    /// The scheduler's account of the product's own threads.
    pub process_s: f64,
    /// Resident memory of the product after the measurement.
    pub resident_bytes: u64,
    /// Energy of the processor package, where counters are readable.
    pub joules: Option<f64>,
    /// The scheduler's account of the origin, which shares the load's cores; absent in runs of earlier weirs.
    #[serde(default)]
    pub origin_s: Option<f64>,
    /// Time in which the cores of load and origin were busy, softirq included; absent in runs of earlier weirs.
    #[serde(default)]
    pub load_busy_s: Option<f64>,
    /// Busy time of all cores per transaction with clients and servers joined directly, measured right before; only in
    /// tests of products that are no process.
    #[serde(default)]
    pub direct_s_per_request: Option<f64>,
    /// Busy time of the product's cores per transaction without its firewall, measured right before with the same
    /// requests; only in tests of firewalls.
    #[serde(default)]
    pub unguarded_s_per_request: Option<f64>,
}
