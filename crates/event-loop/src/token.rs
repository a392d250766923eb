//! Identifiers of sockets: the loop's tokens, and the handler's keys.

use rustix::event::epoll;

/// Identifies a socket of one event loop. After the socket is closed, its token is stale and identifies nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl Token {
    /// A token that identifies no socket.
    #[cfg(feature = "simulation")]
    pub const NONE: Self = Self { index: u32::MAX, generation: 0 };

    pub(crate) fn data(self) -> epoll::EventData {
        epoll::EventData::new_u64(u64::from(self.generation) << 32 | u64::from(self.index))
    }

    pub(crate) fn from_data(data: epoll::EventData) -> Self {
        Self { index: data.u64() as u32, generation: (data.u64() >> 32) as u32 }
    }
}

/// The handler's key for the owner of a socket: 64 bits that the loop does not interpret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerKey {
    // Two words, so that an `Owner` takes 12 bytes instead of 16.
    high: u32,
    low: u32,
}

impl OwnerKey {
    /// The key with these bits.
    #[inline]
    pub const fn new(bits: u64) -> Self {
        Self { high: (bits >> 32) as u32, low: bits as u32 }
    }

    /// The bits of the key.
    #[inline]
    pub const fn bits(self) -> u64 {
        (self.high as u64) << 32 | self.low as u64
    }
}

/// The role of a socket for the handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The socket for messages of the control plane.
    Control,
    /// A listener.
    Listener(OwnerKey),
    /// A client connection.
    Client(OwnerKey),
    /// A member connection.
    Member(OwnerKey),
    /// A datagram listener.
    DatagramListener(OwnerKey),
    /// The datagrams between one client and one member.
    Session(OwnerKey),
    /// A datagram socket without an owner, between two sessions; see [`Datagrams::rest`](crate::Datagrams::rest).
    Nobody,
}
