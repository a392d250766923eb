//! The configuration of the packet path: data, without I/O.
//!
//! A [`Plan`] is complete: [`crate::PacketPath::apply`] replaces the previous one in one step. Virtual servers with the
//! same name, and members of one virtual server with the same address and port, keep their flows and counters.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Virtual servers that one plan may have.
pub const VIRTUAL_SERVERS_MAX: usize = 4_096;

/// Members of all virtual servers together; one in two pools counts twice.
pub const MEMBERS_MAX: usize = 16_384;

/// Members of one virtual server: with more, the ring's shares would be too uneven.
pub const SERVER_MEMBERS_MAX: usize = 4_096;

/// Destinations of all virtual servers together: addresses or prefixes, times ports.
pub const DESTINATIONS_MAX: usize = 65_536;

/// Prefixes to allow and to deny, together.
pub const PREFIXES_MAX: usize = 1_048_576;

/// Addresses and ports with SYN cookies.
pub const SYN_COOKIES_MAX: usize = 1_024;

/// Source translation addresses of one virtual server.
pub const SOURCE_ADDRESSES_MAX: usize = 64;

/// All that the packet path shall do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Virtual servers; their names are unique, but for two of one name that are of different families.
    pub virtual_servers: Vec<VirtualServer>,
    /// Sources whose packets to virtual servers and flows are dropped, unless a longer prefix of `allow` has them.
    /// They hold for packets that no virtual server takes, too: they stand in front of everything, the host's own
    /// services included.
    pub deny: Vec<Prefix>,
    /// Exceptions to `deny`. The longest prefix of both lists decides; without one the packet is taken.
    pub allow: Vec<Prefix>,
    /// New flows per second that one source address may begin (IPv6: one /64).
    pub new_flows_per_source: Option<Rate>,
    /// Addresses and ports on which this host itself listens with TCP, and whose SYNs are answered with cookies before
    /// they reach its sockets. Needs native XDP and `net.ipv4.tcp_syncookies=2`; elsewhere SYNs pass as ever.
    pub syn_cookies: Vec<SocketAddr>,
}

/// A rate with its burst: a token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// New flows per second in the long run, at least 1.
    pub per_second: u32,
    /// New flows at once after a rest, at least 1.
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

/// Where a virtual server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Destination {
    /// One address (all bits), a prefix, or 0.0.0.0/0 and ::/0. The longest prefix wins over the port.
    pub prefix: Prefix,
    /// `None`: any port, and protocols without ports. Ranges are several destinations.
    pub port: Option<u16>,
}

/// Which packets a virtual server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// TCP, and the ICMP errors of its flows.
    Tcp,
    /// UDP, and the ICMP errors of its flows.
    Udp,
    /// Every protocol, ICMP echo included; only with `port: None`. A virtual server of the protocol itself comes first.
    Any,
    /// One other protocol by its number, e.g. 47 for GRE; only with `port: None`.
    Number(u8),
}

/// One virtual server.
#[derive(Debug, Clone, PartialEq)]
pub struct VirtualServer {
    /// Stable from plan to plan. A virtual server with both address families is two with one name, which count as one.
    pub name: String,
    /// Where it is reached, at least one.
    pub destinations: Vec<Destination>,
    /// The protocol of its packets.
    pub protocol: Protocol,
    /// The treatment of a packet's destination.
    pub delivery: Delivery,
    /// Which source the members see.
    pub source: Source,
    /// The members. Empty with [`Delivery::Route`] and [`Delivery::Pass`]; otherwise an empty list means that no client
    /// is served.
    pub members: Vec<Member>,
    /// How long a source keeps its member after its last new flow. `None`: each flow is balanced separately.
    pub persistence: Option<Duration>,
    /// How long flows may rest.
    pub timeouts: Timeouts,
    /// Both ends of a TCP flow get a reset when it is ended for its rest ([`crate::Ended::reset`]).
    pub reset_on_timeout: bool,
    /// Both ends of a TCP flow get a reset when it is ended because its member is down.
    pub reset_on_member_down: bool,
    /// TCP flows may begin with any segment but a reset, not only a SYN. For routing, and for connections that were
    /// open before.
    pub loose_initiation: bool,
    /// Largest MSS that SYNs may offer, at least 64; larger ones are lowered to it. `None`: left alone.
    pub mss_max: Option<u16>,
    /// The treatment of TTL and hop limit.
    pub ttl: Ttl,
    /// Type of service (IPv6: traffic class) of all packets toward members and clients. `None`: left alone.
    /// The two bits of ECN are always left alone.
    pub tos: Option<u8>,
}

/// The treatment of a packet's destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// The member's address takes its place, and its port where the member has one. Answers have to come back through
    /// here: by the members' route, or by [`Source::Addresses`].
    Translate,
    /// It stays; the packet goes to the member as its next hop, which answers the client directly (BIG-IP: nPath;
    /// NetScaler: DSR). Members are on a network of ours, and have the virtual address on a loopback device. Flows are
    /// known by the client's half only, and the oldest are forgotten when the table is full.
    DirectReturn,
    /// It stays; the packet goes to the member as its next hop, a router, and answers come back through here.
    NextHop,
    /// It stays; the packet goes where the routing table says. There are no members.
    Route,
    /// The kernel gets the packet unchanged, as if no virtual server matched: without flows, members and rates.
    /// Destinations may be of both families.
    Pass,
}

/// Which source the members see.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Source {
    /// The client's own; the members' route to clients has to lead through here.
    #[default]
    Client,
    /// One of these, of the family of the member. Not with [`Delivery::DirectReturn`].
    Addresses(Vec<SourceAddress>),
}

/// An address to send from. It has to be routed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceAddress {
    /// The address.
    pub address: IpAddr,
    /// First port. Keep clear of the host's own (`net.ipv4.ip_local_port_range`) where the address is the host's.
    pub port_first: u16,
    /// Last port, at least as large as the first, and in all as many as the machine has cores.
    pub port_last: u16,
}

/// A member of one virtual server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its address, of the family of the destinations.
    pub address: IpAddr,
    /// Its port. `None`: the client's destination port. Ignored if the destination is not translated.
    pub port: Option<u16>,
    /// Its share of new flows, against the others'. 0: no new flows.
    pub weight: u16,
    /// Whether it gets flows.
    pub state: MemberState,
    /// Which of the addresses of [`Source::Addresses`] it sees. `None`: any of them.
    pub source: Option<IpAddr>,
}

/// Whether a member gets flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MemberState {
    /// New flows and those it has.
    #[default]
    Up,
    /// The flows that it has, no new ones; persistence to it holds no longer.
    Draining,
    /// None: a SYN, or a packet of another protocol, of a flow that it had goes to another member; other packets of TCP
    /// are dropped, and the sweep ends its flows.
    Down,
}

/// How long flows may rest before the sweep ends them. The sweep sees whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// TCP whose client has answered the member, and every other protocol.
    pub idle: Duration,
    /// TCP of which the client has not acknowledged the member's answer, since the client's last packet.
    pub handshake: Duration,
    /// TCP after a reset, or a FIN of both ends.
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
    /// Left alone. A loop of routes is not broken here then.
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
    /// Its port, or `None` where the client's is kept.
    pub port: Option<u16>,
}

impl Prefix {
    /// The prefix of one address.
    pub fn host(address: IpAddr) -> Self {
        Self { address, length: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// Whether it has this one address only.
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
    /// Whether it is of IPv4: that is the family of its first destination, and of all but with [`Delivery::Pass`].
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
    /// One that is up, of weight 1.
    pub fn new(address: IpAddr, port: Option<u16>) -> Self {
        Self { address, port, weight: 1, state: MemberState::Up, source: None }
    }
}
