//! A connection to a member for a transaction: a kept one, a stream of one that others use, too, or a new one.

use std::io::IoSlice;
use std::rc::Rc;

use weir_config::snapshot::{Address, ProxyVersion};
use weir_event_loop::Owner;
use weir_http::h1::{BodyDecoder, HeadScan};
use weir_http::message::Framing;
use weir_http::proxy_protocol::{Proxied, ProxyHeader, Transport, write_v1, write_v2};

use crate::arena::ConnectionKey;
use crate::endpoint::endpoint;
use crate::pool::LocalMember;
use crate::worker::client::connection::Client;
use crate::worker::member::connection::MemberConnection;
use crate::worker::member::http2::MemberHttp2;
use crate::worker::member::tls::session;
use crate::worker::streams::MemberStream;
use crate::worker::transaction::ends::Ends;
use crate::worker::transaction::exchange::MemberFailure;
use crate::worker::transaction::seeking::Need;
use crate::worker::world::Desk;

/// A request that cannot be repeated goes on a kept connection only if that was used this recently:
/// the member may be about to close an older one.
const UNREPEATABLE_REUSE_IDLE_MS: u64 = 1_000;

impl Need {
    /// Whether a connection suits it. A tunnel has one for itself: what its member does not take may use up the
    /// window of all. For the same reason no further body goes to where nobody knows when that opens again.
    fn suits(self, http2: &MemberHttp2, now_ms: u64) -> bool {
        if self.is_tunnel {
            return http2.streams.is_empty() && http2.takes_body(now_ms);
        }
        !self.has_body || http2.takes_body(now_ms)
    }
}

impl Ends {
    /// Gives an exchange a connection to the member: a kept one, or a new one.
    pub fn take_connection(
        &mut self,
        at: &mut Desk<'_>,
        member: u32,
        need: Need,
    ) -> Result<(), MemberFailure> {
        let local = Rc::clone(&self.tries.pool.members[member as usize]);
        let counters = local.live.counters.of(at.world.id);
        counters.requests.add(1);
        if need.is_fresh {
            return self.open_connection(at, member, need);
        }
        if self.tries.pool.settings().http2 {
            let has_one = self.take_multiplexed(at, &local, need, false);
            return if has_one { Ok(()) } else { self.open_connection(at, member, need) };
        }
        let newest = local.idle.borrow().last().copied();
        if let Some(connection_key) = newest {
            let Some(connection) = at.world.members.get_mut(connection_key) else {
                return Err(MemberFailure::Abort);
            };
            let idle_ms = at.io.now_ms() - connection.idle_since_ms;
            // What is there to read is no answer to a request that is yet to be sent.
            let has_unread = at.io.has_unread(connection.token);
            // A reload may have changed how members are spoken to.
            let is_alike = Rc::ptr_eq(&connection.pool, &self.tries.pool)
                || connection.pool.settings().tls == self.tries.pool.settings().tls;
            if !is_alike {
                at.close_idle(&local);
            } else if has_unread {
                at.close_member(connection_key);
            } else if need.is_repeatable || idle_ms < UNREPEATABLE_REUSE_IDLE_MS {
                local.idle.borrow_mut().pop();
                counters.connections_idle.subtract(1);
                connection.exchange = Some(self.key);
                connection.requests += 1;
                self.attempt.connection = Some(connection_key);
                self.attempt.is_reused = true;
                self.attempt.sent_before = at.io.note_all_taken(connection.token);
                self.attempt.connected_us = at.io.clock().now_us();
                at.io.clear_deadline(connection.token);
                return Ok(());
            }
        }
        self.open_connection(at, member, need)
    }

    /// Takes another connection to a member that it occupies already, since the kept one has gone stale.
    pub fn reconnect(
        &mut self,
        at: &mut Desk<'_>,
        member: u32,
        need: Need,
    ) -> Result<(), MemberFailure> {
        let local = Rc::clone(&self.tries.pool.members[member as usize]);
        let is_http2 = self.tries.pool.settings().http2;
        if is_http2 && self.take_multiplexed(at, &local, need, true) {
            return Ok(());
        }
        self.open_connection(at, member, need)
    }

    /// Opens a connection to the member for an exchange.
    pub fn open_connection(
        &mut self,
        at: &mut Desk<'_>,
        member: u32,
        need: Need,
    ) -> Result<(), MemberFailure> {
        let pool = Rc::clone(&self.tries.pool);
        let local = Rc::clone(&pool.members[member as usize]);
        let settings = pool.settings();
        let mut preface = Vec::new();
        if let Some(version) = settings.proxy_protocol {
            self.write_preface(at, version, &mut preface);
        }
        let by_ms = at.io.now_ms() + settings.connect_timeout_ms;
        let is_multiplexed = settings.http2 && !need.is_fresh;
        let http2 = is_multiplexed.then(|| Box::new(MemberHttp2::new(by_ms)));
        let owner = Owner::Member(at.world.members.next_key().into());
        let token = at
            .io
            .connect(endpoint(&local.live.address), settings.source, owner)
            .map_err(|error| at.no_connection(error))?;
        at.io.set_deadline(token, by_ms);
        if !preface.is_empty() {
            at.io.send(token, &[IoSlice::new(&preface)]);
        }
        if let Some(tls) = &settings.tls {
            match session(tls, &settings.members[member as usize]) {
                Ok(session) => at.io.secure(token, session, b""),
                Err(error) => {
                    at.io.close(token);
                    at.report_insecure_member(&local, &error);
                    return Err(MemberFailure::Connect);
                }
            }
            // What waits for the handshake is taken back without it.
            preface.clear();
        }
        let counters = local.live.counters.of(at.world.id);
        counters.connections_opened.add(1);
        counters.connections_open.add(1);
        let connections_max = settings.members[member as usize].connections_max;
        let connection_key = at.world.members.insert(MemberConnection {
            token,
            member: Rc::clone(&local),
            pool: Rc::clone(&pool),
            connections_max,
            exchange: (!is_multiplexed).then_some(self.key),
            connecting: true,
            http2,
            input: Vec::new(),
            scan: HeadScan::section(),
            whole_bytes: 0,
            body: BodyDecoder::new(Framing::None, None),
            preface_bytes: preface.len(),
            is_of_one_client: settings.proxy_protocol.is_some(),
            keep: false,
            keep_ms: None,
            requests: 1,
            counted_bytes: 0,
            idle_since_ms: 0,
        });
        self.attempt.connection = Some(connection_key);
        self.attempt.is_reused = false;
        self.attempt.sent_before = 0;
        self.attempt.connected_us = 0;
        self.attempt.asked_us = 0;
        if is_multiplexed {
            local.multiplexed.borrow_mut().push(connection_key);
            self.join_connection(at, connection_key, need);
        }
        Ok(())
    }

    /// Tells a member whose connection follows, by the PROXY protocol.
    fn write_preface(&self, at: &mut Desk<'_>, version: ProxyVersion, out: &mut Vec<u8>) {
        let client = at.world.clients.get(self.client);
        let source = client.and_then(Client::address);
        let destination = client.and_then(|client| match client.listen() {
            Address::Socket(address) => Some(*address),
            Address::Unix(_) => None,
        });
        let header = match (source, destination) {
            (Some(source), Some(destination)) => ProxyHeader::Proxied(Proxied {
                transport: Transport::Stream,
                source,
                destination,
                authority: None,
                unique_id: None,
            }),
            // A client of a unix socket has no address.
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

    /// Gives an exchange a stream on a connection to the member that is there. False: none has room.
    /// `is_again`: such a connection has just failed it, and one that is not open yet is looked for.
    pub fn take_multiplexed(
        &mut self,
        at: &mut Desk<'_>,
        local: &LocalMember,
        need: Need,
        is_again: bool,
    ) -> bool {
        let now_ms = at.io.now_ms();
        let settings = self.tries.pool.settings();
        let requests_max = settings.reuse.requests_max;
        let found = local.multiplexed.borrow().iter().copied().find(|&candidate| {
            let Some(connection) = at.world.members.get(candidate) else { return false };
            let other = connection.pool.settings();
            let is_alike = Rc::ptr_eq(&connection.pool, &self.tries.pool)
                || (other.tls == settings.tls && other.http2 == settings.http2);
            let has_room = |http2: &MemberHttp2| http2.has_room(local) && need.suits(http2, now_ms);
            let has_room = connection.http2.as_deref().is_some_and(has_room);
            is_alike
                && has_room
                && connection.requests < requests_max
                && (connection.connecting || !is_again)
        });
        let Some(connection_key) = found else { return false };
        let Some(connection) = at.world.members.get_mut(connection_key) else { return false };
        connection.requests += 1;
        let is_open = !connection.connecting;
        let http2 = connection.http2.as_mut();
        if http2.is_some_and(|http2| std::mem::take(&mut http2.is_resting)) {
            local.live.counters.of(at.world.id).connections_idle.subtract(1);
        }
        self.attempt.is_reused = is_open;
        self.attempt.sent_before = 0;
        self.attempt.connected_us = if is_open { at.io.clock().now_us() } else { 0 };
        self.attempt.asked_us = 0;
        self.join_connection(at, connection_key, need);
        true
    }

    /// An exchange will have a stream on this connection.
    pub fn join_connection(
        &mut self,
        at: &mut Desk<'_>,
        connection_key: ConnectionKey,
        need: Need,
    ) {
        if let Some(http2) =
            at.world.members.get_mut(connection_key).and_then(|it| it.http2.as_mut())
        {
            http2.is_tunnels = need.is_tunnel;
            self.attempt.connection = Some(connection_key);
            let stream = MemberStream::new(self.key, need.is_whole);
            self.attempt.member_stream = Some(http2.streams.insert(stream));
        }
    }
}
