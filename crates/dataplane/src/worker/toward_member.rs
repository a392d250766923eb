//! What an exchange asks of its member's connection, whichever version that speaks: of HTTP/1 the exchange has
//! the connection for itself, of HTTP/2 a stream of it.

use std::io::IoSlice;

use super::body::{self, Pieces, end_of_chunks};
use super::end::End;
use super::ends::Ends;
use super::exchange::{Exchange, Phase, REPLAY_BYTES_MAX};
use super::world::Desk;
use crate::arena::ConnectionKey;

impl Exchange {
    /// Sends the head of a request that has no body.
    pub fn send_request_head(&mut self, at: &mut Desk<'_>) {
        let Some(connection_key) = self.ends.attempt.connection.filter(|_| !self.is_relay()) else {
            return;
        };
        self.upload.send();
        if self.ends.attempt.member_stream.is_some() && self.websocket.is_some() {
            self.ask_for_tunnel(at);
        } else if self.ends.attempt.member_stream.is_some() {
            self.move_if_full(at);
            self.open_member_stream(at, true);
        } else {
            let Some(connection) = at.world.members.get(connection_key) else { return };
            let token = connection.token;
            at.io.send(token, &[IoSlice::new(&self.upload.bytes)]);
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
        let Some(connection_key) = self.ends.attempt.connection else {
            return;
        };
        if self.ends.attempt.member_stream.is_some() {
            return self.pass_on_stream(at, input, pieces, end);
        }
        let Some(connection) = at.world.members.get(connection_key) else { return };
        let token = connection.token;
        let framing = self.upload.framing;
        let mut trailers = at.world.scratch.take_if(matches!(end, End::Trailers(..)));
        let tail = end_of_chunks(framing, end, &mut trailers);
        let small = pieces.data_bytes <= body::COALESCE_BYTES
            && self.upload.is_replayable()
            && self.upload.bytes.len() < REPLAY_BYTES_MAX;
        let first = !self.upload.is_sent();
        self.upload.send();
        if small && first {
            let request = &mut self.upload.bytes;
            body::send(request, framing, input, pieces, tail, |parts| at.io.send(token, parts));
        } else {
            let mut out = at.world.scratch.take();
            if first {
                out.extend_from_slice(&self.upload.bytes);
            }
            body::send(&mut out, framing, input, pieces, tail, |parts| at.io.send(token, parts));
            if small {
                // What went before stays in front, for sending it all again.
                self.upload.bytes.extend_from_slice(&out);
            } else {
                self.upload.let_go();
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
        let Some(connection) = self.ends.attempt.connection else {
            return;
        };
        let Some(connection) = at.world.members.get(connection) else { return };
        if at.world.member_stream(&self.ends).is_some_and(|stream| stream.awaits_window) {
            return; // It comes here again when it is sent.
        }
        let awaits_settings = self.awaits_settings(at.world);
        if self.upload.is_whole && self.ends.attempt.asked_us == 0 && !awaits_settings {
            self.ends.attempt.asked_us = at.io.clock().now_us();
        }
        let is_head_awaited = self.upload.is_whole && self.phase == Phase::AwaitHead;
        let is_connecting = connection.connecting;
        let settings = connection.pool.settings();
        let timeout_ms = match awaits_settings {
            true => settings.connect_timeout_ms,
            false => settings.response_timeout_ms,
        };
        // While the client does not take interim responses, the member is not read: nor is it waited for. What else waits on
        // a connection that many streams share says nothing.
        let is_held_up = match at.world.stream(&self.ends) {
            Some(stream) => stream.holds_up_member,
            None => self.ends.is_client_behind(at),
        };
        let awaited = is_head_awaited && !is_held_up;
        if awaited && !is_connecting {
            self.ends.set_member_deadline(at, at.io.now_ms() + timeout_ms);
        }
    }

    /// Whether the member does not take what the client sends as fast as it comes. Sets the time in
    /// which it has to take some of it.
    pub fn is_member_backed_up(&mut self, at: &mut Desk<'_>) -> bool {
        let Some(connection) = self.ends.attempt.connection else {
            return false;
        };
        let Some(connection) = at.world.members.get(connection) else { return false };
        let is_connecting = connection.connecting;
        let backed_up = self.ends.is_member_behind(at);
        // Who waits for a window is looked after with the connection, and the member has been sent nothing yet.
        let awaits_window = at.world.member_stream(&self.ends).is_some_and(|it| it.awaits_window);
        let has_time = is_connecting || awaits_window;
        let timeout_ms = self.client_timeout_ms();
        if backed_up
            && !awaits_window
            && let Some(stream) = at.world.member_stream_mut(&self.ends)
        {
            stream.was_backed_up = true;
        }
        if backed_up && !has_time {
            self.ends.set_member_deadline(at, at.io.now_ms() + timeout_ms);
        }
        backed_up
    }

    /// The member has room again for a request body that is still coming.
    pub fn request_goes_on(&mut self, at: &mut Desk<'_>) {
        self.await_more_of_request(at);
        self.let_client_send(at);
    }
}

impl Ends {
    /// The member must have done something by then.
    pub fn set_member_deadline(&mut self, at: &mut Desk<'_>, at_ms: u64) {
        let Some(connection) = self.attempt.connection else { return };
        if let Some(stream) = at.world.member_stream_mut(self) {
            stream.deadline_ms = Some(at_ms);
            at.arm_member(connection, at_ms);
        } else if let Some(connection) = at.world.members.get(connection) {
            at.io.set_deadline(connection.token, at_ms);
        }
    }

    /// The member need not do anything.
    pub fn clear_member_deadline(&mut self, at: &mut Desk<'_>) {
        let Some(connection) = self.attempt.connection else { return };
        if let Some(stream) = at.world.member_stream_mut(self) {
            stream.deadline_ms = None;
        } else if let Some(connection) = at.world.members.get(connection) {
            at.io.clear_deadline(connection.token);
        }
    }

    /// The client does not take what the member sends: it must wait. On a stream its window does that.
    pub fn pause_member(&mut self, at: &mut Desk<'_>) {
        if let Some(stream) = at.world.stream_mut(self) {
            stream.holds_up_member = true;
        }
        if let (Some(connection), None) = (self.attempt.connection, &self.attempt.member_stream) {
            let Some(connection) = at.world.members.get(connection) else { return };
            at.io.pause(connection.token);
        }
    }

    /// The client has taken everything: the member may go on.
    pub fn resume_member(&mut self, at: &mut Desk<'_>) {
        if let Some(stream) = at.world.stream_mut(self) {
            stream.holds_up_member = false;
        }
        let Some(connection) = self.attempt.connection else { return };
        if self.attempt.member_stream.is_some() {
            self.give_member_window(at);
        } else if let Some(connection) = at.world.members.get(connection) {
            at.io.resume(connection.token);
        }
    }
}
