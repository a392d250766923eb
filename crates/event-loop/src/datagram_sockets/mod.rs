//! Datagram sockets: listeners, each for all its clients, and sockets that are each connected to one member.
//!
//! Datagrams are read in batches (recvmmsg). Several datagrams of one sender arrive as one train if the kernel has joined
//! them (GRO). Trains are forwarded as trains (GSO). Datagrams to clients are collected during a turn and sent with one call
//! per listener (sendmmsg). Datagrams are not queued for a full socket: a datagram that the kernel does not accept is lost,
//! as on the network, and counted.

mod reading;
mod sending;

use std::net::SocketAddr;

use rustix::io::Errno;
use weir_core::datagram::{Flow, Train};

use crate::datagrams::{BATCH_MAX, DatagramState, Outbox, OutgoingTrain};
use crate::event_loop::EventLoop;
use crate::kernel::Descriptor;
use crate::sockets::Source;
use crate::token::{Owner, Token};

use sending::{send_all, send_train};

/// Maximum number of batches that are discarded at once: more than the queue of a listener can hold.
const DISCARDED_BATCHES_MAX: usize = 4_096;

/// The datagram sockets of a loop, and operations on them.
pub struct Datagrams<'a> {
    io: &'a mut EventLoop,
}

impl<'a> Datagrams<'a> {
    /// The datagram sockets of this loop.
    pub fn of(io: &'a mut EventLoop) -> Self {
        Self { io }
    }

    /// Registers a listener.
    pub fn listen(&mut self, fd: Descriptor, owner: Owner) -> Result<Token, Errno> {
        self.datagram_state();
        self.io.add(fd, owner)
    }

    /// Opens a socket for the datagrams of one member, at an unpredictable port.
    pub fn connect(
        &mut self,
        to: SocketAddr,
        source: Option<Source>,
        owner: Owner,
    ) -> Result<Token, Errno> {
        if !self.io.room.fits_client() || !self.io.room.fits_session() {
            return Err(Errno::MFILE);
        }
        self.datagram_state();
        let fd = self.io.kernel.connect_datagrams(to, source)?;
        self.io.add(fd, owner)
    }

    /// Sends to the member of a socket, each datagram once. Datagrams that the kernel does not accept are dropped and
    /// counted. An error means that the member is unreachable, and that nothing more was sent.
    pub fn send(&mut self, token: Token, train: Train<'_>) -> Result<(), Errno> {
        let Some(socket) = self.io.sockets.get(token) else { return Err(Errno::BADF) };
        let Some(fd) = &socket.fd else { return Err(Errno::BADF) };
        let mut lost = 0;
        let sent = send_train(&mut &*fd, train, &mut lost);
        if lost > 0 {
            self.datagram_state().lost += lost;
        }
        sent
    }

    /// Leaves the socket without an owner until [`Self::wake`], or until `until_ms`, when it is closed. Data that arrives in
    /// this time also closes it: a late or repeated response must not reach the next owner.
    pub fn rest(&mut self, token: Token, until_ms: u64) {
        if let Some(socket) = self.io.sockets.get(token) {
            socket.owner = Owner::Nobody;
            self.io.set_deadline(token, until_ms);
        }
    }

    /// Assigns a resting socket to an owner, if the socket still exists and has received nothing. Returns whether it did.
    pub fn wake(&mut self, token: Token, owner: Owner) -> bool {
        let Some(socket) = self.io.sockets.get(token) else { return false };
        debug_assert_eq!(socket.owner, Owner::Nobody, "somebody has it");
        if socket.fd.as_ref().is_none_or(Descriptor::has_datagram) {
            self.io.close(token);
            return false;
        }
        socket.owner = owner;
        true
    }

    /// Closes a listener whose duplicates are not read: its datagrams must not use the kernel's memory. Returns the number
    /// of datagrams in its queue.
    pub fn close_unread(&mut self, token: Token) -> u64 {
        let count = self.discard(token, false);
        self.io.close(token);
        count
    }

    /// Stops reading from a listener that another process reads. Responses are still sent through it.
    pub fn leave_unread(&mut self, token: Token) {
        if let Some(fd) = self.io.sockets.get(token).and_then(|socket| socket.fd.as_ref()) {
            // Unwatching fails only for a socket that is not watched. It is not read in either case.
            let _ = self.io.kernel.unwatch(fd);
        }
    }

    /// Starts to read a closed listener again. Returns the number of queued datagrams that were dropped as too old.
    pub fn reopen(&mut self, token: Token) -> u64 {
        self.discard(token, true)
    }

    /// Drops the queued datagrams of a listener. `is_read`: the listener is read after that. Returns their number.
    fn discard(&mut self, token: Token, is_read: bool) -> u64 {
        let mut inbox = std::mem::take(&mut self.datagram_state().inbox);
        let mut count = 0;
        if let Some(fd) = self.io.sockets.get(token).and_then(|socket| socket.fd.as_ref()) {
            fd.set_datagram_queue(is_read);
            for _ in 0..DISCARDED_BATCHES_MAX {
                let Ok(messages) = fd.receive_trains(&mut inbox, BATCH_MAX) else { break };
                count += inbox.trains(messages).map(|(_, train)| train.count() as u64).sum::<u64>();
            }
        }
        self.datagram_state().inbox = inbox;
        count
    }

    /// Sends to a client at the end of the turn.
    pub fn answer(&mut self, listener: Token, flow: Flow, train: Train<'_>) {
        if self.datagram_state().outbox.push(listener, flow, train) {
            self.flush();
        }
    }

    /// The number of datagrams that the kernel did not accept since the last query.
    pub fn take_lost(&mut self) -> u64 {
        self.io
            .datagrams
            .as_mut()
            .map_or(0, |datagram_state| std::mem::take(&mut datagram_state.lost))
    }

    /// Sends the collected datagrams.
    pub fn flush(&mut self) {
        let Some(datagram_state) = &mut self.io.datagrams else { return };
        if datagram_state.outbox.is_empty() {
            return;
        }
        let mut outbox = std::mem::take(&mut datagram_state.outbox);
        let lost = self.send_batches(&outbox);
        outbox.clear();
        if let Some(datagram_state) = &mut self.io.datagrams {
            datagram_state.outbox = outbox;
            datagram_state.lost += lost;
        }
    }

    /// Sends the collected datagrams. Returns the number of lost datagrams.
    fn send_batches(&mut self, outbox: &Outbox) -> u64 {
        let (mut at, mut lost) = (0, 0);
        let mut batch = [OutgoingTrain::NOTHING; BATCH_MAX];
        while let Some((listener, count)) = outbox.batch(at, &mut batch) {
            let batch = &batch[..count];
            let socket = self.io.sockets.get(listener);
            lost += match socket.and_then(|socket| socket.fd.as_ref()) {
                Some(fd) => send_all(fd, batch),
                // The listener was closed, so its responses are lost.
                None => batch.iter().map(|it| it.train().count() as u64).sum(),
            };
            at += count;
        }
        lost
    }

    fn datagram_state(&mut self) -> &mut DatagramState {
        self.io.datagrams.get_or_insert_with(|| Box::new(DatagramState::new()))
    }
}

#[cfg(test)]
mod tests;
