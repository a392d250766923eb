//! Errors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::Finding;

/// Problem details (RFC 9457).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Always `about:blank`: the status identifies the problem.
    #[serde(default)]
    pub r#type: String,
    /// The reason phrase of the status.
    #[serde(default)]
    pub title: String,
    /// The status.
    #[serde(default)]
    pub status: u16,
    /// Describes the problem.
    pub detail: String,
    /// Suggests a solution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Findings in a configuration, as in `weir check --json`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Finding>,
    /// `last`: the change takes the last member of a pool that takes new requests; with `"last": true` it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
}
