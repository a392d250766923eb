//! Results of an inspection.

use crate::checks::Check;

/// The verdict on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The request goes on.
    Pass,
    /// The client gets a response with this status.
    Deny {
        /// The status.
        status: u16,
        /// The rule's id.
        rule: u64,
    },
    /// The connection is closed.
    Drop {
        /// The rule's id.
        rule: u64,
    },
    /// The client is redirected.
    Redirect {
        /// The target.
        to: Vec<u8>,
        /// The status.
        status: u16,
        /// The rule's id.
        rule: u64,
    },
    /// A check without rules blocks the request; the client gets this status.
    Refused {
        /// The check.
        check: Check,
        /// The status.
        status: u16,
    },
    /// The request could not be judged, because it exceeded a limit.
    Exceeded(Limit),
}

/// Limits that end the judging of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Work: the examined bytes exceed the limit.
    Work,
    /// Time: the rules took longer than the limit.
    Time,
    /// Rules created more variables than the limit.
    Variables,
    /// The request has more arguments than the limit.
    Arguments,
    /// A pattern took too many steps, or a pattern built for a request could not be compiled.
    Pattern,
    /// The body could not be read: it is malformed, or exceeds a limit of its parser.
    Body,
    /// The body is longer than the limit.
    BodyLength,
    /// The memory for bodies of all requests was used up.
    Memory,
}

impl Limit {
    /// The name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Time => "time",
            Self::Variables => "variables",
            Self::Arguments => "arguments",
            Self::Pattern => "pattern",
            Self::Body => "body",
            Self::BodyLength => "body_length",
            Self::Memory => "memory",
        }
    }
}

/// The state of a body that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyProgress {
    /// The limit that ended the reading, if any.
    pub limit: Option<Limit>,
    /// Upper bound of the memory for decoding the body.
    pub decoding_bytes: u64,
}

/// A value that a rule has matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedValue {
    /// The variable, with its member's name: `ARGS:id`.
    pub variable: Vec<u8>,
    /// The value that the operator was applied to, clipped.
    pub value: Vec<u8>,
}

/// The match of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The rule's place in the order of all rules.
    pub(crate) rule: u32,
    /// The rule's id.
    pub id: u64,
    /// The rule's message, expanded.
    pub message: Vec<u8>,
    /// The rule's log data, expanded.
    pub log_data: Vec<u8>,
    /// The matched values, the first and last of each link.
    pub values: Vec<MatchedValue>,
    /// Whether the match is logged.
    pub is_logged: bool,
    /// Whether the match is in the audit log.
    pub is_audited: bool,
}

/// Counters of an inspection's work; no times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Texts kept, including those derived from others.
    pub texts: usize,
    /// Transformations applied to a text.
    pub transformed: usize,
    /// Texts searched for the literals and bytes that operators need.
    pub looked_at: usize,
    /// Values that operators were tried on.
    pub compared: u32,
    /// Of these, values that patterns were tried on.
    pub patterns: u32,
}
