//! What the views of the dashboard show.

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::member::Member;
use crate::policy::Policy;
use crate::process::ProcessHealth;
use crate::responses::Latency;
use crate::virtual_server::VirtualServer;

/// The first event.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardWhole")]
pub struct Whole {
    /// The document.
    pub document: Dashboard,
    /// The points of the charts, oldest first, one per two seconds: of the virtual server in the view, or of all together.
    pub points: VecDeque<Point>,
    /// Requests per second of each virtual server in the list, oldest first.
    pub rows: BTreeMap<String, Vec<f32>>,
}

/// The changes since the previous event.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardChange")]
pub struct Change {
    /// The next point of the charts.
    pub point: Option<Point>,
    /// A JSON merge patch (RFC 7396) for the document.
    pub patch: Value,
}

/// The figures between two samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardPoint")]
pub struct Point {
    /// Requests, or connections of other types, per second.
    pub requests: f32,
    /// Responses with 5xx per second.
    pub failed: f32,
    /// The mean response time in milliseconds; `null`: no responses.
    pub ms: Option<f32>,
    /// Open connections of clients.
    pub open: f32,
    /// Bytes sent to clients per second.
    pub sent: f32,
    /// Requests per second that the firewall blocked.
    pub blocked: f32,
    /// Complete TLS handshakes per second.
    pub handshakes: f32,
}

/// The document: the process, and the data of the view.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Dashboard {
    /// The process.
    pub process: ProcessBrief,
    /// The view `overview`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overview: Option<Overview>,
    /// The view `servers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Rows<ServerRow>>,
    /// The view `server`; absent if no virtual server has this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerView>,
    /// The view `pools`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pools: Option<Rows<PoolRow>>,
    /// The view `pool`; absent if no pool has this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolView>,
    /// The view `map`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<Rows<MapRow>>,
}

/// A summary of the process.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ProcessBrief {
    /// The version of weir.
    pub version: String,
    /// The time of the start.
    pub started: String,
    /// `serving` (without a problem), `degraded`, `down` (no virtual server serves), `starting` or `draining`.
    pub health: ProcessHealth,
    /// The first problems, as sentences.
    pub problems: Vec<String>,
    /// The number of all problems.
    pub problems_count: usize,
    /// Whether it waits for the first probes of members.
    pub starting: bool,
    /// Whether it shuts down, and accepts no new connections.
    pub draining: bool,
}

/// One page of a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Rows")]
pub struct Rows<T> {
    /// Names, in the order of the configuration.
    pub order: Vec<String>,
    /// The rows by name.
    pub items: BTreeMap<String, T>,
    /// The number of rows that match the search.
    pub found: usize,
    /// The number of all rows.
    pub total: usize,
    /// The number of the page, from 1.
    pub page: usize,
    /// The number of pages.
    pub pages: usize,
}

/// The health of a virtual server or of a pool, as the page shows it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardHealth")]
pub struct HealthRow {
    /// `up`, `degraded`, `failing` or `down`.
    pub state: String,
    /// The reason; `null`: it is up.
    pub why: Option<String>,
    /// The severity of the state: `good`, `warn` or `bad`.
    pub shown: String,
}

/// The overview.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardOverview")]
pub struct Overview {
    /// The number of virtual servers.
    pub virtual_servers: usize,
    /// The number of pools.
    pub pools: usize,
    /// The number of members of all pools.
    pub members: usize,
    /// The number of members that are up.
    pub members_up: usize,
    /// Certificates that expire soon.
    pub expiring: Vec<Expiring>,
    /// Virtual servers that are not up, worst first.
    pub ailing: Vec<Ailing>,
    /// The number of all virtual servers that are not up.
    pub ailing_count: usize,
    /// Pools that are not up, worst first.
    pub attention: Vec<Attention>,
    /// The number of all pools that are not up.
    pub attention_count: usize,
    /// The virtual servers with most requests per second.
    pub busiest: Vec<Busy>,
}

/// A certificate that expires soon.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardCertificate")]
pub struct Expiring {
    /// The names that the certificate is valid for.
    pub names: Vec<String>,
    /// The number of whole days until it expires; negative: expired.
    pub days_left: i64,
}

/// A virtual server that is not up.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardAiling")]
pub struct Ailing {
    /// The name.
    pub name: String,
    /// How well it serves.
    #[serde(flatten)]
    pub health: HealthRow,
}

/// A pool that is not up.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardAttention")]
pub struct Attention {
    /// The name.
    pub name: String,
    /// How well it serves.
    #[serde(flatten)]
    pub health: HealthRow,
    /// The first members that take no traffic, with reasons.
    pub members: Vec<String>,
    /// The number of members that are not listed.
    pub more: usize,
}

/// One of the busiest virtual servers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardBusy")]
pub struct Busy {
    /// The name.
    pub name: String,
    /// How well it serves.
    #[serde(flatten)]
    pub health: HealthRow,
    /// Requests, or connections of other types, per second.
    pub requests_per_second: f32,
    /// Open connections of clients.
    pub connections_open: u64,
    /// The median of the request duration.
    pub p50_ms: Option<f64>,
    /// The 99th percentile of the request duration.
    pub p99_ms: Option<f64>,
}

/// A virtual server in the list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardServer")]
pub struct ServerRow {
    /// The type in the configuration.
    pub r#type: String,
    /// How well it serves.
    #[serde(flatten)]
    pub health: HealthRow,
    /// The first addresses that it listens on.
    pub listen: Vec<String>,
    /// The pool of requests that no rule sends elsewhere.
    pub pool: String,
    /// Requests, or connections of other types, per second.
    pub requests_per_second: f32,
    /// Open connections of clients.
    pub connections_open: u64,
    /// Responses with 5xx since the start.
    pub failed: u64,
    /// The median of the request duration.
    pub p50_ms: Option<f64>,
    /// The 99th percentile of the request duration.
    pub p99_ms: Option<f64>,
}

/// One virtual server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardServerView")]
pub struct ServerView {
    /// How well it serves.
    #[serde(flatten)]
    pub health: HealthRow,
    /// Its status.
    pub status: VirtualServer,
    /// The policies, in order.
    pub policies: Vec<Policy>,
    /// The pools that its requests can reach.
    pub pools: Vec<NamedPool>,
}

/// A pool in the list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardPool")]
pub struct PoolRow {
    /// How well it serves.
    #[serde(flatten)]
    pub health: HealthRow,
    /// The method of load balancing.
    pub balance: String,
    /// The number of members.
    pub members: usize,
    /// The number of members that accept new requests.
    pub members_in_service: usize,
    /// The first members, with their states.
    pub marks: Vec<Mark>,
    /// Requests that wait in the queue now.
    pub queue_requests: u64,
    /// Retries on another member.
    pub retries: u64,
    /// Requests that got 503 because no member was available.
    pub no_member: u64,
}

/// A pool of a virtual server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardNamedPool")]
pub struct NamedPool {
    /// The name.
    pub name: String,
    /// The pool.
    #[serde(flatten)]
    pub row: PoolRow,
}

/// A member and its state.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardMark")]
pub struct Mark {
    /// The address.
    pub member: String,
    /// The state, or the administrative state if that takes it out of service.
    pub state: String,
    /// The severity of the state: `good`, `off`, `warn` or `bad`.
    pub shown: String,
}

/// One pool.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardPoolView")]
pub struct PoolView {
    /// The pool.
    #[serde(flatten)]
    pub row: PoolRow,
    /// The first virtual servers that use the pool.
    pub virtual_servers: Vec<String>,
    /// From the request handed to a member's socket to the response head.
    pub response_duration: Latency,
    /// The members, by address.
    pub list: Rows<Member>,
}

/// A virtual server in the map.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardMap")]
pub struct MapRow {
    /// How well it serves.
    #[serde(flatten)]
    pub health: HealthRow,
    /// The first addresses that it listens on.
    pub listen: Vec<String>,
    /// Its first policies.
    pub policies: Vec<MapPolicy>,
    /// The pools that its requests can reach.
    pub pools: Vec<NamedPool>,
}

/// A policy in the map.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DashboardMapPolicy")]
pub struct MapPolicy {
    /// The name.
    pub name: String,
    /// The number of its rules.
    pub rules: usize,
}
