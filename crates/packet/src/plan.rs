//! The configuration of the packet path: data, without I/O.
//!
//! A [`Plan`] is complete: [`crate::PacketPath::apply`] replaces the previous one in one step. Virtual servers with the
//! same name, and members of one virtual server with the same address and port, keep their flows and counters.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Maximum number of virtual servers of a plan.
pub const VIRTUAL_SERVERS_MAX: usize = 4_096;

/// Maximum number of members of all virtual servers; a member of two pools counts twice.
pub const MEMBERS_MAX: usize = 16_384;

/// Maximum number of members of a virtual server: with more, the ring's shares would be too uneven.
pub const SERVER_MEMBERS_MAX: usize = 4_096;

/// Maximum number of destinations of all virtual servers: addresses or prefixes, times ports.
pub const DESTINATIONS_MAX: usize = 65_536;

/// Maximum number of prefixes to allow and to deny, and of virtual servers' clients, in total.
pub const PREFIXES_MAX: usize = 1_048_576;

/// Maximum number of addresses and ports with SYN cookies.
pub const SYN_COOKIES_MAX: usize = 1_024;

/// Maximum number of source translation addresses of a virtual server.
pub const SOURCE_ADDRESSES_MAX: usize = 64;

/// The whole configuration of the packet path.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Virtual servers. Names are unique, except for two virtual servers of one name and different families.
    pub virtual_servers: Vec<VirtualServer>,
    /// Sources whose packets to virtual servers and flows are dropped, unless a longer prefix of `allow` contains them.
    /// This also applies to packets that no virtual server takes: the check precedes everything, including the host's own
    /// services.
    pub deny: Vec<Prefix>,
    /// Exceptions to `deny`. The longest prefix of both lists decides; without any, the packet is accepted.
    pub allow: Vec<Prefix>,
    /// Maximum rate of new flows per source address (IPv6: per /64).
    pub new_flows_per_source: Option<Rate>,
    /// Addresses and ports on which this host itself listens with TCP, and whose SYNs are answered with cookies before
    /// they reach its sockets. Needs native XDP and `net.ipv4.tcp_syncookies=2`; elsewhere SYNs pass as ever.
    pub syn_cookies: Vec<SocketAddr>,
}

/// A rate with its burst: a token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// New flows per second on average, at least 1.
    pub per_second: u32,
    /// New flows at once after a pause, at least 1.
    pub burst: u32,
}

/// Addresses that share their first `length` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    /// Bits behind the prefix are ignored.
    pub address: IpAddr,
    /// Up to 32 (IPv4) or 128 (IPv6).
    pub length: u8,
}

/// A destination of a virtual server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Destination {
    /// One address (all bits), a prefix, or 0.0.0.0/0 and ::/0. The longest prefix wins over the port.
    pub prefix: Prefix,
    /// `None`: any port, and protocols without ports. Ranges are several destinations.
    pub port: Option<u16>,
}

/// The packets that a virtual server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// TCP, and the ICMP errors of its flows.
    Tcp,
    /// UDP, and the ICMP errors of its flows.
    Udp,
    /// Every protocol, including ICMP echo; only with `port: None`. A virtual server for the specific protocol wins.
    Any,
    /// One other protocol by its number, e.g. 47 for GRE; only with `port: None`.
    Number(u8),
}

/// One virtual server.
#[derive(Debug, Clone, PartialEq)]
pub struct VirtualServer {
    /// Stable from plan to plan. A virtual server with both address families is two with one name, which count as one.
    pub name: String,
    /// The destinations, at least one.
    pub destinations: Vec<Destination>,
    /// The protocol of its packets.
    pub protocol: Protocol,
    /// The treatment of a packet's destination.
    pub delivery: Delivery,
    /// The source address that the members see.
    pub source: Source,
    /// The members. Empty with [`Delivery::Route`] and [`Delivery::Pass`]; otherwise an empty list means that no client
    /// is served.
    pub members: Vec<Member>,
    /// The only sources whose packets begin flows. Packets of others are dropped, unless they belong to a flow that began
    /// under another plan. `None`: all sources. Of a list, only prefixes of the destinations' family matter.
    pub clients: Option<Vec<Prefix>>,
    /// How long persistence keeps a source at its member after the last new flow. `None`: each flow is balanced separately.
    pub persistence: Option<Duration>,
    /// The idle timeouts of flows.
    pub timeouts: Timeouts,
    /// Both ends of a TCP flow get a reset when the flow ends by its idle timeout ([`crate::EndedFlow::reset`]).
    pub reset_on_timeout: bool,
    /// Both ends of a TCP flow get a reset when the flow ends because its member is down.
    pub reset_on_member_down: bool,
    /// TCP flows may begin with any segment except a reset, not only with a SYN. For routing, and for connections that were
    /// open before.
    pub loose_initiation: bool,
    /// Maximum MSS in SYNs, at least 64; larger values are lowered to it. `None`: unchanged.
    pub mss_max: Option<u16>,
    /// The treatment of TTL and hop limit.
    pub ttl: Ttl,
    /// Type of service (IPv6: traffic class) of all packets toward members and clients. `None`: unchanged.
    /// The two bits of ECN are never changed.
    pub tos: Option<u8>,
}

/// The treatment of a packet's destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// The destination is replaced by the member's address, and by its port if it has one. Answers must return through
    /// this host: by the members' route, or by [`Source::Addresses`].
    Translate,
    /// The destination stays; the packet goes to the member as its next hop, which answers the client directly (BIG-IP:
    /// nPath; NetScaler: DSR). Members are on a connected network, and have the virtual address on a loopback device. Only
    /// the client's half of a flow is seen, and the oldest flows are dropped when the table is full.
    DirectReturn,
    /// The destination stays; the packet goes to the member as its next hop, a router, and answers return through this host.
    NextHop,
    /// The destination stays; the packet follows the routing table. There are no members.
    Route,
    /// The kernel gets the packet unchanged, as if no virtual server matched: without flows, members and rates.
    /// Destinations may be of both families.
    Pass,
}

/// The source address that the members see.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Source {
    /// The client's own address; the members' route to clients must lead through this host.
    #[default]
    Client,
    /// One of these, of the family of the member. Not with [`Delivery::DirectReturn`].
    Addresses(Vec<SourceAddress>),
}

/// A source translation address. It must be routed to this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceAddress {
    /// The address.
    pub address: IpAddr,
    /// First port. Must not overlap with the host's own ports (`net.ipv4.ip_local_port_range`) if the host uses the address.
    pub port_first: u16,
    /// Last port, at least the first one; there must be at least as many ports as the machine has cores.
    pub port_last: u16,
}

/// A member of one virtual server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its address, of the family of the destinations.
    pub address: IpAddr,
    /// Its port. `None`: the client's destination port. Ignored if the destination is not translated.
    pub port: Option<u16>,
    /// Its share of new flows, relative to the others. 0: no new flows.
    pub weight: u16,
    /// Whether it gets flows.
    pub state: MemberState,
    /// The address of [`Source::Addresses`] that the member sees. `None`: any of them.
    pub source: Option<IpAddr>,
}

/// Whether a member gets flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MemberState {
    /// New flows, and existing ones.
    #[default]
    Up,
    /// Existing flows only; persistence to the member no longer applies.
    Draining,
    /// No flows: a SYN, or a packet of another protocol, of an existing flow goes to another member; other packets of TCP
    /// are dropped, and the sweep ends the member's flows.
    Down,
}

/// Idle timeouts after which the sweep ends flows. The sweep works with whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For TCP after the client has acknowledged the member's answer, and for every other protocol.
    pub idle: Duration,
    /// For TCP before that, counted from the client's last packet.
    pub handshake: Duration,
    /// For TCP after a reset, or after a FIN of both ends.
    pub closing: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { idle: seconds(300), handshake: seconds(10), closing: seconds(5) }
    }
}

/// The treatment of TTL (IPv4) and hop limit (IPv6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ttl {
    /// Decreased by one, as by a router; if it expires, the kernel answers with "time exceeded".
    #[default]
    Decrement,
    /// Unchanged. Then routing loops are not interrupted here.
    Keep,
    /// This value in both directions, at least 1.
    Set(u8),
}

/// The identity of a virtual server's member, the same from plan to plan.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberName {
    /// The virtual server.
    pub virtual_server: String,
    /// The address.
    pub address: IpAddr,
    /// Its port; `None`: the client's port is kept.
    pub port: Option<u16>,
}

impl Prefix {
    /// The prefix of one address.
    pub fn host(address: IpAddr) -> Self {
        Self { address, length: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// Whether the prefix contains only one address.
    pub fn is_host(&self) -> bool {
        *self == Self::host(self.address)
    }
}

impl Destination {
    /// One address and port.
    pub fn socket(address: SocketAddr) -> Self {
        Self { prefix: Prefix::host(address.ip()), port: Some(address.port()) }
    }
}

impl VirtualServer {
    /// Whether the server is of IPv4: the family of its first destination, and of all except with [`Delivery::Pass`].
    pub fn is_v4(&self) -> bool {
        self.destinations.first().is_none_or(|first| first.prefix.address.is_ipv4())
    }

    /// A virtual server with defaults, to be adjusted: address and port translated, no members yet.
    pub fn new(name: &str, protocol: Protocol, destinations: Vec<Destination>) -> Self {
        Self {
            name: name.to_owned(),
            destinations,
            protocol,
            delivery: Delivery::Translate,
            source: Source::Client,
            members: Vec::new(),
            clients: None,
            persistence: None,
            timeouts: Timeouts::default(),
            reset_on_timeout: true,
            reset_on_member_down: true,
            loose_initiation: false,
            mss_max: None,
            ttl: Ttl::Decrement,
            tos: None,
        }
    }
}

impl Member {
    /// A member that is up, with weight 1.
    pub fn new(address: IpAddr, port: Option<u16>) -> Self {
        Self { address, port, weight: 1, state: MemberState::Up, source: None }
    }
}
