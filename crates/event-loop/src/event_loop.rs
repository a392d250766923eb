//! The loop itself: its sockets, and operations on them.

use std::io::{self, IoSlice};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use weir_tls::Sealed;

use crate::bounds::{Bulk, SCRATCH_BYTES};
use crate::clock::{self, Clock};
use crate::datagrams;
use crate::kernel::{Descriptor, Kernel};
use crate::output::Spares;
use crate::pipes::{self, DESCRIPTORS_OF_A_PIPE, Pipes};
use crate::socket::{Reading, Socket, State};
use crate::sockets::{Endpoint, Source};
use crate::table::Sockets;
use crate::timers::Timers;
use crate::token::{Owner, Token};

/// Descriptors that a worker keeps back from clients, where its limit is large.
const DESCRIPTORS_RESERVED_MAX: usize = 1024;
/// The share of those that it keeps back from member connections too: for new listeners.
const LISTENERS_SHARE: usize = 4;
/// Open descriptors of a worker that are no socket of its loop: standard streams and epoll.
const DESCRIPTORS_BESIDE: usize = 4;
/// Events taken from the kernel at once.
const EVENTS_PER_TURN: usize = 256;

/// The sockets of one thread and their events.
pub struct EventLoop {
    pub(crate) kernel: Kernel,
    pub(crate) sockets: Sockets,
    pub(crate) timers: Timers,
    pub(crate) clock: Clock,
    pub(crate) spares: Spares,
    pub(crate) pipes: Pipes,
    /// The amounts from which bytes count as bulk.
    pub(crate) bulk: Bulk,
    pub(crate) open_count: usize,
    pub(crate) room: Room,
    pub(crate) scratch: Box<[u8]>,
    /// Encrypted data of secure sockets; empty between two sends.
    pub(crate) sealed: Sealed,
    /// Sockets to look at in the next turn without an event of the kernel.
    pub(crate) ready: Vec<Token>,
    pub(crate) events: Vec<epoll::Event>,
    pub(crate) due: Vec<u32>,
    pub(crate) due_tokens: Vec<Token>,
    /// Turns so far.
    pub(crate) turns: u64,
    pub(crate) stopping: bool,
    pub(crate) is_precise: bool,
    /// State for datagrams, once there is such a socket.
    pub(crate) datagrams: Option<Box<datagrams::Desk>>,
}

impl EventLoop {
    /// A loop without sockets.
    pub fn new() -> io::Result<Self> {
        Ok(Self::over(Kernel::linux()?))
    }

    /// A loop without sockets over this kernel.
    pub fn over(kernel: Kernel) -> Self {
        let clock = clock::now();
        let descriptors_max = kernel.descriptors_max();
        Self {
            bulk: kernel.bulk(),
            kernel,
            sockets: Sockets::default(),
            timers: Timers::new(clock.now_ms()),
            clock,
            spares: Spares::default(),
            pipes: Pipes::within(descriptors_max),
            open_count: 0,
            room: Room::within(descriptors_max),
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            sealed: Sealed::new(),
            ready: Vec::new(),
            events: Vec::with_capacity(EVENTS_PER_TURN),
            due: Vec::new(),
            due_tokens: Vec::new(),
            turns: 0,
            stopping: false,
            is_precise: false,
            datagrams: None,
        }
    }

    /// Wakes for [`Handler::turn_ended`](crate::Handler::turn_ended) to the microsecond, not at the next millisecond.
    pub fn wake_precisely(&mut self) {
        self.is_precise = true;
    }

    /// The time of the current turn.
    #[inline]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Milliseconds of the current turn's time.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Ends [`Self::run`] after the current turn.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Registers a listener.
    pub fn add_listener(&mut self, fd: Descriptor, owner: Owner) -> Result<Token, Errno> {
        // EXCLUSIVE: where workers share one listener (unix sockets), one of them is woken.
        // Level-triggered, so that accepting may rest and go on without bookkeeping.
        self.add(fd, owner, State::Listening, epoll::EventFlags::IN | epoll::EventFlags::EXCLUSIVE)
    }

    /// Registers the control socket.
    pub fn add_control(&mut self, fd: Descriptor) -> Result<Token, Errno> {
        self.add(fd, Owner::Control, State::Waking, epoll::EventFlags::IN)
    }

    /// Registers an open, non-blocking stream.
    pub fn add_stream(&mut self, fd: Descriptor, owner: Owner) -> Result<Token, Errno> {
        self.add(fd, owner, State::Open, Self::stream_events())
    }

    /// Opens a connection; [`Handler::connected`](crate::Handler::connected) follows.
    pub fn connect(
        &mut self,
        to: Endpoint<'_>,
        source: Option<Source>,
        owner: Owner,
    ) -> Result<Token, Errno> {
        if self.open_count >= self.room.connect_below {
            return Err(Errno::MFILE);
        }
        let fd = self.kernel.connect(to, source)?;
        self.add(fd, owner, State::Connecting, Self::stream_events())
    }

    fn stream_events() -> epoll::EventFlags {
        use epoll::EventFlags;
        EventFlags::IN | EventFlags::PRI | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET
    }

    pub(crate) fn add(
        &mut self,
        fd: Descriptor,
        owner: Owner,
        state: State,
        flags: epoll::EventFlags,
    ) -> Result<Token, Errno> {
        let token = self.sockets.insert(fd, owner, state);
        self.open_count += 1;
        let socket = &self.sockets.slots[token.index as usize];
        let added = match &socket.fd {
            Some(fd) => self.kernel.watch(fd, token.data(), flags),
            None => Err(Errno::BADF),
        };
        if let Err(error) = added {
            self.close(token);
            return Err(error);
        }
        Ok(token)
    }

    /// The descriptor behind a token, for socket options and messages.
    pub fn descriptor(&mut self, token: Token) -> Option<&Descriptor> {
        self.sockets.get(token).and_then(|socket| socket.fd.as_ref())
    }

    /// Sends `parts` in order, at once as far as the socket takes them; the rest is queued.
    /// A failure is reported by [`Handler::failed`](crate::Handler::failed) later.
    pub fn send(&mut self, token: Token, parts: &[IoSlice<'_>]) {
        if self.is_secure(token) {
            return self.send_sealed(token, parts, false);
        }
        self.send_bytes(token, parts, SendFlags::empty());
    }

    /// Sends the last data of a connection. The caller closes or finishes it in the same call: the end then travels with
    /// the data in one segment that wakes the peer once. Without a close, the data would wait.
    pub fn send_last(&mut self, token: Token, parts: &[IoSlice<'_>]) {
        if self.is_secure(token) {
            return self.send_sealed(token, parts, true);
        }
        self.send_bytes(token, parts, SendFlags::MORE);
    }

    /// Sends bytes as they are.
    pub(crate) fn send_bytes(&mut self, token: Token, parts: &[IoSlice<'_>], flags: SendFlags) {
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        if socket.state == State::Connecting || socket.output.is_some() {
            // A drained socket will be reported as failed soon, so new data is dropped.
            if !socket.state.is_leaving() && !matches!(socket.state, State::Draining(_)) {
                let output = socket.output.get_or_insert_with(|| self.spares.take_output());
                output.append(parts, 0);
            }
            return;
        }
        if socket.state != State::Open {
            return;
        }
        let total: usize = parts.iter().map(|part| part.len()).sum();
        match socket.write(parts, flags) {
            Ok(count) if count == total => socket.sent_bytes += count as u64,
            Ok(count) => {
                socket.sent_bytes += count as u64;
                socket.progress_ms = self.clock.now_ms();
                let mut output = self.spares.take_output();
                output.append(parts, count);
                socket.output = Some(output);
            }
            Err(error) => {
                // Nobody gets them here; see `take_queued`.
                let mut output = self.spares.take_output();
                output.append(parts, 0);
                socket.output = Some(output);
                socket.state = State::Broken(error);
                self.make_ready(token);
            }
        }
    }

    /// Bytes that wait for the socket to take them: none where a write has failed.
    #[inline]
    pub fn queued(&mut self, token: Token) -> usize {
        let Some(socket) = self.sockets.get(token) else {
            return 0;
        };
        let output = match (&socket.output, socket.state) {
            (None, _) | (_, State::Broken(_) | State::Draining(_)) => 0,
            (Some(output), _) => output.len(),
        };
        match &socket.secure {
            None => output,
            Some(secure) => output + secure.session.waiting_bytes(),
        }
    }

    /// Whether nothing is pending: nothing is queued, and nothing was received beyond the data being delivered, not even a
    /// part of a record.
    #[inline]
    pub fn is_quiet(&mut self, token: Token) -> bool {
        match self.sockets.get(token) {
            Some(Socket { output: None, secure: None, .. }) => true,
            Some(Socket { output: None, secure: Some(secure), .. }) => {
                !secure.has_more && secure.session.waiting_bytes() == 0
            }
            _ => false,
        }
    }

    /// Takes the queued bytes away, to send them elsewhere: also those of a failed write; on a secure socket the data that
    /// waits for the handshake.
    pub fn take_queued(&mut self, token: Token) -> Vec<u8> {
        let secure = self.sockets.get(token).and_then(|socket| socket.secure.as_mut());
        if let Some(secure) = secure {
            return secure.session.take_waiting();
        }
        let output = self.sockets.get(token).and_then(|socket| socket.output.take());
        let bytes = output.as_ref().map_or_else(Vec::new, |output| output.pending().to_vec());
        if let Some(output) = output {
            debug_assert!(output.pipe.is_none(), "bytes of a tunnel go nowhere else");
            self.spares.give_output(*output);
        }
        bytes
    }

    /// Bytes that the kernel took from this socket's sender so far.
    pub fn sent_bytes(&mut self, token: Token) -> u64 {
        self.sockets.get(token).map_or(0, |socket| socket.sent_bytes)
    }

    /// The peer is known to have taken everything, because it answered. Returns [`Self::sent_bytes`].
    #[inline]
    pub fn note_all_taken(&mut self, token: Token) -> u64 {
        let Some(socket) = self.sockets.get(token) else {
            return 0;
        };
        socket.taken_bytes = socket.sent_bytes;
        socket.sent_bytes
    }

    /// The deadline of a peer that has not taken everything: `timeout_ms` after it was last seen to take some; 0 if it was
    /// never seen to.
    ///
    /// The kernel accepts more data for a full socket only when a good part of its buffer is free again, which can take
    /// minutes with a slow peer. Therefore the peer's acknowledgements count. Asking for them costs a system call, so it
    /// is done only when a deadline has passed. If nothing is queued here, the kernel's acceptance says nothing either:
    /// then only bytes acknowledged since the last query count.
    pub fn patience_until_ms(&mut self, token: Token, timeout_ms: u64) -> u64 {
        let now_ms = self.clock.now_ms();
        let Some(socket) = self.sockets.get(token) else {
            return 0;
        };
        let (waiting, took_more) = socket.note_taken();
        if socket.output.is_some() {
            if took_more {
                socket.progress_ms = now_ms;
            }
            socket.progress_ms + timeout_ms
        } else if took_more && waiting > 0 {
            now_ms + timeout_ms
        } else {
            0
        }
    }

    /// Stops delivering data of the peer; the kernel's buffer fills and slows the peer down.
    #[inline]
    pub fn pause(&mut self, token: Token) {
        if let Some(socket) = self.sockets.get(token) {
            socket.paused = true;
        }
    }

    /// Delivers again; data that has arrived meanwhile comes in the next turn.
    #[inline]
    pub fn resume(&mut self, token: Token) {
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        if socket.paused {
            socket.paused = false;
            if socket.readable || socket.has_records() {
                self.make_ready(token);
            }
        }
    }

    /// From now on a socket is read like that; as usual where it or the other is to go straight and is no plain one.
    pub fn read_as(&mut self, token: Token, reading: Reading) {
        let reading = match reading {
            Reading::Straight(sink) if self.is_secure(sink) => Reading::Usual,
            reading => reading,
        };
        if let Some(socket) = self.sockets.get(token) {
            socket.read_as(reading);
        }
    }

    /// Whether the kernel has unread data of a plain socket. For a secure one it is unknown whether that would be data:
    /// false.
    pub fn has_unread(&mut self, token: Token) -> bool {
        match self.sockets.get(token) {
            // The kernel is only asked where a read has filled its buffer.
            Some(Socket { readable: true, secure: None, fd: Some(fd), .. }) => fd.has_unread(),
            _ => false,
        }
    }

    /// Whether something has come, be it the peer's end or part of a record, that was not delivered. What comes after this turn
    /// began is not looked for.
    pub fn has_news(&mut self, token: Token) -> bool {
        match self.sockets.get(token) {
            Some(Socket { alert: true, .. }) => true,
            Some(Socket { secure: Some(secure), .. }) if !secure.input.is_empty() => true,
            Some(Socket { readable: true, fd: Some(fd), .. }) => fd.has_unread(),
            _ => false,
        }
    }

    /// Whether something has come that was not delivered, be it the peer's end; it is delivered in the next turn. For
    /// a socket that is about to be closed for its silence: the question is a system call.
    pub fn has_arrived(&mut self, token: Token) -> bool {
        let Some(socket) = self.sockets.get(token) else {
            return false;
        };
        let peeked = match &socket.fd {
            Some(fd) => fd.receive(&mut [0; 1], RecvFlags::PEEK),
            None => return false,
        };
        let has_arrived = !matches!(peeked, Err(Errno::AGAIN));
        if has_arrived {
            socket.readable = true;
            self.make_ready(token);
        }
        has_arrived
    }

    /// Sets the socket's one deadline.
    #[inline]
    pub fn set_deadline(&mut self, token: Token, at_ms: u64) {
        if let Some(socket) = self.sockets.get(token)
            && !socket.timer.put_off(at_ms)
        {
            self.timers.set(&mut self.sockets, token.index, at_ms);
        }
    }

    /// Takes the deadline away.
    #[inline]
    pub fn clear_deadline(&mut self, token: Token) {
        if self.sockets.get(token).is_some() {
            self.timers.clear(&mut self.sockets, token.index);
        }
    }

    /// Sends our end (FIN); the caller makes sure that nothing is queued.
    pub fn shut_write(&mut self, token: Token) {
        self.send_close_notify(token);
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        if let (State::Open, Some(fd)) = (socket.state, &socket.fd)
            && let Err(error) = fd.shut_write()
            && error != Errno::NOTCONN
        {
            socket.state = State::Broken(error);
            self.make_ready(token);
        }
    }

    /// Closes at once; queued bytes are lost, [`Handler::closed`](crate::Handler::closed) is not called.
    pub fn close(&mut self, token: Token) {
        self.send_close_notify(token);
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        if let (true, Some(fd)) = (socket.is_listener(), &socket.fd) {
            // The control plane has a duplicate, so closing ours would leave it in epoll. It is not
            // there while accepting rests.
            let _ = self.kernel.unwatch(fd);
        }
        socket.generation = socket.generation.wrapping_add(1);
        socket.state = State::Free;
        socket.fd = None;
        socket.secure = None;
        socket.straight = None;
        self.open_count -= 1;
        if let Some(output) = socket.output.take() {
            self.spares.give_output(*output);
        }
        self.timers.remove(&mut self.sockets, token.index);
        self.sockets.free.push(token.index);
    }

    /// Closes at once with a reset, so that the peer cannot take a part for the whole.
    pub fn reset(&mut self, token: Token) {
        self.reset_on_close(token);
        self.close(token);
    }

    /// Makes a reset of the close that follows.
    pub fn reset_on_close(&mut self, token: Token) {
        if let Some(socket) = self.sockets.get(token) {
            socket.secure = None;
        }
        if let Some(fd) = self.descriptor(token) {
            // If the option fails, the close is a plain one; there is no one to report it to.
            let _ = fd.reset_on_close();
        }
    }

    pub(crate) fn make_ready(&mut self, token: Token) {
        if let Some(socket) = self.sockets.get(token)
            && !socket.in_ready
        {
            socket.in_ready = true;
            self.ready.push(token);
        }
    }

    /// A buffer from the spares.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        self.spares.take()
    }

    /// Gives a buffer to the spares.
    pub fn give_buffer(&mut self, buffer: Vec<u8>) {
        self.spares.give(buffer);
    }

    /// Closes every connection, but keeps listeners and the control socket: for a worker after a panic, when the state of
    /// its connections is unreliable.
    pub fn close_streams(&mut self) {
        for index in 0..self.sockets.slots.len() {
            let socket = &mut self.sockets.slots[index];
            let token = Token { index: index as u32, generation: socket.generation };
            if socket.state == State::Listening && std::mem::take(&mut socket.paused) {
                self.watch_listener(token, true);
                continue;
            }
            let is_kept = matches!(socket.state, State::Free | State::Waking);
            if !is_kept && !socket.is_listener() {
                self.close(token);
            }
        }
        if self.scratch.is_empty() {
            self.scratch = vec![0; SCRATCH_BYTES].into_boxed_slice();
        }
        if let Some(desk) = &mut self.datagrams {
            desk.restore();
        }
        self.ready.clear();
        self.due.clear();
    }
}

/// How many open sockets there may be for another one of a kind to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// Clients leave some to members.
    pub(crate) accept_below: usize,
    /// Clients and members leave some to listeners: one that a worker cannot take would keep its
    /// share of the new connections waiting for ever.
    pub(crate) connect_below: usize,
}

impl Room {
    pub(crate) fn within(limit: usize) -> Self {
        let of_pipes = pipes::open_max(limit) * DESCRIPTORS_OF_A_PIPE;
        let sockets = limit.saturating_sub(DESCRIPTORS_BESIDE + of_pipes);
        let reserved = (sockets / 8).min(DESCRIPTORS_RESERVED_MAX);
        Self {
            accept_below: sockets - reserved,
            connect_below: sockets - reserved / LISTENERS_SHARE,
        }
    }
}
