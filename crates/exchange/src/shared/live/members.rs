//! The members of a pool in force.

use std::collections::HashMap;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock, RwLock};

use weir_config::snapshot::{Address, Balance, Member, MemberChanges, Pool};
use weir_core::balance::{MaglevTable, NamedMember, ResponseTime};
use weir_core::monitor::{Health, Passive};

use super::former::{Former, RemovedObjects};
use super::{LiveMember, LivePool, override_to_bits};
use crate::shared::counters::{OwnPoolCounters, PerWorker};
use crate::shared::shared_table::SharedLimit;

/// The members of a pool in force: one immutable value. Other members make another one.
///
/// An index of a member belongs to the value that it was taken from.
#[derive(Debug)]
pub struct PoolMembers {
    /// State of the pool, which stays when its members change.
    pub pool: Arc<LivePool>,
    /// The pool in the snapshot.
    pub settings: Arc<Pool>,
    /// State of the members, one per member in `settings`.
    pub members: LiveMembers,
    /// Maps keys of requests to members, if balancing needs it.
    pub maglev: Option<Arc<MaglevTable>>,
    labels: Arc<Labels>,
    /// The places of the members that were not in force before, or with other settings.
    new: Vec<Range<usize>>,
}

/// State of the members of a pool, in their order. Copies share it.
#[derive(Debug, Clone)]
pub struct LiveMembers(Arc<[Arc<LiveMember>]>);

impl LiveMembers {
    /// Whether others are the same members in the same order, and share them.
    pub fn are(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for LiveMembers {
    type Target = [Arc<LiveMember>];

    #[inline]
    fn deref(&self) -> &[Arc<LiveMember>] {
        &self.0
    }
}

impl FromIterator<Arc<LiveMember>> for LiveMembers {
    fn from_iter<I: IntoIterator<Item = Arc<LiveMember>>>(members: I) -> Self {
        Self(members.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a LiveMembers {
    type Item = &'a Arc<LiveMember>;
    type IntoIter = std::slice::Iter<'a, Arc<LiveMember>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The labels of members, in their order. Members of a pool with the same labels share them.
#[derive(Debug, Default)]
struct Labels {
    /// The indexes of the members by their labels, made at the first question.
    indexes: OnceLock<HashMap<Arc<str>, u32>>,
}

/// What all pools of a table are made with.
#[derive(Clone, Copy)]
pub(super) struct PoolBuildFacts {
    /// Some persistence selects members by keys of requests.
    pub is_keyed: bool,
    /// The number of workers.
    pub workers: usize,
}

impl PoolMembers {
    /// The members of a pool. Those of earlier tables keep their state.
    pub(super) fn build(
        live: Arc<LivePool>,
        settings: &Arc<Pool>,
        former: &Former,
        making: PoolBuildFacts,
    ) -> Self {
        let alike =
            former.members(&live).filter(|before| has_labels_of(&before.settings, settings));
        let labels = alike.map(|before| Arc::clone(&before.labels)).unwrap_or_default();
        let one = |member: &Member| {
            let known = former.member(&live, &member.address);
            known.unwrap_or_else(|| new_member(&live, settings, member, making.workers))
        };
        let members = settings.members.iter().map(one).collect();
        let maglev = is_keyed(settings, making).then(|| maglev(settings));
        let new = std::iter::once(0..settings.members.len()).collect();
        Self { pool: live, settings: Arc::clone(settings), members, maglev, labels, new }
    }

    /// The members after these changes of this pool's members alone. Members that stay keep their state; one that had left,
    /// and is still in use, comes back. The cost is that of the changes, and of a pointer for each member if some have other
    /// places.
    pub(super) fn changed_to(
        &self,
        settings: &Arc<Pool>,
        changes: &MemberChanges,
        departed: &RemovedObjects,
        making: PoolBuildFacts,
    ) -> Self {
        let is_same = changes.keep_places(&self.settings, settings);
        let members = match is_same {
            true => self.members.clone(),
            false => self.moved_to(settings, changes, departed, making),
        };
        // Their labels are their addresses.
        let labels = if is_same { Arc::clone(&self.labels) } else { Arc::default() };
        let is_drawn_alike = || {
            let (before, after) = (&self.settings.members, &settings.members);
            is_same && changes.are_alike(before, after, |one, other| one.weight == other.weight)
        };
        let maglev = match &self.maglev {
            Some(table) if is_drawn_alike() => Some(Arc::clone(table)),
            _ => is_keyed(settings, making).then(|| maglev(settings)),
        };
        let (pool, new) = (Arc::clone(&self.pool), changes.new_places());
        Self { pool, settings: Arc::clone(settings), members, maglev, labels, new }
    }

    /// The state of other members.
    fn moved_to(
        &self,
        settings: &Arc<Pool>,
        changes: &MemberChanges,
        departed: &RemovedObjects,
        making: PoolBuildFacts,
    ) -> LiveMembers {
        let former = changes.former(&self.members);
        let moved: HashMap<&Address, &Arc<LiveMember>> =
            former.map(|live| (&live.address, live)).collect();
        let mut new = changes.new_ones(&settings.members);
        let is_any_new = new.any(|member| !moved.contains_key(&member.address));
        let gone: HashMap<Address, Arc<LiveMember>> = match is_any_new {
            true => departed.members_of(&self.pool).map(|it| (it.address.clone(), it)).collect(),
            false => HashMap::new(),
        };
        let one = |member: &Member| {
            if let Some(&live) = moved.get(&member.address) {
                return Arc::clone(live);
            }
            match gone.get(&member.address) {
                Some(live) => {
                    live.come_back();
                    Arc::clone(live)
                }
                None => new_member(&self.pool, settings, member, making.workers),
            }
        };
        let members = changes.applied(&self.members, |_, places, members| {
            members.extend(settings.members[places].iter().map(one));
        });
        members.into_iter().collect()
    }

    /// A copy with other state, for a dry run. `pool`: the copy of the pool.
    pub(super) fn with_state(&self, pool: Arc<LivePool>, members: LiveMembers) -> Self {
        let (settings, maglev) = (Arc::clone(&self.settings), self.maglev.clone());
        let (labels, new) = (Arc::clone(&self.labels), self.new.clone());
        Self { pool, settings, members, maglev, labels, new }
    }

    /// The index of the member with this label.
    pub fn index_of(&self, label: &str) -> Option<u32> {
        let all = self.labels.indexes.get_or_init(|| {
            let labels = self.settings.members.iter().map(|member| Arc::clone(&member.label));
            labels.zip(0..).collect()
        });
        all.get(label).copied()
    }

    /// Whether other members of the pool have the same labels, in the same order.
    pub fn has_labels_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.labels, &other.labels)
    }

    /// The members are in force: one without monitors counts as up. Those that were in force before, with the same settings,
    /// are not looked at.
    pub fn enter_into_force(&self, now_ms: u64) {
        let monitors = &self.settings.monitors;
        for places in &self.new {
            let members = self.settings.members[places.clone()].iter();
            let members = members.zip(&self.members[places.clone()]);
            for (_, live) in members.filter(|(it, _)| it.monitors(monitors).is_empty()) {
                live.set_health(Health::Up, now_ms);
            }
        }
    }

    /// The counters of one worker, for that worker to keep.
    pub fn own_counters(&self, worker: usize) -> OwnPoolCounters {
        // Another thread may begin or end those of members now: then there are none for this table.
        let times: Option<_> = self.members.iter().map(|member| member.own_times(worker)).collect();
        OwnPoolCounters::new(self.pool.counters.own(worker), times.unwrap_or_default())
    }
}

/// Whether two forms of a pool have the same labels of members, in the same order.
fn has_labels_of(one: &Pool, other: &Pool) -> bool {
    let labels = one.members.iter().map(|member| &member.label);
    labels.eq(other.members.iter().map(|member| &member.label))
}

fn is_keyed(settings: &Pool, making: PoolBuildFacts) -> bool {
    making.is_keyed || !matches!(settings.balance, Balance::Method(_))
}

fn maglev(settings: &Pool) -> Arc<MaglevTable> {
    let members = settings.members.iter();
    let members: Vec<NamedMember<'_>> =
        members.map(|member| NamedMember { name: &member.label, weight: member.weight }).collect();
    Arc::new(MaglevTable::new(&members))
}

/// A member that no earlier table has.
fn new_member(
    live: &Arc<LivePool>,
    settings: &Pool,
    member: &Member,
    workers: usize,
) -> Arc<LiveMember> {
    let is_monitored = !member.monitors(&settings.monitors).is_empty();
    let initial = if is_monitored { Health::Pending } else { Health::Up };
    Arc::new(LiveMember {
        pool: Arc::clone(live),
        address: member.address.clone(),
        label: Arc::clone(&member.label),
        occupancy: AtomicU32::new(0),
        rate: SharedLimit::default(),
        counters: PerWorker::new(workers),
        times: RwLock::default(),
        health: AtomicU8::new(initial as u8),
        up_since_ms: AtomicU64::new(0),
        response_time: AtomicU64::new(ResponseTime::UNKNOWN.to_bits()),
        state_override: AtomicU8::new(override_to_bits(None)),
        passive: AtomicU64::new(Passive::CLEAN.to_bits()),
        ejected_for: AtomicU16::new(0),
    })
}

#[cfg(test)]
mod tests {
    use weir_config::snapshot::Snapshot;

    use super::*;
    use crate::environment::Environment;
    use crate::shared::live::LiveTable;

    fn snapshot(members: &str) -> Arc<Snapshot> {
        let text = format!(
            "virtual_servers: {{ v: {{ listen: \"127.0.0.1:8080\", pool: p }} }}\n\
             pools: {{ p: {{ members: [ {members} ] }} }}\n"
        );
        let config = weir_config::parse("test.yaml", &text).config.expect("a good configuration");
        Arc::new(config.snapshot(&weir_config::Resolutions::default()))
    }

    /// What waits for a member compares its view with a newer one: that must not cost more with more members.
    #[test]
    fn members_with_the_same_labels_are_known_at_once() {
        const PLAIN: &str = "127.0.0.1:1, 127.0.0.1:2";
        let outside = Environment::known();
        let before = LiveTable::build(snapshot(PLAIN), None, 1, &outside);
        let pool = &before.pools[0];
        assert_eq!(pool.index_of("127.0.0.1:2"), Some(1));
        for (members, expected) in [
            (PLAIN, true),
            ("127.0.0.1:1, { address: 127.0.0.1:2, weight: 3 }", true),
            ("127.0.0.1:2, 127.0.0.1:1", false),
            ("127.0.0.1:1", false),
            ("127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3", false),
        ] {
            let of_members = before.with_members(snapshot(members), &[0], &outside);
            let of_reload = LiveTable::build(snapshot(members), Some(&before), 1, &outside);
            for after in [of_members, of_reload] {
                assert_eq!(pool.has_labels_of(&after.pools[0]), expected, "{members}");
                let found = after.pools[0].index_of("127.0.0.1:2");
                let mut labels = after.pools[0].members.iter().map(|member| &*member.label);
                let index = labels.position(|label| label == "127.0.0.1:2");
                assert_eq!(found.map(|it| it as usize), index, "{members}");
            }
        }
    }
}
