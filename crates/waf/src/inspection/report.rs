//! The results of an inspection.

use crate::checks::Check;

/// The verdict on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The request continues.
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
    /// A check without rules blocks the request. The client gets this status.
    Refused {
        /// The check.
        check: Check,
        /// The status.
        status: u16,
    },
    /// The request could not be inspected completely, because it exceeded a limit.
    Exceeded(Limit),
}

/// A limit that ends an inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Work: the number of inspected bytes.
    Work,
    /// Time: the time of the rules.
    Time,
    /// The number of variables that rules create.
    Variables,
    /// The number of arguments.
    Arguments,
    /// The steps of a pattern. Also reported if a pattern that is built for a request cannot be compiled.
    Pattern,
    /// A body that could not be parsed: it is malformed, or exceeds a limit of its parser.
    Body,
    /// The length of the body.
    BodyLength,
    /// The memory for the bodies of all requests.
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

/// The rule after which a limit ended the evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoppedAt {
    /// The phase, 1 to 5.
    pub phase: u8,
    /// The id of the rule.
    pub rule: u64,
}

/// The state of a body during its inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyProgress {
    /// The limit that ended the inspection of the body, if any.
    pub limit: Option<Limit>,
    /// The upper bound of the memory for decoding the body.
    pub decoding_bytes: u64,
    /// Whether the next bytes may show that the body need not be inspected.
    pub is_open: bool,
    /// Whether the body may have files, whose bytes have a limit of their own.
    pub may_have_files: bool,
    /// The number of bytes of files whose content is not inspected as a whole.
    pub files_bytes: u64,
}

/// A value that a rule has matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedValue {
    /// The variable, with the name of its member: `ARGS:id`.
    pub variable: Vec<u8>,
    /// The value that the operator was applied to, clipped.
    pub value: Vec<u8>,
}

/// The match of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The place of the rule in the order of all rules.
    pub(crate) rule: u32,
    /// The id of the rule.
    pub id: u64,
    /// The expanded message of the rule.
    pub message: Vec<u8>,
    /// The expanded data about the match, for logs.
    pub log_data: Vec<u8>,
    /// The matched values, up to a maximum number.
    pub values: Vec<MatchedValue>,
    /// Whether the match is written to the error log.
    pub is_logged: bool,
    /// Whether the match is written to the audit log.
    pub is_audited: bool,
}

/// Counters of the work of an inspection, without times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of stored texts, including those derived from others.
    pub texts: usize,
    /// The number of their bytes, without those of texts that were known before the request.
    pub text_bytes: usize,
    /// The number of texts that transformations produced.
    pub transformed: usize,
    /// The number of texts that were searched for the literals and bytes that operators need.
    pub looked_at: usize,
    /// The number of values that operators were evaluated on.
    pub compared: u32,
    /// The number of these values that patterns were evaluated on.
    pub patterns: u32,
}
