//! The state of the process for all views of the dashboard. It changes only with events.

use std::sync::atomic::Ordering::Relaxed;

use weir_api::dashboard::ProcessBrief;
use weir_api::process::ProcessHealth;

use crate::health::Judge;
use crate::observed_state::ObservedState;
use crate::problems::{problems, serving};
use crate::time::rfc3339;

/// Maximum number of listed problems.
const PROBLEMS_MAX: usize = 20;

/// The current summary.
pub(crate) fn brief(observed: &ObservedState, judge: &Judge) -> ProcessBrief {
    let mut problems = problems(observed, judge);
    let problems_count = problems.len();
    problems.truncate(PROBLEMS_MAX);
    ProcessBrief {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: rfc3339(observed.started_unix_ms),
        health: ProcessHealth::from(serving(observed, judge)),
        problems,
        problems_count,
        starting: observed.starting.load(Relaxed),
        draining: observed.draining.load(Relaxed),
    }
}
