//! Options of an inspection.

use std::sync::Arc;

use crate::body;
use crate::checks::Checks;

/// Default limit of a decoded body, in bytes.
const INFLATED_BYTES_MAX: u64 = 64 << 20;
/// Default limit of examined bytes.
const WORK_BYTES_MAX: u64 = 1 << 30;

/// The effect of a blocking verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Findings are only reported.
    Detect,
    /// It is reported, and the request is not sent to the member.
    Block,
}

/// Time limit of the rules for a request and its response.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimit {
    /// Limit in total.
    pub max_us: u64,
    /// The clock. It may advance while other requests are served; it should stand still while this thread is not
    /// running.
    pub now_us: fn() -> u64,
}

/// Options of a request's inspection.
#[derive(Debug, Clone)]
pub struct Options {
    /// The effect of a blocking verdict.
    pub mode: Mode,
    /// Limits of parsed arguments and bodies; for the limits set by rule files, see
    /// [`crate::plan::FileSettings::limits`].
    pub limits: body::Limits,
    /// Maximum decoded bytes of an encoded body (Content-Encoding).
    pub inflated_bytes_max: u64,
    /// Maximum bytes examined, counted once for each examination.
    pub work_bytes_max: u64,
    /// Time limit of the rules; `None`: unlimited.
    pub time: Option<TimeLimit>,
    /// Checks without rules; `None`: no checks.
    pub checks: Option<Arc<Checks>>,
    /// Whether the received body is kept for recording.
    pub keeps_body: bool,
}

impl Options {
    /// Defaults, for a virtual server without its own settings.
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
