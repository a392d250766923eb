//! A worker's view of a pool: which members may take traffic, whose turn it is, and this worker's
//! idle connections to each.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use weir_config::snapshot::{self, Snapshot};
use weir_core::admin_state::Admission;
use weir_core::balance::{Balancer, View};

use crate::live::{LiveMember, LivePool, PoolLive, configured_state};

/// Members that one request may try: the first one and its retries.
pub const TRIES_MAX: usize = 17;

/// One pool of one worker, under one snapshot.
pub struct LocalPool {
    /// State shared with other workers.
    pub live: Arc<LivePool>,
    /// Parallel to the snapshot's members.
    pub members: Vec<Rc<LocalMember>>,
    settings: Arc<snapshot::Pool>,
    choice: RefCell<Choice>,
}

/// One member of one worker; outlives snapshots as long as they all have it.
pub struct LocalMember {
    /// State shared with other workers.
    pub live: Arc<LiveMember>,
    /// Keys of this worker's idle connections, the latest used last.
    pub idle: RefCell<Vec<u32>>,
    /// It is in no snapshot any more: connections to it are not kept.
    pub retired: Cell<bool>,
}

/// The members that may take any request, as of one epoch.
struct Choice {
    epoch: u32,
    /// When an ejection ends and the choice must be made anew.
    valid_until_ms: u64,
    /// Member indexes.
    eligible: Vec<u32>,
    /// Place of each member in `eligible`; `u32::MAX`: none.
    place: Vec<u32>,
    balancer: Option<Balancer>,
    seed: u64,
}

/// What the balancer sees.
struct Candidates<'a> {
    pool: &'a LocalPool,
    eligible: &'a [u32],
    tried: &'a [u32],
}

impl View for Candidates<'_> {
    #[inline]
    fn occupancy(&self, index: usize) -> u32 {
        self.pool.members[self.eligible[index] as usize].live.occupancy.load(Relaxed)
    }

    #[inline]
    fn admits(&self, index: usize) -> bool {
        let member = self.eligible[index];
        let limit = self.pool.settings().members[member as usize].connections_max;
        !self.tried.contains(&member) && limit.is_none_or(|limit| self.occupancy(index) < limit)
    }
}

impl LocalPool {
    /// The pool at `index` of a snapshot. Members that `previous` has are taken over with their
    /// idle connections.
    pub fn new(
        snapshot: &Snapshot,
        index: usize,
        live: &PoolLive,
        previous: Option<&Self>,
        seed: u64,
    ) -> Self {
        let known: HashMap<*const LiveMember, &Rc<LocalMember>> = previous
            .iter()
            .flat_map(|pool| pool.members.iter())
            .map(|member| (Arc::as_ptr(&member.live), member))
            .collect();
        let members = live.members.iter().map(|member| match known.get(&Arc::as_ptr(member)) {
            Some(&local) => Rc::clone(local),
            None => Rc::new(LocalMember {
                live: Arc::clone(member),
                idle: RefCell::default(),
                retired: Cell::new(false),
            }),
        });
        Self {
            live: Arc::clone(&live.pool),
            members: members.collect(),
            settings: Arc::clone(&snapshot.pools[index]),
            choice: RefCell::new(Choice {
                epoch: 0,
                valid_until_ms: 0,
                eligible: Vec::new(),
                place: Vec::new(),
                balancer: None,
                seed,
            }),
        }
    }

    /// What the file says of it.
    #[inline]
    pub fn settings(&self) -> &snapshot::Pool {
        &self.settings
    }

    /// Picks a member that was not tried yet and occupies it. The limit of a member holds exactly,
    /// whatever other workers do at the same time.
    pub fn occupy(&self, tried: &[u32], now_ms: u64) -> Option<u32> {
        let mut choice = self.choice.borrow_mut();
        if choice.valid_until_ms <= now_ms || choice.epoch != self.live.epoch.load(Relaxed) {
            self.choose(&mut choice, now_ms);
        }
        let Choice { eligible, balancer, .. } = &mut *choice;
        let balancer = balancer.as_mut()?;
        // Another worker can take the last place of a member between look and grasp; each time
        // that happens the member shows as full in the next look.
        for _ in 0..=eligible.len() {
            let candidates = Candidates { pool: self, eligible, tried };
            let place = balancer.pick(&candidates, 0)?;
            let member = eligible[place];
            let occupancy = &self.members[member as usize].live.occupancy;
            let before = occupancy.fetch_add(1, Relaxed);
            let limit = self.settings().members[member as usize].connections_max;
            if limit.is_none_or(|limit| before < limit) {
                balancer.started(place);
                return Some(member);
            }
            occupancy.fetch_sub(1, Relaxed);
        }
        None
    }

    /// Ends what [`Self::occupy`] began.
    pub fn release(&self, member: u32) {
        self.members[member as usize].live.occupancy.fetch_sub(1, Relaxed);
        let mut choice = self.choice.borrow_mut();
        let place = choice.place.get(member as usize).copied().unwrap_or(u32::MAX);
        if place != u32::MAX
            && let Some(balancer) = &mut choice.balancer
        {
            balancer.ended(place as usize);
        }
    }

    /// Finds the members that may take any request now: one that is drained or disabled is never among them.
    fn choose(&self, choice: &mut Choice, now_ms: u64) {
        choice.epoch = self.live.epoch.load(Acquire);
        choice.valid_until_ms = u64::MAX;
        choice.eligible.clear();
        let settings = self.settings();
        let takes_all = |index: usize| {
            let live = &self.members[index].live;
            let state = live.state(configured_state(&settings.members[index]));
            state.admission(live.health()) == Admission::All
        };
        for (index, member) in self.members.iter().enumerate() {
            match member.live.ejected_until_ms(now_ms) {
                Some(until_ms) => choice.valid_until_ms = choice.valid_until_ms.min(until_ms),
                None if takes_all(index) => choice.eligible.push(index as u32),
                None => {}
            }
        }
        if choice.eligible.is_empty() {
            // All that are up and wanted are ejected: a bad member serves better than none.
            let ejected = (0..self.members.len()).filter(|&index| takes_all(index));
            choice.eligible.extend(ejected.map(|index| index as u32));
        }
        choice.place.clear();
        choice.place.resize(self.members.len(), u32::MAX);
        for (place, &member) in (0..).zip(&choice.eligible) {
            choice.place[member as usize] = place;
        }
        let weights: Vec<u16> = choice
            .eligible
            .iter()
            .map(|&member| settings.members[member as usize].weight)
            .collect();
        choice.seed = choice.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        choice.balancer = (!weights.is_empty())
            .then(|| Balancer::new(settings.balance, &weights, choice.seed >> 16));
    }
}

#[cfg(test)]
mod tests {
    use weir_core::admin_state::AdminState;
    use weir_core::monitor::Health;

    use super::*;
    use crate::live::LiveTable;

    /// Workers' views of one pool: of the same live state, as in a running process.
    fn views(pool: &str, workers: usize) -> (LiveTable, Vec<LocalPool>) {
        let text = format!(
            "virtual_servers: {{ v: {{ listen: \"127.0.0.1:8080\", pool: p }} }}\npools: {{ p: {pool} }}\n"
        );
        let loaded = weir_config::parse("test.yaml", &text);
        let config = loaded.config.expect("a good configuration");
        let snapshot = Arc::new(config.snapshot(&weir_config::Resolutions::default()));
        let table = LiveTable::build(Arc::clone(&snapshot), None, workers);
        let local = |seed| LocalPool::new(&snapshot, 0, &table.pools[0], None, seed);
        let views = (0..workers as u64).map(local).collect();
        (table, views)
    }

    #[test]
    fn a_member_is_never_above_its_limit() {
        let (table, views) = views(
            "{ members: [ { address: \"127.0.0.1:1\", connections_max: 3 }, \
             { address: \"127.0.0.1:2\", connections_max: 2 } ] }",
            2,
        );
        let mut taken = Vec::new();
        for turn in 0.. {
            let view = &views[turn % 2];
            let Some(member) = view.occupy(&[], 0) else {
                break;
            };
            taken.push((view, member));
        }
        assert_eq!(taken.len(), 5);
        let occupancy = |member: usize| table.pools[0].members[member].occupancy.load(Relaxed);
        assert_eq!((occupancy(0), occupancy(1)), (3, 2));
        let (view, member) = taken.pop().unwrap();
        view.release(member);
        assert_eq!(views[0].occupy(&[], 0), Some(member));
        assert_eq!(views[0].occupy(&[], 0), None);
    }

    #[test]
    fn what_was_tried_is_not_picked_again() {
        let (_, views) = views("{ members: [ 127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3 ] }", 1);
        for first in 0..3 {
            for second in (0..3).filter(|&second| second != first) {
                let third = views[0].occupy(&[first, second], 0).unwrap();
                assert_eq!(third, 3 - first - second);
            }
        }
        assert_eq!(views[0].occupy(&[0, 1, 2], 0), None);
    }

    #[test]
    fn ejected_members_rest_until_their_time_or_until_nobody_else_is_left() {
        let (table, views) = views(
            "{ members: [ 127.0.0.1:1, 127.0.0.1:2 ], \
             passive: { failures: 1, window: 1s, eject: 10s } }",
            1,
        );
        let settings = views[0].settings().passive.unwrap();
        let picks = |now_ms| -> Vec<u32> {
            let mut picks: Vec<u32> =
                (0..10).map(|_| views[0].occupy(&[], now_ms).unwrap()).collect();
            picks.sort_unstable();
            picks.dedup();
            picks
        };
        assert_eq!(picks(0), [0, 1]);
        assert!(table.pools[0].members[0].mark_failure(1_000, &settings));
        assert_eq!(picks(1_000), [1]);
        assert!(table.pools[0].members[1].mark_failure(2_000, &settings));
        assert_eq!(picks(2_000), [0, 1], "a bad member serves better than none");
        assert_eq!(picks(11_500), [0], "the first has done its time");
        assert_eq!(picks(12_500), [0, 1]);
        table.pools[0].members[0].set_health(Health::Down);
        assert_eq!(picks(12_600), [1]);
    }

    #[test]
    fn drained_and_disabled_members_get_nothing_new_on_any_worker() {
        let (table, views) = views("{ members: [ 127.0.0.1:1, 127.0.0.1:2 ] }", 2);
        let members = &table.pools[0].members;
        let picks = |view: &LocalPool| -> Vec<u32> {
            let mut picks: Vec<u32> = (0..10).filter_map(|_| view.occupy(&[], 0)).collect();
            picks.sort_unstable();
            picks.dedup();
            picks
        };
        for state in [AdminState::Drain, AdminState::Disabled] {
            for view in &views {
                assert_eq!(picks(view), [0, 1]);
            }
            let under_way = members[0].occupancy.load(Relaxed);
            members[0].set_state_override(Some(state));
            for view in &views {
                assert_eq!(picks(view), [1], "{state:?}");
            }
            assert_eq!(members[0].occupancy.load(Relaxed), under_way);
            // What was begun before ends on the member.
            views[0].release(0);
            assert_eq!(members[0].occupancy.load(Relaxed), under_way - 1);
            members[0].set_state_override(None);
        }
    }

    #[test]
    fn no_ejection_brings_back_a_member_that_is_not_wanted() {
        let (table, views) = views(
            "{ members: [ 127.0.0.1:1, 127.0.0.1:2 ], \
             passive: { failures: 1, window: 1s, eject: 10s } }",
            1,
        );
        let members = &table.pools[0].members;
        let settings = views[0].settings().passive.unwrap();
        members[0].set_state_override(Some(AdminState::Drain));
        assert!(members[1].mark_failure(1_000, &settings));
        assert_eq!(
            views[0].occupy(&[], 1_000),
            Some(1),
            "ejected, but the only one that is wanted"
        );
        members[1].set_state_override(Some(AdminState::Disabled));
        assert_eq!(views[0].occupy(&[], 1_000), None);
        members[0].set_health(Health::Down);
        members[0].set_state_override(Some(AdminState::Enabled));
        assert_eq!(views[0].occupy(&[], 1_000), None, "wanted, but down");
    }
}
