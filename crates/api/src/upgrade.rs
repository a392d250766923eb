//! Upgrades: the process is replaced by a new one.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request for an upgrade.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Upgrade {
    /// The program to start; absent: the program of this process. Only for root and weir's own user, over the unix
    /// socket.
    pub binary: Option<PathBuf>,
    /// The time for the new process to become ready; absent: 30 seconds and `first_probes.wait`.
    pub timeout_ms: Option<u64>,
}

/// The response to an upgrade request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct UpgradeAsked {
    /// The number of the upgrade's report, which the new process knows too.
    pub number: u64,
}

/// The result of an upgrade.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UpgradeReport {
    /// The number of the upgrade.
    pub number: u64,
    /// The state of the upgrade.
    pub state: UpgradeState,
    /// The time of the last change of state.
    pub time: String,
    /// The process id of the new process, once it has started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The reason for a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Errors in the configuration file, as `weir check` shows them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub diagnostics: String,
}

/// The state of an upgrade.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UpgradeState {
    /// The new process starts.
    Starting,
    /// The new process serves.
    Done,
    /// The upgrade has failed; the old process continues to serve.
    Failed,
    /// A newer weir has a state of its own. It is never sent.
    #[default]
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}
