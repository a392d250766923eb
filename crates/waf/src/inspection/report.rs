//! What an inspection finds.

use crate::checks::Check;

/// What becomes of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Pass,
    /// It is answered with this status.
    Deny {
        /// The status.
        status: u16,
        /// The rule's number.
        rule: u64,
    },
    /// Its connection is closed.
    Drop {
        /// The rule's number.
        rule: u64,
    },
    /// It is redirected.
    Redirect {
        /// Where to.
        to: Vec<u8>,
        /// With which status.
        status: u16,
        /// The rule's number.
        rule: u64,
    },
    /// It is answered with this status: a check has found something.
    Refused {
        /// Which check.
        check: Check,
        /// The status.
        status: u16,
    },
    /// It could not be judged: a limit was reached.
    Exceeded(Limit),
}

/// What keeps a request from being judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Looking at it would take more work than the settings allow.
    Work,
    /// The rules have taken longer than the settings allow.
    Time,
    /// Rules have made more variables than there may be.
    Variables,
    /// It has more arguments than the settings allow.
    Arguments,
    /// A pattern took too many steps, or one that is made for each request could not be compiled.
    Pattern,
    /// Its body could not be read: it is malformed, or beyond a limit of what is taken apart.
    Body,
    /// Its body is longer than the settings allow.
    BodyLength,
    /// There was no room for its body, beside those of other requests.
    Memory,
}

impl Limit {
    /// Its name in logs.
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

/// How far a body is that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyProgress {
    /// What keeps it from being read on, if anything does.
    pub limit: Option<Limit>,
    /// Memory that it takes because it is encoded, at most.
    pub decoding_bytes: u64,
}

/// A value that a rule has found something in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedValue {
    /// The variable, with its member's name: `ARGS:id`.
    pub variable: Vec<u8>,
    /// The value, as the operator saw it, clipped.
    pub value: Vec<u8>,
}

/// A rule that held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Its place among the rules.
    pub(crate) rule: u32,
    /// Its number.
    pub id: u64,
    /// Its message, with the values of variables.
    pub message: Vec<u8>,
    /// What it says of what it found.
    pub log_data: Vec<u8>,
    /// What it was found in, the first and last of each link.
    pub values: Vec<MatchedValue>,
    /// Whether it is logged.
    pub is_logged: bool,
    /// Whether it is in the audit log.
    pub is_audited: bool,
}

/// What an inspection has done: how often, not how long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Texts that are kept, those that were made of others included.
    pub texts: usize,
    /// Transformations of a text.
    pub transformed: usize,
    /// Texts that were searched for what operators need.
    pub looked_at: usize,
    /// Values that operators were tried on.
    pub compared: u32,
    /// Those of them that patterns were.
    pub patterns: u32,
}
