//! The changes on top of the files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The changes on top of the files.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Differences {
    /// The newest version, for `If-Match: "version-N"`.
    pub version: u64,
    /// The version in force; the newest may wait for first probes.
    pub in_force: u64,
    /// The newest version, if it still needs a confirmation.
    pub unconfirmed: Option<u64>,
    /// The changes, ordered by their paths.
    pub items: Vec<Difference>,
}

/// A change on top of the files, without passwords and shared keys. Only the role admin sees the values.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// A JSON pointer (RFC 6901).
    pub path: String,
    /// `added`, `changed`, `removed`; `redundant`: the files have the same value; `stale`: the files no longer contain
    /// the changed part.
    pub effect: String,
    /// The value in the files, as YAML.
    pub file: Option<String>,
    /// The file and line of that value: `weir.yaml:3`.
    pub place: Option<String>,
    /// The changed value, as YAML.
    pub overlay: Option<String>,
    /// The reason why the change has no effect.
    pub reason: Option<String>,
}
