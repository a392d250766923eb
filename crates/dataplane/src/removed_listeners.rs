//! Removed UDP listeners with open sessions.
//!
//! The kernel distributes clients over the sockets of an address by a hash, which changes as soon as one of them is closed.
//! Datagrams of sessions would then reach workers without these sessions. Therefore no socket of an address is closed before
//! the last session there has ended on all workers. A worker closes its descriptor when it has no more sessions, and the
//! duplicates here keep the sockets open.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_config::snapshot::ListenPoint;
use weir_exchange::shared::live::LiveVirtualServer;

use crate::binding::are_on_interface;

/// Minimum lifetime of a removed listener: by then, every worker has received the command that removed it.
const KEPT_MS_MIN: u64 = 1_000;

#[derive(Debug)]
struct RemovedListener {
    /// The sockets, one per worker in the order of the workers; `None`: the worker has ended.
    sockets: Vec<Option<OwnedFd>>,
    /// The virtual server of the sessions.
    server: Arc<LiveVirtualServer>,
    since_ms: u64,
    /// The time when workers end the remaining sessions.
    until_ms: u64,
}

/// The removed listeners with open sessions, by address.
#[derive(Debug, Default)]
pub struct DepartedListeners(HashMap<ListenPoint, RemovedListener>);

impl DepartedListeners {
    /// Adds the listeners of an address.
    pub fn keep(
        &mut self,
        address: ListenPoint,
        sockets: Vec<Option<OwnedFd>>,
        server: Arc<LiveVirtualServer>,
        (since_ms, until_ms): (u64, u64),
    ) {
        self.0.insert(address, RemovedListener { sockets, server, since_ms, until_ms });
    }

    /// Closes listeners without sessions.
    pub fn close_finished(&mut self, now_ms: u64) {
        self.0.retain(|_, departed| {
            let has_sessions = departed.server.connections.load(Relaxed) > 0;
            let is_young = now_ms < departed.since_ms + KEPT_MS_MIN;
            is_young || has_sessions && now_ms < departed.until_ms + KEPT_MS_MIN
        });
    }

    /// Duplicates of the sockets for the workers, for a table that listens on the address again. `None`: there is no
    /// listener for the address, or a duplicate cannot be made, so new sockets must be bound.
    pub fn duplicates(&self, address: &ListenPoint) -> Option<Vec<OwnedFd>> {
        let departed = self.0.get(address)?;
        if !are_on_interface(departed.sockets.iter().flatten(), address) {
            return None;
        }
        departed.sockets.iter().map(|socket| socket.as_ref()?.try_clone().ok()).collect()
    }

    /// Removes an address whose sockets the workers have received again.
    pub fn forget(&mut self, address: &ListenPoint) {
        self.0.remove(address);
    }

    /// Closes all sockets.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
