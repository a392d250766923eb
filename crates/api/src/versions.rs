//! Versions of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A version of the configuration.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    /// Versions count from 1; version 0 means the files without changes.
    pub number: u64,
    /// The time of its acceptance.
    pub time: String,
    /// The user who requested the version.
    pub author: String,
    /// The reason for the version.
    pub comment: String,
    /// The requested changes, without passwords and shared keys. Only the role admin sees `value`.
    pub changes: Vec<VersionChange>,
    /// The version that this one restores, for a rollback.
    pub rolled_back_to: Option<u64>,
    /// The version that this one undoes.
    pub reverted: Option<u64>,
    /// Without a confirmation until then, the previous version is restored; `null`: the version stays.
    pub confirm_until: Option<String>,
    /// Whether this version is in force.
    pub in_force: bool,
}

/// A change of a version, as it is shown.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct VersionChange {
    /// `set` or `remove`.
    pub op: String,
    /// A JSON pointer (RFC 6901).
    pub path: String,
    /// The value that was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}
