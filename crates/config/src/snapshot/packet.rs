//! The packet path: `packet_path`, and virtual servers of `type: fast_l4`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::VirtualServer;

/// `packet_path:` of the file, and the virtual servers that use it.
#[derive(Debug, Clone)]
pub struct Packets {
    /// The settings of the packet path.
    pub path: PathSettings,
    /// The virtual servers, in the file's order; names are unique among all virtual servers.
    pub servers: Vec<Arc<PacketServer>>,
    /// Virtual servers whose packets cannot be processed; the control plane moves them here from `servers`.
    pub fallen: Vec<UnservedByPackets>,
}

/// A virtual server of `type: fast_l4` that is not served by packets.
#[derive(Debug, Clone)]
pub struct UnservedByPackets {
    /// The virtual server.
    pub server: Arc<PacketServer>,
    /// The reason why it is not served by packets.
    pub why: Arc<str>,
    /// The reason why it is not served by sockets either; `None`: it is served by sockets.
    pub unserved: Option<Arc<str>>,
}

impl Packets {
    /// Moves virtual servers to sockets if possible, because packets cannot be processed for this reason. Returns the
    /// virtual servers that replace them.
    pub fn fall(&mut self, why: &str) -> Vec<VirtualServer> {
        let why: Arc<str> = why.into();
        let mut proxies = Vec::new();
        for server in self.servers.drain(..) {
            let unserved = match &server.fallback {
                _ if !self.path.rungs.proxy => Some("`rungs` has no `proxy`".into()),
                Fallback::None(reason) => Some(Arc::clone(reason)),
                Fallback::Proxy { server, .. } => {
                    proxies.push(VirtualServer::clone(server));
                    None
                }
            };
            self.fallen.push(UnservedByPackets { server, why: Arc::clone(&why), unserved });
        }
        proxies
    }
}

/// Maximum number of virtual servers of type fast_l4; one with both address families counts twice.
pub const PACKET_SERVERS_MAX: usize = 4_096;

/// Maximum number of destinations: addresses (or networks) times ports of all virtual servers.
pub const PACKET_DESTINATIONS_MAX: usize = 65_536;

/// Settings of the packet path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathSettings {
    /// Network interfaces; `None`: all suitable ones.
    pub interfaces: Option<Vec<Arc<str>>>,
    /// The permitted methods.
    pub rungs: Rungs,
    /// The name that distinguishes several instances on one host.
    pub name: Arc<str>,
    /// Maximum number of flows.
    pub flows_max: u32,
    /// Maximum number of other entries, for each kind.
    pub remembered_max: u32,
    /// Sources whose packets are dropped.
    pub deny: Arc<[Prefix]>,
    /// Exceptions to `deny`.
    pub allow: Arc<[Prefix]>,
    /// Maximum rate of new flows per source.
    pub rate: Option<FlowRate>,
    /// Listeners with SYN cookies.
    pub syn_cookies: Vec<SocketAddr>,
    /// Whether the kernel continues to forward after weir has ended.
    pub is_kept_at_exit: bool,
}

impl PathSettings {
    /// Whether the path has work without any virtual server.
    pub fn guards(&self) -> bool {
        !self.deny.is_empty() || !self.syn_cookies.is_empty()
    }
}

/// The permitted methods to process packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rungs {
    /// XDP in the network driver.
    pub xdp: bool,
    /// TCX: directly above the driver.
    pub tcx: bool,
    /// Fallback to sockets.
    pub proxy: bool,
}

/// A rate of new flows per source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowRate {
    /// The sustained rate.
    pub per_second: u32,
    /// The burst.
    pub burst: u32,
}

/// A network: addresses with the same prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// The first address.
    pub address: IpAddr,
    /// The prefix length in bits.
    pub length: u8,
}

impl Prefix {
    /// The prefix of a single address.
    pub fn host(address: IpAddr) -> Self {
        Self { address, length: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// Whether it is a single address.
    pub fn is_host(&self) -> bool {
        *self == Self::host(self.address)
    }

    /// Whether it has this address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (own, other, bits) = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits().into(), other.to_bits().into(), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits(), other.to_bits(), 128),
            _ => return false,
        };
        let differing: u128 = own ^ other;
        differing.checked_shr(bits - u32::from(self.length).min(bits)).is_none_or(|it| it == 0)
    }
}

/// The destination of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PacketDestination {
    /// The addresses.
    pub prefix: Prefix,
    /// The port; `None`: any port, and protocols without ports.
    pub port: Option<u16>,
}

impl PacketDestination {
    /// The address and port, if it is a single one.
    pub fn address(&self) -> Option<SocketAddr> {
        let port = self.port.filter(|_| self.prefix.is_host())?;
        Some(SocketAddr::new(self.prefix.address, port))
    }

    /// Whether packets to this address and port have this destination. Any address: `None`.
    pub fn takes(&self, address: Option<IpAddr>, port: u16) -> bool {
        let is_in = |address| self.prefix.contains(address);
        self.port.is_none_or(|own| own == port) && address.is_none_or(is_in)
    }
}

/// `10.0.0.1:80`, `10.0.0.1:*`, `10.0.0.0/24:*`, `[2001:db8::]/64:*`.
impl fmt::Display for PacketDestination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix.address {
            IpAddr::V4(address) => write!(formatter, "{address}")?,
            IpAddr::V6(address) => write!(formatter, "[{address}]")?,
        }
        if !self.prefix.is_host() {
            write!(formatter, "/{}", self.prefix.length)?;
        }
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => formatter.write_str(":*"),
        }
    }
}

/// The protocol of a virtual server's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// All protocols.
    Any,
    /// Another protocol, by its number.
    Number(u8),
}

impl fmt::Display for PacketProtocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp => formatter.write_str("tcp"),
            Self::Udp => formatter.write_str("udp"),
            Self::Any => formatter.write_str("any"),
            Self::Number(number) => number.fmt(formatter),
        }
    }
}

/// The treatment of a packet's destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It is replaced by the member's address.
    Translate,
    /// It stays unchanged, and the member answers the client directly.
    DirectReturn,
    /// It stays unchanged, and members are routers.
    NextHop,
    /// It stays unchanged, and the packet follows the routing table. There is no pool.
    Route,
}

/// The source address that members see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PacketSource {
    /// The client's address.
    Client,
    /// This host's address on the route to the member.
    Auto,
    /// One of these addresses.
    Addresses {
        /// At least one address, without duplicates.
        addresses: Vec<IpAddr>,
        /// The lowest and highest port; `None`: ports outside the system's own range.
        ports: Option<(u16, u16)>,
    },
}

/// The treatment of TTL and hop limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttl {
    /// It is decremented by one.
    Decrement,
    /// It stays unchanged.
    Keep,
    /// It is set to this value.
    Set(u8),
}

/// A virtual server of `type: fast_l4`.
#[derive(Debug, Clone)]
pub struct PacketServer {
    /// The key in the file.
    pub name: Arc<str>,
    /// At least one destination; no two of a protocol are the same in a snapshot.
    pub destinations: Vec<PacketDestination>,
    /// The protocol of its packets.
    pub protocol: PacketProtocol,
    /// Index into [`super::Snapshot::pools`]; `None`: the routing table decides.
    pub pool: Option<usize>,
    /// The treatment of destinations.
    pub delivery: Delivery,
    /// Whether members get the client's destination port; their own ports are then ignored.
    pub keeps_port: bool,
    /// The source address that members see.
    pub source: PacketSource,
    /// The only sources that may begin flows; `None`: all.
    pub clients: Option<Arc<[Prefix]>>,
    /// The time that a source keeps its member; `None`: no persistence.
    pub persistence_ms: Option<u64>,
    /// Timeout of a flow without packets.
    pub idle_timeout_ms: u64,
    /// Timeout of a TCP flow with packets from the client only.
    pub handshake_timeout_ms: u64,
    /// Timeout of a closed TCP flow.
    pub closing_timeout_ms: u64,
    /// Whether both ends of an idle TCP flow get a reset.
    pub resets_on_timeout: bool,
    /// Whether both ends of a TCP flow get a reset when its member goes down.
    pub resets_on_member_down: bool,
    /// Whether TCP flows may begin without a SYN.
    pub loose_initiation: bool,
    /// Maximum MSS in SYNs.
    pub mss_max: Option<u16>,
    /// The treatment of TTL and hop limit.
    pub ttl: Ttl,
    /// The type of service to set; `None`: unchanged.
    pub tos: Option<u8>,
    /// Differences between the packet path and the settings of pool and profile, as sentences.
    pub remarks: Vec<Arc<str>>,
    /// The substitute where packets cannot be processed.
    pub fallback: Fallback,
}

/// The substitute of a virtual server of `type: fast_l4` where packets cannot be processed.
#[derive(Debug, Clone)]
pub enum Fallback {
    /// A virtual server of `type: tcp` or `type: udp`.
    Proxy {
        /// The virtual server.
        server: Arc<VirtualServer>,
        /// Differences of the substitute, as sentences.
        remarks: Vec<Arc<str>>,
    },
    /// No substitute, for this reason.
    None(Arc<str>),
}
