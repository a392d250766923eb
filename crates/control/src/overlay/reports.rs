//! Results of transactions.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use weir_config::parts::Change;
use weir_config::{Diagnostic, render_json};

/// Reports of the last transactions that are kept: more than can wait.
pub const REPORTS_MAX: usize = 32_768;

/// Most changes of parts in a report.
const CHANGES_MAX: usize = 1_000;

/// Most diagnostics in a report.
const DIAGNOSTICS_MAX: usize = 50;

/// The result of a transaction.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Which it is.
    pub number: u64,
    /// How far it is.
    pub state: State,
    /// The version that it made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Mistakes, and warnings of the overlay.
    #[serde(serialize_with = "as_json")]
    pub diagnostics: Vec<Diagnostic>,
    /// Its changes: `changed pools.web`.
    pub changes: Vec<String>,
    /// Further changes that are not listed.
    pub changes_untold: usize,
}

/// How far a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TransactionState")]
pub enum State {
    /// It waits for others, or is being checked.
    Checking,
    /// Its version is stored, and waits for the first probes of members.
    Waiting,
    /// Its version is in force.
    InForce,
    /// It is confirmed, or was only tried: it is possible.
    Done,
    /// It is not possible, and nothing has changed.
    Refused,
}

impl State {
    /// Whether nothing will follow.
    pub fn is_final(self) -> bool {
        matches!(self, Self::InForce | Self::Done | Self::Refused)
    }
}

impl Report {
    /// It will not be in force before weir ends.
    pub(super) fn refuse_at_end(&mut self) {
        let reason = match self.state {
            State::Waiting => "weir ends; the version takes effect at the next start",
            _ => "weir ends",
        };
        self.state = State::Refused;
        self.reason = Some(reason.to_owned());
    }

    /// The changes of parts, as many as are told.
    pub(super) fn tell(&mut self, changes: &[Change]) {
        self.changes = changes.iter().take(CHANGES_MAX).map(Change::to_string).collect();
        self.changes_untold = changes.len().saturating_sub(CHANGES_MAX);
    }

    /// The diagnostics, as many as are told.
    pub(super) fn diagnose(&mut self, mut diagnostics: Vec<Diagnostic>) {
        diagnostics.truncate(DIAGNOSTICS_MAX);
        self.diagnostics = diagnostics;
    }
}

fn as_json<S: Serializer>(diagnostics: &[Diagnostic], serializer: S) -> Result<S::Ok, S::Error> {
    render_json(diagnostics)["diagnostics"].serialize(serializer)
}

/// The last reports, by their numbers, which have no gaps.
#[derive(Debug, Default)]
pub(super) struct Reports {
    kept: VecDeque<Report>,
    /// The number of the newest.
    newest: u64,
}

impl Reports {
    /// A further transaction; its number.
    pub fn add(&mut self) -> u64 {
        self.newest += 1;
        self.kept.push_back(Report {
            number: self.newest,
            state: State::Checking,
            version: None,
            reason: None,
            diagnostics: Vec::new(),
            changes: Vec::new(),
            changes_untold: 0,
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
