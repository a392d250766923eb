//! Which connection a transaction takes: one that any client may use, or one that belongs to its client.

use std::rc::Rc;

use weir_config::snapshot::Pool;
use weir_connection::member::http2::MemberHttp2;
use weir_connection::member::streams::MemberStream;
use weir_event_loop::EventLoop;
use weir_exchange::arena::ConnectionKey;
use weir_exchange::local::member::LocalMember;
use weir_exchange::local::pool::LocalPool;
use weir_exchange::parts::attempt::Link;
use weir_exchange::parts::request::{ConnectionChoice, ConnectionNeed};
use weir_exchange::parts::transaction_ends::TransactionEnds;

use crate::worker::state::member::MemberConnection;
use crate::worker::state::members::Members;

/// Maximum idle time of a connection that is reused for a request that cannot be repeated. The member may be about to close
/// a connection that has been idle for longer.
const UNREPEATABLE_REUSE_IDLE_MS: u64 = 1_000;

/// Whether requests of one pool can use connections of the other: TLS settings and source addresses are equal.
fn is_spoken_to_alike(one: &Pool, other: &Pool) -> bool {
    one.tls == other.tls && one.source == other.source
}

/// A reload has replaced the pool of a connection, or a change of its members: the connection goes over to the pool of a
/// request that can use it. False: the request cannot.
#[cold]
#[inline(never)]
fn goes_over(connection: &mut MemberConnection, pool: &Rc<LocalPool>) -> bool {
    let is_alike = is_spoken_to_alike(connection.pool.settings(), pool.settings());
    if is_alike {
        connection.pool = Rc::clone(pool);
    }
    is_alike
}

impl Members {
    /// Takes a connection to the member for an exchange: one that is idle, or a stream of a shared one. False: a new one is
    /// needed.
    #[inline(always)]
    pub fn take(
        &mut self,
        io: &mut EventLoop,
        ends: &mut TransactionEnds,
        local: &Rc<LocalMember>,
        need: ConnectionNeed,
    ) -> bool {
        if need.wanted != ConnectionChoice::Any
            && let Some(has_one) = self.take_particular(io, ends, local, need)
        {
            return has_one;
        }
        if ends.tries.pool.settings().http2 {
            return self.take_multiplexed(io, ends, local, need, false);
        }
        self.take_idle(io, ends, local, need)
    }

    /// Takes a connection for a transaction that may not use any: whether there is one. `None`: it may use any after all.
    #[cold]
    #[inline(never)]
    fn take_particular(
        &mut self,
        io: &mut EventLoop,
        ends: &mut TransactionEnds,
        local: &Rc<LocalMember>,
        need: ConnectionNeed,
    ) -> Option<bool> {
        if need.is_fresh() {
            return Some(false);
        }
        let settings = ends.tries.pool.settings();
        if settings.reuse.binds {
            if settings.http2 && need.is_authenticating() {
                return Some(false);
            }
            if !settings.http2 && self.take_bound(io, ends, local) {
                return Some(true);
            }
        }
        None
    }

    /// Takes a connection that belongs to the client of the exchange. How long it has been idle does not
    /// matter: on another connection the client would have to log in again.
    fn take_bound(
        &mut self,
        io: &mut EventLoop,
        ends: &mut TransactionEnds,
        local: &Rc<LocalMember>,
    ) -> bool {
        let Some(client) = ends.caller.client() else { return false };
        loop {
            let Some(bound) = self.bound.get(&client.to_bits()) else {
                return false;
            };
            let is_of_member = |key: &&ConnectionKey| {
                let connection = self.all.get(**key);
                connection.is_some_and(|connection| Rc::ptr_eq(&connection.member, local))
            };
            let Some(key) = bound.keys().iter().rev().find(is_of_member).copied() else {
                return false;
            };
            let Some(connection) = self.all.get(key) else { return false };
            let (one, other) = (connection.pool.settings(), ends.tries.pool.settings());
            if io.sockets.has_news(connection.token) || !is_spoken_to_alike(one, other) {
                self.close(io, key);
                continue;
            }
            self.unbind(key);
            let Some(connection) = self.all.get_mut(key) else { return false };
            use_idle(io, connection, ends, key);
            ends.account.is_bound = true;
            return true;
        }
    }

    /// Takes the idle connection that was used last, if it suits the request.
    #[inline(always)]
    fn take_idle(
        &mut self,
        io: &mut EventLoop,
        ends: &mut TransactionEnds,
        local: &Rc<LocalMember>,
        need: ConnectionNeed,
    ) -> bool {
        let counters = &local.counters;
        let newest = local.idle.borrow().last().copied();
        let Some(key) = newest else { return false };
        let Some(connection) = self.all.get_mut(key) else {
            debug_assert!(false, "a connection that is closed is not kept");
            local.idle.borrow_mut().pop();
            counters.connections_idle.subtract(1);
            return false;
        };
        debug_assert_eq!(io.sockets.queued(connection.token), 0, "what is queued is of another");
        let idle_ms = io.now_ms() - connection.idle_since_ms;
        // Unread data cannot be the response to a request that was not sent yet.
        let has_news = io.sockets.has_news(connection.token);
        // A reload may have changed the TLS settings or the source address of the pool.
        let is_alike = Rc::ptr_eq(&connection.pool, &ends.tries.pool)
            || goes_over(connection, &ends.tries.pool);
        if !is_alike {
            self.close_idle(io, local);
        } else if has_news {
            self.close(io, key);
        } else if need.is_repeatable || idle_ms < UNREPEATABLE_REUSE_IDLE_MS {
            local.idle.borrow_mut().pop();
            counters.connections_idle.subtract(1);
            use_idle(io, connection, ends, key);
            return true;
        }
        false
    }

    /// Takes a stream on an existing connection to the member for an exchange. False: no connection has room. `is_again`: a
    /// shared connection has just failed, so only a connection that is still opening is used.
    pub fn take_multiplexed(
        &mut self,
        io: &mut EventLoop,
        ends: &mut TransactionEnds,
        local: &LocalMember,
        need: ConnectionNeed,
        is_again: bool,
    ) -> bool {
        let now_ms = io.now_ms();
        let settings = ends.tries.pool.settings();
        if need.is_authenticating() && settings.reuse.binds {
            return false;
        }
        let requests_max = settings.reuse.requests_max;
        let found = local.multiplexed.borrow().iter().copied().find(|&candidate| {
            let Some(connection) = self.all.get(candidate) else { return false };
            let other = connection.pool.settings();
            let is_alike = Rc::ptr_eq(&connection.pool, &ends.tries.pool)
                || (is_spoken_to_alike(other, settings) && other.http2 == settings.http2);
            let has_room = |http2: &MemberHttp2| http2.has_room(local) && http2.suits(need, now_ms);
            let has_room = connection.http2.as_deref().is_some_and(has_room);
            is_alike
                && has_room
                && connection.requests < requests_max
                && (connection.connecting || !is_again)
        });
        let Some(connection_key) = found else { return false };
        let Some(connection) = self.all.get_mut(connection_key) else { return false };
        connection.requests += 1;
        let is_open = !connection.connecting;
        let http2 = connection.http2.as_mut();
        if http2.is_some_and(|http2| std::mem::take(&mut http2.is_resting)) {
            local.counters.connections_idle.subtract(1);
        }
        if let Some(attempt) = ends.phase.attempt_mut() {
            (attempt.may_be_stale, attempt.sent_before) = (is_open, 0);
        }
        ends.account.times.connect(if is_open { io.clock().now_us() } else { 0 });
        self.join(ends, connection_key, need);
        true
    }

    /// Adds a stream for an exchange to this connection. The stream is opened later.
    pub fn join(
        &mut self,
        ends: &mut TransactionEnds,
        connection_key: ConnectionKey,
        need: ConnectionNeed,
    ) {
        let Some(connection) = self.all.get_mut(connection_key) else { return };
        let is_bound = connection.sharing.is_bound;
        if let Some(http2) = &mut connection.http2 {
            http2.is_tunnels = need.is_tunnel || is_bound;
            let stream = MemberStream::new(ends.key, need.is_whole);
            let stream = Some(http2.streams.insert(stream));
            if let Some(attempt) = ends.phase.attempt_mut() {
                attempt.link = Some(Link { connection: connection_key, stream });
            }
        }
    }
}

/// Uses a connection for an exchange that was idle before.
#[inline(always)]
fn use_idle(
    io: &mut EventLoop,
    connection: &mut MemberConnection,
    ends: &mut TransactionEnds,
    key: ConnectionKey,
) {
    connection.exchange = Some(ends.key);
    connection.requests += 1;
    if let Some(attempt) = ends.phase.attempt_mut() {
        attempt.link = Some(Link::to(key));
        attempt.may_be_stale = true;
        attempt.sent_before = io.sockets.end_rest(connection.token);
    }
    ends.account.times.connected_us = io.clock().now_us();
}
