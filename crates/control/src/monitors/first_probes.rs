//! Which pools are waited for before something is put in force.
//!
//! | the first probe of a member | its pool is waited for |
//! |---|---|
//! | has no result | yes |
//! | failed, and no member of the pool is usable | yes; the probe is repeated every [`REPEAT_INTERVAL`] |
//! | failed, and another member is usable | no |
//! | passed, or the member does not matter | no |
//!
//! A member is usable when the monitors that it will have say up, and the operator wants it to take requests.
//!
//! | what happens | cost, in members of the pool |
//! |---|---|
//! | a first result, a pass | constant; all of them when no first result is missing any more |
//! | a repeated probe that fails | constant |

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use weir_config::snapshot::{Member, Pool};
use weir_core::admin_state::AdminState;
use weir_core::monitor::Outcome;

use super::lock;
use super::verdicts::Verdicts;

/// How soon a probe is repeated that failed, while its pool is waited for.
pub(super) const REPEAT_INTERVAL: Duration = Duration::from_millis(250);

/// The pools that are waited for, by name.
#[derive(Debug, Default)]
pub(super) struct FirstProbes {
    pools: Mutex<HashMap<Arc<str>, WaitedPool>>,
    none_left: Notify,
}

/// A pool that may be waited for.
#[derive(Debug, Default)]
pub(super) struct WaitedPool {
    members: Vec<WaitedMember>,
    /// Monitors without a result.
    missing: HashSet<u64>,
}

/// A member of it.
#[derive(Debug)]
struct WaitedMember {
    verdicts: Arc<Mutex<Verdicts>>,
    /// The monitors that it will have.
    monitors: Vec<u64>,
    /// How many of them must say that it is up.
    up_min: usize,
    state: AdminState,
}

impl WaitedPool {
    /// Adds a member that will have these monitors.
    pub(super) fn add(
        &mut self,
        verdicts: &Arc<Mutex<Verdicts>>,
        monitors: Vec<u64>,
        pool: &Pool,
        member: &Member,
    ) {
        // One that gets nothing anyway is not worth a wait.
        if member.state != AdminState::Disabled {
            self.missing.extend(lock(verdicts).without_result(&monitors));
        }
        self.members.push(WaitedMember {
            verdicts: Arc::clone(verdicts),
            monitors,
            up_min: pool.monitors_min.into(),
            state: member.state,
        });
    }

    fn is_awaited(&self) -> bool {
        if !self.missing.is_empty() {
            return true;
        }
        let mut has_failed = false;
        for member in &self.members {
            let verdicts = lock(&member.verdicts);
            if verdicts.is_usable(&member.monitors, member.up_min, member.state) {
                return false;
            }
            has_failed |= verdicts.state(member.state) == AdminState::Enabled
                && verdicts.have_first_failed(&member.monitors);
        }
        has_failed
    }

    /// Lets its members know whether they are waited for.
    fn tell(&self, is_awaited: bool) {
        for member in &self.members {
            let is_awaited = is_awaited && member.state != AdminState::Disabled;
            let monitors = if is_awaited { &member.monitors[..] } else { &[] };
            lock(&member.verdicts).wait_for(monitors);
        }
    }
}

impl FirstProbes {
    /// Waits for those of these pools that have to be waited for, and for no others.
    pub(super) fn wait_for(&self, wanted: HashMap<Arc<str>, WaitedPool>) {
        let mut pools = lock(&self.pools);
        let before = std::mem::replace(&mut *pools, wanted);
        pools.retain(|_, pool| pool.is_awaited());
        for (_, pool) in before.iter().filter(|(name, _)| !pools.contains_key(*name)) {
            pool.tell(false);
        }
        for pool in pools.values() {
            pool.tell(true);
        }
        if pools.is_empty() {
            self.none_left.notify_one();
        }
    }

    /// Notes the result of a probe, which the member's verdicts have.
    pub(super) fn note(&self, pool: &Arc<str>, monitor: u64, outcome: Outcome) {
        let mut pools = lock(&self.pools);
        let Some(waited) = pools.get_mut(pool) else { return };
        let was_missing = waited.missing.remove(&monitor);
        let may_be_done = was_missing || outcome != Outcome::Failed;
        if !may_be_done || waited.is_awaited() {
            return;
        }
        waited.tell(false);
        pools.remove(pool);
        if pools.is_empty() {
            self.none_left.notify_one();
        }
    }

    /// Whether there is any.
    pub(super) fn is_awaited(&self) -> bool {
        !lock(&self.pools).is_empty()
    }

    /// Returns when there is none. One task at a time may wait.
    pub(super) async fn all_in(&self) {
        while self.is_awaited() {
            self.none_left.notified().await;
        }
    }
}
