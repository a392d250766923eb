//! What an exchange asks of its member's connection, whichever version that speaks: of HTTP/1 the exchange has
//! the connection for itself, of HTTP/2 a stream of it.

use std::io::IoSlice;

use weir_http::h1::{LAST_CHUNK, write_trailers};
use weir_http::message::Framing;

use super::Worker;
use super::body::{self, Pieces};
use super::exchange::{Phase, REPLAY_BYTES_MAX};
use super::frames::End;
use crate::event_loop::EventLoop;

impl Worker {
    /// Sends the head of a request that has no body.
    pub fn send_request_head(&mut self, io: &mut EventLoop, key: u32) {
        let exchange = &mut self.exchanges[key as usize];
        let Some(connection_key) = exchange.connection.filter(|_| !exchange.is_relay()) else {
            return;
        };
        exchange.request_sent = true;
        if exchange.member_stream.is_some() && exchange.websocket.is_some() {
            self.ask_for_tunnel(key);
        } else if exchange.member_stream.is_some() {
            self.move_if_full(io, key);
            self.open_member_stream(key, true);
        } else {
            let token = self.members[connection_key as usize].token;
            io.send(token, &[IoSlice::new(&exchange.request)]);
            self.count_sent_to_member(io, connection_key);
        }
        self.request_handed_over(io, key);
    }

    /// Sends pieces of a request's body and its end, with the head before them if it is still here.
    pub fn pass_request_body(
        &mut self,
        io: &mut EventLoop,
        key: u32,
        input: &[u8],
        pieces: &Pieces,
        end: End<'_>,
    ) {
        let exchange = &mut self.exchanges[key as usize];
        let Some(connection) = exchange.connection else {
            return;
        };
        if exchange.member_stream.is_some() {
            return self.pass_on_stream(io, key, input, pieces, end);
        }
        let token = self.members[connection as usize].token;
        let framing = exchange.request_framing;
        let mut tail = std::mem::take(&mut self.tail);
        tail.clear();
        if framing == Framing::Chunked {
            match end {
                End::No => {}
                End::Data => tail.extend_from_slice(LAST_CHUNK),
                End::Trailers(fields, text) => write_trailers(fields, text, &mut tail),
            }
        }
        let small = pieces.data_bytes <= body::COALESCE_BYTES
            && exchange.replayable
            && exchange.request.len() < REPLAY_BYTES_MAX;
        let first = !exchange.request_sent;
        exchange.request_sent = true;
        let mut out = std::mem::take(if small { &mut exchange.request } else { &mut self.out });
        let already = if small && !first { out.len() } else { 0 };
        if !small {
            exchange.replayable = false;
            out.clear();
            if first {
                out.extend_from_slice(&exchange.request);
            }
        }
        if already == 0 {
            body::send(&mut out, framing, input, pieces, &tail, |parts| io.send(token, parts));
        } else {
            // What went before stays in front, for sending it all again.
            let mut next = io.take_buffer();
            body::send(&mut next, framing, input, pieces, &tail, |parts| io.send(token, parts));
            out.extend_from_slice(&next);
            io.give_buffer(next);
        }
        self.tail = tail;
        self.count_sent_to_member(io, connection);
        if small {
            self.exchanges[key as usize].request = out;
        } else {
            self.out = out;
        }
    }

    /// Counts the bytes that a member's socket has taken since it was last looked at.
    pub fn count_sent_to_member(&mut self, io: &mut EventLoop, key: u32) {
        let connection = &mut self.members[key as usize];
        let sent = io.sent_bytes(connection.token);
        let more = sent - std::mem::replace(&mut connection.counted_bytes, sent);
        connection.member.live.counters.of(self.id).bytes_sent.add(more);
    }

    /// The whole request is with the member connection: the response is waited for.
    pub fn request_handed_over(&mut self, io: &mut EventLoop, key: u32) {
        let exchange = &mut self.exchanges[key as usize];
        let Some(connection) = exchange.connection else {
            return;
        };
        let connection = &self.members[connection as usize];
        let awaits_settings = exchange.awaits_settings();
        if exchange.request_done && exchange.asked_us == 0 && !awaits_settings {
            exchange.asked_us = io.clock().now_us();
        }
        let is_head_awaited = exchange.request_done && exchange.phase == Phase::AwaitHead;
        let is_connecting = connection.connecting;
        let settings = connection.pool.settings();
        let timeout_ms = match awaits_settings {
            true => settings.connect_timeout_ms,
            false => settings.response_timeout_ms,
        };
        // While the client does not take interim responses, the member is not read: nor is it waited for. What else waits on
        // a connection that many streams share says nothing.
        let is_held_up = match &exchange.stream {
            Some(stream) => stream.holds_up_member,
            None => self.is_client_behind(io, key),
        };
        let awaited = is_head_awaited && !is_held_up;
        if awaited && !is_connecting {
            self.set_member_deadline(io, key, io.now_ms() + timeout_ms);
        }
    }

    /// Whether the member does not take what the client sends as fast as it comes. Sets the time in
    /// which it has to take some of it.
    pub fn is_member_backed_up(&mut self, io: &mut EventLoop, key: u32) -> bool {
        let exchange = &self.exchanges[key as usize];
        let Some(connection) = exchange.connection else {
            return false;
        };
        let connection = &self.members[connection as usize];
        let is_stream_behind =
            exchange.member_stream.as_ref().is_some_and(|stream| stream.out.is_behind());
        let backed_up = is_stream_behind || io.queued(connection.token) > 0;
        // What a tunnel's end does not take in time is a matter of `tunnel_timeout`.
        let has_time = connection.connecting || exchange.phase == Phase::Tunnel;
        let timeout_ms = exchange.server.http.body_timeout_ms;
        if backed_up && let Some(stream) = &mut self.exchanges[key as usize].member_stream {
            stream.was_backed_up = true;
        }
        if backed_up && !has_time {
            self.set_member_deadline(io, key, io.now_ms() + timeout_ms);
        }
        backed_up
    }

    /// The member has room again for a request body that is still coming.
    pub fn request_goes_on(&mut self, io: &mut EventLoop, key: u32) {
        let timeout_ms = self.exchanges[key as usize].server.http.body_timeout_ms;
        self.set_client_deadline(io, key, io.now_ms() + timeout_ms);
        self.let_client_send(io, key);
    }

    /// The member must have done something by then.
    pub fn set_member_deadline(&mut self, io: &mut EventLoop, key: u32, at_ms: u64) {
        let exchange = &mut self.exchanges[key as usize];
        let Some(connection) = exchange.connection else { return };
        match &mut exchange.member_stream {
            None => io.set_deadline(self.members[connection as usize].token, at_ms),
            Some(stream) => {
                stream.deadline_ms = Some(at_ms);
                self.arm_member(io, connection, at_ms);
            }
        }
    }

    /// The member need not do anything.
    pub fn clear_member_deadline(&mut self, io: &mut EventLoop, key: u32) {
        let exchange = &mut self.exchanges[key as usize];
        let Some(connection) = exchange.connection else { return };
        match &mut exchange.member_stream {
            None => io.clear_deadline(self.members[connection as usize].token),
            Some(stream) => stream.deadline_ms = None,
        }
    }

    /// The client does not take what the member sends: it must wait. On a stream its window does that.
    pub fn pause_member(&mut self, io: &mut EventLoop, key: u32) {
        let exchange = &mut self.exchanges[key as usize];
        if let Some(stream) = &mut exchange.stream {
            stream.holds_up_member = true;
        }
        if let (Some(connection), None) = (exchange.connection, &exchange.member_stream) {
            io.pause(self.members[connection as usize].token);
        }
    }

    /// The client has taken everything: the member may go on.
    pub fn resume_member(&mut self, io: &mut EventLoop, key: u32) {
        let exchange = &mut self.exchanges[key as usize];
        if let Some(stream) = &mut exchange.stream {
            stream.holds_up_member = false;
        }
        let Some(connection) = exchange.connection else { return };
        match exchange.member_stream {
            None => io.resume(self.members[connection as usize].token),
            Some(_) => self.give_member_window(key),
        }
    }
}
