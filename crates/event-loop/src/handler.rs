//! Events of the loop.

use std::net::SocketAddr;

use rustix::io::Errno;
use weir_core::datagram::{Flow, Train};
use weir_tls::{Established, TlsError};

use crate::event_loop::EventLoop;
use crate::kernel::Descriptor;
use crate::token::{Owner, OwnerKey};

/// Receives the events of sockets.
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
    /// This many bytes have come that were not delivered by [`Self::received`]: they went on to another socket, or wait
    /// for it, as the handler has allowed by [`Reading::Straight`](crate::Reading).
    fn passed(&mut self, _io: &mut EventLoop, _owner: Owner, _bytes: usize) {}
    /// The peer will send nothing more; all that it sent was delivered.
    fn ended(&mut self, io: &mut EventLoop, owner: Owner);
    /// The connection is broken.
    fn failed(&mut self, io: &mut EventLoop, owner: Owner, error: Errno);
    /// The handshake of a secure socket is done. Bytes may have come before, of a socket that was plain until then.
    fn secured(&mut self, _io: &mut EventLoop, _owner: Owner, _established: Established) {}
    /// After [`Self::secured`] with early data: the handshake is complete, and the earlier data was no replay.
    fn confirmed(&mut self, _io: &mut EventLoop, _owner: Owner) {}
    /// The TLS of a secure socket failed; the peer got an alert if possible. The handler must close the socket.
    fn insecure(&mut self, io: &mut EventLoop, owner: Owner, _error: &TlsError) {
        self.failed(io, owner, Errno::PROTO);
    }
    /// Everything that was queued went out.
    fn drained(&mut self, io: &mut EventLoop, owner: Owner);
    /// The deadline passed; it is cleared.
    fn timer(&mut self, io: &mut EventLoop, owner: Owner);
    /// A socket that was finished is closed.
    fn closed(&mut self, io: &mut EventLoop, owner: Owner);
    /// Datagrams arrived: at a listener, with the client that sent them; else from the member of a session.
    fn datagrams(
        &mut self,
        _io: &mut EventLoop,
        _owner: Owner,
        _flow: Option<Flow>,
        _train: Train<'_>,
    ) {
    }
    /// The member of a session cannot be reached (ICMP, or no route).
    fn datagrams_failed(&mut self, _io: &mut EventLoop, _owner: Owner, _error: Errno) {}
    /// The control socket has something to say.
    fn control(&mut self, io: &mut EventLoop);
    /// All events of a turn were handled. Returns when the next call is wanted at the latest, in
    /// microseconds of the loop's clock.
    fn turn_ended(&mut self, io: &mut EventLoop) -> Option<u64>;
}
