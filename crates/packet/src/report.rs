//! Reports of the packet path: forwarding paths, flows, counters.

use std::net::IpAddr;
use std::time::Duration;

use crate::plan::MemberName;

/// How packets of an interface are processed, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rung {
    /// In the driver, before the kernel allocates a socket buffer.
    Xdp,
    /// Directly afterwards, at tcx ingress; keeps segmentation offload.
    Tcx,
}

impl Rung {
    /// The name in texts: `xdp` or `tcx`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Xdp => "xdp",
            Self::Tcx => "tcx",
        }
    }
}

/// The result for an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The name.
    pub interface: String,
    /// The rung in use; `None`: no packet of the interface is processed.
    pub rung: Option<Rung>,
    /// Whether the driver sends packets from XDP. Otherwise packets that leave by it are sent by tcx.
    pub sends_for_xdp: bool,
    /// The reasons why each better rung is not used, in order.
    pub refused: Vec<RefusedRung>,
}

impl Attachment {
    /// A report for an interface without packets.
    pub(crate) fn none(interface: &str, refused: Vec<RefusedRung>) -> Self {
        Self { interface: interface.to_owned(), rung: None, sends_for_xdp: false, refused }
    }
}

/// A rung that could not be used for an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRung {
    /// The rung.
    pub rung: Rung,
    /// The reason, as text.
    pub why: String,
}

/// The changes by [`crate::PacketPath::apply`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplyReport {
    /// Removed virtual servers; the next sweeps end their flows.
    pub removed_virtual_servers: Vec<String>,
    /// Removed members of virtual servers that remain; they keep their flows, and get no new ones.
    pub removed_members: Vec<MemberName>,
}

/// The result of a sweep. One call examines [`crate::SWEEP_ENTRIES_MAX`] entries; the next continues from there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sweep {
    /// The flows that the sweep ended.
    pub ended: Vec<EndedFlow>,
    /// The number of these flows that took room in the flow table: all but those with direct return.
    pub freed: u64,
    /// The number of examined entries, and of buckets of the flow table, which take about as long.
    pub entries: u64,
    /// The number of examined flows that continue.
    pub flows: u64,
    /// The number of these flows whose answers also pass here; limited by [`crate::Options::flows_max`].
    pub followed: u64,
    /// Whether the sweep reached the end of the table; the next one begins at the start.
    pub whole: bool,
}

/// Numbers of packets that did not begin a flow, by what was short.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shortage {
    /// The flow table was full.
    pub room: u64,
    /// No source port was free.
    pub ports: u64,
}

/// A flow that was ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedFlow {
    /// The flow in its last state.
    pub flow: Flow,
    /// The reason.
    pub why: EndedFor,
    /// Both ends must get a TCP reset: pass this to [`crate::Resetter::reset`].
    pub reset: bool,
    /// TCP: sequence numbers with which the client accepts a reset: the acknowledged one, and the end of the sent data.
    pub client_expects: [u32; 2],
    /// TCP: the sequence numbers that the member expects; `None`: the member cannot be reached by its address, and gets
    /// no reset.
    pub member_expects: Option<[u32; 2]>,
}

/// The reason for the end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndedFor {
    /// It was idle for longer than its timeout.
    Idle,
    /// Both ends had closed the flow.
    Closed,
    /// The member is down.
    MemberDown,
    /// The virtual server was removed.
    Removed,
    /// A command ended it.
    Command,
}

/// The state of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowState {
    /// Only the client has sent.
    Opening,
    /// Both ends have sent.
    Open,
    /// TCP after a reset or the FIN of both ends.
    Closing,
}

/// An end of a flow: an address, and a port (or an ICMP echo's identifier; 0 without either).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct End {
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
}

/// A flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// The number of its protocol: 6 TCP, 17 UDP.
    pub protocol: u8,
    /// The client.
    pub client: End,
    /// The destination that the client used.
    pub destination: End,
    /// The source that the member sees.
    pub source: End,
    /// The destination that the member receives: its own address, or the client's destination if that is not translated.
    pub target: End,
    /// The virtual server; `None`: removed.
    pub virtual_server: Option<String>,
    /// The member; `None`: with [`crate::plan::Delivery::Route`], or removed.
    pub member: Option<MemberName>,
    /// The state.
    pub state: FlowState,
    /// The time since the last packet.
    pub idle: Duration,
    /// The time since the first packet.
    pub age: Duration,
    /// Packets from the client.
    pub packets_in: u64,
    /// Bytes of these packets, including IP headers.
    pub bytes_in: u64,
    /// Packets to the client; 0 for a flow whose member answers directly.
    pub packets_out: u64,
    /// Bytes of these packets, including IP headers.
    pub bytes_out: u64,
}

/// Selects flows; `None` matches any value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowFilter {
    /// Flows of this virtual server.
    pub virtual_server: Option<String>,
    /// Flows to a member with this address.
    pub member_address: Option<IpAddr>,
    /// Flows to a member with this port.
    pub member_port: Option<u16>,
    /// Flows of this client.
    pub client: Option<IpAddr>,
    /// Maximum number of flows; 0 means no flow.
    pub flows_max: usize,
}

/// Counters since the creation of the maps, which may outlive the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Started flows.
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

impl Totals {
    /// The sum of both.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            flows: self.flows + other.flows,
            packets_in: self.packets_in + other.packets_in,
            bytes_in: self.bytes_in + other.bytes_in,
            packets_out: self.packets_out + other.packets_out,
            bytes_out: self.bytes_out + other.bytes_out,
        }
    }
}

/// The number of packets that were dropped or passed to the kernel for a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReasonCount {
    /// The reason.
    pub reason: crate::Reason,
    /// The number of packets.
    pub packets: u64,
}
