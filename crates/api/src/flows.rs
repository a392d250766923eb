//! Flows of the packet path.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::network::ip_or_null;

/// Selects flows. A missing key matches any value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowsToEnd {
    /// The virtual server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_server: Option<String>,
    /// The address of a member, with or without its port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The address of the client.
    // Without `default`, a schema of its own makes a key required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "ip_or_null")]
    pub client: Option<IpAddr>,
    /// Selects all flows; only without other keys.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub all: bool,
}

/// The selected flows.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Flows {
    /// The flows.
    pub items: Vec<Flow>,
    /// Whether the list was cut at `limit`, so more flows may exist.
    pub more: bool,
}

/// A flow: the packets of one connection.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Flow {
    /// The number of the protocol: 6 is TCP, 17 is UDP.
    pub protocol: u8,
    /// The virtual server; `null`: it was removed.
    pub virtual_server: Option<String>,
    /// The address of the client.
    pub client: String,
    /// The destination that the client uses.
    pub destination: String,
    /// The source address that the member sees.
    pub source: String,
    /// The destination that the member receives: its own address, or the client's destination if that is not translated.
    pub target: String,
    /// The member; `null`: it was removed, or packets go where the routing table says.
    pub member: Option<String>,
    /// `opening`, `open` or `closing`.
    pub state: String,
    /// The time since its first packet.
    pub age_seconds: u64,
    /// The time since its last packet.
    pub idle_seconds: u64,
    /// Packets from the client.
    pub packets_in: u64,
    /// Bytes of these packets, including IP headers.
    pub bytes_in: u64,
    /// Packets to the client; 0 for a flow whose member answers directly.
    pub packets_out: u64,
    /// Bytes of these packets, including IP headers.
    pub bytes_out: u64,
}

/// The number of flows that were ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EndedFlows {
    /// The number.
    pub flows: u64,
    /// Resets sent to their ends.
    pub resets: u64,
}
