//! The next configuration, which waits for the first probes of its members.
//!
//! A member with monitors gets no requests before its first probe has passed. A configuration that became active at once
//! would therefore answer 503 for a new pool until the pool's monitors have results. Instead, the configuration waits, with
//! its listeners bound and its monitors running, while the previous configuration serves. At a start, connections wait in
//! the kernel's queue. The configuration becomes active when every new member has been probed and each of their pools has a
//! usable member, or when `first_probes.wait` is over. A file becomes active as a whole. If only addresses of names have
//! changed, pools do not wait for each other: a pool that still waits keeps its former addresses.
//!
//! | event meanwhile | effect |
//! |---|---|
//! | SIGHUP, and the file is valid | its configuration replaces the waiting one; probes that both have continue |
//! | SIGHUP, and the file is invalid | the file is refused; the waiting configuration continues to wait |
//! | addresses of names change | the new addresses replace the previous ones |
//! | SIGTERM | the waiting configuration is dropped; a process that does not serve yet ends |
//!
//! The wait of a pool begins when its current form first appeared. Repeated reloads cannot postpone an activation forever:
//! it happens at the latest [`WAITS_MAX`] waits after the first configuration in an unbroken series of replaced ones. A
//! waiting change of names does not shorten the wait of a file.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use weir_config::snapshot::{AfterFirstProbes, Member, MemberChanges, NOBODY, Pool, Snapshot};
use weir_core::admin_state::AdminState;
use weir_core::monitor::Health;
use weir_dataplane::handle::BindError;
use weir_dataplane::outside;
use weir_exchange::shared::live::{LiveTable, PoolMembers};

use super::pending_versions::PendingVersions;
use super::service::status_line;
use super::without_effect::without_effect;
use super::{Summary, Supervisor, tell_restart_needed, upgrades};
use crate::events::Events;
use crate::member_state::administrative_state;
use crate::monitors::{Board, Monitors, UnknownMembers};
use crate::observed_state::WaitingConfiguration;
use crate::overlay::history::History;
use crate::overlay::judge::Configuration;
use crate::time::monotonic_ms;
use crate::wording::{ChangesText, NamesText, Pools, Seconds};

/// Only a wait of at least this duration is reported.
const TELL_AFTER: Duration = Duration::from_millis(500);

/// The interval between further reports.
const TELL_INTERVAL: Duration = Duration::from_secs(2);

/// Maximum total wait of configurations that replace each other, in multiples of `first_probes.wait`.
const WAITS_MAX: u32 = 2;

/// Minimum interval between activations of single pools.
pub(super) const BY_POOL_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum number of events about changes that a reload leaves without effect. The report has more.
const TOLD_MAX: usize = 10;

/// The waiting configuration.
pub(super) struct NextConfiguration {
    pub(super) snapshot: Arc<Snapshot>,
    /// The configurations that are not in force; none: the active one with other addresses, or the first one.
    pub(super) configurations: PendingVersions,
    /// The pools whose members differ from those in force, if nothing else does: they become active one by one.
    pub(super) pools: Option<Vec<MemberChanges>>,
    /// The waits of all pools that are not active yet.
    pub(super) waits: HashMap<Arc<str>, PoolWait>,
    /// The beginning of the first wait in the series of configurations that replaced each other.
    began: Instant,
    /// The next activation happens when fewer pools than this are awaited.
    pub(super) awaited: usize,
    /// The earliest time of the next activation.
    pub(super) not_before: Instant,
    tell_at: Instant,
}

/// The times that limit a pool's wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct PoolWait {
    /// The time of the last change of the pool.
    since: Instant,
    /// The beginning of the first wait in the series.
    began: Instant,
}

/// The next action for the waiting configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The maximum wait is over: activate the configuration.
    PutInForce,
    /// Report the wait.
    Tell,
}

impl NextConfiguration {
    /// The first configuration of a process, which nothing precedes.
    pub(super) fn at_start(table: &LiveTable) -> Self {
        Self::new(Arc::clone(&table.snapshot), PendingVersions::default(), None, None)
    }

    /// Creates the configuration that replaces `before`. `pools`: only the members of these pools differ from those in force.
    pub(super) fn new(
        snapshot: Arc<Snapshot>,
        configurations: PendingVersions,
        pools: Option<Vec<MemberChanges>>,
        before: Option<&Self>,
    ) -> Self {
        let now = Instant::now();
        let tell_at = before.map_or(now + TELL_AFTER, |before| before.tell_at);
        let is_by_pool = pools.is_some();
        let before = before.filter(|before| is_by_pool || before.pools.is_none());
        let began = before.map_or(now, |before| before.began);
        let wait_of = |pool: &Arc<Pool>| {
            let former = before.and_then(|before| Some((before, before.waits.get(&pool.name)?)));
            let own = PoolWait { since: now, began: if is_by_pool { now } else { began } };
            let wait = former.map_or(own, |(before, former)| {
                let mut pools = before.snapshot.pools.iter();
                let is_same = pools.any(|other| is_probed_alike(pool, other));
                PoolWait { since: if is_same { former.since } else { now }, ..*former }
            });
            (Arc::clone(&pool.name), wait)
        };
        let waits = match &pools {
            Some(pools) => pools.iter().map(|it| wait_of(&snapshot.pools[it.pool])).collect(),
            None => snapshot.pools.iter().map(wait_of).collect(),
        };
        Self { snapshot, configurations, pools, waits, began, awaited: 1, not_before: now, tell_at }
    }

    fn wait_max(&self) -> Duration {
        Duration::from_millis(self.snapshot.first_probes.wait_ms)
    }

    /// The end of the wait for a pool.
    pub(super) fn until(&self, pool: &Pool) -> Instant {
        if self.snapshot.resolved.pools_to_be_filled.contains(&pool.name) {
            return Instant::now();
        }
        let wait = self.wait_max();
        let end = |of: &PoolWait| (of.since + wait).min(of.began + wait * WAITS_MAX);
        self.waits.get(&pool.name).map_or_else(Instant::now, end)
    }

    /// Returns the next step when it is due; waits forever if no configuration waits. Dropping the future loses nothing.
    pub(super) async fn step(next: &Option<Self>, monitors: &Monitors) -> Step {
        let Some(next) = next else { return std::future::pending().await };
        let ready = async {
            if next.pools.is_none() {
                return monitors.fewer_awaited_than(1).await;
            }
            sleep_until(next.not_before).await;
            monitors.fewer_awaited_than(next.awaited).await;
        };
        tokio::select! {
            biased;
            () = ready => Step::PutInForce,
            () = sleep_until(next.tell_at) => Step::Tell,
        }
    }
}

/// Whether two pools are the same pool with the same members and probes.
fn is_probed_alike(pool: &Pool, other: &Pool) -> bool {
    let source = (&pool.source, pool.proxy_protocol);
    pool.name == other.name
        && pool.members == other.members
        && (&pool.monitors, pool.monitors_min) == (&other.monitors, other.monitors_min)
        && source == (&other.source, other.proxy_protocol)
        && pool.tls == other.tls
}

impl Supervisor {
    /// Whether no configuration has been active yet.
    pub(super) fn is_starting(&self) -> bool {
        self.observed.starting.load(Relaxed)
    }

    /// Prepares a snapshot: binds its listeners and starts its monitors. After an error nothing has changed.
    /// `configuration` belongs to the snapshot; `None`: the newest configuration stays the same.
    pub(super) fn prepare_next(
        &mut self,
        mut snapshot: Snapshot,
        configuration: Option<Arc<Configuration>>,
    ) -> Result<(), BindError> {
        if let Some(key_log) = &self.key_log {
            key_log.listen_to(&mut snapshot);
        }
        // Listeners are bound first: if that fails, the packet path must be unchanged, because a change of its tables ends
        // flows. The second call also binds listeners for virtual servers that fell back to sockets.
        let bound = self.data_plane.prepare(&snapshot).and_then(|()| {
            self.packets.settle(&mut snapshot);
            self.data_plane.prepare(&snapshot)
        });
        if let Err(error) = bound {
            self.packets.restore();
            return Err(error);
        }
        self.packets.accept();
        let before = self.next.take();
        let waited = before.as_ref().and_then(|before| before.configurations.newest()).cloned();
        if waited.is_some() && configuration.is_some() {
            let what = "replaces one that waited for its first probes";
            self.events.info("configuration", what);
        }
        let configurations = PendingVersions::of(configuration.or(waited));
        let next =
            NextConfiguration::new(Arc::new(snapshot), configurations, None, before.as_ref());
        // A pool without an address is not waited for if it has none in the active configuration either.
        let in_force = (!self.is_starting()).then_some(&self.table.snapshot);
        let is_without = |pool: &Pool| {
            let mut pools = in_force.iter().flat_map(|snapshot| &snapshot.pools);
            pool.members.is_empty()
                && pools.any(|before| before.name == pool.name && before.members.is_empty())
        };
        let until = |pool: &Pool| if is_without(pool) { Instant::now() } else { next.until(pool) };
        self.monitors.prepare(&next.snapshot, until);
        self.next = Some(next);
        self.retain_names();
        show_waiting(self);
        Ok(())
    }

    /// Waits until the prepared configuration is active.
    pub(super) async fn wait(&mut self) {
        while self.next.is_some() {
            tokio::select! {
                step = NextConfiguration::step(&self.next, &self.monitors) => self.take(step).await,
                () = self.names.changed() => {
                    self.apply_names();
                }
            }
        }
    }

    pub(super) async fn take(&mut self, step: Step) {
        match step {
            Step::PutInForce => upgrades::put_in_force(self).await,
            Step::Tell => self.tell_waiting(),
        }
    }

    pub(super) async fn put_next_in_force(&mut self) {
        let Some(next) = self.next.take() else { return };
        if next.pools.is_some() {
            return self.put_members_in_force(next);
        }
        let snapshot = Arc::clone(&next.snapshot);
        let is_first = Arc::ptr_eq(&snapshot, &self.table.snapshot);
        let table = match is_first {
            true => Arc::clone(&self.table),
            false => Arc::new(LiveTable::build(
                snapshot,
                Some(&self.table),
                self.table.workers(),
                &outside(),
            )),
        };
        // The monitors come before the workers, so that members have their health at the first request.
        self.monitors.apply(&table);
        let then = next.snapshot.first_probes.then;
        for unknown in self.monitors.stop_waiting(&table, then, &HashSet::new()) {
            tell_unknown(&self.events, &unknown, then);
        }
        // The verifiers of tokens must have the known keys before the first request.
        self.token_keys.apply(&table.snapshot);
        self.data_plane.put_in_force(Arc::clone(&table));
        self.packets.put_in_force(&table);
        self.observed.set_flows(self.packets.flows());
        self.ocsp.apply(&table.snapshot);
        self.observed.admin.requests.set(table.snapshot.log.recent_requests);
        self.observed.set_table(Arc::clone(&table));
        let before = std::mem::replace(&mut self.table, table);
        let before_it = Arc::clone(&self.configuration);
        let configuration = next.configurations.newest().cloned();
        let is_other = configuration.is_some();
        self.configuration = configuration.unwrap_or_else(|| Arc::clone(&before_it));
        let is_reload = !Arc::ptr_eq(&self.configuration.files, &before_it.files);
        self.acme.apply(&self.table.snapshot, is_reload);
        show_waiting(self);
        let was_starting = self.observed.starting.swap(false, Relaxed);
        let unusable = unusable(self.table.pools.iter(), &self.monitors.board());
        tell_unusable(&self.events, &unusable);
        let unusable = UnusablePools(&unusable);
        if was_starting {
            let summary = Summary(&self.configuration.config, self.table.workers());
            self.events.info("weir", format_args!("serves {summary}{unusable}"));
        }
        if is_other {
            let history = self.observed.changes.history();
            let by = changed_by(&before_it, &self.configuration, &history);
            self.logs.replace(&self.table.snapshot.log, &before.snapshot.log, &by);
            self.admins.move_to(&self.table.snapshot.admin.listen).await;
            tell_in_force(self, &before_it, &before, &unusable);
        }
        self.manager.in_force(status_line(&self.table), is_other);
        self.retain_names();
    }

    /// Drops the waiting configuration.
    pub(super) fn abandon_next(&mut self) {
        let Some(next) = self.next.take() else { return };
        self.data_plane.abandon();
        self.observed.set_waiting(None);
        if next.configurations.newest().is_some() {
            let what = "that waits for its first probes is dropped: weir exits";
            self.events.warning("configuration", what);
        }
    }

    fn tell_waiting(&mut self) {
        let is_starting = self.is_starting();
        if is_starting {
            self.manager.extend();
        }
        let Some(next) = &mut self.next else { return };
        next.tell_at = Instant::now() + TELL_INTERVAL;
        let unknown = Pools(self.monitors.board().awaited(&next.snapshot));
        let left = Seconds(self.monitors.left());
        let (subject, meanwhile) = match (is_starting, next.configurations.newest().is_none()) {
            (true, _) => ("weir", ""),
            (false, false) => ("configuration", "; the previous one is in effect"),
            (false, true) => ("names", "; the previous addresses are in effect"),
        };
        let what =
            format_args!("waits for the first probes of {unknown}, {left} at most{meanwhile}");
        self.events.info(subject, what);
    }
}

/// Reports an activated reload, an activated version, or both.
pub(super) fn tell_in_force(
    at: &Supervisor,
    before: &Configuration,
    table_before: &LiveTable,
    unusable: &UnusablePools<'_>,
) {
    let now = &at.configuration;
    let changes = now.config.changes_from(&before.config);
    at.observed.set_files(Arc::clone(&now.files));
    let summary = Summary(&now.config, at.table.workers());
    let changed = ChangesText(&changes);
    if !Arc::ptr_eq(&now.files, &before.files) {
        tell_restart_needed(&at.events, &at.table, &at.observed);
        let what = format_args!("was reloaded: {summary}{changed}{unusable}");
        at.events.info("configuration", what);
        // The version in force is always stored.
        let overlay = at.observed.changes.history().overlay_after(now.version);
        let (overlay, files) = (overlay.unwrap_or_default(), (&*before.files, &*now.files));
        let idle = without_effect(&overlay, files, (table_before, &at.table));
        for lost in idle.iter().take(TOLD_MAX) {
            at.events.warning("configuration", format_args!("was reloaded: {lost}"));
        }
        at.observed.reloads.succeed(&changes, idle);
    }
    if now.version != before.version {
        at.observed.changes.put_in_force(now.version);
        let version = now.version;
        let what = format_args!("has version {version}: {summary}{changed}{unusable}");
        at.events.info("configuration", what);
    }
}

/// Shows in status and metrics whether a configuration waits.
pub(super) fn show_waiting(at: &Supervisor) {
    let waiting = at.next.as_ref().map(|next| {
        let left_ms = u64::try_from(at.monitors.left().as_millis()).unwrap_or(u64::MAX);
        let until_ms = monotonic_ms().saturating_add(left_ms);
        WaitingConfiguration { snapshot: Arc::clone(&next.snapshot), until_ms }
    });
    at.observed.set_waiting(waiting);
}

pub(super) fn tell_unknown(events: &Events, unknown: &UnknownMembers, then: AfterFirstProbes) {
    let subject = format_args!("pool {}", unknown.pool);
    let members = NamesText(&unknown.members);
    let what = match then {
        AfterFirstProbes::Serve => "they are tried until a probe fails",
        AfterFirstProbes::Refuse => "they get no requests until a probe passes",
    };
    let what = format_args!("has members whose first probe has no result: {members}; {what}");
    events.warning(subject, what);
}

/// Reports pools without a usable member.
pub(super) fn tell_unusable(events: &Events, unusable: &[Unusable]) {
    for found in unusable {
        events.warning(format_args!("pool {}", found.pool.name), format_args!("{found}"));
    }
}

/// A pool without a usable member, although some of its members are enabled.
pub(super) struct Unusable {
    pool: Arc<Pool>,
    /// The enabled members, with the reasons why they are not usable.
    members: Vec<Arc<str>>,
}

/// The pools without a usable member.
pub(super) fn unusable<'t>(
    pools: impl Iterator<Item = &'t Arc<PoolMembers>>,
    monitors: &Board,
) -> Vec<Unusable> {
    let mut found = Vec::new();
    for live in pools {
        let pool = &live.settings;
        let enabled = || {
            let members = pool.members.iter().zip(&live.members);
            members.filter(|(it, live)| administrative_state(it, live) == AdminState::Enabled)
        };
        // Mostly one of the first members is usable.
        let is_usable = enabled().any(|(_, live)| live.health() == Health::Up);
        let is_wanted = pool.members.is_empty() || enabled().next().is_some();
        if is_usable || !is_wanted || *pool.name == *NOBODY {
            continue;
        }
        let why = |member: &Member| {
            let reports = monitors.of(&pool.name, &member.label);
            let failure = reports.into_iter().find_map(|report| report.last_failure);
            let failure = failure.as_deref().unwrap_or("no answer yet");
            format!("{}: {failure}", member.label).into()
        };
        let members = enabled().map(|(member, _)| why(member)).collect();
        found.push(Unusable { pool: Arc::clone(pool), members });
    }
    found
}

/// The event text: `has no usable member: ...`.
impl fmt::Display for Unusable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.members.is_empty() {
            return formatter.write_str("has no member: it takes no requests");
        }
        let members = NamesText(&self.members);
        write!(
            formatter,
            "has no usable member: it takes no requests until a probe passes ({members})"
        )
    }
}

/// The pools as text: `; without a usable member: pool images, pool web`, or an empty text.
pub(super) struct UnusablePools<'a>(pub(super) &'a [Unusable]);

impl fmt::Display for UnusablePools<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        let pools: Vec<Arc<str>> =
            self.0.iter().map(|found| format!("pool {}", found.pool.name).into()).collect();
        write!(formatter, "; without a usable member: {}", NamesText(&pools))
    }
}

/// What has replaced a configuration: a reload, or versions and their authors.
fn changed_by(before: &Configuration, now: &Configuration, history: &History) -> String {
    let versions = (before.version + 1..=now.version).filter_map(|it| history.get(it));
    let mut by: Vec<String> =
        versions.map(|it| format!("version {} by {}", it.number, it.author)).collect();
    if !Arc::ptr_eq(&now.files, &before.files) {
        by.push("a reload of the files".to_owned());
    }
    by.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{pool, snapshot};
    use weir_config::snapshot::Address;

    fn of(names_and_ports: &[(&str, u16)]) -> Arc<Snapshot> {
        let pools = names_and_ports.iter().map(|(name, port)| {
            let address = Address::Socket(([127, 0, 0, 1], *port).into());
            pool(name, &[address], &[])
        });
        let mut snapshot = Snapshot::clone(&snapshot(pools.collect()));
        snapshot.first_probes.wait_ms = 10_000;
        Arc::new(snapshot)
    }

    fn new(
        snapshot: Arc<Snapshot>,
        pools: Option<Vec<usize>>,
        before: Option<&NextConfiguration>,
    ) -> NextConfiguration {
        let nothing = pool("nothing", &[], &[]);
        let changes =
            |index: usize| MemberChanges::between(index, &nothing, &snapshot.pools[index]);
        let pools = pools.map(|pools| pools.into_iter().filter_map(changes).collect());
        NextConfiguration::new(snapshot, PendingVersions::default(), pools, before)
    }

    fn left(next: &NextConfiguration, pool: usize) -> Duration {
        next.until(&next.snapshot.pools[pool]) - next.began
    }

    /// Simulates a configuration that was prepared this long ago.
    fn aged(mut next: NextConfiguration, by: Duration) -> NextConfiguration {
        next.began -= by;
        for wait in next.waits.values_mut() {
            wait.since -= by;
            wait.began -= by;
        }
        next
    }

    const WAIT: Duration = Duration::from_secs(10);

    #[test]
    fn a_change_of_names_takes_nothing_from_the_time_of_a_file() {
        let names = aged(new(of(&[("a", 1)]), Some(vec![0]), None), WAIT / 2);
        for snapshot in [of(&[("a", 1)]), of(&[("a", 2)])] {
            let file = new(snapshot, None, Some(&names));
            assert_eq!(left(&file, 0), WAIT);
        }
    }

    #[test]
    fn what_is_new_in_a_newer_file_has_its_own_time() {
        let first = aged(new(of(&[("a", 1), ("b", 1)]), None, None), WAIT / 2);
        let second = new(of(&[("a", 1), ("b", 2), ("c", 1)]), None, Some(&first));
        assert_eq!(left(&second, 0), WAIT, "it is the same");
        assert!(left(&second, 1) >= WAIT * 3 / 2 && left(&second, 2) == left(&second, 1));
        // The limit applies regardless of the number of reloads.
        let second = aged(second, WAIT * 4 / 5);
        let third = new(of(&[("a", 3), ("d", 1)]), None, Some(&second));
        assert_eq!([left(&third, 0), left(&third, 1)], [WAIT * 2; 2]);
    }

    #[test]
    fn pools_by_themselves_take_no_time_from_each_other() {
        let first = aged(new(of(&[("a", 1), ("b", 1)]), Some(vec![0, 1]), None), WAIT * 2);
        let mut first = first;
        first.waits.remove("b");
        let second = new(of(&[("a", 2), ("b", 2)]), Some(vec![0, 1]), Some(&first));
        assert_eq!(left(&second, 0), WAIT * 2);
        assert!(left(&second, 1) >= WAIT * 3);
    }
}
