//! The state of the process for all views of the dashboard. It changes only with events.

use std::sync::atomic::Ordering::Relaxed;

use schemars::JsonSchema;
use serde::Serialize;

use crate::observed::Observed;
use crate::problems::problems;
use crate::time::rfc3339;

/// Maximum number of listed problems.
const PROBLEMS_MAX: usize = 20;

/// A summary of the process.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ProcessBrief")]
pub(crate) struct Brief {
    version: &'static str,
    started: String,
    /// The first problems of the process as a whole, as sentences.
    problems: Vec<String>,
    /// The number of all problems.
    problems_count: usize,
    starting: bool,
    draining: bool,
}

impl Brief {
    /// The current summary.
    pub fn of(observed: &Observed) -> Self {
        let mut problems = problems(observed);
        let problems_count = problems.len();
        problems.truncate(PROBLEMS_MAX);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            started: rfc3339(observed.started_unix_ms),
            problems,
            problems_count,
            starting: observed.starting.load(Relaxed),
            draining: observed.draining.load(Relaxed),
        }
    }
}
