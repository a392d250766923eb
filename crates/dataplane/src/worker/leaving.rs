//! How the connections of clients end: in order, cut, reset, or closed.

use crate::worker::state::streams::ClientStreams;
use weir_exchange::arena::ClientKey;

use super::desk::Desk;
use super::world::World;
use crate::worker::state::stage::Stage;

impl Desk<'_> {
    /// Ends a client connection in order. `may_send`: the client may still be sending, and would
    /// otherwise lose our last words to a reset.
    pub fn leave(&mut self, key: ClientKey, may_send: bool) {
        self.flush_http2(key);
        let Some(client) = self.world.clients.get_mut(key) else { return };
        let token = client.token;
        let timeout_ms = client.server.http.body_timeout_ms;
        // A client in the handshake may be about to finish it.
        if (may_send || client.is_early) && !client.ended {
            self.world.begin_leaving(key);
            self.io.linger(token, timeout_ms);
        } else if self.io.queued(token) > 0 {
            self.world.begin_leaving(key);
            self.io.close_when_sent(token, timeout_ms);
        } else {
            self.close_client(key);
        }
    }
}

impl World {
    /// From now on nothing is done for a client but to close its connection.
    fn begin_leaving(&mut self, key: ClientKey) {
        let Some(client) = self.clients.get_mut(key) else { return };
        // Data that it was sent has its own deadline from now on.
        client.leave_by_ms = None;
        if std::mem::replace(&mut client.stage, Stage::Leaving) != Stage::Leaving {
            self.counted.connections_leaving.add(1);
        }
    }
}

impl Desk<'_> {
    /// Ends a client connection between requests. One that has come meanwhile is served first.
    pub fn leave_idle(&mut self, key: ClientKey) {
        let Some(client) = self.world.clients.get(key) else { return };
        if self.io.has_arrived(client.token) {
            let timeout_ms = client.server.http.header_timeout_ms;
            self.io.set_deadline(client.token, self.io.now_ms() + timeout_ms);
        } else {
            self.leave(key, true);
        }
    }

    /// Ends a client connection in the middle of a response; earlier data still reaches the client. `must_reset`: an
    /// orderly end would make the part look like the whole.
    pub fn cut_client(&mut self, key: ClientKey, must_reset: bool) {
        let Some(client) = self.world.clients.get(key) else { return };
        if !must_reset {
            // Unread bytes of the client would turn a close into a reset; without sent data, nothing can be lost.
            let (sent_bytes, queued) =
                (self.io.sent_bytes(client.token), self.io.queued(client.token));
            return self.leave(key, sent_bytes > 0 || queued > 0);
        }
        self.flush_http2(key);
        self.world.begin_leaving(key);
        if let Some(client) = self.world.clients.get(key) {
            self.io.reset_when_taken(client.token, client.server.http.body_timeout_ms);
        }
    }

    /// Resets a client connection at once: data on its way is lost.
    pub fn reset_client(&mut self, key: ClientKey) {
        if let Some(client) = self.world.clients.get(key) {
            self.io.reset(client.token);
        }
        self.forget_client(key);
    }

    /// Closes a client connection at once.
    pub fn close_client(&mut self, key: ClientKey) {
        let Some(client) = self.world.clients.get(key) else { return };
        self.io.close(client.token);
        self.forget_client(key);
    }

    /// The socket of a client connection is closed: takes it off the books.
    pub fn forget_client(&mut self, key: ClientKey) {
        let Some(client) = self.world.clients.remove(key) else { return };
        debug_assert!(client.streams().is_none_or(ClientStreams::is_empty));
        if client.counted {
            client.server.live.connection_closed(self.world.id);
        }
        if client.stage == Stage::Leaving {
            self.world.counted.connections_leaving.subtract(1);
        }
        self.io.give_buffer(client.input);
    }
}
