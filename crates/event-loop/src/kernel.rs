//! All that the loop asks of the kernel.
//!
//! A build of `weir` has one kernel, the real one, and nothing to choose. The simulation has a second one in memory.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, Shutdown, SocketFlags, sockopt};
use rustix::pipe::{self, PipeFlags, SpliceFlags};
use weir_core::datagram::Train;

use crate::bounds::{Bulk, FILL_BYTES_MAX, PIPE_BYTES_MIN, PIPE_SIZES, TUNNEL_READ_BYTES};
use crate::datagrams::{self, Inbox, Outgoing};
#[cfg(feature = "simulation")]
use crate::memory;
use crate::sockets::{self, Endpoint, Source};
use crate::wait;

/// Reports events, and opens connections.
#[derive(Debug)]
pub enum Kernel {
    /// Linux, by an epoll instance.
    Linux(OwnedFd),
    /// Memory.
    #[cfg(feature = "simulation")]
    Memory(memory::Network),
}

impl Kernel {
    /// The real one.
    pub fn linux() -> io::Result<Self> {
        Ok(Self::Linux(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Descriptors that this thread may have open.
    pub fn descriptors_max(&self) -> usize {
        match self {
            Self::Linux(_) => {
                let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
                limit.map_or(usize::MAX, |limit| limit as usize)
            }
            #[cfg(feature = "simulation")]
            Self::Memory(network) => network.descriptors_max(),
        }
    }

    /// Begins to report events on a descriptor, with this name.
    pub fn watch(
        &self,
        descriptor: &Descriptor,
        data: epoll::EventData,
        flags: epoll::EventFlags,
    ) -> Result<(), Errno> {
        match (self, descriptor) {
            (Self::Linux(epoll), Descriptor::Socket(socket)) => {
                epoll::add(epoll, socket, data, flags)
            }
            #[cfg(feature = "simulation")]
            (Self::Memory(network), Descriptor::Memory(end)) => network.watch(end, data, flags),
            #[cfg(feature = "simulation")]
            _ => Err(Errno::BADF),
        }
    }

    /// Stops reporting events on a descriptor.
    pub fn unwatch(&self, descriptor: &Descriptor) -> Result<(), Errno> {
        match (self, descriptor) {
            (Self::Linux(epoll), Descriptor::Socket(socket)) => epoll::delete(epoll, socket),
            #[cfg(feature = "simulation")]
            (Self::Memory(network), Descriptor::Memory(end)) => network.unwatch(end),
            #[cfg(feature = "simulation")]
            _ => Err(Errno::BADF),
        }
    }

    /// Fills `events` with new events, after at most `timeout_us`; see [`wait::wait`].
    #[inline(always)]
    pub fn wait(
        &self,
        events: &mut Vec<epoll::Event>,
        timeout_us: Option<u64>,
        precise: bool,
    ) -> Result<(), Errno> {
        match self {
            Self::Linux(epoll) => wait::wait(epoll, events, timeout_us, precise),
            #[cfg(feature = "simulation")]
            Self::Memory(network) => {
                network.wait(events, timeout_us);
                Ok(())
            }
        }
    }

    /// The amounts from which bytes count as bulk.
    pub fn bulk(&self) -> Bulk {
        match self {
            Self::Linux(_) => Bulk {
                read_bytes: TUNNEL_READ_BYTES,
                fill_bytes_max: FILL_BYTES_MAX,
                short_bytes: TUNNEL_READ_BYTES,
            },
            #[cfg(feature = "simulation")]
            Self::Memory(network) => network.bulk(),
        }
    }

    /// A pipe with nothing in it; an error, too, where the kernel gives small ones alone.
    pub fn pipe(&self) -> Result<Pipe, Errno> {
        match self {
            Self::Linux(_) => {
                let (read, write) = pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
                // An unprivileged user may have a limited amount of memory in pipes, and pipes of a limited size. Then
                // a smaller size is tried, or the pipe stays as it is.
                let sized = PIPE_SIZES
                    .iter()
                    .find_map(|bytes| pipe::fcntl_setpipe_size(&write, *bytes).ok());
                let bytes = sized.map_or_else(|| pipe::fcntl_getpipe_size(&write), Ok)?;
                if bytes < PIPE_BYTES_MIN {
                    return Err(Errno::NOMEM);
                }
                Ok(Pipe::Linux { read, write })
            }
            #[cfg(feature = "simulation")]
            Self::Memory(network) => network.conduit().map(Pipe::Memory),
        }
    }

    /// A socket on which a connection is under way or already there.
    pub fn connect(&self, to: Endpoint<'_>, source: Option<Source>) -> Result<Descriptor, Errno> {
        match self {
            Self::Linux(_) => sockets::connect(to, source).map(Descriptor::Socket),
            #[cfg(feature = "simulation")]
            Self::Memory(network) => network.connect(to).map(Descriptor::Memory),
        }
    }
}

/// A pipe.
#[derive(Debug)]
pub enum Pipe {
    /// The real kernel's pipe: its two ends.
    Linux {
        /// Out of it.
        read: OwnedFd,
        /// Into it.
        write: OwnedFd,
    },
    /// A pipe of the kernel in memory.
    #[cfg(feature = "simulation")]
    Memory(memory::Conduit),
}

impl Pipe {
    /// Moves received data of a socket into the pipe, at most `bytes_max`.
    pub fn fill(&self, from: &Descriptor, bytes_max: usize) -> Result<usize, Errno> {
        match (self, from) {
            (Self::Linux { write, .. }, Descriptor::Socket(socket)) => {
                pipe::splice(socket, None, write, None, bytes_max, SpliceFlags::NONBLOCK)
            }
            #[cfg(feature = "simulation")]
            (Self::Memory(conduit), Descriptor::Memory(end)) => conduit.fill(end, bytes_max),
            #[cfg(feature = "simulation")]
            _ => Err(Errno::BADF),
        }
    }

    /// Moves `bytes` of the pipe to a socket, or as many as it accepts. Never with SPLICE_F_MORE: received data is sent
    /// at once. A broken socket raises SIGPIPE, for which this call has no flag; Rust programs ignore that signal.
    pub fn drain(&self, to: &Descriptor, bytes: usize) -> Result<usize, Errno> {
        match (self, to) {
            (Self::Linux { read, .. }, Descriptor::Socket(socket)) => {
                pipe::splice(read, None, socket, None, bytes, SpliceFlags::NONBLOCK)
            }
            #[cfg(feature = "simulation")]
            (Self::Memory(conduit), Descriptor::Memory(end)) => conduit.drain(end, bytes),
            #[cfg(feature = "simulation")]
            _ => Err(Errno::BADF),
        }
    }
}

impl Kernel {
    /// A socket for datagrams to a member and from there.
    pub(crate) fn connect_datagrams(
        &self,
        to: SocketAddr,
        source: Option<Source>,
    ) -> Result<Descriptor, Errno> {
        match self {
            Self::Linux(_) => sockets::connect_datagrams(to, source).map(Descriptor::Socket),
            #[cfg(feature = "simulation")]
            Self::Memory(network) => network.connect_datagrams(to).map(Descriptor::Memory),
        }
    }
}

impl Descriptor {
    /// Receives a batch of datagrams; how many messages there were.
    pub(crate) fn receive_trains(
        &self,
        inbox: &mut Inbox,
        batch_max: usize,
    ) -> Result<usize, Errno> {
        match self {
            Self::Socket(socket) => datagrams::receive(socket.as_fd(), inbox, batch_max),
            #[cfg(feature = "simulation")]
            Self::Memory(end) => end.receive_datagrams(inbox, batch_max),
        }
    }

    /// Whether a datagram has come that was not received.
    pub(crate) fn has_datagram(&self) -> bool {
        match self {
            // One that is empty is one, too, and so is an error.
            Self::Socket(socket) => {
                let peeked = net::recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
                peeked != Err(Errno::AGAIN)
            }
            #[cfg(feature = "simulation")]
            Self::Memory(end) => end.has_datagram(),
        }
    }

    /// See [`sockets::set_datagram_queue`].
    pub(crate) fn set_datagram_queue(&self, is_read: bool) {
        match self {
            // Where it is refused, the queue is as long as it was.
            Self::Socket(socket) => drop(sockets::set_datagram_queue(socket, is_read)),
            #[cfg(feature = "simulation")]
            Self::Memory(_) => {}
        }
    }

    /// Discards errors of earlier datagrams.
    pub(crate) fn forget_errors(&self) {
        match self {
            Self::Socket(socket) => datagrams::forget_errors(socket.as_fd()),
            #[cfg(feature = "simulation")]
            Self::Memory(_) => {}
        }
    }

    /// See [`datagrams::took_too_long`].
    pub(crate) fn took_too_long(&self) -> bool {
        match self {
            Self::Socket(socket) => datagrams::took_too_long(socket.as_fd()),
            #[cfg(feature = "simulation")]
            Self::Memory(_) => false,
        }
    }

    /// Sends to the connected address, at once: the whole train, if the kernel accepts its size, or nothing.
    pub(crate) fn send_train(&self, train: Train<'_>) -> Result<(), Errno> {
        match self {
            Self::Socket(socket) if train.count() == 1 => {
                net::send(socket, train.bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
                Ok(())
            }
            Self::Socket(socket) => {
                datagrams::send(socket.as_fd(), &[Outgoing::to_member(train)], true)?;
                Ok(())
            }
            #[cfg(feature = "simulation")]
            Self::Memory(end) => train.iter().try_for_each(|bytes| end.send_datagram(bytes)),
        }
    }

    /// Sends to clients; how many of these were taken.
    pub(crate) fn send_to_clients(&self, batch: &[Outgoing<'_>]) -> Result<usize, Errno> {
        match self {
            Self::Socket(socket) => datagrams::send(socket.as_fd(), batch, false),
            #[cfg(feature = "simulation")]
            Self::Memory(end) => {
                for outgoing in batch {
                    let mut parts = outgoing.train().iter();
                    parts.try_for_each(|bytes| end.answer_datagram(outgoing.flow, bytes))?;
                }
                Ok(batch.len())
            }
        }
    }
}

/// A socket.
#[derive(Debug)]
pub enum Descriptor {
    /// A socket of the real kernel.
    Socket(OwnedFd),
    /// An end of the kernel in memory.
    #[cfg(feature = "simulation")]
    Memory(memory::End),
}

impl From<OwnedFd> for Descriptor {
    fn from(socket: OwnedFd) -> Self {
        Self::Socket(socket)
    }
}

impl Descriptor {
    /// The socket itself, for messages that carry others.
    pub fn socket(&self) -> Option<&OwnedFd> {
        match self {
            Self::Socket(socket) => Some(socket),
            #[cfg(feature = "simulation")]
            Self::Memory(_) => None,
        }
    }

    /// The next connection of a listener, and its peer.
    pub fn accept(&self) -> Result<(Self, Option<SocketAddr>), Errno> {
        match self {
            Self::Socket(socket) => {
                let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                let (stream, peer) = net::acceptfrom_with(socket, flags)?;
                let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                Ok((Self::Socket(stream), peer))
            }
            #[cfg(feature = "simulation")]
            Self::Memory(end) => end.accept().map(|(end, peer)| (Self::Memory(end), Some(peer))),
        }
    }

    /// Where the peer has connected to, if that is an address.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Socket(socket) => SocketAddr::try_from(net::getsockname(socket).ok()?).ok(),
            #[cfg(feature = "simulation")]
            Self::Memory(_) => None,
        }
    }

    /// Sends as much of `parts` as there is room for.
    pub fn send(&self, parts: &[IoSlice<'_>], flags: SendFlags) -> Result<usize, Errno> {
        match (self, parts) {
            (Self::Socket(socket), [part]) => net::send(socket.as_fd(), part, flags),
            (Self::Socket(socket), _) => {
                let mut no_control = net::SendAncillaryBuffer::default();
                net::sendmsg(socket.as_fd(), parts, &mut no_control, flags)
            }
            #[cfg(feature = "simulation")]
            (Self::Memory(end), _) => end.send(parts),
        }
    }

    /// Receives into `buffer`; how many bytes there were.
    pub fn receive(&self, buffer: &mut [u8], flags: RecvFlags) -> Result<usize, Errno> {
        match self {
            Self::Socket(socket) => net::recv(socket, buffer, flags).map(|(_, count)| count),
            #[cfg(feature = "simulation")]
            Self::Memory(end) => end.receive(buffer, flags),
        }
    }

    /// Sends our end (FIN).
    pub fn shut_write(&self) -> Result<(), Errno> {
        match self {
            Self::Socket(socket) => net::shutdown(socket, Shutdown::Write),
            #[cfg(feature = "simulation")]
            Self::Memory(end) => end.shut_write(),
        }
    }

    /// Makes a reset of its close.
    pub fn reset_on_close(&self) -> Result<(), Errno> {
        match self {
            Self::Socket(socket) => sockopt::set_socket_linger(socket, Some(Duration::ZERO)),
            #[cfg(feature = "simulation")]
            Self::Memory(end) => {
                end.reset_on_close();
                Ok(())
            }
        }
    }

    /// Takes the error that waits on it.
    pub fn take_error(&self) -> Result<(), Errno> {
        match self {
            Self::Socket(socket) => sockopt::socket_error(socket)?,
            #[cfg(feature = "simulation")]
            Self::Memory(end) => end.take_error(),
        }
    }

    /// Whether something has come that was not received.
    pub fn has_unread(&self) -> bool {
        match self {
            Self::Socket(socket) => rustix::io::ioctl_fionread(socket).is_ok_and(|bytes| bytes > 0),
            #[cfg(feature = "simulation")]
            Self::Memory(end) => end.has_unread(),
        }
    }

    /// Bytes that the peer has not acknowledged; 0 when the kernel does not say.
    pub fn unacknowledged_bytes(&self) -> u64 {
        match self {
            Self::Socket(socket) => {
                let mut bytes: libc::c_int = 0;
                // SAFETY: SIOCOUTQ (the same number as TIOCOUTQ) writes one int, and the pointer names a live one.
                let result =
                    unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
                if result == 0 { u64::try_from(bytes).unwrap_or(0) } else { 0 }
            }
            #[cfg(feature = "simulation")]
            Self::Memory(end) => end.unacknowledged_bytes(),
        }
    }
}
