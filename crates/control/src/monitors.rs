//! The monitors: one task per (pool, member, monitor), each with its own state.
//!
//! A reload hands in the new live table. A monitor whose probe and schedule are unchanged keeps its
//! task and its state; one that is gone stops. A monitor that is new on a member which already takes
//! traffic starts by trusting it, so that a reload never takes a healthy member out of service. Counts of
//! probes belong to neither: they stay with the place and type of the monitor, which are its labels in
//! the metrics, so that a counter only grows.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;
use weir_config::snapshot::Address;
use weir_core::monitor::{Health, MonitorState, Outcome, Transition};
use weir_dataplane::live::{LiveMember, LiveTable};

use crate::events::{Events, Level};
use crate::probe::{Failure, Probe, Subject, TlsClients};
use crate::random::random;
use crate::time::{monotonic_ms, unix_ms};

/// Events that this host cannot probe come at most this often.
const LOCAL_TROUBLE_INTERVAL: Duration = Duration::from_secs(60);

/// Characters of a failure's text that are kept and told.
const REASON_LENGTH_MAX: usize = 200;

/// All monitors of the configuration in force.
#[derive(Debug)]
pub struct Monitors {
    members: HashMap<(Arc<str>, Address), Watched>,
    shared: Arc<Shared>,
    board: Board,
}

/// What the monitors say, for metrics and status. Clones show the same.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<Mutex<VerdictsByMember>>);

/// By pool and member label.
type VerdictsByMember = HashMap<(Arc<str>, Arc<str>), Arc<Mutex<Verdicts>>>;

/// What one monitor of one member says.
#[derive(Debug, Clone)]
pub struct MonitorReport {
    /// Its type in the file.
    pub kind: &'static str,
    /// Its own verdict; the member is up when enough of them are.
    pub health: Health,
    /// Probes that passed.
    pub passes: u64,
    /// Probes that failed.
    pub failures: u64,
    /// When the last probe ended, in milliseconds since 1970; `None` before the first.
    pub probed_unix_ms: Option<u64>,
    /// Why the last probe failed, if it did.
    pub last_failure: Option<String>,
}

impl Board {
    /// The reports of one member, in the order of its monitors; empty if it has none.
    pub fn of(&self, pool: &Arc<str>, member: &Arc<str>) -> Vec<MonitorReport> {
        let members = lock(&self.0);
        let verdicts = members.get(&(Arc::clone(pool), Arc::clone(member)));
        verdicts.map_or_else(Vec::new, |verdicts| {
            lock(verdicts).monitors.iter().map(|verdict| verdict.report.clone()).collect()
        })
    }
}

/// What all probe tasks use.
#[derive(Debug)]
struct Shared {
    tls: TlsClients,
    events: Events,
    local_trouble_told: Mutex<Option<Instant>>,
}

/// A member and the tasks that probe it.
#[derive(Debug)]
struct Watched {
    verdicts: Arc<Mutex<Verdicts>>,
    tasks: Vec<ProbeTask>,
}

/// A running task; it ends when this is dropped.
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

/// What the monitors of one member say.
#[derive(Debug)]
struct Verdicts {
    live: Arc<LiveMember>,
    monitors: Vec<Verdict>,
    /// How many of them must say that it is up.
    up_min: usize,
}

#[derive(Debug)]
struct Verdict {
    /// Names it among the monitors that the member ever had.
    id: u64,
    state: MonitorState,
    report: MonitorReport,
}

/// What a monitor has counted, and its type.
#[derive(Debug)]
struct Counts {
    kind: &'static str,
    passes: u64,
    failures: u64,
}

impl Monitors {
    /// No monitor yet.
    pub fn new(events: Events) -> Self {
        let shared =
            Shared { tls: TlsClients::new(), events, local_trouble_told: Mutex::new(None) };
        Self { members: HashMap::new(), shared: Arc::new(shared), board: Board::default() }
    }

    /// What the monitors say.
    pub fn board(&self) -> Board {
        self.board.clone()
    }

    /// Watches the members of `table` from now on. Must be called within a tokio runtime.
    pub fn apply(&mut self, table: &LiveTable) {
        let mut previous = std::mem::take(&mut self.members);
        for (pool, live_pool) in table.snapshot.pools.iter().zip(&table.pools) {
            for (member, live) in pool.members.iter().zip(&live_pool.members) {
                let key = (Arc::clone(&pool.name), member.address.clone());
                let mut watched = previous.remove(&key).unwrap_or_else(|| Watched::new(live));
                let probe = |monitor| {
                    let subject =
                        Subject { pool: Arc::clone(&pool.name), member: Arc::clone(&live.label) };
                    let name = member.name.as_ref();
                    let proxy_protocol = pool.proxy_protocol;
                    Probe::new(&member.address, name, pool.source, subject, proxy_protocol, monitor)
                };
                let probes = pool.monitors.iter().map(probe).collect();
                watched.update(live, probes, pool.monitors_min.into(), &self.shared);
                self.members.insert(key, watched);
            }
        }
        *lock(&self.board.0) = self
            .members
            .values()
            .map(|watched| {
                let live = Arc::clone(&lock(&watched.verdicts).live);
                (
                    (Arc::clone(&live.pool.name), Arc::clone(&live.label)),
                    Arc::clone(&watched.verdicts),
                )
            })
            .collect();
    }

    /// Probe tasks that run.
    pub fn running(&self) -> usize {
        self.members.values().map(|watched| watched.tasks.len()).sum()
    }
}

impl Watched {
    fn new(live: &Arc<LiveMember>) -> Self {
        let verdicts =
            Verdicts { live: Arc::clone(live), monitors: Vec::new(), up_min: usize::MAX };
        Self { verdicts: Arc::new(Mutex::new(verdicts)), tasks: Vec::new() }
    }

    /// Keeps the tasks whose probe is wanted, starts those that are missing, stops the others.
    fn update(
        &mut self,
        live: &Arc<LiveMember>,
        wanted: Vec<Probe>,
        up_min: usize,
        shared: &Arc<Shared>,
    ) {
        let mut verdicts = lock(&self.verdicts);
        verdicts.live = Arc::clone(live);
        verdicts.up_min = up_min;
        let counts: Vec<Counts> = verdicts.monitors.iter().map(Verdict::counts).collect();
        let mut old_tasks = std::mem::take(&mut self.tasks);
        let mut old_verdicts = std::mem::take(&mut verdicts.monitors);
        for probe in wanted {
            if let Some(index) = old_tasks.iter().position(|task| task.probe == probe) {
                let task = old_tasks.swap_remove(index);
                let kept = old_verdicts.iter().position(|verdict| verdict.id == task.verdict);
                verdicts.monitors.extend(kept.map(|index| old_verdicts.swap_remove(index)));
                self.tasks.push(task);
                continue;
            }
            let verdict = Verdict::new(&probe, live.health());
            let id = verdict.id;
            verdicts.monitors.push(verdict);
            let work = watch(probe.clone(), id, Arc::clone(&self.verdicts), Arc::clone(shared));
            self.tasks.push(ProbeTask { probe, verdict: id, handle: tokio::spawn(work) });
        }
        for (place, verdict) in verdicts.monitors.iter_mut().enumerate() {
            verdict.count_on_from(counts.get(place));
        }
        live.set_health(verdicts.health());
    }
}

impl Verdict {
    fn new(probe: &Probe, member: Health) -> Self {
        let state = match member {
            Health::Up | Health::Draining => MonitorState::trusting(),
            Health::Pending | Health::Down => MonitorState::new(),
        };
        let report = MonitorReport {
            kind: probe.kind_name(),
            health: state.health(),
            passes: 0,
            failures: 0,
            probed_unix_ms: None,
            last_failure: None,
        };
        Self { id: random(), state, report }
    }

    fn counts(&self) -> Counts {
        let MonitorReport { kind, passes, failures, .. } = self.report;
        Counts { kind, passes, failures }
    }

    /// Goes on with the counts of the monitor that had its place; if that was of another type, the
    /// labels are new, and it counts from 0.
    fn count_on_from(&mut self, before: Option<&Counts>) {
        let before = before.filter(|before| before.kind == self.report.kind);
        (self.report.passes, self.report.failures) =
            before.map_or((0, 0), |before| (before.passes, before.failures));
    }
}

/// One monitor of one member, for ever.
async fn watch(probe: Probe, id: u64, verdicts: Arc<Mutex<Verdicts>>, shared: Arc<Shared>) {
    let schedule = probe.monitor.schedule;
    let mut at_ms = schedule.first_probe_at(monotonic_ms(), random());
    loop {
        tokio::time::sleep(Duration::from_millis(at_ms.saturating_sub(monotonic_ms()))).await;
        let started_ms = monotonic_ms();
        match probe.run(&shared.tls).await {
            Err(failure) if !failure.is_conclusive() => shared.tell_local_trouble(&failure),
            result => lock(&verdicts).take(id, &probe, result, &shared.events),
        }
        at_ms = schedule.next_probe_at(started_ms, monotonic_ms(), random());
    }
}

/// What the result of a probe says of the member, and why if it speaks against it.
fn judged(result: Result<Outcome, Failure>, is_reverse: bool) -> (Outcome, Option<String>) {
    const REVERSED: &str = "the probe passed, and the monitor is a reverse one";
    match (result, is_reverse) {
        (Ok(outcome), false) => (outcome, None),
        (Err(failure), false) => (Outcome::Failed, Some(cut(failure.to_string()))),
        (Ok(outcome), true) => {
            let outcome = outcome.reversed();
            (outcome, (outcome == Outcome::Failed).then(|| REVERSED.to_owned()))
        }
        (Err(_), true) => (Outcome::Failed.reversed(), None),
    }
}

impl Verdicts {
    fn health(&self) -> Health {
        let monitors = self.monitors.iter().map(|verdict| verdict.state.health());
        Health::of_monitors(monitors, self.up_min)
    }

    /// Takes a result, sets the member's health, tells what changed.
    fn take(&mut self, id: u64, probe: &Probe, result: Result<Outcome, Failure>, events: &Events) {
        let schedule = &probe.monitor.schedule;
        // A result that comes after its monitor has gone counts for nothing.
        let Some(verdict) = self.monitors.iter_mut().find(|verdict| verdict.id == id) else {
            return;
        };
        let (outcome, failure) = judged(result, probe.monitor.is_reverse);
        let change = verdict.state.on_result(outcome, schedule);
        let report = &mut verdict.report;
        report.health = verdict.state.health();
        report.probed_unix_ms = Some(unix_ms());
        report.last_failure = failure;
        match report.last_failure {
            None => report.passes += 1,
            Some(_) => report.failures += 1,
        }
        let Some(change) = change else { return };
        let reason = report.last_failure.clone();
        let health = self.health();
        let changed = self.live.set_health(health);
        let several = self.monitors.len() > 1;
        let told = Change { change, probe, reason, several, member: health, changed };
        let level = if change.to == Health::Up { Level::Info } else { Level::Warning };
        let subject = format_args!("member {}/{}", self.live.pool.name, self.live.label);
        events.tell(level, &subject, &told);
    }
}

/// What is told of a transition: `is down: connection refused (3 of 3)`.
struct Change<'a> {
    change: Transition,
    probe: &'a Probe,
    reason: Option<String>,
    /// The member has other monitors.
    several: bool,
    /// What all monitors say together, and whether that is news.
    member: Health,
    changed: bool,
}

impl fmt::Display for Change<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.changed { "is" } else { "stays" };
        write!(formatter, "{verb} {}", self.member.as_str())?;
        if self.several {
            write!(
                formatter,
                ": {} monitor is {}",
                self.probe.kind_name(),
                self.change.to.as_str()
            )?;
        }
        let schedule = &self.probe.monitor.schedule;
        match (&self.reason, self.change.from) {
            (Some(reason), _) => {
                let fall = schedule.fall.max(1);
                write!(formatter, ": {reason} ({fall} of {fall})")
            }
            (None, _) if self.change.to == Health::Draining => {
                write!(formatter, ": its answer asks for it")
            }
            (None, Health::Down) => {
                let rise = schedule.rise.max(1);
                write!(formatter, ": passed ({rise} of {rise})")
            }
            (None, _) => write!(formatter, ": passed"),
        }
    }
}

impl Shared {
    fn tell_local_trouble(&self, failure: &Failure) {
        let mut told = lock(&self.local_trouble_told);
        if told.is_none_or(|told| told.elapsed() >= LOCAL_TROUBLE_INTERVAL) {
            *told = Some(Instant::now());
            self.events.error("monitors", format_args!("keep their verdicts: {failure}"));
        }
    }
}

fn cut(text: String) -> String {
    if text.chars().nth(REASON_LENGTH_MAX).is_none() {
        return text;
    }
    text.chars().take(REASON_LENGTH_MAX).chain(['…']).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
