//! Counters of a load: one tally per thread, added up at the end.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::fault::Fault;
use super::load_outcome::{ErrorKind, Latency};

/// Longest distinguished time: one hour.
const LATENCY_US_MAX: u64 = 3_600_000_000;
/// Values that differ by less than a thousandth may count as equal.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Percentiles of the curve in [`Latency`].
const CURVE: &[f64] = &[
    0.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 92.5, 95.0, 96.5,
    98.0, 99.0, 99.3, 99.5, 99.7, 99.8, 99.9, 99.95, 99.97, 99.99, 99.995, 99.999, 99.9999,
];

/// A distribution of times.
#[derive(Debug, Clone)]
pub struct Times(Histogram<u64>);

impl Times {
    /// An empty distribution.
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_US_MAX, SIGNIFICANT_DIGITS);
        // The bounds are constants that the crate accepts; see the test.
        Self(histogram.unwrap_or_else(|error| unreachable!("constant bounds: {error}")))
    }

    /// Counts a time.
    #[inline]
    pub fn record(&mut self, us: u64) {
        self.0.saturating_record(us);
    }

    /// Adds another distribution.
    pub fn add(&mut self, other: &Self) {
        // The bounds are equal, so adding cannot fail.
        let _ = self.0.add(&other.0);
    }

    /// Mean, extremes and percentiles.
    pub fn summary(&self) -> Latency {
        let histogram = &self.0;
        if histogram.is_empty() {
            return Latency::default();
        }
        let count = histogram.len();
        // Above this percentile there is less than one value, so only the maximum is meaningful.
        let told = |percentile: f64| (1.0 - percentile / 100.0) * count as f64 >= 0.999;
        let mut curve: Vec<_> = CURVE
            .iter()
            .filter(|&&percentile| told(percentile))
            .map(|&percentile| (percentile, histogram.value_at_percentile(percentile)))
            .collect();
        curve.push((100.0, histogram.max()));
        Latency {
            count,
            mean: histogram.mean(),
            min: histogram.min(),
            p50: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            max: histogram.max(),
            curve,
        }
    }
}

/// Good responses that were complete within a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompletedResponses {
    /// Number of responses.
    pub requests: u64,
    /// Sum of their body bytes.
    pub bytes: u64,
}

/// Transactions and errors of one phase of a load.
#[derive(Debug, Clone)]
pub struct Tally {
    /// Good transactions.
    pub requests: u64,
    /// Body bytes of the good transactions.
    pub bytes: u64,
    /// Number of errors by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Description of the first error of each kind.
    pub examples: BTreeMap<ErrorKind, String>,
    /// Time from the due time to the last byte.
    pub latency: Times,
    /// Time from sending to the last byte.
    pub service_time: Times,
    /// Time to open a connection.
    pub connect: Times,
    /// Number of opened connections.
    pub connections_opened: u64,
    /// Number of resumed TLS sessions.
    pub sessions_resumed: u64,
    /// Number of full TLS handshakes.
    pub handshakes_full: u64,
}

impl Tally {
    /// An empty tally.
    pub fn new() -> Self {
        Self {
            requests: 0,
            bytes: 0,
            errors: BTreeMap::new(),
            examples: BTreeMap::new(),
            latency: Times::new(),
            service_time: Times::new(),
            connect: Times::new(),
            connections_opened: 0,
            sessions_resumed: 0,
            handshakes_full: 0,
        }
    }

    /// Counts a good transaction.
    #[inline]
    pub fn good(&mut self, latency_us: u64, service_time_us: u64, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
        self.latency.record(latency_us);
        self.service_time.record(service_time_us);
    }

    /// Counts an error.
    pub fn error(&mut self, fault: &Fault) {
        *self.errors.entry(fault.kind()).or_default() += 1;
        self.examples.entry(fault.kind()).or_insert_with(|| fault.to_string());
    }

    /// Number of all errors.
    pub fn errors_total(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        for (kind, count) in &other.errors {
            *self.errors.entry(*kind).or_default() += count;
        }
        for (kind, text) in &other.examples {
            self.examples.entry(*kind).or_insert_with(|| text.clone());
        }
        self.latency.add(&other.latency);
        self.service_time.add(&other.service_time);
        self.connect.add(&other.connect);
        self.connections_opened += other.connections_opened;
        self.sessions_resumed += other.sessions_resumed;
        self.handshakes_full += other.handshakes_full;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_values() {
        let mut times = Times::new();
        for us in 1..=10_000 {
            times.record(us);
        }
        let summary = times.summary();
        let close = |found: u64, expected: f64| (found as f64 / expected - 1.0).abs() < 0.002;
        assert!(close(summary.p50, 5_000.0) && close(summary.p90, 9_000.0), "{summary:?}");
        assert!(close(summary.p99, 9_900.0) && close(summary.p999, 9_990.0), "{summary:?}");
        assert_eq!((summary.count, summary.min), (10_000, 1));
        assert!(close(summary.max, 10_000.0));
        assert_eq!(summary.curve.last().map(|point| point.0), Some(100.0));
        assert!(summary.curve.iter().any(|point| point.0 == 99.99));
        assert!(!summary.curve.iter().any(|point| point.0 == 99.999), "told by nothing");
    }

    #[test]
    fn extremes_are_counted_not_lost() {
        let mut times = Times::new();
        times.record(0);
        times.record(u64::MAX);
        assert_eq!(times.summary().count, 2);
        assert_eq!(Times::new().summary(), Latency::default());
    }

    #[test]
    fn threads_add_up() {
        let mut all = Tally::new();
        for _ in 0..3 {
            let mut one = Tally::new();
            one.good(10, 8, 100);
            one.error(&Fault::Short);
            one.connect.record(5);
            all.add(&one);
        }
        assert_eq!((all.requests, all.bytes, all.errors_total()), (3, 300, 3));
        assert_eq!(all.latency.summary().count, 3);
        assert_eq!(all.connect.summary().p50, 5);
    }
}
