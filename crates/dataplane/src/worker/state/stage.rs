//! The stage of a client connection.

use weir_exchange::arena::ExchangeKey;
use weir_exchange::local::table::LocalServer;

/// The stage of a client connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Waiting for the first bytes, which select the pool of a relay.
    Preface,
    /// Waiting for a ClientHello.
    Hello,
    /// In the TLS handshake.
    Handshake,
    /// Between requests.
    Idle,
    /// In a request head, of which a part has arrived.
    Head,
    /// In an exchange.
    Exchange(ExchangeKey),
    /// HTTP/2: each stream has its own exchange.
    Streams,
    /// Ending: the socket sends the queued data and closes.
    Leaving,
}

impl Stage {
    /// The first stage of a connection to this virtual server.
    pub fn first(server: &LocalServer) -> Self {
        if server.tls.is_some() {
            Self::Hello
        } else if server.is_tcp {
            Self::Preface
        } else {
            Self::Idle
        }
    }
}
