//! The counters and states at one moment, and the figures since the previous sample.

use std::collections::HashMap;
use std::sync::Arc;

use weir_api::dashboard::Point;
use weir_config::snapshot::Member;
use weir_core::admin_state::AdminState;
use weir_exchange::shared::counters::VirtualServerTotals;
use weir_exchange::shared::live::LiveMember;

use crate::figures::{quantile, shown_gauge};
use crate::health::{Condition, Health, Judge, Members};
use crate::member_state::{MemberState, administrative_state};
use crate::time::monotonic_ms;

/// The severity of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StateSeverity {
    /// No problem.
    Good,
    /// Switched off by the operator, or not in use.
    Off,
    /// Serves with problems.
    Warn,
    /// Does not serve.
    Bad,
}

impl StateSeverity {
    /// The severity of a condition.
    pub fn of(condition: Condition) -> Self {
        match condition {
            Condition::Up => Self::Good,
            Condition::Degraded => Self::Warn,
            Condition::Failing | Condition::Down => Self::Bad,
        }
    }

    /// The name for the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// Counters of a virtual server. They only grow.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    requests: u64,
    failed: u64,
    answered: u64,
    us: u64,
    sent: u64,
    blocked: u64,
    handshakes: u64,
}

/// A virtual server.
#[derive(Debug)]
pub(crate) struct ServerSample {
    pub name: Arc<str>,
    counts: Counts,
    pub open: u64,
    pub failed: u64,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub health: Health,
    /// `None`: this is the first sample.
    pub point: Option<Point>,
}

/// A pool.
#[derive(Debug)]
pub(crate) struct PoolSample {
    pub members: Members,
    pub health: Health,
}

/// A sample.
#[derive(Debug)]
pub(crate) struct Sample {
    pub at_ms: u64,
    pub judge: Judge,
    /// In the order of the active table.
    pub servers: Vec<ServerSample>,
    /// In the order of the active table.
    pub pools: Vec<PoolSample>,
    /// `None`: this is the first sample.
    pub total: Option<Point>,
}

/// The state of a member, with its severity.
pub(crate) fn member_shown(
    configured: &Member,
    live: &LiveMember,
) -> (&'static str, StateSeverity) {
    let state = MemberState::of(live);
    if matches!(state, MemberState::Down | MemberState::Ejected) {
        return (state.as_str(), StateSeverity::Bad);
    }
    let administrative = administrative_state(configured, live);
    if administrative != AdminState::Enabled {
        return (administrative.as_str(), StateSeverity::Off);
    }
    let shown = if state == MemberState::Up { StateSeverity::Good } else { StateSeverity::Warn };
    (state.as_str(), shown)
}

impl Counts {
    fn of(totals: &VirtualServerTotals, is_relay: bool) -> Self {
        let connections = if is_relay { totals.connections_accepted } else { 0 };
        Self {
            requests: totals.requests.wrapping_add(connections),
            failed: totals.failed_requests(),
            answered: totals.request_duration.count(),
            us: totals.request_duration.sum_us,
            sent: totals.bytes_sent,
            blocked: totals.waf_blocked,
            handshakes: totals.handshakes_full.wrapping_add(totals.handshakes_resumed),
        }
    }

    /// The counts since `earlier`; `None`: the counters were reset.
    fn since(&self, earlier: &Self) -> Option<Self> {
        Some(Self {
            requests: self.requests.checked_sub(earlier.requests)?,
            failed: self.failed.checked_sub(earlier.failed)?,
            answered: self.answered.checked_sub(earlier.answered)?,
            us: self.us.checked_sub(earlier.us)?,
            sent: self.sent.checked_sub(earlier.sent)?,
            blocked: self.blocked.checked_sub(earlier.blocked)?,
            handshakes: self.handshakes.checked_sub(earlier.handshakes)?,
        })
    }

    fn add(&mut self, other: &Self) {
        self.requests = self.requests.wrapping_add(other.requests);
        self.failed = self.failed.wrapping_add(other.failed);
        self.answered = self.answered.wrapping_add(other.answered);
        self.us = self.us.wrapping_add(other.us);
        self.sent = self.sent.wrapping_add(other.sent);
        self.blocked = self.blocked.wrapping_add(other.blocked);
        self.handshakes = self.handshakes.wrapping_add(other.handshakes);
    }

    fn point(&self, span_ms: u64, open: u64) -> Point {
        let seconds = span_ms.max(1) as f64 / 1_000.0;
        let rate = |count: u64| ((count as f64 / seconds) * 10.0).round() as f32 / 10.0;
        let mean_us = (self.answered > 0).then(|| self.us as f64 / self.answered as f64);
        Point {
            requests: rate(self.requests),
            failed: rate(self.failed),
            ms: mean_us.map(|us| us.round() as f32 / 1_000.0),
            open: open as f32,
            sent: rate(self.sent),
            blocked: rate(self.blocked),
            handshakes: rate(self.handshakes),
        }
    }
}

impl Sample {
    /// Takes a sample of the judge's table. `before`: the previous one.
    pub fn of(judge: Judge, before: Option<&Self>) -> Self {
        let at_ms = monotonic_ms();
        let table = Arc::clone(judge.table());
        let snapshot = &table.snapshot;
        let pool =
            |index| PoolSample { members: judge.members(index), health: judge.pool(index).clone() };
        let pools = (0..table.pools.len()).map(pool).collect();
        let earlier = before.map(Self::counts).unwrap_or_default();
        let span_ms = before.map_or(0, |before| at_ms.saturating_sub(before.at_ms));
        let (mut all, mut open_of_all) = (Counts::default(), 0);
        let mut servers = Vec::with_capacity(table.virtual_servers.len());
        let listed = snapshot.virtual_servers.iter().zip(&table.virtual_servers);
        for ((configured, live), (_, health)) in listed.zip(judge.servers()) {
            let totals = live.counters.totals();
            let counts = Counts::of(&totals, configured.service.is_relay());
            let open = shown_gauge(totals.connections_open);
            let change = earlier.get(&*live.name).and_then(|earlier| counts.since(earlier));
            change.iter().for_each(|change| all.add(change));
            open_of_all += open;
            let answered = counts.answered;
            servers.push(ServerSample {
                name: Arc::clone(&live.name),
                counts,
                open,
                failed: counts.failed,
                p50_ms: quantile(&totals.request_duration, answered, 50),
                p99_ms: quantile(&totals.request_duration, answered, 99),
                health: health.clone(),
                point: change.map(|change| change.point(span_ms, open)),
            });
        }
        let total = before.map(|_| all.point(span_ms, open_of_all));
        Self { at_ms, judge, servers, pools, total }
    }

    fn counts(&self) -> HashMap<&str, Counts> {
        self.servers.iter().map(|server| (&*server.name, server.counts)).collect()
    }
}
