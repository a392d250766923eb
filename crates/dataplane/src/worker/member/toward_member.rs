//! Operations of an exchange on its member connection. With HTTP/1 the exchange owns the connection, with HTTP/2 a
//! stream of it.

use std::io::IoSlice;

use weir_connection::body::{self, Tail};
use weir_event_loop::{EventLoop, ReadMode};
use weir_exchange::arena::ConnectionKey;
use weir_exchange::edge::{ConnectionState, Flow, Lag, Release};
use weir_exchange::parts::end::End;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::request::{KEPT_PIECE_BYTES_MAX, Request};
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::transaction::exchange::REPLAY_BYTES_MAX;

use crate::worker::agenda::Agenda;
use crate::worker::edge::WorkerEdge;
use crate::worker::state::members::{Members, StreamOf};
use crate::worker::transaction_end::leave_wait;

impl WorkerEdge<'_> {
    /// Sends a request without a body to the member.
    fn ask_without_body(&mut self, ends: &mut TransactionEnds, request: &mut Request) {
        request.send();
        if ends.phase.member_stream().is_some() && request.websocket.is_some() {
            self.world.members.ask_for_tunnel((self.io, &mut self.world.agenda), ends, request);
        } else if ends.phase.member_stream().is_some() {
            self.move_if_full(ends, request);
            self.world.members.open_stream((self.io, &mut self.world.agenda), ends, request, true);
        } else {
            self.world.members.send(self.io, ends, &request.bytes);
        }
    }

    /// Sends a request again: the stored request if it is complete, otherwise `unsent`. `unsent`: the data that was queued
    /// on the failed connection. It is all of the request if nothing had been sent.
    pub fn ask_once_more(
        &mut self,
        ends: &mut TransactionEnds,
        request: &mut Request,
        unsent: &[u8],
    ) {
        // The request is marked as sent, in case it was not before.
        request.send();
        if ends.phase.member_stream().is_some() {
            self.resend_on_stream(ends, request);
        } else {
            let whole = if request.is_replayable() { &request.bytes } else { unsent };
            self.world.members.send(self.io, ends, whole);
        }
    }
}

impl Members {
    /// Sends bytes on the member connection.
    pub fn send(&mut self, io: &mut EventLoop, ends: &mut TransactionEnds, bytes: &[u8]) {
        let Some(connection_key) = ends.phase.connection() else { return };
        let Some(connection) = self.all.get(connection_key) else { return };
        io.send(connection.token, &[IoSlice::new(bytes)]);
        self.count_sent(io, connection_key);
    }
}

impl WorkerEdge<'_> {
    /// Sends pieces of a request's body and its end, after the head if that was not sent yet.
    pub fn ask_member(
        &mut self,
        ends: &mut TransactionEnds,
        request: &mut Request,
        (input, pieces): (&[u8], &Pieces),
        end: End<'_>,
    ) {
        let Some(connection_key) = ends.phase.connection() else { return };
        if request.framing.is_empty() {
            return self.ask_without_body(ends, request);
        }
        if ends.phase.member_stream().is_some() {
            return self.pass_on_stream(ends, request, input, pieces, end);
        }
        let Some(connection) = self.world.members.all.get(connection_key) else { return };
        let token = connection.token;
        let framing = request.framing;
        let tail = Tail::of(&mut self.world.tools.scratch, framing, end);
        let small = pieces.data_bytes <= KEPT_PIECE_BYTES_MAX
            && request.is_replayable()
            && request.bytes.len() < REPLAY_BYTES_MAX;
        let first = request.send();
        if small && first {
            let request = &mut request.bytes;
            let send = |parts: &[IoSlice<'_>]| self.io.send(token, parts);
            body::send(request, framing, input, pieces, tail.bytes(), send);
        } else {
            let mut out = self.world.tools.scratch.take();
            if first {
                out.extend_from_slice(&request.bytes);
            }
            let send = |parts: &[IoSlice<'_>]| self.io.send(token, parts);
            body::send(&mut out, framing, input, pieces, tail.bytes(), send);
            if small {
                // The data is appended, so that the stored request stays complete.
                request.bytes.extend_from_slice(&out);
            } else {
                request.let_go();
            }
            self.world.tools.scratch.give(out);
        }
        tail.give_back(&mut self.world.tools.scratch);
        self.world.members.count_sent(self.io, connection_key);
    }
}

impl Members {
    /// Counts the bytes that a member's socket has accepted since the last call.
    pub fn count_sent(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let Some(connection) = self.all.get_mut(key) else { return };
        let sent = io.sockets.sent_bytes(connection.token);
        let more = sent - std::mem::replace(&mut connection.counted_bytes, sent);
        connection.member.counters.bytes_sent.add(more);
    }

    /// The state of the member connection. `None`: there is no connection, or the request waits for the window. In the
    /// latter case, this function is called again when the request is sent.
    pub fn reach(&self, ends: &TransactionEnds, request: &Request) -> Option<ConnectionState> {
        let connection = self.all.get(ends.phase.connection()?)?;
        if self.stream(ends).is_some_and(|stream| stream.awaits_window) {
            return None;
        }
        let awaits_settings = self.awaits_settings(ends, request);
        let settings = connection.pool.settings();
        let timeout_ms = match awaits_settings {
            true => settings.connect_timeout_ms,
            false => settings.response_timeout_ms,
        };
        Some(ConnectionState { awaits_settings, is_connecting: connection.connecting, timeout_ms })
    }

    /// Whether the member has received the data that was sent to it.
    pub fn lag(&mut self, io: &mut EventLoop, ends: &TransactionEnds) -> Lag {
        let Some(connection) = ends.phase.connection() else { return Lag::None };
        let Some(connection) = self.all.get(connection) else { return Lag::None };
        let (is_connecting, token) = (connection.connecting, connection.token);
        let Some(StreamOf { stream, .. }) = self.stream_mut(ends) else {
            return match (io.sockets.queued(token) > 0, is_connecting) {
                (false, _) => Lag::None,
                (true, true) => Lag::Excused,
                (true, false) => Lag::Behind,
            };
        };
        let is_behind = stream.is_behind();
        if !is_behind && io.sockets.queued(token) == 0 {
            return Lag::None;
        }
        if stream.awaits_window {
            // The connection's timer covers this stream, and nothing of the request was sent to the member yet.
            return Lag::Excused;
        }
        stream.was_backed_up = true;
        match (is_connecting, is_behind) {
            (true, _) => Lag::Excused,
            (false, true) => Lag::Behind,
            (false, false) => Lag::Others,
        }
    }

    /// Sets or removes the deadline of the member.
    pub fn set_due(&mut self, io: &mut EventLoop, ends: &mut TransactionEnds, at_ms: Option<u64>) {
        let Some(connection) = ends.phase.connection() else { return };
        if let Some(StreamOf { stream, .. }) = self.stream_mut(ends) {
            stream.deadline_ms = at_ms;
            if let Some(at_ms) = at_ms {
                self.arm(io, connection, at_ms);
            }
        } else if let Some(connection) = self.all.get(connection) {
            match at_ms {
                Some(at_ms) => io.set_deadline(connection.token, at_ms),
                None => io.clear_deadline(connection.token),
            }
        }
    }

    /// Pauses or resumes reading from the member, sets how much is read at once, or returns window.
    pub fn set_flow(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        ends: &mut TransactionEnds,
        flow: Flow,
    ) {
        if ends.phase.member_stream().is_some() {
            match flow {
                Flow::Go | Flow::Window => self.give_window(agenda, ends),
                Flow::Stop | Flow::Slices(_) | Flow::Bulk | Flow::Straight => {}
            }
            return;
        }
        let Some(connection) = ends.phase.connection() else { return };
        let Some(connection) = self.all.get_mut(connection) else { return };
        match flow {
            Flow::Stop => io.sockets.pause(connection.token),
            Flow::Go => io.sockets.resume(connection.token),
            Flow::Slices(bytes) => {
                connection.is_sliced = true;
                io.sockets.read_as(connection.token, ReadMode::Slices(bytes));
            }
            Flow::Bulk if connection.is_sliced => {
                connection.is_sliced = false;
                io.sockets.read_as(connection.token, ReadMode::Usual);
            }
            Flow::Bulk => {}
            Flow::Window => {}
            Flow::Straight => debug_assert!(false, "both sides are needed for that"),
        }
    }

    /// Sends bytes of a tunnel to the member. A stream carries the end with the last ones.
    pub fn ask_bytes(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        ends: &mut TransactionEnds,
        bytes: &[u8],
        end: End<'_>,
    ) {
        match ends.phase.member_stream() {
            Some(_) => self.ask_on_stream((io, agenda), ends, bytes, end),
            None => self.send(io, ends, bytes),
        }
    }

    /// Half-closes the connection to the member: a stream after the sent data, a socket only if no data is queued.
    pub fn half_close(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        ends: &mut TransactionEnds,
    ) {
        if ends.phase.member_stream().is_some() {
            return self.ask_on_stream((io, agenda), ends, b"", End::Data);
        }
        let Some(connection) = ends.phase.connection() else { return };
        if let Some(connection) = self.all.get(connection)
            && io.sockets.queued(connection.token) == 0
        {
            io.shut_write(connection.token);
        }
    }

    /// Sends data of a tunnel, and its end, on the member's stream.
    pub fn ask_on_stream(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        ends: &mut TransactionEnds,
        data: &[u8],
        end: End<'_>,
    ) {
        let Some(StreamOf { stream, .. }) = self.stream_mut(ends) else { return };
        if stream.is_end_told {
            return;
        }
        stream.is_end_told = !matches!(end, End::No);
        self.send_on_stream((io, agenda), ends, data, &Pieces::whole(data.len()), end);
    }

    /// The deadline of a member that receives data slowly; 0: there is no sign of progress. If data of this stream waits for
    /// a window, the deadline is for that window. Progress of the connection counts only if this stream waits for the
    /// socket.
    pub fn patience_until_ms(
        &mut self,
        io: &mut EventLoop,
        ends: &TransactionEnds,
        timeout_ms: u64,
    ) -> u64 {
        let Some(connection) = ends.phase.connection() else { return 0 };
        let Some(connection) = self.all.get(connection) else { return 0 };
        match (self.stream(ends), &connection.http2) {
            (Some(stream), Some(http2)) if stream.out.is_behind() => {
                let since_ms = http2.frames.connection.stalled_since_ms(stream.out.id);
                since_ms.map_or(0, |since_ms| since_ms + timeout_ms)
            }
            (Some(stream), _) if !stream.was_backed_up => 0,
            _ => io.patience_until_ms(connection.token, timeout_ms),
        }
    }
}

impl WorkerEdge<'_> {
    /// Releases the member connection, or leaves the queue. Returns whether a part of the request was sent on its stream.
    pub fn leave_connection(&mut self, ends: &mut TransactionEnds, how: Release) -> bool {
        let Some(link) = ends.phase.link() else {
            leave_wait(self, ends);
            return false;
        };
        if link.stream.is_some() {
            return self.leave_stream(ends);
        }
        ends.phase.take_link();
        let key = link.connection;
        match how {
            Release::Keep => self.keep_connection(key, ends),
            Release::Drop => self.close_member(key),
            Release::Reset { is_told } => {
                if let Some(connection) = self.world.members.all.get(key)
                    && !(is_told && self.io.sockets.queued(connection.token) == 0)
                {
                    self.io.sockets.reset_on_close(connection.token);
                }
                self.close_member(key);
            }
            Release::ResetWhenTaken => reset_when_taken(self, key),
        }
        false
    }
}

impl Members {
    /// Whether no unread data of the member is known. Unread data on a shared connection is not counted, because it may
    /// belong to other responses.
    pub fn is_dry(&mut self, io: &mut EventLoop, ends: &TransactionEnds) -> bool {
        let connection = ends.phase.connection().and_then(|key| self.all.get(key));
        let is_shared = ends.phase.member_stream().is_some();
        connection.is_none_or(|it| is_shared || !io.sockets.has_unread(it.token))
    }
}

/// Resets a member connection after the member has received the queued data.
fn reset_when_taken(edge: &mut WorkerEdge<'_>, key: ConnectionKey) {
    let Some(connection) = edge.world.members.all.get(key) else { return };
    let timeout_ms = connection.pool.settings().response_timeout_ms;
    if let Some(token) = edge.forget_member(key) {
        edge.world.counted.member_connections_leaving.add(1);
        edge.io.reset_when_taken(token, timeout_ms);
    }
}
