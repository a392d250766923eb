//! The rows of virtual servers, pools and members in the views.

use std::cmp::Reverse;
use std::collections::HashMap;

use weir_api::dashboard::{
    Ailing, Attention, Busy, Expiring, HealthRow, MapPolicy, MapRow, Mark, NamedPool, Overview,
    PoolRow, PoolView, Rows, ServerRow, ServerView,
};
use weir_config::snapshot::{self, NOBODY, Snapshot, VirtualServer, ranges};
use weir_exchange::shared::live::{LiveMember, PoolMembers};
use weir_exchange::shared::sticky::reached_pools;

use super::super::servers::{policy_status, shown_certificates};
use super::query::BoardQuery;
use super::rows::rows;
use crate::board::{PoolSample, Sample, ServerSample, StateSeverity, member_shown};
use crate::figures::shown_gauge;
use crate::health::{Condition, Health};
use crate::observed_state::ObservedState;
use crate::status::{self, latency};

/// Maximum number of rows per list in the overview.
const OVERVIEW_ROWS_MAX: usize = 12;

/// Maximum number of listed members per pool in the overview.
const REASONS_MAX: usize = 4;

/// Maximum number of members per pool in a list.
const MARKS_MAX: usize = 60;

/// Maximum number of names in a row.
const NAMES_MAX: usize = 20;

/// A certificate with fewer remaining days is a problem.
const DAYS_LEFT_MIN: i64 = 30;

/// The input for views.
pub(super) struct Table<'a> {
    pub observed: &'a ObservedState,
    pub sample: &'a Sample,
    pub snapshot: &'a Snapshot,
}

fn health_row(health: &Health) -> HealthRow {
    let state = health.state;
    HealthRow {
        state: state.as_str().to_owned(),
        why: health.why.clone(),
        shown: StateSeverity::of(state).as_str().to_owned(),
    }
}

/// A virtual server, configured and sampled.
type Server<'a> = (usize, &'a VirtualServer, &'a ServerSample);
/// A pool, configured, live and sampled.
type Pool<'a> = (&'a snapshot::Pool, &'a PoolMembers, &'a PoolSample);

impl<'a> Table<'a> {
    fn all_servers(&self) -> Vec<Server<'a>> {
        let all = self.snapshot.virtual_servers.iter().zip(&self.sample.servers);
        (0..).zip(all).map(|(index, (configured, sample))| (index, configured, sample)).collect()
    }

    fn pool_at(&self, index: usize) -> Pool<'a> {
        let table = self.sample.judge.table();
        (&self.snapshot.pools[index], &table.pools[index], &self.sample.pools[index])
    }

    fn all_pools(&self) -> Vec<Pool<'a>> {
        let all = (0..self.sample.pools.len()).map(|index| self.pool_at(index));
        all.filter(|(configured, ..)| *configured.name != *NOBODY).collect()
    }

    fn pools_of(&self, server: &VirtualServer) -> Vec<Pool<'a>> {
        let reached = reached_pools(server, self.snapshot).into_iter();
        let pools = reached.map(|index| self.pool_at(index));
        pools.filter(|(configured, ..)| *configured.name != *NOBODY).collect()
    }

    pub fn overview(&self) -> Overview {
        let pools = self.all_pools();
        let (mut members, mut members_up) = (0, 0);
        for (_, _, pool) in &pools {
            members += pool.members.all;
            members_up += pool.members.up;
        }
        let mut bad: Vec<&Pool<'_>> =
            pools.iter().filter(|(.., sample)| sample.health.state != Condition::Up).collect();
        let in_service = |sample: &PoolSample| sample.members.in_service;
        bad.sort_by_key(|(.., sample)| (Reverse(sample.health.state), in_service(sample)));
        let mut ailing: Vec<_> = self
            .sample
            .judge
            .servers()
            .iter()
            .filter(|(_, health)| health.state != Condition::Up)
            .collect();
        ailing.sort_by_key(|(_, health)| Reverse(health.state));
        let mut servers = self.all_servers();
        let requests = |server: &Server<'_>| server.2.point.map_or(0.0, |point| point.requests);
        servers.sort_by(|one, other| requests(other).total_cmp(&requests(one)));
        Overview {
            virtual_servers: servers.len(),
            pools: pools.len(),
            members,
            members_up,
            expiring: self.expiring(),
            ailing_count: ailing.len(),
            ailing: ailing
                .iter()
                .take(OVERVIEW_ROWS_MAX)
                .map(|(name, health)| Ailing { name: name.to_string(), health: health_row(health) })
                .collect(),
            attention_count: bad.len(),
            attention: bad
                .iter()
                .take(OVERVIEW_ROWS_MAX)
                .map(|pool| self.attention(pool))
                .collect(),
            busiest: servers.iter().take(OVERVIEW_ROWS_MAX).map(busy).collect(),
        }
    }

    fn expiring(&self) -> Vec<Expiring> {
        let mut all: Vec<Expiring> =
            shown_certificates(self.snapshot, &self.observed.obtained.acme)
                .map(|(_, _, identity, report)| status::certificate(&identity, report))
                // A stand-in ends soon by design. A failed order is a problem of its own.
                .filter(|it| it.days_left < DAYS_LEFT_MIN && !it.is_stand_in())
                .map(|certificate| Expiring {
                    days_left: certificate.days_left,
                    names: certificate.names,
                })
                .collect();
        all.sort_by_key(|certificate| certificate.days_left);
        all.truncate(OVERVIEW_ROWS_MAX);
        all
    }

    fn attention(&self, (configured, live, sample): &Pool<'_>) -> Attention {
        let members = configured.members.iter().zip(&live.members);
        let bad = members.filter(|(it, live)| member_shown(it, live).1 != StateSeverity::Good);
        let reasons: Vec<String> = bad
            .map(|(configured, live)| format!("{}: {}", live.label, self.reason(configured, live)))
            .take(REASONS_MAX)
            .collect();
        Attention {
            name: configured.name.to_string(),
            health: health_row(&sample.health),
            more: (sample.members.all - sample.members.in_service).saturating_sub(reasons.len()),
            members: reasons,
        }
    }

    /// The reason why a member takes no traffic.
    fn reason(&self, configured: &snapshot::Member, live: &LiveMember) -> String {
        let reports = self.observed.monitors.of(&live.pool.name, &live.label);
        let failure = reports.into_iter().find_map(|report| report.last_failure);
        let (state, shown) = member_shown(configured, live);
        failure.filter(|_| shown == StateSeverity::Bad).unwrap_or_else(|| state.to_owned())
    }

    pub fn servers(&self, wanted: &BoardQuery) -> Rows<ServerRow> {
        let pool_name = |server: &VirtualServer| self.snapshot.pools[server.pool].name.to_string();
        let text = |(_, configured, sample): &Server<'_>| {
            let listen = ranges(&configured.listen).join(" ");
            format!(
                "{} {listen} {} {}",
                configured.name,
                pool_name(configured),
                sample.health.state.as_str()
            )
        };
        let build = |(_, configured, sample): &Server<'_>| ServerRow {
            r#type: configured.service.name().to_owned(),
            health: health_row(&sample.health),
            listen: clipped(ranges(&configured.listen)),
            pool: pool_name(configured),
            requests_per_second: sample.point.map_or(0.0, |point| point.requests),
            connections_open: sample.open,
            failed: sample.failed,
            p50_ms: sample.p50_ms,
            p99_ms: sample.p99_ms,
        };
        rows(wanted, self.all_servers(), |(_, it, _)| it.name.to_string(), text, build)
    }

    pub fn server(&self, name: &str) -> Option<ServerView> {
        let (index, configured, sample) =
            self.all_servers().into_iter().find(|(_, configured, _)| *configured.name == *name)?;
        let policies = self.policies_of(configured).into_iter().take(NAMES_MAX);
        Some(ServerView {
            health: health_row(&sample.health),
            status: status::virtual_server(&self.sample.judge, index, self.observed),
            policies: policies.map(|name| policy_status(self.sample.judge.table(), name)).collect(),
            pools: self.named_pools(configured),
        })
    }

    fn policies_of<'s>(&self, server: &'s VirtualServer) -> Vec<&'s str> {
        let connections = server.connection_policies.names();
        connections.chain(server.policies.iter().map(|policy| &*policy.name)).collect()
    }

    fn named_pools(&self, server: &VirtualServer) -> Vec<NamedPool> {
        let pools = self.pools_of(server);
        let named = pools
            .iter()
            .take(NAMES_MAX)
            .map(|pool| NamedPool { name: pool.0.name.to_string(), row: pool_row(pool) });
        named.collect()
    }

    pub fn pools(&self, wanted: &BoardQuery) -> Rows<PoolRow> {
        let text = |(configured, live, sample): &Pool<'_>| {
            format!("{} {} {}", configured.name, sample.health.state.as_str(), labels(live))
        };
        rows(wanted, self.all_pools(), |(it, ..)| it.name.to_string(), text, pool_row)
    }

    pub fn pool(&self, wanted: &BoardQuery) -> Option<PoolView> {
        let pools = self.all_pools();
        let pool = pools.iter().find(|(configured, ..)| *configured.name == *wanted.name)?;
        let (configured, live, _) = pool;
        let uses = |(_, server, _): &Server<'_>| {
            self.pools_of(server).iter().any(|(other, ..)| other.name == configured.name)
        };
        let servers = self.all_servers();
        let servers = servers.iter().filter(|server| uses(server)).take(NAMES_MAX);
        let members: Vec<_> = configured.members.iter().zip(&live.members).collect();
        let list = rows(
            wanted,
            members,
            |(_, live)| live.label.to_string(),
            |(configured, live)| {
                let name = configured.name.as_deref().unwrap_or_default();
                format!("{} {name} {}", live.label, member_shown(configured, live).0)
            },
            |(configured, live)| status::member(configured, live, &self.observed.monitors),
        );
        Some(PoolView {
            row: pool_row(pool),
            virtual_servers: servers.map(|(_, it, _)| it.name.to_string()).collect(),
            response_duration: latency(&live.pool.counters.totals().response_duration),
            list,
        })
    }

    pub fn map(&self, wanted: &BoardQuery) -> Rows<MapRow> {
        let mut rules: HashMap<&str, usize> = HashMap::new();
        for rule in &self.snapshot.rules {
            *rules.entry(&*rule.policy).or_default() += 1;
        }
        let text = |(_, configured, sample): &Server<'_>| {
            let mut text = format!("{} {}", configured.name, sample.health.state.as_str());
            for (pool, live, _) in self.pools_of(configured) {
                text = format!("{text} {} {}", pool.name, labels(live));
            }
            text
        };
        let build = |(_, configured, sample): &Server<'_>| MapRow {
            health: health_row(&sample.health),
            listen: clipped(ranges(&configured.listen)),
            policies: self
                .policies_of(configured)
                .into_iter()
                .take(NAMES_MAX)
                .map(|name| MapPolicy {
                    name: name.to_owned(),
                    rules: rules.get(name).copied().unwrap_or_default(),
                })
                .collect(),
            pools: self.named_pools(configured),
        };
        rows(wanted, self.all_servers(), |(_, it, _)| it.name.to_string(), text, build)
    }
}

fn busy((_, configured, sample): &Server<'_>) -> Busy {
    Busy {
        name: configured.name.to_string(),
        health: health_row(&sample.health),
        requests_per_second: sample.point.map_or(0.0, |point| point.requests),
        connections_open: sample.open,
        p50_ms: sample.p50_ms,
        p99_ms: sample.p99_ms,
    }
}

fn pool_row((configured, live, sample): &Pool<'_>) -> PoolRow {
    let totals = live.pool.counters.totals();
    let members = configured.members.iter().zip(&live.members);
    let mark = |(configured, live): (&snapshot::Member, &std::sync::Arc<LiveMember>)| {
        let (state, shown) = member_shown(configured, live);
        Mark {
            member: live.label.to_string(),
            state: state.to_owned(),
            shown: shown.as_str().to_owned(),
        }
    };
    PoolRow {
        health: health_row(&sample.health),
        balance: status::balance_name(&configured.balance).to_owned(),
        members: sample.members.all,
        members_in_service: sample.members.in_service,
        marks: members.take(MARKS_MAX).map(mark).collect(),
        queue_requests: shown_gauge(totals.queue_length),
        retries: totals.retries,
        no_member: totals.no_member,
    }
}

fn labels(live: &PoolMembers) -> String {
    let labels: Vec<&str> = live.members.iter().map(|member| &*member.label).collect();
    labels.join(" ")
}

fn clipped(mut names: Vec<String>) -> Vec<String> {
    names.truncate(NAMES_MAX);
    names
}
