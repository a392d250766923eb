//! Lines of the web application firewall's log, as `docs/observability.md` describes them.

use serde::Deserialize;

/// An inspected request.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Line {
    /// `waf`: a line of this log.
    pub r#type: String,
    /// The time of the line.
    pub time: String,
    /// The request id, the same in both logs.
    pub request_id: String,
    /// The client's address and port; `unix`: a unix socket.
    pub client: String,
    /// The virtual server.
    pub virtual_server: String,
    /// The request's method.
    pub method: String,
    /// The requested host.
    pub host: String,
    /// The target, with secrets masked.
    pub target: String,
    /// `detect` or `block`.
    pub mode: String,
    /// `passed`, `detected`, `blocked` or `unjudged`.
    pub outcome: String,
    /// The status of the firewall's answer; 0: none.
    pub status: u16,
    /// The deciding rule; 0: none.
    pub rule: u64,
    /// The deciding check.
    pub check: Option<String>,
    /// The exceeded limit that ended the inspection.
    pub limit: Option<String>,
    /// The sum of the scores of all findings.
    pub score: i64,
    /// The score at which requests are denied; 0: unknown.
    pub threshold: i64,
    /// Rules with findings.
    pub rules: Vec<LoggedRule>,
    /// Checks with findings.
    pub checks: Vec<LoggedCheck>,
    /// The request itself, if it is recorded.
    pub request: Option<LoggedRequest>,
}

/// A rule with a finding.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LoggedRule {
    /// The id of the rule.
    pub id: u64,
    /// The message of the rule.
    pub message: String,
    /// The rule's data about the value.
    pub data: String,
    /// The severity, as SecLang names it.
    pub severity: String,
    /// The tags of the rule.
    pub tags: Vec<String>,
    /// The file with the rule.
    pub file: String,
    /// The matched values.
    pub values: Vec<Value>,
}

/// A value with a finding.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Value {
    /// The variable, as rules name it.
    pub variable: String,
    /// The value, with secrets masked.
    pub value: String,
}

/// A finding of a native check.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LoggedCheck {
    /// The name of the check.
    pub name: String,
    /// `block` or `alarm`.
    pub action: String,
    /// The part of the request.
    pub place: String,
    /// The matched value, with secrets masked.
    pub data: String,
}

/// The request itself.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LoggedRequest {
    /// The request line and fields.
    pub head: String,
    /// The target that the member received, if it differs.
    pub member_target: Option<String>,
    /// The body, in base64.
    pub body: Option<String>,
}

/// The bytes of a text. The log writes each byte above ASCII as the code point with its value.
pub fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|char| u8::try_from(u32::from(char)).unwrap_or(b'?')).collect()
}

/// The text as the client sent it, as far as it is UTF-8.
pub fn decoded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    String::from_utf8_lossy(&bytes(text)).into_owned()
}
