//! Virtual servers of `type: udp`: listeners, and the assignment of datagrams to sessions.
//!
//! [`weir_exchange::session`] decides about sessions; [`session_edge`] executes the decisions.

mod idle_sockets;
mod listener_commands;
mod listeners;
mod session_edge;
mod session_resources;

use std::net::SocketAddr;
use std::rc::Rc;

use rustix::io::Errno;
use weir_core::datagram::{Flow, Train};
use weir_event_loop::{Datagrams, EventLoop};
use weir_exchange::arena::{ListenerKey, SessionKey};
use weir_exchange::session::{Session, Sessions, Source, Tools, admit};
use weir_exchange::shared::counters::WorkerCounters;
use weir_exchange::termination::Termination;

use crate::sessions::{SessionKind, SessionView};
use crate::worker::udp::idle_sockets::{IdleSockets, MemberSocket};
use crate::worker::udp::session_edge::WorkerSessionEdge;
use crate::worker::udp::session_resources::{SessionResources, report_descriptor_share};
use crate::worker::world::World;

/// The UDP sessions of a worker, and their resources.
#[derive(Default)]
pub struct Udp {
    sessions: Sessions<MemberSocket>,
    side: SessionResources,
}

impl Udp {
    /// Whether there are no sessions.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// The number of sessions.
    #[cfg(feature = "simulation")]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Handles datagrams that a client sent to a listener. Datagrams without a `flow` were sent to a multicast or broadcast
    /// address, and cannot be answered.
    pub fn client_sent(
        &mut self,
        io: &mut EventLoop,
        world: &mut World,
        listener: ListenerKey,
        flow: Option<Flow>,
        train: Train<'_>,
    ) {
        let Some(flow) = flow else { return self.refuse(listener, train) };
        let source = Source { listener, flow };
        let mut rest = Some(train);
        while let Some(train) = rest {
            let known = self.sessions.open_at(source);
            let Some(key) = known.or_else(|| self.begin(io, world, source, train.first())) else {
                return self.refuse(listener, train);
            };
            let before = train.count();
            rest =
                self.with(io, world, key, |session, at| session.client_sent(at, train)).flatten();
            // Each session accepts at least one datagram or ends, so the loop terminates.
            let is_stuck = rest.is_some_and(|rest| rest.count() >= before)
                && self.sessions.open_at(source) == Some(key);
            debug_assert!(!is_stuck, "it took none");
            if is_stuck {
                return;
            }
        }
    }

    /// Counts datagrams for which no session can be created.
    fn refuse(&self, listener: ListenerKey, train: Train<'_>) {
        if let Some(listener) = self.side.listeners.get(listener) {
            listener.server.counters.datagrams_refused.add(train.count() as u64);
        }
    }

    /// Creates a session; `None`: limits or a reload do not allow it.
    fn begin(
        &mut self,
        io: &mut EventLoop,
        world: &mut World,
        source: Source,
        first: &[u8],
    ) -> Option<SessionKey> {
        let listener = self.side.listeners.get(source.listener)?;
        if world.is_draining() || listener.leave_by_ms.is_some() || !self.sessions.has_room() {
            return None;
        }
        if !io.room.fits_session() && self.side.idle_sockets.is_empty() {
            report_descriptor_share(io, world);
            return None;
        }
        let (server, asked) = (Rc::clone(&listener.server), listener.asked(source.flow));
        let client = source.flow.client.ip().to_canonical();
        let places = admit(&server, world.id, client, io.clock()).ok()?;
        world.counted.connections.add(1);
        let key = self.sessions.next_key();
        let mut at = WorkerSessionEdge { io, world, side: &mut self.side };
        let session = Session::begin(&mut at, key, &server, (source, asked), places, first);
        let Some(session) = session else {
            // A reload has changed the type of the virtual server.
            server.live.connection_closed(world.id);
            return None;
        };
        self.side.listeners.session_began(source.listener);
        Some(self.sessions.insert(session))
    }

    /// Handles datagrams at the socket of a session. They come from its member, or from a third party that guessed the port
    /// before the socket was connected.
    pub fn member_sent(
        &mut self,
        io: &mut EventLoop,
        world: &mut World,
        key: SessionKey,
        from: SocketAddr,
        train: Train<'_>,
    ) {
        self.with(io, world, key, |session, at| {
            match session.socket.is_some_and(|socket| socket.is_of(from)) {
                true => session.member_sent(at, train),
                false => session.server.counters.datagrams_refused.add(train.count() as u64),
            }
        });
    }

    /// Handles the failure of a member.
    pub fn member_failed(
        &mut self,
        io: &mut EventLoop,
        world: &mut World,
        key: SessionKey,
        _error: Errno,
    ) {
        self.with(io, world, key, |session, at| session.member_failed(at));
    }

    /// Handles the idle timeout of a session.
    pub fn timed_out(&mut self, io: &mut EventLoop, world: &mut World, key: SessionKey) {
        self.with(io, world, key, |session, at| session.timed_out(at));
    }

    /// Calls a function with a session, if it still exists. If the session has ended afterwards, it is removed.
    fn with<R>(
        &mut self,
        io: &mut EventLoop,
        world: &mut World,
        key: SessionKey,
        act: impl FnOnce(&mut Session<MemberSocket>, &mut WorkerSessionEdge<'_>) -> R,
    ) -> Option<R> {
        let session = self.sessions.get_mut(key)?;
        let result = act(session, &mut WorkerSessionEdge { io, world, side: &mut self.side });
        if let Some(session) = self.sessions.settle(key) {
            session.server.live.connection_closed(world.id);
            self.side.listeners.session_ended(session.source.listener);
        }
        Some(result)
    }

    /// Handles the end of the turn. Returns the time of the next check.
    #[inline]
    pub fn turn_ended(&mut self, io: &mut EventLoop, world: &mut World) -> Option<u64> {
        if self.side.listeners.is_empty() {
            return None;
        }
        world.counted.datagrams_lost.add(Datagrams::of(io).take_lost());
        self.step(io, world)
    }

    /// Ends all sessions that satisfy a condition.
    fn end(
        &mut self,
        io: &mut EventLoop,
        world: &mut World,
        is_meant: impl Fn(&Session<MemberSocket>) -> bool,
    ) {
        for key in self.sessions.keys_of(is_meant) {
            self.with(io, world, key, |session, at| session.end(at, Termination::Stopped));
        }
    }

    /// The sessions of `count` slots, beginning with slot `from`, each with the number of the slot after it.
    pub fn part(
        &self,
        from: usize,
        count: usize,
        now_us: u64,
    ) -> impl Iterator<Item = (usize, SessionKey, SessionView<'_>)> {
        let part = self.sessions.part(from, count);
        part.map(move |(after, key, session)| (after, key, seen(session, now_us)))
    }

    /// The number of slots of sessions, including free ones.
    pub fn slots(&self) -> usize {
        self.sessions.slots()
    }

    /// Ends a session, if it still exists.
    pub fn end_one(
        &mut self,
        io: &mut EventLoop,
        world: &mut World,
        key: SessionKey,
        why: Termination,
    ) {
        self.with(io, world, key, |session, at| session.end(at, why));
    }

    /// Ends all sessions and closes the listeners.
    pub fn stop(&mut self, io: &mut EventLoop, world: &mut World) {
        self.end(io, world, |_| true);
        Datagrams::of(io).flush();
        self.side.idle_sockets.clear(io);
        self.side.listeners.close_all(io);
        self.note_sockets(io, world);
    }

    /// Records how many descriptors sessions use, and how many they may use.
    fn note_sockets(&self, io: &mut EventLoop, world: &World) {
        let (open, max) = io.room.session_sockets();
        let max = if self.side.listeners.is_empty() { 0 } else { max };
        let WorkerCounters { udp_sockets, udp_sockets_max, .. } = &*world.counted;
        for (gauge, value) in [(udp_sockets, open), (udp_sockets_max, max)] {
            gauge.add((value as u64).wrapping_sub(gauge.get()));
        }
    }

    /// Resets all sessions after a panic, because their state is unreliable. Their sockets are already closed; listeners
    /// continue.
    pub fn forget(&mut self, world: &World) {
        self.sessions.clear();
        self.side.tools = Tools::default();
        self.side.idle_sockets = IdleSockets::default();
        self.side.listeners.forget_sessions();
        self.side.listeners.refresh(world);
    }
}

/// A session as filters see it.
fn seen(session: &Session<MemberSocket>, now_us: u64) -> SessionView<'_> {
    let account = &session.account;
    SessionView {
        kind: SessionKind::Udp,
        virtual_server: &session.server.live.name,
        pool: &session.pool().live.name,
        member: account.member.as_ref().map(|member| &member.live),
        client: Some(session.source.flow.client),
        age_ms: now_us.saturating_sub(account.begun_us) / 1_000,
        bytes_received: account.bytes_received,
        bytes_sent: account.bytes_sent,
    }
}
