//! A copy of live state for dry runs. Changes of the copy do not affect the original.
//!
//! Counters start at zero. Tables of clients are copied if requests of one virtual server, or of those to which it
//! hands requests over, may read them. The copy of a table needs as much memory as its live entries.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use std::sync::{Arc, RwLock};

use weir_config::snapshot::{KeyLimit, KeyMeasure, Snapshot, VirtualServer, Waf};
use weir_core::monitor::Health;
use weir_core::policy::Action;
use weir_waf::inspection::CommonTexts;

use super::{
    LiveMember, LivePool, LiveTable, LiveVirtualServer, PoolMembers, RemovedObjects, RuleCount,
    ServerUse,
};
use crate::environment::Environment;
use crate::shared::counters::PerWorker;
use crate::shared::logins::Logins;
use crate::shared::shared_table::KeyedLimit;
use crate::shared::waf_rules::WafRules;

/// The number of workers in a copy.
const WORKERS: usize = 1;

impl LiveTable {
    /// A copy of the current state, for requests that arrive at the virtual server with this index in the snapshot. The copy
    /// has one worker.
    pub fn copied(&self, server: usize, outside: &Environment) -> Self {
        let clock = outside.clock;
        let reached = self.reached_from(server);
        let servers: Vec<&VirtualServer> =
            reached.iter().map(|index| &self.snapshot.virtual_servers[*index]).collect();
        let limits_read = limits_read(&servers);
        let limits = self.snapshot.key_limits.iter().zip(&self.key_limits).enumerate();
        let limits = limits.map(|(index, (limit, live))| match limits_read.contains(&index) {
            true => copied_limit(limit, live, clock.now_us()),
            false => unused_limit(limit),
        });
        Self {
            virtual_servers: self.virtual_servers.iter().map(|it| Arc::new(it.copied())).collect(),
            tls: self.tls.clone(),
            pools: self.pools.iter().map(|pool| Arc::new(pool.copied())).collect(),
            stickies: self.stickies.copied(&servers, clock.now_ms()),
            key_limits: limits.map(Arc::new).collect(),
            key_hash: self.key_hash,
            logins: self.logins.is_some().then(|| Arc::new(logins(outside))),
            rules: self.rules.iter().map(|_| RuleCount::new(PerWorker::new(WORKERS))).collect(),
            waf_rules: WafRules::default(),
            departed: RemovedObjects::default(),
            generation: self.generation,
            workers: WORKERS,
            snapshot: with_own_texts(&self.snapshot),
        }
    }

    /// As [`Self::copied`], but idle: all members are up and idle, and all limits are unused.
    pub fn copied_at_rest(&self, server: usize, outside: &Environment) -> Self {
        let mut copy = self.copied(server, outside);
        let limits = self.snapshot.key_limits.iter();
        copy.key_limits = limits.map(|limit| Arc::new(unused_limit(limit))).collect();
        let unused = |server: &Arc<LiveVirtualServer>| LiveVirtualServer {
            name: Arc::clone(&server.name),
            connections: AtomicU32::new(0),
            used: ServerUse::default(),
            counters: PerWorker::new(WORKERS),
        };
        copy.virtual_servers =
            self.virtual_servers.iter().map(|server| Arc::new(unused(server))).collect();
        for pool in &copy.pools {
            pool.pool.waiting.store(0, Relaxed);
            pool.pool.waiting_since_ms.iter().for_each(|word| word.store(0, Relaxed));
            for member in &pool.members {
                member.occupancy.store(0, Relaxed);
                member.passive.store(0, Relaxed);
                member.set_health(Health::Up, 0);
            }
        }
        copy
    }

    /// The indexes of a virtual server and of those to which its requests may be handed over.
    fn reached_from(&self, server: usize) -> Vec<usize> {
        let mut reached = vec![server];
        let mut looked_at = 0;
        while let Some(&index) = reached.get(looked_at) {
            looked_at += 1;
            let others = self.snapshot.virtual_servers[index].hands_over_to();
            let new: Vec<usize> =
                others.into_iter().filter(|other| !reached.contains(other)).collect();
            reached.extend(new);
        }
        reached
    }
}

/// The indexes of the limits per key for which requests of these virtual servers count.
fn limits_read(servers: &[&VirtualServer]) -> Vec<usize> {
    let of_servers = servers.iter().flat_map(|server| {
        server.limits.per_key.iter().chain(&server.limits.per_key_connections).copied()
    });
    let policies = servers.iter().flat_map(|server| &server.policies);
    let rules = policies.flat_map(|policy| policy.request.all());
    let of_rules = rules.flat_map(|rule| &rule.actions).filter_map(|action| match action {
        Action::RateLimit(limit) => Some(*limit as usize),
        _ => None,
    });
    of_servers.chain(of_rules).collect()
}

fn copied_limit(limit: &KeyLimit, live: &KeyedLimit, now_us: u64) -> KeyedLimit {
    match limit.measure {
        KeyMeasure::Rate(_) => live.copied(now_us),
        KeyMeasure::AtATime(_) => live.copied(0),
    }
}

/// A limit without any use so far.
fn unused_limit(limit: &KeyLimit) -> KeyedLimit {
    match limit.measure {
        KeyMeasure::Rate(_) => KeyedLimit::on_rates(1),
        KeyMeasure::AtATime(_) => KeyedLimit::at_a_time(1),
    }
}

/// Password checks without threads: the owner of the copy does the checks.
fn logins(outside: &Environment) -> Logins {
    let logins = Logins::new(outside);
    logins.set_threads(1);
    logins
}

/// The snapshot with separate caches of the firewall's findings in common texts.
fn with_own_texts(snapshot: &Arc<Snapshot>) -> Arc<Snapshot> {
    if snapshot.virtual_servers.iter().all(|server| server.waf.is_none()) {
        return Arc::clone(snapshot);
    }
    let mut own = Snapshot::clone(snapshot);
    for waf in own.virtual_servers.iter_mut().filter_map(|server| server.waf.as_mut()) {
        let common = Arc::new(CommonTexts::new(Arc::clone(waf.common.view())));
        *waf = Arc::new(Waf { common, ..Waf::clone(waf) });
    }
    Arc::new(own)
}

impl LiveVirtualServer {
    fn copied(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            connections: AtomicU32::new(self.connections.load(Relaxed)),
            used: self.used.copied(),
            counters: PerWorker::new(WORKERS),
        }
    }
}

impl ServerUse {
    fn copied(&self) -> Self {
        Self {
            requests: self.requests.copied(),
            connections: self.connections.copied(),
            requests_under_way: AtomicU32::new(self.requests_under_way.load(Relaxed)),
        }
    }
}

impl PoolMembers {
    /// A copy of the current state.
    pub fn copied(&self) -> Self {
        let pool = Arc::new(self.pool.copied());
        let members = self.members.iter().map(|member| Arc::new(member.copied(&pool)));
        let members = members.collect();
        self.with_state(pool, members)
    }
}

impl LivePool {
    fn copied(&self) -> Self {
        let waiting = self.waiting_since_ms.iter();
        Self {
            name: Arc::clone(&self.name),
            number: self.number,
            epoch: AtomicU32::new(self.epoch.load(Relaxed)),
            waiting_since_ms: waiting.map(|word| AtomicU64::new(word.load(Relaxed))).collect(),
            waiting: AtomicU32::new(self.waiting.load(Relaxed)),
            counters: PerWorker::new(WORKERS),
        }
    }
}

impl LiveMember {
    /// `pool`: the copy of its pool.
    fn copied(&self, pool: &Arc<LivePool>) -> Self {
        Self {
            pool: Arc::clone(pool),
            address: self.address.clone(),
            label: Arc::clone(&self.label),
            occupancy: AtomicU32::new(self.occupancy.load(Relaxed)),
            rate: self.rate.copied(),
            counters: PerWorker::new(WORKERS),
            times: RwLock::default(),
            health: AtomicU8::new(self.health.load(Relaxed)),
            up_since_ms: AtomicU64::new(self.up_since_ms.load(Relaxed)),
            response_time: AtomicU64::new(self.response_time.load(Relaxed)),
            state_override: AtomicU8::new(self.state_override.load(Relaxed)),
            passive: AtomicU64::new(self.passive.load(Relaxed)),
            ejected_for: AtomicU16::new(self.ejected_for.load(Relaxed)),
        }
    }
}
