//! Findings of the web application firewall. Secrets of requests are masked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::changes::Change;

/// A request with findings.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FirewallEvent {
    /// The number of the request since the start.
    pub number: u64,
    /// The time.
    pub time: String,
    /// The request id, as in the logs.
    pub request_id: String,
    /// The client's address and port; `unix`: a unix socket.
    pub client: String,
    /// The virtual server.
    pub virtual_server: String,
    /// The method.
    pub method: String,
    /// The requested host.
    pub host: String,
    /// The target, with secrets masked.
    pub target: String,
    /// The mode: `detect` or `block`.
    pub mode: String,
    /// `passed`, `detected`, `blocked` or `unjudged`.
    pub outcome: String,
    /// The status of the firewall's answer.
    pub status: Option<u16>,
    /// The deciding rule.
    pub rule: Option<u64>,
    /// The deciding check.
    pub check: Option<String>,
    /// The exceeded limit that ended the inspection.
    pub limit: Option<String>,
    /// The sum of the scores of all findings.
    pub score: i64,
    /// The score at which requests are denied.
    pub threshold: Option<i64>,
    /// Rules with findings.
    pub rules: Vec<RuleFinding>,
    /// Checks with findings.
    pub checks: Vec<CheckFinding>,
}

/// A rule with a finding.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RuleFinding {
    /// The id of the rule.
    pub id: u64,
    /// The message of the rule.
    pub message: String,
    /// The rule's data about the value.
    pub data: String,
    /// The severity, as SecLang names it.
    pub severity: String,
    /// The matched values.
    pub values: Vec<FoundValue>,
}

/// A value with a finding.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FoundValue {
    /// The variable, as rules name it.
    pub variable: String,
    /// The value, with secrets masked.
    pub value: String,
}

/// A check with a finding.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CheckFinding {
    /// The name of the check.
    pub name: String,
    /// `block` or `alarm`.
    pub action: String,
    /// The part of the request.
    pub place: String,
    /// The matched value, with secrets masked.
    pub data: String,
}

/// Findings in recent requests.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WafFindings {
    /// The findings, those in most requests first.
    pub items: Vec<WafFinding>,
    /// Checks with findings, those in most requests first.
    pub checks: Vec<WafCheckFinding>,
    /// The number of findings that are not listed.
    pub left_out: usize,
    /// The number of findings in variables that an exclusion cannot name.
    pub unnamed: u64,
    /// The version of the configuration, for `If-Match: "version-N"` of a change.
    pub version: u64,
}

/// A finding of a rule in one variable of requests with one path.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WafFinding {
    /// The identifier in the list.
    pub id: String,
    /// The virtual server.
    pub virtual_server: String,
    /// The id of the rule.
    pub rule: u64,
    /// The message of the rule.
    pub message: String,
    /// The variable, as rules name it.
    pub variable: String,
    /// The path, or `/folder/*`.
    pub path: String,
    /// The number of recent requests with the finding.
    pub requests: u64,
    /// The number of clients that sent them: at most 64 are counted.
    pub clients: usize,
    /// The number of these requests that contain another attack elsewhere, or come from a scanner.
    pub suspicious: u64,
    /// The score of one such finding.
    pub score: i64,
    /// A matched value, unless it is a secret.
    pub example: Option<String>,
    /// Whether `weir waf tune` would propose the exclusion with its default thresholds.
    pub is_proposed: bool,
    /// Whether the configuration contains an exclusion for it.
    pub is_excluded: bool,
    /// The virtual servers that the exclusion applies to: several, if they share a profile.
    pub applies_to: Vec<String>,
    /// The change that makes the exclusion: for `POST /v1/changes`.
    pub change: Change,
}

/// A check with findings in requests to a virtual server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WafCheckFinding {
    /// The identifier in the list.
    pub id: String,
    /// The virtual server.
    pub virtual_server: String,
    /// The name of the check.
    pub check: String,
    /// What a finding means.
    pub message: String,
    /// The part of a request in which it found something.
    pub place: String,
    /// A matched value, unless it is a secret.
    pub example: Option<String>,
    /// The number of recent requests with the finding.
    pub requests: u64,
    /// The number of clients that sent them: at most 64 are counted.
    pub clients: usize,
    /// The number of these requests that the check decided to block, or would block in mode `block`.
    pub decided: u64,
    /// The number of these requests in which a rule found an attack, too.
    pub suspicious: u64,
    /// The action in the configuration: `block`, `alarm` or `off`.
    pub action: String,
    /// Whether the numbers of requests and clients say that legitimate requests have it.
    pub is_proposed: bool,
    /// The virtual servers that the change applies to: several, if they share a profile.
    pub applies_to: Vec<String>,
    /// The change that makes the check milder, for `POST /v1/changes`: `alarm` instead of `block`, `off` instead of `alarm`;
    /// `null`: it is off.
    pub change: Option<Change>,
}
