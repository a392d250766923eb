//! The services of virtual servers, by type.

use std::sync::Arc;

use weir_core::expression::AddressSet;
use weir_tls::names::Names;

/// The service of a virtual server.
#[derive(Debug, Clone)]
pub enum Service {
    /// `type: http`: HTTP requests.
    Http,
    /// `type: tcp`: connections are relayed to members.
    Tcp(Arc<Relay>),
    /// `type: udp`: datagrams are relayed to members.
    Udp(Arc<Sessions>),
}

impl Service {
    /// The relay settings of `type: tcp`.
    pub fn relay(&self) -> Option<&Relay> {
        match self {
            Self::Http | Self::Udp(_) => None,
            Self::Tcp(relay) => Some(relay),
        }
    }

    /// The session settings of `type: udp`.
    pub fn sessions(&self) -> Option<&Arc<Sessions>> {
        match self {
            Self::Http | Self::Tcp(_) => None,
            Self::Udp(sessions) => Some(sessions),
        }
    }

    /// The name in the file.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Tcp(_) => "tcp",
            Self::Udp(_) => "udp",
        }
    }

    /// Whether data is relayed unchanged.
    pub fn is_relay(&self) -> bool {
        !matches!(self, Self::Http)
    }

    /// Whether connections are relayed as a whole.
    pub fn is_tcp(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }
}

/// The settings of a virtual server of `type: tcp`.
#[derive(Debug, Clone)]
pub struct Relay {
    /// Timeout without a byte in either direction.
    pub idle_timeout_ms: u64,
    /// Maximum wait for the client's first data.
    pub hello_timeout_ms: u64,
    /// The pools by requested server name; `None`: all connections use the virtual server's pool.
    pub names: Option<ServerNames>,
    /// Whether its policies, its persistence or the balancing of its pools read the server name.
    pub reads_name: bool,
    /// When both ends of the connections of a member are reset.
    pub reset_on: ResetOn,
}

/// The states of a member that reset its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetOn {
    /// None.
    Nothing,
    /// It is down.
    Down,
    /// It is down, disabled, or not in its pool any more.
    OutOfService,
}

/// The settings of a virtual server of `type: udp`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sessions {
    /// Timeout without a datagram in either direction.
    pub idle_timeout_ms: u64,
    /// Maximum number of datagrams from the client in a session; `None`: unlimited.
    pub datagrams_max: Option<u32>,
    /// Number of answers that end a session after its last datagram; `None`: only the idle timeout ends it.
    pub responses_max: Option<u32>,
    /// Maximum number of consecutive sessions on one socket to a member.
    pub per_socket_max: u32,
    /// Maximum number of bytes to the client per byte from it; `None`: unlimited.
    pub amplification_max: Option<u32>,
    /// The only clients that may begin sessions; `None`: all.
    pub clients: Option<AddressSet>,
}

/// Pools by server name.
#[derive(Debug, Clone)]
pub struct ServerNames {
    /// Indexes into [`Snapshot::pools`](super::Snapshot::pools).
    pub pools: Names<usize>,
    /// Clients without one of the names get [`VirtualServer::pool`](super::VirtualServer::pool); otherwise they are
    /// refused.
    pub has_default: bool,
}

impl ServerNames {
    /// The pool of a connection with this server name, in lower case; empty: without a name. `default` is the pool of
    /// the virtual server.
    pub fn pool(&self, name: &str, default: usize) -> Option<usize> {
        self.pools.find(name).copied().or(self.has_default.then_some(default))
    }
}

/// Persistence by QUIC connection IDs, as issued by members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionIdSettings {
    /// Lifetime of an entry after the last datagram.
    pub timeout_ms: u64,
    /// Maximum number of entries.
    pub entries_max: u32,
    /// The position of the member's server ID; `None`: whole connection IDs are stored.
    pub server_id: Option<ServerIdPlace>,
}

/// The position of a member's server ID in connection IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerIdPlace {
    /// Bytes before the server ID.
    pub offset: u8,
    /// Length of the server ID in bytes.
    pub length: u8,
}
