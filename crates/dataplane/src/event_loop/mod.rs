//! One thread's event loop: sockets in, completions out.
//!
//! The contract is completion-shaped, so that a ring-based driver can replace epoll without a
//! change above it: the loop reads into its own scratch buffer and hands the bytes over
//! ([`Handler::received`]); whatever a socket does not take at once is queued and sent later
//! ([`EventLoop::send`], [`Handler::drained`]).
//!
//! **Architecture invariant:** nothing above this module makes a system call on a connection.
//! Callbacks never nest: a call into the loop never calls the handler back.

mod leaving;
mod output;
mod secure;
mod timers;
mod turn;
mod wait;

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, Shutdown};

use crate::clock::Clock;
use weir_tls::{Established, Sealed, TlsError};

use leaving::Leaving;
use output::{Output, Spares};
use secure::Secure;
use timers::{Entries, Entry, Timers};

/// Bytes read at once, and so the most that is queued for a peer that does not take them.
pub const READ_BUFFER_BYTES: usize = 64 * 1024;
/// What is read, behind what was kept of a secure socket: part of a record, or of a long handshake.
const SCRATCH_BYTES: usize = 2 * READ_BUFFER_BYTES;
/// Reads of one socket in a row, before others get their turn.
const READS_IN_A_ROW_MAX: u32 = 4;
/// Connections accepted from one listener in a row.
const ACCEPTS_IN_A_ROW_MAX: u32 = 64;
/// How long accepting rests when the process has no descriptor left.
const ACCEPT_REST_MS: u64 = 100;
/// Descriptors that a worker keeps back from clients, where its limit is large.
const DESCRIPTORS_RESERVED_MAX: usize = 1024;
/// The share of those that it keeps back from member connections too: for new listeners.
const LISTENERS_SHARE: usize = 4;
/// Open descriptors of a worker that are no socket of its loop: standard streams and epoll.
const DESCRIPTORS_BESIDE: usize = 4;
/// Events taken from the kernel at once.
const EVENTS_PER_TURN: usize = 256;
/// Names a socket of one event loop; a stale token names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    index: u32,
    generation: u32,
}

impl Token {
    fn data(self) -> epoll::EventData {
        epoll::EventData::new_u64(u64::from(self.generation) << 32 | u64::from(self.index))
    }

    fn from_data(data: epoll::EventData) -> Self {
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
        socket: OwnedFd,
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

/// Where a socket is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No socket in this slot.
    Free,
    /// Accepts connections.
    Listening,
    /// Wakes the loop; read by the handler.
    Waking,
    /// Being opened.
    Connecting,
    /// Open.
    Open,
    /// Sends what is queued, then closes.
    Closing,
    /// Sends what is queued, then its end, then drops what arrives until the peer's end.
    Lingering,
    /// Sends what is queued, then closes with a reset when the peer has everything.
    Resetting,
    /// A write failed; that is looked at when the current event is done with.
    Broken(Errno),
    /// A write failed; what the peer had sent before is delivered, then the handler hears of it.
    Draining(Errno),
}

#[derive(Debug)]
struct Socket {
    fd: Option<OwnedFd>,
    owner: Owner,
    generation: u32,
    state: State,
    /// There may be something to read.
    readable: bool,
    /// The kernel said that the peer's end or an error is near: short reads prove nothing.
    hangup: bool,
    /// The handler wants nothing delivered.
    paused: bool,
    /// Bytes that are read of it at once.
    read_bytes_max: u32,
    /// In `EventLoop::ready`.
    in_ready: bool,
    output: Option<Box<Output>>,
    /// It speaks TLS.
    secure: Option<Box<Secure>>,
    /// Bytes that the kernel took so far.
    sent_bytes: u64,
    /// Those of them that the peer had acknowledged when it was last looked at.
    taken_bytes: u64,
    /// When the peer was last seen to take bytes.
    progress_ms: u64,
    /// What there is of a finished socket.
    leaving: Leaving,
    timer: Entry,
}

impl Socket {
    /// Whether it is read in slices, see [`EventLoop::limit_reads`].
    fn is_read_in_slices(&self) -> bool {
        (self.read_bytes_max as usize) < READ_BUFFER_BYTES
    }
}

/// The table of sockets; apart from [`EventLoop`] so that the wheel can borrow it.
#[derive(Debug, Default)]
struct Sockets {
    slots: Vec<Socket>,
    free: Vec<u32>,
}

impl Entries for Sockets {
    fn entry(&mut self, index: u32) -> &mut Entry {
        &mut self.slots[index as usize].timer
    }
}

impl Sockets {
    fn insert(&mut self, fd: OwnedFd, owner: Owner, state: State) -> Token {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slots.push(Socket {
                    fd: None,
                    owner,
                    generation: 0,
                    state: State::Free,
                    readable: false,
                    hangup: false,
                    paused: false,
                    read_bytes_max: READ_BUFFER_BYTES as u32,
                    in_ready: false,
                    output: None,
                    secure: None,
                    sent_bytes: 0,
                    taken_bytes: 0,
                    progress_ms: 0,
                    leaving: Leaving::default(),
                    timer: Entry::default(),
                });
                (self.slots.len() - 1) as u32
            }
        };
        let slot = &mut self.slots[index as usize];
        debug_assert_eq!(slot.state, State::Free);
        slot.fd = Some(fd);
        slot.owner = owner;
        slot.state = state;
        (slot.readable, slot.hangup, slot.paused) = (false, false, false);
        // A stale token may still stand in the ready list; it is not this socket's.
        slot.in_ready = false;
        slot.read_bytes_max = READ_BUFFER_BYTES as u32;
        (slot.sent_bytes, slot.taken_bytes, slot.progress_ms) = (0, 0, 0);
        Token { index, generation: slot.generation }
    }

    #[inline]
    fn get(&mut self, token: Token) -> Option<&mut Socket> {
        self.slots
            .get_mut(token.index as usize)
            .filter(|slot| slot.generation == token.generation && slot.state != State::Free)
    }
}

/// The sockets of one thread and their events.
pub struct EventLoop {
    epoll: OwnedFd,
    sockets: Sockets,
    timers: Timers,
    clock: Clock,
    spares: Spares,
    open_count: usize,
    room: Room,
    scratch: Box<[u8]>,
    /// What secure sockets send; empty between two sends.
    sealed: Sealed,
    /// Sockets to look at in the next turn without an event of the kernel.
    ready: Vec<Token>,
    events: Vec<epoll::Event>,
    due: Vec<u32>,
    due_tokens: Vec<Token>,
    stopping: bool,
    is_precise: bool,
}

impl EventLoop {
    /// A loop without sockets.
    pub fn new() -> io::Result<Self> {
        let clock = Clock::new();
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            sockets: Sockets::default(),
            timers: Timers::new(clock.now_ms()),
            clock,
            spares: Spares::default(),
            open_count: 0,
            room: Room::within(descriptor_limit()),
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            sealed: Sealed::new(),
            ready: Vec::new(),
            events: Vec::with_capacity(EVENTS_PER_TURN),
            due: Vec::new(),
            due_tokens: Vec::new(),
            stopping: false,
            is_precise: false,
        })
    }

    /// Wakes when [`Handler::turn_ended`] asked for it to the microsecond, not at the next millisecond.
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
    pub fn add_listener(&mut self, fd: OwnedFd, owner: Owner) -> Result<Token, Errno> {
        // EXCLUSIVE: where workers share one listener (unix sockets), one of them is woken.
        // Level-triggered, so that accepting may rest and go on without bookkeeping.
        self.add(fd, owner, State::Listening, epoll::EventFlags::IN | epoll::EventFlags::EXCLUSIVE)
    }

    /// Registers the control socket.
    pub fn add_control(&mut self, fd: OwnedFd) -> Result<Token, Errno> {
        self.add(fd, Owner::Control, State::Waking, epoll::EventFlags::IN)
    }

    /// Registers an open, non-blocking stream.
    pub fn add_stream(&mut self, fd: OwnedFd, owner: Owner) -> Result<Token, Errno> {
        self.add(fd, owner, State::Open, Self::stream_events())
    }

    /// Registers a non-blocking stream on which `connect` is under way.
    pub fn add_connecting(&mut self, fd: OwnedFd, owner: Owner) -> Result<Token, Errno> {
        if self.open_count >= self.room.connect_below {
            return Err(Errno::MFILE);
        }
        self.add(fd, owner, State::Connecting, Self::stream_events())
    }

    fn stream_events() -> epoll::EventFlags {
        use epoll::EventFlags;
        EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET
    }

    fn add(
        &mut self,
        fd: OwnedFd,
        owner: Owner,
        state: State,
        flags: epoll::EventFlags,
    ) -> Result<Token, Errno> {
        let token = self.sockets.insert(fd, owner, state);
        self.open_count += 1;
        let socket = &self.sockets.slots[token.index as usize];
        let added = match &socket.fd {
            Some(fd) => epoll::add(&self.epoll, fd, token.data(), flags),
            None => Err(Errno::BADF),
        };
        if let Err(error) = added {
            self.close(token);
            return Err(error);
        }
        Ok(token)
    }

    /// The descriptor behind a token, for socket options and messages.
    pub fn descriptor(&mut self, token: Token) -> Option<&OwnedFd> {
        self.sockets.get(token).and_then(|socket| socket.fd.as_ref())
    }

    /// Sends `parts` in order, at once as far as the socket takes them; the rest is queued.
    /// A failure is reported by [`Handler::failed`] later.
    pub fn send(&mut self, token: Token, parts: &[IoSlice<'_>]) {
        if self.is_secure(token) {
            return self.send_sealed(token, parts, false);
        }
        self.send_bytes(token, parts, SendFlags::empty());
    }

    /// Sends the last of what a connection has to say. The caller closes or finishes it in the same
    /// call: the end then travels with the data, in one segment that wakes the peer once, and without
    /// it the data would wait.
    pub fn send_last(&mut self, token: Token, parts: &[IoSlice<'_>]) {
        if self.is_secure(token) {
            return self.send_sealed(token, parts, true);
        }
        self.send_bytes(token, parts, SendFlags::MORE);
    }

    /// Sends bytes as they are.
    fn send_bytes(&mut self, token: Token, parts: &[IoSlice<'_>], flags: SendFlags) {
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        if socket.state == State::Connecting || socket.output.is_some() {
            if !socket.state.is_leaving() {
                let output = socket.output.get_or_insert_with(|| self.spares.take_output());
                output.append(parts, 0);
            }
            return;
        }
        if socket.state != State::Open {
            return;
        }
        let total: usize = parts.iter().map(|part| part.len()).sum();
        match write(socket, parts, flags) {
            Ok(count) if count == total => socket.sent_bytes += count as u64,
            Ok(count) => {
                socket.sent_bytes += count as u64;
                socket.progress_ms = self.clock.now_ms();
                let mut output = self.spares.take_output();
                output.append(parts, count);
                socket.output = Some(output);
            }
            Err(error) => {
                socket.state = State::Broken(error);
                self.make_ready(token);
            }
        }
    }

    /// Bytes that wait for the socket to take them.
    #[inline]
    pub fn queued(&mut self, token: Token) -> usize {
        let Some(socket) = self.sockets.get(token) else {
            return 0;
        };
        let output = socket.output.as_ref().map_or(0, |output| output.len());
        match &socket.secure {
            None => output,
            Some(secure) => output + secure.session.waiting_bytes(),
        }
    }

    /// Takes the queued bytes away, to send them elsewhere: of a secure socket what waits for the handshake.
    pub fn take_queued(&mut self, token: Token) -> Vec<u8> {
        let secure = self.sockets.get(token).and_then(|socket| socket.secure.as_mut());
        if let Some(secure) = secure {
            return secure.session.take_waiting();
        }
        let output = self.sockets.get(token).and_then(|socket| socket.output.take());
        let bytes = output.as_ref().map_or_else(Vec::new, |output| output.pending().to_vec());
        if let Some(output) = output {
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

    /// Until when a peer that has not taken everything may take its time: `timeout_ms` after it was
    /// last seen to take some; 0 when that is not known to be.
    ///
    /// The kernel takes more for a full socket only when a good part of its buffer is free again,
    /// which a slow peer needs minutes for. So what counts is what the peer acknowledged. Asking
    /// costs a system call: it is done when a deadline has passed, not before. With nothing queued
    /// here the kernel's time of taking says nothing either: then only what was acknowledged since the
    /// last question counts.
    pub fn patience_until_ms(&mut self, token: Token, timeout_ms: u64) -> u64 {
        let now_ms = self.clock.now_ms();
        let Some(socket) = self.sockets.get(token) else {
            return 0;
        };
        let (waiting, took_more) = note_taken(socket);
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

    /// Stops delivering what the peer sends; the kernel's buffer fills and slows the peer down.
    #[inline]
    pub fn pause(&mut self, token: Token) {
        if let Some(socket) = self.sockets.get(token) {
            socket.paused = true;
        }
    }

    /// Delivers again; what has arrived meanwhile comes in the next turn.
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

    /// Reads no more than `bytes` of a socket before others get their turn, because the handler takes its time with
    /// them; as usual with [`READ_BUFFER_BYTES`].
    #[inline]
    pub fn limit_reads(&mut self, token: Token, bytes: usize) {
        if let Some(socket) = self.sockets.get(token) {
            socket.read_bytes_max = bytes.clamp(1, READ_BUFFER_BYTES) as u32;
        }
    }

    /// Whether the kernel has more of a plain socket than was read. Of a secure one nobody knows whether that would be
    /// anything to deliver: false.
    pub fn has_unread(&mut self, token: Token) -> bool {
        match self.sockets.get(token) {
            // The kernel is only asked where a read has filled its buffer.
            Some(Socket { readable: true, secure: None, fd: Some(fd), .. }) => {
                rustix::io::ioctl_fionread(fd).is_ok_and(|bytes| bytes > 0)
            }
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
            Some(fd) => net::recv(fd, &mut [0; 1], RecvFlags::PEEK),
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
        if self.sockets.get(token).is_some() {
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

    /// Sends our end (FIN) once nothing is queued: the caller sees to that.
    pub fn shut_write(&mut self, token: Token) {
        self.send_close_notify(token);
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        if let (State::Open, Some(fd)) = (socket.state, &socket.fd)
            && let Err(error) = net::shutdown(fd, Shutdown::Write)
            && error != Errno::NOTCONN
        {
            socket.state = State::Broken(error);
            self.make_ready(token);
        }
    }

    /// Closes at once; queued bytes are lost, [`Handler::closed`] is not called.
    pub fn close(&mut self, token: Token) {
        self.send_close_notify(token);
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        if let (State::Listening, Some(fd)) = (socket.state, &socket.fd) {
            // The control plane has a duplicate, so closing ours would leave it in epoll. It is not
            // there while accepting rests.
            let _ = epoll::delete(&self.epoll, fd);
        }
        socket.generation = socket.generation.wrapping_add(1);
        socket.state = State::Free;
        socket.fd = None;
        socket.secure = None;
        self.open_count -= 1;
        if let Some(output) = socket.output.take() {
            self.spares.give_output(*output);
        }
        self.timers.remove(&mut self.sockets, token.index);
        self.sockets.free.push(token.index);
    }

    /// Closes at once with a reset, so that the peer cannot take what it has for the whole.
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
            // Without the option the close is a plain one; there is nobody to tell.
            let _ = net::sockopt::set_socket_linger(fd, Some(std::time::Duration::ZERO));
        }
    }

    fn make_ready(&mut self, token: Token) {
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

    /// Closes every connection, keeping listeners and the control socket: what a worker does after
    /// a panic, when nobody knows any more what the connections were about.
    pub fn close_streams(&mut self) {
        for index in 0..self.sockets.slots.len() {
            let socket = &mut self.sockets.slots[index];
            let token = Token { index: index as u32, generation: socket.generation };
            if socket.state == State::Listening && std::mem::take(&mut socket.paused) {
                self.watch_listener(token, true);
                continue;
            }
            if !matches!(socket.state, State::Free | State::Listening | State::Waking) {
                self.close(token);
            }
        }
        if self.scratch.is_empty() {
            self.scratch = vec![0; SCRATCH_BYTES].into_boxed_slice();
        }
        self.ready.clear();
        self.due.clear();
    }
}

/// How many open sockets there may be for another one of a kind to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Room {
    /// Clients leave some to members.
    accept_below: usize,
    /// Clients and members leave some to listeners: one that a worker cannot take would keep its
    /// share of the new connections waiting for ever.
    connect_below: usize,
}

impl Room {
    fn within(limit: usize) -> Self {
        let sockets = limit.saturating_sub(DESCRIPTORS_BESIDE);
        let reserved = (sockets / 8).min(DESCRIPTORS_RESERVED_MAX);
        Self {
            accept_below: sockets - reserved,
            connect_below: sockets - reserved / LISTENERS_SHARE,
        }
    }
}

/// Descriptors that this thread may have open.
fn descriptor_limit() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| limit as usize)
}

/// Asks the kernel what the peer has acknowledged: how much it has not, and whether it is more than
/// when this was last asked.
fn note_taken(socket: &mut Socket) -> (u64, bool) {
    let waiting = socket.fd.as_ref().map_or(0, unacknowledged_bytes);
    let taken = socket.sent_bytes.saturating_sub(waiting);
    let took_more = taken > socket.taken_bytes;
    socket.taken_bytes = socket.taken_bytes.max(taken);
    (waiting, took_more)
}

/// Bytes that the peer has not acknowledged; 0 when the kernel does not say.
fn unacknowledged_bytes(fd: &OwnedFd) -> u64 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ (the same number as TIOCOUTQ) writes one int, and the pointer names a live one.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 { u64::try_from(bytes).unwrap_or(0) } else { 0 }
}

/// One non-blocking write; a full socket counts as nothing written.
fn write(socket: &Socket, parts: &[IoSlice<'_>], flags: SendFlags) -> Result<usize, Errno> {
    let flags = flags | SendFlags::NOSIGNAL;
    let Some(fd) = &socket.fd else {
        return Err(Errno::BADF);
    };
    loop {
        let result = match parts {
            [part] => net::send(fd.as_fd(), part, flags),
            _ => {
                let mut no_control = net::SendAncillaryBuffer::default();
                net::sendmsg(fd.as_fd(), parts, &mut no_control, flags)
            }
        };
        match result {
            Err(Errno::AGAIN) => return Ok(0),
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests;
