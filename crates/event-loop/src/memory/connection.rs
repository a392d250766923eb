//! A connection between an end of ours and one of theirs.

use std::net::SocketAddr;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::pipe::{Ending, Pipe};
use super::{Reach, State};

/// Which way something travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From them to us.
    In,
    /// From us to them.
    Out,
}

impl Direction {
    /// The other one.
    pub fn back(self) -> Self {
        match self {
            Self::In => Self::Out,
            Self::Out => Self::In,
        }
    }
}

/// State of an end.
#[derive(Debug, Default)]
pub struct Side {
    /// Somebody holds it.
    pub is_open: bool,
    /// Whether its close is a reset.
    pub resets: bool,
    /// An error that is reported once.
    pub error: Option<Errno>,
    /// A reset has arrived.
    pub was_reset: bool,
    /// Whether it has sent its end.
    pub has_shut: bool,
    /// It found no room, and waits for a report of room.
    pub wants_room: bool,
}

/// Data of the peer that was not requested, and our end's reaction to it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unasked {
    /// The number of bytes before it that our side has not received yet.
    pub before: usize,
    /// Our end can know of it.
    pub is_known: bool,
    /// Our end has sent something before it could know.
    pub is_crossed: bool,
    /// Our end has sent something although it knew.
    pub is_ignored: bool,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// Where the other end is.
    pub peer: SocketAddr,
    /// Whether it is being opened from here.
    pub is_connecting: bool,
    /// Whether it waits in the queue of a listener here.
    pub is_in_backlog: bool,
    /// From them.
    pub inward: Pipe,
    /// The direction from us to the peer.
    pub outward: Pipe,
    /// Our side.
    pub ours: Side,
    /// The other.
    pub theirs: Side,
    /// The token of our events.
    pub watch: Option<u64>,
    /// Whether it is in the list of connections with events.
    pub in_ready: bool,
    /// The task that waits at their end.
    pub waiter: Option<u32>,
    /// Unrequested data of the peer.
    pub unasked: Option<Unasked>,
}

impl Connection {
    /// Open at their end.
    pub fn new(peer: SocketAddr, [inward, outward]: [(usize, usize); 2]) -> Self {
        Self {
            peer,
            is_connecting: false,
            is_in_backlog: false,
            inward: Pipe::new(inward),
            outward: Pipe::new(outward),
            ours: Side::default(),
            theirs: Side { is_open: true, ..Side::default() },
            watch: None,
            in_ready: false,
            waiter: None,
            unasked: None,
        }
    }

    /// The pipe of that direction.
    pub fn pipe(&mut self, direction: Direction) -> &mut Pipe {
        match direction {
            Direction::In => &mut self.inward,
            Direction::Out => &mut self.outward,
        }
    }

    /// The sender of that direction.
    pub fn sender(&mut self, direction: Direction) -> &mut Side {
        match direction {
            Direction::In => &mut self.theirs,
            Direction::Out => &mut self.ours,
        }
    }

    /// The receiver of that direction.
    pub fn receiver(&mut self, direction: Direction) -> &mut Side {
        self.sender(direction.back())
    }

    /// The events that a poll of our end shows now.
    pub fn events(&self) -> EventFlags {
        if self.ours.was_reset {
            let all = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::HUP;
            return if self.ours.error.is_some() { all | EventFlags::ERR } else { all };
        }
        if self.is_connecting {
            return EventFlags::empty();
        }
        let mut flags = EventFlags::empty();
        let has_ended = self.inward.ending == Ending::FinArrived;
        if !self.inward.arrived.is_empty() || has_ended {
            flags |= EventFlags::IN;
        }
        if has_ended {
            flags |= EventFlags::RDHUP;
        }
        if has_ended && self.ours.has_shut {
            flags |= EventFlags::HUP;
        }
        if 3 * self.outward.free() >= self.outward.room || self.ours.has_shut {
            flags |= EventFlags::OUT;
        }
        flags
    }
}

impl State {
    /// Lets data of that direction arrive, or some of it.
    pub fn travel(&mut self, id: u32, direction: Direction) {
        let Some(Some(connection)) = self.connections.get_mut(id as usize) else { return };
        connection.pipe(direction).is_moving = false;
        if connection.is_connecting {
            return self.finish_connecting(id);
        }
        let is_received = connection.receiver(direction).is_open;
        let is_accepted = direction == Direction::In && connection.is_in_backlog;
        let pipe = connection.pipe(direction);
        if !pipe.flight.is_empty() && !(is_received || is_accepted) {
            // It comes to a socket that is gone, which answers with a reset.
            pipe.flight.clear();
            self.reset(id, direction.back());
            return;
        }
        let mut count = pipe.fitting();
        if count > 1 && self.random.percent(self.weather.parts_percent) {
            count = 1 + self.random.below(count);
        }
        let connection = self.connection(id);
        let pipe = connection.pipe(direction);
        pipe.arrived.push(&pipe.flight.as_slice()[..count]);
        pipe.flight.take(count);
        let mut has_come = count > 0;
        if pipe.ending == Ending::Reset {
            pipe.ending = Ending::ResetArrived;
            pipe.flight.clear();
            connection.take_reset(direction);
            self.narrate(id, |_| format!("a reset arrives, {direction:?}"));
            has_come = true;
            // Both know now, or will when they look.
            self.notify_sender(id, direction);
        } else if pipe.ending == Ending::Fin && pipe.flight.is_empty() {
            pipe.ending = Ending::FinArrived;
            pipe.had_fin = true;
            self.narrate(id, |_| format!("an end arrives, {direction:?}"));
            has_come = true;
        }
        if has_come {
            self.notify(id, direction);
        }
        self.offer_room(id, direction);
        if self.connection(id).pipe(direction).can_move() {
            self.set_moving(id, direction);
        }
    }

    /// The connection's first packet is there.
    fn finish_connecting(&mut self, id: u32) {
        let connection = self.connection(id);
        if !connection.ours.is_open {
            return self.forget_if_closed(id);
        }
        let address = connection.peer;
        let reach = self.servers.get(&address).map_or(Reach::Refusing, |server| server.reach);
        match reach {
            Reach::Silent => return,
            Reach::Open => {
                self.connection(id).is_connecting = false;
                if let Some(server) = self.servers.get_mut(&address) {
                    server.waiting.push_back(id);
                }
                self.called.push(address);
                if self.connection(id).outward.can_move() {
                    self.set_moving(id, Direction::Out);
                }
            }
            Reach::Refusing | Reach::Exhausted => self.fail_connecting(id, Errno::CONNREFUSED),
            Reach::Unreachable => self.fail_connecting(id, Errno::HOSTUNREACH),
        }
        self.tell(id);
    }

    fn fail_connecting(&mut self, id: u32, error: Errno) {
        let connection = self.connection(id);
        connection.ours.error = Some(error);
        connection.ours.was_reset = true;
        connection.theirs.is_open = false;
    }

    /// Sends a reset in that direction; data in flight may still arrive before it, or not.
    pub fn reset(&mut self, id: u32, direction: Direction) {
        let connection = self.connection(id);
        let fitting = connection.pipe(direction).fitting();
        if connection.pipe(direction).is_broken() {
            return;
        }
        let kept = if fitting > 0 { self.random.below(fitting + 1) } else { 0 };
        let connection = self.connection(id);
        let pipe = connection.pipe(direction);
        pipe.flight.truncate(kept);
        pipe.ending = Ending::Reset;
        // Data of the other direction finds no receiver.
        connection.pipe(direction.back()).flight.clear();
        self.set_moving(id, direction);
    }

    /// The receiver of that direction has something to look at.
    fn notify(&mut self, id: u32, direction: Direction) {
        match direction {
            Direction::In => self.tell(id),
            Direction::Out => self.wake(id),
        }
    }

    fn notify_sender(&mut self, id: u32, direction: Direction) {
        self.notify(id, direction.back());
    }

    /// The sender of that direction may send more, if it waits for that.
    pub fn offer_room(&mut self, id: u32, direction: Direction) {
        let connection = self.connection(id);
        let pipe = connection.pipe(direction);
        let has_room = 3 * pipe.free() >= pipe.room;
        let sender = connection.sender(direction);
        if has_room && sender.wants_room {
            sender.wants_room = false;
            self.notify_sender(id, direction);
        }
    }

    /// Somebody lets go of the end that sends in that direction.
    pub fn close(&mut self, id: u32, direction: Direction) {
        let connection = self.connection(id);
        let back = connection.pipe(direction.back());
        let has_unread = !back.arrived.is_empty();
        back.arrived.clear();
        let side = connection.sender(direction);
        side.is_open = false;
        let resets = side.resets || has_unread;
        let was_reset = side.was_reset;
        if connection.is_connecting {
            connection.theirs.is_open = false;
        } else if resets && !was_reset {
            self.reset(id, direction);
        } else if !was_reset {
            let pipe = connection.pipe(direction);
            if pipe.ending == Ending::None {
                pipe.ending = Ending::Fin;
            }
            if pipe.can_move() {
                self.set_moving(id, direction);
            }
        }
        let back = self.connection(id).pipe(direction.back());
        if !back.flight.is_empty() {
            // Without a receiver, the window does not matter.
            self.set_moving(id, direction.back());
        }
        self.forget_if_closed(id);
    }

    fn forget_if_closed(&mut self, id: u32) {
        let connection = self.connection(id);
        if !connection.ours.is_open && !connection.theirs.is_open && !connection.is_in_backlog {
            self.connections[id as usize] = None;
            self.free.push(id);
        }
    }
}

impl Connection {
    /// A reset has arrived that way: neither end gets anything across any more.
    fn take_reset(&mut self, direction: Direction) {
        let had_ended = self.pipe(direction).had_fin;
        let receiver = self.receiver(direction);
        receiver.was_reset = true;
        // Linux calls it a broken pipe where the peer had ended before.
        receiver.error = Some(if had_ended { Errno::PIPE } else { Errno::CONNRESET });
        self.pipe(direction.back()).flight.clear();
    }
}
