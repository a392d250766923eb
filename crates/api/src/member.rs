//! Members of pools, and their monitors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::responses::{Classes, Latency};

/// The state of a member that is available.
pub const UP: &str = "up";

/// The administrative state without restrictions.
pub const ENABLED: &str = "enabled";

/// The source of an administrative state that the configuration has.
pub const FILE: &str = "file";

/// The source of an administrative state that was set at run time.
pub const RUNTIME: &str = "runtime";

/// A member and its monitors.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Member {
    /// The address.
    pub address: String,
    /// The host name in the configuration, if it has one.
    pub name: Option<String>,
    /// `up`, `pending`, `down`, `draining` or `ejected`.
    pub state: String,
    /// The administrative state: `enabled`, `drain` or `disabled`.
    pub administrative: String,
    /// The source of the administrative state: `file`, or `runtime`, which lasts until the process ends.
    pub administrative_source: String,
    /// The number of requests in progress on a member that is drained or disabled; `null`: the member is enabled.
    pub draining_requests: Option<u32>,
    /// The time until the member gets traffic again, in milliseconds; `null`: the member is not ejected.
    pub ejected_for_ms: Option<u64>,
    /// The failure that caused the ejection.
    pub ejected_why: Option<String>,
    /// The monitors, in the order of the configuration.
    pub monitors: Vec<Monitor>,
    /// The weight.
    pub weight: u16,
    /// The number of requests in progress, of all workers.
    pub occupancy: u32,
    /// The limit of `occupancy`; `null`: there is none.
    pub connections_max: Option<u32>,
    /// Requests and connections.
    #[serde(flatten)]
    pub counts: MemberCounts,
    /// Its responses by class of status.
    pub responses: Classes,
    /// Bytes from the member.
    pub bytes_received: u64,
    /// Bytes to the member.
    pub bytes_sent: u64,
    /// As of the pool; `null`: not counted by member (`metrics.latency_histograms`).
    pub response_duration: Option<Latency>,
}

/// Counters of a member.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MemberCounts {
    /// Requests sent to the member; each try counts.
    pub requests: u64,
    /// Requests in progress at the member.
    pub requests_active: u64,
    /// Connections opened to the member.
    pub connections: u64,
    /// Connections open now, including idle ones.
    pub connections_open: u64,
    /// Idle connections that are kept for reuse.
    pub connections_idle: u64,
    /// Connections that could not be opened (refused, unreachable, timed out).
    pub connect_failures: u64,
    /// Responses that were malformed, truncated or too late, and tunnels and relayed connections that were ended at once,
    /// without a byte.
    pub response_failures: u64,
    /// Ejections by passive health checks.
    pub ejections: u64,
}

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
        let MemberCounts { connect_failures, response_failures, .. } = self.counts;
        connect_failures + response_failures + self.responses.server_error
    }
}

/// The results of a monitor.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Monitor {
    /// The type in the configuration.
    pub r#type: String,
    /// Its verdict; the member is up if enough of its monitors are up: `pending`, `up`, `down` or `draining`.
    pub state: String,
    /// Probes that have passed.
    pub passes: u64,
    /// Probes that have failed.
    pub failures: u64,
    /// The end of the last probe; `null`: no probe has ended.
    pub last_probe: Option<String>,
    /// The reason why the last probe failed; `null`: it passed.
    pub last_failure: Option<String>,
    /// The rest of `up_delay`, in milliseconds: the member is down although its probes pass; `null`: no delay.
    pub held_up_for_ms: Option<u64>,
}

/// A monitor of a member.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MonitorOf {
    /// The identifier in the list.
    pub id: String,
    /// The pool.
    pub pool: String,
    /// The member.
    pub member: String,
    /// The monitor.
    #[serde(flatten)]
    pub monitor: Monitor,
}
