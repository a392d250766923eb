//! The ends of simulated clients and members.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use super::Network;
use super::connection::{Direction, UnrequestedData};
use super::end::excerpt;
use super::pipe::DirectionEnd;

/// The condition for which a task waits at an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// Data or an end can be read.
    pub read: bool,
    /// Data can be written.
    pub write: bool,
}

/// The simulated peer's end of a connection.
#[derive(Debug)]
pub struct Peer {
    network: Network,
    id: u32,
}

impl Peer {
    pub(super) fn new(network: Network, id: u32) -> Self {
        Self { network, id }
    }

    /// The peer's address, as weir's end reports it.
    pub fn address(&self) -> SocketAddr {
        self.network.0.borrow_mut().connection(self.id).peer
    }

    /// Reads arrived data.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut state = self.network.0.borrow_mut();
        let connection = state.connection(self.id);
        let arrived = &mut connection.outward.arrived;
        let count = arrived.len().min(into.len());
        if count == 0 {
            if connection.outward.had_fin {
                return Ok(0);
            }
            if let Some(error) = connection.theirs.error.take() {
                return Err(error.into());
            }
            let has_ended = connection.theirs.was_reset
                || connection.outward.ending == DirectionEnd::FinArrived;
            return if has_ended { Ok(0) } else { Err(ErrorKind::WouldBlock.into()) };
        }
        into[..count].copy_from_slice(&arrived.as_slice()[..count]);
        arrived.take(count);
        if connection.outward.can_move() {
            state.set_moving(self.id, Direction::Out);
        }
        state.note(self.id, &into[..count]);
        state.narrate(self.id, |_| format!("peer receives {}", excerpt(&into[..count])));
        Ok(count)
    }

    /// Writes as much as there is room for.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.network.0.borrow_mut();
        let connection = state.connection(self.id);
        if let Some(error) = connection.theirs.error.take() {
            return Err(error.into());
        }
        if connection.theirs.was_reset || connection.theirs.has_shut {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let count = connection.inward.free().min(bytes.len());
        if count == 0 && !bytes.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        connection.inward.flight.push(&bytes[..count]);
        state.narrate(self.id, |_| format!("peer sends {}", excerpt(&bytes[..count])));
        state.set_moving(self.id, Direction::In);
        Ok(count)
    }

    /// Sets whether the peer accepts no data, so that weir's end has no room to send.
    pub fn take_nothing(&mut self, takes_nothing: bool) {
        let mut state = self.network.0.borrow_mut();
        state.connection(self.id).outward.takes_nothing = takes_nothing;
        state.offer_room(self.id, Direction::Out);
    }

    /// Makes the rest of the expected data arrive at once, together with unrequested data after it. If data is in flight in
    /// either direction, returns false and does nothing. After unrequested data, weir must not reuse the connection; see
    /// [`Self::unasked`].
    pub fn say_unasked(&mut self, tail: &[u8], surplus: &[u8]) -> bool {
        let mut state = self.network.0.borrow_mut();
        let connection = state.connection(self.id);
        let is_quiet = connection.outward.flight.is_empty()
            && connection.outward.arrived.is_empty()
            && connection.outward.ending == DirectionEnd::None
            && connection.inward.flight.is_empty()
            && (tail.is_empty() || connection.inward.arrived.is_empty())
            && connection.inward.ending == DirectionEnd::None
            && connection.unasked.is_none()
            && connection.ours.is_open;
        if !is_quiet {
            return false;
        }
        let arrived = &mut connection.inward.arrived;
        arrived.push(tail);
        let before = arrived.len();
        arrived.push(surplus);
        // epoll reports the data, unless weir's end is about to retry a send.
        let is_known = !tail.is_empty() || !connection.ours.wants_room;
        connection.unasked =
            Some(UnrequestedData { before, is_known, ..UnrequestedData::default() });
        state.narrate(self.id, |_| {
            format!("peer sends unasked, behind {}: {}", excerpt(tail), excerpt(surplus))
        });
        state.tell(self.id);
        true
    }

    /// The reaction of weir's end to unrequested data.
    pub fn unasked(&self) -> Option<UnrequestedData> {
        self.network.0.borrow_mut().connection(self.id).unasked
    }

    /// Sends FIN.
    pub fn finish(&mut self) {
        let mut state = self.network.0.borrow_mut();
        let connection = state.connection(self.id);
        connection.theirs.has_shut = true;
        state.narrate(self.id, |_| "peer shuts".to_owned());
        let connection = state.connection(self.id);
        if connection.inward.ending == DirectionEnd::None && !connection.theirs.was_reset {
            connection.inward.ending = DirectionEnd::Fin;
            state.set_moving(self.id, Direction::In);
        }
    }

    /// Whether all written data and FIN have arrived at weir's end.
    pub fn is_delivered(&self) -> bool {
        let mut state = self.network.0.borrow_mut();
        let connection = state.connection(self.id);
        connection.inward.flight.is_empty() && connection.inward.ending == DirectionEnd::FinArrived
    }

    /// Makes a close of this end send a reset.
    pub fn reset_on_close(&mut self) {
        self.network.0.borrow_mut().connection(self.id).theirs.resets = true;
    }

    /// Whether the condition holds. If not, the task is woken when it may hold.
    pub fn is_ready(&mut self, wants: Readiness, task: u32) -> bool {
        let mut state = self.network.0.borrow_mut();
        let connection = state.connection(self.id);
        let has_ended = connection.theirs.was_reset
            || connection.theirs.error.is_some()
            || connection.outward.ending == DirectionEnd::FinArrived;
        let can_read = !connection.outward.arrived.is_empty() || has_ended;
        let can_write = connection.inward.free() > 0 || connection.theirs.was_reset;
        if (wants.read && can_read) || (wants.write && can_write) {
            return true;
        }
        connection.waiter = (wants.read || wants.write).then_some(task);
        connection.theirs.wants_room = wants.write;
        false
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let mut state = self.network.0.borrow_mut();
        state.connection(self.id).waiter = None;
        state.narrate(self.id, |it| format!("peer closes, reset: {}", it.theirs.resets));
        state.close(self.id, Direction::In);
    }
}
