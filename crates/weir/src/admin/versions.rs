//! Answers about changes of the configuration and its versions, with the keys that the commands use.

use serde::Deserialize;

use super::findings::Finding;

/// The state of a transaction.
#[derive(Debug, Deserialize)]
pub struct Outcome {
    pub number: u64,
    pub state: State,
    pub version: Option<u64>,
    pub reason: Option<String>,
    #[serde(default)]
    pub diagnostics: Vec<Finding>,
    pub changes: Vec<String>,
    pub changes_omitted: usize,
}

/// The states of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Checking,
    Waiting,
    InForce,
    /// The configuration had these values; no version was made.
    Unchanged,
    Done,
    Refused,
}

/// A list of versions, the oldest first.
#[derive(Debug, Deserialize)]
pub struct Versions {
    pub items: Vec<Version>,
}

/// A version of the configuration.
#[derive(Debug, Deserialize)]
pub struct Version {
    pub number: u64,
    pub time: String,
    pub author: String,
    pub comment: String,
    pub changes: Vec<Change>,
    pub rolled_back_to: Option<u64>,
    /// The version that this one undoes.
    #[serde(default)]
    pub reverted: Option<u64>,
    /// The previous version is restored at this time unless this one is confirmed.
    pub confirm_until: Option<String>,
    pub in_force: bool,
}

/// A change of a transaction.
#[derive(Debug, Deserialize)]
pub struct Change {
    pub op: String,
    pub path: String,
    pub value: Option<serde_json::Value>,
}

/// `/v1/diff`.
#[derive(Debug, Deserialize)]
pub struct Differences {
    /// The newest version.
    pub version: u64,
    pub in_force: u64,
    pub unconfirmed: Option<u64>,
    pub items: Vec<Difference>,
}

/// A change on top of the files.
#[derive(Debug, Deserialize)]
pub struct Difference {
    pub path: String,
    pub effect: String,
    /// The value in the files.
    pub file: Option<String>,
    /// The file and line of that value.
    pub place: Option<String>,
    /// The changed value.
    pub overlay: Option<String>,
    /// The reason why the change has no effect.
    pub reason: Option<String>,
}
