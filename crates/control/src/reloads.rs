//! The results of reloads.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;
use weir_api::reload::{Reload, ReloadFailure, ReloadState};
use weir_config::parts::Change;
use weir_config::{Colour, Diagnostic, render_text};

use crate::findings::findings;
use crate::time::{rfc3339, unix_ms};

/// Maximum number of stored reports.
const REPORTS_MAX: usize = 32;

/// Maximum number of listed changes in a report.
const CHANGES_MAX: usize = 1_000;

/// Maximum number of findings in a report. The text has all of them.
const FINDINGS_MAX: usize = 100;

/// The results of reloads, and requests for reloads.
#[derive(Debug, Default)]
pub struct Reloads {
    /// The number of activated configurations.
    pub succeeded: AtomicU64,
    /// The number of refused configurations. The previous configuration stayed active.
    pub failed: AtomicU64,
    /// The time of the last activation, in milliseconds since 1970.
    pub last_success_unix_ms: AtomicU64,
    /// Whether the last reload was successful.
    pub last_succeeded: AtomicBool,
    /// Notified when a reload is requested.
    asked: Notify,
    /// Wakes tasks that wait for a result.
    reported: Notify,
    reports: Mutex<Reports>,
}

#[derive(Debug, Default)]
struct Reports {
    /// The number of reloads that have begun. The configuration of the startup does not count.
    begun: u64,
    /// The number of the latest request.
    asked: u64,
    kept: VecDeque<Reload>,
    last_failure: Option<ReloadFailure>,
}

impl Reloads {
    fn reports(&self) -> std::sync::MutexGuard<'_, Reports> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a reload. Returns its number. The file will be read after this call.
    pub fn ask(&self) -> u64 {
        let mut reports = self.reports();
        let number = reports.begun + 1;
        reports.asked = number;
        drop(reports);
        self.asked.notify_one();
        number
    }

    /// Waits until a reload is requested.
    pub async fn asked(&self) {
        self.asked.notified().await;
    }

    /// Records the start of a reload.
    pub fn begin(&self) {
        self.reports().begin();
    }

    /// Records warnings about the configuration that is read now.
    pub fn warn(&self, warnings: &[Diagnostic]) {
        let mut reports = self.reports();
        let mut kept = reports.kept.iter_mut().rev();
        if let Some(report) = kept.find(|report| report.state == ReloadState::Reading) {
            tell(report, warnings);
        }
    }

    /// Records that the new configuration waits for first probes. It replaces a configuration that was waiting.
    pub fn prepared(&self) {
        let mut reports = self.reports();
        for report in reports.kept.iter_mut().filter(|report| report.state == ReloadState::Waiting)
        {
            report.state = ReloadState::Refused;
            report.reason = Some("a later reload has taken its place".to_owned());
        }
        reports.advance(ReloadState::Reading, ReloadState::Waiting);
        drop(reports);
        self.reported.notify_waiters();
    }

    /// Records a successful reload, and what it leaves without effect.
    pub fn succeed(&self, changes: &[Change], mut without_effect: Vec<String>) {
        self.succeeded.fetch_add(1, Relaxed);
        self.last_success_unix_ms.store(unix_ms(), Relaxed);
        self.last_succeeded.store(true, Relaxed);
        if let Some(report) = self.reports().advance(ReloadState::Waiting, ReloadState::InForce) {
            report.changes = changes.iter().take(CHANGES_MAX).map(Change::to_string).collect();
            report.changes_omitted = changes.len().saturating_sub(CHANGES_MAX);
            without_effect.truncate(CHANGES_MAX);
            report.without_effect = without_effect;
        }
        self.reported.notify_waiters();
    }

    /// Records a refused reload.
    pub fn fail(&self, reason: &str, wrong: &[Diagnostic]) {
        self.failed.fetch_add(1, Relaxed);
        self.last_succeeded.store(false, Relaxed);
        let mut reports = self.reports();
        let failure = ReloadFailure { time: rfc3339(unix_ms()), reason: reason.to_owned() };
        reports.last_failure = Some(failure);
        if let Some(report) = reports.advance(ReloadState::Reading, ReloadState::Refused) {
            report.reason = Some(reason.to_owned());
            tell(report, wrong);
        }
        drop(reports);
        self.reported.notify_waiters();
    }

    /// Waits for the result of a reload; `None`: the reload was never requested, or its report was dropped.
    pub async fn result(&self, number: u64) -> Option<Reload> {
        loop {
            let reported = self.reported.notified();
            tokio::pin!(reported);
            // The registration comes before the check, so that no notification is missed.
            reported.as_mut().enable();
            let report = self.report(number)?;
            if report.state.is_final() {
                return Some(report);
            }
            reported.await;
        }
    }

    /// Records that unfinished reloads are refused because weir is shutting down.
    pub fn abandon(&self) {
        let mut reports = self.reports();
        if reports.asked > reports.begun {
            reports.begin();
        }
        for report in &mut reports.kept {
            if !report.state.is_final() {
                report.state = ReloadState::Refused;
                report.reason = Some("weir ends".to_owned());
            }
        }
        drop(reports);
        self.reported.notify_waiters();
    }

    /// The stored reports, newest last.
    pub fn reports_kept(&self) -> Vec<Reload> {
        self.reports().kept.iter().cloned().collect()
    }

    /// The report on a reload; `None`: the reload was never requested, or its report was dropped.
    pub fn report(&self, number: u64) -> Option<Reload> {
        let reports = self.reports();
        let kept = reports.kept.iter().find(|report| report.number == number).cloned();
        let is_about_to_begin = number == reports.begun + 1 && number == reports.asked;
        kept.or_else(|| is_about_to_begin.then(|| reading(number)))
    }

    /// The last refused reload; `None`: no reload was refused.
    pub fn last_failure(&self) -> Option<ReloadFailure> {
        self.reports().last_failure.clone()
    }
}

/// Adds findings to a report.
fn tell(report: &mut Reload, found: &[Diagnostic]) {
    report.diagnostics = render_text(found, Colour::Never);
    report.findings = findings(&found[..found.len().min(FINDINGS_MAX)]);
}

/// The report of a reload that begins.
fn reading(number: u64) -> Reload {
    Reload {
        number,
        state: ReloadState::Reading,
        reason: None,
        diagnostics: String::new(),
        findings: Vec::new(),
        changes: Vec::new(),
        changes_omitted: 0,
        without_effect: Vec::new(),
    }
}

impl Reports {
    fn begin(&mut self) {
        self.begun += 1;
        self.kept.push_back(reading(self.begun));
        if self.kept.len() > REPORTS_MAX {
            self.kept.pop_front();
        }
    }

    /// Changes the state of the latest report in state `from` to `to`.
    fn advance(&mut self, from: ReloadState, to: ReloadState) -> Option<&mut Reload> {
        let report = self.kept.iter_mut().rev().find(|report| report.state == from)?;
        report.state = to;
        Some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reload_has_its_report() {
        let reloads = Reloads::default();
        assert!(reloads.report(1).is_none(), "nobody has asked");
        let first = reloads.ask();
        assert_eq!(reloads.report(first).map(|it| it.state), Some(ReloadState::Reading));
        assert!(reloads.report(first + 1).is_none());
        reloads.begin();
        let second = reloads.ask();
        assert_eq!(second, first + 1, "the file may have been read already");
        reloads.fail("bad", &[]);
        let report = reloads.report(first).expect("a report");
        assert_eq!((report.state, report.reason.as_deref()), (ReloadState::Refused, Some("bad")));
        assert_eq!(reloads.last_failure().map(|it| it.reason).as_deref(), Some("bad"));
        reloads.begin();
        reloads.prepared();
        assert_eq!(reloads.report(second).map(|it| it.state), Some(ReloadState::Waiting));
        reloads.begin();
        reloads.prepared();
        let report = reloads.report(second).expect("a report");
        assert_eq!(report.reason.as_deref(), Some("a later reload has taken its place"));
        reloads.succeed(&[], vec!["it is gone".to_owned()]);
        let report = reloads.report(second + 1).expect("a report");
        assert_eq!(report.without_effect, ["it is gone"]);
        assert_eq!(reloads.report(second + 1).map(|it| it.state), Some(ReloadState::InForce));
        for _ in 0..2 * REPORTS_MAX {
            reloads.begin();
        }
        assert!(reloads.report(second).is_none());
        let last = reloads.ask();
        reloads.abandon();
        let report = reloads.report(last).expect("a report");
        assert_eq!(
            (report.state, report.reason.as_deref()),
            (ReloadState::Refused, Some("weir ends"))
        );
    }
}
