//! What the loop tells, and to whom it belongs.

use std::net::SocketAddr;

use rustix::event::epoll;
use rustix::io::Errno;
use weir_tls::{Established, TlsError};

use crate::event_loop::EventLoop;
use crate::kernel::Descriptor;

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

/// What a handler calls a socket's owner by: 64 bits that mean nothing to the loop.
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

    /// Its bits.
    #[inline]
    pub const fn bits(self) -> u64 {
        (self.high as u64) << 32 | self.low as u64
    }
}

/// What a socket is to the handler.
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
}

/// What happens to sockets.
pub trait Handler {
    /// A listener accepted a connection; unix sockets have no peer address.
    fn accepted(
        &mut self,
        io: &mut EventLoop,
        listener: OwnerKey,
        socket: Descriptor,
        peer: Option<SocketAddr>,
    );
    /// A listener cannot accept; it rests for a moment.
    fn accept_failed(&mut self, io: &mut EventLoop, listener: OwnerKey, error: Errno);
    /// A connection that was being opened is open, or cannot be.
    fn connected(&mut self, io: &mut EventLoop, owner: Owner, result: Result<(), Errno>);
    /// Bytes arrived.
    fn received(&mut self, io: &mut EventLoop, owner: Owner, bytes: &mut [u8]);
    /// The peer will send nothing more; all that it sent was delivered.
    fn ended(&mut self, io: &mut EventLoop, owner: Owner);
    /// The connection is broken.
    fn failed(&mut self, io: &mut EventLoop, owner: Owner, error: Errno);
    /// The handshake of a secure socket is done. Bytes may have come before, of a socket that was plain until then.
    fn secured(&mut self, _io: &mut EventLoop, _owner: Owner, _established: Established) {}
    /// After [`Self::secured`] with early data: now the handshake is done, and what came before was no replay.
    fn confirmed(&mut self, _io: &mut EventLoop, _owner: Owner) {}
    /// The TLS of a secure socket failed; the peer was told as far as it can be. The socket is the handler's to close.
    fn insecure(&mut self, io: &mut EventLoop, owner: Owner, _error: &TlsError) {
        self.failed(io, owner, Errno::PROTO);
    }
    /// Everything that was queued went out.
    fn drained(&mut self, io: &mut EventLoop, owner: Owner);
    /// The deadline passed; it is cleared.
    fn timer(&mut self, io: &mut EventLoop, owner: Owner);
    /// A socket that was finished is closed.
    fn closed(&mut self, io: &mut EventLoop, owner: Owner);
    /// The control socket has something to say.
    fn control(&mut self, io: &mut EventLoop);
    /// All events of a turn were handled. Returns when the next call is wanted at the latest, in
    /// microseconds of the loop's clock.
    fn turn_ended(&mut self, io: &mut EventLoop) -> Option<u64>;
}
