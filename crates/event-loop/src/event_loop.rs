//! The event loop: its sockets, how they are opened and closed, and their deadlines.

use std::io;

use rustix::io::Errno;
use rustix::net::SendFlags;
use weir_tls::RecordBuffer;

use crate::clock::{self, Clock};
use crate::datagrams;
use crate::kernel::{Descriptor, Kernel};
use crate::output::SpareBuffers;
use crate::pipes::Pipes;
use crate::socket::State;
use crate::socket_room::SocketRoom;
use crate::sockets::{Endpoint, Source};
use crate::table::Sockets;
use crate::timers::Timers;
use crate::token::{Owner, Token};

/// The sockets of one thread, and what is asked of them. [`Turns`](crate::Turns) wait for their events.
pub struct EventLoop {
    /// What each socket has, and how it is read.
    pub sockets: Sockets,
    /// Empty buffers for reuse.
    pub spares: SpareBuffers,
    /// The open sockets, and the room for more.
    pub room: SocketRoom,
    pub(crate) kernel: Kernel,
    pub(crate) timers: Timers,
    pub(crate) clock: Clock,
    pub(crate) pipes: Pipes,
    /// Buffer for encrypted data. It is empty between two sends.
    pub(crate) sealed: RecordBuffer,
    pub(crate) is_stopping: bool,
    /// State for datagrams; `None` until the first datagram socket is added.
    pub(crate) datagrams: Option<Box<datagrams::DatagramState>>,
}

impl EventLoop {
    /// An event loop without sockets.
    pub fn new() -> io::Result<Self> {
        Ok(Self::over(Kernel::linux()?))
    }

    /// An event loop without sockets, on this kernel.
    pub fn over(kernel: Kernel) -> Self {
        let clock = clock::now();
        let descriptors_max = kernel.descriptors_max();
        Self {
            sockets: Sockets::default(),
            spares: SpareBuffers::default(),
            room: SocketRoom::within(descriptors_max),
            timers: Timers::new(clock.now_ms()),
            clock,
            pipes: Pipes::within(descriptors_max, kernel.bulk()),
            kernel,
            sealed: RecordBuffer::new(),
            is_stopping: false,
            datagrams: None,
        }
    }

    /// The time at which the current turn began.
    #[inline]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The time at which the current turn began, in milliseconds.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Ends [`Turns::run`](crate::Turns::run) after the current turn.
    pub fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// Whether [`Self::stop`] was called.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// The latest start of the next turn if no event occurs. A simulation advances its clock to this time.
    #[cfg(feature = "simulation")]
    pub fn due_us(&self, wanted_at_us: Option<u64>, now_us: u64) -> Option<u64> {
        if !self.sockets.ready.is_empty() {
            return Some(now_us);
        }
        // A timer in the past is due immediately.
        let timer_us = self.timers.next_ms().map(|at_ms| at_ms * 1_000);
        [timer_us, wanted_at_us].into_iter().flatten().min()
    }

    /// Registers an open, non-blocking descriptor: the control socket, a listener, or the stream of a client or member. What
    /// is done with it follows from its owner.
    pub fn add(&mut self, fd: Descriptor, owner: Owner) -> Result<Token, Errno> {
        let state = State::of(owner);
        let is_prepared = state != State::Datagrams || self.datagrams.is_some();
        debug_assert!(is_prepared, "datagram sockets are added by `Datagrams`");
        self.register(fd, owner, state)
    }

    /// Starts to open a connection. [`Handler::connected`](crate::Handler::connected) reports the result.
    pub fn connect(
        &mut self,
        to: Endpoint<'_>,
        source: Option<Source>,
        owner: Owner,
    ) -> Result<Token, Errno> {
        if !self.room.fits_member() {
            return Err(Errno::MFILE);
        }
        let fd = self.kernel.connect(to, source)?;
        self.register(fd, owner, State::Connecting)
    }

    fn register(&mut self, fd: Descriptor, owner: Owner, state: State) -> Result<Token, Errno> {
        let token = self.sockets.insert(fd, owner, state);
        let socket = &self.sockets.slots[token.index as usize];
        self.room.count_opened(socket.is_of_session());
        let added = match &socket.fd {
            Some(fd) => self.kernel.watch(fd, token.data(), state.events()),
            None => Err(Errno::BADF),
        };
        if let Err(error) = added {
            self.close(token);
            return Err(error);
        }
        Ok(token)
    }

    /// Sets the deadline of a socket, and replaces the previous one.
    #[inline]
    pub fn set_deadline(&mut self, token: Token, at_ms: u64) {
        if let Some(socket) = self.sockets.get(token)
            && !socket.timer.put_off(at_ms)
        {
            self.timers.set(&mut self.sockets, token.index, at_ms);
        }
    }

    /// Removes the deadline of a socket.
    #[inline]
    pub fn clear_deadline(&mut self, token: Token) {
        if let Some(socket) = self.sockets.get(token) {
            socket.timer.clear();
        }
    }

    /// Closes a socket at once. Queued bytes are lost, and [`Handler::closed`](crate::Handler::closed) is not called.
    pub fn close(&mut self, token: Token) {
        self.sockets.seal_end(token, &mut self.sealed);
        self.send_sealed(token, SendFlags::MORE);
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        if let (true, Some(fd)) = (socket.is_listener(), &socket.fd) {
            // The control plane has a duplicate of the descriptor, so close() alone would not remove the listener from
            // epoll. The call fails while accepting is paused, because the listener is not in epoll then.
            let _ = self.kernel.unwatch(fd);
        }
        self.room.count_closed(socket.is_of_session());
        socket.generation = socket.generation.wrapping_add(1);
        socket.state = State::Free;
        socket.fd = None;
        socket.secure = None;
        socket.straight = None;
        if let Some(output) = socket.output.take() {
            self.spares.give_output(*output);
        }
        self.timers.remove(&mut self.sockets, token.index);
        self.sockets.free.push(token.index);
    }

    /// Closes a socket at once with a reset, which indicates to the peer that data is missing.
    pub fn reset(&mut self, token: Token) {
        self.sockets.reset_on_close(token);
        self.close(token);
    }

    /// Closes all connections, but neither the listeners nor the control socket. Used after a panic in a worker, when the
    /// state of its connections is unreliable.
    pub fn close_streams(&mut self) {
        for index in 0..self.sockets.slots.len() {
            let socket = &mut self.sockets.slots[index];
            let token = Token { index: index as u32, generation: socket.generation };
            if socket.state == State::Listening && socket.paused {
                self.resume_listener(token);
                continue;
            }
            let is_kept = matches!(socket.state, State::Free | State::Waking);
            if !is_kept && !socket.is_listener() {
                self.close(token);
            }
        }
        if let Some(datagram_state) = &mut self.datagrams {
            datagram_state.restore();
        }
        self.sockets.ready.clear();
    }
}
