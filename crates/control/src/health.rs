//! The health of virtual servers, of pools and of the process. It is decided here alone: status, dashboard, metrics,
//! problems and doctor show what this module says.
//!
//! Two things count: whether members are in service, and the share of recent requests that failed. Monitors may pass
//! while every request fails, and a pool without monitors has members that are always up.

pub(crate) mod recent;

use std::sync::{Arc, OnceLock};

use weir_api::health as api;
use weir_api::process::ProcessHealth;
use weir_config::snapshot::packet::{PacketServer, UnservedByPackets};
use weir_config::snapshot::{self, NOBODY, Snapshot};
use weir_core::admin_state::AdminState;
use weir_exchange::shared::live::{LiveMember, LiveTable, LiveVirtualServer, PoolMembers};
use weir_exchange::shared::sticky::reached_pools;

use crate::member_state::{MemberState, is_in_service};
use recent::{RecentSamples, condition_of, told};

/// How well something serves. The order is that of severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Condition {
    /// No problem.
    Up,
    /// It serves with less than the configuration has, or some of its requests fail.
    Degraded,
    /// Half of its requests or more fail.
    Failing,
    /// It cannot serve.
    Down,
}

impl Condition {
    /// The word for people.
    pub fn as_str(self) -> &'static str {
        api::HealthState::from(self).as_str()
    }

    /// Whether clients get what they ask for, most of the time.
    pub fn serves(self) -> bool {
        self < Self::Failing
    }

    /// The value of the metric: 3 is up, 0 is down.
    pub fn figure(self) -> u64 {
        Self::Down as u64 - self as u64
    }
}

impl From<Condition> for api::HealthState {
    fn from(condition: Condition) -> Self {
        match condition {
            Condition::Up => Self::Up,
            Condition::Degraded => Self::Degraded,
            Condition::Failing => Self::Failing,
            Condition::Down => Self::Down,
        }
    }
}

/// The health of a virtual server or of a pool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Health {
    /// How well it serves.
    pub state: Condition,
    /// The reason; `None`: it is up.
    pub why: Option<String>,
    /// The requests that this was judged by; `None`: there are no samples yet.
    pub recent: Option<api::RecentRequests>,
}

impl Health {
    fn up(recent: Option<api::RecentRequests>) -> Self {
        Self { state: Condition::Up, why: None, recent }
    }

    /// The worse one of this health and another reason.
    fn or(mut self, state: Condition, why: impl FnOnce() -> String) -> Self {
        if state > self.state {
            self.state = state;
            self.why = Some(why());
        }
        self
    }

    /// The worse one of this health and the judgement about its requests.
    fn by_requests(self) -> Self {
        let Some(recent) = self.recent else { return self };
        self.or(condition_of(&recent), || told(&recent))
    }
}

impl From<&Health> for api::Health {
    fn from(health: &Health) -> Self {
        let Health { state, why, recent } = health;
        Self { state: (*state).into(), why: why.clone(), recent: *recent }
    }
}

/// The state of the process as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServingState {
    /// Shuts down, and accepts no new connections.
    Draining,
    /// Waits for the first probes of members.
    Starting,
    /// No virtual server serves.
    Down,
    /// It serves, and there are problems, or something is not up.
    Degraded,
    /// It serves, and there is no problem.
    Fully,
}

impl ServingState {
    /// The value of the metric: 3 is serving, 0 is down.
    pub fn figure(self) -> u64 {
        match self {
            Self::Fully => 3,
            Self::Degraded => 2,
            Self::Draining | Self::Starting => 1,
            Self::Down => 0,
        }
    }
}

impl From<ServingState> for ProcessHealth {
    fn from(serving: ServingState) -> Self {
        match serving {
            ServingState::Draining => Self::Draining,
            ServingState::Starting => Self::Starting,
            ServingState::Down => Self::Down,
            ServingState::Degraded => Self::Degraded,
            ServingState::Fully => Self::Serving,
        }
    }
}

/// How many members of a pool there are, and how many of them take new requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Members {
    pub all: usize,
    pub in_service: usize,
    /// Up, regardless of their administrative state.
    pub up: usize,
    /// Not in service, although the file and the operators want them to be.
    missed: usize,
}

impl Members {
    /// Counts the members of a pool.
    pub fn of(configured: &snapshot::Pool, live: &PoolMembers) -> Self {
        let mut members = Self { all: live.members.len(), ..Self::default() };
        for (configured, live) in configured.members.iter().zip(&live.members) {
            members.up += usize::from(MemberState::of(live) == MemberState::Up);
            if is_in_service(configured, live) {
                members.in_service += 1;
            } else if is_wanted(configured, live) {
                members.missed += 1;
            }
        }
        members
    }

    fn condition(self) -> Condition {
        match self {
            Self { in_service: 0, .. } => Condition::Down,
            Self { missed: 0, .. } => Condition::Up,
            _ => Condition::Degraded,
        }
    }

    fn why(self) -> String {
        match (self.all, self.in_service) {
            (0, _) => "it has no members".to_owned(),
            (1, 0) => "its only member is not in service".to_owned(),
            (all, 0) => format!("none of its {all} members is in service"),
            (all, some) => format!("{some} of {all} members in service"),
        }
    }
}

/// Whether the member is to take new requests.
fn is_wanted(configured: &snapshot::Member, live: &LiveMember) -> bool {
    let state = live.state_override().unwrap_or(configured.state);
    configured.weight > 0 && state == AdminState::Enabled
}

/// Decides the health of parts of a table, each once and only when it is asked for.
#[derive(Debug)]
pub(crate) struct Judge {
    table: Arc<LiveTable>,
    recent: RecentSamples,
    pools: Vec<OnceLock<(Members, Health)>>,
    servers: OnceLock<Vec<(Arc<str>, Health)>>,
}

impl Judge {
    /// A judge of this table with these samples.
    pub fn new(table: Arc<LiveTable>, recent: RecentSamples) -> Self {
        let pools = table.pools.iter().map(|_| OnceLock::new()).collect();
        Self { table, recent, pools, servers: OnceLock::new() }
    }

    /// The table that is judged.
    pub fn table(&self) -> &Arc<LiveTable> {
        &self.table
    }

    /// The health of a pool, by its place in the table.
    pub fn pool(&self, index: usize) -> &Health {
        &self.judged(index).1
    }

    /// The members of a pool, by its place in the table.
    pub fn members(&self, index: usize) -> Members {
        self.judged(index).0
    }

    fn judged(&self, index: usize) -> &(Members, Health) {
        self.pools[index].get_or_init(|| {
            let (configured, live) = (&self.table.snapshot.pools[index], &self.table.pools[index]);
            let members = Members::of(configured, live);
            let health = Health::up(self.recent.of_pool(live)).by_requests();
            let why = || match self.table.snapshot.resolved.lacks_addresses(configured) {
                true => "the names of its members have no address".to_owned(),
                false => members.why(),
            };
            (members, health.or(members.condition(), why))
        })
    }

    /// The health of a virtual server, by its place in the table.
    pub fn server(&self, index: usize) -> Health {
        match self.servers.get() {
            Some(all) => all[index].1.clone(),
            None => self.judge_server(index),
        }
    }

    fn judge_server(&self, index: usize) -> Health {
        let snapshot = &self.table.snapshot;
        let (configured, live) =
            (&snapshot.virtual_servers[index], &self.table.virtual_servers[index]);
        let recent = self.recent.of_server(live, configured.service.is_relay());
        let pools = pools_in_order(snapshot, index).into_iter();
        let pools: Vec<usize> = pools.filter(|pool| self.name(*pool) != NOBODY).collect();
        self.by_pools(Health::up(recent).by_requests(), &pools, configured.pool)
    }

    /// The health of a virtual server of type fast_l4 that packets serve.
    pub fn packet_server(&self, server: &PacketServer) -> Health {
        let pools: Vec<usize> = server.pool.into_iter().collect();
        self.by_pools(Health::up(None), &pools, server.pool.unwrap_or_default())
    }

    fn name(&self, pool: usize) -> &str {
        &self.table.snapshot.pools[pool].name
    }

    /// Adds the health of the pools to that of a virtual server. `own`: the pool of requests that no rule sends elsewhere.
    fn by_pools(&self, health: Health, pools: &[usize], own: usize) -> Health {
        let is_out = |pool: usize| self.pool(pool).state == Condition::Down;
        let reason = |pool: usize| {
            let why = self.pool(pool).why.as_deref().unwrap_or_default();
            format!("pool {}: {why}", self.name(pool))
        };
        let mut health = health;
        if pools.contains(&own) && is_out(own) {
            let state = match self.has_substitute(own) {
                true => Condition::Degraded,
                false => Condition::Down,
            };
            health = health.or(state, || reason(own));
        }
        if let Some(first) = pools.first().filter(|_| pools.iter().all(|pool| is_out(*pool))) {
            health = health.or(Condition::Down, || reason(*first));
        }
        // It has no requests of its own to judge by: another virtual server has those that it hands over.
        let is_unknown = health.recent.is_none_or(|recent| recent.requests == 0);
        let fails = |pool: &usize| !self.pool(*pool).state.serves();
        if let Some(first) = pools.first().filter(|_| is_unknown && pools.iter().all(fails)) {
            health = health.or(Condition::Failing, || reason(*first));
        }
        let worst = pools.iter().copied().max_by_key(|pool| self.pool(*pool).state);
        match worst.filter(|pool| self.pool(*pool).state != Condition::Up) {
            Some(pool) => health.or(Condition::Degraded, || reason(pool)),
            None => health,
        }
    }

    /// Whether a fallback takes the requests of a pool without members.
    pub fn has_substitute(&self, pool: usize) -> bool {
        let mut seen = vec![pool];
        let mut at = pool;
        while let Some(next) = self.table.snapshot.pools[at].instead.fallback {
            if seen.contains(&next) {
                return false;
            }
            if self.members(next).in_service > 0 {
                return true;
            }
            seen.push(next);
            at = next;
        }
        false
    }

    /// The health of all virtual servers, with their names: those of the table, then those of the packet path, and those
    /// that neither packets nor sockets serve.
    pub fn servers(&self) -> &[(Arc<str>, Health)] {
        self.servers.get_or_init(|| self.judge_servers())
    }

    fn judge_servers(&self) -> Vec<(Arc<str>, Health)> {
        let servers = self.table.virtual_servers.iter().enumerate();
        let judge = |(index, live): (usize, &Arc<LiveVirtualServer>)| {
            (Arc::clone(&live.name), self.judge_server(index))
        };
        let mut all: Vec<_> = servers.map(judge).collect();
        let Some(packets) = &self.table.snapshot.packets else { return all };
        let forwarded = packets.servers.iter();
        all.extend(forwarded.map(|it| (Arc::clone(&it.name), self.packet_server(it))));
        let fallen = packets.fallen.iter();
        all.extend(fallen.filter_map(|it| Some((Arc::clone(&it.server.name), unserved(it)?))));
        all
    }

    /// The number of pools of the configuration.
    pub fn pools_count(&self) -> usize {
        self.table.pools.iter().filter(|live| *live.pool.name != *NOBODY).count()
    }

    /// The health of the pools that count for the process, with their names. A pool without members in service counts only
    /// if the file and the operators want some: a virtual server that needs it is down by itself.
    pub fn pools(&self) -> Vec<(Arc<str>, &Health)> {
        let pools = self.table.pools.iter().enumerate();
        let snapshot = &self.table.snapshot;
        let counts = |index: &usize| {
            let Members { in_service, missed, .. } = self.members(*index);
            let is_unresolved = || snapshot.resolved.lacks_addresses(&snapshot.pools[*index]);
            in_service > 0 || missed > 0 || is_unresolved()
        };
        let pools = pools.filter(|(_, live)| *live.pool.name != *NOBODY);
        let pools = pools.filter(|(index, _)| counts(index));
        pools.map(|(index, live)| (Arc::clone(&live.pool.name), self.pool(index))).collect()
    }
}

/// The health of a virtual server of type fast_l4 that packets do not serve; `None`: sockets serve it.
pub(crate) fn unserved(fallen: &UnservedByPackets) -> Option<Health> {
    let (why, unserved) = (&fallen.why, fallen.unserved.as_ref()?);
    let why = || format!("no packets, since {why}; no sockets, since {unserved}");
    Some(Health::up(None).or(Condition::Down, why))
}

/// The pools that requests of a virtual server can reach, including the pools of virtual servers to which requests are
/// handed over. The first is the server's own pool; the others are in the order of the file.
pub(crate) fn pools_in_order(snapshot: &Snapshot, index: usize) -> Vec<usize> {
    let mut servers = vec![index];
    let mut pools = Vec::new();
    let mut looked_at = 0;
    while let Some(&at) = servers.get(looked_at) {
        looked_at += 1;
        let server = &snapshot.virtual_servers[at];
        let new = server.hands_over_to().into_iter().filter(|other| !servers.contains(other));
        servers.extend(new.collect::<Vec<_>>());
        pools.extend(reached_pools(server, snapshot));
    }
    if let Some((first, others)) = pools.split_first() {
        let first = *first;
        let mut others: Vec<usize> = others.iter().copied().filter(|pool| *pool != first).collect();
        others.sort_unstable();
        others.dedup();
        return [first].into_iter().chain(others).collect();
    }
    pools
}

#[cfg(test)]
mod tests;
