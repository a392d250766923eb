//! Rates of virtual servers per second, computed from their counters now and a few seconds ago.
//!
//! Each admin listener samples the counters once per second. Without an admin listener there are no samples. The data path
//! only increments its counters.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use weir_api::rate::Rate;
use weir_exchange::shared::counters::VirtualServerTotals;
use weir_exchange::shared::live::{LiveTable, LiveVirtualServer};
use weir_packet::Totals;

use crate::packets::Report;
use crate::time::monotonic_ms;

/// The maximum period of a rate, approximately.
const WINDOW_MS: u64 = 10_000;

/// Minimum interval between samples, even with several listeners.
const SAMPLE_INTERVAL_MS_MIN: u64 = 900;

/// Minimum period of a rate.
const SPAN_MS_MIN: u64 = 1_000;

/// Maximum number of samples. It is enough for the window at the shortest interval.
const SAMPLES_MAX: usize = (WINDOW_MS / SAMPLE_INTERVAL_MS_MIN) as usize + 1;

/// The origin of a virtual server's counters. A virtual server of type fast_l4 that fell back to sockets has both kinds.
#[derive(Debug, Clone, Copy)]
pub enum CounterSource {
    /// Counters of the workers, for `virtual_servers`.
    Sockets,
    /// Counters of the packet path, for `packet_path`.
    Packets,
}

/// Counters of a virtual server. They only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    connections: u64,
    requests: u64,
    /// Datagrams of type udp or packets of type fast_l4, in both directions.
    packets: u64,
    bytes_received: u64,
    bytes_sent: u64,
}

/// Samples of the counters from the last seconds.
#[derive(Debug, Default)]
pub struct Rates(Mutex<VecDeque<Sample>>);

#[derive(Debug)]
struct Sample {
    at_ms: u64,
    sockets: HashMap<Arc<str>, Counts>,
    packets: HashMap<String, Counts>,
}

impl Counts {
    /// The counters of a virtual server that uses sockets.
    pub fn of_sockets(totals: &VirtualServerTotals) -> Self {
        Self {
            connections: totals.connections_accepted,
            requests: totals.requests,
            packets: totals.datagrams_received.wrapping_add(totals.datagrams_sent),
            bytes_received: totals.bytes_received,
            bytes_sent: totals.bytes_sent,
        }
    }

    /// The same counters, without reading all others.
    fn of_live(live: &LiveVirtualServer) -> Self {
        let mut counts = Self::default();
        for worker in 0..live.counters.workers() {
            let counters = live.counters.of(worker);
            let add = |to: &mut u64, counted: u64| *to = to.wrapping_add(counted);
            add(&mut counts.connections, counters.connections_accepted.get());
            add(&mut counts.requests, counters.requests.get());
            add(&mut counts.packets, counters.datagrams_received.get());
            add(&mut counts.packets, counters.datagrams_sent.get());
            add(&mut counts.bytes_received, counters.bytes_received.get());
            add(&mut counts.bytes_sent, counters.bytes_sent.get());
        }
        counts
    }

    /// The counters of a virtual server that uses the packet path.
    pub fn of_packets(totals: &Totals) -> Self {
        Self {
            connections: totals.flows,
            requests: 0,
            packets: totals.packets_in.wrapping_add(totals.packets_out),
            bytes_received: totals.bytes_in,
            bytes_sent: totals.bytes_out,
        }
    }

    /// The difference from an older sample; `None`: the counters were reset in between.
    fn since(&self, earlier: &Self) -> Option<Self> {
        Some(Self {
            connections: self.connections.checked_sub(earlier.connections)?,
            requests: self.requests.checked_sub(earlier.requests)?,
            packets: self.packets.checked_sub(earlier.packets)?,
            bytes_received: self.bytes_received.checked_sub(earlier.bytes_received)?,
            bytes_sent: self.bytes_sent.checked_sub(earlier.bytes_sent)?,
        })
    }

    fn per_second(&self, span_ms: u64) -> Rate {
        let tenths = |value: f64| (value * 10.0).round() / 10.0;
        let seconds = span_ms as f64 / 1_000.0;
        let rate = |count: u64| tenths(count as f64 / seconds);
        Rate {
            seconds: tenths(seconds),
            connections_per_second: rate(self.connections),
            requests_per_second: rate(self.requests),
            packets_per_second: rate(self.packets),
            bytes_received_per_second: rate(self.bytes_received),
            bytes_sent_per_second: rate(self.bytes_sent),
        }
    }
}

impl Sample {
    fn of(table: &LiveTable, report: Option<&Report>, at_ms: u64) -> Self {
        let of_packets = report.iter().flat_map(|report| &report.servers);
        let of_sockets = table.virtual_servers.iter();
        Self {
            at_ms,
            sockets: of_sockets
                .map(|live| (Arc::clone(&live.name), Counts::of_live(live)))
                .collect(),
            packets: of_packets
                .map(|(name, totals)| (name.clone(), Counts::of_packets(totals)))
                .collect(),
        }
    }

    fn counts(&self, way: CounterSource, name: &str) -> Option<&Counts> {
        match way {
            CounterSource::Sockets => self.sockets.get(name),
            CounterSource::Packets => self.packets.get(name),
        }
    }
}

impl Rates {
    /// The rates of the virtual server with these counters; `None`: the samples do not cover enough time.
    pub fn of(&self, way: CounterSource, name: &str, counts: &Counts) -> Option<Rate> {
        self.between(way, name, counts, monotonic_ms())
    }

    fn between(
        &self,
        way: CounterSource,
        name: &str,
        counts: &Counts,
        now_ms: u64,
    ) -> Option<Rate> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        let mut newer = counts;
        // From the newest to the oldest sample, as long as the virtual server existed and its counters were not reset.
        for sample in samples.iter().rev() {
            let span_ms = now_ms.saturating_sub(sample.at_ms);
            let Some(older) = sample.counts(way, name) else { break };
            if span_ms > WINDOW_MS + SPAN_MS_MIN || newer.since(older).is_none() {
                break;
            }
            found = Some((span_ms, older));
            newer = older;
        }
        let (span_ms, oldest) = found.filter(|(span_ms, _)| *span_ms >= SPAN_MS_MIN)?;
        Some(counts.since(oldest)?.per_second(span_ms))
    }

    /// Samples the counters, unless another listener has sampled them recently.
    pub fn sample(&self, table: &LiveTable, report: Option<&Report>) {
        let now_ms = monotonic_ms();
        if self.is_due(now_ms) {
            self.keep(Sample::of(table, report, now_ms));
        }
    }

    fn keep(&self, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// Whether the last sample is old enough for another sample.
    fn is_due(&self, now_ms: u64) -> bool {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        samples
            .back()
            .is_none_or(|last| now_ms.saturating_sub(last.at_ms) >= SAMPLE_INTERVAL_MS_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(requests: u64) -> Counts {
        Counts {
            connections: requests / 10,
            requests,
            bytes_sent: requests * 100,
            ..Counts::default()
        }
    }

    /// Samples of a virtual server: the time in milliseconds, and the counter; `None`: it did not exist.
    fn rates(samples: &[(u64, Option<u64>)]) -> Rates {
        let rates = Rates::default();
        for (at_ms, requests) in samples {
            rates.keep(Sample {
                at_ms: *at_ms,
                sockets: requests.iter().map(|it| (Arc::from("shop"), counts(*it))).collect(),
                packets: HashMap::new(),
            });
        }
        rates
    }

    #[test]
    fn a_rate_is_a_mean_over_what_is_kept() {
        let check =
            |samples: &[(u64, Option<u64>)], now: (u64, u64), expected: Option<(f64, f64)>| {
                let found =
                    rates(samples).between(CounterSource::Sockets, "shop", &counts(now.1), now.0);
                let found = found.map(|rate| (rate.seconds, rate.requests_per_second));
                assert_eq!(found, expected, "{samples:?} {now:?}");
            };
        check(&[], (5_000, 70), None);
        check(&[(1_000, Some(0))], (1_999, 70), None);
        check(&[(1_000, Some(0))], (2_000, 70), Some((1.0, 70.0)));
        check(&[(1_000, Some(0)), (2_000, Some(50))], (5_000, 70), Some((4.0, 17.5)));
        // Samples before a gap or before a reset do not count.
        check(&[(1_000, None), (2_000, Some(50))], (5_000, 80), Some((3.0, 10.0)));
        check(
            &[(1_000, Some(0)), (2_000, None), (3_000, Some(50))],
            (5_000, 80),
            Some((2.0, 15.0)),
        );
        check(&[(1_000, Some(90)), (2_000, Some(50))], (5_000, 80), Some((3.0, 10.0)));
        check(&[(1_000, Some(90))], (5_000, 80), None);
        // The only sample is too old.
        check(&[(1_000, Some(0))], (20_000, 80), None);
        let hour: Vec<(u64, Option<u64>)> =
            (0..3_600).map(|second| (second * 1_000, Some(second * 7))).collect();
        check(&hour, (3_600_000, 25_200), Some((11.0, 7.0)));
    }

    #[test]
    fn no_more_is_kept_than_is_read() {
        let rates = rates(&[(0, Some(0)); 100]);
        assert_eq!(rates.0.lock().unwrap().len(), SAMPLES_MAX);
        assert!(!rates.is_due(SAMPLE_INTERVAL_MS_MIN - 1));
        assert!(rates.is_due(SAMPLE_INTERVAL_MS_MIN));
    }

    #[test]
    fn other_names_and_ways_have_rates_of_their_own() {
        let rates = rates(&[(0, Some(0))]);
        assert!(rates.between(CounterSource::Sockets, "shop", &counts(10), 2_000).is_some());
        assert!(rates.between(CounterSource::Packets, "shop", &counts(10), 2_000).is_none());
        assert!(rates.between(CounterSource::Sockets, "other", &counts(10), 2_000).is_none());
    }
}
