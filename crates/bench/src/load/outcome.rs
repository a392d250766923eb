//! What a load saw: the JSON of `weir bench load --json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The result of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Good transactions: a complete response that is what was expected.
    pub requests: u64,
    /// Everything that was begun and did not become a good transaction, failed connections included.
    pub errors: u64,
    /// The same by kind; kinds that did not happen are absent.
    pub errors_by_kind: BTreeMap<ErrorKind, u64>,
    /// The first error of each kind, in words.
    pub error_examples: BTreeMap<ErrorKind, String>,
    /// Good transactions per second of the measurement.
    pub requests_per_second: f64,
    /// The rate that was asked for; absent in a closed loop.
    pub offered_per_second: Option<f64>,
    /// Requests of an open loop whose time had come and that were never sent, because the load ended
    /// while all connections were busy: the offered rate was not reached.
    pub unsent: u64,
    /// From the intended send time (open loop) or the actual one (closed loop) to the last byte.
    pub latency_us: Latency,
    /// Open loop only: from the actual send to the last byte, which hides stalls. The difference to
    /// [`Self::latency_us`] is what coordinated omission would have hidden.
    pub service_time_us: Option<Latency>,
    /// From `connect` to the open connection, handshakes included.
    pub connect_us: Latency,
    /// Body bytes of good transactions.
    pub bytes: u64,
    /// Connections that were opened.
    pub connections_opened: u64,
    /// TLS sessions that were resumed.
    pub sessions_resumed: u64,
    /// Good transactions before the measurement began, which are not in [`Self::requests`].
    pub warm_up_requests: u64,
    /// Errors before the measurement began, which are not in [`Self::errors`].
    pub warm_up_errors: u64,
    /// Length of the measurement: from its start until the last response.
    pub elapsed_s: f64,
    /// CPU time of the load generator's threads over the measurement.
    pub cpu_seconds: f64,
}

/// Why a transaction is not a good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The connection could not be opened.
    Connect,
    /// The TLS handshake failed.
    Handshake,
    /// The connection was reset.
    Reset,
    /// The connection ended before the response was complete.
    Short,
    /// Nothing, or not everything, came within the time limit.
    Timeout,
    /// What came is not HTTP.
    Malformed,
    /// Another status than expected.
    Status,
    /// Another body length than expected.
    Length,
    /// Another checksum than expected.
    Checksum,
}

/// A distribution of times in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Values counted.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Largest.
    pub max: u64,
    /// The whole curve for a chart: percentile and value, ascending.
    pub curve: Vec<(f64, u64)>,
}
