//! On whose behalf a transaction works.

use crate::arena::{ClientKey, ExchangeKey, StreamKey};

/// On whose behalf a transaction works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A client: its connection, and its stream on that; without a stream, the transaction has the connection for itself (HTTP/1).
    Client(ClientKey, Option<StreamKey>),
    /// Another transaction, which waits for the response.
    Parent(ExchangeKey),
    /// Nobody: the response is discarded.
    Nobody,
}

impl Caller {
    /// The connection of the client; `None`: there is none.
    #[inline]
    pub fn client(self) -> Option<ClientKey> {
        match self {
            Self::Client(client, _) => Some(client),
            Self::Parent(_) | Self::Nobody => None,
        }
    }

    /// The client's stream; `None`: there is none.
    #[inline]
    pub fn stream(self) -> Option<StreamKey> {
        match self {
            Self::Client(_, stream) => stream,
            Self::Parent(_) | Self::Nobody => None,
        }
    }

    /// Whether the head of a request is sent before its body arrives: an HTTP/1 client may wait for a response to the
    /// head. On a client's stream, `send_heads` has this effect.
    pub fn sends_head_first(self) -> bool {
        self.stream().is_none()
    }

    /// Takes the client's stream: what follows concerns the connection only.
    pub fn take_stream(&mut self) -> Option<StreamKey> {
        match self {
            Self::Client(_, stream) => stream.take(),
            Self::Parent(_) | Self::Nobody => None,
        }
    }

    /// Whether a client waits for the response.
    #[inline]
    pub fn is_client(self) -> bool {
        matches!(self, Self::Client(..))
    }
}
