//! The client side: events of client connections, and operations of transactions on them.

pub mod accept;
pub mod bound_connections;
pub mod early_data;
pub mod gate;
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
pub mod stream;
pub mod toward_client;

use std::rc::Rc;

use weir_event_loop::{EventLoop, Token};
use weir_exchange::arena::ClientKey;
use weir_exchange::termination::Termination;
use weir_exchange::transaction::Transaction;

use crate::worker::client::own_response::OwnBytes;
use crate::worker::edge::WorkerEdge;
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
            return self.with_tunnel(io, exchange, |it, at| it.client_sent(at, bytes));
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

    /// Continues with a client after all queued data was sent.
    pub fn client_drained(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        match client.stage {
            Stage::Leaving => {}
            Stage::Preface | Stage::Hello | Stage::Handshake => {}
            Stage::Idle | Stage::Head => self.client_next(io, key),
            Stage::Exchange(exchange) => self.with_any(io, exchange, |it, at| it.client_took(at)),
            Stage::Streams => self.http2_drained(io, key),
        }
    }

    /// Handles the client's FIN.
    pub fn client_ended(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        client.ended = true;
        match client.stage {
            Stage::Preface => self.edge(io).preface_ended(key),
            // A connection without any data is a port scan or a health check.
            Stage::Hello if !client.has_input() => self.edge(io).close_client(key),
            Stage::Hello | Stage::Handshake => {
                self.edge(io).handshake_failed(key, "the client closed the connection");
            }
            // Pipelined data is processed first, after the queued responses were sent.
            Stage::Idle if client.has_input() && !client.special.is_early => {}
            Stage::Idle => self.edge(io).leave(key, false),
            Stage::Head => {
                self.edge(io).note_abort_in_head(key);
                self.edge(io).close_client(key);
            }
            Stage::Exchange(exchange) => {
                self.with_any(io, exchange, |it, at| it.client_finished(at));
            }
            Stage::Streams => self.http2_gone(io, key),
            Stage::Leaving => {}
        }
    }

    /// Handles a failed client connection.
    pub fn client_failed(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.all.get(key) else { return };
        match client.stage {
            Stage::Exchange(exchange) => {
                self.with_any(io, exchange, |it, at| it.abandon(at, Termination::ClientAbort))
            }
            Stage::Head => self.edge(io).note_abort_in_head(key),
            Stage::Preface => return self.edge(io).preface_ended(key),
            Stage::Hello | Stage::Handshake if client.hello_bytes > 0 => {
                return self.edge(io).handshake_failed(key, "the client reset the connection");
            }
            Stage::Streams => {
                self.abandon_streams(io, key, Termination::ClientAbort);
            }
            Stage::Hello | Stage::Handshake => {}
            Stage::Idle | Stage::Leaving => {}
        }
        self.edge(io).close_client(key);
    }
}

impl WorkerEdge<'_> {
    /// Logs that the client closed the connection during a request head.
    fn note_abort_in_head(&mut self, key: ClientKey) {
        let Some(client) = self.world.clients.all.get(key) else { return };
        // An empty line after a request (RFC 9112 section 2.2) does not start another one.
        if matches!(client.http1.input(), b"\r" | b"\r\n") {
            return;
        }
        client.server.counters.client_aborts.add(1);
        self.log_without_request(key, b"", OwnBytes::default(), Termination::ClientAbort);
    }
}

impl Router {
    /// Handles the client's deadline.
    pub fn client_timer(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.all.get(key) else { return };
        let (token, server) = (client.token, Rc::clone(&client.server));
        let counters = &server.counters;
        match client.stage {
            Stage::Leaving => {}
            Stage::Streams => self.http2_timer(io, key),
            Stage::Preface => self.edge(io).refuse_relay(key, Termination::HelloTimeout),
            Stage::Hello | Stage::Handshake => {
                self.edge(io).handshake_failed(key, "not complete within handshake_timeout");
            }
            Stage::Idle | Stage::Head if io.sockets.queued(token) > 0 => {
                if !is_taking(io, token, server.http.body_timeout_ms) {
                    counters.body_timeouts.add(1);
                    self.edge(io).close_client(key);
                }
            }
            Stage::Idle => self.edge(io).leave_idle(key),
            Stage::Head => {
                counters.header_timeouts.add(1);
                self.edge(io).refuse(key, 408, Termination::HeaderTimeout);
            }
            Stage::Exchange(exchange) => {
                self.with_any(io, exchange, |it, at| it.client_timed_out(at));
            }
        }
    }
}

/// Whether a client with queued data has recently received some of it. If so, its deadline is extended.
fn is_taking(io: &mut EventLoop, token: Token, timeout_ms: u64) -> bool {
    let until_ms = io.patience_until_ms(token, timeout_ms);
    let taking = until_ms > io.now_ms();
    if taking {
        io.set_deadline(token, until_ms);
    }
    taking
}
