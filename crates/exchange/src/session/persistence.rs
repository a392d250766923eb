//! Persistence of sessions by QUIC connection IDs.
//!
//! A client's port may pass to another client (NAT). So a datagram with a connection ID of another member is not for
//! this session's member, even from the same address and port.

use std::rc::Rc;
use std::sync::Arc;

use weir_core::clock::Clock;
use weir_core::datagram::Train;

use crate::local::pool::LocalPool;
use crate::local::table::LocalServer;
use crate::shared::connection_ids::{ConnectionIds, KnownId};
use crate::shared::sticky::Sticky;

/// Maximum number of answers per batch that are searched for connection IDs.
const LEARNT_OF_MAX: usize = 4;
/// Maximum number of IDs per session that are stored for the whole timeout. So a client with more connections from one
/// port cannot displace the IDs of other clients.
const USED_IDS_MAX: u32 = 16;

/// The persistence state of a session.
pub(super) struct SessionPersistence {
    /// The virtual server at the last check; the other fields were determined with it.
    server: Rc<LocalServer>,
    pool: Rc<LocalPool>,
    sticky: Arc<Sticky>,
    /// The ID that the client uses, or the latest one of its member.
    id: Option<KnownId>,
    /// The number of IDs that the client has used.
    used_count: u32,
}

impl SessionPersistence {
    /// The state of a new session; `None`: other persistence or none applies.
    pub fn new(
        server: &Rc<LocalServer>,
        pool: &Rc<LocalPool>,
        sticky: &Arc<Sticky>,
    ) -> Option<Box<Self>> {
        matches!(**sticky, Sticky::ConnectionIds(_)).then(|| {
            Box::new(Self {
                server: Rc::clone(server),
                pool: Rc::clone(pool),
                sticky: Arc::clone(sticky),
                id: None,
                used_count: 0,
            })
        })
    }

    fn ids(&self) -> Option<&ConnectionIds> {
        match &*self.sticky {
            Sticky::ConnectionIds(ids) => Some(ids),
            _ => None,
        }
    }

    /// Switches to the settings after a reload, or to other members.
    fn follow(&mut self, server: &Rc<LocalServer>) {
        if Rc::ptr_eq(server, &self.server) && self.pool.newer().is_none() {
            return;
        }
        self.server = Rc::clone(server);
        let traffic = server.traffic.as_ref();
        if let Some((pool, sticky)) =
            traffic.and_then(|traffic| traffic.connection_ids(&self.pool.live.name))
        {
            (self.pool, self.sticky) = (pool, sticky);
        }
    }

    /// The number of datagrams at the beginning that go to the session's member `label`. `None`: the session has no
    /// member yet, and accepts all.
    pub fn own(
        &mut self,
        server: &Rc<LocalServer>,
        train: Train<'_>,
        label: Option<&str>,
        now: Clock,
    ) -> usize {
        self.follow(server);
        if label.is_none() {
            self.is_of_another(train.first(), label, now);
            return 1;
        }
        let other = train.iter().position(|datagram| self.is_of_another(datagram, label, now));
        other.unwrap_or(usize::MAX)
    }

    /// Whether a datagram is for another member, and that member is available.
    fn is_of_another(&mut self, datagram: &[u8], label: Option<&str>, now: Clock) -> bool {
        let Some(ids) = self.ids() else { return false };
        let is_same = self.id.as_ref().is_some_and(|id| ids.has(datagram, id));
        if !is_same {
            // Most IDs are unknown: those chosen by clients, and those that were sent encrypted.
            let Some((id, member)) = ids.look(datagram, now.now_ms()) else { return false };
            let is_other = label.is_some_and(|label| *label != *id.label);
            if is_other && self.pool.has_place(member, now) {
                return true;
            }
            self.id = Some(id);
        }
        self.note_use(label, now);
        false
    }

    /// Records that the client uses the known ID.
    fn note_use(&mut self, label: Option<&str>, now: Clock) {
        let Sticky::ConnectionIds(ids) = &*self.sticky else { return };
        let Some(id) = self.id.as_mut().filter(|id| Some(&*id.label) == label) else { return };
        if !id.is_used() {
            if self.used_count >= USED_IDS_MAX {
                return;
            }
            self.used_count += 1;
        }
        ids.refresh(id, now.now_ms());
    }

    /// Stores the IDs that the member sends.
    pub fn learn(
        &mut self,
        server: Option<&Rc<LocalServer>>,
        train: Train<'_>,
        label: &Arc<str>,
        now: Clock,
    ) {
        if let Some(server) = server {
            self.follow(server);
        }
        for datagram in train.iter().take(LEARNT_OF_MAX) {
            let learned = self.ids().and_then(|ids| ids.learn(datagram, label, now.now_ms()));
            let Some(learned) = learned else { continue };
            if self.id.as_ref().is_none_or(|id| !id.is(&learned)) {
                self.id = Some(learned);
            }
        }
    }
}
