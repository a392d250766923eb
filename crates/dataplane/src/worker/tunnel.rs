//! After 101, or of a connection that is relayed: bytes pass both ways, each direction with its own end. Either end may
//! be a stream of HTTP/2; the member's is in [`super::member_tunnel`].

use std::io::IoSlice;

use weir_event_loop::{EventLoop, Token};
use weir_http::h1::{Persistence, ResponseForward, write_response_head};
use weir_http::h2::SendKind;
use weir_http::h2::message::write_response;
use weir_http::message::{Framing, ResponseHead};

use super::Worker;
use super::body::Pieces;
use super::end::End;
use super::exchange::{MemberFailure, Phase};
use super::websocket::{Handshake, write_accept};
use crate::access_log::Termination;
use crate::arena::ExchangeKey;

impl Worker {
    /// The member agreed to change the protocol.
    pub fn begin_tunnel(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        head: &ResponseHead,
        input: &[u8],
    ) {
        self.response_began(io, key, head.status);
        let mut edits = std::mem::take(&mut self.world.response_edits);
        self.edit_response(key, head, input, &mut edits);
        let Some(exchange) = self.exchanges.get(key) else { return };
        if let (Some(Handshake::Upgrade(client_key)), Some(_)) =
            (exchange.websocket, &exchange.member_stream)
        {
            // The member has had no key to answer.
            edits.set(b"Sec-WebSocket-Accept", |out| write_accept(&client_key, out));
        }
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        exchange.phase = Phase::Tunnel;
        exchange.keep_alive = false;
        let counters = exchange.server.live.counters.of(self.world.id);
        counters.tunnels.add(1);
        let forward = ResponseForward {
            framing: Framing::None,
            client_version: exchange.version,
            persistence: Persistence::Upgrade,
            date: None,
        };
        let client_key = exchange.client;
        let head_bytes = if exchange.stream.is_some() {
            self.send_stream_head(key, SendKind::Response, false, |lines| {
                write_response(head, input, &forward, &edits, lines);
            })
        } else {
            let mut out = self.world.scratch.take();
            write_response_head(head, input, &forward, &edits, &mut out);
            let bytes = out.len();
            if let Some(client) = self.world.clients.get(client_key) {
                io.send(client.token, &[IoSlice::new(&out)]);
            }
            self.world.scratch.give(out);
            bytes
        };
        self.world.response_edits = edits;
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        exchange.count_sent(self.world.id, head_bytes);
        exchange.head_bytes_sent += head_bytes as u64;
        self.start_tunnel(io, key);
    }

    /// Both ends are there: what the client has sent ahead goes first.
    pub fn start_tunnel(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        let client_key = exchange.client;
        // That of a try before.
        exchange.failure = None;
        self.clear_member_deadline(io, key);
        self.tunnel_is_alive(io, key);
        self.let_client_send(io, key);
        let Some(exchange) = self.exchanges.get(key) else { return };
        let has_ended = exchange.client_ended && exchange.stream.is_some();
        if has_ended || self.world.clients.get(client_key).is_some_and(|client| client.ended) {
            self.tunnel_client_ended(io, key);
        }
    }

    /// Bytes from the client.
    pub fn tunnel_from_client(&mut self, io: &mut EventLoop, key: ExchangeKey, bytes: &[u8]) {
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        let Some(connection) = exchange.connection else {
            return;
        };
        exchange.bytes_received += bytes.len() as u64;
        let is_on_stream = exchange.stream.is_some();
        let is_to_stream = exchange.member_stream.is_some();
        let Some((client, member)) = self.tunnel_tokens(key) else {
            return;
        };
        if is_to_stream {
            self.tunnel_to_stream(io, key, bytes, End::No);
            if !is_on_stream && self.is_member_backed_up(io, key) {
                io.pause(client);
            }
        } else if is_on_stream {
            // Its window stays shut while the member does not take it.
            io.send(member, &[IoSlice::new(bytes)]);
        } else {
            relay(io, client, member, bytes);
        }
        self.desk(io).count_sent_to_member(connection);
        self.tunnel_is_alive(io, key);
    }

    /// Bytes from the member.
    pub fn tunnel_from_member(&mut self, io: &mut EventLoop, key: ExchangeKey, bytes: &[u8]) {
        let now_us = io.clock().now_us();
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        exchange.note_first_byte(now_us);
        let Some((client, member)) = self.tunnel_tokens(key) else {
            return;
        };
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        if exchange.stream.is_some() {
            self.deliver(io, key, bytes, &Pieces::whole(bytes.len()), End::No);
            if self.is_client_behind(io, key) {
                self.pause_member(io, key);
            }
        } else {
            exchange.count_sent(self.world.id, bytes.len());
            if exchange.member_stream.is_some() {
                // Its window stays shut while the client does not take it.
                io.send(client, &[IoSlice::new(bytes)]);
            } else {
                relay(io, member, client, bytes);
            }
        }
        self.tunnel_is_alive(io, key);
    }

    /// Something has passed, or was taken.
    pub fn tunnel_is_alive(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get(key) else { return };
        let timeout_ms = exchange.server.tunnel_timeout_ms();
        self.set_client_deadline(io, key, io.now_ms() + timeout_ms);
    }

    /// No byte has come from either end for a while. One that still takes what it was sent is not idle.
    pub fn tunnel_timer(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get(key) else { return };
        let timeout_ms = exchange.server.tunnel_timeout_ms();
        let why = match exchange.is_relay() {
            true => Termination::IdleTimeout,
            false => Termination::TunnelTimeout,
        };
        let of_client_ms = self.client_patience_until_ms(io, key, timeout_ms);
        let until_ms = of_client_ms.max(self.member_patience_until_ms(io, key, timeout_ms));
        if until_ms > io.now_ms() {
            return self.set_client_deadline(io, key, until_ms);
        }
        self.truncate(io, key, why);
    }

    /// Until when the client has time to take more of what it was sent. What it takes of other streams says nothing,
    /// unless this one waits for their turn.
    fn client_patience_until_ms(
        &self,
        io: &mut EventLoop,
        key: ExchangeKey,
        timeout_ms: u64,
    ) -> u64 {
        let Some(exchange) = self.exchanges.get(key) else { return 0 };
        let Some(client) = self.world.clients.get(exchange.client) else { return 0 };
        match (self.world.stream(exchange), &client.http2) {
            (Some(stream), Some(http2))
                if stream.out.is_behind()
                    && http2.frames.connection.data_allowance(stream.out.id) == 0 =>
            {
                self.stalled_since_ms(key).map_or(0, |since_ms| since_ms + timeout_ms)
            }
            (Some(stream), _) if !stream.holds_up_member => 0,
            _ => io.patience_until_ms(client.token, timeout_ms),
        }
    }

    /// Until when the member has time to take more of what it was sent. What it takes on a connection that others
    /// share says something only of a tunnel that waits for it.
    fn member_patience_until_ms(
        &self,
        io: &mut EventLoop,
        key: ExchangeKey,
        timeout_ms: u64,
    ) -> u64 {
        let Some(exchange) = self.exchanges.get(key) else { return 0 };
        let Some(connection) = exchange.connection else { return 0 };
        let Some(connection) = self.world.members.get(connection) else { return 0 };
        match (self.world.member_stream(exchange), &connection.http2) {
            (Some(stream), Some(http2)) if stream.out.is_behind() => {
                let since_ms = http2.frames.connection.stalled_since_ms(stream.out.id);
                since_ms.map_or(0, |since_ms| since_ms + timeout_ms)
            }
            (Some(stream), _) if !stream.was_backed_up => 0,
            _ => io.patience_until_ms(connection.token, timeout_ms),
        }
    }

    /// The client took everything that was queued for it.
    pub fn tunnel_client_drained(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        // A connection that many streams share says nothing of those that had nothing on it.
        let stream = self.exchanges.get(key).and_then(|it| self.world.stream(it));
        if stream.is_none_or(|stream| stream.holds_up_member) {
            self.tunnel_is_alive(io, key);
        }
        self.resume_member(io, key);
        let Some(exchange) = self.exchanges.get(key) else { return };
        if exchange.member_ended {
            self.tell_client_of_end(io, key);
        }
        self.tunnel_may_end(io, key);
    }

    /// The member took everything that was queued for it.
    pub fn tunnel_member_drained(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        self.tunnel_is_alive(io, key);
        self.let_client_send(io, key);
        let Some(exchange) = self.exchanges.get(key) else { return };
        if exchange.client_ended {
            self.tell_member_of_end(io, key);
        }
        self.tunnel_may_end(io, key);
    }

    /// The client sends nothing more: the member is told so, once it has taken everything.
    pub fn tunnel_client_ended(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        if let Some(exchange) = self.exchanges.get_mut(key) {
            exchange.client_ended = true;
        }
        self.tell_member_of_end(io, key);
        self.tunnel_may_end(io, key);
    }

    /// The client has ended: the member learns it behind what it was sent, of a socket when it has taken that.
    fn tell_member_of_end(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get(key) else { return };
        if exchange.member_stream.is_some() {
            self.tunnel_to_stream(io, key, b"", End::Data);
        } else if let Some((_, member)) = self.tunnel_tokens(key)
            && io.queued(member) == 0
        {
            io.shut_write(member);
        }
    }

    /// The member sends nothing more: the client is told so, once it has taken everything.
    pub fn tunnel_member_ended(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        if let Some(exchange) = self.exchanges.get_mut(key) {
            exchange.member_ended = true;
        }
        if !self.is_client_behind(io, key) {
            self.tell_client_of_end(io, key);
        }
        self.tunnel_may_end(io, key);
    }

    /// The client has taken everything: now it learns that nothing follows.
    fn tell_client_of_end(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        if let Some(stream) = self.world.stream_mut(exchange) {
            if !std::mem::replace(&mut stream.is_end_told, true) {
                self.deliver(io, key, b"", &Pieces::whole(0), End::Data);
            }
        } else {
            let Some(client) = self.world.clients.get(exchange.client) else { return };
            io.shut_write(client.token);
        }
    }

    /// Both directions have ended and everything is delivered: so has the tunnel. A stream of the member is left before
    /// that, when it is over: what becomes of its connection does not matter to what the client has yet to take.
    pub fn tunnel_may_end(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get(key) else { return };
        if !exchange.client_ended || !exchange.member_ended {
            return;
        }
        let (client_key, is_on_stream) = (exchange.client, exchange.stream.is_some());
        let why = exchange.failure.map_or(Termination::Complete, MemberFailure::termination);
        let is_member_behind = match (exchange.connection, self.world.member_stream(exchange)) {
            (_, Some(stream)) => stream.out.is_behind(),
            (Some(connection), None) => {
                let connection = self.world.members.get(connection);
                connection.is_some_and(|connection| io.queued(connection.token) > 0)
            }
            // It has left before its client did.
            (None, None) => false,
        };
        if is_member_behind {
            return;
        }
        if self.is_client_behind(io, key) {
            let Some(exchange) = self.exchanges.get(key) else { return };
            if exchange.member_stream.is_some() {
                self.leave_stream(io, key);
                self.leave_member(key, None, io.now_ms());
            }
            return;
        }
        self.abandon(io, key, why);
        if !is_on_stream {
            self.desk(io).leave(client_key, true);
        }
    }

    fn tunnel_tokens(&self, key: ExchangeKey) -> Option<(Token, Token)> {
        let exchange = self.exchanges.get(key)?;
        let connection = exchange.connection?;
        let client = self.world.clients.get(exchange.client)?;
        let connection = self.world.members.get(connection)?;
        Some((client.token, connection.token))
    }
}

/// Sends bytes across; a side that does not take them stops the other from being read.
fn relay(io: &mut EventLoop, from: Token, to: Token, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    io.send(to, &[IoSlice::new(bytes)]);
    if io.queued(to) > 0 {
        io.pause(from);
    }
}
