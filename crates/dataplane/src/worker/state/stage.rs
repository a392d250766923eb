//! What a client connection is doing.

use weir_exchange::arena::ExchangeKey;
use weir_exchange::local::table::LocalServer;

/// What a client connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// What it begins with decides where it is relayed to.
    Preface,
    /// It has to begin with a ClientHello.
    Hello,
    /// Its handshake is under way.
    Handshake,
    /// Between requests.
    Idle,
    /// Part of a request head has come.
    Head,
    /// An exchange is under way.
    Exchange(ExchangeKey),
    /// It speaks HTTP/2: each of its streams has an exchange of its own.
    Streams,
    /// Finished; the socket sends what is left and goes.
    Leaving,
}

impl Stage {
    /// What a client of this virtual server begins with.
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
