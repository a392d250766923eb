//! Rates of virtual servers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rates of a virtual server per second, as means over a period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Rate {
    /// The length of the period, in seconds.
    pub seconds: f64,
    /// Connections; sessions of type udp; flows of type fast_l4.
    pub connections_per_second: f64,
    /// Requests.
    pub requests_per_second: f64,
    /// Datagrams of type udp or packets of type fast_l4, in both directions.
    pub packets_per_second: f64,
    /// Bytes from clients.
    pub bytes_received_per_second: f64,
    /// Bytes to clients.
    pub bytes_sent_per_second: f64,
}
