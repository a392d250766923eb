//! Recorded requests. Secrets of the request are masked in all texts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::explanation::{Explanation, Field};

/// The known facts about a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestSummary {
    /// The request id, as in the access log.
    pub id: String,
    /// The time when its head had arrived, in milliseconds since 1970.
    pub begun_unix_ms: u64,
    /// The virtual server that processed it.
    pub virtual_server: String,
    /// The virtual server that received it, if that one handed it over.
    pub entered_at: Option<String>,
    /// The client's address in rules; `null`: a unix socket.
    pub client: Option<String>,
    /// The request.
    #[serde(flatten)]
    pub asked: AskedTold,
    /// The TLS version; `null`: not encrypted.
    pub tls: Option<String>,
    /// The status of the response; 0: none.
    pub status: u16,
    /// The pool; absent if the request reached none.
    pub pool: Option<String>,
    /// The last member.
    pub member: Option<String>,
    /// Bytes, retries and times.
    #[serde(flatten)]
    pub amounts: AmountsTold,
    /// Whether it was slow by the configuration.
    pub is_slow: bool,
    /// The rules that were followed: `policy/rule`.
    pub rules: Vec<String>,
    /// The marks set by rules.
    pub marks: Vec<String>,
    /// The persistence verdict: `kept`, `moved` or `new`; `null`: no persistence.
    pub persistence: Option<String>,
    /// The authenticated user.
    pub user: Option<String>,
    /// `passed`, `detected`, `blocked`, `unjudged` or `unfinished`; `null`: not inspected.
    pub waf: Option<String>,
    /// The termination reason, as in the access log.
    pub termination: String,
}

/// The request of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskedTold {
    /// The method; `null`: unknown, because the request was malformed or is not HTTP.
    pub method: Option<String>,
    /// The requested host.
    pub host: Option<String>,
    /// The target: path and query.
    pub target: Option<String>,
    /// `1.0`, `1.1` or `2`.
    pub version: Option<String>,
}

/// Bytes, retries and times of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AmountsTold {
    /// The number of retries on other members.
    pub retries: u32,
    /// Body bytes of the request.
    pub bytes_received: u64,
    /// Bytes of the response.
    pub bytes_sent: u64,
    /// Microseconds until the first attempt to reach a member.
    pub queue_us: u64,
    /// Microseconds from there to an open connection; 0: an idle connection was used.
    pub connect_us: u64,
    /// Microseconds from there to the response head.
    pub first_byte_us: u64,
    /// Microseconds in total.
    pub total_us: u64,
}

/// A recorded request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedRequest {
    /// The known facts.
    #[serde(flatten)]
    pub summary: RequestSummary,
    /// The peer of the connection.
    pub peer: Option<String>,
    /// The local address of the connection.
    pub listen: Option<String>,
    /// The name in SNI.
    pub server_name: Option<String>,
    /// The TLS cipher suite.
    pub cipher: Option<String>,
    /// The subject of the client's certificate.
    pub certificate: Option<String>,
    /// The fields.
    pub headers: Vec<Field>,
    /// Whether the head exceeded the maximum size of a record, so it is incomplete.
    pub is_head_cut: bool,
    /// Whether the configuration, or an address of a name in it, has changed since the request.
    pub is_of_other_configuration: bool,
    /// The decisions of virtual servers, in order.
    pub decided: Vec<DecidedTold>,
    /// The pools at each selection of a member: several, if the request waited or was retried.
    pub sought: Vec<SoughtTold>,
    /// The failed attempts at members, in order.
    pub failed: Vec<FailedTold>,
    /// The findings of the web application firewall.
    pub firewall: Option<FirewallTold>,
}

/// The decision of a virtual server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecidedTold {
    /// The virtual server.
    pub virtual_server: String,
    /// The client's address in rules.
    pub client: Option<String>,
    /// The rules that were followed: `policy/rule`; `null`: the configuration with their names is gone.
    pub rules: Option<Vec<String>>,
    /// The decision, as text.
    pub verdict: String,
}

/// A pool at the selection of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SoughtTold {
    /// The pool.
    pub pool: String,
    /// The preference of the request: `any`, `key` or `member`.
    pub preference: String,
    /// The members and their states.
    pub candidates: Vec<CandidateTold>,
    /// The number of members that were not recorded.
    pub left_out: usize,
}

/// A member at the selection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateTold {
    /// The address.
    pub member: String,
    /// `up`, `pending`, `down`, `draining` or `ejected`.
    pub state: String,
    /// `enabled`, `drain` or `disabled`.
    pub administrative: String,
    /// The number of active requests.
    pub occupancy: u32,
    /// Whether it took new requests.
    pub is_eligible: bool,
}

/// A failed attempt at a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedTold {
    /// The pool.
    pub pool: String,
    /// The member.
    pub member: String,
    /// The reason, as in the access log.
    pub why: String,
    /// Microseconds from the start of the request.
    pub after_us: u64,
    /// The duration in microseconds.
    pub took_us: u64,
}

/// The findings of the web application firewall.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FirewallTold {
    /// `detect` or `block`.
    pub mode: String,
    /// `passed`, `detected`, `blocked`, `unjudged` or `unfinished`.
    pub outcome: String,
    /// The status of the firewall's answer; `null`: the request continued.
    pub status: Option<u16>,
    /// The score.
    pub score: i64,
    /// Rules with findings.
    pub rules: Vec<WafRuleTold>,
    /// Checks with findings.
    pub checks: Vec<String>,
}

/// A rule of the firewall with a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WafRuleTold {
    /// The id of the rule.
    pub id: u64,
    /// The message of the rule.
    pub message: String,
}

/// The explanation of a recorded request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestExplanation {
    /// The record.
    pub recorded: RecordedRequest,
    /// The same request, decided again by the configuration in force, with each rule and the values that it compares;
    /// `null`: not possible.
    pub again: Option<Explanation>,
    /// The differences and possible differences between the two, with reasons.
    pub differences: Vec<String>,
}
