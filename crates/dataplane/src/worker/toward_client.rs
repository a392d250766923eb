//! What an exchange asks of its client's connection, whichever version that speaks: of HTTP/1 the exchange has
//! the connection for itself, of HTTP/2 a stream of it.

use super::Worker;
use crate::event_loop::EventLoop;

impl Worker {
    /// Whether the client has not taken everything that it was sent: what comes next has to wait.
    pub fn is_client_behind(&self, io: &mut EventLoop, key: u32) -> bool {
        let exchange = &self.exchanges[key as usize];
        let is_stream_behind =
            exchange.stream.as_ref().is_some_and(|stream| stream.out.is_behind());
        is_stream_behind || io.queued(self.clients[exchange.client as usize].token) > 0
    }

    /// The client must have done something by then.
    pub fn set_client_deadline(&mut self, io: &mut EventLoop, key: u32, at_ms: u64) {
        let exchange = &mut self.exchanges[key as usize];
        let client = exchange.client;
        match &mut exchange.stream {
            None => io.set_deadline(self.clients[client as usize].token, at_ms),
            Some(stream) => {
                stream.deadline_ms = Some(at_ms);
                self.arm(io, client, at_ms);
            }
        }
    }

    /// The client need not do anything.
    pub fn clear_client_deadline(&mut self, io: &mut EventLoop, key: u32) {
        let exchange = &mut self.exchanges[key as usize];
        match &mut exchange.stream {
            None => io.clear_deadline(self.clients[exchange.client as usize].token),
            Some(stream) => stream.deadline_ms = None,
        }
    }

    /// The member takes more of the request: the client may send it.
    pub fn let_client_send(&mut self, io: &mut EventLoop, key: u32) {
        let exchange = &self.exchanges[key as usize];
        if exchange.stream.is_some() {
            return self.stream_goes_on(io, key);
        }
        let client_key = exchange.client;
        let client = &self.clients[client_key as usize];
        io.resume(client.token);
        if client.has_input() {
            self.client_continue(io, client_key);
        }
    }
}
