//! A connection between weir and a simulated peer.

use std::net::SocketAddr;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::pipe::{DirectionEnd, Pipe};
use super::{Reachability, State};

/// The direction of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the peer to weir.
    In,
    /// From weir to the peer.
    Out,
}

impl Direction {
    /// The opposite direction.
    pub fn back(self) -> Self {
        match self {
            Self::In => Self::Out,
            Self::Out => Self::In,
        }
    }
}

/// The state of one end of a connection.
#[derive(Debug, Default)]
pub struct EndState {
    /// Whether the end is open.
    pub is_open: bool,
    /// Whether its close sends a reset.
    pub resets: bool,
    /// An error to be reported once.
    pub error: Option<Errno>,
    /// Whether a reset has arrived.
    pub was_reset: bool,
    /// Whether the end has sent FIN.
    pub has_shut: bool,
    /// Whether the end found no room to send, and waits for it.
    pub wants_room: bool,
}

/// Unrequested data of the peer, and weir's reaction to it.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnrequestedData {
    /// The number of bytes before that data that weir has not received yet.
    pub before: usize,
    /// Whether weir can know of the data.
    pub is_known: bool,
    /// Whether weir has sent something before it could know.
    pub is_crossed: bool,
    /// Whether weir has sent something although it could know.
    pub is_ignored: bool,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// The peer's address.
    pub peer: SocketAddr,
    /// Whether weir is opening the connection.
    pub is_connecting: bool,
    /// Whether the connection is in the queue of weir's listener.
    pub is_in_backlog: bool,
    /// The direction from the peer to weir.
    pub inward: Pipe,
    /// The direction from weir to the peer.
    pub outward: Pipe,
    /// The state of weir's end.
    pub ours: EndState,
    /// The state of the peer's end.
    pub theirs: EndState,
    /// The event data of weir's end, if it is watched.
    pub watch: Option<u64>,
    /// Whether the connection is in the list of connections with events.
    pub in_ready: bool,
    /// The task that waits at the peer's end.
    pub waiter: Option<u32>,
    /// Unrequested data that the peer has sent.
    pub unasked: Option<UnrequestedData>,
}

impl Connection {
    /// A connection that is open at the peer's end, with the window and room of each direction.
    pub fn new(peer: SocketAddr, [inward, outward]: [(usize, usize); 2]) -> Self {
        Self {
            peer,
            is_connecting: false,
            is_in_backlog: false,
            inward: Pipe::new(inward),
            outward: Pipe::new(outward),
            ours: EndState::default(),
            theirs: EndState { is_open: true, ..EndState::default() },
            watch: None,
            in_ready: false,
            waiter: None,
            unasked: None,
        }
    }

    /// The pipe of a direction.
    pub fn pipe(&mut self, direction: Direction) -> &mut Pipe {
        match direction {
            Direction::In => &mut self.inward,
            Direction::Out => &mut self.outward,
        }
    }

    /// The sender of a direction.
    pub fn sender(&mut self, direction: Direction) -> &mut EndState {
        match direction {
            Direction::In => &mut self.theirs,
            Direction::Out => &mut self.ours,
        }
    }

    /// The receiver of a direction.
    pub fn receiver(&mut self, direction: Direction) -> &mut EndState {
        self.sender(direction.back())
    }

    /// The events that epoll would report for weir's end.
    pub fn events(&self) -> EventFlags {
        if self.ours.was_reset {
            let all = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::HUP;
            return if self.ours.error.is_some() { all | EventFlags::ERR } else { all };
        }
        if self.is_connecting {
            return EventFlags::empty();
        }
        let mut flags = EventFlags::empty();
        let has_ended = self.inward.ending == DirectionEnd::FinArrived;
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
    /// Makes data of a direction arrive, or some of it.
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
            // The data arrives at a closed socket, which answers with a reset.
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
        if pipe.ending == DirectionEnd::Reset {
            pipe.ending = DirectionEnd::ResetArrived;
            pipe.flight.clear();
            connection.take_reset(direction);
            self.narrate(id, |_| format!("a reset arrives, {direction:?}"));
            has_come = true;
            // The sender can observe the reset, too.
            self.notify_sender(id, direction);
        } else if pipe.ending == DirectionEnd::Fin && pipe.flight.is_empty() {
            pipe.ending = DirectionEnd::FinArrived;
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

    /// Handles the arrival of the first packet of a connection.
    fn finish_connecting(&mut self, id: u32) {
        let connection = self.connection(id);
        if !connection.ours.is_open {
            return self.forget_if_closed(id);
        }
        let address = connection.peer;
        let reach =
            self.servers.get(&address).map_or(Reachability::Refusing, |server| server.reach);
        match reach {
            Reachability::Silent => return,
            Reachability::Open => {
                self.connection(id).is_connecting = false;
                if let Some(server) = self.servers.get_mut(&address) {
                    server.waiting.push_back(id);
                }
                self.called.push(address);
                if self.connection(id).outward.can_move() {
                    self.set_moving(id, Direction::Out);
                }
            }
            Reachability::Refusing | Reachability::Exhausted => {
                self.fail_connecting(id, Errno::CONNREFUSED)
            }
            Reachability::Unreachable => self.fail_connecting(id, Errno::HOSTUNREACH),
        }
        self.tell(id);
    }

    fn fail_connecting(&mut self, id: u32, error: Errno) {
        let connection = self.connection(id);
        connection.ours.error = Some(error);
        connection.ours.was_reset = true;
        connection.theirs.is_open = false;
    }

    /// Sends a reset in a direction. Data in flight may arrive before it, or be lost.
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
        pipe.ending = DirectionEnd::Reset;
        // Data of the other direction has no receiver.
        connection.pipe(direction.back()).flight.clear();
        self.set_moving(id, direction);
    }

    /// Notifies the receiver of a direction.
    fn notify(&mut self, id: u32, direction: Direction) {
        match direction {
            Direction::In => self.tell(id),
            Direction::Out => self.wake(id),
        }
    }

    fn notify_sender(&mut self, id: u32, direction: Direction) {
        self.notify(id, direction.back());
    }

    /// Notifies the sender of a direction, if it waits for room and there is room.
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

    /// Closes the end that sends in this direction.
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
            if pipe.ending == DirectionEnd::None {
                pipe.ending = DirectionEnd::Fin;
            }
            if pipe.can_move() {
                self.set_moving(id, direction);
            }
        }
        let back = self.connection(id).pipe(direction.back());
        if !back.flight.is_empty() {
            // Without a receiver, the window has no effect.
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
    /// Handles a reset that has arrived in this direction. No more data is exchanged.
    fn take_reset(&mut self, direction: Direction) {
        let had_ended = self.pipe(direction).had_fin;
        let receiver = self.receiver(direction);
        receiver.was_reset = true;
        // Linux reports EPIPE if the peer had sent FIN before.
        receiver.error = Some(if had_ended { Errno::PIPE } else { Errno::CONNRESET });
        self.pipe(direction.back()).flight.clear();
    }
}
