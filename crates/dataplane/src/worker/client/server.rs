//! The virtual server of a client, across reloads.

use std::rc::Rc;
use std::sync::Arc;

use weir_exchange::arena::ClientKey;
use weir_exchange::local::table::LocalServer;

use crate::worker::state::client::Client;
use crate::worker::world::World;

impl World {
    /// Updates the client's virtual server to the one in the latest table. Each request head uses the latest table.
    #[inline]
    pub fn refresh_server(&mut self, key: ClientKey) {
        let client = self.clients.all.get(key);
        if client.is_some_and(|client| client.generation != self.table.generation) {
            self.take_newest_server(key);
        }
    }

    /// A client at its next request, with its virtual server in the latest table. A reload may have made that a relay.
    #[inline]
    pub fn client_at_request(&mut self, key: ClientKey) -> Option<&mut Client> {
        self.refresh_server(key);
        self.clients.all.get_mut(key)
    }

    #[cold]
    #[inline(never)]
    fn take_newest_server(&mut self, key: ClientKey) {
        let Some(client) = self.clients.all.get(key) else { return };
        let Some(server) = self.server_of(client).cloned() else {
            return;
        };
        let Some(client) = self.clients.all.get_mut(key) else { return };
        client.generation = self.table.generation;
        // The virtual server was replaced, or removed and added again. The connection is counted for the new one.
        if client.counted && !Arc::ptr_eq(&server.live, &client.server.live) {
            client.server.live.connection_closed(self.id);
            server.live.connection_opened(self.id);
        }
        client.server = server;
    }

    /// The active virtual server of a client: the one that listens on the client's address, or else the one that the client
    /// first used, if that still has listeners.
    fn server_of(&self, client: &Client) -> Option<&Rc<LocalServer>> {
        let here = self.table.server_at(client.listen());
        let known = || self.table.server(&client.server.live.name);
        here.or_else(|| known().filter(|server| !server.settings().listen.is_empty()))
    }

    /// Whether the active table has no virtual server for a client.
    pub fn has_lost_its_server(&self, client: &Client) -> bool {
        client.generation != self.table.generation && self.server_of(client).is_none()
    }

    /// Whether a client's handshake was checked by other settings for client certificates than the current ones.
    pub fn has_handshake_of_others(&self, client: &Client) -> bool {
        let server = self.server_of(client).unwrap_or(&client.server);
        match (&client.tls, &server.tls) {
            (Some(passed), Some(tls)) => passed.is_of_others(&tls.lets_in),
            _ => false,
        }
    }
}
