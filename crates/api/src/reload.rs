//! Reloads of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::Finding;

/// A reload has no settings.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Nothing")]
pub struct ReloadSettings {}

/// What an accepted request for a reload says. Whether the listener waits for the result or not, it tells the number; an older weir
/// tells nothing else.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct ReloadAsked {
    /// The number of the reload.
    pub number: u64,
}

/// Reports of the latest reloads.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Reloads {
    /// The reports, newest last.
    pub items: Vec<Reload>,
}

/// The result of a reload.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Reload {
    /// The number of the reload.
    pub number: u64,
    /// The state of the reload.
    pub state: ReloadState,
    /// The reason for a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Errors in the file, or its warnings, as `weir check` shows them. Only the role admin sees them, because they quote values.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diagnostics: String,
    /// The same findings, each with its file, line and column, as in `weir check --json`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// The changed parts of the configuration, `changed pools.web`, and files that it names, `changed file shop.pem`.
    pub changes: Vec<String>,
    /// The number of changes that are not listed.
    pub changes_omitted: usize,
    /// Changes at run time that this reload has left without effect, with the reasons: of the configuration, and states of
    /// members.
    #[serde(default)]
    pub without_effect: Vec<String>,
}

/// The state of a reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReloadState {
    /// The reload has not begun, the file is being read, or names are being resolved.
    Reading,
    /// The configuration waits for the first probes of its members.
    Waiting,
    /// The new configuration is active.
    InForce,
    /// The configuration was refused. The previous configuration stays active.
    Refused,
}

impl ReloadState {
    /// Whether the state is final.
    pub fn is_final(self) -> bool {
        matches!(self, Self::InForce | Self::Refused)
    }
}

/// A refused reload.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReloadFailure {
    /// The time of the refusal.
    pub time: String,
    /// The reason for the refusal.
    pub reason: String,
}
