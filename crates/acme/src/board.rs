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
    /// The time of the next renewal, in seconds since 1970; `None`: the authority has not issued a certificate.
    pub renewal: Option<(i64, Basis)>,
    /// The authority's window for that, if it has one.
    pub window: Option<Window>,
    /// The number of consecutive failed orders.
    pub failures: u32,
    /// The reason for the last failure.
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
    /// The last order failed.
    Failing,
    /// An order is due, and waits until other orders are done.
    Waiting,
}

impl State {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Ready, Self::Ordering, Self::Failing, Self::Waiting];

    /// The name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Ordering => "ordering",
            Self::Failing => "failing",
            Self::Waiting => "waiting",
        }
    }
}

/// The result of an order.
#[derive(Debug, Default)]
pub struct Counters {
    /// The authority issued a certificate.
    pub succeeded: AtomicU64,
    /// The order failed.
    pub failed: AtomicU64,
}

/// The reports of all sets of names, and counters of orders.
#[derive(Debug, Clone, Default)]
pub struct Board {
    reports: Arc<RwLock<BTreeMap<Vec<String>, Report>>>,
    /// Since the process started.
    pub counters: Arc<Counters>,
}

impl Board {
    /// The report about these names, in any order.
    pub fn report(&self, names: &[String]) -> Option<Report> {
        let reports = self.reports.read().unwrap_or_else(PoisonError::into_inner);
        reports.get(&sorted(names)).cloned()
    }

    /// The number of sets of names in each state.
    pub fn count(&self, state: State) -> usize {
        let reports = self.reports.read().unwrap_or_else(PoisonError::into_inner);
        reports.values().filter(|report| report.state == state).count()
    }

    /// The earliest planned renewal, in seconds since 1970; `None`: no authority has issued a certificate.
    pub fn earliest_renewal_unix_s(&self) -> Option<i64> {
        let reports = self.reports.read().unwrap_or_else(PoisonError::into_inner);
        reports.values().filter_map(|report| report.renewal).map(|(at_s, _)| at_s).min()
    }

    /// The names and reasons of failed orders.
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

/// The names, sorted, so that sets can be compared.
pub(super) fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}
