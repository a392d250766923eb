//! The system calls of the loop.
//!
//! A build of `weir` contains only the interface to Linux. The simulation adds a kernel in memory.

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
use crate::datagrams::{self, Inbox, OutgoingTrain};
#[cfg(feature = "simulation")]
use crate::memory;
use crate::sockets::{self, Endpoint, Source};
use crate::wait;

/// The source of events, which also opens connections and pipes.
#[derive(Debug)]
pub enum Kernel {
    /// Linux, with an epoll instance.
    Linux(OwnedFd),
    /// The kernel in memory.
    #[cfg(feature = "simulation")]
    Memory(memory::Network),
}

impl Kernel {
    /// The interface to Linux.
    pub fn linux() -> io::Result<Self> {
        Ok(Self::Linux(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Maximum number of descriptors that this thread may have open.
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

    /// Starts to report events on a descriptor. Each event contains `data`.
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

    /// Waits for events and stores them in `events`. Returns after `timeout_us` at the latest; see [`wait::wait`].
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

    /// Thresholds for bulk data.
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

    /// Opens an empty pipe. It is also an error if the kernel only offers a small one.
    pub fn pipe(&self) -> Result<Pipe, Errno> {
        match self {
            Self::Linux(_) => {
                let (read, write) = pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
                // The kernel limits the total size of all pipes of an unprivileged user, and the size of each pipe. If a
                // size is refused, a smaller one is tried. If all are refused, the pipe has its default size.
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

    /// Opens a socket and starts to connect it. The connection may be open already.
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
    /// A pipe of Linux: its two ends.
    Linux {
        /// The end to read from.
        read: OwnedFd,
        /// The end to write to.
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

    /// Moves up to `bytes` bytes of the pipe to a socket, as far as it accepts them. SPLICE_F_MORE is never set, because
    /// received data must be sent at once. A broken socket raises SIGPIPE, which no flag of this call suppresses. Rust
    /// programs ignore that signal.
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
    /// Opens a socket that exchanges datagrams with a member.
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
    /// Receives a batch of datagrams. Returns the number of messages.
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

    /// Whether a datagram has arrived that was not received.
    pub(crate) fn has_datagram(&self) -> bool {
        match self {
            // An empty datagram counts, too, and so does a pending error.
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
            // If the kernel refuses, the size of the queue does not change.
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

    /// Sends a train to the connected address at once: all of it, if the kernel accepts its size, or nothing.
    pub(crate) fn send_train(&self, train: Train<'_>) -> Result<(), Errno> {
        match self {
            Self::Socket(socket) if train.count() == 1 => {
                net::send(socket, train.bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
                Ok(())
            }
            Self::Socket(socket) => {
                datagrams::send(socket.as_fd(), &[OutgoingTrain::to_member(train)], true)?;
                Ok(())
            }
            #[cfg(feature = "simulation")]
            Self::Memory(end) => train.iter().try_for_each(|bytes| end.send_datagram(bytes)),
        }
    }

    /// Sends to clients. Returns the number of trains that were accepted.
    pub(crate) fn send_to_clients(&self, batch: &[OutgoingTrain<'_>]) -> Result<usize, Errno> {
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
    /// A socket of the kernel in memory.
    #[cfg(feature = "simulation")]
    Memory(memory::End),
}

impl From<OwnedFd> for Descriptor {
    fn from(socket: OwnedFd) -> Self {
        Self::Socket(socket)
    }
}

impl Descriptor {
    /// The socket itself, so that it can be sent in a message to another process; `None`: a socket in memory.
    pub fn socket(&self) -> Option<&OwnedFd> {
        match self {
            Self::Socket(socket) => Some(socket),
            #[cfg(feature = "simulation")]
            Self::Memory(_) => None,
        }
    }

    /// Accepts the next connection of a listener. Returns it with the address of its peer.
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

    /// The local address, if it is an IP address.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Socket(socket) => SocketAddr::try_from(net::getsockname(socket).ok()?).ok(),
            #[cfg(feature = "simulation")]
            Self::Memory(_) => None,
        }
    }

    /// Sends as much of `parts` as the socket accepts.
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

    /// Receives into `buffer`. Returns the number of bytes.
    pub fn receive(&self, buffer: &mut [u8], flags: RecvFlags) -> Result<usize, Errno> {
        match self {
            Self::Socket(socket) => net::recv(socket, buffer, flags).map(|(_, count)| count),
            #[cfg(feature = "simulation")]
            Self::Memory(end) => end.receive(buffer, flags),
        }
    }

    /// Sends FIN.
    pub fn shut_write(&self) -> Result<(), Errno> {
        match self {
            Self::Socket(socket) => net::shutdown(socket, Shutdown::Write),
            #[cfg(feature = "simulation")]
            Self::Memory(end) => end.shut_write(),
        }
    }

    /// Makes a close of this socket send a reset.
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

    /// Returns and clears the pending error.
    pub fn take_error(&self) -> Result<(), Errno> {
        match self {
            Self::Socket(socket) => sockopt::socket_error(socket)?,
            #[cfg(feature = "simulation")]
            Self::Memory(end) => end.take_error(),
        }
    }

    /// Whether data has arrived that was not received.
    pub fn has_unread(&self) -> bool {
        match self {
            Self::Socket(socket) => rustix::io::ioctl_fionread(socket).is_ok_and(|bytes| bytes > 0),
            #[cfg(feature = "simulation")]
            Self::Memory(end) => end.has_unread(),
        }
    }

    /// The number of bytes that the peer has not acknowledged; 0 if the kernel does not report it.
    pub fn unacknowledged_bytes(&self) -> u64 {
        match self {
            Self::Socket(socket) => {
                let mut bytes: libc::c_int = 0;
                // SAFETY: SIOCOUTQ (the same number as TIOCOUTQ) writes one int, and the pointer refers to a live int.
                let result =
                    unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
                if result == 0 { u64::try_from(bytes).unwrap_or(0) } else { 0 }
            }
            #[cfg(feature = "simulation")]
            Self::Memory(end) => end.unacknowledged_bytes(),
        }
    }
}
