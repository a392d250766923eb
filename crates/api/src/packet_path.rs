//! The packet path, and the virtual servers of type fast_l4.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::health::Health;
use crate::rate::Rate;

/// The packet path, and the virtual servers of type fast_l4.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PacketPath {
    /// The name in the configuration.
    pub name: String,
    /// The last error; `null`: no error.
    pub failure: Option<String>,
    /// The generation of the configuration in use. While it is less than `configuration.generation`, the kernel is being
    /// updated.
    pub generation: u64,
    /// Whether flows of a former process continue in the packet path.
    pub taken_over: bool,
    /// The interfaces with its programs.
    pub interfaces: Vec<Interface>,
    /// The reason why some SYNs are not answered with cookies although `syn_cookies` requires it.
    pub syn_cookies: Option<String>,
    /// Flows now.
    pub flows: u64,
    /// The limit of `flows`.
    pub flows_max: u32,
    /// The numbers of ended flows, by reason.
    pub flows_ended: BTreeMap<String, u64>,
    /// The number of sent TCP resets.
    pub resets: u64,
    /// The numbers of packets that were not forwarded, by reason. Only reasons that have occurred are listed.
    pub not_forwarded: BTreeMap<String, u64>,
    /// The virtual servers of type fast_l4.
    pub virtual_servers: Vec<PacketServer>,
}

/// An interface with a program of the packet path.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "InterfaceStatus")]
pub struct Interface {
    /// The name of the interface.
    pub name: String,
    /// The attachment of the program: `xdp`, `tcx` or `none`.
    pub rung: String,
    /// The way by which packets that arrived by `xdp` on another interface leave by this one: `xdp`, or `tcx` if the driver
    /// accepts no packets from XDP.
    pub sends: String,
    /// The reasons why better attachments are impossible.
    pub refused: BTreeMap<String, String>,
}

/// The value of [`PacketServer::served_by`] for one that the packet path serves.
pub const BY_PACKETS: &str = "packets";

/// A virtual server of type fast_l4.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "PacketServerStatus")]
pub struct PacketServer {
    /// The name.
    pub name: String,
    /// How well it serves.
    pub health: Health,
    /// The protocol in the configuration.
    pub protocol: String,
    /// Its addresses.
    pub listen: Vec<String>,
    /// The pool; `null`: packets go where the routing table says.
    pub pool: Option<String>,
    /// `packets`, `sockets` (it is also listed in `virtual_servers`) or `nothing`.
    pub served_by: String,
    /// The attachments in use: `xdp on eth0, tcx on eth1`.
    pub rungs: Option<String>,
    /// The reason why the packet path does not serve it.
    pub why: Option<String>,
    /// The reason why sockets do not serve it either.
    pub unserved: Option<String>,
    /// Differences from the configuration.
    pub remarks: Vec<String>,
    /// Counters of all its flows.
    pub counters: PacketCounters,
    /// Rates per second; `null` until they are known.
    pub rates: Option<Rate>,
    /// The members of its pool.
    pub members: Vec<PacketMember>,
}

impl PacketServer {
    /// Whether the packet path serves it.
    pub fn is_by_packets(&self) -> bool {
        self.served_by == BY_PACKETS
    }
}

/// A member of a virtual server of type fast_l4.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "PacketMemberStatus")]
pub struct PacketMember {
    /// The address.
    pub address: String,
    /// Flows to it now.
    pub flows: u64,
    /// Counters of its flows.
    pub counters: PacketCounters,
}

/// Counters of a virtual server or a member.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PacketCounters {
    /// Flows that have begun.
    pub flows: u64,
    /// Packets from clients.
    pub packets_in: u64,
    /// Bytes of these packets, including IP headers.
    pub bytes_in: u64,
    /// Packets to clients.
    pub packets_out: u64,
    /// Bytes of these packets, including IP headers.
    pub bytes_out: u64,
}
