//! The state of the process for all views of the dashboard. It changes only with events.

use std::sync::atomic::Ordering::Relaxed;

use schemars::JsonSchema;
use serde::Serialize;

use crate::health::{Judge, Serving};
use crate::observed::Observed;
use crate::problems::{problems, serving};
use crate::time::rfc3339;

/// Maximum number of listed problems.
const PROBLEMS_MAX: usize = 20;

/// A summary of the process.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ProcessBrief")]
pub(crate) struct Brief {
    version: &'static str,
    started: String,
    /// `serving` (without a problem), `degraded`, `down` (no virtual server serves), `starting` or `draining`.
    health: Serving,
    /// The first problems, as sentences.
    problems: Vec<String>,
    /// The number of all problems.
    problems_count: usize,
    starting: bool,
    draining: bool,
}

impl Brief {
    /// The current summary.
    pub fn of(observed: &Observed, judge: &Judge) -> Self {
        let mut problems = problems(observed, judge);
        let problems_count = problems.len();
        problems.truncate(PROBLEMS_MAX);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            started: rfc3339(observed.started_unix_ms),
            health: serving(observed, judge),
            problems,
            problems_count,
            starting: observed.starting.load(Relaxed),
            draining: observed.draining.load(Relaxed),
        }
    }
}
