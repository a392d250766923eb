//! Options of an inspection.

use std::sync::Arc;

use crate::body;
use crate::checks::Checks;

/// Default limit of a decoded body, in bytes.
const INFLATED_BYTES_MAX: u64 = 64 << 20;
/// Default limit of the work, in bytes.
const WORK_BYTES_MAX: u64 = 1 << 30;

/// The effect of a blocking verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Verdicts are only reported.
    Detect,
    /// Verdicts are reported, and blocked requests are not sent to the member.
    Block,
}

/// The time limit of the rules for a request and its response.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimit {
    /// The limit in microseconds, for all phases together.
    pub max_us: u64,
    /// The clock, in microseconds. It may advance while other requests are served. It should not advance while this thread
    /// is suspended.
    pub now_us: fn() -> u64,
}

/// The bounds of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Processor time in microseconds, measured with the clock of the time limit, if there is one.
    pub cpu_us_max: u64,
    /// Number of inspected bytes. Except in a first turn, at least one rule is evaluated, or one part of a body is ended.
    pub work_bytes_max: u64,
    /// An inspection of more bytes is not begun, and a first turn ends when they have become more: a single rule might take too
    /// long.
    pub input_bytes_max: usize,
}

impl Turn {
    /// No bounds.
    pub const WHOLE: Self =
        Self { cpu_us_max: u64::MAX, work_bytes_max: u64::MAX, input_bytes_max: usize::MAX };
}

/// Options of an inspection.
#[derive(Debug, Clone)]
pub struct Options {
    /// The effect of a blocking verdict.
    pub mode: Mode,
    /// The limits of arguments and bodies. For the limits in rule files, see [`crate::plan::FileSettings::limits`].
    pub limits: body::Limits,
    /// Maximum size of a decoded body (Content-Encoding), in bytes.
    pub inflated_bytes_max: u64,
    /// Maximum number of inspected bytes. A byte is counted once for each inspection.
    pub work_bytes_max: u64,
    /// The time limit of the rules; `None`: unlimited.
    pub time: Option<TimeLimit>,
    /// The checks without rules; `None`: there are none.
    pub checks: Option<Arc<Checks>>,
    /// Whether the received body is recorded.
    pub keeps_body: bool,
}

impl Options {
    /// The defaults, for a virtual server without settings of its own.
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
