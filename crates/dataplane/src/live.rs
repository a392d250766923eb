//! The live side of a snapshot: what changes while it is in force, shared by workers and control.
//!
//! A [`LiveTable`] is built for each snapshot and takes over, by name and address, the state of the
//! one before. These are all the words of memory that several cores write:
//!
//! | word | written | by | bound |
//! |---|---|---|---|
//! | `LiveMember::occupancy` | twice per request | workers | one word per member |
//! | `LiveMember::passive` | on failures, and the success that ends a series | workers | one word per member |
//! | `LiveMember::health` | on a transition | control | one byte per member |
//! | `LivePool::epoch` | on a transition or an ejection | control, workers | one word per pool |
//! | `LiveVirtualServer::connections` | twice per client connection | workers | one word per virtual server |

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use weir_config::snapshot::{Address, Pool, Snapshot};
use weir_core::monitor::{EjectionBounds, Health, Passive, PassiveSettings};

use crate::counters::{MemberCounters, PerWorker, PoolCounters, VirtualServerCounters};

/// A snapshot together with the live state of its objects; the vectors run parallel to its own.
#[derive(Debug)]
pub struct LiveTable {
    /// The configuration in force.
    pub snapshot: Arc<Snapshot>,
    /// One per `snapshot.virtual_servers`.
    pub virtual_servers: Vec<Arc<LiveVirtualServer>>,
    /// One per `snapshot.pools`.
    pub pools: Vec<PoolLive>,
    /// Counts the tables of this process, from 1.
    pub generation: u64,
    workers: usize,
}

/// One pool of a [`LiveTable`].
#[derive(Debug, Clone)]
pub struct PoolLive {
    /// What belongs to the pool as a whole.
    pub pool: Arc<LivePool>,
    /// One per member of the pool in the snapshot.
    pub members: Vec<Arc<LiveMember>>,
}

/// Live state of a virtual server.
#[derive(Debug)]
pub struct LiveVirtualServer {
    /// Its name.
    pub name: Arc<str>,
    /// Client connections open on all workers, for `limits.connections`.
    pub connections: AtomicU32,
    /// What it did.
    pub counters: PerWorker<VirtualServerCounters>,
}

/// Live state of a pool.
#[derive(Debug)]
pub struct LivePool {
    /// Its name.
    pub name: Arc<str>,
    /// Changes whenever the set of members that may take traffic may have changed.
    pub epoch: AtomicU32,
    /// What it did.
    pub counters: PerWorker<PoolCounters>,
}

/// Live state of a member of one pool.
#[derive(Debug)]
pub struct LiveMember {
    /// The pool it belongs to.
    pub pool: Arc<LivePool>,
    /// Its address.
    pub address: Address,
    /// Its address as text.
    pub label: Arc<str>,
    /// Requests that occupy it now, on all workers.
    pub occupancy: AtomicU32,
    /// What it did.
    pub counters: PerWorker<MemberCounters>,
    health: AtomicU8,
    /// A packed [`Passive`].
    passive: AtomicU64,
}

impl LiveVirtualServer {
    /// Counts a client connection; returns how many there were before.
    pub fn connection_opened(&self, worker: usize) -> u32 {
        self.counters.of(worker).connections_open.add(1);
        self.connections.fetch_add(1, Relaxed)
    }

    /// Ends what [`Self::connection_opened`] began.
    pub fn connection_closed(&self, worker: usize) {
        self.counters.of(worker).connections_open.subtract(1);
        self.connections.fetch_sub(1, Relaxed);
    }
}

impl LiveMember {
    /// What its monitors say.
    pub fn health(&self) -> Health {
        match self.health.load(Relaxed) {
            0 => Health::Pending,
            1 => Health::Up,
            3 => Health::Draining,
            _ => Health::Down,
        }
    }

    /// Sets what its monitors say; returns whether that is news.
    pub fn set_health(&self, health: Health) -> bool {
        let changed = self.health.swap(health as u8, Relaxed) != health as u8;
        if changed {
            self.pool.epoch.fetch_add(1, Relaxed);
        }
        changed
    }

    /// Until when passive marking keeps traffic away; the time is that of the monotonic clock.
    pub fn ejected_until_ms(&self, now_ms: u64) -> Option<u64> {
        Passive::from_bits(self.passive.load(Relaxed)).ejected_until_ms(now_ms)
    }

    /// Notes a failed request; returns whether it ejected the member.
    pub fn mark_failure(&self, now_ms: u64, settings: &PassiveSettings) -> bool {
        let mut ejected = false;
        let changed = self.passive.fetch_update(Relaxed, Relaxed, |bits| {
            let bounds = EjectionBounds { eject_max_ms: settings.eject_ms, allowed: true };
            let (next, ejection) = Passive::from_bits(bits).on_failure(now_ms, settings, bounds);
            ejected = ejection.is_some();
            (next.to_bits() != bits).then(|| next.to_bits())
        });
        ejected &= changed.is_ok();
        if ejected {
            self.pool.epoch.fetch_add(1, Relaxed);
        }
        ejected
    }

    /// Notes a served request: one load, unless it ends a series of failures.
    #[inline]
    pub fn mark_success(&self, now_ms: u64) {
        if Passive::from_bits(self.passive.load(Relaxed)).is_clean() {
            return;
        }
        // `Err` says that the state is what it should be already.
        let _ = self.passive.fetch_update(Relaxed, Relaxed, |bits| {
            let next = Passive::from_bits(bits).on_success(now_ms).to_bits();
            (next != bits).then_some(next)
        });
    }
}

impl LiveTable {
    /// The live table of `snapshot` for a process of so many workers. What `previous` has under the
    /// same name (virtual servers, pools) or the same pool and address (members) is taken over.
    pub fn build(snapshot: Arc<Snapshot>, previous: Option<&Self>, workers: usize) -> Self {
        let old_servers: HashMap<&str, &Arc<LiveVirtualServer>> = previous
            .iter()
            .flat_map(|table| table.virtual_servers.iter())
            .map(|server| (&*server.name, server))
            .collect();
        let old_pools: HashMap<&str, &PoolLive> = previous
            .iter()
            .flat_map(|table| table.pools.iter())
            .map(|pool| (&*pool.pool.name, pool))
            .collect();
        let virtual_servers = snapshot
            .virtual_servers
            .iter()
            .map(|server| match old_servers.get(&*server.name) {
                Some(&live) => Arc::clone(live),
                None => Arc::new(LiveVirtualServer {
                    name: Arc::clone(&server.name),
                    connections: AtomicU32::new(0),
                    counters: PerWorker::new(workers),
                }),
            })
            .collect();
        let pools = snapshot
            .pools
            .iter()
            .map(|pool| PoolLive::build(pool, old_pools.get(&*pool.name).copied(), workers))
            .collect();
        let generation = previous.map_or(1, |table| table.generation + 1);
        Self { snapshot, virtual_servers, pools, generation, workers }
    }

    /// The table is in force now: a member that nobody monitors any more is taken for up.
    pub fn enter_into_force(&self) {
        let pools = self.snapshot.pools.iter().zip(&self.pools);
        for (_, live) in pools.filter(|(pool, _)| pool.monitors.is_empty()) {
            for member in &live.members {
                member.set_health(Health::Up);
            }
        }
    }

    /// Workers that the counters are laid out for.
    pub fn workers(&self) -> usize {
        self.workers
    }
}

impl PoolLive {
    fn build(pool: &Pool, previous: Option<&Self>, workers: usize) -> Self {
        let live = match previous {
            Some(previous) => Arc::clone(&previous.pool),
            None => Arc::new(LivePool {
                name: Arc::clone(&pool.name),
                epoch: AtomicU32::new(0),
                counters: PerWorker::new(workers),
            }),
        };
        let old_members: HashMap<&Address, &Arc<LiveMember>> = previous
            .iter()
            .flat_map(|pool| pool.members.iter())
            .map(|member| (&member.address, member))
            .collect();
        let initial = if pool.monitors.is_empty() { Health::Up } else { Health::Pending };
        let members = pool
            .members
            .iter()
            .map(|member| {
                if let Some(&old) = old_members.get(&member.address) {
                    return Arc::clone(old);
                }
                Arc::new(LiveMember {
                    pool: Arc::clone(&live),
                    address: member.address.clone(),
                    label: Arc::clone(&member.label),
                    occupancy: AtomicU32::new(0),
                    counters: PerWorker::new(workers),
                    health: AtomicU8::new(initial as u8),
                    passive: AtomicU64::new(Passive::CLEAN.to_bits()),
                })
            })
            .collect();
        Self { pool: live, members }
    }
}
