//! What is not in force yet: a configuration whose members have to be probed first.
//!
//! A member with monitors gets nothing before its first probe has passed. So what is put in force at once would
//! answer 503 for a pool that is new until its monitors have looked at it. Instead it waits, with its listeners
//! bound and its monitors at work, while the one before serves; at a start, connections wait in the kernel's
//! queue. When every new member has been probed and each of their pools has one that is usable, or
//! `first_probes.wait` is over, it is put in force.
//!
//! | what comes meanwhile | what becomes of it |
//! |---|---|
//! | SIGHUP, and the file is good | it takes the place of what waits; probes that both want go on |
//! | SIGHUP, and the file is bad | it is refused; what waits goes on waiting |
//! | other addresses of names | they take the place of the former ones |
//! | SIGTERM | what waits is dropped; a process that has not served ends |
//!
//! The time counts from the first of those that took each other's place: however often the file is read again,
//! the newest one is in force in time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use weir_config::Config;
use weir_config::snapshot::{AfterFirstProbes, Member, Pool, Snapshot};
use weir_core::admin_state::AdminState;
use weir_core::monitor::Health;
use weir_dataplane::handle::BindError;
use weir_dataplane::live::LiveTable;

use super::{Summary, Supervisor};
use crate::member_state::administrative_state;
use crate::monitors::{Board, Monitors, UnknownMembers};
use crate::observed::Waiting;
use crate::time::monotonic_ms;
use crate::wording::{Few, Pools, Seconds};

/// A wait that is over sooner is not worth a word.
const TELL_AFTER: Duration = Duration::from_millis(500);

/// Then it is told so often.
const TELL_INTERVAL: Duration = Duration::from_secs(2);

/// What waits.
pub(super) struct Next {
    pub(super) snapshot: Arc<Snapshot>,
    /// The configuration that it is of; `None`: the one in force, with other addresses, or the first one.
    pub(super) config: Option<Config>,
    /// When the first of those began that took each other's place.
    since: Instant,
    tell_at: Instant,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It has waited long enough.
    PutInForce,
    /// People may wonder.
    Tell,
}

impl Next {
    /// Takes the place of `before`.
    pub(super) fn new(
        snapshot: Arc<Snapshot>,
        config: Option<Config>,
        before: Option<&Self>,
    ) -> Self {
        let now = Instant::now();
        let since = before.map_or(now, |before| before.since);
        let tell_at = before.map_or(now + TELL_AFTER, |before| before.tell_at);
        Self { snapshot, config, since, tell_at }
    }

    fn wait_max(&self) -> Duration {
        Duration::from_millis(self.snapshot.first_probes.wait_ms)
    }

    /// What is left of the wait.
    pub(super) fn left(&self) -> Duration {
        (self.since + self.wait_max()).saturating_duration_since(Instant::now())
    }

    /// Returns when there is something to do; never, if nothing waits. Nothing is lost when it is dropped.
    pub(super) async fn step(next: &Option<Self>, monitors: &Monitors) -> Step {
        let Some(next) = next else { return std::future::pending().await };
        tokio::select! {
            biased;
            () = monitors.first_probes() => Step::PutInForce,
            () = sleep_until(next.since + next.wait_max()) => Step::PutInForce,
            () = sleep_until(next.tell_at) => Step::Tell,
        }
    }
}

impl Supervisor {
    /// Whether nothing has been in force yet.
    pub(super) fn is_starting(&self) -> bool {
        self.observed.starting.load(Relaxed)
    }

    /// Prepares to put a snapshot in force: binds its listeners, starts its monitors. On error nothing has changed.
    /// `config` is its configuration; `None`: what is the newest stays so.
    pub(super) fn prepare_next(
        &mut self,
        mut snapshot: Snapshot,
        config: Option<Config>,
    ) -> Result<(), BindError> {
        if let Some(key_log) = &self.key_log {
            key_log.listen_to(&mut snapshot);
        }
        self.data_plane.prepare(&snapshot)?;
        self.monitors.prepare(&snapshot);
        let before = self.next.take();
        let mut next = Next::new(Arc::new(snapshot), config, before.as_ref());
        let waited = before.and_then(|before| before.config);
        if waited.is_some() && next.config.is_some() {
            let what = "takes the place of one that waited for its first probes";
            self.events.info("configuration", what);
        }
        next.config = next.config.or(waited);
        self.next = Some(next);
        self.retain_names();
        self.show_waiting();
        Ok(())
    }

    /// Waits until what is prepared is in force.
    pub(super) async fn wait(&mut self) {
        while self.next.is_some() {
            let step = Next::step(&self.next, &self.monitors).await;
            self.take(step).await;
        }
    }

    pub(super) async fn take(&mut self, step: Step) {
        match step {
            Step::PutInForce => self.put_next_in_force().await,
            Step::Tell => self.tell_waiting(),
        }
    }

    async fn put_next_in_force(&mut self) {
        let Some(next) = self.next.take() else { return };
        let is_first = Arc::ptr_eq(&next.snapshot, &self.table.snapshot);
        let table = match is_first {
            true => Arc::clone(&self.table),
            false => {
                let snapshot = Arc::clone(&next.snapshot);
                Arc::new(LiveTable::build(snapshot, Some(&self.table), self.table.workers()))
            }
        };
        // Before the workers have it: no request meets a member that has not been given its health.
        self.monitors.apply(&table);
        let settings = next.snapshot.first_probes;
        for (unknown, then) in self.monitors.stop_waiting(&table, settings.then) {
            self.tell_unknown(&unknown, then, next.wait_max());
        }
        self.data_plane.put_in_force(Arc::clone(&table));
        self.ocsp.apply(&table.snapshot);
        self.observed.set_table(Arc::clone(&table));
        self.observed.set_waiting(None);
        let before = std::mem::replace(&mut self.table, table);
        let is_reload = next.config.is_some();
        if let Some(config) = next.config {
            self.config = config;
        }
        let was_starting = self.observed.starting.swap(false, Relaxed);
        let unusable = unusable(&self.table, &self.monitors.board());
        let of_names = (!is_reload && !was_starting).then_some(&before);
        self.tell_unusable(&unusable, of_names);
        let unusable = Without(&unusable);
        if was_starting {
            let summary = Summary(&self.config, self.table.workers());
            self.events.info("weir", format_args!("serves {summary}{unusable}"));
        }
        if is_reload {
            self.log.reopen(&self.table.snapshot.log.access_to);
            self.move_admins().await;
            self.tell_restart_needed();
            self.observed.reloads.succeed();
            let summary = Summary(&self.config, self.table.workers());
            self.events.info("configuration", format_args!("was reloaded: {summary}{unusable}"));
        }
        self.retain_names();
    }

    /// Drops what waits.
    pub(super) fn abandon_next(&mut self) {
        let Some(next) = self.next.take() else { return };
        self.data_plane.abandon();
        self.observed.set_waiting(None);
        if next.config.is_some() {
            let what = "that waits for its first probes is dropped: weir ends";
            self.events.warning("configuration", what);
        }
    }

    /// Shows in status and metrics whether something waits.
    pub(super) fn show_waiting(&self) {
        let waiting = self.next.as_ref().map(|next| {
            let left_ms = u64::try_from(next.left().as_millis()).unwrap_or(u64::MAX);
            let until_ms = monotonic_ms().saturating_add(left_ms);
            Waiting { snapshot: Arc::clone(&next.snapshot), until_ms }
        });
        self.observed.set_waiting(waiting);
    }

    fn tell_waiting(&mut self) {
        let is_starting = self.is_starting();
        let Some(next) = &mut self.next else { return };
        next.tell_at = Instant::now() + TELL_INTERVAL;
        let unknown = Pools(self.monitors.board().awaited(&next.snapshot));
        let left = Seconds(next.left());
        match is_starting {
            true => {
                let what = format_args!("waits for the first probes of {unknown}, {left} at most");
                self.events.info("weir", what);
            }
            false => {
                let what = format_args!(
                    "waits for the first probes of {unknown}, {left} at most; \
                     the one before is in force"
                );
                self.events.info("configuration", what);
            }
        }
    }

    fn tell_unknown(&self, unknown: &UnknownMembers, then: AfterFirstProbes, waited: Duration) {
        let subject = format_args!("pool {}", unknown.pool);
        let members = Few(&unknown.members);
        let what = match then {
            AfterFirstProbes::Serve => "they are tried until their probes fail",
            AfterFirstProbes::Refuse => "they get nothing before a probe has passed",
        };
        let what =
            format_args!("has members that answered no probe within {waited:?}: {members}; {what}");
        self.events.warning(subject, what);
    }

    /// Tells of pools without a usable member; where only the addresses of names have changed since `before`, of
    /// those alone that have others.
    fn tell_unusable(&self, unusable: &[Unusable], before: Option<&Arc<LiveTable>>) {
        for found in unusable {
            let has_same_members = before.is_some_and(|before| {
                let mut pools = before.snapshot.pools.iter();
                pools.any(|pool| pool.name == found.pool.name && pool.members == found.pool.members)
            });
            if !has_same_members {
                let subject = format_args!("pool {}", found.pool.name);
                self.events.warning(subject, format_args!("{found}"));
            }
        }
    }
}

/// A pool none of whose members takes requests, though the operator wants some to.
struct Unusable {
    pool: Arc<Pool>,
    /// Those members, and why.
    members: Vec<Arc<str>>,
}

fn unusable(table: &LiveTable, monitors: &Board) -> Vec<Unusable> {
    let mut found = Vec::new();
    for (pool, live) in table.snapshot.pools.iter().zip(&table.pools) {
        let members = pool.members.iter().zip(&live.members);
        let enabled: Vec<_> = members
            .filter(|(member, live)| administrative_state(member, live) == AdminState::Enabled)
            .collect();
        let is_wanted = pool.members.is_empty() || !enabled.is_empty();
        if !is_wanted || enabled.iter().any(|(_, live)| live.health() == Health::Up) {
            continue;
        }
        let why = |member: &Member| {
            let reports = monitors.of(&pool.name, &member.label);
            let failure = reports.into_iter().find_map(|report| report.last_failure);
            let failure = failure.as_deref().unwrap_or("no answer yet");
            format!("{}: {failure}", member.label).into()
        };
        let members = enabled.iter().map(|(member, _)| why(member)).collect();
        found.push(Unusable { pool: Arc::clone(pool), members });
    }
    found
}

/// `has no usable member: ...`.
impl fmt::Display for Unusable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.members.is_empty() {
            return formatter.write_str("has no member: it takes no requests");
        }
        let members = Few(&self.members);
        write!(
            formatter,
            "has no usable member: it takes no requests until a probe passes ({members})"
        )
    }
}

/// `; without a usable member: pool images, pool web`, or nothing.
struct Without<'a>(&'a [Unusable]);

impl fmt::Display for Without<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        let pools: Vec<Arc<str>> =
            self.0.iter().map(|found| format!("pool {}", found.pool.name).into()).collect();
        write!(formatter, "; without a usable member: {}", Few(&pools))
    }
}
