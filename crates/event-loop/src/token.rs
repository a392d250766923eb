//! Names of sockets: of the loop, and of its handler.

use rustix::event::epoll;

/// Names a socket of one event loop; a stale token names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl Token {
    /// Names nothing.
    #[cfg(feature = "simulation")]
    pub const NONE: Self = Self { index: u32::MAX, generation: 0 };

    pub(crate) fn data(self) -> epoll::EventData {
        epoll::EventData::new_u64(u64::from(self.generation) << 32 | u64::from(self.index))
    }

    pub(crate) fn from_data(data: epoll::EventData) -> Self {
        Self { index: data.u64() as u32, generation: (data.u64() >> 32) as u32 }
    }
}

/// The handler's name of a socket's owner: 64 bits that mean nothing to the loop.
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

    /// The bits of the token.
    #[inline]
    pub const fn bits(self) -> u64 {
        (self.high as u64) << 32 | self.low as u64
    }
}

/// The role of a socket for the handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The control plane's messages.
    Control,
    /// A listener.
    Listener(OwnerKey),
    /// A client connection.
    Client(OwnerKey),
    /// A member connection.
    Member(OwnerKey),
    /// A listener of datagrams.
    DatagramListener(OwnerKey),
    /// Datagrams of a client to one member, and back.
    Session(OwnerKey),
    /// A socket of datagrams between two sessions; see [`Datagrams::rest`](crate::Datagrams::rest).
    Nobody,
}
