//! Which connection a transaction takes: one that any client may use, or one that belongs to its client.

use std::rc::Rc;

use weir_exchange::arena::ConnectionKey;
use weir_exchange::local::member::LocalMember;
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::request::{ConnectionChoice, ConnectionNeed};
use weir_exchange::parts::transaction_ends::TransactionEnds;

use crate::worker::edge::WorkerEdge;
use crate::worker::member::bound_connections::unbind;
use crate::worker::member::connect::{is_spoken_to_alike, take_usual, use_idle};
use crate::worker::state::member::MemberConnection;

impl WorkerEdge<'_> {
    /// Gets a connection to the member for an exchange: an idle or shared connection, or a new one.
    pub fn take_connection(
        &mut self,
        ends: &mut TransactionEnds,
        member: u32,
        need: ConnectionNeed,
    ) -> Result<(), MemberFailure> {
        let local = Rc::clone(&ends.tries.pool.members[member as usize]);
        local.counters.requests.add(1);
        if need.wanted != ConnectionChoice::Any {
            return take_particular(self, ends, (member, &local), need);
        }
        take_usual(self, ends, (member, &local), need)
    }
}

/// Gets a connection for a transaction that may not use any.
#[cold]
#[inline(never)]
fn take_particular(
    edge: &mut WorkerEdge<'_>,
    ends: &mut TransactionEnds,
    (member, local): (u32, &Rc<LocalMember>),
    need: ConnectionNeed,
) -> Result<(), MemberFailure> {
    if need.is_fresh() {
        return edge.open_connection(ends, member, need);
    }
    let settings = ends.tries.pool.settings();
    if settings.reuse.binds {
        if settings.http2 && need.is_authenticating() {
            return edge.open_connection(ends, member, need);
        }
        if !settings.http2 && take_bound(edge, ends, local) {
            return Ok(());
        }
    }
    take_usual(edge, ends, (member, local), need)?;
    if need.is_authenticating() {
        let key = ends.phase.connection();
        let connection = key.and_then(|key| edge.world.members.all.get_mut(key));
        ends.account.is_bound = connection.is_some_and(MemberConnection::bind);
    }
    Ok(())
}

/// Gets the idle connection to the member that belongs to the client of an exchange. How long it has been idle does not
/// matter: on another connection the client would have to log in again.
fn take_bound(
    edge: &mut WorkerEdge<'_>,
    ends: &mut TransactionEnds,
    local: &Rc<LocalMember>,
) -> bool {
    let Some(client) = ends.caller.client() else { return false };
    loop {
        let Some(bound) = edge.world.bound.get(&client.to_bits()) else {
            return false;
        };
        let is_of_member = |key: &&ConnectionKey| {
            let connection = edge.world.members.all.get(**key);
            connection.is_some_and(|connection| Rc::ptr_eq(&connection.member, local))
        };
        let Some(key) = bound.keys().iter().rev().find(is_of_member).copied() else {
            return false;
        };
        let Some(connection) = edge.world.members.all.get(key) else { return false };
        let (one, other) = (connection.pool.settings(), ends.tries.pool.settings());
        if edge.io.sockets.has_news(connection.token) || !is_spoken_to_alike(one, other) {
            edge.close_member(key);
            continue;
        }
        unbind(edge.world, key);
        let Some(connection) = edge.world.members.all.get_mut(key) else { return false };
        use_idle(edge.io, connection, ends, key);
        ends.account.is_bound = true;
        return true;
    }
}
