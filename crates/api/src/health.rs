//! How well virtual servers and pools serve.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How well something serves. The order is that of severity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthState {
    /// No problem.
    Up,
    /// It serves with less than the configuration has, or some of its requests fail.
    Degraded,
    /// Half of its requests or more fail.
    Failing,
    /// It cannot serve.
    Down,
    /// An older weir has not said it, or a newer one has a state of its own. It is never sent.
    #[default]
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl HealthState {
    /// The word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Degraded => "degraded",
            Self::Failing => "failing",
            Self::Down => "down",
            Self::Unknown => "unknown",
        }
    }
}

/// The health of a virtual server or of a pool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// `up`, `degraded`, `failing` (half of the requests or more fail) or `down` (it cannot serve).
    pub state: HealthState,
    /// The reason; `null`: it is up.
    pub why: Option<String>,
    /// The requests that this was judged by; `null`: there are no samples yet.
    pub recent: Option<RecentRequests>,
}

impl Health {
    /// Whether it cannot serve, or most of what it serves fails.
    pub fn is_bad(&self) -> bool {
        matches!(self.state, HealthState::Down | HealthState::Failing)
    }

    /// Whether it serves, but not as it should.
    pub fn is_degraded(&self) -> bool {
        self.state == HealthState::Degraded
    }
}

/// Recent requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecentRequests {
    /// The number of requests; of a pool, each try counts. Of a virtual server that does not parse requests: connections or
    /// sessions that have ended.
    pub requests: u64,
    /// Those that failed: without a response of a member, answered 5xx (of a virtual server: other than by a rule for requests or
    /// the firewall), or with a response that was cut off. Of connections also those that a member ended at once, without a
    /// byte.
    pub failed: u64,
    /// Of the failed tries of a pool: those after which another member was tried.
    pub retried: u64,
    /// The length of the period.
    pub seconds: u64,
}
