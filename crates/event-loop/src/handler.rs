//! The events of the loop.

use std::net::SocketAddr;

use rustix::io::Errno;
use weir_core::datagram::{Flow, Train};
use weir_tls::{HandshakeResult, TlsError};

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
    /// The descriptors of clients are used up, and a connection waits. Closes sockets that nothing needs, and returns
    /// whether there were any.
    fn make_room(&mut self, _io: &mut EventLoop) -> bool {
        false
    }
    /// A listener cannot accept. It pauses for a short time.
    fn accept_failed(&mut self, io: &mut EventLoop, listener: OwnerKey, error: Errno);
    /// An attempt to connect succeeded or failed.
    fn connected(&mut self, io: &mut EventLoop, owner: Owner, result: Result<(), Errno>);
    /// Data arrived.
    fn received(&mut self, io: &mut EventLoop, owner: Owner, bytes: &mut [u8]);
    /// `bytes` bytes arrived that [`Self::received`] does not deliver: they were sent to another socket, or are queued for
    /// it. The handler has permitted this by [`ReadMode::Straight`](crate::ReadMode).
    fn passed(&mut self, _io: &mut EventLoop, _owner: Owner, _bytes: usize) {}
    /// The peer has ended its sending side, and all its data was delivered.
    fn ended(&mut self, io: &mut EventLoop, owner: Owner);
    /// The connection failed.
    fn failed(&mut self, io: &mut EventLoop, owner: Owner, error: Errno);
    /// The handshake of a TLS socket is complete, or early data can be delivered. A socket that was plain at first may have
    /// received data before.
    fn secured(&mut self, _io: &mut EventLoop, _owner: Owner, _established: HandshakeResult) {}
    /// After [`Self::secured`] with early data: the handshake is complete, so the early data was not a replay.
    fn confirmed(&mut self, _io: &mut EventLoop, _owner: Owner) {}
    /// TLS failed on a socket. The peer was sent an alert if possible. The handler must close the socket.
    fn insecure(&mut self, io: &mut EventLoop, owner: Owner, _error: &TlsError) {
        self.failed(io, owner, Errno::PROTO);
    }
    /// All queued data was sent.
    fn drained(&mut self, io: &mut EventLoop, owner: Owner);
    /// The deadline has passed. It is cleared.
    fn timer(&mut self, io: &mut EventLoop, owner: Owner);
    /// A socket that the handler had finished with is closed.
    fn closed(&mut self, io: &mut EventLoop, owner: Owner);
    /// Datagrams arrived: at a listener, with the `flow` of their client; otherwise from the member of a session.
    fn datagrams(
        &mut self,
        _io: &mut EventLoop,
        _owner: Owner,
        _flow: Option<Flow>,
        _train: Train<'_>,
    ) {
    }
    /// The member of a session is unreachable (ICMP error, or no route).
    fn datagrams_failed(&mut self, _io: &mut EventLoop, _owner: Owner, _error: Errno) {}
    /// The control socket is readable.
    fn control(&mut self, io: &mut EventLoop);
    /// All events of a turn were handled. Returns the latest time of the next call, in microseconds of the loop's clock;
    /// `None`: the next turn waits for an event or a deadline.
    fn turn_ended(&mut self, io: &mut EventLoop) -> Option<u64>;
}
