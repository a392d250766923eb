//! Findings in a configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A finding in a configuration, as in `weir check --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// `error` or `warning`.
    pub severity: String,
    /// The problem, in one line.
    pub message: String,
    /// The name of the file; `overlay` for a changed value.
    pub file: String,
    /// The line, from 1; `null`: the finding is about the whole file, or about a changed value.
    pub line: Option<usize>,
    /// The character in the line, from 1.
    pub column: Option<usize>,
    /// The JSON pointer (RFC 6901) of a changed value, in place of a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The suggested fix, in one line.
    pub suggestion: Option<String>,
}
