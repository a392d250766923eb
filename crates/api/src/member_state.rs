//! The administrative state of members, and changes of it at run time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::member::Member;

/// A requested change.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberStateChange {
    /// The requested state.
    pub state: WantedState,
    /// Also if no other member of the pool takes new requests, and its clients get 503 then. Without it, such a change is
    /// refused (409).
    // An older weir does not know this key, and needs no permission.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub last: bool,
}

/// The requested state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WantedState {
    /// Receives requests, whatever the configuration says.
    Enabled,
    /// Receives only requests of clients that persistence keeps on it.
    Drain,
    /// Receives no requests.
    Disabled,
    /// Returns to the state in the configuration.
    Configured,
}

/// The administrative state of a member.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MemberState {
    /// The pool.
    pub pool: String,
    /// The address of the member.
    pub member: String,
    /// `enabled`, `drain` or `disabled`.
    pub state: String,
    /// `file`: the configuration; `runtime`: a change at run time, which lasts until the process ends.
    pub source: String,
}

/// The states of a server in all its pools.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MemberStates {
    /// A state for each pool.
    pub members: Vec<MemberState>,
}

/// The answer to a change.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MemberStateChanged {
    /// The pool.
    pub pool: String,
    /// Whether the state, or its source, has changed. `false`: the member was in this state already, and nothing is recorded.
    pub changed: bool,
    /// The state before the change.
    pub before: String,
    /// The number of members of the pool that take new requests.
    pub members_in_service: usize,
    /// Whether no member of the pool takes new requests, and a fallback takes them instead.
    #[serde(default)]
    pub fallback_serves: bool,
    /// The member after the change.
    pub member: Member,
}

/// The answer to a change of a server in all its pools.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MemberStatesChanged {
    /// An answer for each pool.
    pub members: Vec<MemberStateChanged>,
}
