//! Results of transactions.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use weir_config::parts::Change;
use weir_config::{Diagnostic, render_json};

use crate::last_members::LeftAlone;

/// Maximum number of stored reports. It exceeds the capacity of the queue.
pub const REPORTS_MAX: usize = 32_768;

/// Maximum number of changed parts in a report.
const CHANGES_MAX: usize = 1_000;

/// Maximum number of diagnostics in a report.
const DIAGNOSTICS_MAX: usize = 50;

/// The result of a transaction.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The number of the transaction.
    pub number: u64,
    /// The state of the transaction.
    pub state: State,
    /// The version that the transaction created; for one that changes nothing, the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The transaction changes nothing of its version.
    #[serde(skip)]
    pub is_unchanged: bool,
    /// The reason for a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The transaction is refused because it takes the last member of a pool, and does not say that this is meant.
    #[serde(skip)]
    pub needs_last: bool,
    /// Errors, and warnings about the overlay.
    #[serde(serialize_with = "as_json")]
    pub diagnostics: Vec<Diagnostic>,
    /// Changed parts of the configuration: `changed pools.web`.
    pub changes: Vec<String>,
    /// The number of changes that are not listed.
    pub changes_omitted: usize,
}

/// The state of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TransactionState")]
pub enum State {
    /// Queued or being checked.
    Checking,
    /// Stored; waiting for the first probes of members.
    Waiting,
    /// In force.
    InForce,
    /// In force before the request: it made no version.
    Unchanged,
    /// Confirmed, or checked without errors in a dry run.
    Done,
    /// Refused; nothing has changed.
    Refused,
}

impl State {
    /// Whether the state is final.
    pub fn is_final(self) -> bool {
        matches!(self, Self::InForce | Self::Unchanged | Self::Done | Self::Refused)
    }
}

impl Report {
    /// Refuses the transaction because weir shuts down.
    pub(super) fn refuse_at_end(&mut self) {
        let reason = match self.state {
            State::Waiting => "weir ends; the version takes effect at the next start",
            _ => "weir ends",
        };
        self.state = State::Refused;
        self.reason = Some(reason.to_owned());
    }

    /// Refuses the transaction because it takes the last member of these pools.
    pub(super) fn refuse_last(&mut self, pools: &LeftAlone) {
        self.state = State::Refused;
        self.version = None;
        self.reason = Some(pools.to_string());
        self.needs_last = true;
    }

    /// The transaction changes nothing of this version. The report is final when the version is in force.
    pub(super) fn keep(&mut self, version: u64, is_in_force: bool, diagnostics: Vec<Diagnostic>) {
        self.state = if is_in_force { State::Unchanged } else { State::Waiting };
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

fn as_json<S: Serializer>(diagnostics: &[Diagnostic], serializer: S) -> Result<S::Ok, S::Error> {
    render_json(diagnostics)["diagnostics"].serialize(serializer)
}

/// The latest reports, with consecutive numbers.
#[derive(Debug, Default)]
pub(super) struct Reports {
    kept: VecDeque<Report>,
    /// The number of the newest report.
    newest: u64,
}

impl Reports {
    /// Adds a report on a new transaction. Returns its number.
    pub fn add(&mut self) -> u64 {
        self.newest += 1;
        self.kept.push_back(Report {
            number: self.newest,
            state: State::Checking,
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

    pub fn get(&mut self, number: u64) -> Option<&mut Report> {
        let first = self.kept.front()?.number;
        let index = usize::try_from(number.checked_sub(first)?).ok()?;
        self.kept.get_mut(index)
    }

    pub fn all(&mut self) -> impl Iterator<Item = &mut Report> {
        self.kept.iter_mut()
    }
}
