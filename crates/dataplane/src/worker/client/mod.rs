//! The client side: events of client connections, and operations of transactions on them.

pub mod accept;
pub mod bound_connections;
pub mod early_data;
pub mod gate;
pub mod handler;
pub mod handshake;
pub mod http1;
pub mod http2;
pub mod http2_memory;
pub mod own_response;
pub mod pending;
pub mod refusal_edits;
pub mod relay;
pub mod request;
pub mod server;
pub mod steps;
pub mod stream;
pub mod toward_client;
pub mod unserved_log;

use weir_event_loop::EventLoop;
use weir_exchange::arena::ClientKey;
use weir_exchange::transaction::Transaction;

use crate::worker::router::Router;
use crate::worker::state::stage::Stage;
use crate::worker::wire::Spares;

impl Router {
    /// Processes received bytes of a client.
    pub fn client_received(&mut self, io: &mut EventLoop, key: ClientKey, bytes: &mut [u8]) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        client.server.counters.bytes_received.add(bytes.len() as u64);
        if client.stage == Stage::Streams {
            return self.http2_received(io, key, bytes);
        }
        if let Some(exchange) = client.exchange()
            && self.exchanges.get(exchange).is_some_and(Transaction::is_tunnel)
        {
            return self
                .with_any(io, exchange, |it, at| it.with_tunnel(|it| it.client_sent(at, bytes)));
        }
        if client.has_input() {
            if client.http1.add(bytes, &client.server.limits) {
                self.client_continue(io, key);
            }
            return;
        }
        let consumed = self.client_input(io, key, bytes);
        if let Some(client) = self.world.clients.all.get_mut(key) {
            client.http1.keep(&mut Spares(io), &bytes[consumed..]);
        }
    }
}
