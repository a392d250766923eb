//! A recorded request, as it is shown. Secrets of the request are masked in all of its texts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::explanation::{Explanation, Field};

/// The known facts about a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestSummary {
    /// Its request id, as the access log has it.
    pub id: String,
    /// When its head was here, in milliseconds since 1970.
    pub begun_unix_ms: u64,
    /// The virtual server that decided about it.
    pub virtual_server: String,
    /// Where it came in, if that has handed it over.
    pub entered_at: Option<String>,
    /// The client, as rules see it; `null`: a unix socket.
    pub client: Option<String>,
    /// The request.
    #[serde(flatten)]
    pub asked: AskedTold,
    /// The version of its TLS; `null`: it had none.
    pub tls: Option<String>,
    /// The status that was sent; 0: none.
    pub status: u16,
    /// The pool.
    pub pool: Option<String>,
    /// The member that it had last.
    pub member: Option<String>,
    /// Bytes, retries and times.
    #[serde(flatten)]
    pub amounts: AmountsTold,
    /// It took as long as the configuration calls slow.
    pub is_slow: bool,
    /// Rules that were followed: `policy/rule`.
    pub rules: Vec<String>,
    /// Marks of rules.
    pub marks: Vec<String>,
    /// `kept`, `moved` or `new`; `null`: no persistence.
    pub persistence: Option<String>,
    /// The authenticated user.
    pub user: Option<String>,
    /// `passed`, `detected`, `blocked`, `unjudged` or `unfinished`; `null`: the firewall did not look at it.
    pub waf: Option<String>,
    /// How it ended, as the access log has it.
    pub termination: String,
}

/// The request of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskedTold {
    /// Its method; `null`: it was refused before it was read, or is no request of HTTP.
    pub method: Option<String>,
    /// The host that it named.
    pub host: Option<String>,
    /// Its target: path and query.
    pub target: Option<String>,
    /// `1.0`, `1.1` or `2`.
    pub version: Option<String>,
}

/// Bytes, retries and times of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AmountsTold {
    /// Further members tried.
    pub retries: u32,
    /// Body bytes of the request.
    pub bytes_received: u64,
    /// Bytes of the response.
    pub bytes_sent: u64,
    /// Microseconds until the first try of a member.
    pub queue_us: u64,
    /// From there to an open connection; 0: an idle one was used.
    pub connect_us: u64,
    /// From there to the response head.
    pub first_byte_us: u64,
    /// In all.
    pub total_us: u64,
}

/// A recorded request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedRequest {
    /// The known facts.
    #[serde(flatten)]
    pub summary: RequestSummary,
    /// The other end of its connection.
    pub peer: Option<String>,
    /// The address that it was connected to.
    pub listen: Option<String>,
    /// The name that its client asked for by TLS.
    pub server_name: Option<String>,
    /// The cipher of its TLS.
    pub cipher: Option<String>,
    /// The subject of its client's certificate.
    pub certificate: Option<String>,
    /// Its fields.
    pub headers: Vec<Field>,
    /// The head was longer than what is kept of one.
    pub is_head_cut: bool,
    /// The configuration that decided is not the one in force, or addresses of its names have changed since.
    pub is_of_other_configuration: bool,
    /// The decisions of virtual servers, in their order.
    pub decided: Vec<DecidedTold>,
    /// Pools, as they were when it looked for a member: more than one look, if it waited.
    pub sought: Vec<SoughtTold>,
    /// Members that did not serve it, in their order.
    pub failed: Vec<FailedTold>,
    /// The findings of the web application firewall.
    pub firewall: Option<FirewallTold>,
}

/// The decision of a virtual server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecidedTold {
    /// The virtual server.
    pub virtual_server: String,
    /// The client, as its rules see it.
    pub client: Option<String>,
    /// Rules that were followed: `policy/rule`; `null`: the configuration that has their names is gone.
    pub rules: Option<Vec<String>>,
    /// The decision, in words.
    pub verdict: String,
}

/// A pool when a request looked for a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SoughtTold {
    /// The pool.
    pub pool: String,
    /// The reason for the member: `any`, `key` or `member`.
    pub preference: String,
    /// Members and their states.
    pub candidates: Vec<CandidateTold>,
    /// Members that were not noted.
    pub left_out: usize,
}

/// A member when a request looked for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateTold {
    /// Its address.
    pub member: String,
    /// `up`, `pending`, `down`, `draining` or `ejected`.
    pub state: String,
    /// `enabled`, `drain` or `disabled`.
    pub administrative: String,
    /// Requests that it had.
    pub occupancy: u32,
    /// Whether it took new requests.
    pub is_eligible: bool,
}

/// A member that did not serve a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedTold {
    /// Its pool.
    pub pool: String,
    /// The member.
    pub member: String,
    /// Why, as the access log would have it.
    pub why: String,
    /// Microseconds from the begin of the request.
    pub after_us: u64,
    /// For so long.
    pub took_us: u64,
}

/// The findings of the web application firewall.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FirewallTold {
    /// `detect` or `block`.
    pub mode: String,
    /// `passed`, `detected`, `blocked`, `unjudged` or `unfinished`.
    pub outcome: String,
    /// The status that it was answered with; `null`: it went on.
    pub status: Option<u16>,
    /// The score.
    pub score: i64,
    /// Rules that found something.
    pub rules: Vec<WafRuleTold>,
    /// Checks that found something.
    pub checks: Vec<String>,
}

/// A rule of the firewall that found something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WafRuleTold {
    /// Its number.
    pub id: u64,
    /// The message of the rule.
    pub message: String,
}

/// Why a recorded request went where it went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestExplanation {
    /// The record.
    pub recorded: RecordedRequest,
    /// The same request, decided once more by the configuration in force, rule by rule with the values that they compare;
    /// `null`: that is not possible.
    pub again: Option<Explanation>,
    /// Where the two differ or may differ, and why.
    pub differences: Vec<String>,
}
