//! The event loop: its sockets and the operations on them.

use std::io::{self, IoSlice};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use weir_tls::RecordBuffer;

use crate::bounds::{Bulk, SCRATCH_BYTES};
use crate::clock::{self, Clock};
use crate::datagrams;
use crate::kernel::{Descriptor, Kernel};
use crate::output::Spares;
use crate::pipes::{self, DESCRIPTORS_OF_A_PIPE, Pipes};
use crate::socket::{ReadMode, Socket, State};
use crate::sockets::{Endpoint, Source};
use crate::table::Sockets;
use crate::timers::Timers;
use crate::token::{Owner, Token};

/// Maximum number of descriptors that a worker reserves, which client connections cannot use.
const DESCRIPTORS_RESERVED_MAX: usize = 1024;
/// One in this many reserved descriptors is for new listeners. Member connections cannot use it either.
const LISTENERS_SHARE: usize = 4;
/// Descriptors that a worker uses besides its sockets and pipes: the standard streams and epoll.
const DESCRIPTORS_BESIDE: usize = 4;
/// Maximum number of events per wait.
const EVENTS_PER_TURN: usize = 256;

/// The sockets of one thread and their events.
pub struct EventLoop {
    pub(crate) kernel: Kernel,
    pub(crate) sockets: Sockets,
    pub(crate) timers: Timers,
    pub(crate) clock: Clock,
    pub(crate) spares: Spares,
    pub(crate) pipes: Pipes,
    /// Thresholds for bulk data.
    pub(crate) bulk: Bulk,
    pub(crate) open_count: usize,
    pub(crate) room: SocketLimits,
    /// Open sockets of UDP sessions, including resting ones.
    pub(crate) session_sockets: usize,
    pub(crate) scratch: Box<[u8]>,
    /// Buffer for encrypted data. It is empty between two sends.
    pub(crate) sealed: RecordBuffer,
    /// Sockets that the next turn handles without an event from the kernel.
    pub(crate) ready: Vec<Token>,
    pub(crate) events: Vec<epoll::Event>,
    pub(crate) due: Vec<u32>,
    pub(crate) due_tokens: Vec<Token>,
    /// The number of turns so far.
    pub(crate) turns: u64,
    pub(crate) stopping: bool,
    pub(crate) is_precise: bool,
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
            bulk: kernel.bulk(),
            kernel,
            sockets: Sockets::default(),
            timers: Timers::new(clock.now_ms()),
            clock,
            spares: Spares::default(),
            pipes: Pipes::within(descriptors_max),
            open_count: 0,
            room: SocketLimits::within(descriptors_max),
            session_sockets: 0,
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            sealed: RecordBuffer::new(),
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

    /// Makes wake-ups for [`Handler::turn_ended`](crate::Handler::turn_ended) precise to a microsecond instead of a
    /// millisecond.
    pub fn wake_precisely(&mut self) {
        self.is_precise = true;
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

    /// Ends [`Self::run`] after the current turn.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Registers a listener.
    pub fn add_listener(&mut self, fd: Descriptor, owner: Owner) -> Result<Token, Errno> {
        // EXCLUSIVE: if several workers share one listener (unix sockets), a connection wakes only one of them.
        // Level-triggered: accepting can pause and resume without bookkeeping.
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

    /// Starts to open a connection. [`Handler::connected`](crate::Handler::connected) reports the result.
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

    /// The descriptor of a socket, for socket options and for other system calls.
    pub fn descriptor(&mut self, token: Token) -> Option<&Descriptor> {
        self.sockets.get(token).and_then(|socket| socket.fd.as_ref())
    }

    /// Sends `parts` in order. Data that the socket does not accept at once is queued.
    /// [`Handler::failed`](crate::Handler::failed) reports a failure later.
    pub fn send(&mut self, token: Token, parts: &[IoSlice<'_>]) {
        if self.is_secure(token) {
            return self.send_sealed(token, parts, false);
        }
        self.send_bytes(token, parts, SendFlags::empty());
    }

    /// Sends the last data of a connection. The caller must close or finish the socket within the same callback: data and
    /// FIN then share a segment, which wakes the peer only once. Without a close, the kernel would delay the data
    /// (MSG_MORE).
    pub fn send_last(&mut self, token: Token, parts: &[IoSlice<'_>]) {
        if self.is_secure(token) {
            return self.send_sealed(token, parts, true);
        }
        self.send_bytes(token, parts, SendFlags::MORE);
    }

    /// Sends bytes without encryption.
    pub(crate) fn send_bytes(&mut self, token: Token, parts: &[IoSlice<'_>], flags: SendFlags) {
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        if socket.state == State::Connecting || socket.output.is_some() {
            // A draining socket will be reported as failed, so new data is dropped.
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
                // The bytes stay available to `take_queued`. This socket will not send them.
                let mut output = self.spares.take_output();
                output.append(parts, 0);
                socket.output = Some(output);
                socket.state = State::Broken(error);
                self.make_ready(token);
            }
        }
    }

    /// The number of queued bytes that the socket has not accepted; 0 after a failed write.
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

    /// Whether nothing is queued, and nothing was received beyond the data of the current event, not even a part of a TLS
    /// record.
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

    /// Removes and returns the queued bytes, including those of a failed write, so that they can be sent on another
    /// connection. On a TLS socket: the data that waits for the handshake.
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

    /// The number of bytes that the kernel has accepted for this socket.
    pub fn sent_bytes(&mut self, token: Token) -> u64 {
        self.sockets.get(token).map_or(0, |socket| socket.sent_bytes)
    }

    /// Ends the rest of a socket: it has no deadline any more, and the peer has received all data, because it has
    /// responded. Returns [`Self::sent_bytes`].
    #[inline]
    pub fn end_rest(&mut self, token: Token) -> u64 {
        let Some(socket) = self.sockets.get(token) else {
            return 0;
        };
        let sent_bytes = socket.sent_bytes;
        socket.taken_bytes = sent_bytes;
        self.timers.clear(&mut self.sockets, token.index);
        sent_bytes
    }

    /// The deadline of a peer that has not received all data: `timeout_ms` after its last known progress. 0: nothing is
    /// queued, and since the last query the peer has acknowledged either nothing or all of the data.
    ///
    /// Acceptance by the kernel is no measure of progress: with a slow peer, a full send buffer accepts nothing for minutes,
    /// until a large part of it is free. So bytes count that the peer has acknowledged. This query is a system call, made
    /// only when a deadline has passed. If nothing is queued here, only bytes acknowledged since the last query count.
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

    /// Stops delivering the peer's data. When the kernel's buffer is full, TCP flow control stops the peer.
    #[inline]
    pub fn pause(&mut self, token: Token) {
        if let Some(socket) = self.sockets.get(token) {
            socket.paused = true;
        }
    }

    /// Resumes delivery. Data that arrived during the pause is delivered in the next turn.
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

    /// Sets how a socket is read. [`ReadMode::Straight`] becomes [`ReadMode::Usual`] if the sink or the socket uses TLS.
    pub fn read_as(&mut self, token: Token, reading: ReadMode) {
        let reading = match reading {
            ReadMode::Straight(sink) if self.is_secure(sink) => ReadMode::Usual,
            reading => reading,
        };
        if let Some(socket) = self.sockets.get(token) {
            socket.read_as(reading);
        }
    }

    /// Whether the kernel has unread data for a plain socket. Always false for a TLS socket, because unread bytes may
    /// contain no application data.
    pub fn has_unread(&mut self, token: Token) -> bool {
        match self.sockets.get(token) {
            // A system call, made only if the last read filled its buffer.
            Some(Socket { readable: true, secure: None, fd: Some(fd), .. }) => fd.has_unread(),
            _ => false,
        }
    }

    /// Whether anything undelivered has arrived: data, FIN, or a part of a TLS record. Arrivals since the start of this turn
    /// may be missed.
    pub fn has_news(&mut self, token: Token) -> bool {
        match self.sockets.get(token) {
            Some(Socket { alert: true, .. }) => true,
            Some(Socket { secure: Some(secure), .. }) if !secure.input.is_empty() => true,
            Some(Socket { readable: true, fd: Some(fd), .. }) => fd.has_unread(),
            _ => false,
        }
    }

    /// Whether anything undelivered has arrived, including FIN. It is delivered in the next turn. This is a system call,
    /// intended for a socket that is about to be closed as idle.
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
        if self.sockets.get(token).is_some() {
            self.timers.clear(&mut self.sockets, token.index);
        }
    }

    /// Sends FIN, on a TLS socket after close_notify. The caller ensures that nothing is queued.
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

    /// Closes a socket at once. Queued bytes are lost, and [`Handler::closed`](crate::Handler::closed) is not called.
    pub fn close(&mut self, token: Token) {
        self.send_close_notify(token);
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        if matches!(socket.state, State::Listening | State::Datagrams) {
            match &socket.fd {
                // The control plane has a duplicate of the descriptor, so close() alone would not remove the listener from
                // epoll. The call fails while accepting is paused, because the listener is not in epoll then.
                Some(fd) if socket.is_listener() => drop(self.kernel.unwatch(fd)),
                _ => self.session_sockets -= 1,
            }
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

    /// Closes a socket at once with a reset, which indicates to the peer that data is missing.
    pub fn reset(&mut self, token: Token) {
        self.reset_on_close(token);
        self.close(token);
    }

    /// Makes the next close send a reset.
    pub fn reset_on_close(&mut self, token: Token) {
        if let Some(socket) = self.sockets.get(token) {
            socket.secure = None;
        }
        if let Some(fd) = self.descriptor(token) {
            // If the option cannot be set, the close is an ordinary one. This error is not reported.
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

    /// Takes a spare buffer.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        self.spares.take()
    }

    /// Returns a buffer to the spares.
    pub fn give_buffer(&mut self, buffer: Vec<u8>) {
        self.spares.give(buffer);
    }

    /// Closes all connections, but neither the listeners nor the control socket. Used after a panic in a worker, when the
    /// state of its connections is unreliable.
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
        if let Some(datagram_state) = &mut self.datagrams {
            datagram_state.restore();
        }
        self.ready.clear();
        self.due.clear();
    }
}

/// Limits on the number of open sockets: a socket may be opened while fewer are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SocketLimits {
    /// The limit for client connections, which leave descriptors for member connections.
    pub(crate) accept_below: usize,
    /// The limit for member connections. Both kinds leave descriptors for listeners: if a worker could not add a listener,
    /// nothing would accept its share of the connections.
    pub(crate) connect_below: usize,
    /// The limit for sockets of UDP sessions alone, a share of `accept_below`. Anybody can begin sessions from forged
    /// addresses, so they must not take the descriptors of connections.
    pub(crate) sessions_below: usize,
}

/// The share of UDP sessions until [`Datagrams::set_share`](crate::Datagrams::set_share) sets another, in percent.
const SESSIONS_SHARE_PERCENT: u8 = 50;

impl SocketLimits {
    pub(crate) fn within(limit: usize) -> Self {
        let of_pipes = pipes::open_max(limit) * DESCRIPTORS_OF_A_PIPE;
        let sockets = limit.saturating_sub(DESCRIPTORS_BESIDE + of_pipes);
        let reserved = (sockets / 8).min(DESCRIPTORS_RESERVED_MAX);
        let room = Self {
            accept_below: sockets - reserved,
            connect_below: sockets - reserved / LISTENERS_SHARE,
            sessions_below: 0,
        };
        room.with_sessions(SESSIONS_SHARE_PERCENT)
    }

    /// The same room with this share for UDP sessions.
    pub(crate) fn with_sessions(self, percent: u8) -> Self {
        // By 128 bits: without a limit on descriptors, the product would not fit into 64.
        let share = self.accept_below as u128 * u128::from(percent) / 100;
        Self { sessions_below: usize::try_from(share).unwrap_or(self.accept_below), ..self }
    }
}
