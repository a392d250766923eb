//! The stage of a client connection.

use weir_exchange::arena::ExchangeKey;
use weir_exchange::local::table::LocalServer;

/// The stage of a client connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Its first bytes decide where it is relayed to.
    Preface,
    /// Waits for a ClientHello.
    Hello,
    /// The TLS handshake is in progress.
    Handshake,
    /// Between requests.
    Idle,
    /// Part of a request head has come.
    Head,
    /// An exchange is under way.
    Exchange(ExchangeKey),
    /// It speaks HTTP/2: each of its streams has an exchange of its own.
    Streams,
    /// Finished; the socket sends the rest and closes.
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
