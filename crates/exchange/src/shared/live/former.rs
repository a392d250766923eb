//! State that a table takes over from earlier tables.
//!
//! One reload may remove an object and a later one add it again, while earlier requests are still open. These count for
//! its limits, so the new table needs the same object. Therefore a table keeps weak references to removed objects
//! ([`RemovedObjects`]). An object that is no longer in use is created again.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use weir_config::snapshot::{Address, KeyLimit, MemberChanges};

use super::{LiveMember, LivePool, LiveTable, LiveVirtualServer, PoolMembers};
use crate::shared::shared_table::KeyedLimit;

/// Objects that were removed from the configuration but are still in use.
#[derive(Debug, Default)]
pub struct RemovedObjects {
    virtual_servers: Vec<Weak<LiveVirtualServer>>,
    pools: Vec<Weak<LivePool>>,
    members: Vec<Weak<LiveMember>>,
    key_limits: Vec<(Arc<KeyLimit>, Weak<KeyedLimit>)>,
}

/// Objects of the previous table, and those removed before.
#[derive(Debug, Default)]
pub(super) struct Former {
    virtual_servers: HashMap<Arc<str>, Arc<LiveVirtualServer>>,
    pools: HashMap<Arc<str>, Arc<LivePool>>,
    /// The members of present pools, by the pools' numbers.
    in_force: HashMap<u64, Arc<PoolMembers>>,
    members: HashMap<(Arc<str>, Address), FormerMember>,
    key_limits: Vec<(Arc<KeyLimit>, Arc<KeyedLimit>)>,
}

#[derive(Debug)]
struct FormerMember {
    live: Arc<LiveMember>,
    has_departed: bool,
}

impl RemovedObjects {
    /// The removed members that are still in use.
    pub fn members(&self) -> impl Iterator<Item = Arc<LiveMember>> {
        self.members.iter().filter_map(Weak::upgrade)
    }

    /// The removed members of a pool that are still in use.
    pub(super) fn members_of<'a>(
        &'a self,
        pool: &'a Arc<LivePool>,
    ) -> impl Iterator<Item = Arc<LiveMember>> + 'a {
        self.members().filter(|member| Arc::ptr_eq(&member.pool, pool))
    }

    /// The removed objects after changes of the members of some pools.
    pub(super) fn after(
        &self,
        before: &[Arc<PoolMembers>],
        now: &[Arc<PoolMembers>],
        changes: &[MemberChanges],
    ) -> Self {
        let others = changes.iter().filter(|changes| {
            let (before, now) = (&before[changes.pool], &now[changes.pool]);
            !before.members.are(&now.members)
        });
        let new = others.clone().flat_map(|changes| changes.new_ones(&now[changes.pool].members));
        let present: HashSet<*const LiveMember> = new.map(Arc::as_ptr).collect();
        let left = others.flat_map(|changes| changes.former(&before[changes.pool].members));
        let gone = self.members().chain(left.cloned());
        let gone = gone.filter(|member| !present.contains(&Arc::as_ptr(member)));
        Self {
            virtual_servers: self.virtual_servers.clone(),
            pools: self.pools.clone(),
            members: gone.map(|member| Arc::downgrade(&member)).collect(),
            key_limits: self.key_limits.clone(),
        }
    }

    /// The removed pools that are still in use.
    pub fn pools(&self) -> impl Iterator<Item = Arc<LivePool>> {
        self.pools.iter().filter_map(Weak::upgrade)
    }

    /// The removed virtual servers that are still in use.
    pub fn virtual_servers(&self) -> impl Iterator<Item = Arc<LiveVirtualServer>> {
        self.virtual_servers.iter().filter_map(Weak::upgrade)
    }
}

impl Former {
    /// The objects of the previous table.
    pub(super) fn of(previous: Option<&LiveTable>) -> Self {
        let Some(previous) = previous else { return Self::default() };
        let departed = &previous.departed;
        let mut former = Self::default();
        // Present objects take precedence over removed ones.
        let servers = departed.virtual_servers().chain(previous.virtual_servers.iter().cloned());
        former.virtual_servers = servers.map(|live| (Arc::clone(&live.name), live)).collect();
        let pools = previous.pools.iter().map(|live| Arc::clone(&live.pool));
        let pools = departed.pools().chain(pools);
        former.pools = pools.map(|live| (Arc::clone(&live.name), live)).collect();
        let in_force = previous.pools.iter().map(|pool| (pool.pool.number, Arc::clone(pool)));
        former.in_force = in_force.collect();
        let gone = departed.members().map(|live| FormerMember { live, has_departed: true });
        let there = previous.pools.iter().flat_map(|pool| pool.members.iter().cloned());
        let there = there.map(|live| FormerMember { live, has_departed: false });
        let members = gone.chain(there);
        former.members = members.map(|member| (key_of(&member.live), member)).collect();
        let limits = previous.snapshot.key_limits.iter().cloned();
        former.key_limits = limits.zip(previous.key_limits.iter().cloned()).collect();
        let gone = departed.key_limits.iter();
        let gone = gone.filter_map(|(limit, live)| Some((Arc::clone(limit), live.upgrade()?)));
        former.key_limits.extend(gone);
        former
    }

    pub(super) fn virtual_server(&self, name: &str) -> Option<Arc<LiveVirtualServer>> {
        self.virtual_servers.get(name).cloned()
    }

    pub(super) fn pool(&self, name: &str) -> Option<Arc<LivePool>> {
        self.pools.get(name).cloned()
    }

    /// The members of a pool in the previous table.
    pub(super) fn members(&self, pool: &LivePool) -> Option<&Arc<PoolMembers>> {
        self.in_force.get(&pool.number)
    }

    /// A member of a pool. A removed one comes back without commands and passive marks.
    pub(super) fn member(
        &self,
        pool: &Arc<LivePool>,
        address: &Address,
    ) -> Option<Arc<LiveMember>> {
        let found = self.members.get(&(Arc::clone(&pool.name), address.clone()))?;
        debug_assert!(Arc::ptr_eq(&found.live.pool, pool), "a member keeps its pool");
        if found.has_departed {
            found.live.come_back();
        }
        Some(Arc::clone(&found.live))
    }

    /// The limit of the same name; the name includes its kind.
    pub(super) fn key_limit(&self, limit: &KeyLimit) -> Option<&Arc<KeyedLimit>> {
        let mut limits = self.key_limits.iter();
        limits.find(|(former, _)| former.name == limit.name).map(|(_, live)| live)
    }

    /// Objects that are not in `table`.
    pub(super) fn departed(self, table: &LiveTable) -> RemovedObjects {
        let servers = self.virtual_servers.into_values();
        let pools = self.pools.into_values();
        let members = self.members.into_values().map(|member| member.live);
        let new_members = table.pools.iter().flat_map(|pool| &pool.members);
        let new_limits: HashSet<_> = table.key_limits.iter().map(Arc::as_ptr).collect();
        let limits = self.key_limits.into_iter();
        let limits = limits.filter(|(_, live)| !new_limits.contains(&Arc::as_ptr(live)));
        RemovedObjects {
            virtual_servers: without(servers, &table.virtual_servers),
            pools: without(pools, table.pools.iter().map(|new| &new.pool)),
            members: without(members, new_members),
            key_limits: limits.map(|(limit, live)| (limit, Arc::downgrade(&live))).collect(),
        }
    }
}

fn key_of(member: &LiveMember) -> (Arc<str>, Address) {
    (Arc::clone(&member.pool.name), member.address.clone())
}

/// The objects of `former` that are not among `new`.
fn without<'a, T: 'a>(
    former: impl Iterator<Item = Arc<T>>,
    new: impl IntoIterator<Item = &'a Arc<T>>,
) -> Vec<Weak<T>> {
    let new: HashSet<*const T> = new.into_iter().map(Arc::as_ptr).collect();
    let departed = former.filter(|live| !new.contains(&Arc::as_ptr(live)));
    departed.map(|live| Arc::downgrade(&live)).collect()
}
