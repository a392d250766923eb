//! UDP listeners. Answers to clients are sent through them, so a listener that a reload removes stays open until its last
//! session ends, or until `drain_timeout` is over.

use std::net::SocketAddr;
use std::rc::Rc;

use rustix::io::Errno;
use weir_config::snapshot::ListenPoint;
use weir_core::datagram::Flow;
use weir_event_loop::{Datagrams, Descriptor, EventLoop, Owner, Token};
use weir_exchange::arena::{Arena, ListenerKey, OfListener};
use weir_exchange::local::table::LocalServer;

use crate::owners::owner_key;
use crate::worker::world::World;

/// A UDP listener.
pub struct Listener {
    pub token: Token,
    pub address: ListenPoint,
    pub server: Rc<LocalServer>,
    /// The deadline of the last sessions, if the listener accepts no more sessions; otherwise `None`.
    pub leave_by_ms: Option<u64>,
    /// The number of sessions of this worker on the listener.
    pub(super) sessions: usize,
}

impl Listener {
    /// The address that the client sent the datagram to.
    pub fn asked(&self, flow: Flow) -> Option<SocketAddr> {
        let listen = self.address.address.socket()?;
        Some(flow.local.map_or(listen, |ip| SocketAddr::new(ip, listen.port())))
    }
}

/// The UDP listeners of a worker.
#[derive(Default)]
pub struct Listeners {
    pub(super) all: Arena<OfListener, Listener>,
    /// Listeners that accept no more sessions, with their deadlines. Usually empty.
    pub(super) leaving: Vec<(ListenerKey, u64)>,
    /// Addresses whose listeners this worker has closed, with deadlines. Before the deadline, other workers may have
    /// sessions there, so duplicates of this worker's sockets are open, but nothing reads them.
    pub(super) closed: Vec<(ListenPoint, u64)>,
    /// The listeners of the latest table. An address may have several sockets on one worker.
    pub(super) fresh: Vec<ListenerKey>,
}

/// Maximum time that the duplicates of a closed listener exist after the deadline of the sessions.
const UNREAD_MS_MAX: u64 = 5_000;

impl Listeners {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn get(&self, key: ListenerKey) -> Option<&Listener> {
        self.all.get(key)
    }

    /// Counts a new session.
    pub fn session_began(&mut self, key: ListenerKey) {
        if let Some(listener) = self.all.get_mut(key) {
            listener.sessions += 1;
        }
    }

    /// Counts an ended session.
    pub fn session_ended(&mut self, key: ListenerKey) {
        if let Some(listener) = self.all.get_mut(key) {
            listener.sessions = listener.sessions.saturating_sub(1);
        }
    }

    /// Resets the numbers of sessions after a panic, because all sessions are lost.
    pub fn forget_sessions(&mut self) {
        self.all.values_mut().for_each(|listener| listener.sessions = 0);
    }

    /// Adds a listener, if its address has a virtual server. If a removed listener of the address still has sessions, it
    /// continues with the new socket.
    pub fn add(
        &mut self,
        io: &mut EventLoop,
        world: &World,
        socket: Descriptor,
        address: ListenPoint,
    ) -> Result<(), Errno> {
        let Some(server) = world.table.server_at(&address) else { return Ok(()) };
        let is_known = |key: &ListenerKey, listener: &Listener| {
            listener.address == address && !self.fresh.contains(key)
        };
        let known = self.all.iter().find(|(key, listener)| is_known(key, listener));
        let known = known.map(|(key, _)| key);
        self.fresh.push(known.unwrap_or(self.all.next_key()));
        let owner = Owner::DatagramListener(owner_key(known.unwrap_or(self.all.next_key())));
        let token = Datagrams::of(io).listen(socket, owner)?;
        if let Some(listener) = known.and_then(|key| self.all.get_mut(key)) {
            Datagrams::of(io).flush();
            io.close(std::mem::replace(&mut listener.token, token));
            listener.leave_by_ms = None;
            self.note_leaving();
            return Ok(());
        }
        let is_closed = self.closed.extract_if(.., |(closed, _)| *closed == address).count() > 0;
        if is_closed {
            // Unread datagrams are dropped, because their clients have stopped waiting for an answer.
            server.counters.datagrams_refused.add(Datagrams::of(io).reopen(token));
        }
        let server = Rc::clone(server);
        self.all.insert(Listener { token, address, server, leave_by_ms: None, sessions: 0 });
        Ok(())
    }

    /// Assigns the virtual servers of the active table to the listeners.
    pub fn refresh(&mut self, world: &World) {
        for listener in self.all.values_mut() {
            if let Some(server) = world.table.server_at(&listener.address) {
                listener.server = Rc::clone(server);
                listener.leave_by_ms = None;
            }
        }
        self.note_leaving();
    }

    fn note_leaving(&mut self) {
        let leaving = self.all.iter().map(|(key, it)| it.leave_by_ms.map(|at_ms| (key, at_ms)));
        self.leaving = leaving.flatten().collect();
    }

    /// Marks the listeners at these addresses as removed, so that they accept no more sessions.
    pub(super) fn retire(&mut self, removed: &[ListenPoint], leave_by_ms: u64) {
        for listener in self.all.values_mut().filter(|it| removed.contains(&it.address)) {
            listener.leave_by_ms.get_or_insert(leave_by_ms);
        }
        self.note_leaving();
    }

    pub(super) fn close(&mut self, io: &mut EventLoop, key: ListenerKey) {
        if let Some(listener) = self.all.remove(key) {
            match listener.leave_by_ms {
                None => io.close(listener.token),
                Some(leave_by_ms) => {
                    let unread = Datagrams::of(io).close_unread(listener.token);
                    listener.server.counters.datagrams_refused.add(unread);
                    let until_ms = leave_by_ms.saturating_add(UNREAD_MS_MAX);
                    self.closed.push((listener.address, until_ms));
                }
            }
        }
        self.leaving.retain(|(leaving, _)| *leaving != key);
    }

    pub fn close_all(&mut self, io: &mut EventLoop) {
        let keys: Vec<ListenerKey> = self.all.iter().map(|(key, _)| key).collect();
        keys.into_iter().for_each(|key| self.close(io, key));
    }
}
