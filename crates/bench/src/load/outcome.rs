//! The results of a load: the JSON of `weir bench load --json`.
//!
//! Two ways of counting answer two questions. They differ by the requests that are open when the measurement begins and
//! when it ends:
//!
//! - *What was the result of the requests?* [`Outcome::requests`], [`Outcome::errors`], [`Outcome::bytes`] and the
//!   latencies refer to the requests that were begun in the measurement (in an open loop: due in it), and all of them are
//!   awaited. Together with those before the measurement, they equal the server's count.
//! - *How fast was it?* [`Outcome::requests_per_second`] and [`Outcome::window`] refer to the good responses that were
//!   complete within the measurement's time, whenever they were requested. Counting only requests that are both sent and
//!   answered in it would lose those that are open at its beginning: as many as there are connections, which is a greater
//!   share with a slower server.
//!
//! The CPU time of a server in that time belongs to the second.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The result of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Good transactions that were begun in the measurement: a complete and expected response, however late.
    pub requests: u64,
    /// Everything that was begun in the measurement and did not become a good transaction, failed connections included.
    pub errors: u64,
    /// By kind; absent kinds did not occur.
    pub errors_by_kind: BTreeMap<ErrorKind, u64>,
    /// The first error of each kind, in words.
    pub error_examples: BTreeMap<ErrorKind, String>,
    /// Good responses per second: those of [`Self::window`] over its length.
    pub requests_per_second: f64,
    /// Responses that were complete within the measurement's time, whenever they were begun. Missing in records of earlier
    /// versions; [`Self::completed`] has the best substitute.
    #[serde(default)]
    pub window: Option<Window>,
    /// The requested rate; absent in a closed loop.
    pub offered_per_second: Option<f64>,
    /// Requests of an open loop whose time had come and that were never sent, because the load ended
    /// while all connections were busy: the offered rate was not reached.
    pub unsent: u64,
    /// From the intended send time (open loop) or the actual one (closed loop) to the last byte.
    pub latency_us: Latency,
    /// Open loop only: from the actual send to the last byte, which hides stalls. The difference to [`Self::latency_us`]
    /// would be hidden by coordinated omission.
    pub service_time_us: Option<Latency>,
    /// From `connect` to the open connection, handshakes included.
    pub connect_us: Latency,
    /// Body bytes of the good transactions in [`Self::requests`].
    pub bytes: u64,
    /// Connections that were opened.
    pub connections_opened: u64,
    /// TLS sessions that were resumed.
    pub sessions_resumed: u64,
    /// TLS handshakes that were begun in the measurement and done; absent without TLS.
    #[serde(default)]
    pub handshakes: Option<Handshakes>,
    /// Good transactions before the measurement began, which are not in [`Self::requests`].
    pub warm_up_requests: u64,
    /// Errors before the measurement began, which are not in [`Self::errors`].
    pub warm_up_errors: u64,
    /// Length of the measurement: from its start until the last response.
    pub elapsed_s: f64,
    /// CPU time of the load generator's threads within [`Self::window`].
    pub cpu_seconds: f64,
    /// Good transactions over the measurement's time, if wanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Moment>,
}

/// How many good transactions there were until a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Seconds since the measurement began.
    pub at_s: f64,
    /// Good transactions since then.
    pub requests: u64,
}

/// TLS handshakes by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshakes {
    /// With a new key exchange and a signature.
    pub full: u64,
    /// That went on with an earlier session.
    pub resumed: u64,
}

/// The measurement's time and the good responses that were complete within it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its length: the requested time; less if the load was stopped; with a number of requests from the beginning until
    /// the last response.
    pub elapsed_s: f64,
    /// Good responses that were complete in it, those to requests of the warm-up included.
    pub requests: u64,
    /// Their body bytes.
    pub bytes: u64,
}

impl Outcome {
    /// [`Self::window`]; of an outcome without one all that it has, which includes the wait for the last
    /// response.
    pub fn completed(&self) -> Window {
        let (elapsed_s, requests, bytes) = (self.elapsed_s, self.requests, self.bytes);
        self.window.unwrap_or(Window { elapsed_s, requests, bytes })
    }

    /// The share of the offered rate that was kept, at most 1; `None` for a closed loop.
    ///
    /// It is the share of the due requests that were answered, or, if the responses took longer than the load, the load's
    /// share of that time. Open requests at the end are no backlog: they get [`DRAIN_GRACE_S`].
    pub fn kept_share(&self) -> Option<f64> {
        let offered_per_second = self.offered_per_second?;
        let due = self.requests as f64 + self.errors as f64 + self.unsent as f64;
        if due <= 0.0 || offered_per_second <= 0.0 {
            return Some(0.0);
        }
        let asked_s = due / offered_per_second;
        let in_time = asked_s / (self.elapsed_s - DRAIN_GRACE_S).max(asked_s);
        Some((self.requests as f64 / due).min(in_time))
    }
}

/// A rate was kept when this share of it came through.
pub const KEPT_SHARE_MIN: f64 = 0.99;

/// Responses that take at most this long after the end of a load do not count as a backlog.
const DRAIN_GRACE_S: f64 = 0.1;

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
    /// The server closed a kept connection instead of answering the next request on it.
    Closed,
    /// The connection ended before the response was complete.
    Short,
    /// Nothing, or not everything, came within the time limit.
    Timeout,
    /// The data is no HTTP.
    Malformed,
    /// Another status than expected.
    Status,
    /// Another body length than expected.
    Length,
    /// Another checksum than expected.
    Checksum,
    /// A stream of HTTP/2 was reset or not taken, or the connection's framing was against the protocol.
    Stream,
    /// A response that should be compressed was not.
    NotCompressed,
    /// No answer came to a datagram within the time limit.
    Lost,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_of_an_earlier_weir_is_read() {
        let whole = Outcome { requests: 50, bytes: 500, elapsed_s: 2.0, ..Outcome::default() };
        let mut json = serde_json::to_value(&whole).expect("JSON");
        json.as_object_mut().expect("an object").remove("window");
        let read: Outcome = serde_json::from_value(json).expect("without a window");
        assert_eq!(read, whole);
        assert_eq!(read.completed(), Window { elapsed_s: 2.0, requests: 50, bytes: 500 });
        let window = Window { elapsed_s: 1.0, requests: 40, bytes: 400 };
        assert_eq!(Outcome { window: Some(window), ..whole }.completed(), window);
    }

    #[test]
    fn a_rate_is_kept_when_what_was_due_was_answered_in_time() {
        let check = |requests, errors, unsent, elapsed_s, expected: f64| {
            let outcome: Outcome = Outcome {
                requests,
                errors,
                unsent,
                elapsed_s,
                offered_per_second: Some(1_000.0),
                ..Outcome::default()
            };
            let found = outcome.kept_share().expect("an open loop");
            assert!((found - expected).abs() < 1e-9, "{outcome:?}: {found}");
        };
        check(500, 0, 0, 0.5, 1.0);
        check(500, 0, 0, 0.55, 1.0);
        check(500, 0, 0, 1.1, 0.5);
        check(450, 50, 0, 0.5, 0.9);
        check(400, 0, 100, 0.5, 0.8);
        check(0, 0, 0, 0.5, 0.0);
        assert_eq!(Outcome::default().kept_share(), None);
    }
}
