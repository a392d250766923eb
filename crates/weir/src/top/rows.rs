//! Rows of the view: objects with their rates between two readings.

use std::cmp::Ordering;

use serde::Serialize;
use weir_api::health::{Health, HealthState};
use weir_api::member::Member;
use weir_api::packet_path::PacketServer;
use weir_api::pool::Pool;
use weir_api::virtual_server::VirtualServer;

use super::histograms::Histograms;
use super::sample::Sample;
use crate::status::is_full;

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Virtual servers.
    Servers,
    /// Pools.
    Pools,
    /// Members.
    Members,
}

impl Level {
    /// The name of the kind.
    pub fn title(self) -> &'static str {
        match self {
            Self::Servers => "Virtual servers",
            Self::Pools => "Pools",
            Self::Members => "Members",
        }
    }

    /// The next kind.
    pub fn next(self) -> Self {
        match self {
            Self::Servers => Self::Pools,
            Self::Pools => Self::Members,
            Self::Members => Self::Servers,
        }
    }
}

/// An object with its rates per second between two readings; `None`: there is no earlier reading.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The name; for a member, its address.
    pub name: String,
    /// For a member, its pool; for a virtual server, its pools.
    pub of: Vec<String>,
    /// The state in words.
    pub state: String,
    /// Whether the object has a problem.
    pub is_wrong: bool,
    /// Requests; connections if requests are not parsed.
    pub rate: Option<f64>,
    /// Bytes sent to clients.
    pub bytes: Option<f64>,
    /// Responses 5xx, member failures, and refused connections.
    pub errors: Option<f64>,
    /// Errors since the start of weir.
    pub errors_total: u64,
    /// Open connections.
    pub connections: u64,
    /// Requests in progress.
    pub active: u64,
    /// Median latency of the last readings.
    pub p50_ms: Option<f64>,
    /// 99th percentile of the latency of the last readings.
    pub p99_ms: Option<f64>,
}

/// Readings of one process that a row compares.
#[derive(Clone, Copy)]
pub struct Span<'s> {
    /// The newest reading.
    pub now: &'s Sample,
    /// The previous reading; `None`: there is none.
    pub last: Option<&'s Sample>,
    /// The histograms of the first reading of the latency window.
    pub first: Option<&'s Histograms>,
}

impl Span<'_> {
    /// The rows of a kind, in the order of the configuration.
    pub fn rows(&self, level: Level) -> Vec<Row> {
        let status = &self.now.status;
        match level {
            Level::Servers => {
                let servers = status.virtual_servers.iter().enumerate();
                let servers = servers.map(|(place, server)| self.server(place, server));
                let packets = status.packet_path.iter().flat_map(|path| &path.virtual_servers);
                // A server that fell back to sockets is already listed.
                let packets = packets.filter(|server| server.is_by_packets());
                servers.chain(packets.map(|server| self.packet_server(server))).collect()
            }
            Level::Pools => {
                let pools = status.pools.iter().enumerate();
                pools.map(|(place, pool)| self.pool(place, pool)).collect()
            }
            Level::Members => {
                let pools = status.pools.iter().enumerate();
                pools.flat_map(|(place, pool)| self.members(place, pool)).collect()
            }
        }
    }

    /// The rate per second of a counter since the last reading.
    fn rate(&self, now: u64, before: Option<u64>) -> Option<f64> {
        let time = self.now.at.saturating_duration_since(self.last?.at).as_secs_f64();
        (time > 0.0).then(|| now.saturating_sub(before.unwrap_or(0)) as f64 / time)
    }

    fn server(&self, place: usize, server: &VirtualServer) -> Row {
        let servers = self.last.map(|last| &last.status.virtual_servers);
        let before = servers.and_then(|all| find(all, place, |it| it.name == server.name));
        let errors = |it: &VirtualServer| it.responses.server_error + it.counts.connections_refused;
        let counted = |it: &VirtualServer| match it.relayed {
            Some(_) => it.counts.connections,
            None => it.counts.requests,
        };
        let latency = |percent| {
            let now = self.now.histograms.servers.get(&server.name)?;
            let first = self.first.and_then(|it| it.servers.get(&server.name));
            now.quantile_since(first, percent)
        };
        let pools = match server.pools.is_empty() {
            true => Some(server.pool.clone()).filter(|pool| !pool.is_empty()).into_iter().collect(),
            false => server.pools.clone(),
        };
        let is_full = is_full(server);
        let is_wrong = is_full || server.health.is_bad();
        let state = match is_full && !server.health.is_bad() {
            true => "full".to_owned(),
            false => state_of(&server.health),
        };
        Row {
            name: server.name.clone(),
            of: pools,
            state,
            is_wrong,
            rate: self.rate(counted(server), before.map(counted)),
            bytes: self.rate(server.bytes_sent, before.map(|it| it.bytes_sent)),
            errors: self.rate(errors(server), before.map(errors)),
            errors_total: errors(server),
            connections: server.counts.connections_open,
            active: server.counts.requests_active,
            p50_ms: latency(50.0),
            p99_ms: latency(99.0),
        }
    }

    fn packet_server(&self, server: &PacketServer) -> Row {
        let path = self.last.and_then(|last| last.status.packet_path.as_ref());
        let before =
            path.and_then(|path| path.virtual_servers.iter().find(|it| it.name == server.name));
        Row {
            name: server.name.clone(),
            of: server.pool.iter().cloned().collect(),
            state: format!("{}, packets", state_of(&server.health)),
            is_wrong: server.health.is_bad(),
            rate: self.rate(server.counters.flows, before.map(|it| it.counters.flows)),
            bytes: self.rate(server.counters.bytes_out, before.map(|it| it.counters.bytes_out)),
            errors: None,
            errors_total: 0,
            connections: server.members.iter().map(|member| member.flows).sum(),
            active: 0,
            p50_ms: None,
            p99_ms: None,
        }
    }

    /// The pool at this place as it was in the last reading.
    fn pool_before(&self, place: usize, pool: &Pool) -> Option<&Pool> {
        find(&self.last?.status.pools, place, |it| it.name == pool.name)
    }

    fn pool(&self, place: usize, pool: &Pool) -> Row {
        let members = self.members(place, pool);
        let before = self.pool_before(place, pool);
        let sum = |of: fn(&Row) -> Option<f64>| {
            self.last.map(|_| members.iter().filter_map(of).sum::<f64>())
        };
        let latency = |percent| {
            let now = self.now.histograms.pools.get(&pool.name)?;
            let first = self.first.and_then(|it| it.pools.get(&pool.name));
            now.quantile_since(first, percent)
        };
        let lost = self.rate(pool.no_member, before.map(|it| it.no_member));
        let (in_service, all) = (pool.members_in_service, pool.members.len());
        Row {
            name: pool.name.clone(),
            of: Vec::new(),
            state: format!("{}, {in_service}/{all}", state_of(&pool.health)),
            is_wrong: pool.health.is_bad(),
            rate: sum(|row| row.rate),
            bytes: sum(|row| row.bytes),
            errors: sum(|row| row.errors).zip(lost).map(|(errors, lost)| errors + lost),
            errors_total: pool.no_member + members.iter().map(|row| row.errors_total).sum::<u64>(),
            connections: members.iter().map(|row| row.connections).sum(),
            active: members.iter().map(|row| row.active).sum(),
            p50_ms: latency(50.0),
            p99_ms: latency(99.0),
        }
    }

    /// The members of the pool at this place.
    fn members(&self, place: usize, pool: &Pool) -> Vec<Row> {
        let before = self.pool_before(place, pool).map(|it| it.members.as_slice());
        let members = pool.members.iter().enumerate();
        let was = |place, member: &Member| find(before?, place, |it| it.address == member.address);
        members.map(|(place, member)| self.member(pool, member, was(place, member))).collect()
    }

    fn member(&self, pool: &Pool, member: &Member, before: Option<&Member>) -> Row {
        let key = (pool.name.clone(), member.address.clone());
        let latency = |percent| {
            let now = self.now.histograms.members.get(&key)?;
            let first = self.first.and_then(|it| it.members.get(&key));
            now.quantile_since(first, percent)
        };
        let state = match member.is_enabled() {
            true => member.state.clone(),
            false => format!("{}, {}", member.state, member.administrative),
        };
        Row {
            name: member.address.clone(),
            of: vec![pool.name.clone()],
            state,
            is_wrong: member.is_enabled() && !member.is_in_service(),
            rate: self.rate(member.counts.requests, before.map(|it| it.counts.requests)),
            bytes: self.rate(member.bytes_received, before.map(|it| it.bytes_received)),
            errors: self.rate(member.errors(), before.map(Member::errors)),
            errors_total: member.errors(),
            connections: member.counts.connections_open,
            active: u64::from(member.occupancy),
            p50_ms: latency(50.0),
            p99_ms: latency(99.0),
        }
    }
}

/// The word for a health; an old version of weir does not tell it.
fn state_of(health: &Health) -> String {
    let is_told = health.state != HealthState::Unknown;
    if is_told { health.state.as_str().to_owned() } else { "-".to_owned() }
}

/// An object of an earlier reading. It is usually at the same place, so a search through all is rare.
fn find<T>(all: &[T], place: usize, is_it: impl Fn(&T) -> bool) -> Option<&T> {
    all.get(place).filter(|it| is_it(it)).or_else(|| all.iter().find(|it| is_it(it)))
}

/// A column to sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SortKey {
    /// The order of the configuration
    Configuration,
    /// The name
    Name,
    /// Requests per second
    Rate,
    /// Open connections
    Connections,
    /// The 99th percentile of the latency
    Latency,
    /// Errors per second, then errors in all
    Errors,
    /// What is wrong first
    State,
}

/// Sorts rows, largest or worst first; names in alphabetical order.
pub fn sort(rows: &mut [Row], key: SortKey, is_reversed: bool) {
    let falling = |a: Option<f64>, b: Option<f64>| {
        b.unwrap_or(-1.0).partial_cmp(&a.unwrap_or(-1.0)).unwrap_or(Ordering::Equal)
    };
    match key {
        SortKey::Configuration => {}
        SortKey::Name => rows.sort_by(|a, b| a.name.cmp(&b.name)),
        SortKey::Rate => rows.sort_by(|a, b| falling(a.rate, b.rate)),
        SortKey::Connections => rows.sort_by_key(|row| std::cmp::Reverse(row.connections)),
        SortKey::Latency => rows.sort_by(|a, b| falling(a.p99_ms, b.p99_ms)),
        SortKey::Errors => rows
            .sort_by(|a, b| falling(a.errors, b.errors).then(b.errors_total.cmp(&a.errors_total))),
        SortKey::State => rows.sort_by_key(|row| std::cmp::Reverse(row.is_wrong)),
    }
    if is_reversed {
        rows.reverse();
    }
}

/// Whether the name, the state or a pool of a row contains the filter text.
pub fn matches(row: &Row, filter: &str) -> bool {
    let filter = filter.to_lowercase();
    let texts = [&row.name, &row.state].into_iter().chain(&row.of);
    filter.is_empty() || texts.into_iter().any(|text| text.to_lowercase().contains(&filter))
}

#[cfg(test)]
pub mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::status;

    /// Creates a reading taken some seconds after the beginning.
    pub fn sample(
        began: Instant,
        seconds: u64,
        change: impl FnOnce(&mut serde_json::Value),
    ) -> Sample {
        let at = began + Duration::from_secs(seconds);
        Sample { at, status: status::tests::status(change), histograms: Arc::default() }
    }

    #[test]
    fn rates_are_between_two_readings() {
        let began = Instant::now();
        let before = sample(began, 0, |_| {});
        let now = sample(began, 2, |status| {
            status["virtual_servers"][0]["requests"] = 24_512.into();
            status["virtual_servers"][0]["responses"]["5xx"] = 16.into();
            status["pools"][0]["members"][0]["requests"] = 1_000_000.into();
        });
        let span = Span { now: &now, last: Some(&before), first: None };
        let servers = span.rows(Level::Servers);
        assert_eq!(
            (&*servers[0].name, servers[0].rate, servers[0].errors),
            ("shop", Some(200.0), Some(2.0))
        );
        assert_eq!(servers[0].of, ["web"]);
        let members = span.rows(Level::Members);
        assert_eq!(members.len(), 3);
        assert!(members[0].rate.unwrap() > 100_000.0, "{members:?}");
        let pools = span.rows(Level::Pools);
        assert_eq!((&*pools[0].state, pools[0].rate), ("degraded, 1/3", members[0].rate));
        let alone = Span { now: &now, last: None, first: None };
        assert_eq!(alone.rows(Level::Servers)[0].rate, None);
    }

    fn row(name: &str, rate: f64, errors_total: u64, is_wrong: bool) -> Row {
        Row {
            name: name.into(),
            of: vec!["web".into()],
            state: "up".into(),
            is_wrong,
            rate: Some(rate),
            bytes: None,
            errors: None,
            errors_total,
            connections: 0,
            active: 0,
            p50_ms: None,
            p99_ms: None,
        }
    }

    #[test]
    fn rows_are_sorted_and_chosen() {
        let rows = [row("b", 1.0, 0, true), row("a", 3.0, 1, false), row("c", 2.0, 9, false)];
        let check = |key, is_reversed, expected: &str| {
            let mut rows = rows.to_vec();
            sort(&mut rows, key, is_reversed);
            let names: String = rows.iter().map(|row| &*row.name).collect();
            assert_eq!(names, expected, "{key:?}");
        };
        check(SortKey::Configuration, false, "bac");
        check(SortKey::Name, false, "abc");
        check(SortKey::Name, true, "cba");
        check(SortKey::Rate, false, "acb");
        check(SortKey::Errors, false, "cab");
        check(SortKey::State, false, "bac");
        assert!(matches(&rows[0], "") && matches(&rows[0], "WE") && matches(&rows[0], "up"));
        assert!(!matches(&rows[0], "x"));
    }
}
