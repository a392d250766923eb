//! What the web application firewall has made of a request.

use std::net::SocketAddr;

use weir_core::policy::WafMode;
use weir_waf::inspection::{Inspection, Limit, Verdict};

use crate::local::table::LocalServer;

/// A request that was inspected.
pub struct Inspected<'a> {
    /// What tells it from all others.
    pub request_id: u128,
    /// Where it came in.
    pub server: &'a LocalServer,
    /// Who sent it, as rules see that.
    pub client: Option<SocketAddr>,
    /// What became of what was found.
    pub mode: WafMode,
    /// What came of it.
    pub outcome: Outcome,
    /// The status that it was answered with; 0: it went on, or got no answer.
    pub status: u16,
    /// What was found, rule by rule.
    pub inspection: &'a Inspection,
}

/// What came of an inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Rules found nothing that a request is kept from its member for.
    Passed,
    /// This rule would have kept it from its member.
    Detected {
        /// The rule's number.
        rule: u64,
    },
    /// This rule has kept it from its member.
    Blocked {
        /// The rule's number.
        rule: u64,
    },
    /// It could not be judged.
    Unjudged {
        /// Why.
        limit: Limit,
        /// Its member did not get it.
        is_blocked: bool,
    },
}

impl Outcome {
    /// Of what rules say of the whole request, or of what comes too early to go on.
    pub fn of(verdict: &Verdict, inspection: &Inspection, is_unjudged_blocked: bool) -> Self {
        let would_be = inspection.would_be().and_then(rule);
        match (verdict, would_be) {
            (Verdict::Exceeded(limit), _) => {
                Self::Unjudged { limit: *limit, is_blocked: is_unjudged_blocked }
            }
            (Verdict::Pass, Some(rule)) => Self::Detected { rule },
            (Verdict::Pass, None) => Self::Passed,
            (verdict, _) => Self::Blocked { rule: rule(verdict).unwrap_or_default() },
        }
    }

    /// Its name in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Detected { .. } => "detected",
            Self::Blocked { .. } => "blocked",
            Self::Unjudged { .. } => "unjudged",
        }
    }
}

/// The rule that has decided.
fn rule(verdict: &Verdict) -> Option<u64> {
    match verdict {
        Verdict::Deny { rule, .. } | Verdict::Drop { rule } | Verdict::Redirect { rule, .. } => {
            Some(*rule)
        }
        Verdict::Pass | Verdict::Exceeded(_) => None,
    }
}
