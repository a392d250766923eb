//! The ways to end a client connection: orderly, truncated, with a reset, or immediately.

use weir_connection::client::streams::ClientStreams;
use weir_exchange::arena::ClientKey;

use super::edge::WorkerEdge;
use super::world::World;
use crate::worker::member::bound_connections;
use crate::worker::state::stage::Stage;

impl WorkerEdge<'_> {
    /// Ends a client connection in an orderly way. `may_send`: the client may still be sending. An immediate close would
    /// then cause a reset, which could destroy the last response.
    pub fn leave(&mut self, key: ClientKey, may_send: bool) {
        self.world.clients.flush((self.io, &mut self.world.agenda), key);
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        let token = client.token;
        let timeout_ms = client.server.http.body_timeout_ms;
        // A client with early data is about to send the rest of the handshake.
        if (may_send || client.special.is_early) && !client.ended {
            self.world.begin_leaving(key);
            bound_connections::close_all(self, key);
            self.io.linger(token, timeout_ms);
        } else if self.io.sockets.queued(token) > 0 {
            self.world.begin_leaving(key);
            bound_connections::close_all(self, key);
            self.io.close_when_sent(token, timeout_ms);
        } else {
            self.close_client(key);
        }
    }
}

impl World {
    /// Marks a client connection as ending. It only has to be closed after its queued data was sent.
    fn begin_leaving(&mut self, key: ClientKey) {
        let Some(client) = self.clients.all.get_mut(key) else { return };
        // The event loop sets a deadline for the queued data.
        client.leave_by_ms = None;
        if std::mem::replace(&mut client.stage, Stage::Leaving) != Stage::Leaving {
            self.counted.connections_leaving.add(1);
        }
    }
}

impl WorkerEdge<'_> {
    /// Ends a client connection between requests. If a request has arrived, it is served first.
    pub fn leave_idle(&mut self, key: ClientKey) {
        let Some(client) = self.world.clients.all.get(key) else { return };
        if self.io.sockets.has_arrived(client.token) {
            let timeout_ms = client.server.http.header_timeout_ms;
            self.io.set_deadline(client.token, self.io.now_ms() + timeout_ms);
        } else {
            self.leave(key, true);
        }
    }

    /// Ends a client connection in the middle of a response. Data that was sent before still reaches the client.
    /// `must_reset`: after an orderly end, the client would take the truncated response for a complete one.
    pub fn cut_client(&mut self, key: ClientKey, must_reset: bool) {
        let Some(client) = self.world.clients.all.get(key) else { return };
        if !must_reset {
            // A close with unread bytes of the client causes a reset, which is harmless if nothing was sent.
            let (sent_bytes, queued) =
                (self.io.sockets.sent_bytes(client.token), self.io.sockets.queued(client.token));
            return self.leave(key, sent_bytes > 0 || queued > 0);
        }
        self.world.clients.flush((self.io, &mut self.world.agenda), key);
        self.world.begin_leaving(key);
        if let Some(client) = self.world.clients.all.get(key) {
            self.io.reset_when_taken(client.token, client.server.http.body_timeout_ms);
        }
    }

    /// Resets a client connection immediately. Data in transit is lost.
    pub fn reset_client(&mut self, key: ClientKey) {
        if let Some(client) = self.world.clients.all.get(key) {
            self.io.reset(client.token);
        }
        self.forget_client(key);
    }

    /// Closes a client connection immediately.
    pub fn close_client(&mut self, key: ClientKey) {
        let Some(client) = self.world.clients.all.get(key) else { return };
        self.io.close(client.token);
        self.forget_client(key);
    }

    /// Removes a client connection whose socket is closed.
    pub fn forget_client(&mut self, key: ClientKey) {
        bound_connections::close_all(self, key);
        let Some(mut client) = self.world.clients.all.remove(key) else { return };
        debug_assert!(client.streams().is_none_or(ClientStreams::is_empty));
        if let Some(http2) = &client.http2 {
            self.world.clients.http2_memory.forget(&http2.held);
        }
        if client.counted {
            client.server.live.connection_closed(self.world.id);
        }
        if client.stage == Stage::Leaving {
            self.world.counted.connections_leaving.subtract(1);
        }
        self.io.spares.give(client.http1.take_input());
    }
}
