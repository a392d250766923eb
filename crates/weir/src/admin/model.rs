//! The answers of the admin listener, with the keys that the commands use. Other keys are ignored, so later versions of
//! weir can be queried.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::findings::Finding;

/// `/v1/status`.
#[derive(Debug, Deserialize)]
pub struct Status {
    pub version: String,
    /// Absent in old versions.
    #[serde(default)]
    pub pid: Option<u32>,
    /// Absent in old versions.
    #[serde(default)]
    pub started: String,
    pub uptime_seconds: u64,
    /// The state of the process as a whole. Absent in old versions.
    #[serde(default)]
    pub health: Option<String>,
    /// Problems of the process, and of what does not serve.
    pub problems: Vec<String>,
    /// Files with contents that expire. Absent in old versions.
    #[serde(default)]
    pub files: Vec<DatedFile>,
    pub workers: usize,
    /// Absent in old versions.
    #[serde(default)]
    pub sandbox: Option<Sandbox>,
    pub configuration: Configuration,
    /// The process before an upgrade, while it drains.
    #[serde(default)]
    pub draining_process: Option<u32>,
    pub virtual_servers: Vec<VirtualServer>,
    /// Disabled virtual servers.
    #[serde(default)]
    pub disabled_virtual_servers: Vec<Disabled>,
    /// Virtual servers of type fast_l4.
    #[serde(default)]
    pub packet_path: Option<PacketPath>,
    pub pools: Vec<Pool>,
}

/// A file with contents that expire.
#[derive(Debug, Deserialize)]
pub struct DatedFile {
    pub told: String,
    pub is_due: bool,
}

/// How well a virtual server or a pool serves.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Health {
    pub state: String,
    pub why: Option<String>,
}

impl Health {
    /// The state and its reason: `down: none of its 2 members is in service`.
    pub fn text(&self) -> String {
        match &self.why {
            Some(why) => format!("{}: {why}", self.state),
            None => self.state.clone(),
        }
    }

    /// Whether it cannot serve, or most of what it serves fails.
    pub fn is_bad(&self) -> bool {
        matches!(self.state.as_str(), "down" | "failing")
    }

    /// Whether it serves, but not as it should.
    pub fn is_degraded(&self) -> bool {
        self.state == "degraded"
    }
}

/// Whether worker threads are denied access to files.
#[derive(Debug, Deserialize)]
pub struct Sandbox {
    pub is_on: bool,
    pub why: Option<String>,
}

/// A disabled virtual server.
#[derive(Debug, Deserialize)]
pub struct Disabled {
    pub name: String,
    pub listen: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct PacketPath {
    pub flows: u64,
    pub flows_max: u32,
    pub virtual_servers: Vec<PacketServer>,
}

#[derive(Debug, Deserialize)]
pub struct PacketServer {
    pub name: String,
    /// Absent in old versions.
    #[serde(default)]
    pub health: Health,
    pub protocol: String,
    pub listen: Vec<String>,
    pub pool: Option<String>,
    pub served_by: String,
    pub rungs: Option<String>,
    pub why: Option<String>,
    pub unserved: Option<String>,
    pub remarks: Vec<String>,
    pub counters: PacketCounters,
    #[serde(default)]
    pub rates: Option<Rates>,
    pub members: Vec<PacketMember>,
}

#[derive(Debug, Deserialize)]
pub struct PacketMember {
    pub address: String,
    pub flows: u64,
}

#[derive(Debug, Deserialize)]
pub struct PacketCounters {
    pub flows: u64,
    pub packets_in: u64,
    pub packets_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

/// `/v1/sessions`.
#[derive(Debug, Deserialize)]
pub struct Sessions {
    pub items: Vec<Session>,
    pub more: bool,
}

/// A relayed connection, a tunnel or a session of datagrams.
#[derive(Debug, Deserialize)]
pub struct Session {
    #[serde(rename = "type")]
    pub kind: String,
    pub virtual_server: String,
    pub pool: String,
    pub member: Option<String>,
    pub client: Option<String>,
    pub age_seconds: u64,
    pub bytes_received: u64,
    pub bytes_sent: u64,
}

/// The answer to `/v1/sessions/end`.
#[derive(Debug, Deserialize)]
pub struct EndedSessions {
    pub sessions: u64,
}

/// `/v1/l4/flows`.
#[derive(Debug, Deserialize)]
pub struct Flows {
    pub items: Vec<Flow>,
    pub more: bool,
}

#[derive(Debug, Deserialize)]
pub struct Flow {
    pub protocol: u8,
    pub virtual_server: Option<String>,
    pub client: String,
    pub destination: String,
    pub member: Option<String>,
    pub state: String,
    pub age_seconds: u64,
    pub idle_seconds: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

/// The response to a request to end flows.
#[derive(Debug, Deserialize)]
pub struct EndedFlows {
    pub flows: u64,
    pub resets: u64,
}

#[derive(Debug, Deserialize)]
pub struct Configuration {
    pub in_force_since: String,
    /// The version of the overlay that is in force; 0: no overlay.
    #[serde(default)]
    pub version_in_force: u64,
    /// A version that is rolled back unless it is confirmed.
    #[serde(default)]
    pub unconfirmed_version: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub struct VirtualServer {
    pub name: String,
    /// Absent in old versions.
    #[serde(default)]
    pub health: Health,
    pub listen: Vec<String>,
    pub pool: String,
    /// Absent: only the default pool.
    #[serde(default)]
    pub pools: Vec<String>,
    /// The virtual servers to which its rules hand requests over.
    #[serde(default)]
    pub hands_over_to: Vec<String>,
    pub connections: u64,
    pub connections_open: u64,
    pub connections_max: Option<u32>,
    pub connections_refused: u64,
    pub requests: u64,
    pub requests_active: u64,
    pub responses: Responses,
    pub request_duration: Latency,
    pub bytes_received: u64,
    pub bytes_sent: u64,
    /// Absent until weir has measured for long enough.
    #[serde(default)]
    pub rates: Option<Rates>,
    /// For types tcp and udp: the ends of connections or sessions.
    #[serde(default)]
    pub relayed: Option<BTreeMap<String, u64>>,
    /// For type udp: datagrams.
    #[serde(default)]
    pub datagrams: Option<Datagrams>,
    /// The certificates for clients.
    #[serde(default)]
    pub certificates: Vec<Certificate>,
}

/// Rates of a virtual server per second.
#[derive(Debug, Deserialize)]
pub struct Rates {
    pub seconds: f64,
    pub connections_per_second: f64,
    pub requests_per_second: f64,
    pub packets_per_second: f64,
    pub bytes_received_per_second: f64,
    pub bytes_sent_per_second: f64,
}

/// A certificate.
#[derive(Debug, Deserialize)]
pub struct Certificate {
    pub names: Vec<String>,
    pub subject: String,
    pub not_after: String,
    pub days_left: i64,
    /// Its renewal, if it comes from an authority by ACME.
    pub acme: Option<Acme>,
}

/// The renewal of a certificate by ACME.
#[derive(Debug, Deserialize)]
pub struct Acme {
    pub authority: String,
    pub state: String,
    pub renews_at: Option<String>,
    pub failures: u32,
    pub reason: Option<String>,
    pub next_try: Option<String>,
}

/// Datagrams of a virtual server.
#[derive(Debug, Deserialize)]
pub struct Datagrams {
    pub received: u64,
    pub sent: u64,
    pub refused: u64,
    pub answers_dropped: u64,
}

/// A page of a list.
#[derive(Debug, Deserialize)]
pub struct Page {
    pub items: Vec<serde_json::Value>,
    /// The last item of this page; absent on the last page.
    pub next: Option<String>,
}

/// All pools.
#[derive(Debug, Deserialize)]
pub struct Pools {
    pub items: Vec<Pool>,
}

/// `/v1/pools/POOL`.
#[derive(Debug, Deserialize)]
pub struct Pool {
    pub name: String,
    /// Absent in old versions.
    #[serde(default)]
    pub health: Health,
    pub balance: String,
    pub members_in_service: usize,
    pub retries: u64,
    pub no_member: u64,
    /// Absent in old versions.
    pub response_duration: Option<Latency>,
    pub members: Vec<Member>,
}

/// `/v1/pools/POOL/members/ADDRESS`.
#[derive(Debug, Deserialize)]
pub struct Member {
    pub address: String,
    pub name: Option<String>,
    pub state: String,
    pub administrative: String,
    pub administrative_source: String,
    pub draining_requests: Option<u32>,
    pub ejected_for_ms: Option<u64>,
    /// The last failure of a request.
    #[serde(default)]
    pub ejected_why: Option<String>,
    pub monitors: Vec<Monitor>,
    pub weight: u16,
    pub occupancy: u32,
    pub connections_max: Option<u32>,
    pub requests: u64,
    pub connections_open: u64,
    pub connections_idle: u64,
    pub connect_failures: u64,
    pub response_failures: u64,
    #[serde(flatten)]
    pub counts: MemberCounts,
    pub responses: Responses,
    /// Absent if weir does not count it by member.
    pub response_duration: Option<Latency>,
}

/// Further counters of a member.
#[derive(Debug, Deserialize)]
pub struct MemberCounts {
    pub ejections: u64,
    /// Bytes of its responses. Absent in old versions.
    #[serde(default)]
    pub bytes_received: u64,
}

#[derive(Debug, Deserialize)]
pub struct Monitor {
    /// The remaining time of `up_delay`, although probes succeed.
    #[serde(default)]
    pub held_up_for_ms: Option<u64>,
    pub r#type: String,
    pub state: String,
    pub passes: u64,
    pub failures: u64,
    pub last_probe: Option<String>,
    pub last_failure: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Responses {
    #[serde(rename = "5xx")]
    pub server_error: u64,
}

/// Quantiles; absent without measurements.
#[derive(Debug, Deserialize)]
pub struct Latency {
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}

/// The response to a change of a member.
#[derive(Debug, Deserialize)]
pub struct Changed {
    pub pool: String,
    pub changed: bool,
    pub before: String,
    pub members_in_service: usize,
    /// An older version of weir does not tell it.
    #[serde(default)]
    pub fallback_serves: bool,
    pub member: Member,
}

/// The response to a change of a server in all its pools.
#[derive(Debug, Deserialize)]
pub struct ChangedAll {
    pub members: Vec<Changed>,
}

/// Problem details (RFC 9457): the reason for an error.
#[derive(Debug, Deserialize)]
pub struct Problem {
    pub detail: String,
    pub help: Option<String>,
    #[serde(default)]
    pub diagnostics: Vec<Finding>,
}

/// The administrative state without restrictions.
pub const ENABLED: &str = "enabled";

/// The state of a member that is available.
pub const UP: &str = "up";

impl Member {
    /// Whether it gets new requests.
    pub fn is_in_service(&self) -> bool {
        self.state == UP && self.weight > 0 && self.is_enabled()
    }

    /// Whether its administrative state permits requests.
    pub fn is_enabled(&self) -> bool {
        self.administrative == ENABLED
    }

    /// The number of its failures.
    pub fn errors(&self) -> u64 {
        self.connect_failures + self.response_failures + self.responses.server_error
    }

    /// The administrative state as text, and whether it was set at run time: `drain (run time)`.
    pub fn administrative_text(&self) -> String {
        match self.administrative_source.as_str() {
            "runtime" => format!("{} (run time)", self.administrative),
            _ => self.administrative.clone(),
        }
    }
}
