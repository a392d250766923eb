//! The result of an explanation. Secrets of the request are masked in all of its texts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a request goes where it goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The request.
    pub request: RequestTold,
    /// Where it comes in.
    pub listener: Listener,
    /// Policies about its connection.
    #[serde(default)]
    pub connection_policies: Vec<PolicyTold>,
    /// What virtual servers decide about it: more than one, where one hands it to another.
    #[serde(default)]
    pub virtual_servers: Vec<Considered>,
    /// What the web application firewall finds.
    #[serde(default)]
    pub firewall: Option<Firewall>,
    /// Which member it gets.
    #[serde(default)]
    pub balancing: Option<Balancing>,
    /// What comes of it.
    pub outcome: Outcome,
    /// What else is to be known.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// The request that is explained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestTold {
    /// Its method.
    pub method: String,
    /// Its URL.
    pub url: String,
    /// `1.1` or `2`.
    pub version: String,
    /// The other end of its connection.
    pub peer: String,
    /// Its fields.
    pub headers: Vec<Field>,
    /// Bytes of its body.
    pub body_bytes: usize,
}

/// A field of a head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Where a request comes in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Listener {
    /// The virtual server.
    pub virtual_server: String,
    /// The address that it listens on; `None`: requests are only handed to it.
    pub address: Option<String>,
    /// Why it is that one.
    pub because: String,
    /// The TLS of the connection; `None`: it has none.
    pub tls: Option<Tls>,
    /// Limits on connections.
    #[serde(default)]
    pub limits: Vec<LimitTold>,
}

/// The TLS of a connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tls {
    /// The name that the client asks for; empty: none.
    pub server_name: String,
    /// The certificate that it gets; `None`: the handshake is refused.
    pub certificate: Option<Certificate>,
}

/// A certificate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Certificate {
    /// Its subject.
    pub subject: String,
    /// The names that it is for.
    pub names: Vec<String>,
    /// The name that was asked for is not among them.
    pub is_default: bool,
}

/// What one virtual server decides about a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Considered {
    /// The virtual server.
    pub virtual_server: String,
    /// The client, as rules see it.
    pub client: Option<String>,
    /// Where that is from: the connection, or a header of a trusted proxy.
    pub client_from: String,
    /// Limits that the request counts against.
    pub limits: Vec<LimitTold>,
    /// Policies, in their order.
    pub policies: Vec<PolicyTold>,
    /// What rules have made of the target.
    pub rewrites: Vec<Rewrite>,
    /// What is asked about its user.
    pub authentication: Vec<String>,
    /// What is decided.
    pub verdict: String,
    /// The pool that it goes to, if it goes to one.
    pub pool: Option<PoolTold>,
    /// How its client is kept at a member.
    pub persistence: Option<PersistenceTold>,
}

/// A limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitTold {
    /// Its name.
    pub name: String,
    /// What it counts by; `None`: all together.
    pub key: Option<String>,
    /// How many more would pass now.
    pub room: u64,
    /// How many there may be at once.
    pub max: u64,
    /// Whether they are counted by time: what passed may pass again later.
    pub is_rate: bool,
    /// Whether the request is above it.
    pub is_exceeded: bool,
}

/// A policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyTold {
    /// Its name.
    pub name: String,
    /// `first_match` or `all_match`.
    pub strategy: String,
    /// Its rules, in their order.
    pub rules: Vec<RuleTold>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleTold {
    /// Its name, or its number in the policy.
    pub name: String,
    /// Where it stands: `weir.yaml:12:9`.
    pub place: String,
    /// Its condition; `None`: it always holds.
    pub when: Option<String>,
    /// Whether its condition holds; `None`: that shows with the response.
    pub holds: Option<bool>,
    /// What became of it.
    pub verdict: RuleVerdict,
    /// The values that its condition reads.
    pub values: Vec<ValueTold>,
    /// What it does.
    pub actions: Vec<String>,
}

/// What became of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleVerdict {
    /// It was followed.
    Followed,
    /// Its condition does not hold.
    False,
    /// A rule before it was followed, or has ended the request.
    NotReached,
    /// It is followed with the response.
    WithResponse,
    /// The response decides.
    AwaitsResponse,
}

/// A value that a condition reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValueTold {
    /// As expressions name it.
    pub name: String,
    /// The value; `None`: it is absent.
    pub value: Option<String>,
}

/// A part of the target that rules have changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rewrite {
    /// `path`, `query` or `host`.
    pub part: String,
    /// As it was received.
    pub before: String,
    /// As the member gets it.
    pub after: String,
}

/// The pool of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PoolTold {
    /// Its name.
    pub name: String,
    /// Why it is that one.
    pub because: String,
    /// Chance decides: another request may get another pool.
    pub is_drawn: bool,
}

/// How the client of a request is kept at a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PersistenceTold {
    /// Its name; empty: a rule names the member.
    pub name: String,
    /// The way to identify clients.
    pub kind: String,
    /// `kept`, `new`, `by_key`, `no_key` or `by_rule`.
    pub verdict: String,
    /// The member that its client is at.
    pub member: Option<String>,
    /// What is remembered with this request.
    pub remembers: Option<String>,
}

/// What the web application firewall finds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Firewall {
    /// `detect` or `block`.
    pub mode: String,
    /// `passed`, `detected`, `blocked` or `unjudged`.
    pub outcome: String,
    /// The status that it answers with; `None`: the request goes on.
    pub status: Option<u16>,
    /// The score of the request.
    pub score: i64,
    /// The score from which on requests are blocked; 0: rules have none.
    pub threshold: i64,
    /// Rules that have found something.
    pub rules: Vec<WafRule>,
    /// Checks that have found something.
    pub checks: Vec<WafCheck>,
    /// Further findings, which are not listed.
    pub left_out: usize,
}

/// A rule of the firewall that has found something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WafRule {
    /// Its number.
    pub id: u64,
    /// What it says.
    pub message: String,
    /// How grave that is.
    pub severity: Option<String>,
    /// Where it stands.
    pub place: Option<String>,
    /// The values that it was found in.
    pub values: Vec<ValueTold>,
}

/// A check of the firewall that has found something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WafCheck {
    /// Its name.
    pub name: String,
    /// What is done.
    pub action: String,
    /// What was found.
    pub found: String,
}

/// Which member of a pool a request gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Balancing {
    /// The pool.
    pub pool: String,
    /// How it balances.
    pub method: String,
    /// What leads the request to a member: `any`, `key` or `member`.
    pub preference: String,
    /// Its members.
    pub candidates: Vec<Candidate>,
    /// Members that are not listed.
    pub left_out: usize,
    /// The member that it gets; `None`: none, or one of those that it [may](Candidate::is_possible) get.
    pub member: Option<String>,
    /// In words.
    pub because: String,
    /// Until when what has to have come.
    pub timeouts: Timeouts,
}

/// A member that a request may get.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// Its address.
    pub member: String,
    /// The name that the file gives it.
    pub name: Option<String>,
    /// `up`, `pending`, `down`, `draining` or `ejected`.
    pub state: String,
    /// `enabled`, `drain` or `disabled`.
    pub administrative: String,
    /// Its weight.
    pub weight: u16,
    /// Its priority.
    pub priority: u16,
    /// Requests that occupy it now.
    pub occupancy: u32,
    /// How many there may be.
    pub connections_max: Option<u32>,
    /// How fast it answered of late, in microseconds; `None`: that is not looked at, or not known.
    pub response_time_us: Option<u64>,
    /// Whether it takes new requests.
    pub is_eligible: bool,
    /// Whether the request may get it.
    pub is_possible: bool,
}

/// Timeouts of a request at a member, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timeouts {
    /// For the connection.
    pub connect_ms: u64,
    /// For the head of the response.
    pub response_ms: u64,
    /// For a place in the queue; `None`: there is no queue.
    pub queue_ms: Option<u64>,
    /// How many other members are tried.
    pub retries: u8,
}

/// What comes of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// A member gets it.
    Member {
        /// The pool.
        pool: String,
        /// The member; `None`: one of the possible ones.
        member: Option<String>,
        /// The first line of the request.
        request_line: String,
        /// Its fields.
        headers: Vec<Field>,
        /// Bytes of the body.
        body_bytes: usize,
        /// Rules that may be followed with the response.
        response_policies: Vec<PolicyTold>,
    },
    /// Weir answers.
    Answer {
        /// The status.
        status: u16,
        /// Why: as the access log has it.
        termination: String,
        /// Fields of the answer.
        headers: Vec<Field>,
        /// The beginning of its body.
        body: Option<String>,
    },
    /// It waits in the queue of its pool.
    Queue {
        /// The pool.
        pool: String,
        /// How many wait already.
        waiting: u32,
        /// How many may.
        length_max: u32,
    },
    /// Its connection is closed without an answer.
    Closed {
        /// Why: as the access log has it.
        termination: String,
        /// With a reset.
        is_reset: bool,
    },
}
