//! Connections to members: storing idle ones for reuse, closing and removing connections.

use weir_event_loop::{EventLoop, ReadMode, Token};
use weir_exchange::arena::ConnectionKey;
use weir_exchange::local::member::LocalMember;
use weir_exchange::local::table::LocalTable;
use weir_exchange::parts::attempt::Link;
use weir_exchange::parts::transaction_ends::TransactionEnds;

use crate::worker::agenda::{Agenda, Task};
use crate::worker::state::clients::Clients;
use crate::worker::state::members::Members;
use crate::worker::wire::{Socket, Spares};

/// Maximum number of idle connections that are closed at once because descriptors are short.
const CLOSED_FOR_ROOM_MAX: usize = 32;

impl Members {
    /// Closes the connection to each member that has been idle for longest, for at most [`CLOSED_FOR_ROOM_MAX`] members,
    /// because descriptors are short. Returns whether there was one.
    pub fn make_room(&mut self, io: &mut EventLoop, table: &LocalTable) -> bool {
        let oldest = table.members().filter_map(|member| member.idle.borrow().first().copied());
        let oldest: Vec<ConnectionKey> = oldest.take(CLOSED_FOR_ROOM_MAX).collect();
        for &key in &oldest {
            self.close(io, key);
        }
        !oldest.is_empty()
    }

    /// Stores a connection as idle for another request, or closes it if it cannot be reused.
    pub fn keep(
        &mut self,
        (io, clients): (&mut EventLoop, &Clients),
        key: ConnectionKey,
        ends: &TransactionEnds,
    ) {
        let now_ms = io.now_ms();
        let Some(connection) = self.all.get_mut(key) else { return };
        // Unread data, even a part of a TLS record, cannot be the response to the next request. No request may follow one
        // that the member has not received completely.
        if !io.sockets.is_quiet(connection.token) {
            return self.close(io, key);
        }
        let reuse = connection.pool.settings().reuse;
        let said_ms = connection.http1.announced_idle_ms();
        let idle_ms = said_ms.map_or(reuse.idle_timeout_ms, |ms| ms.min(reuse.idle_timeout_ms));
        let mut idle = connection.member.idle.borrow_mut();
        if !connection.http1.is_persistent()
            || connection.member.retired.get()
            || connection.sharing.is_of_one_client
            || connection.requests >= reuse.requests_max
            || idle.len() >= connection.idle_max(self.workers)
            || idle_ms == 0
            || clients.draining.is_some()
        {
            drop(idle);
            return self.keep_for_its_client((io, clients), key, ends);
        }
        idle.push(key);
        // Reading may be paused because the previous client was slow.
        io.sockets.resume(connection.token);
        if std::mem::take(&mut connection.is_sliced) {
            io.sockets.read_as(connection.token, ReadMode::Usual);
        }
        connection.member.counters.connections_idle.add(1);
        connection.exchange = None;
        connection.idle_since_ms = now_ms;
        io.set_deadline(connection.token, now_ms + idle_ms);
    }

    /// Closes and removes a connection. The caller handles its exchange.
    pub fn close(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        if let Some(token) = self.forget(io, key) {
            io.close(token);
        }
    }

    /// Removes a connection. The caller handles its socket and its exchange.
    fn forget(&mut self, io: &mut EventLoop, key: ConnectionKey) -> Option<Token> {
        self.unbind(key);
        self.all.get_mut(key)?.count_sent(io);
        let connection = self.all.remove(key)?;
        let counters = &connection.member.counters;
        counters.connections_open.subtract(1);
        if let Some(http2) = &connection.http2 {
            connection.member.multiplexed.borrow_mut().retain(|other| *other != key);
            counters.connections_idle.subtract(u64::from(http2.is_resting));
        } else if connection.exchange.is_none() {
            let mut idle = connection.member.idle.borrow_mut();
            if let Some(place) = idle.iter().rposition(|&idle_key| idle_key == key) {
                idle.remove(place);
                counters.connections_idle.subtract(1);
            }
        }
        connection.http1.give_back(&mut Spares(io));
        Some(connection.token)
    }

    /// Resets a connection after the member has received the queued data.
    pub fn reset_when_taken(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let Some(connection) = self.all.get(key) else { return };
        let timeout_ms = connection.pool.settings().response_timeout_ms;
        if let Some(token) = self.forget(io, key) {
            self.counted.member_connections_leaving.add(1);
            io.reset_when_taken(token, timeout_ms);
        }
    }

    /// Closes this worker's idle connections to a member, also those that belong to clients.
    pub fn close_idle(&mut self, io: &mut EventLoop, member: &LocalMember) {
        let idle = member.idle.borrow().clone();
        let of_clients = member.bound.borrow().clone();
        for key in idle.into_iter().chain(of_clients) {
            self.close(io, key);
        }
        let multiplexed = member.multiplexed.borrow().clone();
        for key in multiplexed {
            if self.http2_mut(key).is_some_and(|http2| http2.is_resting) {
                self.end_http2(io, key);
            }
        }
    }
}

/// Connections with HTTP/2.
impl Members {
    /// Removes an exchange from its connection. Returns whether its stream was open. `is_draining`: the process drains, so that the
    /// connection is not kept for another request.
    pub fn leave_stream(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        ends: &mut TransactionEnds,
        is_draining: bool,
    ) -> bool {
        let link = ends.phase.take_link();
        let Some(Link { connection: key, stream: Some(stream) }) = link else { return false };
        let Some(connection) = self.all.get_mut(key) else { return false };
        let Some(http2) = &mut connection.http2 else { return false };
        let Some(was_opened) = http2.leave_stream(stream, &mut Spares(io)) else { return false };
        let is_idle = http2.streams.is_empty();
        if http2.must_be_listed() {
            agenda.add(Task::FlushMember(key));
        }
        connection.watch_exhausted_window(io);
        if is_idle {
            connection.rest(io, is_draining);
        }
        was_opened
    }

    /// Sends the collected frames of a connection at the end of a turn.
    pub fn flush(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let Some(connection) = self.all.get_mut(key) else { return };
        let Some(http2) = &mut connection.http2 else { return };
        http2.flush(&mut Socket::of(io, connection.token));
        connection.count_sent(io);
    }

    /// Ends a connection without streams. Queued data is still sent.
    pub fn end_http2(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let Some(connection) = self.all.get_mut(key) else { return };
        let timeout_ms = connection.pool.settings().response_timeout_ms;
        let Some(http2) = &mut connection.http2 else { return };
        http2.end(&mut Socket::of(io, connection.token));
        if let Some(token) = self.forget(io, key) {
            self.counted.member_connections_leaving.add(1);
            io.linger(token, timeout_ms);
        }
    }
}
