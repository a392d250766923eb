//! After 101, or of a connection that is relayed: bytes pass both ways, each direction with its own end. Either end may
//! be a stream of HTTP/2; the member's is in [`super::member_tunnel`].

use std::io::IoSlice;

use weir_event_loop::{EventLoop, Token};
use weir_http::h1::{Persistence, ResponseForward, write_response_head};
use weir_http::h2::SendKind;
use weir_http::h2::message::write_response;
use weir_http::message::{Framing, ResponseHead};

use super::body::Pieces;
use super::end::End;
use super::exchange::{Exchange, MemberFailure, Phase};
use super::websocket::{Handshake, write_accept};
use super::world::Desk;
use crate::access_log::Termination;

impl Exchange {
    /// The member agreed to change the protocol.
    pub fn begin_tunnel(&mut self, at: &mut Desk<'_>, head: &ResponseHead, input: &[u8]) {
        self.response_began(at, head.status);
        let mut edits = std::mem::take(&mut at.world.response_edits);
        self.edit_response(at, head, input, &mut edits);
        if self.is_over() {
            return;
        }
        if let (Some(Handshake::Upgrade(client_key)), Some(_)) =
            (self.websocket, &self.member_stream)
        {
            // The member has had no self.key to answer.
            edits.set(b"Sec-WebSocket-Accept", |out| write_accept(&client_key, out));
        }
        if self.is_over() {
            return;
        }
        self.phase = Phase::Tunnel;
        self.keep_alive = false;
        let counters = self.server.live.counters.of(at.world.id);
        counters.tunnels.add(1);
        let forward = ResponseForward {
            framing: Framing::None,
            client_version: self.version,
            persistence: Persistence::Upgrade,
            date: None,
        };
        let client_key = self.client;
        let head_bytes = if self.stream.is_some() {
            self.send_stream_head(at, SendKind::Response, false, |lines| {
                write_response(head, input, &forward, &edits, lines);
            })
        } else {
            let mut out = at.world.scratch.take();
            write_response_head(head, input, &forward, &edits, &mut out);
            let bytes = out.len();
            if let Some(client) = at.world.clients.get(client_key) {
                at.io.send(client.token, &[IoSlice::new(&out)]);
            }
            at.world.scratch.give(out);
            bytes
        };
        at.world.response_edits = edits;
        if self.is_over() {
            return;
        }
        self.count_sent(at.world.id, head_bytes);
        self.head_bytes_sent += head_bytes as u64;
        self.start_tunnel(at);
    }

    /// Both ends are there: what the client has sent ahead goes first.
    pub fn start_tunnel(&mut self, at: &mut Desk<'_>) {
        if self.is_over() {
            return;
        }
        // That of a try before.
        self.failure = None;
        self.clear_member_deadline(at);
        self.tunnel_is_alive(at);
        self.let_client_send(at);
        if self.is_over() {
            return;
        }
        if self.stream.is_none() {
            return self.heed_end(at);
        }
        if self.client_ended {
            self.tunnel_client_ended(at);
        }
    }

    /// Bytes from the client.
    pub fn tunnel_from_client(&mut self, at: &mut Desk<'_>, bytes: &[u8]) {
        if self.is_over() {
            return;
        }
        let Some(connection) = self.connection else {
            return;
        };
        self.bytes_received += bytes.len() as u64;
        let is_on_stream = self.stream.is_some();
        let is_to_stream = self.member_stream.is_some();
        let Some((client, member)) = self.tunnel_tokens(at) else {
            return;
        };
        if is_to_stream {
            self.tunnel_to_stream(at, bytes, End::No);
            if !is_on_stream && self.is_member_backed_up(at) {
                at.io.pause(client);
            }
        } else if is_on_stream {
            // Its window stays shut while the member does not take it.
            at.io.send(member, &[IoSlice::new(bytes)]);
        } else {
            relay(at.io, client, member, bytes);
        }
        at.count_sent_to_member(connection);
        self.tunnel_is_alive(at);
    }

    /// Bytes from the member.
    pub fn tunnel_from_member(&mut self, at: &mut Desk<'_>, bytes: &[u8]) {
        let now_us = at.io.clock().now_us();
        if self.is_over() {
            return;
        }
        self.note_first_byte(now_us);
        let Some((client, member)) = self.tunnel_tokens(at) else {
            return;
        };
        if self.is_over() {
            return;
        }
        if self.stream.is_some() {
            self.deliver(at, bytes, &Pieces::whole(bytes.len()), End::No);
            if self.is_client_behind(at) {
                self.pause_member(at);
            }
        } else {
            self.count_sent(at.world.id, bytes.len());
            if self.member_stream.is_some() {
                // Its window stays shut while the client does not take it.
                at.io.send(client, &[IoSlice::new(bytes)]);
            } else {
                relay(at.io, member, client, bytes);
            }
        }
        self.tunnel_is_alive(at);
    }

    /// Something has passed, or was taken.
    pub fn tunnel_is_alive(&mut self, at: &mut Desk<'_>) {
        if self.is_over() {
            return;
        }
        let timeout_ms = self.server.tunnel_timeout_ms();
        self.set_client_deadline(at, at.io.now_ms() + timeout_ms);
    }

    /// No byte has come from either end for a while. One that still takes what it was sent is not idle.
    pub fn tunnel_timer(&mut self, at: &mut Desk<'_>) {
        if self.is_over() {
            return;
        }
        let timeout_ms = self.server.tunnel_timeout_ms();
        let why = match self.is_relay() {
            true => Termination::IdleTimeout,
            false => Termination::TunnelTimeout,
        };
        let of_client_ms = self.client_patience_until_ms(at, timeout_ms);
        let until_ms = of_client_ms.max(self.member_patience_until_ms(at, timeout_ms));
        if until_ms > at.io.now_ms() {
            return self.set_client_deadline(at, until_ms);
        }
        self.truncate(at, why);
    }

    /// Until when the client has time to take more of what it was sent. What it takes of other streams says nothing,
    /// unless this one waits for their turn.
    fn client_patience_until_ms(&self, at: &mut Desk<'_>, timeout_ms: u64) -> u64 {
        if self.is_over() {
            return 0;
        }
        let Some(client) = at.world.clients.get(self.client) else { return 0 };
        match (at.world.stream(self), &client.http2) {
            (Some(stream), Some(http2))
                if stream.out.is_behind()
                    && http2.frames.connection.data_allowance(stream.out.id) == 0 =>
            {
                self.stalled_since_ms(at).map_or(0, |since_ms| since_ms + timeout_ms)
            }
            (Some(stream), _) if !stream.holds_up_member => 0,
            _ => at.io.patience_until_ms(client.token, timeout_ms),
        }
    }

    /// Until when the member has time to take more of what it was sent. What it takes on a connection that others
    /// share says something only of a tunnel that waits for it.
    fn member_patience_until_ms(&self, at: &mut Desk<'_>, timeout_ms: u64) -> u64 {
        if self.is_over() {
            return 0;
        }
        let Some(connection) = self.connection else { return 0 };
        let Some(connection) = at.world.members.get(connection) else { return 0 };
        match (at.world.member_stream(self), &connection.http2) {
            (Some(stream), Some(http2)) if stream.out.is_behind() => {
                let since_ms = http2.frames.connection.stalled_since_ms(stream.out.id);
                since_ms.map_or(0, |since_ms| since_ms + timeout_ms)
            }
            (Some(stream), _) if !stream.was_backed_up => 0,
            _ => at.io.patience_until_ms(connection.token, timeout_ms),
        }
    }

    /// The client took everything that was queued for it.
    pub fn tunnel_client_drained(&mut self, at: &mut Desk<'_>) {
        // A connection that many streams share says nothing of those that had nothing on it.
        let stream = at.world.stream(self);
        if stream.is_none_or(|stream| stream.holds_up_member) {
            self.tunnel_is_alive(at);
        }
        self.resume_member(at);
        if self.is_over() {
            return;
        }
        if self.member_ended {
            self.tell_client_of_end(at);
        }
        self.tunnel_may_end(at);
    }

    /// The member took everything that was queued for it.
    pub fn tunnel_member_drained(&mut self, at: &mut Desk<'_>) {
        self.tunnel_is_alive(at);
        self.let_client_send(at);
        if self.is_over() {
            return;
        }
        if self.client_ended {
            self.tell_member_of_end(at);
        }
        self.tunnel_may_end(at);
    }

    /// All that its client has sent was looked at, and its end came behind that.
    pub fn heed_end(&mut self, at: &mut Desk<'_>) {
        let client = at.world.clients.get(self.client);
        let has_ended = client.is_some_and(|client| client.ended && !client.has_input());
        if has_ended && self.phase == Phase::Tunnel && !self.client_ended {
            self.tunnel_client_ended(at);
        }
    }

    /// The client sends nothing more: the member is told so, once it has taken everything.
    pub fn tunnel_client_ended(&mut self, at: &mut Desk<'_>) {
        if !self.is_over() {
            self.client_ended = true;
        }
        self.tell_member_of_end(at);
        self.tunnel_may_end(at);
    }

    /// The client has ended: the member learns it behind what it was sent, of a socket when it has taken that.
    fn tell_member_of_end(&mut self, at: &mut Desk<'_>) {
        if self.is_over() {
            return;
        }
        if self.member_stream.is_some() {
            self.tunnel_to_stream(at, b"", End::Data);
        } else if let Some((_, member)) = self.tunnel_tokens(at)
            && at.io.queued(member) == 0
        {
            at.io.shut_write(member);
        }
    }

    /// The member sends nothing more: the client is told so, once it has taken everything.
    pub fn tunnel_member_ended(&mut self, at: &mut Desk<'_>) {
        if !self.is_over() {
            self.member_ended = true;
        }
        if !self.is_client_behind(at) {
            self.tell_client_of_end(at);
        }
        self.tunnel_may_end(at);
    }

    /// The client has taken everything: now it learns that nothing follows.
    fn tell_client_of_end(&mut self, at: &mut Desk<'_>) {
        if self.is_over() {
            return;
        }
        if let Some(stream) = at.world.stream_mut(self) {
            if !std::mem::replace(&mut stream.is_end_told, true) {
                self.deliver(at, b"", &Pieces::whole(0), End::Data);
            }
        } else {
            let Some(client) = at.world.clients.get(self.client) else { return };
            at.io.shut_write(client.token);
        }
    }

    /// Both directions have ended and everything is delivered: so has the tunnel. A stream of the member is left before
    /// that, when it is over: what becomes of its connection does not matter to what the client has yet to take.
    pub fn tunnel_may_end(&mut self, at: &mut Desk<'_>) {
        if self.is_over() {
            return;
        }
        if !self.client_ended || !self.member_ended {
            return;
        }
        let (client_key, is_on_stream) = (self.client, self.stream.is_some());
        let why = self.failure.map_or(Termination::Complete, MemberFailure::termination);
        let is_member_behind = match (self.connection, at.world.member_stream(self)) {
            (_, Some(stream)) => stream.out.is_behind(),
            (Some(connection), None) => {
                let connection = at.world.members.get(connection);
                connection.is_some_and(|connection| at.io.queued(connection.token) > 0)
            }
            // It has left before its client did.
            (None, None) => false,
        };
        if is_member_behind {
            return;
        }
        if self.is_client_behind(at) {
            if self.is_over() {
                return;
            }
            if self.member_stream.is_some() {
                self.leave_stream(at);
                self.leave_member(at, None, at.io.now_ms());
            }
            return;
        }
        self.abandon(at, why);
        if !is_on_stream {
            at.leave(client_key, true);
        }
    }

    fn tunnel_tokens(&self, at: &mut Desk<'_>) -> Option<(Token, Token)> {
        let connection = self.connection?;
        let client = at.world.clients.get(self.client)?;
        let connection = at.world.members.get(connection)?;
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
