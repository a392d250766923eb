//! What holds for an inspection.

use std::sync::Arc;

use crate::body;
use crate::checks::Checks;

/// Most bytes that an encoded body may become, where nothing is said of it.
const INFLATED_BYTES_MAX: u64 = 64 << 20;
/// Most bytes that are looked at, where nothing is said of it.
const WORK_BYTES_MAX: u64 = 1 << 30;

/// What becomes of what rules find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is told.
    Detect,
    /// It is told, and the request is kept from the member.
    Block,
}

/// How long rules may take for a request and its response.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimit {
    /// In all.
    pub max_us: u64,
    /// The clock: it may run on while others are served, and should stand while this thread does not run.
    pub now_us: fn() -> u64,
}

/// What holds for a request's inspection.
#[derive(Debug, Clone)]
pub struct Options {
    /// What becomes of what rules find.
    pub mode: Mode,
    /// How much of arguments and bodies is taken apart; what rule files say of it is in [`crate::plan::FileSettings::limits`].
    pub limits: body::Limits,
    /// Most bytes that an encoded body (Content-Encoding) may become.
    pub inflated_bytes_max: u64,
    /// Most bytes that are looked at, each counted as often as it is.
    pub work_bytes_max: u64,
    /// How long rules may take; `None`: as long as they do.
    pub time: Option<TimeLimit>,
    /// What is looked at without rules; `None`: nothing.
    pub checks: Option<Arc<Checks>>,
    /// Whether the body is kept as it came, to be recorded.
    pub keeps_body: bool,
}

impl Options {
    /// Those of a virtual server that says nothing of them.
    pub fn new(mode: Mode) -> Self {
        let limits = body::Limits::DEFAULT;
        Self {
            mode,
            limits,
            inflated_bytes_max: INFLATED_BYTES_MAX,
            work_bytes_max: WORK_BYTES_MAX,
            time: None,
            checks: None,
            keeps_body: false,
        }
    }
}
