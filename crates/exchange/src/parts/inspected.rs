//! The result of the web application firewall for a request.

use std::net::SocketAddr;

use weir_core::policy::WafMode;
use weir_waf::checks::Check;
use weir_waf::inspection::{Inspection, Limit, Verdict};

use crate::local::table::LocalServer;

/// A request that was inspected.
pub struct Inspected<'a> {
    /// The request id.
    pub request_id: &'a str,
    /// Where it came in.
    pub server: &'a LocalServer,
    /// The client, as rules see it.
    pub client: Option<SocketAddr>,
    /// The mode that was applied.
    pub mode: WafMode,
    /// Its result.
    pub outcome: Outcome,
    /// The status that it was answered with; 0: it went on, or got no answer.
    pub status: u16,
    /// The findings, rule by rule.
    pub inspection: &'a Inspection,
}

/// The result of an inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was found that a request is kept from its member for.
    Passed,
    /// This would have kept it from its member.
    Detected(Cause),
    /// This has kept it from its member.
    Blocked(Cause),
    /// It ended before all of it had come, and was not judged.
    Unfinished,
    /// It could not be judged.
    Unjudged {
        /// Why.
        limit: Limit,
        /// Its member did not get it.
        is_blocked: bool,
    },
}

/// The reason why a request does not reach its member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The rule of this number.
    Rule(u64),
    /// A check without rules.
    Check(Check),
}

impl Outcome {
    /// The outcome for a whole request, or for a finding that ends the inspection early.
    pub fn of(verdict: &Verdict, inspection: &Inspection, is_unjudged_blocked: bool) -> Self {
        if let Verdict::Exceeded(limit) = verdict {
            return Self::Unjudged { limit: *limit, is_blocked: is_unjudged_blocked };
        }
        let would_be = inspection.would_be().and_then(cause).map(Self::Detected);
        cause(verdict).map(Self::Blocked).or(would_be).unwrap_or(Self::Passed)
    }

    /// Its name in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Detected(_) => "detected",
            Self::Blocked(_) => "blocked",
            Self::Unfinished => "unfinished",
            Self::Unjudged { .. } => "unjudged",
        }
    }

    /// Whether its member did not get it, or its client not the response.
    pub fn is_blocked(self) -> bool {
        matches!(self, Self::Blocked(_) | Self::Unjudged { is_blocked: true, .. })
    }
}

fn cause(verdict: &Verdict) -> Option<Cause> {
    match verdict {
        Verdict::Deny { rule, .. } | Verdict::Drop { rule } | Verdict::Redirect { rule, .. } => {
            Some(Cause::Rule(*rule))
        }
        Verdict::Refused { check, .. } => Some(Cause::Check(*check)),
        Verdict::Pass | Verdict::Exceeded(_) => None,
    }
}
