//! Connections to members for transactions: an idle connection, a stream of a shared connection, or a new connection.

use std::io::IoSlice;
use std::rc::Rc;

use rustix::io::Errno;
use weir_config::snapshot::{Pool, ProxyVersion};
use weir_connection::member::http2::MemberHttp2;
use weir_connection::member::streams::MemberStream;
use weir_event_loop::{EventLoop, Owner, Token};
use weir_exchange::arena::ConnectionKey;
use weir_exchange::local::member::LocalMember;
use weir_exchange::local::pool::LocalPool;
use weir_exchange::parts::attempt::Link;
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::request::ConnectionNeed;
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_http::proxy_protocol::{ProxiedConnection, ProxyHeader, Transport, write_v1, write_v2};

use crate::owners::owner_key;
use crate::worker::edge::WorkerEdge;
use crate::worker::member::connection::make_room;
use crate::worker::member::source::open_socket;
use crate::worker::member::tls::session;
use crate::worker::state::bound_connections::ConnectionSharing;
use crate::worker::state::member::MemberConnection;
use crate::worker::state::members::Members;

/// Maximum idle time of a connection that is reused for a request that cannot be repeated. The member may be about to close
/// a connection that has been idle for longer.
const UNREPEATABLE_REUSE_IDLE_MS: u64 = 1_000;

/// Whether a shared connection suits a request. A tunnel needs its own connection, because data that a tunnel's member does
/// not read could exhaust the shared window. For the same reason, a request with a body does not use a connection whose
/// window is exhausted.
fn suits(need: ConnectionNeed, http2: &MemberHttp2, now_ms: u64) -> bool {
    if need.is_tunnel {
        return http2.streams.is_empty() && http2.takes_body(now_ms);
    }
    !need.has_body || http2.takes_body(now_ms)
}

/// Whether requests of one pool can use connections of the other: TLS settings and source addresses are equal.
pub fn is_spoken_to_alike(one: &Pool, other: &Pool) -> bool {
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

fn open_for(
    edge: &mut WorkerEdge<'_>,
    ends: &TransactionEnds,
    member: &LocalMember,
    owner: Owner,
) -> Result<Token, Errno> {
    let client = edge.world.clients.all.find_mut(ends.caller.client());
    open_socket(edge.io, &ends.tries.pool, client, &member.live.address, owner)
}

/// Gets an idle or shared connection that any client may use, or a new one.
#[inline(always)]
pub fn take_usual(
    edge: &mut WorkerEdge<'_>,
    ends: &mut TransactionEnds,
    (member, local): (u32, &Rc<LocalMember>),
    need: ConnectionNeed,
) -> Result<(), MemberFailure> {
    let counters = &local.counters;
    if ends.tries.pool.settings().http2 {
        let has_one = edge.take_multiplexed(ends, local, need, false);
        return if has_one { Ok(()) } else { edge.open_connection(ends, member, need) };
    }
    let newest = local.idle.borrow().last().copied();
    if let Some(connection_key) = newest {
        let Some(connection) = edge.world.members.all.get_mut(connection_key) else {
            debug_assert!(false, "a connection that is closed is not kept");
            local.idle.borrow_mut().pop();
            counters.connections_idle.subtract(1);
            return edge.open_connection(ends, member, need);
        };
        debug_assert_eq!(
            edge.io.sockets.queued(connection.token),
            0,
            "what is queued is of another"
        );
        let idle_ms = edge.io.now_ms() - connection.idle_since_ms;
        // Unread data cannot be the response to a request that was not sent yet.
        let has_news = edge.io.sockets.has_news(connection.token);
        // A reload may have changed the TLS settings or the source address of the pool.
        let is_alike = Rc::ptr_eq(&connection.pool, &ends.tries.pool)
            || goes_over(connection, &ends.tries.pool);
        if !is_alike {
            edge.close_idle(local);
        } else if has_news {
            edge.close_member(connection_key);
        } else if need.is_repeatable || idle_ms < UNREPEATABLE_REUSE_IDLE_MS {
            local.idle.borrow_mut().pop();
            counters.connections_idle.subtract(1);
            use_idle(edge.io, connection, ends, connection_key);
            return Ok(());
        }
    }
    edge.open_connection(ends, member, need)
}

/// Uses a connection for an exchange that was idle before.
#[inline(always)]
pub fn use_idle(
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

fn open_or_make_room(
    edge: &mut WorkerEdge<'_>,
    ends: &TransactionEnds,
    member: &LocalMember,
    owner: Owner,
) -> Result<Token, MemberFailure> {
    let opened = match open_for(edge, ends, member, owner) {
        // Idle connections to other members may use the descriptors that members can have.
        Err(Errno::MFILE) if make_room(edge) => open_for(edge, ends, member, owner),
        opened => opened,
    };
    opened.map_err(|error| edge.no_connection(error))
}

impl WorkerEdge<'_> {
    /// Gets another connection to the member for an exchange whose reused connection was stale.
    pub fn reconnect(
        &mut self,
        ends: &mut TransactionEnds,
        member: u32,
        need: ConnectionNeed,
    ) -> Result<(), MemberFailure> {
        let local = Rc::clone(&ends.tries.pool.members[member as usize]);
        let is_http2 = ends.tries.pool.settings().http2;
        if is_http2 && self.take_multiplexed(ends, &local, need, true) {
            return Ok(());
        }
        self.open_connection(ends, member, need)
    }

    /// Opens a connection to the member for an exchange.
    pub fn open_connection(
        &mut self,
        ends: &mut TransactionEnds,
        member: u32,
        need: ConnectionNeed,
    ) -> Result<(), MemberFailure> {
        let pool = Rc::clone(&ends.tries.pool);
        let local = Rc::clone(&pool.members[member as usize]);
        let settings = pool.settings();
        let mut preface = Vec::new();
        if let Some(version) = settings.proxy_protocol {
            self.write_preface(ends, version, &mut preface);
        }
        let by_ms = self.io.now_ms() + settings.connect_timeout_ms;
        let is_multiplexed = settings.http2 && !need.is_fresh();
        let http2 = is_multiplexed.then(|| Box::new(MemberHttp2::new(by_ms)));
        let owner = Owner::Member(owner_key(self.world.members.all.next_key()));
        let token = open_or_make_room(self, ends, &local, owner)?;
        self.io.set_deadline(token, by_ms);
        if !preface.is_empty() {
            self.io.send(token, &[IoSlice::new(&preface)]);
        }
        if let Some(tls) = &settings.tls {
            match session(tls, &settings.members[member as usize], is_multiplexed) {
                Ok(session) => self.io.sockets.secure(token, session, b""),
                Err(error) => {
                    self.io.close(token);
                    let now_ms = self.io.now_ms();
                    self.world.notices.tell_of_member_tls(&local, &error, now_ms);
                    return Err(MemberFailure::Connect);
                }
            }
            // With TLS, `take_queued` returns the data that waits for the handshake. This data does not contain the PROXY
            // header.
            preface.clear();
        }
        let counters = &local.counters;
        counters.connections_opened.add(1);
        counters.connections_open.add(1);
        let connections_max = settings.members[member as usize].connections_max;
        let is_bound = need.is_authenticating() && settings.reuse.binds;
        ends.account.is_bound = is_bound;
        let connection_key = self.world.members.all.insert(MemberConnection {
            connections_max,
            exchange: (!is_multiplexed).then_some(ends.key),
            http2,
            preface_bytes: preface.len(),
            sharing: ConnectionSharing {
                is_of_one_client: is_bound
                    || settings.proxy_protocol.is_some()
                    || settings.source.is_client(),
                is_bound,
                bound_to: None,
            },
            ..MemberConnection::opening(token, &local, &pool)
        });
        if let Some(attempt) = ends.phase.attempt_mut() {
            attempt.link = Some(Link::to(connection_key));
            (attempt.may_be_stale, attempt.sent_before) = (false, 0);
        }
        ends.account.times.connect(0);
        if is_multiplexed {
            local.multiplexed.borrow_mut().push(connection_key);
            self.world.members.join(ends, connection_key, need);
        }
        Ok(())
    }

    /// Writes the PROXY header for the client of the exchange.
    fn write_preface(&mut self, ends: &TransactionEnds, version: ProxyVersion, out: &mut Vec<u8>) {
        let named = self.world.clients.all.find_mut(ends.caller.client()).and_then(|client| {
            client.destination.learn(self.io, client.token);
            client.address().zip(client.destination.address())
        });
        let header = match named {
            Some((source, destination)) => ProxyHeader::Proxied(ProxiedConnection {
                transport: Transport::Stream,
                source,
                destination,
                authority: None,
                unique_id: None,
            }),
            // A client on a unix socket has no address.
            _ => ProxyHeader::Unknown,
        };
        match version {
            ProxyVersion::V1 => write_v1(&header, out),
            ProxyVersion::V2 => {
                let written = write_v2(&header, false, out);
                debug_assert!(written.is_ok(), "there is nothing in it that could be too long");
            }
        }
    }

    /// Gets a stream on an existing connection to the member for an exchange. False: no connection has room. `is_again`: a
    /// shared connection has just failed, so only a connection that is still opening is used.
    pub fn take_multiplexed(
        &mut self,
        ends: &mut TransactionEnds,
        local: &LocalMember,
        need: ConnectionNeed,
        is_again: bool,
    ) -> bool {
        let now_ms = self.io.now_ms();
        let settings = ends.tries.pool.settings();
        if need.is_authenticating() && settings.reuse.binds {
            return false;
        }
        let requests_max = settings.reuse.requests_max;
        let found = local.multiplexed.borrow().iter().copied().find(|&candidate| {
            let Some(connection) = self.world.members.all.get(candidate) else { return false };
            let other = connection.pool.settings();
            let is_alike = Rc::ptr_eq(&connection.pool, &ends.tries.pool)
                || (is_spoken_to_alike(other, settings) && other.http2 == settings.http2);
            let has_room =
                |http2: &MemberHttp2| http2.has_room(local) && suits(need, http2, now_ms);
            let has_room = connection.http2.as_deref().is_some_and(has_room);
            is_alike
                && has_room
                && connection.requests < requests_max
                && (connection.connecting || !is_again)
        });
        let Some(connection_key) = found else { return false };
        let Some(connection) = self.world.members.all.get_mut(connection_key) else { return false };
        connection.requests += 1;
        let is_open = !connection.connecting;
        let http2 = connection.http2.as_mut();
        if http2.is_some_and(|http2| std::mem::take(&mut http2.is_resting)) {
            local.counters.connections_idle.subtract(1);
        }
        if let Some(attempt) = ends.phase.attempt_mut() {
            (attempt.may_be_stale, attempt.sent_before) = (is_open, 0);
        }
        ends.account.times.connect(if is_open { self.io.clock().now_us() } else { 0 });
        self.world.members.join(ends, connection_key, need);
        true
    }
}

impl Members {
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
