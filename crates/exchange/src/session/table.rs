//! The sessions of one worker.

use std::collections::HashMap;

use crate::arena::{Arena, ListenerKey, OfSession, SessionKey};
use crate::session::{Session, Source};
use weir_core::datagram::Flow;

/// Maximum number of sessions per worker, whatever virtual servers allow: each session has a socket.
pub const SESSIONS_PER_WORKER_MAX: usize = 1 << 20;

/// The sessions of one worker, with a lookup by client.
pub struct Sessions<S> {
    sessions: Arena<OfSession, Session<S>>,
    /// Sessions that accept further datagrams of their clients.
    open: HashMap<(ListenerKey, Flow), SessionKey>,
}

impl<S> Default for Sessions<S> {
    fn default() -> Self {
        Self { sessions: Arena::default(), open: HashMap::new() }
    }
}

/// The lookup key for the datagrams of a client.
fn place(source: Source) -> (ListenerKey, Flow) {
    (source.listener, source.flow)
}

impl<S: Copy> Sessions<S> {
    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// The number of sessions.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether another session fits.
    pub fn has_room(&self) -> bool {
        self.sessions.len() < SESSIONS_PER_WORKER_MAX
    }

    /// The key of the next session.
    pub fn next_key(&self) -> SessionKey {
        self.sessions.next_key()
    }

    /// Adds a session.
    pub fn insert(&mut self, session: Session<S>) -> SessionKey {
        let source = session.source;
        let key = self.sessions.insert(session);
        self.open.insert(place(source), key);
        key
    }

    /// The open session of this client.
    pub fn open_at(&self, source: Source) -> Option<SessionKey> {
        self.open.get(&place(source)).copied()
    }

    /// The session with this key.
    pub fn get_mut(&mut self, key: SessionKey) -> Option<&mut Session<S>> {
        self.sessions.get_mut(key)
    }

    /// Updates the table after a session has changed: a session that accepts no more datagrams is no longer found by
    /// its client, and a session that has ended is removed and returned.
    pub fn settle(&mut self, key: SessionKey) -> Option<Session<S>> {
        let session = self.sessions.get(key)?;
        if session.is_open() {
            return None;
        }
        let at = place(session.source);
        if self.open.get(&at) == Some(&key) {
            self.open.remove(&at);
        }
        let is_over = session.over.is_some();
        if is_over { self.sessions.remove(key) } else { None }
    }

    /// The keys of all sessions that match.
    pub fn keys_of(&self, is_meant: impl Fn(&Session<S>) -> bool) -> Vec<SessionKey> {
        let meant = self.sessions.iter().filter(|(_, session)| is_meant(session));
        meant.map(|(key, _)| key).collect()
    }

    /// The sessions of `count` slots, beginning with slot `from`, each with the number of the slot after it.
    pub fn part(
        &self,
        from: usize,
        count: usize,
    ) -> impl Iterator<Item = (usize, SessionKey, &Session<S>)> {
        self.sessions.part(from, count)
    }

    /// The number of slots, including free ones.
    pub fn slots(&self) -> usize {
        self.sessions.slots()
    }

    /// Removes all sessions, after a panic.
    pub fn clear(&mut self) {
        self.open.clear();
        self.sessions.clear();
    }
}
