//! The pools whose first probes a new configuration waits for.
//!
//! | the pool has | weir waits |
//! |---|---|
//! | no usable member, and no address or a missing or failed first probe | up to the limit; failed probes are repeated |
//! | a usable member, and a first probe without a result | for a further [`BESIDE_WAIT_MAX`] |
//! | otherwise | not at all |
//!
//! A member is usable if its monitors in the new configuration report it as up, and its administrative state allows
//! requests.
//!
//! | event | cost in examined members of the pool |
//! |---|---|
//! | a pass while no member is usable; the last missing result | all members |
//! | another result | constant |

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use weir_config::snapshot::{Member, Pool};
use weir_core::admin_state::AdminState;
use weir_core::monitor::ProbeOutcome;

use super::lock;
use super::verdicts::MemberVerdicts;

/// The interval between repeated probes of failed members while their pool is awaited.
pub(super) const REPEAT_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum wait for further results once a member is usable. Usually it is enough for all members, so that the first one
/// does not get the whole load.
pub(super) const BESIDE_WAIT_MAX: Duration = Duration::from_millis(400);

/// The awaited pools, by name. A pool may stay in the map after its wait has ended.
#[derive(Debug, Default)]
pub(super) struct FirstProbes {
    pools: Mutex<HashMap<Arc<str>, WaitedPool>>,
    changed: Notify,
}

/// A pool that may be awaited.
#[derive(Debug)]
pub(super) struct WaitedPool {
    members: Vec<WaitedMember>,
    /// Monitors without a result.
    missing: HashSet<u64>,
    /// The end of the wait.
    until: Instant,
    /// An earlier end of the wait, set while the pool has a usable member.
    beside_until: Option<Instant>,
}

/// A member of an awaited pool.
#[derive(Debug)]
struct WaitedMember {
    verdicts: Arc<Mutex<MemberVerdicts>>,
    /// The member's monitors in the new configuration.
    monitors: Vec<u64>,
    /// The number of monitors that must pass.
    up_min: usize,
    state: AdminState,
}

impl WaitedPool {
    /// A pool that has no members yet.
    pub(super) fn new(until: Instant) -> Self {
        Self { members: Vec::new(), missing: HashSet::new(), until, beside_until: None }
    }

    /// Adds a member with the monitors that it has in the new configuration.
    pub(super) fn add(
        &mut self,
        verdicts: &Arc<Mutex<MemberVerdicts>>,
        monitors: Vec<u64>,
        pool: &Pool,
        member: &Member,
    ) {
        // Results of a disabled member are not awaited.
        if member.state != AdminState::Disabled {
            self.missing.extend(lock(verdicts).without_result(&monitors));
        }
        self.members.push(WaitedMember {
            verdicts: Arc::clone(verdicts),
            monitors,
            up_min: pool.monitors_min.into(),
            state: match member.state {
                // Without weight, a member gets no new clients, as if it were drained.
                AdminState::Enabled if member.weight == 0 => AdminState::Drain,
                state => state,
            },
        });
    }

    /// Whether a result is awaited. Also records whether the pool has a usable member.
    fn look(&mut self, now: Instant) -> bool {
        let is_usable = self.members.iter().any(|member| {
            lock(&member.verdicts).is_usable(&member.monitors, member.up_min, member.state)
        });
        let beside_until = self.beside_until.unwrap_or(now + BESIDE_WAIT_MAX);
        self.beside_until = is_usable.then_some(beside_until);
        let may_become_usable = self.members.is_empty() || self.has_failed();
        !self.missing.is_empty() || !is_usable && may_become_usable
    }

    /// Whether a first probe of an enabled member has failed.
    fn has_failed(&self) -> bool {
        self.members.iter().any(|member| {
            let verdicts = lock(&member.verdicts);
            verdicts.state(member.state) == AdminState::Enabled
                && verdicts.have_first_failed(&member.monitors)
        })
    }

    /// The end of the wait for the pool.
    fn end(&self) -> Instant {
        self.beside_until.map_or(self.until, |beside_until| beside_until.min(self.until))
    }

    /// Sets in the members' verdicts whether their first probes are awaited.
    fn tell(&self, is_awaited: bool) {
        for member in &self.members {
            let is_awaited = is_awaited && member.state != AdminState::Disabled;
            let monitors = if is_awaited { &member.monitors[..] } else { &[] };
            lock(&member.verdicts).wait_for(monitors);
        }
    }
}

impl FirstProbes {
    /// Waits for these pools if necessary, and for no others.
    pub(super) fn wait_for(&self, wanted: HashMap<Arc<str>, WaitedPool>) {
        let now = Instant::now();
        let mut pools = lock(&self.pools);
        let before = std::mem::replace(&mut *pools, wanted);
        pools.retain(|name, pool| {
            pool.beside_until = before.get(name).and_then(|before| before.beside_until);
            pool.look(now)
        });
        for (_, pool) in before.iter().filter(|(name, _)| !pools.contains_key(*name)) {
            pool.tell(false);
        }
        for pool in pools.values() {
            pool.tell(true);
        }
        self.changed.notify_one();
    }

    /// Waits for these pools if necessary, in place of what is awaited of them. The wait for others is not touched.
    pub(super) fn wait_also_for(&self, wanted: HashMap<Arc<str>, WaitedPool>) {
        let now = Instant::now();
        let mut pools = lock(&self.pools);
        for (name, mut pool) in wanted {
            let before = pools.remove(&name);
            pool.beside_until = before.as_ref().and_then(|before| before.beside_until);
            if pool.look(now) {
                pool.tell(true);
                pools.insert(name, pool);
            } else if let Some(before) = before {
                before.tell(false);
            }
        }
        self.changed.notify_one();
    }

    /// Stops waiting for these pools.
    pub(super) fn stop_waiting_for<'n>(&self, names: impl Iterator<Item = &'n Arc<str>>) {
        let mut pools = lock(&self.pools);
        names.filter_map(|name| pools.remove(name)).for_each(|pool| pool.tell(false));
        self.changed.notify_one();
    }

    /// Stops waiting for all other pools.
    pub(super) fn wait_for_these(&self, names: &HashSet<Arc<str>>) {
        let mut pools = lock(&self.pools);
        pools.extract_if(|name, _| !names.contains(name)).for_each(|(_, pool)| pool.tell(false));
        self.changed.notify_one();
    }

    /// Handles the result of a probe, which is already recorded in the member's verdicts.
    pub(super) fn note(&self, pool: &Arc<str>, monitor: u64, outcome: ProbeOutcome) {
        let mut pools = lock(&self.pools);
        let Some(waited) = pools.get_mut(pool) else { return };
        let is_last = waited.missing.remove(&monitor) && waited.missing.is_empty();
        let is_pass = outcome != ProbeOutcome::Failed;
        let may_be_first_usable = is_pass && waited.beside_until.is_none();
        if !is_last && !may_be_first_usable {
            return;
        }
        if !waited.look(Instant::now()) {
            waited.tell(false);
            pools.remove(pool);
        }
        self.changed.notify_one();
    }

    /// Whether a pool is in the map.
    pub(super) fn may_wait_for(&self, pool: &Arc<str>) -> bool {
        lock(&self.pools).contains_key(pool)
    }

    /// The awaited pools, by name.
    pub(super) fn awaited(&self) -> HashSet<Arc<str>> {
        let now = Instant::now();
        let pools = lock(&self.pools);
        let awaited = pools.iter().filter(|(_, pool)| pool.end() > now);
        awaited.map(|(name, _)| Arc::clone(name)).collect()
    }

    /// The latest end of the waits for all pools.
    pub(super) fn end(&self) -> Option<Instant> {
        lock(&self.pools).values().map(WaitedPool::end).max()
    }

    /// Waits until fewer pools than this are awaited. Only one task at a time may wait.
    pub(super) async fn fewer_than(&self, count: usize) {
        while let Some(end) = self.first_end_of(count) {
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep_until(end) => {}
            }
        }
    }

    /// The earliest end of a wait; `None`: fewer pools than this are awaited.
    fn first_end_of(&self, count: usize) -> Option<Instant> {
        let now = Instant::now();
        let mut pools = lock(&self.pools);
        for pool in pools.values_mut() {
            if pool.beside_until.is_some_and(|until| until <= now) {
                // A usable member may have failed in the meantime.
                pool.look(now);
            }
        }
        let ends = || pools.values().map(WaitedPool::end).filter(|end| *end > now);
        if ends().count() < count { None } else { ends().min() }
    }
}
