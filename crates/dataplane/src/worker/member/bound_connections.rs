//! Member connections that belong to one client connection, because authentication is bound to them (NTLM, Negotiate): the
//! member takes every request on such a connection for one of the user who has logged in.
//!
//! This is about HTTP/1 on both sides. A client with HTTP/2 may send requests of several users at once, so its bound
//! connections serve one request each. A member with HTTP/2 gets credentials on a connection of their own.

use std::rc::Rc;

use weir_event_loop::ReadMode;
use weir_exchange::arena::{ClientKey, ConnectionKey};
use weir_exchange::parts::transaction_ends::TransactionEnds;

use crate::worker::edge::WorkerEdge;
use crate::worker::state::client::Client;
use crate::worker::state::stage::Stage;
use crate::worker::world::World;

/// Stores a connection that cannot serve other clients for its client, or closes it.
#[cold]
#[inline(never)]
pub fn keep_for_its_client(edge: &mut WorkerEdge<'_>, key: ConnectionKey, ends: &TransactionEnds) {
    let Some(idle_ms) = idle_ms(edge, key, ends) else {
        return edge.close_member(key);
    };
    let now_ms = edge.io.now_ms();
    let (Some(connection), Some(client_key)) =
        (edge.world.members.all.get_mut(key), ends.caller.client())
    else {
        return edge.close_member(key);
    };
    let Some(client) = edge.world.clients.all.get_mut(client_key) else {
        return edge.close_member(key);
    };
    client.special.has_bound = true;
    connection.exchange = None;
    connection.sharing.bound_to = Some(client_key);
    connection.idle_since_ms = now_ms;
    connection.member.bound.borrow_mut().push(key);
    connection.member.counters.connections_idle.add(1);
    edge.io.sockets.resume(connection.token);
    if std::mem::take(&mut connection.is_sliced) {
        edge.io.sockets.read_as(connection.token, ReadMode::Usual);
    }
    match idle_ms {
        Some(idle_ms) => edge.io.set_deadline(connection.token, now_ms + idle_ms),
        None => edge.io.clear_deadline(connection.token),
    }
    let superfluous = edge.world.bound.entry(client_key.to_bits()).or_default().add(key);
    if let Some(superfluous) = superfluous {
        edge.close_member(superfluous);
    }
}

/// How long a connection may be idle for its client: `Some(None)`: until either of the two closes; `None`: not at all.
fn idle_ms(
    edge: &mut WorkerEdge<'_>,
    key: ConnectionKey,
    ends: &TransactionEnds,
) -> Option<Option<u64>> {
    let workers = edge.world.counters.workers();
    let client = edge.world.clients.all.find(ends.caller.client())?;
    let connection = edge.world.members.all.get(key)?;
    let local = Rc::clone(&connection.member);
    let may_be_kept = connection.sharing.is_bound
        && connection.http1.keep
        && ends.caller.stream().is_none()
        && client.stage != Stage::Leaving
        && !local.retired.get()
        && connection.requests < connection.pool.settings().reuse.requests_max
        && edge.world.draining.is_none();
    let idle_ms = connection.http1.announced_idle_ms();
    if !may_be_kept || idle_ms == Some(0) {
        return None;
    }
    // Idle connections of all workers together leave places under the member's limit, but each worker has one.
    let limit = connection.connections_max;
    let share = limit.map_or(usize::MAX, |limit| (limit as usize / workers).max(1));
    if local.idle.borrow().len() + local.bound.borrow().len() >= share {
        let oldest = local.idle.borrow().first().copied()?;
        edge.close_member(oldest);
    }
    Some(idle_ms)
}

/// Takes an idle connection from the client to which it belongs. The caller uses or closes it.
pub fn unbind(world: &mut World, key: ConnectionKey) {
    let Some(connection) = world.members.all.get_mut(key) else { return };
    let Some(client) = connection.sharing.bound_to.take() else { return };
    connection.member.bound.borrow_mut().retain(|other| *other != key);
    connection.member.counters.connections_idle.subtract(1);
    let Some(bound) = world.bound.get_mut(&client.to_bits()) else { return };
    bound.remove(key);
    if bound.keys().is_empty() {
        world.bound.remove(&client.to_bits());
        if let Some(client) = world.clients.all.get_mut(client) {
            client.special.has_bound = false;
        }
    }
}

/// Closes the idle connections that belong to a client which sends no further request.
pub fn close_all(edge: &mut WorkerEdge<'_>, client: ClientKey) {
    let has_bound = |client: &mut Client| std::mem::take(&mut client.special.has_bound);
    if !edge.world.clients.all.get_mut(client).is_some_and(has_bound) {
        return;
    }
    let bound = edge.world.bound.remove(&client.to_bits());
    for key in bound.iter().flat_map(|bound| bound.keys()) {
        edge.close_member(*key);
    }
}
