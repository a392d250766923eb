//! Files: those of the configuration, and those with contents that expire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The files of the configuration in effect.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationFiles {
    /// The main file first.
    pub items: Vec<ConfigurationFile>,
}

/// The digest of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationFile {
    /// The absolute path.
    pub path: String,
    /// The SHA-256 hash of the contents.
    pub sha256: String,
}

/// A file with contents that expire.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DatedFile {
    /// The path as in the configuration.
    pub file: String,
    /// The kind of its contents: `certificate`, `authority`, `revocation_list`, `ocsp_response` or `token_keys`.
    pub kind: String,
    /// The subject, issuer or key that expires first.
    pub name: String,
    /// The earliest expiry.
    pub not_after: String,
    /// The number of whole days until `not_after`; negative: expired.
    pub days_left: i64,
    /// The expiry in words.
    pub told: String,
    /// Whether it expires within 14 days or has expired.
    pub is_due: bool,
}
