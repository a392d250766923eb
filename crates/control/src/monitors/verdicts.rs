//! The verdicts about one member, and events about them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use weir_core::admin_state::{AdminState, Admission};
use weir_core::monitor::{Health, MonitorState, ProbeOutcome, Schedule, Transition};
use weir_event_loop::{clock, random};
use weir_exchange::shared::live::LiveMember;
use weir_probe::{Failure, Probe, Subject};

use super::MonitorReport;
use crate::events::{Events, Level};
use crate::time::{monotonic_ms, unix_ms};

/// Maximum number of characters in the stored reason of a failure.
const REASON_LENGTH_MAX: usize = 200;

/// The results of one member's monitors.
#[derive(Debug)]
pub(super) struct MemberVerdicts {
    pub(super) subject: Subject,
    /// The live state of the member; `None`: the member is in no active table yet.
    live: Option<Arc<LiveMember>>,
    /// The verdicts of the monitors. Active ones come first, in the order of the file.
    monitors: Vec<MonitorVerdict>,
    /// The number of monitors that must pass.
    up_min: usize,
}

/// The result of one monitor.
#[derive(Debug)]
pub(super) struct MonitorVerdict {
    /// The id of the monitor, unique among all monitors that the member has ever had.
    pub(super) id: u64,
    standing: MonitorConfiguration,
    state: MonitorState,
    pub(super) report: MonitorReport,
    first: FirstResult,
    /// The member is tried without a result: the monitor counts as up until its first one.
    is_tried: bool,
    /// Whether the first probe is awaited.
    is_awaited: bool,
    /// Triggers the next probe at once.
    probe_now: Arc<Notify>,
}

/// The result of a monitor's first probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstResult {
    /// There is no result yet.
    Missing,
    /// All probes so far have failed.
    Failed,
    /// The monitor passes, or its first result does not matter, because the member has traffic or the wait is over.
    Settled,
}

/// The result of a probe.
pub(super) struct ProbeResult {
    pub(super) result: Result<ProbeOutcome, Failure>,
    /// Whether the probe was due by the schedule. A failure of an additional, earlier probe is ignored.
    pub(super) is_scheduled: bool,
}

/// The configuration that a monitor belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MonitorConfiguration {
    InForce,
    /// The monitor belongs to the next configuration, and does not affect an active member.
    Next,
}

/// The counters of a monitor, and its type.
#[derive(Debug)]
struct Counts {
    kind: &'static str,
    passes: u64,
    failures: u64,
}

impl MonitorVerdict {
    /// The verdict of a new monitor. A member with traffic keeps its traffic until enough probes fail.
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
            held_up_until_ms: None,
        };
        let first = if is_serving { FirstResult::Settled } else { FirstResult::Missing };
        Self {
            id: random::number(),
            standing: MonitorConfiguration::Next,
            state,
            report,
            first,
            is_tried: false,
            is_awaited: false,
            probe_now: Arc::default(),
        }
    }

    fn is_waited_for(&self) -> bool {
        self.is_awaited && self.first != FirstResult::Settled
    }

    fn is_without_result(&self) -> bool {
        self.is_awaited && self.first == FirstResult::Missing
    }

    /// What the monitor contributes to the member's health.
    fn health(&self) -> Health {
        if self.is_tried { Health::Up } else { self.state.health() }
    }

    /// Applies the result of a probe. Returns the change.
    fn take(
        &mut self,
        outcome: ProbeOutcome,
        is_scheduled: bool,
        schedule: &Schedule,
    ) -> Option<Transition> {
        let from = self.health();
        let was_tried = std::mem::take(&mut self.is_tried);
        let counts = is_scheduled || outcome != ProbeOutcome::Failed;
        let change =
            if counts { self.state.on_result(outcome, monotonic_ms(), schedule) } else { None };
        self.report.health = self.state.health();
        self.report.held_up_until_ms = self.state.held_up_until_ms(schedule);
        let to = self.state.health();
        if self.first != FirstResult::Settled {
            self.first = match to {
                Health::Up | Health::Draining => FirstResult::Settled,
                Health::Pending | Health::Down => FirstResult::Failed,
            };
        }
        if was_tried { Some(Transition { from, to }) } else { change }
    }

    fn counts(&self) -> Counts {
        let MonitorReport { kind, passes, failures, .. } = self.report;
        Counts { kind, passes, failures }
    }

    /// Makes a monitor active in place of the one with these counts, because the counters of metrics belong to the position.
    /// If the former monitor had another type, the labels differ and its counts are dropped.
    fn enter_into_force(&mut self, before: Option<&Counts>) {
        let own = match std::mem::replace(&mut self.standing, MonitorConfiguration::InForce) {
            MonitorConfiguration::Next => (self.report.passes, self.report.failures),
            MonitorConfiguration::InForce => (0, 0),
        };
        let before = before.filter(|before| before.kind == self.report.kind);
        let before = before.map_or((0, 0), |before| (before.passes, before.failures));
        (self.report.passes, self.report.failures) = (before.0 + own.0, before.1 + own.1);
    }
}

impl MemberVerdicts {
    /// The verdicts of a member without monitors.
    pub(super) fn new(subject: Subject) -> Self {
        Self { subject, live: None, monitors: Vec::new(), up_min: usize::MAX }
    }

    /// Whether the member is in the active table.
    pub(super) fn is_in_force(&self) -> bool {
        self.live.is_some()
    }

    /// The reports of active monitors, in the order of the file.
    pub(super) fn reports(&self) -> Vec<MonitorReport> {
        let in_force = self
            .monitors
            .iter()
            .filter(|verdict| verdict.standing == MonitorConfiguration::InForce);
        in_force.map(|verdict| verdict.report.clone()).collect()
    }

    /// Whether the first probe of a monitor is awaited.
    pub(super) fn is_awaited(&self) -> bool {
        self.monitors.iter().any(MonitorVerdict::is_waited_for)
    }

    /// Whether the member's state is unknown: an awaited monitor has no result, and no monitor has failed.
    pub(super) fn is_unknown(&self) -> bool {
        let has_failed = |verdict: &MonitorVerdict| {
            verdict.first == FirstResult::Failed || verdict.health() == Health::Down
        };
        self.monitors.iter().any(MonitorVerdict::is_without_result)
            && !self.monitors.iter().any(has_failed)
    }

    /// Whether the member gets requests although no probe has a result.
    pub(super) fn is_tried(&self) -> bool {
        self.monitors.iter().any(|verdict| verdict.is_tried)
    }

    /// Whether this monitor's probe is repeated soon.
    pub(super) fn is_repeated(&self, id: u64) -> bool {
        self.monitors.iter().any(|verdict| verdict.id == id && verdict.is_waited_for())
    }

    /// The ids in `ids` whose monitors have no result.
    pub(super) fn without_result(&self, ids: &[u64]) -> Vec<u64> {
        let of_them = self.monitors.iter().filter(|verdict| ids.contains(&verdict.id));
        let missing = of_them.filter(|verdict| verdict.first == FirstResult::Missing);
        missing.map(|verdict| verdict.id).collect()
    }

    /// Whether all probes so far of one of these monitors have failed.
    pub(super) fn have_first_failed(&self, ids: &[u64]) -> bool {
        let mut of_them = self.monitors.iter().filter(|verdict| ids.contains(&verdict.id));
        of_them.any(|verdict| verdict.first == FirstResult::Failed)
    }

    /// Whether the member accepts requests once these monitors are active, of which `up_min` must pass.
    pub(super) fn is_usable(&self, ids: &[u64], up_min: usize, configured: AdminState) -> bool {
        let of_them = self.monitors.iter().filter(|verdict| ids.contains(&verdict.id));
        let health = Health::of_monitors(of_them.map(MonitorVerdict::health), up_min);
        self.state(configured).admission(health) == Admission::All
    }

    /// The administrative state of the member: set at run time, or the one in the file.
    pub(super) fn state(&self, configured: AdminState) -> AdminState {
        self.live.as_ref().map_or(configured, |live| live.state(configured))
    }

    /// Waits for the first probes of exactly these monitors. Failed ones are probed again at once.
    pub(super) fn wait_for(&mut self, ids: &[u64]) {
        for verdict in &mut self.monitors {
            let was_awaited = verdict.is_awaited;
            verdict.is_awaited = ids.contains(&verdict.id);
            let has_failed = verdict.first == FirstResult::Failed;
            if has_failed && verdict.is_awaited && !was_awaited {
                verdict.probe_now.notify_one();
            }
        }
    }

    /// Sets the required number of passing monitors, unless the member is active.
    pub(super) fn prepare(&mut self, up_min: usize) {
        if !self.is_in_force() {
            self.up_min = up_min;
        }
    }

    /// Adds a monitor of the next configuration. Returns its id, and a trigger for its next probe.
    pub(super) fn add(&mut self, probe: &Probe) -> (u64, Arc<Notify>) {
        // A member that is only tried has nothing that a new monitor could trust.
        let live = self.live.as_ref().filter(|_| !self.is_tried());
        let member = live.map(|live| live.health());
        let verdict = MonitorVerdict::new(probe, member);
        let added = (verdict.id, Arc::clone(&verdict.probe_now));
        self.monitors.push(verdict);
        added
    }

    /// Removes a monitor of the next configuration. Returns false if the monitor is active.
    pub(super) fn forget_next(&mut self, id: u64) -> bool {
        let before = self.monitors.len();
        self.monitors.retain(|verdict| {
            verdict.id != id || verdict.standing == MonitorConfiguration::InForce
        });
        self.monitors.len() < before
    }

    /// Makes exactly these monitors active, in this order. Reports the member's health if it changes.
    pub(super) fn enter_into_force(
        &mut self,
        live: &Arc<LiveMember>,
        wanted: &[u64],
        up_min: usize,
        events: &Events,
    ) {
        let was_in_force = self.live.replace(Arc::clone(live)).is_some();
        self.up_min = up_min;
        let in_force =
            |verdict: &&MonitorVerdict| verdict.standing == MonitorConfiguration::InForce;
        let counts: Vec<Counts> =
            self.monitors.iter().filter(in_force).map(MonitorVerdict::counts).collect();
        let mut before = std::mem::take(&mut self.monitors);
        for (place, id) in wanted.iter().enumerate() {
            let found = before.iter().position(|verdict| verdict.id == *id);
            let Some(mut verdict) = found.map(|index| before.swap_remove(index)) else { continue };
            verdict.enter_into_force(counts.get(place));
            self.monitors.push(verdict);
        }
        let health = self.health();
        // The first results of a new member were reported already.
        if live.set_health(health, clock::now().now_ms())
            && was_in_force
            && !self.monitors.is_empty()
        {
            let what = format_args!("is {}: its monitors were changed", health.as_str());
            events.tell(level_of(health), &self.name(), &what);
        }
    }

    /// Ends the wait for all monitors. `may_try`: if no probe of the member has failed, monitors without a result count as
    /// up until their first one.
    pub(super) fn stop_waiting(&mut self, may_try: bool) {
        let is_tried = may_try && self.is_unknown();
        for verdict in &mut self.monitors {
            verdict.is_tried |= is_tried && verdict.is_without_result();
            verdict.first = FirstResult::Settled;
            verdict.is_awaited = false;
        }
        if let Some(live) = &self.live {
            live.set_health(self.health(), clock::now().now_ms());
        }
    }

    fn health(&self) -> Health {
        let shown = self.shown();
        let monitors = self.monitors.iter().filter(|verdict| verdict.standing == shown);
        Health::of_monitors(monitors.map(MonitorVerdict::health), self.up_min)
    }

    /// The standing of the monitors whose results are reported.
    fn shown(&self) -> MonitorConfiguration {
        if self.is_in_force() { MonitorConfiguration::InForce } else { MonitorConfiguration::Next }
    }

    fn name(&self) -> impl fmt::Display {
        fmt::from_fn(|formatter| {
            write!(formatter, "member {}/{}", self.subject.pool, self.subject.member)
        })
    }

    /// Records the result of a probe, sets the member's health, and reports changes. Returns the outcome; `None`: the
    /// monitor was removed.
    pub(super) fn take(
        &mut self,
        id: u64,
        probe: &Probe,
        probed: ProbeResult,
        events: &Events,
    ) -> Option<ProbeOutcome> {
        let schedule = &probe.monitor.schedule;
        let (before, shown) = (self.health(), self.shown());
        // A result that arrives after the removal of its monitor is ignored.
        let verdict = self.monitors.iter_mut().find(|verdict| verdict.id == id)?;
        let (outcome, failure) = judged(&probed.result, probe.monitor.is_reverse);
        let change = verdict.take(outcome, probed.is_scheduled, schedule);
        let report = &mut verdict.report;
        report.probed_unix_ms = Some(unix_ms());
        report.last_failure = failure;
        match report.last_failure {
            None => report.passes += 1,
            Some(_) => report.failures += 1,
        }
        let (reason, is_shown) = (report.last_failure.clone(), verdict.standing == shown);
        let Some(change) = change.filter(|_| is_shown) else { return Some(outcome) };
        let health = self.health();
        let changed = match &self.live {
            Some(live) => live.set_health(health, clock::now().now_ms()),
            None => health != before,
        };
        let several = self.monitors.iter().filter(|verdict| verdict.standing == shown).count() > 1;
        let told = Change { change, probe, reason, several, member: health, changed };
        events.tell(level_of(change.to), &self.name(), &told);
        Some(outcome)
    }
}

fn level_of(health: Health) -> Level {
    if health == Health::Up { Level::Info } else { Level::Warning }
}

/// The outcome of a probe, with the reason of a failure.
fn judged(
    result: &Result<ProbeOutcome, Failure>,
    is_reverse: bool,
) -> (ProbeOutcome, Option<String>) {
    const REVERSED: &str = "the probe passed, and the monitor is a reverse one";
    match (result, is_reverse) {
        (Ok(outcome), false) => (*outcome, None),
        (Err(failure), false) => (ProbeOutcome::Failed, Some(cut(failure.to_string()))),
        (Ok(outcome), true) => {
            let outcome = outcome.reversed();
            (outcome, (outcome == ProbeOutcome::Failed).then(|| REVERSED.to_owned()))
        }
        (Err(_), true) => (ProbeOutcome::Failed.reversed(), None),
    }
}

/// The event of a transition: `is down: connection refused (3 of 3)`.
struct Change<'a> {
    change: Transition,
    probe: &'a Probe,
    reason: Option<String>,
    /// Whether the member has other monitors.
    several: bool,
    /// The member's health by all monitors, and whether it changed.
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
            (Some(reason), _) if self.change.to == Health::Pending => {
                write!(formatter, ": {reason}, and no probe has passed yet")
            }
            (Some(reason), _) => {
                let fall = schedule.fall.max(1);
                write!(formatter, ": {reason} ({fall} of {fall})")
            }
            (None, _) if self.change.to == Health::Draining => {
                write!(formatter, ": its answer asks for it")
            }
            (None, Health::Down) if schedule.up_delay_ms > 0 => {
                let delay = Duration::from_millis(schedule.up_delay_ms);
                write!(formatter, ": passed for {delay:?}")
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
