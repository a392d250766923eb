//! The monitors: one task per (pool, member, monitor), each with its own state.
//!
//! The next configuration is probed before it becomes active ([`Monitors::prepare`]), so that the state of its members is
//! known when they get their first request. `first_probes` limits the wait. A monitor with unchanged probe and schedule
//! keeps its task and its state; a removed monitor stops. A new monitor of a member that already has traffic starts as "up",
//! so that a reload never takes a healthy member out of service. Counts of probes belong to the position and type of the
//! monitor. These are its labels in the metrics, so each counter only grows.

mod first_probes;
mod verdicts;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use first_probes::{FirstProbes, REPEAT_INTERVAL, WaitedPool};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use verdicts::{MemberVerdicts, ProbeResult};
use weir_config::snapshot::{Address, AfterFirstProbes, Member, MemberChanges, Pool, Snapshot};
use weir_core::monitor::Health;
use weir_event_loop::random;
use weir_exchange::shared::live::{LiveMember, LiveTable, PoolMembers};
use weir_outgoing::tls::TlsClients;
use weir_probe::{Failure, Probe, Subject};

use crate::events::Events;
use crate::member_state::is_in_service;
use crate::time::monotonic_ms;

/// Minimum interval of the event that this host cannot probe.
const LOCAL_TROUBLE_INTERVAL: Duration = Duration::from_secs(60);

/// All monitors of the active configuration, and of the next one.
#[derive(Debug)]
pub struct Monitors {
    /// The members of each pool, by the pool's name.
    pools: HashMap<Arc<str>, HashMap<Address, MonitoredMember>>,
    shared: Arc<ProbeTaskState>,
    board: Board,
}

/// Results of the monitors, for metrics and status. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<Mutex<VerdictsByMember>>);

/// Verdicts by pool and by the member's address.
type VerdictsByMember = HashMap<Arc<str>, HashMap<Arc<str>, Arc<Mutex<MemberVerdicts>>>>;

/// The result of one monitor of one member.
#[derive(Debug, Clone)]
pub struct MonitorReport {
    /// The type in the file.
    pub kind: &'static str,
    /// The monitor's verdict. The member is up if enough of its monitors are up.
    pub health: Health,
    /// The number of passed probes.
    pub passes: u64,
    /// The number of failed probes.
    pub failures: u64,
    /// The end of the last probe, in milliseconds since 1970; `None`: no probe has ended.
    pub probed_unix_ms: Option<u64>,
    /// The reason why the last probe failed; `None`: it passed.
    pub last_failure: Option<String>,
    /// The end of `up_delay`, by the monotonic clock: until then, the member is down although its probes pass; `None`: no
    /// delay.
    pub held_up_until_ms: Option<u64>,
}

/// A pool with members whose first probes have no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMembers {
    /// The name of the pool.
    pub pool: Arc<str>,
    /// The number of the pool's members; 0 if its names have no addresses.
    pub of: usize,
    /// The affected members, by the names in logs and metrics.
    pub members: Vec<Arc<str>>,
}

impl Board {
    /// The reports about an active member, in the order of its monitors. Empty if it has no monitors.
    pub fn of(&self, pool: &Arc<str>, member: &Arc<str>) -> Vec<MonitorReport> {
        self.look(pool, member, MemberVerdicts::reports).unwrap_or_default()
    }

    /// The members of a snapshot whose first probes are awaited, by pool. Pools without an address are included.
    pub fn awaited(&self, snapshot: &Snapshot) -> Vec<UnknownMembers> {
        let without = snapshot.pools.iter().filter(|pool| snapshot.resolved.lacks_addresses(pool));
        let without = without.map(|pool| UnknownMembers {
            pool: Arc::clone(&pool.name),
            of: 0,
            members: Vec::new(),
        });
        self.members_that(snapshot, MemberVerdicts::is_awaited).into_iter().chain(without).collect()
    }

    /// The members of a snapshot that get requests although their first probes have no result, by pool.
    pub fn tried(&self, snapshot: &Snapshot) -> Vec<UnknownMembers> {
        self.members_that(snapshot, MemberVerdicts::is_tried)
    }

    fn members_that(
        &self,
        snapshot: &Snapshot,
        is_it: fn(&MemberVerdicts) -> bool,
    ) -> Vec<UnknownMembers> {
        snapshot.pools.iter().filter_map(|pool| self.members_of(pool, is_it)).collect()
    }

    /// The members of a pool for which this holds; `None`: there are none.
    fn members_of(
        &self,
        pool: &Pool,
        is_it: fn(&MemberVerdicts) -> bool,
    ) -> Option<UnknownMembers> {
        let is_one =
            |member: &&Member| self.look(&pool.name, &member.label, is_it).unwrap_or(false);
        let members = pool.members.iter().filter(is_one).map(|member| Arc::clone(&member.label));
        let members: Vec<Arc<str>> = members.collect();
        let name = Arc::clone(&pool.name);
        let found = UnknownMembers { pool: name, of: pool.members.len(), members };
        (!found.members.is_empty()).then_some(found)
    }

    fn look<T>(
        &self,
        pool: &Arc<str>,
        member: &Arc<str>,
        what: impl Fn(&MemberVerdicts) -> T,
    ) -> Option<T> {
        let members = lock(&self.0);
        let verdicts = members.get(pool)?.get(member)?;
        Some(what(&lock(verdicts)))
    }
}

/// Shared state of all probe tasks.
#[derive(Debug)]
struct ProbeTaskState {
    tls: TlsClients,
    events: Events,
    local_trouble_told: Mutex<Option<Instant>>,
    first_probes: FirstProbes,
}

/// A member, its verdicts, and the tasks that probe it.
#[derive(Debug)]
struct MonitoredMember {
    verdicts: Arc<Mutex<MemberVerdicts>>,
    tasks: Vec<ProbeTask>,
}

/// A running probe task. It ends on drop.
#[derive(Debug)]
struct ProbeTask {
    probe: Probe,
    verdict: u64,
    handle: JoinHandle<()>,
}

impl Drop for ProbeTask {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

impl Monitors {
    /// An instance without monitors.
    pub fn new(events: Events) -> Self {
        let shared = ProbeTaskState {
            tls: TlsClients::new(),
            events,
            local_trouble_told: Mutex::new(None),
            first_probes: FirstProbes::default(),
        };
        Self { pools: HashMap::new(), shared: Arc::new(shared), board: Board::default() }
    }

    /// The results of the monitors.
    pub fn board(&self) -> Board {
        self.board.clone()
    }

    /// Also probes the members of `snapshot`, the next configuration, and waits for the first probes of each of its pools,
    /// at most until `until`. Ends previously prepared monitors that the snapshot does not need. Must be called within a
    /// tokio runtime.
    pub fn prepare(&mut self, snapshot: &Snapshot, until: impl Fn(&Pool) -> Instant) {
        let mut waited: HashMap<Arc<str>, WaitedPool> = HashMap::new();
        for pool in &snapshot.pools {
            waited.insert(Arc::clone(&pool.name), self.prepare_pool(pool, until(pool)));
        }
        for (_, pool) in self.pools.iter_mut().filter(|(name, _)| !waited.contains_key(*name)) {
            abandon_others(pool, &HashSet::new());
        }
        self.pools.retain(|_, members| !members.is_empty());
        self.shared.first_probes.wait_for(waited);
        self.show();
    }

    /// As [`Self::prepare`], for a change of the members of some pools, each with the end of its wait. Other pools are not
    /// touched.
    pub fn prepare_pools<'p>(&mut self, pools: impl Iterator<Item = (&'p Pool, Instant)>) {
        let mut waited: HashMap<Arc<str>, WaitedPool> = HashMap::new();
        for (pool, until) in pools {
            waited.insert(Arc::clone(&pool.name), self.prepare_pool(pool, until));
            self.show_pool(&pool.name);
        }
        self.shared.first_probes.wait_also_for(waited);
    }

    fn prepare_pool(&mut self, pool: &Pool, until: Instant) -> WaitedPool {
        let members = self.pools.entry(Arc::clone(&pool.name)).or_default();
        let mut wanted = HashSet::new();
        let mut waited = WaitedPool::new(until);
        for member in &pool.members {
            let probes = probes_of(pool, member);
            let watched = members.entry(member.address.clone());
            let watched = watched.or_insert_with(|| MonitoredMember::new(pool, member));
            let monitors = watched.prepare(&probes, pool, &self.shared);
            waited.add(&watched.verdicts, monitors, pool, member);
            wanted.insert(&member.address);
        }
        abandon_others(members, &wanted);
        waited
    }

    /// Monitors the members of `table`, which becomes active, and stops all other monitors. Must be called within a tokio
    /// runtime.
    pub fn apply(&mut self, table: &LiveTable) {
        let names: HashSet<&str> = table.pools.iter().map(|live| &*live.pool.name).collect();
        self.pools.retain(|name, _| names.contains(&**name));
        table.pools.iter().for_each(|live| self.apply_pool(live));
        self.show();
    }

    /// As [`Self::apply`] and [`Self::stop_waiting`], for changes of the members of some pools. `before`: the table before the
    /// changes. Members that stay, and other pools, are not touched.
    pub fn change(
        &mut self,
        table: &LiveTable,
        then: AfterFirstProbes,
        (before, changes): (&LiveTable, &[MemberChanges]),
    ) -> Vec<UnknownMembers> {
        let mut probed = Vec::new();
        for changes in changes {
            let (before, live) = (&before.pools[changes.pool], &table.pools[changes.pool]);
            let is_prepared = self.may_wait_for(&live.pool.name)
                || needs_probes(changes, &before.settings, &live.settings);
            if !is_prepared && are_probed_alike(changes, &before.settings, &live.settings) {
                continue;
            }
            let watched = self.pools.get(&live.pool.name).map(HashMap::len);
            // What was prepared for other members must go, and first results may be missing.
            if is_prepared || watched != Some(before.members.len()) {
                self.apply_pool(live);
                self.show_pool(&live.pool.name);
                probed.push(changes.pool);
            } else {
                self.exchange_members(before, live, changes);
            }
        }
        self.stop_waiting_for_pools(table, then, &probed)
    }

    /// Exchanges some monitored members of a pool, of which nothing else was prepared.
    fn exchange_members(
        &mut self,
        before: &PoolMembers,
        live: &PoolMembers,
        changes: &MemberChanges,
    ) {
        let pool = &live.settings;
        let members = self.pools.entry(Arc::clone(&pool.name)).or_default();
        let mut board = lock(&self.board.0);
        let shown = board.entry(Arc::clone(&pool.name)).or_default();
        let mut previous = HashMap::new();
        for member in changes.former(&before.settings.members) {
            previous.extend(members.remove_entry(&member.address));
            shown.remove(&member.label);
        }
        let new = changes.new_ones(&pool.members).zip(changes.new_ones(&live.members));
        for (member, live) in new {
            let known = previous.remove(&member.address);
            let mut watched = known.unwrap_or_else(|| MonitoredMember::new(pool, member));
            let probes = probes_of(pool, member);
            watched.prepare(&probes, pool, &self.shared);
            watched.enter_into_force(live, &probes, pool.monitors_min.into(), &self.shared);
            shown.insert(Arc::clone(&member.label), Arc::clone(&watched.verdicts));
            members.insert(member.address.clone(), watched);
        }
    }

    fn apply_pool(&mut self, live: &PoolMembers) {
        let pool = &live.settings;
        let members = self.pools.entry(Arc::clone(&pool.name)).or_default();
        let mut previous = std::mem::take(members);
        for (member, live) in pool.members.iter().zip(&live.members) {
            let known = previous.remove(&member.address);
            let mut watched = known.unwrap_or_else(|| MonitoredMember::new(pool, member));
            let probes = probes_of(pool, member);
            watched.prepare(&probes, pool, &self.shared);
            watched.enter_into_force(live, &probes, pool.monitors_min.into(), &self.shared);
            members.insert(member.address.clone(), watched);
        }
    }

    /// Whether first probes of a pool are awaited, or were until now.
    pub fn may_wait_for(&self, pool: &Arc<str>) -> bool {
        self.shared.first_probes.may_wait_for(pool)
    }

    /// The pools whose first probes are awaited, by name.
    pub fn awaited(&self) -> HashSet<Arc<str>> {
        self.shared.first_probes.awaited()
    }

    /// The maximum remaining wait for first probes.
    pub fn left(&self) -> Duration {
        let end = self.shared.first_probes.end();
        end.map_or(Duration::ZERO, |end| end.saturating_duration_since(Instant::now()))
    }

    /// Waits until fewer pools than this are awaited.
    pub async fn fewer_awaited_than(&self, count: usize) {
        self.shared.first_probes.fewer_than(count).await;
    }

    /// Stops waiting for first probes, except for those of the pools in `awaited`. Returns the members with unknown health
    /// in pools of `table` without a usable member. They are tried if `then` permits it, until a probe has a result.
    pub fn stop_waiting(
        &mut self,
        table: &LiveTable,
        then: AfterFirstProbes,
        awaited: &HashSet<Arc<str>>,
    ) -> Vec<UnknownMembers> {
        let pools = table.pools.iter().filter(|live| !awaited.contains(&live.pool.name));
        let stopped = pools.filter_map(|live| self.stop_waiting_for(live, then)).collect();
        self.shared.first_probes.wait_for_these(awaited);
        stopped
    }

    /// As [`Self::stop_waiting`], for some pools, by their indexes. The wait for other pools is not touched.
    fn stop_waiting_for_pools(
        &mut self,
        table: &LiveTable,
        then: AfterFirstProbes,
        pools: &[usize],
    ) -> Vec<UnknownMembers> {
        if pools.is_empty() {
            return Vec::new();
        }
        let pools = || pools.iter().map(|index| &table.pools[*index]);
        let stopped = pools().filter_map(|live| self.stop_waiting_for(live, then)).collect();
        self.shared.first_probes.stop_waiting_for(pools().map(|live| &live.pool.name));
        stopped
    }

    fn stop_waiting_for(
        &self,
        live: &PoolMembers,
        then: AfterFirstProbes,
    ) -> Option<UnknownMembers> {
        let pool = &live.settings;
        let unknown = self.board.members_of(pool, MemberVerdicts::is_unknown);
        let mut members = pool.members.iter().zip(&live.members);
        let serves = members.any(|(configured, live)| is_in_service(configured, live));
        let may_try = !serves && then == AfterFirstProbes::Serve;
        let watched = self.pools.get(&pool.name);
        for member in &pool.members {
            if let Some(watched) = watched.and_then(|watched| watched.get(&member.address)) {
                lock(&watched.verdicts).stop_waiting(may_try);
            }
        }
        unknown.filter(|_| !serves)
    }

    /// The number of running probe tasks.
    pub fn running(&self) -> usize {
        self.pools.values().flat_map(HashMap::values).map(|watched| watched.tasks.len()).sum()
    }

    fn show(&self) {
        let shown = self.pools.iter().map(|(name, pool)| (Arc::clone(name), shown(pool)));
        *lock(&self.board.0) = shown.collect();
    }

    fn show_pool(&self, name: &Arc<str>) {
        let shown = self.pools.get(name).map(shown).unwrap_or_default();
        lock(&self.board.0).insert(Arc::clone(name), shown);
    }
}

/// Whether two forms of a pool, which differ in members alone, need the same probes.
fn are_probed_alike(changes: &MemberChanges, before: &Pool, now: &Pool) -> bool {
    changes.are_alike(&before.members, &now.members, |one, other| {
        one.address == other.address && one.name == other.name && one.monitors == other.monitors
    })
}

/// Whether these changes of a pool's members need probes before they are in force: of new members, and of those with other
/// monitors. A pool that has lost all members waits for new ones.
pub fn needs_probes(changes: &MemberChanges, before: &Pool, now: &Pool) -> bool {
    let has_some = |member: &Member| !member.monitors(&now.monitors).is_empty();
    let had_own = |member: &Member| member.monitors.is_some();
    !are_probed_alike(changes, before, now)
        && (now.members.is_empty()
            || changes.new_ones(&now.members).any(has_some)
            || changes.former(&before.members).any(had_own))
}

/// The verdicts of a pool's members, by their labels.
fn shown(
    pool: &HashMap<Address, MonitoredMember>,
) -> HashMap<Arc<str>, Arc<Mutex<MemberVerdicts>>> {
    let member = |watched: &MonitoredMember| Arc::clone(&lock(&watched.verdicts).subject.member);
    pool.values().map(|watched| (member(watched), Arc::clone(&watched.verdicts))).collect()
}

/// Ends what was prepared for other members than these, and forgets those that are not in force.
fn abandon_others(members: &mut HashMap<Address, MonitoredMember>, wanted: &HashSet<&Address>) {
    members.retain(|address, watched| {
        let is_wanted = wanted.contains(address);
        if !is_wanted {
            watched.abandon();
        }
        is_wanted || watched.is_in_force()
    });
}

fn subject_of(pool: &Pool, member: &Member) -> Subject {
    Subject { pool: Arc::clone(&pool.name), member: Arc::clone(&member.label) }
}

fn probes_of(pool: &Pool, member: &Member) -> Vec<Probe> {
    let probe = |monitor| {
        let (name, subject) = (member.name.as_ref(), subject_of(pool, member));
        Probe::new(&member.address, name, &pool.source, subject, pool.proxy_protocol, monitor)
    };
    member.monitors(&pool.monitors).iter().map(probe).collect()
}

impl MonitoredMember {
    fn new(pool: &Pool, member: &Member) -> Self {
        let verdicts = MemberVerdicts::new(subject_of(pool, member));
        Self { verdicts: Arc::new(Mutex::new(verdicts)), tasks: Vec::new() }
    }

    fn is_in_force(&self) -> bool {
        lock(&self.verdicts).is_in_force()
    }

    /// Starts missing monitors, which do not affect the member's health yet. Stops monitors that were prepared earlier and
    /// are not needed. Returns the ids of the needed monitors.
    fn prepare(&mut self, wanted: &[Probe], pool: &Pool, shared: &Arc<ProbeTaskState>) -> Vec<u64> {
        let mut verdicts = lock(&self.verdicts);
        verdicts.prepare(pool.monitors_min.into());
        let mut unwanted: Vec<u64> = self.tasks.iter().map(|task| task.verdict).collect();
        let (mut running, mut missing) = (Vec::new(), Vec::new());
        for probe in wanted {
            let is_it =
                |task: &&ProbeTask| task.probe == *probe && unwanted.contains(&task.verdict);
            match self.tasks.iter().find(is_it).map(|task| task.verdict) {
                Some(found) => {
                    unwanted.retain(|verdict| *verdict != found);
                    running.push(found);
                }
                None => missing.push(probe),
            }
        }
        unwanted.retain(|verdict| verdicts.forget_next(*verdict));
        self.tasks.retain(|task| !unwanted.contains(&task.verdict));
        for probe in missing {
            let (verdict, probe_now) = verdicts.add(probe);
            let monitor = Monitor { id: verdict, verdicts: Arc::clone(&self.verdicts), probe_now };
            let work = monitor.watch(probe.clone(), Arc::clone(shared));
            self.tasks.push(ProbeTask {
                probe: probe.clone(),
                verdict,
                handle: tokio::spawn(work),
            });
            running.push(verdict);
        }
        running
    }

    /// Stops prepared monitors that did not become active.
    fn abandon(&mut self) {
        let mut verdicts = lock(&self.verdicts);
        self.tasks.retain(|task| !verdicts.forget_next(task.verdict));
        verdicts.wait_for(&[]);
    }

    /// Keeps the tasks of these probes, which must all run, and stops the others. Sets the member's health from the results.
    fn enter_into_force(
        &mut self,
        live: &Arc<LiveMember>,
        wanted: &[Probe],
        up_min: usize,
        shared: &ProbeTaskState,
    ) {
        let mut tasks = std::mem::take(&mut self.tasks);
        for probe in wanted {
            let found = tasks.iter().position(|task| task.probe == *probe);
            self.tasks.extend(found.map(|index| tasks.swap_remove(index)));
        }
        let wanted: Vec<u64> = self.tasks.iter().map(|task| task.verdict).collect();
        lock(&self.verdicts).enter_into_force(live, &wanted, up_min, &shared.events);
    }
}

/// One monitor of one member.
struct Monitor {
    id: u64,
    verdicts: Arc<Mutex<MemberVerdicts>>,
    probe_now: Arc<Notify>,
}

impl Monitor {
    /// Probes forever, by the schedule, and earlier if a probe must be repeated.
    async fn watch(self, probe: Probe, shared: Arc<ProbeTaskState>) {
        let schedule = probe.monitor.schedule;
        let mut scheduled_ms = schedule.first_probe_at(monotonic_ms(), random::number());
        let mut at_ms = scheduled_ms;
        loop {
            let left = Duration::from_millis(at_ms.saturating_sub(monotonic_ms()));
            // Waits until the scheduled time, or until a probe is requested, whichever comes first.
            let _ = timeout(left, self.probe_now.notified()).await;
            let started_ms = monotonic_ms();
            let is_scheduled = started_ms >= scheduled_ms;
            match probe.run(&shared.tls).await {
                Err(failure) if !failure.is_conclusive() => shared.tell_local_trouble(&failure),
                result => self.take(&probe, ProbeResult { result, is_scheduled }, &shared),
            }
            let now_ms = monotonic_ms();
            if is_scheduled {
                scheduled_ms = schedule.next_probe_at(started_ms, now_ms, random::number());
            }
            at_ms = match lock(&self.verdicts).is_repeated(self.id) {
                true => scheduled_ms.min(now_ms + REPEAT_INTERVAL.as_millis() as u64),
                false => scheduled_ms,
            };
        }
    }

    fn take(&self, probe: &Probe, probed: ProbeResult, shared: &ProbeTaskState) {
        let outcome = lock(&self.verdicts).take(self.id, probe, probed, &shared.events);
        if let Some(outcome) = outcome {
            shared.first_probes.note(&probe.subject.pool, self.id, outcome);
        }
    }
}

impl ProbeTaskState {
    fn tell_local_trouble(&self, failure: &Failure) {
        let mut told = lock(&self.local_trouble_told);
        if told.is_none_or(|told| told.elapsed() >= LOCAL_TROUBLE_INTERVAL) {
            *told = Some(Instant::now());
            self.events.error("monitors", format_args!("keep their verdicts: {failure}"));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
