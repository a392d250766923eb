//! After 101, or of a connection that is relayed: bytes pass both ways, each direction with its own end.

use std::io::IoSlice;

use weir_http::h1::{Persistence, ResponseForward, write_response_head};
use weir_http::message::{Framing, ResponseHead};

use super::Worker;
use super::exchange::Phase;
use crate::access_log::Termination;
use crate::event_loop::{EventLoop, Token};

impl Worker {
    /// The member agreed to change the protocol.
    pub fn begin_tunnel(
        &mut self,
        io: &mut EventLoop,
        connection: u32,
        key: u32,
        head: &ResponseHead,
        input: &[u8],
    ) {
        self.response_began(io, key, head.status);
        let mut edits = std::mem::take(&mut self.response_edits);
        self.edit_response(key, head, input, &mut edits);
        let exchange = &mut self.exchanges[key as usize];
        exchange.phase = Phase::Tunnel;
        exchange.keep_alive = false;
        let counters = exchange.server.live.counters.of(self.id);
        counters.tunnels.add(1);
        let forward = ResponseForward {
            framing: Framing::None,
            client_version: exchange.version,
            persistence: Persistence::Upgrade,
            date: None,
        };
        self.out.clear();
        write_response_head(head, input, &forward, &edits, &mut self.out);
        self.response_edits = edits;
        let client = &self.clients[exchange.client as usize];
        io.send(client.token, &[IoSlice::new(&self.out)]);
        exchange.bytes_sent += self.out.len() as u64;
        exchange.head_bytes_sent += self.out.len() as u64;
        counters.bytes_sent.add(self.out.len() as u64);
        self.start_tunnel(io, connection, key);
    }

    /// Both ends are there: what the client has sent ahead goes first.
    pub fn start_tunnel(&mut self, io: &mut EventLoop, connection: u32, key: u32) {
        let exchange = &self.exchanges[key as usize];
        let client_key = exchange.client;
        let client = &self.clients[client_key as usize];
        let (token, has_input) = (client.token, client.has_input());
        io.clear_deadline(self.members[connection as usize].token);
        io.set_deadline(token, io.now_ms() + exchange.server.tunnel_timeout_ms());
        io.resume(token);
        if has_input {
            // What the client sent ahead belongs to the new protocol.
            self.client_continue(io, client_key);
        }
        if self.clients[client_key as usize].ended {
            self.tunnel_client_ended(io, key);
        }
    }

    /// Bytes from the client.
    pub fn tunnel_from_client(&mut self, io: &mut EventLoop, key: u32, bytes: &[u8]) {
        let exchange = &mut self.exchanges[key as usize];
        let Some(connection) = exchange.connection else {
            return;
        };
        exchange.bytes_received += bytes.len() as u64;
        let Some((client, member)) = self.tunnel_tokens(key) else {
            return;
        };
        relay(io, client, member, bytes);
        self.count_sent_to_member(io, connection);
        self.tunnel_is_alive(io, key);
    }

    /// Bytes from the member.
    pub fn tunnel_from_member(&mut self, io: &mut EventLoop, key: u32, bytes: &[u8]) {
        let now_us = io.clock().now_us();
        let exchange = &mut self.exchanges[key as usize];
        exchange.note_first_byte(now_us);
        exchange.bytes_sent += bytes.len() as u64;
        exchange.server.live.counters.of(self.id).bytes_sent.add(bytes.len() as u64);
        let Some((client, member)) = self.tunnel_tokens(key) else {
            return;
        };
        relay(io, member, client, bytes);
        self.tunnel_is_alive(io, key);
    }

    fn tunnel_is_alive(&mut self, io: &mut EventLoop, key: u32) {
        let exchange = &self.exchanges[key as usize];
        let token = self.clients[exchange.client as usize].token;
        io.set_deadline(token, io.now_ms() + exchange.server.tunnel_timeout_ms());
    }

    /// No byte has come from either end for a while. One that still takes what it was sent is not idle.
    pub fn tunnel_timer(&mut self, io: &mut EventLoop, key: u32) {
        let exchange = &self.exchanges[key as usize];
        let timeout_ms = exchange.server.tunnel_timeout_ms();
        let why = match exchange.is_relay() {
            true => Termination::IdleTimeout,
            false => Termination::TunnelTimeout,
        };
        if let Some((client, member)) = self.tunnel_tokens(key) {
            let until_ms = [client, member].map(|end| io.patience_until_ms(end, timeout_ms));
            let until_ms = until_ms[0].max(until_ms[1]);
            if until_ms > io.now_ms() {
                return io.set_deadline(client, until_ms);
            }
        }
        self.truncate(io, key, why);
    }

    /// The client took everything that was queued for it.
    pub fn tunnel_client_drained(&mut self, io: &mut EventLoop, key: u32) {
        let Some((client, member)) = self.tunnel_tokens(key) else {
            return;
        };
        io.resume(member);
        if self.exchanges[key as usize].member_ended {
            io.shut_write(client);
        }
        self.tunnel_may_end(io, key);
    }

    /// The member took everything that was queued for it.
    pub fn tunnel_member_drained(&mut self, io: &mut EventLoop, key: u32) {
        let Some((client, member)) = self.tunnel_tokens(key) else {
            return;
        };
        io.resume(client);
        if self.exchanges[key as usize].client_ended {
            io.shut_write(member);
        }
        self.tunnel_may_end(io, key);
    }

    /// The client sends nothing more: the member is told so, once it has taken everything.
    pub fn tunnel_client_ended(&mut self, io: &mut EventLoop, key: u32) {
        self.exchanges[key as usize].client_ended = true;
        let Some((_, member)) = self.tunnel_tokens(key) else {
            return;
        };
        if io.queued(member) == 0 {
            io.shut_write(member);
        }
        self.tunnel_may_end(io, key);
    }

    /// The member sends nothing more: the client is told so, once it has taken everything.
    pub fn tunnel_member_ended(&mut self, io: &mut EventLoop, key: u32) {
        self.exchanges[key as usize].member_ended = true;
        let Some((client, _)) = self.tunnel_tokens(key) else {
            return;
        };
        if io.queued(client) == 0 {
            io.shut_write(client);
        }
        self.tunnel_may_end(io, key);
    }

    /// Both directions have ended and everything is delivered: so has the tunnel.
    fn tunnel_may_end(&mut self, io: &mut EventLoop, key: u32) {
        let exchange = &self.exchanges[key as usize];
        if !exchange.client_ended || !exchange.member_ended {
            return;
        }
        let Some((client, member)) = self.tunnel_tokens(key) else {
            return;
        };
        if io.queued(client) == 0 && io.queued(member) == 0 {
            let client_key = self.exchanges[key as usize].client;
            self.abandon(io, key, Termination::Complete);
            self.close_client(io, client_key);
        }
    }

    fn tunnel_tokens(&self, key: u32) -> Option<(Token, Token)> {
        let exchange = &self.exchanges[key as usize];
        let connection = exchange.connection?;
        let client = self.clients.get(exchange.client as usize)?;
        Some((client.token, self.members[connection as usize].token))
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
