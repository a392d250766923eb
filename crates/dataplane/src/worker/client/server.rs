//! The virtual server that a client has to do with, over reloads.

use std::rc::Rc;
use std::sync::Arc;

use weir_exchange::arena::ClientKey;
use weir_exchange::local::table::LocalServer;

use crate::worker::state::client::Client;
use crate::worker::world::World;

impl World {
    /// The virtual server of the newest table: each request takes the newest at its head.
    #[inline]
    pub fn refresh_server(&mut self, key: ClientKey) {
        let client = self.clients.get(key);
        if client.is_some_and(|client| client.generation != self.table.generation) {
            self.take_newest_server(key);
        }
    }

    #[cold]
    #[inline(never)]
    fn take_newest_server(&mut self, key: ClientKey) {
        let Some(client) = self.clients.get(key) else { return };
        let Some(server) = self.server_of(client).cloned() else {
            return;
        };
        let Some(client) = self.clients.get_mut(key) else { return };
        client.generation = self.table.generation;
        // Another one, or one that went and came back under its name: the connection counts there.
        if client.counted && !Arc::ptr_eq(&server.live, &client.server.live) {
            client.server.live.connection_closed(self.id);
            server.live.connection_opened(self.id);
        }
        client.server = server;
    }

    /// The active virtual server of a client: the one that listens on its address; else the one with which it began, if
    /// that still has clients of its own.
    fn server_of(&self, client: &Client) -> Option<&Rc<LocalServer>> {
        let here = self.table.server_at(client.listen());
        let known = || self.table.server(&client.server.live.name);
        here.or_else(|| known().filter(|server| !server.settings().listen.is_empty()))
    }

    /// Whether no virtual server serves a client any more.
    pub fn has_lost_its_server(&self, client: &Client) -> bool {
        client.generation != self.table.generation && self.server_of(client).is_none()
    }

    /// Whether a client has shown in its handshake that it is let in where now others are.
    pub fn has_handshake_of_others(&self, client: &Client) -> bool {
        let server = self.server_of(client).unwrap_or(&client.server);
        match (&client.tls, &server.tls) {
            (Some(passed), Some(tls)) => passed.is_of_others(&tls.lets_in),
            _ => false,
        }
    }
}
