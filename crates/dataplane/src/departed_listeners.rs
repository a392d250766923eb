//! Removed listeners of datagrams whose sessions still continue.
//!
//! The kernel distributes clients over the sockets of an address by a hash, and differently as soon as one of them is
//! closed: datagrams of sessions would then reach workers without these sessions. So no socket of an address is closed
//! before the last session there has ended, on any worker: a worker closes its descriptor when it has no more sessions,
//! and the duplicates here keep the sockets open.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_config::snapshot::ListenPoint;
use weir_exchange::shared::live::LiveVirtualServer;

use crate::binding::are_on_interface;

/// Listeners are kept at least this long: after it, every worker has received the command that removed them.
const KEPT_MS_MIN: u64 = 1_000;

#[derive(Debug)]
struct Departed {
    /// One per worker, in the order of the workers; `None`: the worker has ended.
    sockets: Vec<Option<OwnedFd>>,
    /// The virtual server of the sessions.
    server: Arc<LiveVirtualServer>,
    since_ms: u64,
    /// The time by which workers end the remaining sessions.
    until_ms: u64,
}

/// All removed listeners that still have sessions, by address.
#[derive(Debug, Default)]
pub struct DepartedListeners(HashMap<ListenPoint, Departed>);

impl DepartedListeners {
    /// Keeps the listeners of an address.
    pub fn keep(
        &mut self,
        address: ListenPoint,
        sockets: Vec<Option<OwnedFd>>,
        server: Arc<LiveVirtualServer>,
        (since_ms, until_ms): (u64, u64),
    ) {
        self.0.insert(address, Departed { sockets, server, since_ms, until_ms });
    }

    /// Closes listeners without sessions.
    pub fn close_finished(&mut self, now_ms: u64) {
        self.0.retain(|_, departed| {
            let has_sessions = departed.server.connections.load(Relaxed) > 0;
            let is_young = now_ms < departed.since_ms + KEPT_MS_MIN;
            is_young || has_sessions && now_ms < departed.until_ms + KEPT_MS_MIN
        });
    }

    /// Duplicates of the sockets for the workers, if the address is here: a new table listens on it again. `None` also
    /// if a duplicate cannot be made; new sockets are bound then.
    pub fn duplicates(&self, address: &ListenPoint) -> Option<Vec<OwnedFd>> {
        let departed = self.0.get(address)?;
        if !are_on_interface(departed.sockets.iter().flatten(), address) {
            return None;
        }
        departed.sockets.iter().map(|socket| socket.as_ref()?.try_clone().ok()).collect()
    }

    /// Removes an address after the workers have its sockets again.
    pub fn forget(&mut self, address: &ListenPoint) {
        self.0.remove(address);
    }

    /// Closes all sockets.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
