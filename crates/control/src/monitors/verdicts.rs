//! What the monitors of one member say, and what is told of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::Notify;
use weir_core::monitor::{Health, MonitorState, Outcome, Transition};
use weir_dataplane::live::LiveMember;

use super::MonitorReport;
use crate::events::{Events, Level};
use crate::probe::{Failure, Probe, Subject};
use crate::random::random;
use crate::time::unix_ms;

/// Characters of a failure's text that are kept and told.
const REASON_LENGTH_MAX: usize = 200;

/// What the monitors of one member say.
#[derive(Debug)]
pub(super) struct Verdicts {
    pub(super) subject: Subject,
    /// `None`: the member is in no table in force yet.
    live: Option<Arc<LiveMember>>,
    /// Those in force first, in the order of the file.
    monitors: Vec<Verdict>,
    /// How many of them must say that it is up.
    up_min: usize,
}

/// What one monitor says.
#[derive(Debug)]
pub(super) struct Verdict {
    /// Names it among the monitors that the member ever had.
    pub(super) id: u64,
    standing: Standing,
    state: MonitorState,
    pub(super) report: MonitorReport,
    first: FirstResult,
}

/// The first result of a monitor.
#[derive(Debug)]
enum FirstResult {
    /// It is not there, and nobody waits for it.
    Missing,
    /// It is not there, and is waited for.
    Awaited(#[expect(dead_code, reason = "what it is there for is its end")] Awaited),
    /// It is there, or does not matter: the member is trusted, or has been waited for long enough.
    Settled,
}

/// Whether what a monitor says counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    InForce,
    /// It is of what is put in force next.
    Next,
}

/// How many first results are waited for.
#[derive(Debug, Default)]
pub(super) struct FirstProbes {
    awaited: AtomicUsize,
    none_left: Notify,
}

/// One of them, for as long as it is there.
#[derive(Debug)]
struct Awaited(Arc<FirstProbes>);

impl FirstProbes {
    fn one_more(self: &Arc<Self>) -> Awaited {
        self.awaited.fetch_add(1, Relaxed);
        Awaited(Arc::clone(self))
    }

    /// Whether there is any.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited.load(Relaxed) > 0
    }

    /// Returns when there is none. One task at a time may wait.
    pub(super) async fn all_in(&self) {
        while self.is_awaited() {
            self.none_left.notified().await;
        }
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        if self.0.awaited.fetch_sub(1, Relaxed) == 1 {
            self.0.none_left.notify_one();
        }
    }
}

/// What a monitor has counted, and its type.
#[derive(Debug)]
struct Counts {
    kind: &'static str,
    passes: u64,
    failures: u64,
}

impl Verdict {
    /// Of a monitor that starts to probe. A member that takes traffic already keeps it until enough probes fail.
    fn new(probe: &Probe, member: Option<Health>) -> Self {
        let is_serving = matches!(member, Some(Health::Up | Health::Draining));
        let state = if is_serving { MonitorState::trusting() } else { MonitorState::new() };
        let report = MonitorReport {
            kind: probe.kind_name(),
            health: state.health(),
            passes: 0,
            failures: 0,
            probed_unix_ms: None,
            last_failure: None,
        };
        let first = if is_serving { FirstResult::Settled } else { FirstResult::Missing };
        Self { id: random(), standing: Standing::Next, state, report, first }
    }

    fn counts(&self) -> Counts {
        let MonitorReport { kind, passes, failures, .. } = self.report;
        Counts { kind, passes, failures }
    }

    /// Counts from now on, in the place of a monitor that counted so much: a counter of the metrics goes with the
    /// place. If that one was of another type, the labels are new.
    fn enter_into_force(&mut self, before: Option<&Counts>) {
        let own = match std::mem::replace(&mut self.standing, Standing::InForce) {
            Standing::Next => (self.report.passes, self.report.failures),
            Standing::InForce => (0, 0),
        };
        let before = before.filter(|before| before.kind == self.report.kind);
        let before = before.map_or((0, 0), |before| (before.passes, before.failures));
        (self.report.passes, self.report.failures) = (before.0 + own.0, before.1 + own.1);
    }
}

impl Verdicts {
    /// Of a member without monitors.
    pub(super) fn new(subject: Subject) -> Self {
        Self { subject, live: None, monitors: Vec::new(), up_min: usize::MAX }
    }

    /// Whether it is a member of the table in force.
    pub(super) fn is_in_force(&self) -> bool {
        self.live.is_some()
    }

    /// Of those in force, in the order of the file.
    pub(super) fn reports(&self) -> Vec<MonitorReport> {
        let in_force = self.monitors.iter().filter(|verdict| verdict.standing == Standing::InForce);
        in_force.map(|verdict| verdict.report.clone()).collect()
    }

    /// Whether the first result of one of them is waited for.
    pub(super) fn is_awaited(&self) -> bool {
        self.monitors.iter().any(|verdict| matches!(verdict.first, FirstResult::Awaited(_)))
    }

    /// Has the first results of these monitors waited for, as far as they are missing, and of no others.
    pub(super) fn wait_for(&mut self, ids: &[u64], first_probes: &Arc<FirstProbes>) {
        for verdict in &mut self.monitors {
            match (&verdict.first, ids.contains(&verdict.id)) {
                (FirstResult::Missing, true) => {
                    verdict.first = FirstResult::Awaited(first_probes.one_more());
                }
                (FirstResult::Awaited(_), false) => verdict.first = FirstResult::Missing,
                _ => {}
            }
        }
    }

    /// So many monitors must say that the member is up, once they are in force.
    pub(super) fn prepare(&mut self, up_min: usize) {
        if !self.is_in_force() {
            self.up_min = up_min;
        }
    }

    /// Adds a monitor that does not count yet; its id.
    pub(super) fn add(&mut self, probe: &Probe) -> u64 {
        let member = self.live.as_ref().map(|live| live.health());
        let verdict = Verdict::new(probe, member);
        let id = verdict.id;
        self.monitors.push(verdict);
        id
    }

    /// Forgets a monitor that does not count; returns whether it did not.
    pub(super) fn forget_next(&mut self, id: u64) -> bool {
        let before = self.monitors.len();
        self.monitors.retain(|verdict| verdict.id != id || verdict.standing == Standing::InForce);
        self.monitors.len() < before
    }

    /// From now on these count, in this order, and no others. Tells a member's health where that changes it.
    pub(super) fn enter_into_force(
        &mut self,
        live: &Arc<LiveMember>,
        wanted: &[u64],
        up_min: usize,
        events: &Events,
    ) {
        let was_in_force = self.live.replace(Arc::clone(live)).is_some();
        self.up_min = up_min;
        let in_force = |verdict: &&Verdict| verdict.standing == Standing::InForce;
        let counts: Vec<Counts> =
            self.monitors.iter().filter(in_force).map(Verdict::counts).collect();
        let mut before = std::mem::take(&mut self.monitors);
        for (place, id) in wanted.iter().enumerate() {
            let found = before.iter().position(|verdict| verdict.id == *id);
            let Some(mut verdict) = found.map(|index| before.swap_remove(index)) else { continue };
            verdict.enter_into_force(counts.get(place));
            self.monitors.push(verdict);
        }
        let health = self.health();
        // Of a member that is new, its probes have told already.
        if live.set_health(health) && was_in_force && !self.monitors.is_empty() {
            let what = format_args!("is {}: its monitors were changed", health.as_str());
            events.tell(level_of(health), &self.name(), &what);
        }
    }

    /// Waits for none of them any longer. If that is wanted, those whose first result was waited for say up until
    /// their probes fail.
    pub(super) fn stop_waiting(&mut self, is_trusted: bool) {
        for verdict in &mut self.monitors {
            let first = std::mem::replace(&mut verdict.first, FirstResult::Settled);
            if matches!(first, FirstResult::Awaited(_)) && is_trusted {
                verdict.state = MonitorState::trusting();
                verdict.report.health = verdict.state.health();
            }
        }
        if let Some(live) = &self.live {
            live.set_health(self.health());
        }
    }

    fn health(&self) -> Health {
        let shown = self.shown();
        let monitors = self.monitors.iter().filter(|verdict| verdict.standing == shown);
        Health::of_monitors(monitors.map(|verdict| verdict.state.health()), self.up_min)
    }

    /// Those whose results are told.
    fn shown(&self) -> Standing {
        if self.is_in_force() { Standing::InForce } else { Standing::Next }
    }

    fn name(&self) -> impl fmt::Display {
        fmt::from_fn(|formatter| {
            write!(formatter, "member {}/{}", self.subject.pool, self.subject.member)
        })
    }

    /// Takes a result, sets the member's health, tells what changed.
    pub(super) fn take(
        &mut self,
        id: u64,
        probe: &Probe,
        result: Result<Outcome, Failure>,
        events: &Events,
    ) {
        let schedule = &probe.monitor.schedule;
        let (before, shown) = (self.health(), self.shown());
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
        let (reason, is_shown) = (report.last_failure.clone(), verdict.standing == shown);
        // Whoever waits for it hears of it when this is done.
        let _first = std::mem::replace(&mut verdict.first, FirstResult::Settled);
        let Some(change) = change.filter(|_| is_shown) else { return };
        let health = self.health();
        let changed = match &self.live {
            Some(live) => live.set_health(health),
            None => health != before,
        };
        let several = self.monitors.iter().filter(|verdict| verdict.standing == shown).count() > 1;
        let told = Change { change, probe, reason, several, member: health, changed };
        events.tell(level_of(change.to), &self.name(), &told);
    }
}

fn level_of(health: Health) -> Level {
    if health == Health::Up { Level::Info } else { Level::Warning }
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

fn cut(text: String) -> String {
    if text.chars().nth(REASON_LENGTH_MAX).is_none() {
        return text;
    }
    text.chars().take(REASON_LENGTH_MAX).chain(['…']).collect()
}
