//! Results of transactions.

use std::collections::{BTreeSet, VecDeque};

use weir_api::changes::TransactionState;
use weir_config::Diagnostic;
use weir_config::parts::Change;

use crate::last_members::LeftAlone;

/// Maximum number of stored reports. It exceeds the capacity of the queue.
pub const REPORTS_MAX: usize = 32_768;

/// Maximum number of changed parts in a report.
const CHANGES_MAX: usize = 1_000;

/// Maximum number of diagnostics in a report.
const DIAGNOSTICS_MAX: usize = 50;

/// The result of a transaction.
#[derive(Debug, Clone)]
pub struct Report {
    /// The number of the transaction.
    pub number: u64,
    /// The state of the transaction.
    pub state: TransactionState,
    /// The version that the transaction created; for one that changes nothing, the newest.
    pub version: Option<u64>,
    /// The transaction changes nothing of its version.
    pub is_unchanged: bool,
    /// The reason for a refusal.
    pub reason: Option<String>,
    /// The transaction is refused because it takes the last member of a pool, and does not say that this is meant.
    pub needs_last: bool,
    /// Errors, and warnings about the overlay.
    pub diagnostics: Vec<Diagnostic>,
    /// Changed parts of the configuration: `changed pools.web`.
    pub changes: Vec<String>,
    /// The number of changes that are not listed.
    pub changes_omitted: usize,
}

impl Report {
    /// Refuses the transaction because weir shuts down.
    pub(super) fn refuse_at_end(&mut self) {
        let reason = match self.state {
            TransactionState::Waiting => "weir ends; the version takes effect at the next start",
            _ => "weir ends",
        };
        self.state = TransactionState::Refused;
        self.reason = Some(reason.to_owned());
    }

    /// Refuses the transaction because it takes the last member of these pools.
    pub(super) fn refuse_last(&mut self, pools: &LeftAlone) {
        self.state = TransactionState::Refused;
        self.version = None;
        self.reason = Some(pools.to_string());
        self.needs_last = true;
    }

    /// The transaction changes nothing of this version. The report is final when the version is in force.
    pub(super) fn keep(&mut self, version: u64, is_in_force: bool, diagnostics: Vec<Diagnostic>) {
        self.state =
            if is_in_force { TransactionState::Unchanged } else { TransactionState::Waiting };
        self.is_unchanged = true;
        self.version = Some(version);
        self.diagnose(diagnostics);
    }

    /// Sets the changed parts, up to [`CHANGES_MAX`].
    pub(super) fn tell(&mut self, changes: &[Change]) {
        self.changes = changes.iter().take(CHANGES_MAX).map(Change::to_string).collect();
        self.changes_omitted = changes.len().saturating_sub(CHANGES_MAX);
    }

    /// Sets the diagnostics, up to [`DIAGNOSTICS_MAX`].
    pub(super) fn diagnose(&mut self, mut diagnostics: Vec<Diagnostic>) {
        diagnostics.truncate(DIAGNOSTICS_MAX);
        self.diagnostics = diagnostics;
    }
}

/// The latest reports, with consecutive numbers.
#[derive(Debug, Default)]
pub(super) struct Reports {
    kept: VecDeque<Report>,
    /// The number of the newest report.
    newest: u64,
    /// The reports on stored versions that are not in force yet, by their numbers.
    waiting: BTreeSet<u64>,
}

impl Reports {
    /// Adds a report on a new transaction. Returns its number.
    pub fn add(&mut self) -> u64 {
        self.newest += 1;
        self.kept.push_back(Report {
            number: self.newest,
            state: TransactionState::Checking,
            version: None,
            is_unchanged: false,
            reason: None,
            needs_last: false,
            diagnostics: Vec::new(),
            changes: Vec::new(),
            changes_omitted: 0,
        });
        if self.kept.len() > REPORTS_MAX {
            self.kept.pop_front();
        }
        self.newest
    }

    pub fn get(&self, number: u64) -> Option<&Report> {
        self.kept.get(self.index(number)?)
    }

    fn index(&self, number: u64) -> Option<usize> {
        let first = self.kept.front()?.number;
        usize::try_from(number.checked_sub(first)?).ok()
    }

    /// Changes a report, if it is kept. Returns whether it is final then.
    pub fn update(&mut self, number: u64, update: impl FnOnce(&mut Report)) -> bool {
        let index = self.index(number);
        let Some(report) = index.and_then(|index| self.kept.get_mut(index)) else { return false };
        update(report);
        match report.state {
            TransactionState::Waiting => self.waiting.insert(number),
            _ => self.waiting.remove(&number),
        };
        report.state.is_final()
    }

    /// Changes the reports on stored versions that are not in force yet. The cost is that of these reports.
    pub fn update_waiting(&mut self, mut update: impl FnMut(&mut Report)) {
        for number in std::mem::take(&mut self.waiting) {
            self.update(number, |report| {
                if report.state == TransactionState::Waiting {
                    update(report);
                }
            });
        }
    }

    pub fn all(&mut self) -> impl Iterator<Item = &mut Report> {
        self.kept.iter_mut()
    }
}
