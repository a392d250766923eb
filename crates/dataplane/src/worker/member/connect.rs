//! New connections to members.

use std::io::IoSlice;
use std::rc::Rc;

use rustix::io::Errno;
use weir_config::snapshot::ProxyVersion;
use weir_connection::member::http2::MemberHttp2;
use weir_event_loop::{EventLoop, Owner, Token};
use weir_exchange::arena::ConnectionKey;
use weir_exchange::local::member::LocalMember;
use weir_exchange::local::table::LocalTable;
use weir_exchange::parts::attempt::Link;
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::request::ConnectionNeed;
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_http::proxy_protocol::{ProxiedConnection, ProxyHeader, Transport, write_v1, write_v2};

use crate::owners::owner_key;
use crate::worker::edge::WorkerEdge;
use crate::worker::member::source::open_socket;
use crate::worker::member::tls::session;
use crate::worker::notices::Notices;
use crate::worker::state::bound_connections::ConnectionSharing;
use crate::worker::state::client::Client;
use crate::worker::state::member::MemberConnection;
use crate::worker::state::members::Members;
use crate::worker::world::World;

/// Errors that say something about this host, and nothing about the member.
const OURS: [Errno; 8] = [
    Errno::MFILE,
    Errno::NFILE,
    Errno::NOBUFS,
    Errno::NOMEM,
    Errno::ADDRNOTAVAIL,
    Errno::ACCESS,
    Errno::PERM,
    Errno::AFNOSUPPORT,
];

/// What opening a connection takes, beside the connections that are there.
pub struct OpeningContext<'a> {
    /// The client, whose address the member may be told.
    client: Option<&'a mut Client>,
    /// The members whose idle connections use descriptors.
    table: &'a LocalTable,
    notices: &'a mut Notices,
}

impl OpeningContext<'_> {
    /// The failure to report if a socket cannot be opened: of the member, or of this host.
    fn failure(&mut self, now_ms: u64, error: Errno) -> MemberFailure {
        if error == Errno::AGAIN {
            return MemberFailure::Busy;
        }
        if !OURS.contains(&error) {
            return MemberFailure::Connect;
        }
        self.notices.tell_of_socket(now_ms, &format!("connection to a member: {error}"));
        MemberFailure::NoSocket
    }

    /// Writes the PROXY header for the client.
    fn write_preface(&mut self, io: &mut EventLoop, version: ProxyVersion, out: &mut Vec<u8>) {
        let named = self.client.as_deref_mut().and_then(|client| {
            client.destination.learn(io, client.token);
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
}

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
        if !self.world.members.take(self.io, ends, &local, need) {
            self.open_connection(ends, member, need)?;
        }
        if need.is_authenticating() {
            let end = self.world.members.end_of(ends);
            ends.account.is_bound = end.is_some_and(|end| end.connection.bind());
        }
        Ok(())
    }

    /// Gets another connection to the member for an exchange whose reused connection was stale.
    pub fn reconnect(
        &mut self,
        ends: &mut TransactionEnds,
        member: u32,
        need: ConnectionNeed,
    ) -> Result<(), MemberFailure> {
        let local = Rc::clone(&ends.tries.pool.members[member as usize]);
        let is_http2 = ends.tries.pool.settings().http2;
        if is_http2 && self.world.members.take_multiplexed(self.io, ends, &local, need, true) {
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
        let World { members, clients, table, notices, .. } = &mut *self.world;
        let client = clients.all.find_mut(ends.caller.client());
        members.open((self.io, OpeningContext { client, table, notices }), ends, member, need)
    }
}

impl Members {
    /// Opens a connection to the member for an exchange.
    pub fn open(
        &mut self,
        (io, mut opening): (&mut EventLoop, OpeningContext<'_>),
        ends: &mut TransactionEnds,
        member: u32,
        need: ConnectionNeed,
    ) -> Result<(), MemberFailure> {
        let pool = Rc::clone(&ends.tries.pool);
        let local = Rc::clone(&pool.members[member as usize]);
        let settings = pool.settings();
        let mut preface = Vec::new();
        if let Some(version) = settings.proxy_protocol {
            opening.write_preface(io, version, &mut preface);
        }
        let by_ms = io.now_ms() + settings.connect_timeout_ms;
        let is_multiplexed = settings.http2 && !need.is_fresh();
        let http2 = is_multiplexed.then(|| Box::new(MemberHttp2::new(by_ms)));
        let (token, key) = self.open_socket((io, &mut opening), ends, &local)?;
        io.set_deadline(token, by_ms);
        if !preface.is_empty() {
            io.send(token, &[IoSlice::new(&preface)]);
        }
        if let Some(tls) = &settings.tls {
            match session(tls, &settings.members[member as usize], is_multiplexed) {
                Ok(session) => io.sockets.secure(token, session, b""),
                Err(error) => {
                    io.close(token);
                    opening.notices.tell_of_member_tls(&local, &error, io.now_ms());
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
        let connection_key = self.all.insert(MemberConnection {
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
        debug_assert_eq!(connection_key, key, "the socket names its connection");
        if let Some(attempt) = ends.phase.attempt_mut() {
            attempt.link = Some(Link::to(connection_key));
            (attempt.may_be_stale, attempt.sent_before) = (false, 0);
        }
        ends.account.times.connect(0);
        if is_multiplexed {
            local.multiplexed.borrow_mut().push(connection_key);
            self.join(ends, connection_key, need);
        }
        Ok(())
    }

    /// Opens a socket that names the connection with the returned key: the next one, which the caller must add at once. If
    /// descriptors are short, idle connections to other members, which may use them, are closed.
    fn open_socket(
        &mut self,
        (io, opening): (&mut EventLoop, &mut OpeningContext<'_>),
        ends: &TransactionEnds,
        member: &LocalMember,
    ) -> Result<(Token, ConnectionKey), MemberFailure> {
        let (pool, address) = (&ends.tries.pool, &member.live.address);
        let mut open = |io: &mut EventLoop, key: ConnectionKey| {
            let owner = Owner::Member(owner_key(key));
            let opened = open_socket(io, pool, opening.client.as_deref_mut(), address, owner);
            opened.map(|token| (token, key))
        };
        let mut opened = open(io, self.all.next_key());
        if opened == Err(Errno::MFILE) && self.make_room(io, opening.table) {
            // The places of the connections that were closed come next.
            opened = open(io, self.all.next_key());
        }
        opened.map_err(|error| opening.failure(io.now_ms(), error))
    }
}
