//! A turn of the event loop: waiting, events, sockets that are ready without an event, and deadlines.

use std::io;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::bounds::{
    ACCEPT_REST_MS, ACCEPTS_BEFORE_CLOSE_MAX, ACCEPTS_IN_A_ROW_MAX, READ_BUFFER_BYTES,
    READS_IN_A_ROW_MAX,
};
use crate::clock;
use crate::datagram_sockets::{self, Datagrams};
use crate::event_loop::EventLoop;
use crate::handler::Handler;
use crate::kernel::Descriptor;
use crate::socket::{ReadResult, State};
use crate::straight;
use crate::table::Sockets;
use crate::token::{Owner, OwnerKey, Token};

impl EventLoop {
    /// Runs turns until [`Self::stop`] is called.
    pub fn run(&mut self, handler: &mut impl Handler) -> io::Result<()> {
        // The first turn does not wait: the handler requests a wake-up only at the end of a turn, and a loop without sockets
        // would wait forever.
        let mut wanted_at_us = Some(0);
        while !self.stopping {
            wanted_at_us = self.turn(handler, wanted_at_us)?;
        }
        Ok(())
    }

    /// Runs one turn, which waits until `wanted_at_us` at the latest. Returns the latest time that the handler wants for the
    /// next turn.
    pub fn turn(
        &mut self,
        handler: &mut impl Handler,
        wanted_at_us: Option<u64>,
    ) -> io::Result<Option<u64>> {
        self.wait(wanted_at_us)?;
        self.clock = clock::now();
        self.turns += 1;
        self.handle_events(handler);
        self.handle_ready(handler);
        self.handle_deadlines(handler);
        let wanted_at_us = handler.turn_ended(self);
        if self.datagrams.is_some() {
            Datagrams::of(self).flush();
        }
        Ok(wanted_at_us)
    }

    /// Whether [`Self::stop`] was called.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// The latest start of the next turn if no event occurs. A simulation advances its clock to this time.
    #[cfg(feature = "simulation")]
    pub fn due_us(&self, wanted_at_us: Option<u64>, now_us: u64) -> Option<u64> {
        if !self.ready.is_empty() {
            return Some(now_us);
        }
        // A timer in the past is due immediately.
        let timer_us = self.timers.next_ms().map(|at_ms| at_ms * 1_000);
        [timer_us, wanted_at_us].into_iter().flatten().min()
    }

    /// The number of open sockets, including listeners.
    #[cfg(feature = "simulation")]
    pub fn open_sockets(&self) -> usize {
        self.open_count
    }

    #[inline(always)]
    fn wait(&mut self, wanted_at_us: Option<u64>) -> io::Result<()> {
        if wanted_at_us.is_some() {
            // The last turn took time, and the requested time is precise to a microsecond.
            self.clock = clock::now();
        }
        let until_timer_us =
            self.timers.wait_ms(self.clock.now_ms()).map(|wait_ms| wait_ms * 1_000);
        let until_wanted_us = wanted_at_us.map(|at_us| at_us.saturating_sub(self.clock.now_us()));
        let wait_us = match (until_timer_us, until_wanted_us) {
            _ if !self.ready.is_empty() => Some(0),
            (Some(timer), Some(wanted)) => Some(timer.min(wanted)),
            (timer, wanted) => timer.or(wanted),
        };
        match self.kernel.wait(&mut self.events, wait_us, self.is_precise) {
            Ok(()) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn handle_events(&mut self, handler: &mut impl Handler) {
        if let [epoll::Event { flags, data }] = self.events[..] {
            return self.handle_event(handler, Token::from_data(data), flags);
        }
        put_members_first(&mut self.events, &mut self.sockets);
        for index in 0..self.events.len() {
            let epoll::Event { flags, data } = self.events[index];
            self.handle_event(handler, Token::from_data(data), flags);
        }
    }

    fn handle_event(&mut self, handler: &mut impl Handler, token: Token, flags: epoll::EventFlags) {
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        let owner = socket.owner;
        match socket.state {
            State::Listening => self.accept(handler, token, owner),
            State::Waking => handler.control(self),
            State::Datagrams => datagram_sockets::read(self, handler, token),
            State::Connecting => self.finish_connecting(handler, token, flags),
            _ => self.handle_stream(handler, token, flags),
        }
    }

    #[inline(always)]
    fn handle_stream(
        &mut self,
        handler: &mut impl Handler,
        token: Token,
        flags: epoll::EventFlags,
    ) {
        use epoll::EventFlags;
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        let owner = socket.owner;
        socket.note(flags);
        // A client that reset its connection is dropped even if its socket is paused. Data that a member sent before its
        // reset must still be read.
        if flags.contains(EventFlags::ERR)
            && socket.is_not_read()
            && matches!(owner, Owner::Client(_))
        {
            let error = socket.fd.as_ref().map(Descriptor::take_error);
            if let Some(Err(error)) = error {
                return handler.failed(self, owner, error);
            }
        }
        // A socket that is read in slices gets one read per turn: either this one or the one that is already scheduled.
        let is_next = socket.in_ready && socket.is_read_in_slices();
        if flags.contains(EventFlags::OUT) && socket.output.is_some() {
            return flush_and_read(self, handler, (token, owner), !is_next);
        }
        if !is_next {
            read_now(self, handler, token);
        }
    }

    #[inline(never)]
    fn finish_connecting(
        &mut self,
        handler: &mut impl Handler,
        token: Token,
        flags: epoll::EventFlags,
    ) {
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        let owner = socket.owner;
        // The query is a system call, made only if epoll reports an error.
        let has_failed = flags.contains(epoll::EventFlags::ERR);
        let error = socket.fd.as_ref().filter(|_| has_failed).map(Descriptor::take_error);
        let outcome = match error.or(socket.fd.as_ref().map(|_| Ok(()))) {
            Some(Ok(())) if flags.contains(epoll::EventFlags::OUT) => Ok(()),
            Some(Ok(())) if !flags.contains(epoll::EventFlags::HUP) => return,
            Some(Ok(())) | None => Err(Errno::CONNRESET),
            Some(Err(error)) => Err(error),
        };
        if outcome.is_ok() {
            socket.state = State::Open;
        }
        handler.connected(self, owner, outcome);
        if outcome.is_ok() {
            // Data that arrived before the request is sent must be delivered first.
            let asked = flags - epoll::EventFlags::OUT;
            self.handle_stream(handler, token, asked);
            self.flush(handler, token);
        }
    }

    #[inline(never)]
    fn accept(&mut self, handler: &mut impl Handler, token: Token, owner: Owner) {
        let Owner::Listener(listener) = owner else {
            return;
        };
        // An accept that finds no connection costs as much as a successful one. So several accepts are tried only if the
        // previous turn accepted a connection, too: connections then arrive faster than turns.
        let turn = self.turns;
        let is_busy = self.sockets.get(token).is_some_and(|socket| socket.sent_bytes == turn);
        for _ in 0..if is_busy { ACCEPTS_IN_A_ROW_MAX } else { 1 } {
            let Some(socket) = self.sockets.get(token).filter(|socket| !socket.paused) else {
                return;
            };
            let Some(fd) = &socket.fd else { return };
            if self.open_count >= self.room.accept_below {
                match handler.make_room(self) {
                    true => continue,
                    false => return self.rest(handler, token, listener, Errno::MFILE),
                }
            }
            match fd.accept() {
                Ok((stream, peer)) => {
                    socket.sent_bytes = turn + 1;
                    handler.accepted(self, listener, stream, peer);
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => {}
                Err(error) => return self.rest(handler, token, listener, error),
            }
        }
    }

    /// Pauses accepting for a short time, because no descriptor or memory is available: a level-triggered listener would
    /// cause a busy loop.
    fn rest(&mut self, handler: &mut impl Handler, token: Token, listener: OwnerKey, error: Errno) {
        if let Some(socket) = self.sockets.get(token) {
            socket.paused = true;
        }
        self.watch_listener(token, false);
        self.set_deadline(token, self.now_ms() + ACCEPT_REST_MS);
        handler.accept_failed(self, listener, error);
    }

    /// Removes a listener from epoll, or adds it again, because an EXCLUSIVE entry cannot be modified.
    pub(crate) fn watch_listener(&mut self, token: Token, watch: bool) {
        let Some(fd) = self.sockets.get(token).and_then(|socket| socket.fd.as_ref()) else {
            return;
        };
        let result = if watch {
            let flags = epoll::EventFlags::IN | epoll::EventFlags::EXCLUSIVE;
            self.kernel.watch(fd, token.data(), flags)
        } else {
            self.kernel.unwatch(fd)
        };
        if result.is_err() && watch {
            self.set_deadline(token, self.now_ms() + ACCEPT_REST_MS);
        }
    }

    /// Reads and delivers the available data, within the socket's share of the turn.
    #[inline(never)]
    fn read(&mut self, handler: &mut impl Handler, token: Token) {
        read_now(self, handler, token);
    }

    /// Reads once from a socket that is finished or cannot send. Returns whether another read may follow.
    #[cold]
    fn read_finished(&mut self, handler: &mut impl Handler, token: Token) -> bool {
        let Some(socket) = self.sockets.get(token) else {
            return false;
        };
        let owner = socket.owner;
        match socket.state {
            state if state.is_leaving() => self.drop_input(handler, token),
            State::Draining(_) if socket.secure.is_some() => {
                self.read_secure(handler, token, owner);
            }
            State::Draining(error) => {
                let bytes_max = socket.bytes_at_once();
                self.read_broken(handler, token, owner, (error, bytes_max));
            }
            _ => return false,
        }
        true
    }

    /// Reads data that arrived before a write failed. The kernel reports a reset only once, and the failed write has
    /// consumed that report. So an end of data that is read afterwards is not a FIN of the peer. Exception: EPIPE means that
    /// the peer sent FIN before its reset, so the end is real.
    fn read_broken(
        &mut self,
        handler: &mut impl Handler,
        token: Token,
        owner: Owner,
        (error, bytes_max): (Errno, usize),
    ) {
        let mut scratch = std::mem::take(&mut self.scratch);
        match self.read_once(token, &mut scratch[..bytes_max], RecvFlags::empty()) {
            ReadResult::Bytes(count) => handler.received(self, owner, &mut scratch[..count]),
            ReadResult::Failure(error) => handler.failed(self, owner, error),
            ReadResult::End if error == Errno::PIPE => {
                handler.ended(self, owner);
                if self.sockets.get(token).is_some() {
                    handler.failed(self, owner, error);
                }
            }
            ReadResult::End | ReadResult::Nothing => handler.failed(self, owner, error),
        }
        self.scratch = scratch;
    }

    pub(crate) fn read_once(
        &mut self,
        token: Token,
        scratch: &mut [u8],
        flags: RecvFlags,
    ) -> ReadResult {
        match self.sockets.get(token) {
            Some(socket) => socket.receive(scratch, flags),
            None => ReadResult::Nothing,
        }
    }

    /// Sends queued data, as much as the socket accepts.
    fn flush(&mut self, handler: &mut impl Handler, token: Token) {
        let now_ms = self.now_ms();
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        let (owner, state) = (socket.owner, socket.state);
        if matches!(state, State::Broken(_) | State::Draining(_)) {
            return;
        }
        if let Some(mut output) = socket.output.take() {
            match socket.send_queued(&mut output, &mut self.pipes) {
                Ok(false) => {}
                Ok(true) => socket.progress_ms = now_ms,
                Err(error) => {
                    socket.output = Some(output);
                    if state.is_leaving() {
                        return self.close_and_tell(handler, token);
                    }
                    socket.state = State::Broken(error);
                    return self.make_ready(token);
                }
            }
            if output.len() > 0 {
                socket.output = Some(output);
                return;
            }
            self.spares.give_output(*output);
        } else if !state.is_leaving() {
            return;
        }
        if state.is_leaving() {
            self.sent_all(handler, token);
        } else if self.queued(token) == 0 {
            // Data that waits for a handshake has not been sent yet.
            handler.drained(self, owner);
        }
    }

    /// Handles sockets that need attention without an event: sockets that were resumed, that used up their share of the
    /// turn, that are finished, or whose write failed.
    fn handle_ready(&mut self, handler: &mut impl Handler) {
        if self.ready.is_empty() {
            return;
        }
        let mut ready = std::mem::take(&mut self.ready);
        for token in ready.drain(..) {
            let Some(socket) = self.sockets.slots.get_mut(token.index as usize) else {
                continue;
            };
            if socket.generation != token.generation {
                continue;
            }
            socket.in_ready = false;
            match socket.state {
                State::Broken(error) => self.handle_broken(handler, token, error),
                state => {
                    if state.is_leaving() {
                        self.look_at_leaving(handler, token);
                    }
                    self.read(handler, token);
                }
            }
        }
        if self.ready.is_empty() {
            self.ready = ready;
        }
    }

    /// Handles a failed write. A member that refused a request body may have sent a response before it closed (RFC 9112
    /// section 9.5), so its data is read first.
    fn handle_broken(&mut self, handler: &mut impl Handler, token: Token, error: Errno) {
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        let owner = socket.owner;
        if !matches!(owner, Owner::Member(_)) {
            return handler.failed(self, owner, error);
        }
        socket.state = State::Draining(error);
        (socket.readable, socket.alert) = (true, true);
        // A paused socket is read when it is resumed.
        self.read(handler, token);
    }

    fn handle_deadlines(&mut self, handler: &mut impl Handler) {
        if !self.timers.is_due(self.clock.now_ms()) {
            return;
        }
        let mut due = std::mem::take(&mut self.due);
        self.timers.advance(&mut self.sockets, self.clock.now_ms(), &mut due);
        // Tokens instead of indexes, because the deadline of one socket may close another, whose slot is then reused.
        let mut tokens = std::mem::take(&mut self.due_tokens);
        tokens.extend(due.drain(..).map(|index| Token {
            index,
            generation: self.sockets.slots[index as usize].generation,
        }));
        self.due = due;
        for token in tokens.drain(..) {
            let Some(socket) = self.sockets.get(token) else {
                continue;
            };
            if socket.timer.is_armed() {
                // A handler has set another deadline in this pass.
                continue;
            }
            let owner = socket.owner;
            match socket.state {
                State::Free => {}
                State::Datagrams if owner == Owner::Nobody => self.close(token),
                State::Listening => {
                    socket.paused = false;
                    self.watch_listener(token, true);
                }
                state if state.is_leaving() => self.expire_leaving(handler, token),
                _ => handler.timer(self, owner),
            }
        }
        self.due_tokens = tokens;
    }
}

/// Accepts the connections that are queued at a listener before it closes, because the kernel would reset them.
pub fn accept_before_close(io: &mut EventLoop, handler: &mut impl Handler, token: Token) {
    let Some(Owner::Listener(listener)) = io.sockets.get(token).map(|socket| socket.owner) else {
        return;
    };
    for _ in 0..ACCEPTS_BEFORE_CLOSE_MAX {
        let has_room = io.open_count < io.room.accept_below;
        let Some(fd) = io.descriptor(token).filter(|_| has_room) else { return };
        match fd.accept() {
            Ok((stream, peer)) => handler.accepted(io, listener, stream, peer),
            Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => {}
            Err(_) => return,
        }
    }
}

/// See [`EventLoop::read`]. It is inlined into event handling, where nearly all data is read.
#[inline(always)]
fn read_now(io: &mut EventLoop, handler: &mut impl Handler, token: Token) {
    for _ in 0..READS_IN_A_ROW_MAX {
        let Some(socket) = io.sockets.get(token) else {
            return;
        };
        if socket.paused || !(socket.readable || socket.has_records()) {
            return;
        }
        if !matches!(socket.state, State::Open) {
            if io.read_finished(handler, token) {
                continue;
            }
            return;
        }
        if !socket.is_read_as_usual() {
            read_otherwise(io, handler, token);
            break;
        }
        let owner = socket.owner;
        if socket.secure.is_some() {
            io.read_secure(handler, token, owner);
            continue;
        }
        // The scratch buffer is moved out of the loop, so that the handler can use both.
        let mut scratch = std::mem::take(&mut io.scratch);
        let read = socket.receive(&mut scratch[..READ_BUFFER_BYTES], RecvFlags::empty());
        match read {
            ReadResult::Bytes(count) => handler.received(io, owner, &mut scratch[..count]),
            ReadResult::Nothing => {}
            ReadResult::End => handler.ended(io, owner),
            ReadResult::Failure(error) => handler.failed(io, owner, error),
        }
        io.scratch = scratch;
    }
    let socket = io.sockets.get(token);
    if socket.is_some_and(|socket| (socket.readable || socket.has_records()) && !socket.paused) {
        io.make_ready(token);
    }
}

/// Reads once from an open socket that is read in slices, or moves its bytes directly to another socket.
#[inline(never)]
fn read_otherwise(io: &mut EventLoop, handler: &mut impl Handler, token: Token) {
    let Some(socket) = io.sockets.get(token) else {
        return;
    };
    let owner = socket.owner;
    if socket.straight.is_some() {
        return straight::read(io, handler, token);
    }
    if socket.secure.is_some() {
        return io.read_secure(handler, token, owner);
    }
    let bytes_max = socket.bytes_at_once();
    let mut scratch = std::mem::take(&mut io.scratch);
    match io.read_once(token, &mut scratch[..bytes_max], RecvFlags::empty()) {
        ReadResult::Bytes(count) => handler.received(io, owner, &mut scratch[..count]),
        ReadResult::Nothing => {}
        ReadResult::End => handler.ended(io, owner),
        ReadResult::Failure(error) => handler.failed(io, owner, error),
    }
    io.scratch = scratch;
}

/// Sends queued data and reads. A member is read first, because data that arrived before the queued request is sent cannot
/// be a response to it. For a client, the queued data is sent first.
#[inline(never)]
fn flush_and_read(
    io: &mut EventLoop,
    handler: &mut impl Handler,
    (token, owner): (Token, Owner),
    reads: bool,
) {
    let is_heard_first = matches!(owner, Owner::Member(_));
    if !is_heard_first {
        io.flush(handler, token);
    }
    if reads {
        io.read(handler, token);
    }
    if is_heard_first {
        io.flush(handler, token);
    }
}

/// Moves events of members to the front: a member connection that has ended, or has sent unrequested data, must not be
/// assigned to a request of the same turn. All these events are recorded before the first is handled, because the handler of
/// one may send a request on another.
fn put_members_first(events: &mut [epoll::Event], sockets: &mut Sockets) {
    let mut members = 0;
    for index in 0..events.len() {
        let epoll::Event { flags, data } = events[index];
        if let Some(socket) = sockets.get(Token::from_data(data))
            && matches!(socket.owner, Owner::Member(_))
        {
            if matches!(socket.state, State::Open) {
                socket.note(flags);
            }
            events.swap(members, index);
            members += 1;
        }
    }
}
