//! Which connection a transaction takes: one that any client may use, or one that belongs to its client.

use std::rc::Rc;

use weir_exchange::arena::ConnectionKey;
use weir_exchange::local::pool::LocalMember;
use weir_exchange::parts::ends::Ends;
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::request::{Need, Wanted};

use crate::worker::desk::Desk;
use crate::worker::member::bound::unbind;
use crate::worker::member::connecting::{is_spoken_to_alike, take_usual, use_idle};
use crate::worker::state::member::MemberConnection;

impl Desk<'_> {
    /// Gets a connection to the member for an exchange: an idle or shared connection, or a new one.
    pub fn take_connection(
        &mut self,
        ends: &mut Ends,
        member: u32,
        need: Need,
    ) -> Result<(), MemberFailure> {
        let local = Rc::clone(&ends.tries.pool.members[member as usize]);
        local.counters.requests.add(1);
        if need.wanted != Wanted::Any {
            return take_particular(self, ends, (member, &local), need);
        }
        take_usual(self, ends, (member, &local), need)
    }
}

/// Gets a connection for a transaction that may not use any.
#[cold]
#[inline(never)]
fn take_particular(
    desk: &mut Desk<'_>,
    ends: &mut Ends,
    (member, local): (u32, &Rc<LocalMember>),
    need: Need,
) -> Result<(), MemberFailure> {
    if need.is_fresh() {
        return desk.open_connection(ends, member, need);
    }
    let settings = ends.tries.pool.settings();
    if settings.reuse.binds {
        if settings.http2 && need.is_authenticating() {
            return desk.open_connection(ends, member, need);
        }
        if !settings.http2 && take_bound(desk, ends, local) {
            return Ok(());
        }
    }
    take_usual(desk, ends, (member, local), need)?;
    if need.is_authenticating() {
        let key = ends.phase.connection();
        let connection = key.and_then(|key| desk.world.members.get_mut(key));
        ends.account.is_bound = connection.is_some_and(MemberConnection::bind);
    }
    Ok(())
}

/// Gets the idle connection to the member that belongs to the client of an exchange. How long it has been idle does not
/// matter: on another connection the client would have to log in again.
fn take_bound(desk: &mut Desk<'_>, ends: &mut Ends, local: &Rc<LocalMember>) -> bool {
    let Some(client) = ends.caller.client() else { return false };
    loop {
        let Some(bound) = desk.world.of_clients.bound.get(&client.to_bits()) else {
            return false;
        };
        let is_of_member = |key: &&ConnectionKey| {
            let connection = desk.world.members.get(**key);
            connection.is_some_and(|connection| Rc::ptr_eq(&connection.member, local))
        };
        let Some(key) = bound.keys().iter().rev().find(is_of_member).copied() else {
            return false;
        };
        let Some(connection) = desk.world.members.get(key) else { return false };
        let (one, other) = (connection.pool.settings(), ends.tries.pool.settings());
        if desk.io.has_news(connection.token) || !is_spoken_to_alike(one, other) {
            desk.close_member(key);
            continue;
        }
        unbind(desk.world, key);
        let Some(connection) = desk.world.members.get_mut(key) else { return false };
        use_idle(desk.io, connection, ends, key);
        ends.account.is_bound = true;
        return true;
    }
}
