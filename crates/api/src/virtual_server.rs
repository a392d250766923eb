//! Virtual servers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::certificate::Certificate;
use crate::health::Health;
use crate::rate::Rate;
use crate::relayed::Relayed;
use crate::responses::{Classes, Latency};

/// A virtual server.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VirtualServer {
    /// The name.
    pub name: String,
    /// The type in the configuration: `http`, `tcp` or `udp`.
    pub r#type: String,
    /// How well it serves.
    pub health: Health,
    /// The addresses that it listens on.
    pub listen: Vec<String>,
    /// The pool of requests that no rule sends elsewhere; empty: it has none.
    pub pool: String,
    /// All pools that requests can reach by host names, by rules or as fallbacks. `pool` is the first.
    pub pools: Vec<String>,
    /// Connections and requests of clients.
    #[serde(flatten)]
    pub counts: ClientCounts,
    /// Relayed connections by their end; `null` for type http.
    pub relayed: Option<Relayed>,
    /// Responses by class of status.
    pub responses: Classes,
    /// The virtual servers to which rules hand requests over.
    pub hands_over_to: Vec<String>,
    /// Bytes from clients.
    pub bytes_received: u64,
    /// Bytes to clients.
    pub bytes_sent: u64,
    /// Rates per second; `null` until they are known.
    pub rates: Option<Rate>,
    /// Counters of datagrams; `null` for other types than udp.
    pub datagrams: Option<Datagrams>,
    /// Results of the web application firewall; `null` without it.
    pub waf: Option<WafCounts>,
    /// The certificates for clients; empty without TLS.
    pub certificates: Vec<Certificate>,
    /// From the complete request head until the last byte of the response was handed to the socket.
    pub request_duration: Latency,
}

/// Connections and requests of the clients of a virtual server.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClientCounts {
    /// Connections accepted; sessions of type udp.
    pub connections: u64,
    /// Connections or sessions open now.
    pub connections_open: u64,
    /// The limit of `connections_open`; `null`: there is none.
    pub connections_max: Option<u32>,
    /// Connections that got 503 and were closed because of that limit.
    pub connections_refused: u64,
    /// Requests whose head was complete and well-formed.
    pub requests: u64,
    /// Requests in progress.
    pub requests_active: u64,
    /// Requests refused because they were malformed or exceeded a limit (400, 414, 431, 501, 505, …).
    pub requests_malformed: u64,
    /// Requests refused for a path that servers read differently (400).
    pub requests_path_refused: u64,
    /// Clients disconnected because a request head was not complete within `header_timeout`.
    pub head_timeouts: u64,
    /// Clients disconnected because a body made no progress within `body_timeout`.
    pub body_timeouts: u64,
    /// Clients that disconnected before their response was complete.
    pub client_aborts: u64,
    /// Connections that became tunnels (101).
    pub tunnels: u64,
}

/// Counters of datagrams of a virtual server of type udp.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Datagrams {
    /// Datagrams from clients.
    pub received: u64,
    /// Datagrams to clients.
    pub sent: u64,
    /// Clients' datagrams without a session, because a limit was reached or no member was up.
    pub refused: u64,
    /// Responses dropped because of `amplification_max`.
    pub answers_dropped: u64,
}

/// Results of the web application firewall.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "WafStatus")]
pub struct WafCounts {
    /// The mode of requests for which no policy sets another one: `off`, `detect` or `block`.
    pub mode: String,
    /// Requests inspected, with or without a verdict.
    pub inspected: u64,
    /// Inspected requests that were blocked.
    pub blocked: u64,
    /// Inspected requests that would have been blocked.
    pub detected: u64,
    /// Inspected requests without a verdict.
    pub unjudged: u64,
}

/// A disabled virtual server.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "DisabledStatus")]
pub struct Disabled {
    /// The name.
    pub name: String,
    /// The type in the configuration.
    pub r#type: String,
    /// The addresses that it listens on when it is enabled.
    pub listen: Vec<String>,
}
