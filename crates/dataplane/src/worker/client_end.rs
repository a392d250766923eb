//! Ends client connections: orderly, truncated, with a reset, or immediately.

use weir_exchange::arena::ClientKey;

use super::edge::WorkerEdge;
use super::world::World;
use crate::worker::member::bound_connections;
use crate::worker::state::client_end::ClientEnd;
use crate::worker::state::stage::Stage;

impl WorkerEdge<'_> {
    /// Ends a client connection.
    pub fn end_client(&mut self, key: ClientKey, how: ClientEnd) {
        let World { clients, agenda, .. } = &mut *self.world;
        let Some(client) = clients.all.get_mut(key) else { return };
        let (token, timeout_ms) = (client.token, client.server.http.body_timeout_ms);
        match how {
            ClientEnd::Orderly { may_send } => return self.leave(key, may_send),
            ClientEnd::Goaway => {
                client.http2.iter_mut().for_each(|http2| http2.end());
                return self.leave(key, true);
            }
            ClientEnd::Cut { must_reset: false } => {
                // A close with unread bytes of the client causes a reset, which is harmless if nothing was sent.
                let sockets = &mut self.io.sockets;
                let may_send = sockets.sent_bytes(token) > 0 || sockets.queued(token) > 0;
                return self.leave(key, may_send);
            }
            ClientEnd::Cut { must_reset: true } => {
                client.flush((self.io, agenda), &mut clients.http2_memory);
                self.begin_leaving(key);
                return self.io.reset_when_taken(token, timeout_ms);
            }
            ClientEnd::Stop => {
                client.http2.iter_mut().for_each(|http2| http2.end());
                client.flush((self.io, agenda), &mut clients.http2_memory);
                self.io.close(token);
            }
            ClientEnd::Reset => self.io.reset(token),
            ClientEnd::Close => self.io.close(token),
        }
        self.forget_client(key);
    }

    fn leave(&mut self, key: ClientKey, may_send: bool) {
        let World { clients, agenda, .. } = &mut *self.world;
        let Some(client) = clients.all.get_mut(key) else { return };
        client.flush((self.io, agenda), &mut clients.http2_memory);
        let (token, timeout_ms) = (client.token, client.server.http.body_timeout_ms);
        // A client with early data is about to send the rest of the handshake.
        if (may_send || client.is_early) && !client.ended {
            self.begin_leaving(key);
            self.io.linger(token, timeout_ms);
        } else if self.io.sockets.queued(token) > 0 {
            self.begin_leaving(key);
            self.io.close_when_sent(token, timeout_ms);
        } else {
            self.end_client(key, ClientEnd::Close);
        }
    }

    /// Marks a client connection as ending: it only has to be closed after its queued data was sent. Nothing is asked of the members
    /// for it any more.
    fn begin_leaving(&mut self, key: ClientKey) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        // The event loop sets a deadline for the queued data.
        client.leave_by_ms = None;
        if std::mem::replace(&mut client.stage, Stage::Leaving) != Stage::Leaving {
            self.world.counted.connections_leaving.add(1);
        }
        bound_connections::close_all(self, key);
    }

    /// Removes a client connection whose socket is closed.
    pub fn forget_client(&mut self, key: ClientKey) {
        bound_connections::close_all(self, key);
        let Some(mut client) = self.world.clients.all.remove(key) else { return };
        debug_assert!(client.http2.as_ref().is_none_or(|it| it.has_no_exchange()));
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
