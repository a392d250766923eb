//! The member side: events of connections to members, and operations of transactions on them. Each worker has its own
//! connections.

pub mod bound_connections;
pub mod connect;
pub mod connection;
mod connection_choice;
pub mod http1;
pub mod http2;
pub mod http2_request;
pub mod lost_streams;
pub mod source;
pub mod stream_event;
pub mod tls;
pub mod toward_member;

use weir_connection::member::http1::ReceivedBytes;
use weir_event_loop::EventLoop;
use weir_exchange::arena::ConnectionKey;
use weir_exchange::parts::end::End;
use weir_exchange::parts::failure::{Loss, MemberFailure};
use weir_exchange::parts::phase::Phase;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::transaction::Transaction;
use weir_exchange::transaction::response_data::ForwardResult;

use crate::worker::member::stream_event::StreamEvent;
use crate::worker::router::Router;

impl Router {
    /// Handles a connection that is ready for use: it is open, and the TLS handshake is complete if there is one.
    pub fn member_ready(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let Some(connection) = self.world.members.all.get_mut(key) else { return };
        connection.connecting = false;
        if let Some(http2) = &mut connection.http2 {
            http2.opened();
            io.clear_deadline(connection.token);
            let exchanges = http2.streams.exchanges();
            if exchanges.is_empty() {
                connection.arm(io, io.now_ms());
            }
            for exchange in exchanges {
                self.tell_stream(io, exchange, StreamEvent::Connected);
            }
            if let Some(connection) = self.world.members.all.get_mut(key) {
                connection.watch_exhausted_window(io);
            }
            return;
        }
        let Some(exchange_key) = connection.exchange else {
            return;
        };
        let exchange = match self.exchanges.get_mut(exchange_key) {
            Some(Transaction::Http(exchange)) => exchange,
            Some(Transaction::Relay(_)) => {
                return self.with_any(io, exchange_key, |it, at| it.connected(at));
            }
            Some(Transaction::Tunnel(_)) | None => return,
        };
        exchange.ends.account.times.connected_us = io.clock().now_us();
        if exchange.request.is_whole() {
            let timeout_ms = connection.pool.settings().response_timeout_ms;
            io.set_deadline(connection.token, io.now_ms() + timeout_ms);
        } else {
            io.clear_deadline(connection.token);
        }
    }

    /// Lets the client continue after all data queued for the member was sent.
    pub fn member_drained(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let Some(connection) = self.world.members.all.get_mut(key) else { return };
        connection.count_sent(io);
        if connection.http2.is_some() {
            for exchange in connection.exchanges() {
                self.tell_stream(io, exchange, StreamEvent::Drained(key));
            }
            return;
        }
        let Some(exchange) = connection.exchange else { return };
        self.with_any(io, exchange, |it, at| it.member_took(at));
    }

    /// Processes bytes of a member.
    pub fn member_received(&mut self, io: &mut EventLoop, key: ConnectionKey, bytes: &mut [u8]) {
        let Some(connection) = self.world.members.all.get_mut(key) else { return };
        connection.member.counters.bytes_received.add(bytes.len() as u64);
        if connection.http2.is_some() {
            return self.member_http2_received(io, key, bytes);
        }
        let Some(exchange) = connection.exchange else {
            // Data that was not requested must not be used as the response to the next request.
            return self.world.members.close(io, key);
        };
        let state = match self.exchanges.get(exchange) {
            Some(Transaction::Http(state)) => state,
            Some(Transaction::Tunnel(_)) => {
                return self.with_any(io, exchange, |it, at| {
                    it.with_tunnel(|it| it.member_sent(at, bytes))
                });
            }
            Some(Transaction::Relay(_)) => {
                debug_assert!(false, "nothing is read before the connection is open");
                return self.connection_lost(io, key, MemberFailure::Malformed);
            }
            None => return,
        };
        if let Phase::Asked(attempt, None) = &state.ends.phase
            && io.sockets.sent_bytes(connection.token) == attempt.sent_before
        {
            // A response without a request (RFC 9112 section 9.2). A reused connection is treated as stale.
            let is_kept = attempt.may_be_stale;
            let why = if is_kept { MemberFailure::Abort } else { MemberFailure::Malformed };
            return self.connection_lost(io, key, why);
        }
        match connection.http1.received(bytes, &state.ends.server.limits) {
            ReceivedBytes::Alone => self.member_input(io, key, exchange, bytes),
            ReceivedBytes::Stored => {}
            ReceivedBytes::Collected => {
                let timeout_ms = state.patience.pace.response_body_timeout_ms(&state.ends.server);
                io.set_deadline(connection.token, io.now_ms() + timeout_ms);
            }
            ReceivedBytes::Joined(input) => {
                self.member_input(io, key, exchange, &input);
                io.spares.give(input);
            }
        }
    }

    /// Handles the member's FIN.
    pub fn member_ended(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let Some(connection) = self.world.members.all.get(key) else { return };
        if connection.http2.is_some() {
            return self.connection_lost(io, key, MemberFailure::Abort);
        }
        let Some(exchange_key) = connection.exchange else {
            return self.world.members.close(io, key);
        };
        let exchange = match self.exchanges.get(exchange_key) {
            Some(Transaction::Http(exchange)) => exchange,
            Some(Transaction::Tunnel(_)) => {
                return self
                    .with_any(io, exchange_key, |it, at| it.with_tunnel(|it| it.member_ended(at)));
            }
            Some(Transaction::Relay(_)) => {
                return self.connection_lost(io, key, MemberFailure::Abort);
            }
            None => return,
        };
        match exchange.ends.phase {
            Phase::Asked(_, Some(_)) if connection.http1.may_end() => {
                let (sent_before, nothing) =
                    (self.world.tools.scratch.take(), (&b""[..], &Pieces::whole(0)));
                let passed = self.with(io, exchange_key, |it, at| {
                    it.send_response(at, sent_before, nothing, End::Data)
                });
                if passed == ForwardResult::Over {
                    return;
                }
                if let Some(connection) = self.world.members.all.get_mut(key) {
                    connection.http1.ended();
                }
                self.with(io, exchange_key, |it, at| it.response_done(at, true));
            }
            _ => self.connection_lost(io, key, MemberFailure::Abort),
        }
    }

    /// Handles the deadline of a member connection.
    pub fn member_timer(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let Some(connection) = self.world.members.all.get(key) else { return };
        if connection.http2.is_some() {
            return self.member_http2_timer(io, key);
        }
        let Some(exchange_key) = connection.exchange else {
            return self.world.members.close(io, key);
        };
        if connection.connecting {
            return self.connection_lost(io, key, MemberFailure::ConnectTimeout);
        }
        // A member that has not received the request cannot answer yet, so its progress extends the deadline.
        let Some(exchange) = self.exchanges.get(exchange_key).and_then(Transaction::http) else {
            return;
        };
        let timeout_ms = exchange.patience.pace.client_timeout_ms(&exchange.ends.server);
        let until_ms = io.patience_until_ms(connection.token, timeout_ms);
        if until_ms > io.now_ms() {
            return io.set_deadline(connection.token, until_ms);
        }
        self.connection_lost(io, key, MemberFailure::Timeout);
    }

    /// Handles a lost connection: its exchange is retried elsewhere or ends.
    pub fn connection_lost(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        reason: MemberFailure,
    ) {
        let Some(connection) = self.world.members.all.get(key) else { return };
        if connection.http2.is_some() {
            return self.member_http2_lost(io, key, reason);
        }
        let Some(exchange_key) = connection.exchange else {
            return self.world.members.close(io, key);
        };
        let Some(transaction) = self.exchanges.get(exchange_key) else {
            debug_assert!(false, "an exchange that has ended has let its connection go");
            return self.world.members.close(io, key);
        };
        let attempt = transaction.ends().phase.attempt();
        let sent_before = attempt.map_or(0, |attempt| attempt.sent_before);
        // Before the connection is ready, all sent bytes belong to the TLS handshake.
        let nothing_sent =
            connection.connecting || io.sockets.sent_bytes(connection.token) == sent_before;
        // Another connection gets all of the queued data or none. The PROXY header belongs to the lost connection.
        let mut unsent =
            if nothing_sent { io.sockets.take_queued(connection.token) } else { Vec::new() };
        unsent.drain(..connection.preface_bytes.min(unsent.len()));
        self.world.members.close(io, key);
        let loss = Loss { nothing_sent, unsent, ..Loss::of(reason) };
        self.with_any(io, exchange_key, |it, at| it.member_lost(at, loss));
    }
}
