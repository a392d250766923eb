//! The packet path: `packet_path`, and virtual servers of `type: fast_l4`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::VirtualServer;

/// `packet_path:` of the file, and the virtual servers that are served by it.
#[derive(Debug, Clone)]
pub struct Packets {
    /// How packets reach them.
    pub path: PathSettings,
    /// In the file's order; names are unique among all virtual servers.
    pub servers: Vec<Arc<PacketServer>>,
    /// Virtual servers whose packets cannot be processed; the control plane moves them here from `servers`.
    pub fallen: Vec<Fallen>,
}

/// A virtual server of `type: fast_l4` that is not served by packets.
#[derive(Debug, Clone)]
pub struct Fallen {
    /// The virtual server.
    pub server: Arc<PacketServer>,
    /// The reason why it is not served by packets.
    pub why: Arc<str>,
    /// Why it is not served by sockets either; `None`: it is.
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
            self.fallen.push(Fallen { server, why: Arc::clone(&why), unserved });
        }
        proxies
    }
}

/// Virtual servers of type fast_l4 at most, one of both families twice.
pub const PACKET_SERVERS_MAX: usize = 4_096;

/// Addresses (or networks) times ports of all of them at most.
pub const PACKET_DESTINATIONS_MAX: usize = 65_536;

/// How packets reach virtual servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathSettings {
    /// Network interfaces; `None`: all that are fit.
    pub interfaces: Option<Vec<Arc<str>>>,
    /// The ways that may be tried.
    pub rungs: Rungs,
    /// Tells several on one host apart.
    pub name: Arc<str>,
    /// Flows at a time.
    pub flows_max: u32,
    /// Other things that are remembered, of each kind.
    pub remembered_max: u32,
    /// Sources whose packets are dropped.
    pub deny: Arc<[Prefix]>,
    /// Exceptions to that.
    pub allow: Arc<[Prefix]>,
    /// New flows of one source.
    pub rate: Option<FlowRate>,
    /// Listeners whose SYNs are answered with cookies.
    pub syn_cookies: Vec<SocketAddr>,
    /// The kernel continues to forward after weir has ended.
    pub is_kept_at_exit: bool,
}

impl PathSettings {
    /// Whether it has work without any virtual server of its own.
    pub fn guards(&self) -> bool {
        !self.deny.is_empty() || !self.syn_cookies.is_empty()
    }
}

/// The ways that may be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rungs {
    /// XDP in the network driver.
    pub xdp: bool,
    /// Right above it.
    pub tcx: bool,
    /// Fallback to sockets.
    pub proxy: bool,
}

/// New flows of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowRate {
    /// The sustained rate.
    pub per_second: u32,
    /// The burst.
    pub burst: u32,
}

/// Addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// The first of them.
    pub address: IpAddr,
    /// How many bits.
    pub length: u8,
}

impl Prefix {
    /// Whether it is a single address.
    pub fn is_host(&self) -> bool {
        self.length == if self.address.is_ipv4() { 32 } else { 128 }
    }
}

/// Where packets are addressed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PacketDestination {
    /// Addresses.
    pub prefix: Prefix,
    /// The port; `None`: any port, and protocols without ports.
    pub port: Option<u16>,
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

/// Which packets a virtual server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// All that are there.
    Any,
    /// Another, by its number.
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
    /// The member's takes its place.
    Translate,
    /// It stays, and the member answers the client directly.
    DirectReturn,
    /// The destination stays, and members are routers.
    NextHop,
    /// The destination stays, and the packet follows the routing table. There is no pool.
    Route,
}

/// Which address members see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PacketSource {
    /// The client's.
    Client,
    /// The address of this host by which the member is reached.
    Auto,
    /// One of these.
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
    /// One less.
    Decrement,
    /// Unchanged.
    Keep,
    /// This value.
    Set(u8),
}

/// A virtual server of `type: fast_l4`.
#[derive(Debug, Clone)]
pub struct PacketServer {
    /// The key in the file.
    pub name: Arc<str>,
    /// At least one; no two of a protocol are the same in a snapshot.
    pub destinations: Vec<PacketDestination>,
    /// The protocol of its packets.
    pub protocol: PacketProtocol,
    /// Index into [`super::Snapshot::pools`]; `None`: the routing table decides.
    pub pool: Option<usize>,
    /// The treatment of destinations.
    pub delivery: Delivery,
    /// Members get the client's destination port, and their own ports are ignored.
    pub keeps_port: bool,
    /// Which address members see.
    pub source: PacketSource,
    /// How long a source keeps its member.
    pub persistence_ms: Option<u64>,
    /// Without a packet.
    pub idle_timeout_ms: u64,
    /// TCP of which only the client has sent.
    pub handshake_timeout_ms: u64,
    /// TCP that has been closed.
    pub closing_timeout_ms: u64,
    /// The ends of an idle TCP flow get a reset.
    pub resets_on_timeout: bool,
    /// The ends of a TCP flow get a reset when its member goes down.
    pub resets_on_member_down: bool,
    /// TCP flows may begin without a SYN.
    pub loose_initiation: bool,
    /// Largest MSS of SYNs.
    pub mss_max: Option<u16>,
    /// TTL and hop limit.
    pub ttl: Ttl,
    /// Type of service.
    pub tos: Option<u8>,
    /// Differences between the packet path and the settings of pool and profile, in sentences.
    pub remarks: Vec<Arc<str>>,
    /// Its substitute where packets cannot be processed.
    pub fallback: Fallback,
}

/// The substitute of a virtual server of `type: fast_l4` where packets cannot be processed.
#[derive(Debug, Clone)]
pub enum Fallback {
    /// One of `type: tcp`.
    Proxy {
        /// The virtual server.
        server: Arc<VirtualServer>,
        /// Differences of the substitute, in sentences.
        remarks: Vec<Arc<str>>,
    },
    /// Nothing, for this reason.
    None(Arc<str>),
}
