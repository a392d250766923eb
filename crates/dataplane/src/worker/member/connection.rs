//! Connections to members: storing idle ones for reuse, closing and removing connections.

use rustix::io::Errno;
use weir_event_loop::{ReadMode, Token};
use weir_exchange::arena::ConnectionKey;
use weir_exchange::local::member::LocalMember;
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::transaction_ends::TransactionEnds;

use crate::worker::edge::WorkerEdge;
use crate::worker::member::bound_connections;
use crate::worker::wire::Spares;

/// Maximum number of idle connections that are closed at once because descriptors are short.
const CLOSED_FOR_ROOM_MAX: usize = 32;

/// Closes the connection to each member that has been idle for longest, for at most [`CLOSED_FOR_ROOM_MAX`] members, because
/// descriptors are short. Returns whether there was one.
pub fn make_room(edge: &mut WorkerEdge<'_>) -> bool {
    let members = edge.world.table.members();
    let oldest = members.filter_map(|member| member.idle.borrow().first().copied());
    let oldest: Vec<ConnectionKey> = oldest.take(CLOSED_FOR_ROOM_MAX).collect();
    for &key in &oldest {
        edge.close_member(key);
    }
    !oldest.is_empty()
}

impl WorkerEdge<'_> {
    /// The failure to report if a connection cannot be opened: of the member, or of this host.
    pub fn no_connection(&mut self, error: Errno) -> MemberFailure {
        let ours = [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOBUFS,
            Errno::NOMEM,
            Errno::ADDRNOTAVAIL,
            Errno::ACCESS,
            Errno::PERM,
            Errno::AFNOSUPPORT,
        ];
        if error == Errno::AGAIN {
            return MemberFailure::Busy;
        }
        if !ours.contains(&error) {
            return MemberFailure::Connect;
        }
        self.world
            .notices
            .tell_of_socket(self.io.now_ms(), &format!("connection to a member: {error}"));
        MemberFailure::NoSocket
    }

    /// Stores a connection as idle for another request, or closes it if it cannot be reused.
    pub fn keep_connection(&mut self, key: ConnectionKey, ends: &TransactionEnds) {
        let now_ms = self.io.now_ms();
        let Some(connection) = self.world.members.all.get_mut(key) else { return };
        // Unread data, even a part of a TLS record, cannot be the response to the next request. No request may follow one
        // that the member has not received completely.
        if !self.io.sockets.is_quiet(connection.token) {
            return self.close_member(key);
        }
        let reuse = connection.pool.settings().reuse;
        let said_ms = connection.http1.announced_idle_ms();
        let idle_ms = said_ms.map_or(reuse.idle_timeout_ms, |ms| ms.min(reuse.idle_timeout_ms));
        let mut idle = connection.member.idle.borrow_mut();
        if !connection.http1.keep
            || connection.member.retired.get()
            || connection.sharing.is_of_one_client
            || connection.requests >= reuse.requests_max
            || idle.len() >= connection.idle_max(self.world.counters.workers())
            || idle_ms == 0
            || self.world.draining.is_some()
        {
            drop(idle);
            return bound_connections::keep_for_its_client(self, key, ends);
        }
        idle.push(key);
        // Reading may be paused because the previous client was slow.
        self.io.sockets.resume(connection.token);
        if std::mem::take(&mut connection.is_sliced) {
            self.io.sockets.read_as(connection.token, ReadMode::Usual);
        }
        connection.member.counters.connections_idle.add(1);
        connection.exchange = None;
        connection.idle_since_ms = now_ms;
        self.io.set_deadline(connection.token, now_ms + idle_ms);
    }

    /// Closes and removes a member connection. The caller handles its exchange.
    pub fn close_member(&mut self, key: ConnectionKey) {
        if let Some(token) = self.forget_member(key) {
            self.io.close(token);
        }
    }

    /// Removes a member connection. The caller handles its socket and its exchange.
    pub fn forget_member(&mut self, key: ConnectionKey) -> Option<Token> {
        bound_connections::unbind(self.world, key);
        self.world.members.count_sent(self.io, key);
        let connection = self.world.members.all.remove(key)?;
        self.world.tools.encoders.let_go(connection.http1.whole_bytes);
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
        connection.http1.give_back(&mut Spares(self.io));
        Some(connection.token)
    }

    /// Closes this worker's idle connections to a member, also those that belong to clients.
    pub fn close_idle(&mut self, member: &LocalMember) {
        let idle = member.idle.borrow().clone();
        let of_clients = member.bound.borrow().clone();
        for key in idle.into_iter().chain(of_clients) {
            self.close_member(key);
        }
        let multiplexed = member.multiplexed.borrow().clone();
        for key in multiplexed {
            let http2 = self.world.members.all.get(key).and_then(|it| it.http2.as_ref());
            if http2.is_some_and(|http2| http2.is_resting) {
                self.end_member_http2(key);
            }
        }
    }
}
