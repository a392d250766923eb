//! Lines of the web application firewall's log, as `docs/observability.md` describes them.

use serde::Deserialize;

/// A request that was inspected.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Line {
    /// `waf`: a line of this log.
    pub r#type: String,
    /// When the line was written.
    pub time: String,
    /// Names the request in both logs.
    pub request_id: String,
    /// The client's address and port; `unix`: it came over a unix socket.
    pub client: String,
    /// The virtual server.
    pub virtual_server: String,
    /// The request's method.
    pub method: String,
    /// The host that it names.
    pub host: String,
    /// Its target, secrets masked.
    pub target: String,
    /// `detect` or `block`.
    pub mode: String,
    /// `passed`, `detected`, `blocked` or `unjudged`.
    pub outcome: String,
    /// The status of the firewall's answer; 0: it made none.
    pub status: u16,
    /// The rule that decided; 0: none.
    pub rule: u64,
    /// The check that decided.
    pub check: Option<String>,
    /// The limit because of which it was not judged.
    pub limit: Option<String>,
    /// The sum of the scores of all findings.
    pub score: i64,
    /// The score from which a request is denied; 0: unknown.
    pub threshold: i64,
    /// Rules that found something.
    pub rules: Vec<Found>,
    /// Checks that found something.
    pub checks: Vec<Checked>,
    /// The request itself, where it is recorded.
    pub request: Option<Recorded>,
}

/// A rule that held.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Found {
    /// The rule.
    pub id: u64,
    /// The message of the rule.
    pub message: String,
    /// The rule's text about the value.
    pub data: String,
    /// The severity, as SecLang names it.
    pub severity: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// The file with the rule.
    pub file: String,
    /// The values that it was found in.
    pub values: Vec<Value>,
}

/// A value with a finding.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Value {
    /// The variable, as rules name it.
    pub variable: String,
    /// Its value, secrets masked.
    pub value: String,
}

/// A finding of a check that needs no rules.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Checked {
    /// The check.
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
pub struct Recorded {
    /// The request line and fields.
    pub head: String,
    /// The target that the member got, if it is another.
    pub member_target: Option<String>,
    /// The body, in base64.
    pub body: Option<String>,
}

/// The bytes of a text: the log has each above ASCII as the code point of its value.
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
