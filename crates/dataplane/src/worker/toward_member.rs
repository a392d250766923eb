//! What an exchange asks of its member's connection, whichever version that speaks: of HTTP/1 the exchange has
//! the connection for itself, of HTTP/2 a stream of it.

use std::io::IoSlice;

use weir_event_loop::EventLoop;

use super::Worker;
use super::body::{self, Pieces, end_of_chunks};
use super::end::End;
use super::exchange::{Phase, REPLAY_BYTES_MAX};
use super::world::Desk;
use crate::arena::{ConnectionKey, ExchangeKey};

impl Worker {
    /// Sends the head of a request that has no body.
    pub fn send_request_head(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
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
            let Some(connection) = self.world.members.get(connection_key) else { return };
            let token = connection.token;
            io.send(token, &[IoSlice::new(&exchange.request)]);
            self.desk(io).count_sent_to_member(connection_key);
        }
        self.request_handed_over(io, key);
    }

    /// Sends pieces of a request's body and its end, with the head before them if it is still here.
    pub fn pass_request_body(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        input: &[u8],
        pieces: &Pieces,
        end: End<'_>,
    ) {
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        let Some(connection_key) = exchange.connection else {
            return;
        };
        if exchange.member_stream.is_some() {
            return self.pass_on_stream(io, key, input, pieces, end);
        }
        let Some(connection) = self.world.members.get(connection_key) else { return };
        let token = connection.token;
        let framing = exchange.request_framing;
        let mut trailers = self.world.scratch.take_if(matches!(end, End::Trailers(..)));
        let tail = end_of_chunks(framing, end, &mut trailers);
        let small = pieces.data_bytes <= body::COALESCE_BYTES
            && exchange.replayable
            && exchange.request.len() < REPLAY_BYTES_MAX;
        let first = !exchange.request_sent;
        exchange.request_sent = true;
        if small && first {
            let request = &mut exchange.request;
            body::send(request, framing, input, pieces, tail, |parts| io.send(token, parts));
        } else {
            let mut out = self.world.scratch.take();
            if first {
                out.extend_from_slice(&exchange.request);
            }
            body::send(&mut out, framing, input, pieces, tail, |parts| io.send(token, parts));
            if small {
                // What went before stays in front, for sending it all again.
                exchange.request.extend_from_slice(&out);
            } else {
                exchange.replayable = false;
            }
            self.world.scratch.give(out);
        }
        self.world.scratch.give(trailers);
        self.desk(io).count_sent_to_member(connection_key);
    }
}

impl Desk<'_> {
    /// Counts the bytes that a member's socket has taken since it was last looked at.
    pub fn count_sent_to_member(&mut self, key: ConnectionKey) {
        let Some(connection) = self.world.members.get_mut(key) else { return };
        let sent = self.io.sent_bytes(connection.token);
        let more = sent - std::mem::replace(&mut connection.counted_bytes, sent);
        connection.member.live.counters.of(self.world.id).bytes_sent.add(more);
    }
}

impl Worker {
    /// The whole request is with the member connection: the response is waited for.
    pub fn request_handed_over(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        let Some(connection) = exchange.connection else {
            return;
        };
        let Some(connection) = self.world.members.get(connection) else { return };
        if self.world.member_stream(exchange).is_some_and(|stream| stream.awaits_window) {
            return; // It comes here again when it is sent.
        }
        let awaits_settings = exchange.awaits_settings(&self.world);
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
        let is_held_up = match self.world.stream(exchange) {
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
    pub fn is_member_backed_up(&mut self, io: &mut EventLoop, key: ExchangeKey) -> bool {
        let Some(exchange) = self.exchanges.get(key) else { return false };
        let Some(connection) = exchange.connection else {
            return false;
        };
        let Some(connection) = self.world.members.get(connection) else { return false };
        let is_stream_behind =
            self.world.member_stream(exchange).is_some_and(|stream| stream.is_behind());
        let backed_up = is_stream_behind || io.queued(connection.token) > 0;
        // What a tunnel's end does not take in time is a matter of `tunnel_timeout`; who waits for a window is looked after
        // with the connection, and the member has been sent nothing yet.
        let awaits_window = self.world.member_stream(exchange).is_some_and(|it| it.awaits_window);
        let has_time = connection.connecting || exchange.phase == Phase::Tunnel || awaits_window;
        let timeout_ms = exchange.client_timeout_ms();
        if backed_up
            && !awaits_window
            && let Some(stream) = self.world.member_stream_mut(exchange)
        {
            stream.was_backed_up = true;
        }
        if backed_up && !has_time {
            self.set_member_deadline(io, key, io.now_ms() + timeout_ms);
        }
        backed_up
    }

    /// The member has room again for a request body that is still coming.
    pub fn request_goes_on(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        self.await_more_of_request(io, key);
        self.let_client_send(io, key);
    }

    /// The member must have done something by then.
    pub fn set_member_deadline(&mut self, io: &mut EventLoop, key: ExchangeKey, at_ms: u64) {
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        let Some(connection) = exchange.connection else { return };
        if let Some(stream) = self.world.member_stream_mut(exchange) {
            stream.deadline_ms = Some(at_ms);
            self.desk(io).arm_member(connection, at_ms);
        } else if let Some(connection) = self.world.members.get(connection) {
            io.set_deadline(connection.token, at_ms);
        }
    }

    /// The member need not do anything.
    pub fn clear_member_deadline(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        let Some(connection) = exchange.connection else { return };
        if let Some(stream) = self.world.member_stream_mut(exchange) {
            stream.deadline_ms = None;
        } else if let Some(connection) = self.world.members.get(connection) {
            io.clear_deadline(connection.token);
        }
    }

    /// The client does not take what the member sends: it must wait. On a stream its window does that.
    pub fn pause_member(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        if let Some(stream) = self.world.stream_mut(exchange) {
            stream.holds_up_member = true;
        }
        if let (Some(connection), None) = (exchange.connection, &exchange.member_stream) {
            let Some(connection) = self.world.members.get(connection) else { return };
            io.pause(connection.token);
        }
    }

    /// The client has taken everything: the member may go on.
    pub fn resume_member(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        if let Some(stream) = self.world.stream_mut(exchange) {
            stream.holds_up_member = false;
        }
        let Some(connection) = exchange.connection else { return };
        if exchange.member_stream.is_some() {
            self.give_member_window(key);
        } else if let Some(connection) = self.world.members.get(connection) {
            io.resume(connection.token);
        }
    }
}
