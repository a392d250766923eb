//! How the connections of clients end: in order, cut, reset, or closed.

use weir_event_loop::EventLoop;

use super::Worker;
use super::stage::Stage;
use crate::arena::ClientKey;

impl Worker {
    /// Ends a client connection in order. `may_send`: the client may still be sending, and would
    /// otherwise lose our last words to a reset.
    pub fn leave(&mut self, io: &mut EventLoop, key: ClientKey, may_send: bool) {
        self.flush_http2(io, key);
        let Some(client) = self.world.clients.get_mut(key) else { return };
        let token = client.token;
        let timeout_ms = client.server.http.body_timeout_ms;
        // Who has not finished its handshake yet is about to.
        if (may_send || client.is_early) && !client.ended {
            self.begin_leaving(key);
            io.linger(token, timeout_ms);
        } else if io.queued(token) > 0 {
            self.begin_leaving(key);
            io.close_when_sent(token, timeout_ms);
        } else {
            self.close_client(io, key);
        }
    }

    /// From now on nothing is done for a client but to close its connection.
    fn begin_leaving(&mut self, key: ClientKey) {
        let Some(client) = self.world.clients.get_mut(key) else { return };
        // What it was sent has its own time from now on.
        client.leave_by_ms = None;
        if std::mem::replace(&mut client.stage, Stage::Leaving) != Stage::Leaving {
            self.world.counters.of(self.world.id).connections_leaving.add(1);
        }
    }

    /// Ends a client connection between requests. One that has come meanwhile is served first.
    pub fn leave_idle(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.get(key) else { return };
        if io.has_arrived(client.token) {
            let timeout_ms = client.server.http.header_timeout_ms;
            io.set_deadline(client.token, io.now_ms() + timeout_ms);
        } else {
            self.leave(io, key, true);
        }
    }

    /// Ends a client connection in the middle of a response; what was sent before still reaches it. `must_reset`: an
    /// end would make the part look like the whole.
    pub fn cut_client(&mut self, io: &mut EventLoop, key: ClientKey, must_reset: bool) {
        let Some(client) = self.world.clients.get(key) else { return };
        if !must_reset {
            // Bytes that it has sent ahead would make a reset of a plain close; who was sent nothing has nothing to lose.
            let may_lose = io.sent_bytes(client.token) > 0;
            return self.leave(io, key, may_lose);
        }
        self.flush_http2(io, key);
        self.begin_leaving(key);
        if let Some(client) = self.world.clients.get(key) {
            io.reset_when_taken(client.token, client.server.http.body_timeout_ms);
        }
    }

    /// Resets a client connection at once: what was sent on it does not get through.
    pub fn reset_client(&mut self, io: &mut EventLoop, key: ClientKey) {
        if let Some(client) = self.world.clients.get(key) {
            io.reset(client.token);
        }
        self.forget_client(io, key);
    }

    /// Closes a client connection at once.
    pub fn close_client(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.get(key) else { return };
        io.close(client.token);
        self.forget_client(io, key);
    }

    /// The socket of a client connection is closed: takes it off the books.
    pub fn forget_client(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.remove(key) else { return };
        debug_assert!(client.http2.as_ref().is_none_or(|http2| http2.has_no_exchange()));
        if client.counted {
            client.server.live.connection_closed(self.world.id);
        }
        if client.stage == Stage::Leaving {
            self.world.counters.of(self.world.id).connections_leaving.subtract(1);
        }
        io.give_buffer(client.input);
    }
}
