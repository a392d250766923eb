//! What an exchange asks of its member's connection, whichever version that speaks: of HTTP/1 the exchange has
//! the connection for itself, of HTTP/2 a stream of it.

use std::io::IoSlice;

use super::body::{self, Pieces, end_of_chunks};
use super::end::End;
use super::exchange::{Exchange, Phase, REPLAY_BYTES_MAX};
use super::world::Desk;
use crate::arena::ConnectionKey;

impl Exchange {
    /// Sends the head of a request that has no body.
    pub fn send_request_head(&mut self, at: &mut Desk<'_>) {
        if self.is_over() {
            return;
        }
        let Some(connection_key) = self.connection.filter(|_| !self.is_relay()) else {
            return;
        };
        self.request_sent = true;
        if self.member_stream.is_some() && self.websocket.is_some() {
            self.ask_for_tunnel(at);
        } else if self.member_stream.is_some() {
            self.move_if_full(at);
            self.open_member_stream(at, true);
        } else {
            let Some(connection) = at.world.members.get(connection_key) else { return };
            let token = connection.token;
            at.io.send(token, &[IoSlice::new(&self.request)]);
            at.count_sent_to_member(connection_key);
        }
        self.request_handed_over(at);
    }

    /// Sends pieces of a request's body and its end, with the head before them if it is still here.
    pub fn pass_request_body(
        &mut self,
        at: &mut Desk<'_>,
        input: &[u8],
        pieces: &Pieces,
        end: End<'_>,
    ) {
        if self.is_over() {
            return;
        }
        let Some(connection_key) = self.connection else {
            return;
        };
        if self.member_stream.is_some() {
            return self.pass_on_stream(at, input, pieces, end);
        }
        let Some(connection) = at.world.members.get(connection_key) else { return };
        let token = connection.token;
        let framing = self.request_framing;
        let mut trailers = at.world.scratch.take_if(matches!(end, End::Trailers(..)));
        let tail = end_of_chunks(framing, end, &mut trailers);
        let small = pieces.data_bytes <= body::COALESCE_BYTES
            && self.replayable
            && self.request.len() < REPLAY_BYTES_MAX;
        let first = !self.request_sent;
        self.request_sent = true;
        if small && first {
            let request = &mut self.request;
            body::send(request, framing, input, pieces, tail, |parts| at.io.send(token, parts));
        } else {
            let mut out = at.world.scratch.take();
            if first {
                out.extend_from_slice(&self.request);
            }
            body::send(&mut out, framing, input, pieces, tail, |parts| at.io.send(token, parts));
            if small {
                // What went before stays in front, for sending it all again.
                self.request.extend_from_slice(&out);
            } else {
                self.replayable = false;
            }
            at.world.scratch.give(out);
        }
        at.world.scratch.give(trailers);
        at.count_sent_to_member(connection_key);
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

impl Exchange {
    /// The whole request is with the member connection: the response is waited for.
    pub fn request_handed_over(&mut self, at: &mut Desk<'_>) {
        if self.is_over() {
            return;
        }
        let Some(connection) = self.connection else {
            return;
        };
        let Some(connection) = at.world.members.get(connection) else { return };
        if at.world.member_stream(self).is_some_and(|stream| stream.awaits_window) {
            return; // It comes here again when it is sent.
        }
        let awaits_settings = self.awaits_settings(at.world);
        if self.request_done && self.asked_us == 0 && !awaits_settings {
            self.asked_us = at.io.clock().now_us();
        }
        let is_head_awaited = self.request_done && self.phase == Phase::AwaitHead;
        let is_connecting = connection.connecting;
        let settings = connection.pool.settings();
        let timeout_ms = match awaits_settings {
            true => settings.connect_timeout_ms,
            false => settings.response_timeout_ms,
        };
        // While the client does not take interim responses, the member is not read: nor is it waited for. What else waits on
        // a connection that many streams share says nothing.
        let is_held_up = match at.world.stream(self) {
            Some(stream) => stream.holds_up_member,
            None => self.is_client_behind(at),
        };
        let awaited = is_head_awaited && !is_held_up;
        if awaited && !is_connecting {
            self.set_member_deadline(at, at.io.now_ms() + timeout_ms);
        }
    }

    /// Whether the member does not take what the client sends as fast as it comes. Sets the time in
    /// which it has to take some of it.
    pub fn is_member_backed_up(&mut self, at: &mut Desk<'_>) -> bool {
        if self.is_over() {
            return false;
        }
        let Some(connection) = self.connection else {
            return false;
        };
        let Some(connection) = at.world.members.get(connection) else { return false };
        let is_stream_behind =
            at.world.member_stream(self).is_some_and(|stream| stream.is_behind());
        let backed_up = is_stream_behind || at.io.queued(connection.token) > 0;
        // What a tunnel's end does not take in time is a matter of `tunnel_timeout`; who waits for a window is looked after
        // with the connection, and the member has been sent nothing yet.
        let awaits_window = at.world.member_stream(self).is_some_and(|it| it.awaits_window);
        let has_time = connection.connecting || self.phase == Phase::Tunnel || awaits_window;
        let timeout_ms = self.client_timeout_ms();
        if backed_up
            && !awaits_window
            && let Some(stream) = at.world.member_stream_mut(self)
        {
            stream.was_backed_up = true;
        }
        if backed_up && !has_time {
            self.set_member_deadline(at, at.io.now_ms() + timeout_ms);
        }
        backed_up
    }

    /// The member has room again for a request body that is still coming.
    pub fn request_goes_on(&mut self, at: &mut Desk<'_>) {
        self.await_more_of_request(at);
        self.let_client_send(at);
    }

    /// The member must have done something by then.
    pub fn set_member_deadline(&mut self, at: &mut Desk<'_>, at_ms: u64) {
        if self.is_over() {
            return;
        }
        let Some(connection) = self.connection else { return };
        if let Some(stream) = at.world.member_stream_mut(self) {
            stream.deadline_ms = Some(at_ms);
            at.arm_member(connection, at_ms);
        } else if let Some(connection) = at.world.members.get(connection) {
            at.io.set_deadline(connection.token, at_ms);
        }
    }

    /// The member need not do anything.
    pub fn clear_member_deadline(&mut self, at: &mut Desk<'_>) {
        if self.is_over() {
            return;
        }
        let Some(connection) = self.connection else { return };
        if let Some(stream) = at.world.member_stream_mut(self) {
            stream.deadline_ms = None;
        } else if let Some(connection) = at.world.members.get(connection) {
            at.io.clear_deadline(connection.token);
        }
    }

    /// The client does not take what the member sends: it must wait. On a stream its window does that.
    pub fn pause_member(&mut self, at: &mut Desk<'_>) {
        if self.is_over() {
            return;
        }
        if let Some(stream) = at.world.stream_mut(self) {
            stream.holds_up_member = true;
        }
        if let (Some(connection), None) = (self.connection, &self.member_stream) {
            let Some(connection) = at.world.members.get(connection) else { return };
            at.io.pause(connection.token);
        }
    }

    /// The client has taken everything: the member may go on.
    pub fn resume_member(&mut self, at: &mut Desk<'_>) {
        if self.is_over() {
            return;
        }
        if let Some(stream) = at.world.stream_mut(self) {
            stream.holds_up_member = false;
        }
        let Some(connection) = self.connection else { return };
        if self.member_stream.is_some() {
            self.give_member_window(at);
        } else if let Some(connection) = at.world.members.get(connection) {
            at.io.resume(connection.token);
        }
    }
}
