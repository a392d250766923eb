//! The listening sockets of a worker for streams.

use std::rc::Rc;

use rustix::io::Errno;
use weir_config::snapshot::ListenPoint;
use weir_event_loop::{Descriptor, EventLoop, Owner, Token};
use weir_exchange::arena::{Arena, ListenerKey, OfListener};
use weir_exchange::local::table::{LocalServer, LocalTable};

use crate::owners::owner_key;
use crate::worker::state::destination::Destination;

/// A listening socket of this worker.
pub struct Listener {
    pub token: Token,
    pub address: Destination,
    pub server: Rc<LocalServer>,
}

/// The listening sockets of a worker.
#[derive(Default)]
pub struct StreamListeners {
    all: Arena<OfListener, Listener>,
}

impl StreamListeners {
    /// The listener with this key.
    pub fn get(&self, key: ListenerKey) -> Option<&Listener> {
        self.all.get(key)
    }

    /// The addresses of all listeners.
    pub fn addresses(&self) -> Vec<ListenPoint> {
        self.all.iter().map(|(_, listener)| listener.address.listen().clone()).collect()
    }

    /// The sockets of listeners at these addresses.
    pub fn sockets(&self, addresses: &[ListenPoint]) -> Vec<Token> {
        let listeners = self.all.iter().map(|(_, listener)| listener);
        let meant = listeners.filter(|listener| addresses.contains(listener.address.listen()));
        meant.map(|listener| listener.token).collect()
    }

    /// Adds a listener, if its address has a virtual server.
    pub fn add(
        &mut self,
        io: &mut EventLoop,
        table: &LocalTable,
        socket: Descriptor,
        address: ListenPoint,
    ) -> Result<(), Errno> {
        let Some(server) = table.server_at(&address) else { return Ok(()) };
        let owner = Owner::Listener(owner_key(self.all.next_key()));
        let token = io.add(socket, owner)?;
        let (address, server) = (Destination::new(address), Rc::clone(server));
        self.all.insert(Listener { token, address, server });
        Ok(())
    }

    /// Closes the listeners at these addresses.
    pub fn remove(&mut self, io: &mut EventLoop, removed: &[ListenPoint]) {
        let is_removed = |listener: &Listener| removed.contains(listener.address.listen());
        let keys = self.all.iter().filter(|(_, listener)| is_removed(listener));
        let keys: Vec<ListenerKey> = keys.map(|(key, _)| key).collect();
        for listener in keys.into_iter().filter_map(|key| self.all.remove(key)) {
            io.close(listener.token);
        }
    }

    /// Assigns the virtual servers of the active table to the listeners.
    pub fn refresh(&mut self, table: &LocalTable) {
        for listener in self.all.values_mut() {
            if let Some(server) = table.server_at(listener.address.listen()) {
                listener.server = Rc::clone(server);
            }
        }
    }
}
