//! The implementation of the interface between sessions and sockets.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use rustix::io::Errno;
use weir_config::snapshot::Sessions;
use weir_core::datagram::Train;
use weir_event_loop::{Datagrams, EventLoop, Owner};
use weir_exchange::arena::{ListenerKey, SessionKey};
use weir_exchange::edge::Turn;
use weir_exchange::local::pool::LocalPool;
use weir_exchange::local::surroundings::Sources;
use weir_exchange::local::table::LocalServer;
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::notice::Notice;
use weir_exchange::session::edge::SessionEdge;
use weir_exchange::session::{Account, Session, Source, Tools};
use weir_exchange::termination::Termination;
use weir_http::proxy_protocol::{ProxiedConnection, ProxyHeader, Transport, write_v2};
use weir_telemetry::access_log::{Entry, PolicyFields, RequestId};
use weir_telemetry::records::recorder::FinishedTransaction;

use crate::owners::owner_key;
use crate::worker::member::source::connect_from;
use crate::worker::transaction_end::write_down;
use crate::worker::udp::idle_sockets::MemberSocket;
use crate::worker::udp::session_resources::{SessionResources, report_descriptor_share};
use crate::worker::world::World;

/// The sockets and other state that operations of a session change.
pub struct WorkerSessionEdge<'a> {
    pub io: &'a mut EventLoop,
    pub world: &'a mut World,
    pub(super) side: &'a mut SessionResources,
}

impl WorkerSessionEdge<'_> {
    /// The failure to report if no socket to a member can be opened: of the member, or of this host.
    fn no_socket(&mut self, error: Errno) -> MemberFailure {
        match error {
            Errno::MFILE if !self.io.room.fits_session() => {
                report_descriptor_share(self.io, self.world);
                MemberFailure::NoSocket
            }
            Errno::MFILE
            | Errno::NFILE
            | Errno::NOBUFS
            | Errno::NOMEM
            | Errno::ADDRNOTAVAIL
            | Errno::AGAIN => {
                self.world.notices.tell_of_socket(self.io.now_ms(), &error.to_string());
                MemberFailure::NoSocket
            }
            _ => MemberFailure::Connect,
        }
    }

    /// Closes idle connections to members, if descriptors in general are short, and not only those of sessions.
    fn make_room(&mut self) -> bool {
        let Self { io, world, .. } = self;
        io.room.fits_session() && world.members.make_room(io, &world.table)
    }

    /// The PROXY header for the client of a session.
    fn proxy_header(&self, source: Source) -> Vec<u8> {
        let asked = self.side.listeners.get(source.listener).and_then(|it| it.asked(source.flow));
        let header = match asked {
            Some(destination) => ProxyHeader::Proxied(ProxiedConnection {
                transport: Transport::Datagram,
                source: source.flow.client,
                destination,
                authority: None,
                unique_id: None,
            }),
            None => ProxyHeader::Unknown,
        };
        let mut out = Vec::new();
        let written = write_v2(&header, false, &mut out);
        debug_assert!(written.is_ok(), "there is nothing in it that could be too long");
        out
    }
}

impl SessionEdge for WorkerSessionEdge<'_> {
    type Socket = MemberSocket;

    fn open(
        &mut self,
        session: SessionKey,
        (source, settings): (&Source, &Sessions),
        pool: &Rc<LocalPool>,
        member: u32,
    ) -> Result<MemberSocket, MemberFailure> {
        let owner = Owner::Session(owner_key(session));
        if settings.per_socket_max > 1
            && let Some(socket) = self.side.idle_sockets.take(self.io, pool, member, owner)
        {
            return Ok(socket);
        }
        let address = pool.members[member as usize].live.address.socket();
        let mut to: SocketAddr = address.ok_or(MemberFailure::Connect)?;
        if to.port() == 0 {
            // The datagrams keep the destination port that the client used.
            let listener = self.side.listeners.get(source.listener);
            let asked = listener.and_then(|it| it.asked(source.flow));
            to.set_port(asked.ok_or(MemberFailure::Connect)?.port());
        }
        if to.ip().is_unspecified() {
            // An unspecified address means this host. Loopback is used, because answers come from exactly the address that
            // datagrams were sent to.
            to.set_ip(match to {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        let client = Some(source.flow.client.ip());
        let connect = |io: &mut EventLoop| {
            connect_from(pool, client, to, |own| Datagrams::of(io).connect(to, own, owner))
        };
        let opened = match connect(self.io) {
            Err(Errno::MFILE) if self.make_room() => connect(self.io),
            opened => opened,
        };
        opened.map(|token| MemberSocket::new(token, to)).map_err(|error| self.no_socket(error))
    }

    fn put_back(
        &mut self,
        socket: MemberSocket,
        settings: &Sessions,
        pool: &Rc<LocalPool>,
        member: u32,
    ) {
        self.side.idle_sockets.put(self.io, socket, settings.per_socket_max, pool, member);
    }

    fn to_member(&mut self, socket: MemberSocket, train: Train<'_>) -> Result<(), MemberFailure> {
        Datagrams::of(self.io).send(socket.token, train).map_err(|_| MemberFailure::Connect)
    }

    fn introduce(
        &mut self,
        session: &Session<MemberSocket>,
        train: Train<'_>,
    ) -> Result<(), MemberFailure> {
        let Some(socket) = session.socket else { return Err(MemberFailure::Connect) };
        let (first, rest) = train.split(1);
        let mut bytes = self.proxy_header(session.source);
        bytes.extend_from_slice(first.map_or(&b""[..], |first| first.first()));
        self.to_member(socket, Train::one(&bytes))?;
        rest.map_or(Ok(()), |rest| self.to_member(socket, rest))
    }

    fn to_client(&mut self, source: Source, train: Train<'_>) {
        if let Some(listener) = self.side.listeners.get(source.listener) {
            Datagrams::of(self.io).answer(listener.token, source.flow, train);
        }
    }

    fn due(&mut self, socket: MemberSocket, at_ms: u64) {
        self.io.set_deadline(socket.token, at_ms);
    }

    fn close(&mut self, socket: MemberSocket) {
        self.io.close(socket.token);
    }

    fn finish(&mut self, session: &Session<MemberSocket>, why: Termination) {
        let logged = self.world.recorder.logged;
        if logged.is_nothing() {
            return;
        }
        let Account { begun_us, tried_us, answered_us, ref member, .. } = session.account;
        let account = &session.account;
        let clock = self.io.clock();
        let span = |from: u64, to: u64| if from == 0 { 0 } else { to.saturating_sub(from) };
        let mut about = Vec::new();
        let datagrams = (account.datagrams_received, account.datagrams_sent);
        self.world.log.session_part(datagrams, &mut about);
        let total_us = clock.now_us().saturating_sub(begun_us);
        let entry = Entry {
            format: logged.format(),
            request_id: RequestId::OfLog,
            request: &about,
            client: Some(session.source.flow.client),
            peer: Some(session.source.flow.client),
            tls: Ok(None),
            server: &session.server.live.name,
            pool: Some(&session.pool().live.name),
            member: member.as_ref().map(|member| &*member.live.label),
            status: 0,
            bytes_received: account.bytes_received,
            bytes_sent: account.bytes_sent,
            head_bytes_sent: 0,
            retries: account.retries,
            queue_us: if tried_us == 0 { total_us } else { tried_us.saturating_sub(begun_us) },
            connect_us: 0,
            first_byte_us: if answered_us == 0 { 0 } else { span(tried_us, answered_us) },
            total_us,
            decided: PolicyFields { persistence: account.kept, ..PolicyFields::default() },
            termination: why,
        };
        let World { log, recorder, counted, .. } = &mut *self.world;
        write_down(
            (log, recorder),
            entry,
            (FinishedTransaction::NoRequest, logged),
            (clock, counted),
        );
    }

    fn tell(&mut self, notice: Notice<'_>) {
        self.world.notices.tell(notice, self.io.now_ms());
    }

    fn server_in_force(&self, listener: ListenerKey) -> Option<&Rc<LocalServer>> {
        let listener = self.side.listeners.get(listener).filter(|it| it.leave_by_ms.is_none());
        listener.filter(|_| !self.world.is_draining()).map(|listener| &listener.server)
    }

    fn turn(&self) -> Turn {
        let is_draining = self.world.is_draining();
        Turn { worker: self.world.id, clock: self.io.clock(), is_draining }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.side.tools
    }

    fn sources(&self) -> Sources {
        self.world.tools.sources
    }
}
