//! Member connections that belong to one client connection, because authentication is bound to them (NTLM, Negotiate): the
//! member takes every request on such a connection for one of the user who has logged in.
//!
//! This is about HTTP/1 on both sides. A client with HTTP/2 may send requests of several users at once, so its bound
//! connections serve one request each. A member with HTTP/2 gets credentials on a connection of their own.

use std::rc::Rc;

use weir_event_loop::{EventLoop, ReadMode};
use weir_exchange::arena::{ClientKey, ConnectionKey};
use weir_exchange::parts::transaction_ends::TransactionEnds;

use crate::worker::edge::WorkerEdge;
use crate::worker::state::clients::Clients;
use crate::worker::state::members::Members;
use crate::worker::state::stage::Stage;

impl Members {
    /// Stores a connection that cannot serve other clients for its client, or closes it.
    #[cold]
    #[inline(never)]
    pub fn keep_for_its_client(
        &mut self,
        (io, clients): (&mut EventLoop, &Clients),
        key: ConnectionKey,
        ends: &TransactionEnds,
    ) {
        let Some(idle_ms) = self.idle_ms((io, clients), key, ends) else {
            return self.close(io, key);
        };
        let now_ms = io.now_ms();
        let (Some(connection), Some(client)) = (self.all.get_mut(key), ends.caller.client()) else {
            return self.close(io, key);
        };
        connection.exchange = None;
        connection.sharing.bound_to = Some(client);
        connection.idle_since_ms = now_ms;
        connection.member.bound.borrow_mut().push(key);
        connection.member.counters.connections_idle.add(1);
        io.sockets.resume(connection.token);
        if std::mem::take(&mut connection.is_sliced) {
            io.sockets.read_as(connection.token, ReadMode::Usual);
        }
        match idle_ms {
            Some(idle_ms) => io.set_deadline(connection.token, now_ms + idle_ms),
            None => io.clear_deadline(connection.token),
        }
        let superfluous = self.bound.entry(client.to_bits()).or_default().add(key);
        if let Some(superfluous) = superfluous {
            self.close(io, superfluous);
        }
    }

    /// How long a connection may be idle for its client: `Some(None)`: until either of the two closes; `None`: not at all.
    fn idle_ms(
        &mut self,
        (io, clients): (&mut EventLoop, &Clients),
        key: ConnectionKey,
        ends: &TransactionEnds,
    ) -> Option<Option<u64>> {
        let client = clients.all.find(ends.caller.client())?;
        let connection = self.all.get(key)?;
        let local = Rc::clone(&connection.member);
        let may_be_kept = connection.sharing.is_bound
            && connection.http1.is_persistent()
            && ends.caller.stream().is_none()
            && client.stage != Stage::Leaving
            && !local.retired.get()
            && connection.requests < connection.pool.settings().reuse.requests_max
            && clients.draining.is_none();
        let idle_ms = connection.http1.announced_idle_ms();
        if !may_be_kept || idle_ms == Some(0) {
            return None;
        }
        // Idle connections of all workers together leave places under the member's limit, but each worker has one.
        let limit = connection.connections_max;
        let share = limit.map_or(usize::MAX, |limit| (limit as usize / self.workers).max(1));
        if local.idle.borrow().len() + local.bound.borrow().len() >= share {
            let oldest = local.idle.borrow().first().copied()?;
            self.close(io, oldest);
        }
        Some(idle_ms)
    }

    /// Takes an idle connection from the client to which it belongs. The caller uses or closes it.
    pub fn unbind(&mut self, key: ConnectionKey) {
        let Some(connection) = self.all.get_mut(key) else { return };
        let Some(client) = connection.sharing.bound_to.take() else { return };
        connection.member.bound.borrow_mut().retain(|other| *other != key);
        connection.member.counters.connections_idle.subtract(1);
        let Some(bound) = self.bound.get_mut(&client.to_bits()) else { return };
        bound.remove(key);
        if bound.keys().is_empty() {
            self.bound.remove(&client.to_bits());
        }
    }
}

/// Closes the idle connections that belong to a client which sends no further request.
pub fn close_all(edge: &mut WorkerEdge<'_>, client: ClientKey) {
    let WorkerEdge { io, world } = edge;
    if !world.members.has_bound(client) {
        return;
    }
    let bound = world.members.bound.remove(&client.to_bits());
    for key in bound.iter().flat_map(|bound| bound.keys()) {
        world.members.close(io, *key);
    }
}
