//! The results of a load: the JSON of `weir bench load --json`.
//!
//! There are two ways of counting. They differ by the requests that are open at the start and at the end of the
//! measurement:
//!
//! - Results of requests: [`LoadOutcome::requests`], [`LoadOutcome::errors`], [`LoadOutcome::bytes`] and the latencies refer to
//!   requests that began in the measurement (in an open loop: were due in it), however late they end. Together with the
//!   requests before the measurement, they equal the server's count.
//! - Speed: [`LoadOutcome::requests_per_second`] and [`LoadOutcome::window`] refer to good responses that were complete within
//!   the measurement, whenever they were requested. Counting only requests that are both sent and answered in the
//!   measurement would exclude those open at its start: one per connection, a larger share with a slower server.
//!
//! The server's CPU time in the measurement belongs to the second way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The result of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadOutcome {
    /// Number of good transactions that began in the measurement: the response is complete and as expected, however
    /// late.
    pub requests: u64,
    /// Number of transactions that began in the measurement and failed. Includes failed connections.
    pub errors: u64,
    /// Errors by kind, without kinds that did not occur.
    pub errors_by_kind: BTreeMap<ErrorKind, u64>,
    /// Description of the first error of each kind.
    pub error_examples: BTreeMap<ErrorKind, String>,
    /// Good responses per second in [`Self::window`].
    pub requests_per_second: f64,
    /// Responses that were complete within the measurement, whenever they began. Records of earlier versions lack it;
    /// use [`Self::completed`].
    #[serde(default)]
    pub window: Option<Window>,
    /// The requested rate; absent in a closed loop.
    pub offered_per_second: Option<f64>,
    /// In an open loop, number of due requests that were never sent because all connections were busy until the end. If
    /// it is not 0, the load did not reach the offered rate.
    pub unsent: u64,
    /// Time until the last byte: from the due time in an open loop, from sending in a closed loop.
    pub latency_us: Latency,
    /// Open loop only: time from sending to the last byte. It excludes the wait for an idle connection, and so hides
    /// stalls (coordinated omission); [`Self::latency_us`] includes this wait.
    pub service_time_us: Option<Latency>,
    /// Time from `connect` until the connection is usable, TLS handshake included.
    pub connect_us: Latency,
    /// Body bytes of the good transactions in [`Self::requests`].
    pub bytes: u64,
    /// Number of opened connections.
    pub connections_opened: u64,
    /// Number of resumed TLS sessions.
    pub sessions_resumed: u64,
    /// TLS handshakes that began in the measurement and were completed; absent without TLS.
    #[serde(default)]
    pub handshakes: Option<Handshakes>,
    /// Number of good transactions before the measurement. They are not in [`Self::requests`].
    pub warm_up_requests: u64,
    /// Number of errors before the measurement. They are not in [`Self::errors`].
    pub warm_up_errors: u64,
    /// Length of the measurement: from its start until the last response.
    pub elapsed_s: f64,
    /// CPU time of the load generator's threads within [`Self::window`].
    pub cpu_seconds: f64,
    /// Good transactions over time, if the plan asks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Moment>,
}

/// Number of good transactions up to a moment.
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
    /// Handshakes with a new key exchange and a signature.
    pub full: u64,
    /// Handshakes that resumed an earlier session.
    pub resumed: u64,
}

/// The length of the measurement and the good responses that were complete within it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// The length of the window. With a duration: that duration, or less if the load was stopped. With a number of requests:
    /// the time until the last response.
    pub elapsed_s: f64,
    /// Good responses that were complete within the window, including responses to requests of the warm-up.
    pub requests: u64,
    /// Body bytes of these responses.
    pub bytes: u64,
}

impl LoadOutcome {
    /// [`Self::window`], or for records without one all requests, over a time that includes the wait for the last
    /// response.
    pub fn completed(&self) -> Window {
        let (elapsed_s, requests, bytes) = (self.elapsed_s, self.requests, self.bytes);
        self.window.unwrap_or(Window { elapsed_s, requests, bytes })
    }

    /// The kept share of the offered rate, at most 1; `None` for a closed loop.
    ///
    /// The share of due requests with a good response. If the responses took longer than the load, at most the load's
    /// share of that time. Responses within [`DRAIN_GRACE_S`] after the end are not late.
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

/// A rate counts as kept from this share on.
pub const KEPT_SHARE_MIN: f64 = 0.99;

/// Time after the end of a load during which open requests do not count as a backlog.
const DRAIN_GRACE_S: f64 = 0.1;

/// The kind of a failed transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The connection could not be opened.
    Connect,
    /// The TLS handshake failed.
    Handshake,
    /// The connection was reset.
    Reset,
    /// The server closed a keep-alive connection instead of answering the next request on it.
    Closed,
    /// The connection ended before the response was complete.
    Short,
    /// The response was not complete within the time limit.
    Timeout,
    /// The data is not valid HTTP.
    Malformed,
    /// Another status than expected.
    Status,
    /// Another body length than expected.
    Length,
    /// Another checksum than expected.
    Checksum,
    /// An HTTP/2 stream was reset or rejected, or the connection violated the protocol.
    Stream,
    /// A response that should be compressed was not.
    NotCompressed,
    /// No answer came to a datagram within the time limit.
    Lost,
}

/// A distribution of times in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Number of values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest value.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Largest value.
    pub max: u64,
    /// Points of the distribution for a chart: percentile and value, ascending.
    pub curve: Vec<(f64, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_of_an_earlier_weir_is_read() {
        let whole =
            LoadOutcome { requests: 50, bytes: 500, elapsed_s: 2.0, ..LoadOutcome::default() };
        let mut json = serde_json::to_value(&whole).expect("JSON");
        json.as_object_mut().expect("an object").remove("window");
        let read: LoadOutcome = serde_json::from_value(json).expect("without a window");
        assert_eq!(read, whole);
        assert_eq!(read.completed(), Window { elapsed_s: 2.0, requests: 50, bytes: 500 });
        let window = Window { elapsed_s: 1.0, requests: 40, bytes: 400 };
        assert_eq!(LoadOutcome { window: Some(window), ..whole }.completed(), window);
    }

    #[test]
    fn a_rate_is_kept_when_what_was_due_was_answered_in_time() {
        let check = |requests, errors, unsent, elapsed_s, expected: f64| {
            let outcome: LoadOutcome = LoadOutcome {
                requests,
                errors,
                unsent,
                elapsed_s,
                offered_per_second: Some(1_000.0),
                ..LoadOutcome::default()
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
        assert_eq!(LoadOutcome::default().kept_share(), None);
    }
}
