//! The data of the demo at one moment: counters of the process, and their changes since the last reading.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use weir_control::figures::quantile;
use weir_control::member_state::MemberState;
use weir_control::observed_state::ObservedState;
use weir_exchange::shared::counters::{
    HistogramTotals, LATENCY_BOUNDS_US, MemberTotals, VirtualServerTotals,
};
use weir_exchange::shared::live::LiveTable;

use super::journal::{Entry, Journal};
use super::traffic::Traffic;
pub use crate::admin::text::grouped;

/// The interval between readings.
pub const READ_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of stored readings: the longest curve that a terminal can show.
const READINGS_MAX: usize = 300;

/// Number of readings for latency and rates of members.
const WINDOW_READINGS: usize = 10;

/// Maximum number of shown events.
const EVENTS_MAX: usize = 32;

/// Facts that do not change during the demo.
#[derive(Debug, Clone)]
pub struct Place {
    /// `http://127.0.0.1:8080`
    pub server_url: String,
    /// `http://127.0.0.1:9900`
    pub admin_url: String,
    /// The configuration file.
    pub file: String,
    /// The command by which the user has started this program.
    pub command: String,
    /// The process id.
    pub process_id: u32,
    /// The addresses of members, and their names in the demo.
    pub roles: Vec<(String, &'static str)>,
    /// A note that is shown first.
    pub note: Option<String>,
}

/// The data at one moment.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// The time since the beginning of the demo.
    pub uptime: Duration,
    /// Current requests per second.
    pub rate: f64,
    /// Number of requests in each interval, the oldest first.
    pub rates: Vec<u64>,
    /// Totals of all virtual servers.
    pub server: VirtualServerTotals,
    /// Latency of all virtual servers in the last seconds.
    pub latency: HistogramTotals,
    /// The number of retries.
    pub retries: u64,
    /// The number of requests without an available member.
    pub no_member: u64,
    /// `Pool web`, or the number of pools.
    pub pools: String,
    /// All members of all pools.
    pub members: Vec<Member>,
    /// Results of the demo's clients; `None`: there are no clients.
    pub traffic: Option<ClientResults>,
    /// The latest events, oldest first.
    pub events: Vec<Entry>,
}

/// Results of the demo's clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientResults {
    /// Whether the clients are active, not paused.
    pub on: bool,
    /// Requests that were sent.
    pub requests: u64,
    /// Requests with a correct answer.
    pub answered: u64,
    /// Other requests.
    pub failed: u64,
}

/// A member at one moment.
#[derive(Debug, Clone)]
pub struct Member {
    /// The address.
    pub label: String,
    /// The name in the demo; empty for members that the user has added.
    pub role: &'static str,
    /// The state.
    pub state: MemberState,
    /// The weight.
    pub weight: u16,
    /// Requests per second.
    pub rate: f64,
    /// The counters.
    pub totals: MemberTotals,
    /// Response times in the last seconds.
    pub latency: HistogramTotals,
}

impl Member {
    /// The name for display.
    pub fn name(&self) -> &str {
        match self.role {
            "" => &self.label,
            role => role,
        }
    }

    /// The number of failures.
    pub fn failures(&self) -> u64 {
        self.totals.connect_failures + self.totals.response_failures + self.totals.responses_5xx
    }
}

/// Reads the counters of the process.
#[derive(Debug)]
pub struct Reader {
    observed: Arc<ObservedState>,
    traffic: Option<Arc<Traffic>>,
    journal: Journal,
    roles: Vec<(String, &'static str)>,
    readings: VecDeque<CounterReading>,
}

/// The counters at one moment.
#[derive(Debug)]
struct CounterReading {
    at: Duration,
    server: VirtualServerTotals,
    members: Vec<(String, MemberTotals, HistogramTotals)>,
}

impl Reader {
    /// Makes the first reading. `traffic`: the results of the demo's clients, if there are any.
    pub fn new(
        observed: Arc<ObservedState>,
        traffic: Option<Arc<Traffic>>,
        journal: Journal,
        roles: Vec<(String, &'static str)>,
    ) -> Self {
        let mut reader = Self { observed, traffic, journal, roles, readings: VecDeque::new() };
        reader.read(Duration::ZERO);
        reader
    }

    /// Makes a reading if it is due.
    pub fn read_if_due(&mut self, now: Duration) {
        let last = self.readings.back().map_or(Duration::ZERO, |last| last.at);
        if now.saturating_sub(last) >= READ_INTERVAL {
            self.read(now);
        }
    }

    fn read(&mut self, at: Duration) {
        let table = self.observed.table();
        let members = table.pools.iter().flat_map(|pool| &pool.members);
        let reading = CounterReading {
            at,
            server: server_totals(&table),
            members: members
                .map(|member| {
                    let latency = member.response_histogram().unwrap_or_default();
                    (member.label.to_string(), member.counters.totals(), latency)
                })
                .collect(),
        };
        if self.readings.len() == READINGS_MAX {
            self.readings.pop_front();
        }
        self.readings.push_back(reading);
    }

    /// The data at the time `now`.
    pub fn picture(&self, now: Duration) -> Picture {
        let table = self.observed.table();
        let server = server_totals(&table);
        let window = self.readings.len().saturating_sub(1 + WINDOW_READINGS);
        let before = &self.readings[window];
        let counted = |count: fn(&weir_exchange::shared::counters::PoolTotals) -> u64| {
            let pools = table.pools.iter();
            pools.map(|pool| count(&pool.pool.counters.totals())).sum()
        };
        Picture {
            uptime: now,
            rate: self.rate(),
            rates: self.rates(),
            latency: difference(&server.request_duration, &before.server.request_duration),
            server,
            retries: counted(|pool| pool.retries),
            no_member: counted(|pool| pool.no_member),
            pools: match &table.pools[..] {
                [pool] => format!("Pool {}", pool.pool.name),
                pools => format!("{} pools", pools.len()),
            },
            members: self.members(&table, before),
            traffic: self.traffic.as_deref().map(seen),
            events: self.journal.last(EVENTS_MAX),
        }
    }

    /// Requests per second between the last two readings.
    fn rate(&self) -> f64 {
        let mut last = self.readings.iter().rev();
        match (last.next(), last.next()) {
            (Some(now), Some(before)) => per_second(
                now.server.requests.saturating_sub(before.server.requests),
                now.at.saturating_sub(before.at),
            ),
            _ => 0.0,
        }
    }

    fn rates(&self) -> Vec<u64> {
        let pairs = self.readings.iter().zip(self.readings.iter().skip(1));
        pairs
            .map(|(before, after)| {
                let requests = after.server.requests.saturating_sub(before.server.requests);
                per_second(requests, after.at.saturating_sub(before.at)).round() as u64
            })
            .collect()
    }

    fn members(&self, table: &LiveTable, before: &CounterReading) -> Vec<Member> {
        let pools = table.snapshot.pools.iter().zip(&table.pools);
        let members = pools.flat_map(|(pool, live)| pool.members.iter().zip(&live.members));
        members
            .map(|(configured, live)| {
                let latency = live.response_histogram().unwrap_or_default();
                let latency = match before.member(&live.label) {
                    Some((_, before)) => difference(&latency, before),
                    None => latency,
                };
                Member {
                    label: live.label.to_string(),
                    role: self.role_of(&live.label),
                    state: MemberState::of(live),
                    weight: configured.weight,
                    rate: self.rate_of(&live.label),
                    totals: live.counters.totals(),
                    latency,
                }
            })
            .collect()
    }

    fn role_of(&self, label: &str) -> &'static str {
        let role = self.roles.iter().find(|(known, _)| known == label);
        role.map_or("", |&(_, role)| role)
    }

    /// Requests per second to a member between the last two readings.
    fn rate_of(&self, label: &str) -> f64 {
        let mut last = self.readings.iter().rev();
        let (Some(now), Some(before)) = (last.next(), last.next()) else {
            return 0.0;
        };
        let requests = |reading: &CounterReading| {
            reading.member(label).map_or(0, |(member, _)| member.requests)
        };
        per_second(requests(now).saturating_sub(requests(before)), now.at.saturating_sub(before.at))
    }
}

impl CounterReading {
    fn member(&self, label: &str) -> Option<(&MemberTotals, &HistogramTotals)> {
        let found = self.members.iter().find(|(name, ..)| name == label);
        found.map(|(_, totals, latency)| (totals, latency))
    }
}

fn seen(traffic: &Traffic) -> ClientResults {
    ClientResults {
        on: !traffic.paused.load(Relaxed),
        requests: traffic.requests.load(Relaxed),
        answered: traffic.answered.load(Relaxed),
        failed: traffic.failed.load(Relaxed),
    }
}

/// The sum over all virtual servers, for the view.
fn server_totals(table: &LiveTable) -> VirtualServerTotals {
    let mut sum = VirtualServerTotals::default();
    for server in &table.virtual_servers {
        let one = server.counters.totals();
        sum.requests += one.requests;
        sum.responses_1xx += one.responses_1xx;
        sum.responses_2xx += one.responses_2xx;
        sum.responses_3xx += one.responses_3xx;
        sum.responses_4xx += one.responses_4xx;
        sum.responses_5xx += one.responses_5xx;
        // Gauges of a worker may be read between two updates, so a sum may wrap.
        sum.connections_open = sum.connections_open.wrapping_add(one.connections_open);
        sum.requests_active = sum.requests_active.wrapping_add(one.requests_active);
        sum.bytes_sent += one.bytes_sent;
        let buckets = one.request_duration.buckets;
        for (total, bucket) in sum.request_duration.buckets.iter_mut().zip(buckets) {
            *total += bucket;
        }
        sum.request_duration.sum_us += one.request_duration.sum_us;
    }
    sum
}

/// The difference between two readings.
fn difference(now: &HistogramTotals, before: &HistogramTotals) -> HistogramTotals {
    let mut recorded = now.clone();
    for (bucket, before) in recorded.buckets.iter_mut().zip(before.buckets) {
        *bucket = bucket.saturating_sub(before);
    }
    recorded.sum_us = recorded.sum_us.saturating_sub(before.sum_us);
    recorded
}

fn per_second(count: u64, time: Duration) -> f64 {
    if time.is_zero() {
        return 0.0;
    }
    count as f64 / time.as_secs_f64()
}

/// A quantile in milliseconds; `None` without data.
pub fn quantile_ms(latency: &HistogramTotals, percent: u64) -> Option<f64> {
    quantile(latency, latency.count(), percent)
}

/// Milliseconds as `0.42`, `7.3`, `120`; a dash for `None`.
pub fn milliseconds(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(value) if value < 1.0 => format!("{value:.2}"),
        Some(value) if value < 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    }
}

/// A time, such as `1:05` or `1:00:05`.
pub fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    match hours {
        0 => format!("{minutes}:{:02}", seconds % 60),
        _ => format!("{hours}:{minutes:02}:{:02}", seconds % 60),
    }
}

/// The label of a latency bucket's upper bound; the last bucket has none.
pub fn bucket_label(index: usize) -> String {
    let text = |bound_us: u64| match bound_us {
        0..1_000_000 => format!("{} ms", bound_us as f64 / 1_000.0),
        _ => format!("{} s", bound_us as f64 / 1_000_000.0),
    };
    match LATENCY_BOUNDS_US.get(index) {
        Some(&bound) => format!("≤ {}", text(bound)),
        None => format!("> {}", text(LATENCY_BOUNDS_US[index - 1])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_read_them() {
        assert_eq!(
            [0, 12, 999, 1_000, 1_234_567].map(grouped),
            ["0", "12", "999", "1,000", "1,234,567"]
        );
        let times = [0, 65, 3_605].map(|seconds| clock(Duration::from_secs(seconds)));
        assert_eq!(times, ["0:00", "1:05", "1:00:05"]);
        let values = [None, Some(0.42), Some(7.25), Some(119.6)].map(milliseconds);
        assert_eq!(values, ["-", "0.42", "7.2", "120"]);
        let labels = [0, 3, 14, LATENCY_BOUNDS_US.len()].map(bucket_label);
        assert_eq!(labels, ["≤ 0.1 ms", "≤ 1 ms", "≤ 1 s", "> 30 s"]);
    }

    #[test]
    fn a_window_is_what_was_recorded_in_it() {
        let mut before = HistogramTotals::default();
        before.buckets[0] = 100;
        let mut now = before.clone();
        now.buckets[8] = 10;
        let window = difference(&now, &before);
        assert_eq!(window.count(), 10);
        assert_eq!(quantile_ms(&window, 50), Some(37.5));
        assert_eq!(quantile_ms(&difference(&now, &now), 50), None);
        assert_eq!(per_second(10, Duration::from_millis(500)), 20.0);
        assert_eq!(per_second(10, Duration::ZERO), 0.0);
    }
}
