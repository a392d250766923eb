//! The idle member connections that belong to a client connection.

use weir_exchange::arena::{ClientKey, ConnectionKey};

/// Maximum number of idle member connections that belong to one client connection. A client gets one for each member that
/// challenges it, so more of them are a sign of abuse.
pub const BOUND_MAX: usize = 8;

/// The idle member connections that belong to a client connection, in order of use.
#[derive(Default)]
pub struct BoundConnections {
    keys: Vec<ConnectionKey>,
}

impl BoundConnections {
    /// Adds a connection. Returns the one that must be closed in its place, if there are too many.
    pub fn add(&mut self, key: ConnectionKey) -> Option<ConnectionKey> {
        self.keys.push(key);
        (self.keys.len() > BOUND_MAX).then(|| self.keys.remove(0))
    }

    /// Removes a connection.
    pub fn remove(&mut self, key: ConnectionKey) {
        self.keys.retain(|other| *other != key);
    }

    /// The connections, the latest one last.
    pub fn keys(&self) -> &[ConnectionKey] {
        &self.keys
    }
}

/// Who may use a connection to a member.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConnectionSharing {
    /// Only requests of one client may use it, because its PROXY header or source address is the client's, or because it is
    /// bound.
    pub is_of_one_client: bool,
    /// Authentication is bound to it (NTLM, Negotiate): it was challenged or has carried credentials. It stays so until it
    /// closes.
    pub is_bound: bool,
    /// The client to which it belongs while it is idle.
    pub bound_to: Option<ClientKey>,
}
