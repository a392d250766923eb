//! What an exchange asks of its client's connection, whichever version that speaks: of HTTP/1 the exchange has
//! the connection for itself, of HTTP/2 a stream of it.

use weir_event_loop::EventLoop;

use super::Worker;
use crate::arena::ExchangeKey;

impl Worker {
    /// Whether the client has not taken everything that it was sent: what comes next has to wait.
    pub fn is_client_behind(&self, io: &mut EventLoop, key: ExchangeKey) -> bool {
        let Some(exchange) = self.exchanges.get(key) else { return false };
        let is_stream_behind =
            self.world.stream(exchange).is_some_and(|stream| stream.out.is_behind());
        let client = self.world.clients.get(exchange.client);
        is_stream_behind || client.is_some_and(|client| io.queued(client.token) > 0)
    }

    /// The client must have done something by then.
    pub fn set_client_deadline(&mut self, io: &mut EventLoop, key: ExchangeKey, at_ms: u64) {
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        let client = exchange.client;
        if let Some(stream) = self.world.stream_mut(exchange) {
            stream.deadline_ms = Some(at_ms);
            self.desk(io).arm(client, at_ms);
        } else if let Some(client) = self.world.clients.get(client) {
            io.set_deadline(client.token, at_ms);
        }
    }

    /// The client need not do anything.
    #[inline]
    pub fn clear_client_deadline(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        if let Some(stream) = self.world.stream_mut(exchange) {
            stream.deadline_ms = None;
        } else if let Some(client) = self.world.clients.get(exchange.client) {
            io.clear_deadline(client.token);
        }
    }

    /// The member takes more of the request: the client may send it.
    pub fn let_client_send(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get(key) else { return };
        if exchange.stream.is_some() {
            return self.stream_goes_on(io, key);
        }
        let client_key = exchange.client;
        let Some(client) = self.world.clients.get(client_key) else { return };
        io.resume(client.token);
        if client.has_input() {
            self.client_continue(io, client_key);
        }
    }
}
