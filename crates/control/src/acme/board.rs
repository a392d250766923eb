//! The state of certificates by ACME, for status, metrics and commands.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};

use super::plan::{Basis, Window};

/// The state of one set of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The host of the authority's directory.
    pub authority: String,
    /// The current state.
    pub state: State,
    /// When the certificate in use is renewed, in seconds since 1970; `None`: there is none of the authority.
    pub renewal: Option<(i64, Basis)>,
    /// The authority's window for that, if it has one.
    pub window: Option<Window>,
    /// Orders in a row that have failed.
    pub failures: u32,
    /// Why the last one has failed.
    pub reason: Option<String>,
    /// The earliest time of the next order, in seconds since 1970, if one is due.
    pub next_try_unix_s: Option<i64>,
}

/// The current state of a certificate's renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The authority's certificate is in use.
    Ready,
    /// An order is under way.
    Ordering,
    /// The last order has failed.
    Failing,
    /// An order is due, and waits for others.
    Waiting,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ready, Self::Ordering, Self::Failing, Self::Waiting];

    /// Its word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Ordering => "ordering",
            Self::Failing => "failing",
            Self::Waiting => "waiting",
        }
    }
}

/// The results of orders.
#[derive(Debug, Default)]
pub struct Counters {
    /// A certificate came.
    pub succeeded: AtomicU64,
    /// None came.
    pub failed: AtomicU64,
}

/// The reports of all sets of names, and counters.
#[derive(Debug, Clone, Default)]
pub struct Board {
    reports: Arc<RwLock<BTreeMap<Vec<String>, Report>>>,
    /// Since the process began.
    pub counters: Arc<Counters>,
}

impl Board {
    /// The report about these names, in any order.
    pub fn report(&self, names: &[String]) -> Option<Report> {
        let reports = self.reports.read().unwrap_or_else(PoisonError::into_inner);
        reports.get(&sorted(names)).cloned()
    }

    /// How many sets of names are in a state.
    pub fn count(&self, state: State) -> usize {
        let reports = self.reports.read().unwrap_or_else(PoisonError::into_inner);
        reports.values().filter(|report| report.state == state).count()
    }

    /// The names and reasons of orders that have failed.
    pub fn failing(&self) -> Vec<(Vec<String>, String)> {
        let reports = self.reports.read().unwrap_or_else(PoisonError::into_inner);
        let failing = reports.iter().filter(|(_, report)| report.failures > 0);
        failing
            .filter_map(|(names, report)| Some((names.clone(), report.reason.clone()?)))
            .collect()
    }

    pub(super) fn set(&self, names: &[String], report: Report) {
        let mut reports = self.reports.write().unwrap_or_else(PoisonError::into_inner);
        reports.insert(sorted(names), report);
    }

    pub(super) fn forget(&self, names: &[String]) {
        self.reports.write().unwrap_or_else(PoisonError::into_inner).remove(&sorted(names));
    }
}

/// Names in the order by which sets are compared.
pub(super) fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}
