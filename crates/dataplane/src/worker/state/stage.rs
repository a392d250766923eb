//! The stage of a client connection.

use weir_exchange::arena::ExchangeKey;
use weir_exchange::local::table::LocalServer;

/// The stage of a client connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Waits for the first bytes, which select the pool of a relay.
    Preface,
    /// Waits for a ClientHello.
    Hello,
    /// The TLS handshake is in progress.
    Handshake,
    /// Between requests.
    Idle,
    /// Part of a request head has arrived.
    Head,
    /// An exchange is active.
    Exchange(ExchangeKey),
    /// HTTP/2: each stream has its own exchange.
    Streams,
    /// The connection ends; the socket sends the remaining data and closes.
    Leaving,
}

impl Stage {
    /// The first stage of a client of this virtual server.
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
