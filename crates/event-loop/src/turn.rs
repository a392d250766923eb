//! The turns of an event loop: waiting, events, sockets that are ready without an event, and deadlines.

use std::io;

use rustix::event::epoll;
use rustix::io::Errno;

use crate::clock;
use crate::datagram_sockets::Datagrams;
use crate::event_loop::EventLoop;
use crate::handler::Handler;
use crate::kernel::Descriptor;
use crate::reader::Reader;
use crate::socket::State;
use crate::table::Sockets;
use crate::token::{Owner, Token};

/// Maximum number of events per wait.
const EVENTS_PER_TURN: usize = 256;

/// Takes the turns of an event loop, and calls the handler for what happens. The handler gets the loop, but never its turns,
/// so it cannot be entered twice.
pub struct Turns {
    /// The number of turns so far.
    pub(crate) number: u64,
    is_precise: bool,
    events: Vec<epoll::Event>,
    due: Vec<u32>,
    due_tokens: Vec<Token>,
    reader: Reader,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            number: 0,
            is_precise: false,
            events: Vec::with_capacity(EVENTS_PER_TURN),
            due: Vec::new(),
            due_tokens: Vec::new(),
            reader: Reader::default(),
        }
    }
}

impl Turns {
    /// Turns whose wake-ups for [`Handler::turn_ended`] are precise to a microsecond instead of a millisecond.
    pub fn precise() -> Self {
        Self { is_precise: true, ..Self::default() }
    }

    /// Takes turns until [`EventLoop::stop`] is called.
    pub fn run(&mut self, io: &mut EventLoop, handler: &mut impl Handler) -> io::Result<()> {
        // The first turn does not wait: the handler requests a wake-up only at the end of a turn, and a loop without sockets
        // would wait forever.
        let mut wanted_at_us = Some(0);
        while !io.is_stopping() {
            wanted_at_us = self.turn(io, handler, wanted_at_us)?;
        }
        Ok(())
    }

    /// Takes one turn, which waits until `wanted_at_us` at the latest. Returns the latest time that the handler wants for
    /// the next turn.
    pub fn turn(
        &mut self,
        io: &mut EventLoop,
        handler: &mut impl Handler,
        wanted_at_us: Option<u64>,
    ) -> io::Result<Option<u64>> {
        self.wait(io, wanted_at_us)?;
        io.clock = clock::now();
        self.number += 1;
        self.handle_events(io, handler);
        self.handle_ready(io, handler);
        self.handle_deadlines(io, handler);
        let wanted_at_us = handler.turn_ended(io);
        if io.datagrams.is_some() {
            Datagrams::of(io).flush();
        }
        Ok(wanted_at_us)
    }

    #[inline(always)]
    fn wait(&mut self, io: &mut EventLoop, wanted_at_us: Option<u64>) -> io::Result<()> {
        if wanted_at_us.is_some() {
            // The last turn took time, and the requested time is precise to a microsecond.
            io.clock = clock::now();
        }
        let until_timer_us = io.timers.wait_ms(io.clock.now_ms()).map(|wait_ms| wait_ms * 1_000);
        let until_wanted_us = wanted_at_us.map(|at_us| at_us.saturating_sub(io.clock.now_us()));
        let wait_us = match (until_timer_us, until_wanted_us) {
            _ if !io.sockets.ready.is_empty() => Some(0),
            (Some(timer), Some(wanted)) => Some(timer.min(wanted)),
            (timer, wanted) => timer.or(wanted),
        };
        match io.kernel.wait(&mut self.events, wait_us, self.is_precise) {
            Ok(()) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn handle_events(&mut self, io: &mut EventLoop, handler: &mut impl Handler) {
        if let [epoll::Event { flags, data }] = self.events[..] {
            return self.handle_event(io, handler, Token::from_data(data), flags);
        }
        put_members_first(&mut self.events, &mut io.sockets);
        for index in 0..self.events.len() {
            let epoll::Event { flags, data } = self.events[index];
            self.handle_event(io, handler, Token::from_data(data), flags);
        }
    }

    fn handle_event(
        &mut self,
        io: &mut EventLoop,
        handler: &mut impl Handler,
        token: Token,
        flags: epoll::EventFlags,
    ) {
        let Some(socket) = io.sockets.get(token) else {
            return;
        };
        let owner = socket.owner;
        match socket.state {
            State::Listening => self.accept(io, handler, token, owner),
            State::Waking => handler.control(io),
            State::Datagrams => Datagrams::of(io).read(handler, token),
            State::Connecting => self.finish_connecting(io, handler, token, flags),
            _ => self.handle_stream(io, handler, token, flags),
        }
    }

    #[inline(always)]
    fn handle_stream(
        &mut self,
        io: &mut EventLoop,
        handler: &mut impl Handler,
        token: Token,
        flags: epoll::EventFlags,
    ) {
        use epoll::EventFlags;
        let Some(socket) = io.sockets.get(token) else {
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
                return handler.failed(io, owner, error);
            }
        }
        // A socket that is read in slices gets one read per turn: either this one or the one that is already scheduled.
        let is_next = socket.in_ready && socket.is_read_in_slices();
        if flags.contains(EventFlags::OUT) && socket.output.is_some() {
            return self.flush_and_read(io, handler, (token, owner), !is_next);
        }
        if !is_next {
            self.reader.read_now(io, handler, token);
        }
    }

    /// Sends queued data and reads. A member is read first, because data that arrived before the queued request is sent
    /// cannot be a response to it. For a client, the queued data is sent first.
    #[inline(never)]
    fn flush_and_read(
        &mut self,
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
            self.reader.read(io, handler, token);
        }
        if is_heard_first {
            io.flush(handler, token);
        }
    }

    #[inline(never)]
    fn finish_connecting(
        &mut self,
        io: &mut EventLoop,
        handler: &mut impl Handler,
        token: Token,
        flags: epoll::EventFlags,
    ) {
        let Some(socket) = io.sockets.get(token) else {
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
        handler.connected(io, owner, outcome);
        if outcome.is_ok() {
            // Data that arrived before the request is sent must be delivered first.
            let asked = flags - epoll::EventFlags::OUT;
            self.handle_stream(io, handler, token, asked);
            io.flush(handler, token);
        }
    }

    /// Handles sockets that need attention without an event: sockets that were resumed, that used up their share of the
    /// turn, that are finished, or whose write failed.
    fn handle_ready(&mut self, io: &mut EventLoop, handler: &mut impl Handler) {
        if io.sockets.ready.is_empty() {
            return;
        }
        let now_ms = io.now_ms();
        let mut ready = std::mem::take(&mut io.sockets.ready);
        for token in ready.drain(..) {
            let Some(socket) = io.sockets.get(token) else {
                continue;
            };
            socket.in_ready = false;
            match socket.state {
                State::Broken(error) => self.handle_broken(io, handler, token, error),
                state => {
                    if state.is_leaving() {
                        let step = socket.leaving_step(now_ms);
                        io.go_on_leaving(handler, token, step);
                    }
                    self.reader.read(io, handler, token);
                }
            }
        }
        if io.sockets.ready.is_empty() {
            io.sockets.ready = ready;
        }
    }

    /// Handles a failed write. A member that refused a request body may have sent a response before it closed (RFC 9112
    /// section 9.5), so its data is read first.
    fn handle_broken(
        &mut self,
        io: &mut EventLoop,
        handler: &mut impl Handler,
        token: Token,
        error: Errno,
    ) {
        let Some(socket) = io.sockets.get(token) else {
            return;
        };
        let owner = socket.owner;
        if !matches!(owner, Owner::Member(_)) {
            return handler.failed(io, owner, error);
        }
        socket.state = State::Draining(error);
        (socket.readable, socket.alert) = (true, true);
        // A paused socket is read when it is resumed.
        self.reader.read(io, handler, token);
    }

    fn handle_deadlines(&mut self, io: &mut EventLoop, handler: &mut impl Handler) {
        let now_ms = io.now_ms();
        if !io.timers.is_due(now_ms) {
            return;
        }
        io.timers.advance(&mut io.sockets, now_ms, &mut self.due);
        // Tokens instead of indexes, because the deadline of one socket may close another, whose slot is then reused.
        let slots = &io.sockets.slots;
        let token_of = |index: u32| Token { index, generation: slots[index as usize].generation };
        self.due_tokens.extend(self.due.drain(..).map(token_of));
        for token in self.due_tokens.drain(..) {
            let Some(socket) = io.sockets.get(token) else {
                continue;
            };
            if socket.timer.is_armed() {
                // A handler has set another deadline in this pass.
                continue;
            }
            let owner = socket.owner;
            match socket.state {
                State::Free => {}
                State::Datagrams if owner == Owner::Nobody => io.close(token),
                State::Listening => io.resume_listener(token),
                state if state.is_leaving() => {
                    let step = socket.expire_leaving(now_ms);
                    io.go_on_leaving(handler, token, step);
                }
                _ => handler.timer(io, owner),
            }
        }
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
