//! The result of the web application firewall for a request.

use std::net::SocketAddr;
use std::sync::Arc;

use weir_core::policy::WafMode;
use weir_http::secret_names::CredentialFields;
use weir_waf::checks::Check;
use weir_waf::inspection::{Inspection, Limit, Verdict};

/// An inspected request. It owns all that the log has of it, so that its line may be written on another thread.
#[derive(Debug)]
pub struct InspectionReport {
    /// The request id.
    pub request_id: Box<str>,
    /// The name of the virtual server.
    pub virtual_server: Arc<str>,
    /// The fields in which the virtual server's configuration finds credentials.
    pub credential_fields: CredentialFields,
    /// The client's address in rules.
    pub client: Option<SocketAddr>,
    /// The mode that was applied.
    pub mode: WafMode,
    /// The outcome.
    pub outcome: InspectionOutcome,
    /// The status of the answer; 0: the request continued, or got no answer.
    pub status: u16,
    /// The inspection with its findings; `None`: it was lost, because it panicked.
    pub inspection: Option<Inspection>,
}

/// The outcome of an inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InspectionOutcome {
    /// No finding that would block the request.
    Passed,
    /// This would have blocked the request.
    Detected(Cause),
    /// This has blocked the request or its response.
    Blocked(Cause),
    /// The exchange ended before the whole body arrived; no verdict.
    Unfinished,
    /// The request could not be judged.
    Unjudged {
        /// The exceeded limit.
        limit: Limit,
        /// Whether it was blocked for that.
        is_blocked: bool,
    },
}

/// The reason for blocking a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The rule with this id.
    Rule(u64),
    /// A check without rules.
    Check(Check),
}

impl InspectionOutcome {
    /// The outcome of a verdict.
    pub fn of(verdict: &Verdict, inspection: &Inspection, is_unjudged_blocked: bool) -> Self {
        if let Verdict::Exceeded(limit) = verdict {
            return Self::Unjudged { limit: *limit, is_blocked: is_unjudged_blocked };
        }
        let would_be = inspection.would_be().and_then(cause).map(Self::Detected);
        cause(verdict).map(Self::Blocked).or(would_be).unwrap_or(Self::Passed)
    }

    /// The name in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Detected(_) => "detected",
            Self::Blocked(_) => "blocked",
            Self::Unfinished => "unfinished",
            Self::Unjudged { .. } => "unjudged",
        }
    }

    /// Whether the request or its response was blocked.
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
