//! What an exchange asks of its member's connection, whichever version that speaks: of HTTP/1 the exchange has
//! the connection for itself, of HTTP/2 a stream of it.

use std::io::IoSlice;

use crate::arena::ConnectionKey;
use crate::worker::body::{self, Pieces, end_of_chunks};
use crate::worker::transaction::end::End;
use crate::worker::transaction::ends::Ends;
use crate::worker::transaction::exchange::{Exchange, Phase, REPLAY_BYTES_MAX};
use crate::worker::transaction::request::Request;
use crate::worker::world::Desk;

impl Exchange {
    /// Sends the head of a request that has no body.
    pub fn send_request_head(&mut self, at: &mut Desk<'_>) {
        if self.ends.attempt.connection.is_some() {
            self.ends.ask(at, &mut self.request);
            self.request_handed_over(at);
        }
    }
}

impl Ends {
    /// Asks the member for what has no body.
    fn ask(&mut self, at: &mut Desk<'_>, request: &mut Request) {
        request.send();
        if self.attempt.member_stream.is_some() && request.websocket.is_some() {
            self.ask_for_tunnel(at, request);
        } else if self.attempt.member_stream.is_some() {
            self.move_if_full(at, request);
            self.open_member_stream(at, request, true);
        } else {
            self.send_to_member(at, &request.bytes);
        }
    }

    /// Asks the member once more: by what was queued for another, or by all that there is of the request.
    pub fn ask_again(&mut self, at: &mut Desk<'_>, request: &mut Request, unsent: &[u8]) {
        // Whether or not it was sent before: from here on it is.
        request.send();
        if self.attempt.member_stream.is_some() {
            self.resend_on_stream(at, request);
        } else {
            self.send_to_member(at, if unsent.is_empty() { &request.bytes } else { unsent });
        }
    }

    /// Sends bytes on the connection to the member.
    fn send_to_member(&mut self, at: &mut Desk<'_>, bytes: &[u8]) {
        let Some(connection_key) = self.attempt.connection else { return };
        let Some(connection) = at.world.members.get(connection_key) else { return };
        at.io.send(connection.token, &[IoSlice::new(bytes)]);
        at.count_sent_to_member(connection_key);
    }

    /// Sends pieces of a request's body and its end, with the head before them if it is still here.
    pub fn ask_with_body(
        &mut self,
        at: &mut Desk<'_>,
        request: &mut Request,
        (input, pieces): (&[u8], &Pieces),
        end: End<'_>,
    ) {
        let Some(connection_key) = self.attempt.connection else { return };
        if self.attempt.member_stream.is_some() {
            return self.pass_on_stream(at, request, input, pieces, end);
        }
        let Some(connection) = at.world.members.get(connection_key) else { return };
        let token = connection.token;
        let framing = request.framing;
        let mut trailers = at.world.scratch.take_if(matches!(end, End::Trailers(..)));
        let tail = end_of_chunks(framing, end, &mut trailers);
        let small = pieces.data_bytes <= body::COALESCE_BYTES
            && request.is_replayable()
            && request.bytes.len() < REPLAY_BYTES_MAX;
        let first = request.send();
        if small && first {
            let request = &mut request.bytes;
            body::send(request, framing, input, pieces, tail, |parts| at.io.send(token, parts));
        } else {
            let mut out = at.world.scratch.take();
            if first {
                out.extend_from_slice(&request.bytes);
            }
            body::send(&mut out, framing, input, pieces, tail, |parts| at.io.send(token, parts));
            if small {
                // What went before stays in front, for sending it all again.
                request.bytes.extend_from_slice(&out);
            } else {
                request.let_go();
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
        let Some(reach) = self.ends.reach(at, &self.request) else {
            return;
        };
        if self.request.is_whole && self.ends.attempt.asked_us == 0 && !reach.awaits_settings {
            self.ends.attempt.asked_us = at.io.clock().now_us();
        }
        let is_head_awaited = self.request.is_whole && self.phase == Phase::AwaitHead;
        // While the client does not take interim responses, the member is not read: nor is it waited for.
        if is_head_awaited && !self.ends.is_client_holding_up(at) && !reach.is_connecting {
            self.ends.set_member_deadline(at, at.io.now_ms() + reach.timeout_ms);
        }
    }

    /// Whether the member does not take what the client sends as fast as it comes. Sets the time in
    /// which it has to take some of it.
    pub fn is_member_backed_up(&mut self, at: &mut Desk<'_>) -> bool {
        let lag = self.ends.member_lag(at);
        if lag == Lag::Behind {
            let timeout_ms = self.client_timeout_ms();
            self.ends.set_member_deadline(at, at.io.now_ms() + timeout_ms);
        }
        lag != Lag::None
    }
}

/// How far the connection to a member is.
pub struct Reach {
    /// It is not asked before its SETTINGS are known.
    pub awaits_settings: bool,
    /// It is not open yet.
    pub is_connecting: bool,
    /// How long what is next may take.
    pub timeout_ms: u64,
}

/// Whether a member takes what it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lag {
    /// It has taken all.
    None,
    /// It has not, and had no chance to yet.
    Excused,
    /// It has not.
    Behind,
}

impl Ends {
    /// How far the connection to the member is. `None`: there is none, or the request waits for its window and comes
    /// here again when it is sent.
    fn reach(&self, at: &Desk<'_>, request: &Request) -> Option<Reach> {
        let connection = at.world.members.get(self.attempt.connection?)?;
        if at.world.member_stream(self).is_some_and(|stream| stream.awaits_window) {
            return None;
        }
        let awaits_settings = self.awaits_settings(at.world, request);
        let settings = connection.pool.settings();
        let timeout_ms = match awaits_settings {
            true => settings.connect_timeout_ms,
            false => settings.response_timeout_ms,
        };
        Some(Reach { awaits_settings, is_connecting: connection.connecting, timeout_ms })
    }

    /// Whether the member takes what the client sends as fast as it comes.
    pub fn member_lag(&self, at: &mut Desk<'_>) -> Lag {
        if !self.is_member_behind(at) {
            return Lag::None;
        }
        let connection = self.attempt.connection.and_then(|key| at.world.members.get(key));
        let is_connecting = connection.is_some_and(|connection| connection.connecting);
        // Who waits for a window is looked after with the connection, and the member has been sent nothing yet.
        let stream = at.world.member_stream_mut(self);
        let awaits_window = stream.as_ref().is_some_and(|stream| stream.awaits_window);
        if let Some(stream) = stream.filter(|stream| !stream.awaits_window) {
            stream.was_backed_up = true;
        }
        if is_connecting || awaits_window { Lag::Excused } else { Lag::Behind }
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

    /// Sends bytes of a tunnel.
    pub fn ask_bytes(&mut self, at: &mut Desk<'_>, bytes: &[u8]) {
        match self.attempt.member_stream {
            Some(_) => self.ask_on_stream(at, bytes, End::No),
            None => self.send_to_member(at, bytes),
        }
    }

    /// The member learns that nothing follows: behind what it was sent, of a socket when it has taken that.
    pub fn end_member(&mut self, at: &mut Desk<'_>) {
        if self.attempt.member_stream.is_some() {
            return self.ask_on_stream(at, b"", End::Data);
        }
        let Some(connection) = self.attempt.connection else { return };
        if let Some(connection) = at.world.members.get(connection)
            && at.io.queued(connection.token) == 0
        {
            at.io.shut_write(connection.token);
        }
    }

    /// Sends bytes to the stream of the member, and its end.
    fn ask_on_stream(&mut self, at: &mut Desk<'_>, data: &[u8], end: End<'_>) {
        let Some(stream) = at.world.member_stream_mut(self) else { return };
        if stream.is_end_told {
            return;
        }
        stream.is_end_told = !matches!(end, End::No);
        self.send_on_stream(at, data, &Pieces::whole(data.len()), end);
    }

    /// A stream of the member is left when it is over; what becomes of its connection does not matter to what the client
    /// has yet to take.
    pub fn leave_member_stream(&mut self, at: &mut Desk<'_>) {
        if self.attempt.member_stream.is_some() {
            self.leave_stream(at);
            self.leave_member(at, None, at.io.now_ms());
        }
    }

    /// Until when the member has time to take more of what it was sent. What it takes on a connection that others
    /// share says something only of a tunnel that waits for it.
    pub fn member_patience_until_ms(&self, at: &mut Desk<'_>, timeout_ms: u64) -> u64 {
        let Some(connection) = self.attempt.connection else { return 0 };
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

    /// Whether the member has yet to take something that it was sent. One that has left takes nothing more.
    pub fn is_member_undelivered(&self, at: &mut Desk<'_>) -> bool {
        match (self.attempt.connection, at.world.member_stream(self)) {
            (_, Some(stream)) => stream.out.is_behind(),
            (Some(connection), None) => {
                let connection = at.world.members.get(connection);
                connection.is_some_and(|connection| at.io.queued(connection.token) > 0)
            }
            (None, None) => false,
        }
    }

    /// The connection ends with a reset, so that its member does not take an end for that of the client. `is_told`: the client
    /// has ended, and a member that has taken everything is told of that in order.
    pub fn reset_on_close(&self, at: &mut Desk<'_>, is_told: bool) {
        let connection = self.attempt.connection.and_then(|key| at.world.members.get(key));
        if let Some(connection) = connection
            && !(is_told && at.io.queued(connection.token) == 0)
        {
            at.io.reset_on_close(connection.token);
        }
    }

    /// Whether the end of the connection that the member has is told from a break.
    pub fn tells_breaks(&self) -> bool {
        self.attempt.member_stream.is_some()
    }

    /// A connection that the transaction has for itself is read by so many bytes at a time.
    pub fn limit_reads(&self, at: &mut Desk<'_>, bytes: usize) {
        if let (Some(connection), None) = (self.attempt.connection, &self.attempt.member_stream)
            && let Some(connection) = at.world.members.get(connection)
        {
            at.io.limit_reads(connection.token, bytes);
        }
    }

    /// Whether there is nothing more to read of the member for now. What else there is on a connection that many share says
    /// nothing of this response.
    pub fn is_member_dry(&self, at: &mut Desk<'_>) -> bool {
        let connection = self.attempt.connection.and_then(|key| at.world.members.get(key));
        let is_shared = self.attempt.member_stream.is_some();
        connection.is_none_or(|it| is_shared || !at.io.has_unread(it.token))
    }
}
