//! The result of an explanation. Secrets of the request are masked in all texts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The explanation of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The request.
    pub request: RequestTold,
    /// The listener that receives the request.
    pub listener: Listener,
    /// Policies for the connection.
    #[serde(default)]
    pub connection_policies: Vec<PolicyTold>,
    /// The decisions of virtual servers: of several, if one hands the request over to another.
    #[serde(default)]
    pub virtual_servers: Vec<Considered>,
    /// The findings of the web application firewall.
    #[serde(default)]
    pub firewall: Option<Firewall>,
    /// The selection of a member.
    #[serde(default)]
    pub balancing: Option<Balancing>,
    /// The outcome.
    pub outcome: Outcome,
    /// Remarks.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// The explained request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestTold {
    /// The method.
    pub method: String,
    /// The URL.
    pub url: String,
    /// `1.1` or `2`.
    pub version: String,
    /// The peer of the connection.
    pub peer: String,
    /// The fields.
    pub headers: Vec<Field>,
    /// The size of the body.
    pub body_bytes: usize,
}

/// A field of a head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Field {
    /// The name of the field.
    pub name: String,
    /// The value of the field.
    pub value: String,
}

/// The listener that receives a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Listener {
    /// The virtual server.
    pub virtual_server: String,
    /// The listening address; `None`: other virtual servers hand requests over to this one.
    pub address: Option<String>,
    /// The reason for this choice.
    pub because: String,
    /// The TLS of the connection; `None`: the connection is not encrypted.
    pub tls: Option<Tls>,
    /// Limits on connections.
    #[serde(default)]
    pub limits: Vec<LimitTold>,
}

/// The TLS of a connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tls {
    /// The name in SNI; empty: none.
    pub server_name: String,
    /// The certificate for the client; `None`: the handshake is refused.
    pub certificate: Option<Certificate>,
}

/// A certificate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Certificate {
    /// The subject.
    pub subject: String,
    /// The names in the certificate.
    pub names: Vec<String>,
    /// The default certificate, because none has the requested name.
    pub is_default: bool,
}

/// The decisions of one virtual server about a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Considered {
    /// The virtual server.
    pub virtual_server: String,
    /// The client's address in rules.
    pub client: Option<String>,
    /// The source of that address: the connection, or a header of a trusted proxy.
    pub client_from: String,
    /// The limits that count the request.
    pub limits: Vec<LimitTold>,
    /// The policies, in order.
    pub policies: Vec<PolicyTold>,
    /// Changes of the target by rules.
    pub rewrites: Vec<Rewrite>,
    /// Authentication steps.
    pub authentication: Vec<String>,
    /// The verdict.
    pub verdict: String,
    /// The selected pool, if any.
    pub pool: Option<PoolTold>,
    /// Persistence of the client.
    pub persistence: Option<PersistenceTold>,
}

/// A limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitTold {
    /// The name of the limit.
    pub name: String,
    /// The value of its key; `None`: the limit has no key.
    pub key: Option<String>,
    /// How many more requests or connections the limit permits now.
    pub room: u64,
    /// The maximum at one time.
    pub max: u64,
    /// Whether it limits a rate: its room recovers over time.
    pub is_rate: bool,
    /// Whether the request exceeds the limit.
    pub is_exceeded: bool,
}

/// A policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyTold {
    /// The name of the policy.
    pub name: String,
    /// `first_match` or `all_match`.
    pub strategy: String,
    /// The rules, in order.
    pub rules: Vec<RuleTold>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleTold {
    /// The name of the rule, or its number in the policy.
    pub name: String,
    /// The file, line and column: `weir.yaml:12:9`.
    pub place: String,
    /// The condition; `None`: the rule has none.
    pub when: Option<String>,
    /// Whether the condition holds; `None`: this depends on the response.
    pub holds: Option<bool>,
    /// The result for the rule.
    pub verdict: RuleVerdict,
    /// The values that the condition reads.
    pub values: Vec<ValueTold>,
    /// The actions.
    pub actions: Vec<String>,
}

/// The result for a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleVerdict {
    /// The rule was followed.
    Followed,
    /// The condition does not hold.
    False,
    /// An earlier rule was followed, or has ended the request.
    NotReached,
    /// The rule is followed when the response arrives.
    WithResponse,
    /// The result depends on the response.
    AwaitsResponse,
}

/// A value that a condition reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValueTold {
    /// The name in expressions.
    pub name: String,
    /// The value; `None`: it is absent.
    pub value: Option<String>,
}

/// A part of the target that rules have changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rewrite {
    /// `path`, `query` or `host`.
    pub part: String,
    /// The received text.
    pub before: String,
    /// The text that the member receives.
    pub after: String,
}

/// The pool of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolTold {
    /// The name of the pool.
    pub name: String,
    /// The reason for this choice.
    pub because: String,
    /// Whether the pool was drawn at random, so another request may get another pool.
    pub is_drawn: bool,
}

/// The persistence of a request's client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PersistenceTold {
    /// The name of the persistence; empty: a rule selects the member.
    pub name: String,
    /// The method of persistence.
    pub kind: String,
    /// `kept`, `new`, `by_key`, `no_key` or `by_rule`.
    pub verdict: String,
    /// The member of the client.
    pub member: Option<String>,
    /// The data that persistence stores with this request.
    pub remembers: Option<String>,
}

/// The findings of the web application firewall.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Firewall {
    /// `detect` or `block`.
    pub mode: String,
    /// `passed`, `detected`, `blocked` or `unjudged`.
    pub outcome: String,
    /// The status of the answer; `None`: the request continues.
    pub status: Option<u16>,
    /// The anomaly score of the request.
    pub score: i64,
    /// The score at which requests are blocked; 0: the rules have no threshold.
    pub threshold: i64,
    /// Rules that matched.
    pub rules: Vec<WafRule>,
    /// Checks with findings.
    pub checks: Vec<WafCheck>,
    /// The number of further findings, which are not listed.
    pub left_out: usize,
}

/// A rule of the firewall that matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WafRule {
    /// The id of the rule.
    pub id: u64,
    /// The message of the rule.
    pub message: String,
    /// The severity of the rule.
    pub severity: Option<String>,
    /// The file and line of the rule.
    pub place: Option<String>,
    /// The values that matched.
    pub values: Vec<ValueTold>,
}

/// A check of the firewall with a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WafCheck {
    /// The name of the check.
    pub name: String,
    /// The action.
    pub action: String,
    /// The finding.
    pub found: String,
}

/// The selection of a member in a pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Balancing {
    /// The pool.
    pub pool: String,
    /// The method of load balancing.
    pub method: String,
    /// The preference of the request: `any`, `key` or `member`.
    pub preference: String,
    /// The members.
    pub candidates: Vec<Candidate>,
    /// The number of members that are not listed.
    pub left_out: usize,
    /// The selected member; `None`: no member, or one of the [possible](Candidate::is_possible) ones.
    pub member: Option<String>,
    /// The reason in words.
    pub because: String,
    /// The timeouts.
    pub timeouts: Timeouts,
    /// The health of the pool; `None`: it is up, or unknown.
    #[serde(default)]
    pub health: Option<PoolHealth>,
}

/// The health of a pool that is not up, as the status has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolHealth {
    /// `degraded`, `failing` or `down`.
    pub state: String,
    /// The reason.
    pub why: String,
}

/// A member as a candidate for a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// The address.
    pub member: String,
    /// The name in the configuration.
    pub name: Option<String>,
    /// `up`, `pending`, `down`, `draining` or `ejected`.
    pub state: String,
    /// `enabled`, `drain` or `disabled`.
    pub administrative: String,
    /// The weight.
    pub weight: u16,
    /// The priority.
    pub priority: u16,
    /// The number of active requests.
    pub occupancy: u32,
    /// The maximum number of active requests.
    pub connections_max: Option<u32>,
    /// The recent response time in microseconds; `None`: not used by the method, or unknown.
    pub response_time_us: Option<u64>,
    /// Whether it takes new requests.
    pub is_eligible: bool,
    /// Whether the request may get this member.
    pub is_possible: bool,
}

/// Timeouts of a request at a member, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timeouts {
    /// For opening the connection.
    pub connect_ms: u64,
    /// For the response head.
    pub response_ms: u64,
    /// For the wait in the queue; `None`: the pool has no queue.
    pub queue_ms: Option<u64>,
    /// The maximum number of retries on other members.
    pub retries: u8,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// A member receives the request.
    Member {
        /// The pool.
        pool: String,
        /// The member; `None`: one of the possible members.
        member: Option<String>,
        /// The request line.
        request_line: String,
        /// The fields.
        headers: Vec<Field>,
        /// The size of the body.
        body_bytes: usize,
        /// Policies with rules for the response.
        response_policies: Vec<PolicyTold>,
    },
    /// weir itself answers.
    Answer {
        /// The status.
        status: u16,
        /// The termination reason, as in the access log.
        termination: String,
        /// The fields of the answer.
        headers: Vec<Field>,
        /// The beginning of the body.
        body: Option<String>,
    },
    /// The request waits in the queue of its pool.
    Queue {
        /// The pool.
        pool: String,
        /// The number of requests in the queue.
        waiting: u32,
        /// The maximum number of requests in the queue.
        length_max: u32,
    },
    /// The connection is closed without an answer.
    Closed {
        /// The termination reason, as in the access log.
        termination: String,
        /// Whether the close is a reset.
        is_reset: bool,
    },
}
