//! The peer of an admin connection, and the user of a request.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::UnixStream;
use weir_config::snapshot::{AdminSettings, Role};

/// The peer of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Peer {
    /// A local process that has opened the unix socket.
    Local(Option<Credentials>),
    /// A client over TCP.
    Network(NetworkPeer),
}

/// A local process, as reported by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) user: u32,
    pub(super) process: Option<i32>,
}

/// A client over TCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NetworkPeer {
    pub(super) address: SocketAddr,
    /// The listener is on a loopback address, which only processes of this host reach; all of them may read.
    pub(super) is_loopback: bool,
    /// The names in the client's certificate, which was verified.
    pub(super) certificate: Option<Arc<[String]>>,
}

impl Peer {
    /// The peer of a unix socket. A peer that has disconnected is unknown but has the same rights, which follow from
    /// the socket's mode.
    pub(super) fn of_socket(stream: &UnixStream) -> Self {
        let credentials = stream.peer_cred().ok();
        Self::Local(
            credentials.map(|found| Credentials { user: found.uid(), process: found.pid() }),
        )
    }

    /// Whether this process has opened the connection. In unit tests, the client is this process.
    pub(super) fn is_this_process(&self) -> bool {
        let own = i32::try_from(std::process::id()).ok();
        !cfg!(test)
            && matches!(self, Self::Local(Some(peer)) if peer.process.is_some() && peer.process == own)
    }

    /// The rights of a request without credentials.
    pub(super) fn role(&self) -> Option<Role> {
        match self {
            Self::Local(_) => Some(Role::Admin),
            Self::Network(peer) if peer.is_loopback => Some(Role::Read),
            Self::Network(_) => None,
        }
    }

    /// Whether the connection uses TLS.
    pub(super) fn is_secure(&self) -> bool {
        matches!(self, Self::Network(peer) if !peer.is_loopback)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(peer) => peer.address.fmt(formatter),
            Self::Local(None) => formatter.write_str("a local process"),
            Self::Local(Some(peer)) => {
                write!(formatter, "user {}", peer.user)?;
                peer.process.map_or(Ok(()), |process| write!(formatter, " (process {process})"))
            }
        }
    }
}

/// The user and peer of a request.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// The user of the configuration; `None`: no credentials were sent.
    pub(super) user: Option<Arc<str>>,
    /// The rights; `None`: not even reading.
    pub(super) role: Option<Role>,
    pub(super) peer: Peer,
    /// The hash of the token; `None`: the user is that of the certificate.
    pub(super) token_hash: Option<[u8; 32]>,
    /// The client certificate is that of no user. It has no rights, and is refused where some are needed.
    pub(super) is_stranger: bool,
}

impl Caller {
    /// Whether the caller may see values of the configuration, which may be secrets. Others see names and places.
    pub(super) fn sees_values(&self) -> bool {
        self.role.is_some_and(|role| role >= Role::Admin)
    }

    /// Whether the request would have this role with these settings, too.
    pub(super) fn still_has(&self, role: Role, settings: &AdminSettings) -> bool {
        let certificate = match &self.peer {
            Peer::Network(peer) => peer.certificate.as_deref().unwrap_or_default(),
            Peer::Local(_) => &[],
        };
        let user = match &self.token_hash {
            Some(hash) => settings.user_of_token(hash),
            None => settings.user_of_certificate(certificate),
        };
        let found = match &self.user {
            None => self.peer.role(),
            Some(name) => user.filter(|user| user.name == *name).map(|user| user.role),
        };
        found.is_some_and(|found| found >= role)
    }
}

/// `ann (operate) from 10.0.0.5:4711`, `user 0 (process 4711)`.
impl fmt::Display for Caller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(user), Some(role)) = (&self.user, self.role) {
            write!(formatter, "{user} ({role}) from ")?;
        }
        self.peer.fmt(formatter)
    }
}
