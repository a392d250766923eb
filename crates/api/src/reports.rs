//! Reports of `weir bench`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A report.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct BenchReport {
    /// The name of the folder.
    pub name: String,
    /// The time of its last modification.
    pub written: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether it is within the maximum size.
    pub is_shown: bool,
}
