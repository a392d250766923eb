//! What an inspection knows.

use std::sync::Arc;

use super::report::{Limit, Match, Verdict};
use super::texts::{TextId, Texts};
use super::values::Values;
use super::written::Written;
use crate::plan::{Bits, View};
use crate::seclang::{Phase, Target, Variable};

/// What becomes of what rules find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is told.
    Detect,
    /// It is told, and the request is kept from the member.
    Block,
}

/// Which rules are passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    Nothing,
    /// Those of the request.
    Request,
    /// All but those of the logging phase.
    Everything,
}

/// A value that the rule at hand has matched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit {
    pub variable: Variable,
    pub name: TextId,
    pub text: TextId,
    /// Whether it is the number of values.
    pub is_count: bool,
}

/// One request under inspection.
#[derive(Debug)]
pub struct Inspection {
    pub(super) view: Arc<View>,
    pub(super) mode: Mode,
    pub(super) texts: Texts,
    pub(super) values: Values,
    pub(super) written: Written,
    /// What the rule at hand has matched so far.
    pub(super) hits: Vec<Hit>,
    /// Rules that `ctl` has removed.
    pub(super) removed: Bits,
    /// Targets that `ctl` has removed, and of which rules.
    pub(super) removed_targets: Vec<(Bits, Target)>,
    /// Operators that may match a value of a group's targets, at this generation of the values.
    pub(super) groups: Vec<Option<(u32, Bits)>>,
    pub(super) masked: Vec<Target>,
    pub(super) matches: Vec<Match>,
    pub(super) highest_severity: u8,
    pub(super) passing: Passing,
    pub(super) is_on: bool,
    /// Whether a rule says so, in whatever mode.
    pub(super) only_detects: bool,
    pub(super) is_audited: bool,
    pub(super) body: super::arguments::BodySettings,
    pub(super) work_bytes_max: u64,
    pub(super) exceeded: Option<Limit>,
    /// What a rule would have done, if nothing is blocked.
    pub(super) would_be: Option<Verdict>,
}

impl Inspection {
    /// What rules found so far, in the order in which it was found.
    pub fn matches(&self) -> &[Match] {
        &self.matches
    }

    /// What the rules would have done, where they only detect.
    pub fn would_be(&self) -> Option<&Verdict> {
        self.would_be.as_ref()
    }

    /// Whether the request belongs into the audit log.
    pub fn is_audited(&self) -> bool {
        self.is_audited
    }

    /// Bytes that were looked at so far, each as often as it was looked at.
    pub fn work_bytes(&self) -> u64 {
        self.texts.work_bytes()
    }

    /// The value of a variable of `TX`, as a number.
    pub fn number(&self, name: &str) -> i64 {
        let symbols = &self.view.rules.symbols;
        self.written.get_named(Variable::Tx, name.as_bytes(), symbols).map_or(0, |it| it.number())
    }

    /// Evaluates the rules that look at the request's head.
    pub fn request_headers(&mut self) -> Verdict {
        self.phase(Phase::RequestHeaders)
    }

    /// Evaluates the rules that look at the whole request.
    pub fn request_body(&mut self) -> Verdict {
        self.phase(Phase::RequestBody)
    }

    /// Evaluates the rules that look at the response's head.
    pub fn response_headers(&mut self) -> Verdict {
        self.phase(Phase::ResponseHeaders)
    }

    /// Evaluates the rules that look at the whole response.
    pub fn response_body(&mut self) -> Verdict {
        self.phase(Phase::ResponseBody)
    }

    /// Evaluates the rules that only tell. They change nothing any more.
    pub fn logging(&mut self) {
        // What would be blocked by now has been answered.
        let _ = self.phase(Phase::Logging);
    }
}
