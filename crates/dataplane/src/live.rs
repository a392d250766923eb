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
//! | `LiveMember::state_override` | on a command | control | one byte per member |
//! | `LivePool::epoch` | on a transition, a command or an ejection | control, workers | one word per pool |
//! | `LiveVirtualServer::connections` | twice per client connection | workers | one word per virtual server |

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use weir_config::snapshot::{Address, Member, Pool, Snapshot};
use weir_core::admin_state::AdminState;
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
    /// What the operator asked for at run time, as [`override_to_bits`] packs it.
    state_override: AtomicU8,
    /// A packed [`Passive`].
    passive: AtomicU64,
}

/// What the file wants of a member, which holds unless the operator wants something else at run time. The
/// file has no key for it yet.
pub fn configured_state(_member: &Member) -> AdminState {
    AdminState::Enabled
}

impl LivePool {
    /// Makes workers look at the members anew. Whoever sees the new epoch sees what was changed before.
    fn members_changed(&self) {
        self.epoch.fetch_add(1, Release);
    }
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
            self.pool.members_changed();
        }
        changed
    }

    /// What the operator wants of it: at run time, or else in the file.
    pub fn state(&self, configured: AdminState) -> AdminState {
        self.state_override().unwrap_or(configured)
    }

    /// What the operator asked for at run time; `None`: what the file says holds.
    pub fn state_override(&self) -> Option<AdminState> {
        override_from_bits(self.state_override.load(Relaxed))
    }

    /// Sets what the operator wants at run time until the process ends or the member leaves its pool;
    /// returns what that was before. Requests under way are not touched.
    pub fn set_state_override(&self, wanted: Option<AdminState>) -> Option<AdminState> {
        let bits = override_to_bits(wanted);
        let before = self.state_override.swap(bits, Relaxed);
        if before != bits {
            self.pool.members_changed();
        }
        override_from_bits(before)
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
            self.pool.members_changed();
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

/// A run-time state as one byte; 0: none.
fn override_to_bits(state: Option<AdminState>) -> u8 {
    match state {
        None => 0,
        Some(AdminState::Enabled) => 1,
        Some(AdminState::Drain) => 2,
        Some(AdminState::Disabled) => 3,
    }
}

/// What [`override_to_bits`] packed.
fn override_from_bits(bits: u8) -> Option<AdminState> {
    match bits {
        1 => Some(AdminState::Enabled),
        2 => Some(AdminState::Drain),
        3 => Some(AdminState::Disabled),
        _ => None,
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
                    state_override: AtomicU8::new(override_to_bits(None)),
                    passive: AtomicU64::new(Passive::CLEAN.to_bits()),
                })
            })
            .collect();
        Self { pool: live, members }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(members: &str, previous: Option<&LiveTable>) -> LiveTable {
        let text = format!(
            "virtual_servers: {{ v: {{ listen: \"127.0.0.1:8080\", pool: p }} }}\n\
             pools: {{ p: {{ members: {members} }} }}\n"
        );
        let config = weir_config::parse("test.yaml", &text).config.expect("a good configuration");
        let snapshot = config.snapshot(&weir_config::Resolutions::default());
        LiveTable::build(Arc::new(snapshot), previous, 1)
    }

    #[test]
    fn a_state_of_run_time_holds_before_that_of_the_file() {
        let table = table("[ 127.0.0.1:1 ]", None);
        let member = &table.pools[0].members[0];
        let states = [AdminState::Enabled, AdminState::Drain, AdminState::Disabled];
        let mut before = None;
        for wanted in states.map(Some).into_iter().chain([None]) {
            assert_eq!(member.set_state_override(wanted), before);
            assert_eq!(member.state_override(), wanted);
            for configured in states {
                assert_eq!(member.state(configured), wanted.unwrap_or(configured));
            }
            before = wanted;
        }
    }

    #[test]
    fn workers_look_anew_only_when_something_has_changed() {
        let table = table("[ 127.0.0.1:1 ]", None);
        let live = &table.pools[0];
        let epoch = || live.pool.epoch.load(Relaxed);
        let start = epoch();
        live.members[0].set_state_override(None);
        assert_eq!(epoch(), start);
        live.members[0].set_state_override(Some(AdminState::Drain));
        live.members[0].set_state_override(Some(AdminState::Drain));
        assert_eq!(epoch(), start + 1);
        live.members[0].set_state_override(None);
        assert_eq!(epoch(), start + 2);
    }

    #[test]
    fn a_state_of_run_time_stays_as_long_as_the_member_does() {
        let first = table("[ 127.0.0.1:1, 127.0.0.1:2 ]", None);
        for member in &first.pools[0].members {
            member.set_state_override(Some(AdminState::Drain));
        }
        let second = table("[ 127.0.0.1:2, 127.0.0.1:3 ]", Some(&first));
        let overrides = |table: &LiveTable| -> Vec<Option<AdminState>> {
            table.pools[0].members.iter().map(|member| member.state_override()).collect()
        };
        assert_eq!(overrides(&second), [Some(AdminState::Drain), None]);
        let third = table("[ 127.0.0.1:1, 127.0.0.1:2 ]", Some(&second));
        assert_eq!(overrides(&third), [None, Some(AdminState::Drain)]);
    }
}
