//! A worker's view of a pool: the available members, load balancing, and this worker's idle connections.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use weir_config::snapshot::{self, Snapshot};
use weir_core::admin_state::{AdminState, Admission as Admittance};
use weir_core::balance::{Balancer, Method, View};
use weir_core::clock::Clock;
use weir_core::limit::Admission;
use weir_core::monitor::{EjectionBounds, may_eject};
use weir_core::persistence::{self, MemberState};
use weir_core::priority::{MemberPriority, lowest_in_use};
use weir_core::queue::anybody_waits;
use weir_core::retry::RetryBudget;
use weir_core::slow_start::{self, Ramp};

use crate::local::forms::Forms;
use crate::local::member::{LocalMember, MemberViews};
use crate::shared::counters::OwnPoolCounters;
use crate::shared::live::{LiveMember, LivePool, PoolMembers};

/// Maximum number of members that one request may try: the first one and its retries.
pub const TRIES_MAX: usize = 17;

/// A worker's view of one pool with its members. Other members make another view.
///
/// An index of a member belongs to the view that it was taken from; what keeps one over a wait keeps the view.
pub struct LocalPool {
    /// State shared with other workers.
    pub live: Arc<LivePool>,
    /// Counters of this worker.
    pub counters: OwnPoolCounters,
    /// The forms in which heads for this pool and its fallback pools are written.
    pub forms: Forms,
    /// The members in the order of the snapshot.
    pub members: MemberViews,
    settings: Arc<snapshot::Pool>,
    set: Arc<PoolMembers>,
    budget: RefCell<RetryBudget>,
    choice: RefCell<Choice>,
    /// The number of connections that got one of several source addresses.
    source_turns: Cell<usize>,
    /// The view that is in force; the same cell for all views of the pool in a table.
    newest: Newest,
}

/// The view of a pool that is in force; nothing if the table has been replaced.
type Newest = Rc<RefCell<Weak<LocalPool>>>;

/// The preference of a request for a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preference {
    /// Any member, selected by load balancing.
    Any,
    /// The member for this key.
    Key(u64),
    /// This member, which has served the client before; another one only if it is unavailable.
    Member(u32),
}

/// The reason why no member was selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoMember {
    /// No member is up, or all of those were tried.
    Down,
    /// All members that are up have reached their limits.
    Full,
}

/// The result of an attempt to occupy a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// The member is occupied.
    Taken,
    /// The member has reached its limit on concurrent requests.
    Full,
    /// The member has reached its limit on the rate of requests, which [`LocalPool::has_room`] does not show.
    AboveRate,
    /// The ejection of the member has ended, and one trial request is in progress.
    OnTrial,
}

/// The eligible members, computed for one epoch.
struct Choice {
    epoch: u32,
    /// When an ejection or a step of slow start ends, and the choice must be recomputed.
    valid_until_ms: u64,
    /// Indexes of eligible members.
    eligible: Vec<u32>,
    /// The position of each member in `eligible`; `u32::MAX`: not eligible.
    place: Vec<u32>,
    balancer: Option<Balancer>,
    /// The balancer for requests with a key, if requests may have one.
    by_key: Option<Balancer>,
    seed: u64,
}

impl Choice {
    /// Before the first look.
    fn new(seed: u64) -> Self {
        Self {
            epoch: 0,
            valid_until_ms: 0,
            eligible: Vec::new(),
            place: Vec::new(),
            balancer: None,
            by_key: None,
            seed,
        }
    }
}

/// The members in the form for a balancer.
struct Candidates<'a> {
    pool: &'a LocalPool,
    eligible: &'a [u32],
    tried: &'a [u32],
    now: Clock,
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

    fn cost(&self, index: usize) -> u64 {
        let live = &self.pool.members[self.eligible[index] as usize].live;
        live.response_time().cost(self.now.now_ms(), live.occupancy.load(Relaxed))
    }
}

/// Whether two views of a pool have the same labels of members in the same order, so that indexes mean the same.
pub fn have_same_labels(one: &LocalPool, other: &LocalPool) -> bool {
    one.set.has_labels_of(&other.set)
}

impl LocalPool {
    /// Whether a request must queue behind others, on any worker.
    pub fn must_queue(&self) -> bool {
        self.settings().queue.is_some() && anybody_waits(self.live.waiting_words())
    }

    /// The pool at `index` of a snapshot. Members of `previous` are kept, with their idle connections.
    pub fn new(
        snapshot: &Snapshot,
        index: usize,
        set: &Arc<PoolMembers>,
        previous: Option<&Self>,
        worker: usize,
        seed: u64,
    ) -> Self {
        let before = previous.map_or(&[][..], |pool| &pool.members);
        Self {
            forms: Forms::of(snapshot, index),
            live: Arc::clone(&set.pool),
            counters: set.own_counters(worker),
            members: MemberViews::of(&set.members, before, worker),
            settings: Arc::clone(&set.settings),
            set: Arc::clone(set),
            budget: RefCell::default(),
            choice: RefCell::new(Choice::new(seed)),
            source_turns: Cell::default(),
            newest: Rc::default(),
        }
    }

    /// This pool with other members. It continues where this view has been; this view stays for what is under way.
    pub fn with_members(&self, set: &Arc<PoolMembers>, worker: usize) -> Self {
        // What this view has computed is not needed any more, and may be large.
        let seed = self.choice.replace(Choice::new(0)).seed;
        let members = match self.set.members.are(&set.members) {
            true => self.members.clone(),
            false => MemberViews::of(&set.members, &self.members, worker),
        };
        Self {
            forms: self.forms,
            live: Arc::clone(&self.live),
            counters: set.own_counters(worker),
            members,
            settings: Arc::clone(&set.settings),
            set: Arc::clone(set),
            budget: self.budget.clone(),
            choice: RefCell::new(Choice::new(seed)),
            source_turns: self.source_turns.clone(),
            newest: Rc::clone(&self.newest),
        }
    }

    /// This view is in force now.
    pub(super) fn put_in_force(self: &Rc<Self>) {
        self.newest.replace(Rc::downgrade(self));
    }

    /// The view of the same table that is in force instead of this one; `None`: this one is.
    pub fn newer(&self) -> Option<Rc<Self>> {
        let newest = self.newest.borrow();
        if std::ptr::eq(newest.as_ptr(), self) { None } else { newest.upgrade() }
    }

    /// Counts a connection that gets one of several source addresses. Returns the number of earlier ones.
    pub fn next_source_turn(&self) -> usize {
        let turn = self.source_turns.get();
        self.source_turns.set(turn.wrapping_add(1));
        turn
    }

    /// The member's settings.
    #[inline]
    pub fn settings(&self) -> &snapshot::Pool {
        &self.settings
    }

    /// The index of the member with this label.
    pub fn member(&self, label: &str) -> Option<u32> {
        self.set.index_of(label)
    }

    /// Whether no member could take a request, now or after waiting.
    pub fn is_down(&self, now: Clock) -> bool {
        self.look(now).eligible.is_empty()
    }

    /// Whether further requests must go to another pool: `connections` requests are open; or, without a number, all
    /// members have reached their limits.
    pub fn is_full(&self, connections: Option<u32>, now: Clock) -> bool {
        let Some(connections) = connections else {
            let choice = self.look(now);
            return !choice.eligible.iter().any(|&member| self.has_room(member));
        };
        let under_way = |member: &Rc<LocalMember>| u64::from(member.live.occupancy.load(Relaxed));
        self.members.iter().map(under_way).sum::<u64>() >= u64::from(connections)
    }

    /// Whether a member has fewer open requests than its limit.
    fn has_room(&self, member: u32) -> bool {
        let limit = self.settings.members[member as usize].connections_max;
        let under_way = &self.members[member as usize].live.occupancy;
        limit.is_none_or(|limit| under_way.load(Relaxed) < limit)
    }

    /// Whether load balancing uses response times, so that they must be recorded.
    pub fn is_timed(&self) -> bool {
        matches!(self.settings.balance, snapshot::Balance::Method(Method::LeastResponseTime))
    }

    /// Bounds for an ejection after a failure of a member: enough of the other members must remain.
    pub fn ejection_bounds(&self, member: u32, now_ms: u64) -> EjectionBounds {
        let Some(settings) = &self.settings.passive else {
            return EjectionBounds { eject_max_ms: 0, allowed: false };
        };
        let eject_max_ms = settings.eject_max_ms;
        // The other members are counted only if an ejection is due.
        if !self.members[member as usize].live.would_eject(now_ms, &settings.counting) {
            return EjectionBounds { eject_max_ms, allowed: false };
        }
        let others = (0..).zip(&self.members).filter(|(index, _)| *index != member);
        let is_ejected = |live: &LiveMember| live.ejected_until_ms(now_ms).is_some();
        let ejected = others.filter(|(_, local)| is_ejected(&local.live)).count();
        let share = settings.ejected_share_max_percent;
        EjectionBounds { eject_max_ms, allowed: may_eject(ejected, self.members.len(), share) }
    }

    /// Passive health check: records a failure. If the member was ejected, returns the end of the ejection.
    pub fn mark_failure(&self, member: u32, now_ms: u64) -> Option<u64> {
        let settings = self.settings().passive.as_ref()?;
        let bounds = self.ejection_bounds(member, now_ms);
        let local = &self.members[member as usize];
        let until_ms = local.live.mark_failure(now_ms, &settings.counting, bounds)?;
        local.counters.ejections.add(1);
        Some(until_ms)
    }

    /// Counts a request for the retry budget.
    pub fn note_request(&self, now_ms: u64) {
        if self.settings.retries.budget.is_some() {
            self.budget.borrow_mut().request(now_ms);
        }
    }

    /// Whether the retry budget permits a retry; counts it if so.
    pub fn may_retry(&self, now_ms: u64) -> bool {
        let Some(settings) = self.settings.retries.budget else {
            return true;
        };
        self.budget.borrow_mut().try_retry(now_ms, settings)
    }

    /// Whether [`Self::may_retry`] would permit a retry. Counts nothing.
    pub fn has_retry(&self, now_ms: u64) -> bool {
        let budget = self.settings.retries.budget;
        budget.is_none_or(|settings| self.budget.borrow_mut().allows(now_ms, settings))
    }

    /// Selects and occupies a member that was not tried yet. The limit of a member is exact, even with concurrent
    /// selections by other workers.
    pub fn occupy(
        &self,
        tried: &[u32],
        now: Clock,
        preference: Preference,
    ) -> Result<u32, NoMember> {
        let mut nobody = NoMember::Down;
        if let Preference::Member(member) = preference
            && !tried.contains(&member)
            && self.keeps(member, now)
        {
            if self.grasp(member, now) == Claim::Taken {
                let choice = &mut *self.choice.borrow_mut();
                let place = choice.place.get(member as usize).copied().unwrap_or(u32::MAX);
                if let (Some(balancer), true) = (&mut choice.balancer, place != u32::MAX) {
                    balancer.started(place as usize);
                }
                return Ok(member);
            }
            // The member is available, but has reached its limit now.
            nobody = NoMember::Full;
        }
        let choice = &mut *self.look(now);
        let Choice { eligible, balancer, by_key, .. } = choice;
        let (key, balancer) = match preference {
            Preference::Key(key) if by_key.is_some() => (key, by_key),
            Preference::Key(_) | Preference::Any | Preference::Member(_) => (0, balancer),
        };
        let Some(balancer) = balancer else {
            return Err(nobody);
        };
        // The first selected member nearly always has a place.
        let mut avoided = None;
        let mut on_trial = None;
        // Another worker may take the last place of a member between selection and occupation. Each time, the member
        // counts as full in the next selection.
        for _ in 0..=eligible.len() {
            let not = avoided.as_ref().map_or(tried, AvoidedMembers::members);
            let candidates = Candidates { pool: self, eligible, tried: not, now };
            let Some(place) = balancer.pick(&candidates, key) else { break };
            let member = eligible[place];
            match self.grasp(member, now) {
                Claim::Taken => {
                    balancer.started(place);
                    return Ok(member);
                }
                // The member counts as full in the next selection.
                Claim::Full => {}
                Claim::AboveRate if AvoidedMembers::add(&mut avoided, tried, member) => {}
                Claim::OnTrial => {
                    on_trial = on_trial.or(Some((place, member)));
                    if !AvoidedMembers::add(&mut avoided, tried, member) {
                        break;
                    }
                }
                Claim::AboveRate => break,
            }
        }
        // A member on trial is better than none.
        if let Some((place, member)) = on_trial
            && self.take_place(member, now) == Claim::Taken
        {
            balancer.started(place);
            return Ok(member);
        }
        let is_left = eligible.iter().any(|member| !tried.contains(member));
        Err(if is_left { NoMember::Full } else { nobody })
    }

    /// Occupies a client's previous member, if that member serves only its persistent clients.
    pub fn occupy_drained(&self, preference: Preference, now: Clock) -> Option<u32> {
        let Preference::Member(member) = preference else { return None };
        let takes_others =
            self.look(now).place.get(member as usize).is_some_and(|&place| place != u32::MAX);
        let is_occupied =
            !takes_others && self.keeps(member, now) && self.grasp(member, now) == Claim::Taken;
        is_occupied.then_some(member)
    }

    /// Whether a member seems to have a place; it may be taken before it can be occupied.
    pub fn outlook(&self, now: Clock) -> Result<(), NoMember> {
        let choice = self.look(now);
        if choice.eligible.is_empty() {
            return Err(NoMember::Down);
        }
        let mut members = choice.eligible.iter();
        members.any(|&member| self.has_place(member, now)).then_some(()).ok_or(NoMember::Full)
    }

    /// The eligible members, including those at their limits.
    pub fn eligible(&self, now: Clock) -> Vec<u32> {
        self.look(now).eligible.clone()
    }

    /// Occupies a member, unless it is full or on trial by another request.
    fn grasp(&self, member: u32, now: Clock) -> Claim {
        let live = &self.members[member as usize].live;
        let Some(begins_trial) = live.enter_trial(now.now_ms()) else { return Claim::OnTrial };
        let grasp = self.take_place(member, now);
        if grasp != Claim::Taken && begins_trial {
            live.leave_trial();
        }
        grasp
    }

    /// Occupies a member, unless it is full.
    fn take_place(&self, member: u32, now: Clock) -> Claim {
        let settings = &self.settings.members[member as usize];
        let live = &self.members[member as usize].live;
        let before = live.occupancy.fetch_add(1, SeqCst);
        let has_room = settings.connections_max.is_none_or(|limit| before < limit);
        let is_in_time =
            |rate| matches!(live.rate.admit(rate, now.now_us()), Admission::Pass { .. });
        if has_room && settings.rate.as_ref().is_none_or(is_in_time) {
            return Claim::Taken;
        }
        live.occupancy.fetch_sub(1, SeqCst);
        if has_room { Claim::AboveRate } else { Claim::Full }
    }

    /// Whether a client of this member stays with it, and the member has a place for it now.
    pub fn has_place(&self, member: u32, now: Clock) -> bool {
        self.keeps(member, now) && self.has_room(member)
    }

    /// Whether a client of this member stays with it.
    fn keeps(&self, member: u32, now: Clock) -> bool {
        let Some(local) = self.members.get(member as usize) else {
            return false;
        };
        let state = match local.live.state(self.settings.members[member as usize].state) {
            AdminState::Disabled => MemberState::Disabled,
            _ if local.live.ejected_until_ms(now.now_ms()).is_some() => MemberState::Down,
            state => match state.admission(local.live.health()) {
                Admittance::All => MemberState::Up,
                Admittance::Persistent => MemberState::Draining,
                Admittance::Nothing => MemberState::Down,
            },
        };
        persistence::stays(state)
    }

    /// Undoes [`Self::occupy`].
    pub fn release(&self, member: u32) {
        self.members[member as usize].live.occupancy.fetch_sub(1, SeqCst);
        let mut choice = self.choice.borrow_mut();
        let place = choice.place.get(member as usize).copied().unwrap_or(u32::MAX);
        if place != u32::MAX
            && let Some(balancer) = &mut choice.balancer
        {
            balancer.ended(place as usize);
        }
    }

    /// The current choice of eligible members.
    fn look(&self, now: Clock) -> RefMut<'_, Choice> {
        let mut choice = self.choice.borrow_mut();
        let now_ms = now.now_ms();
        if choice.valid_until_ms <= now_ms || choice.epoch != self.live.epoch.load(Relaxed) {
            self.choose(&mut choice, now_ms);
        }
        choice
    }

    /// Determines the eligible members: up, enabled, with a weight above 0, and in an active priority group.
    fn choose(&self, choice: &mut Choice, now_ms: u64) {
        choice.epoch = self.live.epoch.load(Acquire);
        choice.valid_until_ms = u64::MAX;
        self.choose_eligible(choice, now_ms);
        choice.place.clear();
        choice.place.resize(self.members.len(), u32::MAX);
        for (place, &member) in (0..).zip(&choice.eligible) {
            choice.place[member as usize] = place;
        }
        choice.seed = choice.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if choice.eligible.is_empty() {
            (choice.balancer, choice.by_key) = (None, None);
            return;
        }
        let by_key = |table: &Arc<_>| Balancer::by_key(Arc::clone(table), &choice.eligible);
        choice.by_key = self.set.maglev.as_ref().map(by_key);
        let method = match self.settings.balance {
            snapshot::Balance::Method(method) => method,
            // For requests without a key.
            snapshot::Balance::Hash(_) | snapshot::Balance::SourceAddress => Method::RoundRobin,
        };
        let weights = self.weights(choice, now_ms);
        choice.balancer = Some(Balancer::new(method, &weights, choice.seed >> 16));
    }

    fn choose_eligible(&self, choice: &mut Choice, now_ms: u64) {
        let settings = self.settings();
        let takes_all = |index: usize| {
            let live = &self.members[index].live;
            let member = &settings.members[index];
            member.weight > 0
                && live.state(member.state).admission(live.health()) == Admittance::All
        };
        let mut standings: Vec<MemberPriority> = Vec::with_capacity(self.members.len());
        for (index, member) in self.members.iter().enumerate() {
            let ejected_until_ms = member.live.ejected_until_ms(now_ms);
            if let Some(until_ms) = ejected_until_ms {
                choice.valid_until_ms = choice.valid_until_ms.min(until_ms);
            }
            let active = ejected_until_ms.is_none() && takes_all(index);
            standings.push(MemberPriority { priority: settings.members[index].priority, active });
        }
        if !standings.iter().any(|standing| standing.active) {
            // If all enabled members that are up are ejected, they are used anyway: a bad member is better than none.
            for (index, standing) in standings.iter_mut().enumerate() {
                standing.active = takes_all(index);
            }
        }
        let lowest = lowest_in_use(&standings, settings.active_members_min.into());
        let is_used = |priority| lowest.is_some_and(|lowest| priority >= lowest);
        choice.eligible.clear();
        choice.eligible.extend((0..).zip(&standings).filter_map(|(index, standing)| {
            (standing.active && is_used(standing.priority)).then_some(index)
        }));
    }

    /// The weights of the eligible members, reduced by slow start.
    fn weights(&self, choice: &mut Choice, now_ms: u64) -> Vec<u16> {
        let settings = self.settings();
        let total_ms = settings.slow_start_ms.unwrap_or(0);
        let mut next_ms = choice.valid_until_ms;
        let shares: Vec<(u16, u16)> = choice
            .eligible
            .iter()
            .map(|&member| {
                let up_since_ms = self.members[member as usize].live.up_since_ms();
                let ramp = Ramp::at(now_ms.saturating_sub(up_since_ms), total_ms);
                if let Some(at_ms) = ramp.next_ms {
                    next_ms = next_ms.min(up_since_ms + at_ms);
                }
                (settings.members[member as usize].weight, ramp.percent)
            })
            .collect();
        choice.valid_until_ms = next_ms;
        slow_start::weights(shares.iter().copied())
    }
}

/// Members that must not be selected: tried ones, and those found without a place.
struct AvoidedMembers {
    members: [u32; TRIES_MAX],
    count: usize,
}

impl AvoidedMembers {
    fn new(tried: &[u32]) -> Self {
        let count = tried.len().min(TRIES_MAX);
        let mut members = [0; TRIES_MAX];
        members[..count].copy_from_slice(&tried[..count]);
        Self { members, count }
    }

    fn members(&self) -> &[u32] {
        &self.members[..self.count]
    }

    /// Adds a member to those that were `tried`. Returns false if there is no room.
    #[cold]
    fn add(noted: &mut Option<Self>, tried: &[u32], member: u32) -> bool {
        let avoided = noted.get_or_insert_with(|| Self::new(tried));
        let has_room = avoided.count < TRIES_MAX;
        if has_room {
            avoided.members[avoided.count] = member;
            avoided.count += 1;
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use weir_core::admin_state::AdminState;
    use weir_core::monitor::Health;

    use super::*;
    use crate::environment::Environment;
    use crate::shared::live::LiveTable;

    fn at(now_ms: u64) -> Clock {
        Clock::at_us(now_ms * 1_000)
    }

    /// Several workers' views of one pool, with the live state of a running process.
    fn views(pool: &str, workers: usize) -> (LiveTable, Vec<LocalPool>) {
        let text = format!(
            "virtual_servers: {{ v: {{ listen: \"127.0.0.1:8080\", pool: p }} }}\npools: {{ p: {pool} }}\n"
        );
        let loaded = weir_config::parse("test.yaml", &text);
        let config = loaded.config.expect("a good configuration");
        let snapshot = Arc::new(config.snapshot(&weir_config::Resolutions::default()));
        let table = LiveTable::build(Arc::clone(&snapshot), None, workers, &Environment::known());
        let local = |worker: usize| {
            LocalPool::new(&snapshot, 0, &table.pools[0], None, worker, worker as u64)
        };
        let views = (0..workers).map(local).collect();
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
            let Ok(member) = view.occupy(&[], at(0), Preference::Any) else {
                break;
            };
            taken.push((view, member));
        }
        assert_eq!(taken.len(), 5);
        let occupancy = |member: usize| table.pools[0].members[member].occupancy.load(Relaxed);
        assert_eq!((occupancy(0), occupancy(1)), (3, 2));
        let (view, member) = taken.pop().unwrap();
        view.release(member);
        assert_eq!(views[0].occupy(&[], at(0), Preference::Any), Ok(member));
        assert_eq!(views[0].occupy(&[], at(0), Preference::Any), Err(NoMember::Full));
    }

    /// A member of weight 0 gets no new clients, neither by turns nor by key, and keeps its clients.
    #[test]
    fn a_member_without_weight_keeps_its_clients() {
        for balance in ["round_robin", "least_connections", "random_two", "source_address"] {
            let (table, views) = views(
                &format!(
                    "{{ balance: {balance}, members: [ {{ address: \"127.0.0.1:1\", weight: 0 }}, \
                     \"127.0.0.1:2\" ] }}"
                ),
                1,
            );
            let view = &views[0];
            for number in 0..100_u64 {
                let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                for preference in [Preference::Any, Preference::Key(key)] {
                    assert_eq!(view.occupy(&[], at(0), preference), Ok(1), "{balance}");
                    view.release(1);
                }
            }
            let kept = Preference::Member(0);
            assert_eq!(view.occupy(&[], at(0), kept), Ok(0));
            assert_eq!(view.occupy_drained(kept, at(0)), Some(0));
            // It does not replace other members.
            table.pools[0].members[1].set_health(Health::Down, 0);
            assert!(view.is_down(at(0)));
            assert_eq!(view.occupy(&[], at(0), Preference::Any), Err(NoMember::Down));
        }
    }

    #[test]
    fn what_was_tried_is_not_picked_again() {
        let (_, views) = views("{ members: [ 127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3 ] }", 1);
        for first in 0..3 {
            for second in (0..3).filter(|&second| second != first) {
                let third = views[0].occupy(&[first, second], at(0), Preference::Any).unwrap();
                assert_eq!(third, 3 - first - second);
            }
        }
        assert_eq!(views[0].occupy(&[0, 1, 2], at(0), Preference::Any), Err(NoMember::Down));
    }

    #[test]
    fn ejected_members_rest_until_their_time_or_until_nobody_else_is_left() {
        let (table, views) = views(
            "{ members: [ 127.0.0.1:1, 127.0.0.1:2 ], \
             passive: { failures: 1, window: 1s, eject: 10s } }",
            1,
        );
        let settings = views[0].settings().passive.unwrap().counting;
        let bounds = EjectionBounds { eject_max_ms: 10_000, allowed: true };
        let picks = |now_ms| -> Vec<u32> {
            let mut picks: Vec<u32> = (0..10)
                .map(|_| views[0].occupy(&[], at(now_ms), Preference::Any).unwrap())
                .collect();
            picks.sort_unstable();
            picks.dedup();
            picks
        };
        assert_eq!(picks(0), [0, 1]);
        assert!(table.pools[0].members[0].mark_failure(1_000, &settings, bounds).is_some());
        assert_eq!(picks(1_000), [1]);
        assert!(table.pools[0].members[1].mark_failure(2_000, &settings, bounds).is_some());
        assert_eq!(picks(2_000), [0, 1], "a bad member serves better than none");
        assert_eq!(picks(11_500), [0], "the first has done its time");
        assert_eq!(picks(12_500), [0, 1]);
        table.pools[0].members[0].set_health(Health::Down, 1_000_000);
        assert_eq!(picks(12_600), [1]);
    }

    #[test]
    fn one_request_tries_a_member_that_comes_back() {
        let (table, views) = views(
            "{ members: [ 127.0.0.1:1, 127.0.0.1:2 ], \
             passive: { failures: 1, window: 1s, eject: 10s } }",
            2,
        );
        let settings = views[0].settings().passive.unwrap().counting;
        let bounds = EjectionBounds { eject_max_ms: 10_000, allowed: true };
        let members = &table.pools[0].members;
        let picks = |now_ms| -> Vec<u32> {
            let pick = |view: &LocalPool| view.occupy(&[], at(now_ms), Preference::Any).unwrap();
            (0..6).map(|turn| pick(&views[turn % 2])).collect()
        };
        assert!(members[0].mark_failure(1_000, &settings, bounds).is_some());
        let tries = |picks: &[u32]| picks.iter().filter(|member| **member == 0).count();
        assert_eq!(tries(&picks(11_500)), 1);
        assert_eq!(tries(&picks(12_000)), 0, "it has not been answered yet");
        assert_eq!(views[0].occupy(&[1], at(12_000), Preference::Any), Ok(0), "better than none");
        assert_eq!(views[0].occupy(&[], at(12_000), Preference::Member(0)), Ok(1));
        members[0].mark_success(12_500);
        assert!(tries(&picks(12_500)) >= 2, "it has its share again");
        // A trial without an answer ends after a time: then the next request may be a trial.
        assert!(members[0].mark_failure(13_000, &settings, bounds).is_some());
        assert_eq!(tries(&picks(23_000)), 1);
        assert_eq!(tries(&picks(28_000)), 1);
    }

    #[test]
    fn drained_and_disabled_members_get_nothing_new_on_any_worker() {
        let (table, views) = views("{ members: [ 127.0.0.1:1, 127.0.0.1:2 ] }", 2);
        let members = &table.pools[0].members;
        let picks = |view: &LocalPool| -> Vec<u32> {
            let mut picks: Vec<u32> =
                (0..10).filter_map(|_| view.occupy(&[], at(0), Preference::Any).ok()).collect();
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
            // Requests that began before end on the same member.
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
        let settings = views[0].settings().passive.unwrap().counting;
        let bounds = EjectionBounds { eject_max_ms: 10_000, allowed: true };
        members[0].set_state_override(Some(AdminState::Drain));
        assert!(members[1].mark_failure(1_000, &settings, bounds).is_some());
        assert_eq!(
            views[0].occupy(&[], at(1_000), Preference::Any),
            Ok(1),
            "ejected, but the only one that is wanted"
        );
        members[1].set_state_override(Some(AdminState::Disabled));
        assert_eq!(views[0].occupy(&[], at(1_000), Preference::Any), Err(NoMember::Down));
        members[0].set_health(Health::Down, 1_000_000);
        members[0].set_state_override(Some(AdminState::Enabled));
        let picked = views[0].occupy(&[], at(1_000), Preference::Any);
        assert_eq!(picked, Err(NoMember::Down), "wanted, but down");
    }
}
