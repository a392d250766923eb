//! The services of virtual servers, by type.

use std::sync::Arc;

use weir_tls::names::Names;

/// The service of a virtual server.
#[derive(Debug, Clone)]
pub enum Service {
    /// `type: http`: requests are read from them.
    Http,
    /// `type: tcp`: each goes to a member as a whole.
    Tcp(Arc<Relay>),
    /// `type: udp`: datagrams go to members.
    Udp(Arc<Sessions>),
}

impl Service {
    /// How connections are relayed, if they are.
    pub fn relay(&self) -> Option<&Relay> {
        match self {
            Self::Http | Self::Udp(_) => None,
            Self::Tcp(relay) => Some(relay),
        }
    }

    /// The settings for sessions of datagrams, if it relays datagrams.
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

/// How a virtual server of `type: tcp` relays connections.
#[derive(Debug, Clone)]
pub struct Relay {
    /// Without a byte in either direction.
    pub idle_timeout_ms: u64,
    /// The time until the first data of a client is known.
    pub hello_timeout_ms: u64,
    /// The pools by requested server name; `None`: all connections use the virtual server's pool.
    pub names: Option<ServerNames>,
    /// Its policies, its persistence or the balancing of its pools read that name.
    pub reads_name: bool,
}

/// How a virtual server of `type: udp` relays datagrams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sessions {
    /// Without a datagram in either direction.
    pub idle_timeout_ms: u64,
    /// Datagrams of its client that a session takes; `None`: any number.
    pub datagrams_max: Option<u32>,
    /// Answers that end it, once it takes no more datagrams; `None`: nothing but its idleness does.
    pub responses_max: Option<u32>,
    /// Sessions that one socket to a member serves, one after the other.
    pub per_socket_max: u32,
    /// Bytes for the client at most, for each byte from it.
    pub amplification_max: Option<u32>,
}

/// Pools by the names that clients ask for.
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

/// Clients remembered by the connection IDs of QUIC that members have given them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionIdSettings {
    /// After the last datagram.
    pub timeout_ms: u64,
    /// Maximum number of entries.
    pub entries_max: u32,
    /// Where members write their own name; `None`: each ID is remembered as a whole.
    pub server_id: Option<ServerIdPlace>,
}

/// Where a member's name stands in its connection IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerIdPlace {
    /// Bytes before it.
    pub offset: u8,
    /// Bytes of it.
    pub length: u8,
}
