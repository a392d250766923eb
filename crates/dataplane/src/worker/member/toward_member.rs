//! Operations of an exchange on its member connection. With HTTP/1 the exchange owns the connection, with HTTP/2 a
//! stream of it.

use std::io::IoSlice;

use weir_connection::body::{self, Tail};
use weir_event_loop::{EventLoop, ReadMode};
use weir_exchange::edge::{ConnectionState, Flow, Lag, Release, TunnelBytes};
use weir_exchange::parts::end::End;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::request::{KEPT_PIECE_BYTES_MAX, Request};
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::transaction::exchange::REPLAY_BYTES_MAX;

use crate::worker::agenda::Agenda;
use crate::worker::edge::WorkerEdge;
use crate::worker::state::members::{MemberEnd, StreamOf};
use crate::worker::transaction_end::leave_wait;
use crate::worker::world::World;

impl WorkerEdge<'_> {
    /// Sends a request without a body to the member.
    fn ask_without_body(&mut self, ends: &mut TransactionEnds, request: &mut Request) {
        request.send();
        let is_on_stream = ends.phase.member_stream().is_some();
        let is_tunnel = is_on_stream && request.websocket.is_some();
        if is_on_stream && !is_tunnel {
            self.move_if_full(ends, request);
        }
        let World { members, agenda, .. } = &mut *self.world;
        let Some(mut end) = members.end_of(ends) else { return };
        if is_tunnel {
            end.ask_for_tunnel((self.io, agenda), ends, request);
        } else if is_on_stream {
            end.open_stream((self.io, agenda), ends, request, true);
        } else {
            end.connection.send(self.io, &request.bytes);
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
        let World { members, agenda, .. } = &mut *self.world;
        let Some(mut end) = members.end_of(ends) else { return };
        if end.stream.is_some() {
            end.send_stored((self.io, agenda), ends, request);
        } else {
            let whole = if request.is_replayable() { &request.bytes } else { unsent };
            end.connection.send(self.io, whole);
        }
    }

    /// Sends pieces of a request's body and its end, after the head if that was not sent yet.
    pub fn ask_member(
        &mut self,
        ends: &mut TransactionEnds,
        request: &mut Request,
        (input, pieces): (&[u8], &Pieces),
        end: End<'_>,
    ) {
        if ends.phase.connection().is_none() {
            return;
        }
        if request.framing.is_empty() {
            return self.ask_without_body(ends, request);
        }
        if ends.phase.member_stream().is_some() {
            return self.pass_on_stream(ends, request, input, pieces, end);
        }
        let Some(MemberEnd { connection, .. }) = self.world.members.end_of(ends) else { return };
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
        connection.count_sent(self.io);
    }

    /// Releases the member connection, or leaves the queue. Returns whether a part of the request was sent on its stream.
    pub fn leave_connection(&mut self, ends: &mut TransactionEnds, how: Release) -> bool {
        let Some(link) = ends.phase.link() else {
            leave_wait(self, ends);
            return false;
        };
        let World { members, clients, agenda, .. } = &mut *self.world;
        if link.stream.is_some() {
            return members.leave_stream((self.io, agenda), ends, clients.draining.is_some());
        }
        ends.phase.take_link();
        let key = link.connection;
        match how {
            Release::Keep => members.keep((self.io, clients), key, ends),
            Release::Drop => members.close(self.io, key),
            Release::Reset { is_told } => {
                if let Some(connection) = members.all.get(key)
                    && !(is_told && self.io.sockets.queued(connection.token) == 0)
                {
                    self.io.sockets.reset_on_close(connection.token);
                }
                members.close(self.io, key);
            }
            Release::ResetWhenTaken => members.reset_when_taken(self.io, key),
        }
        false
    }
}

impl MemberEnd<'_> {
    /// The state of the connection. `None`: the request waits for the window. Then this function is called again when the
    /// request is sent.
    #[inline]
    pub fn reach(&self, request: &Request) -> Option<ConnectionState> {
        let stream = self.stream();
        if stream.is_some_and(|stream| stream.awaits_window) {
            return None;
        }
        let awaits_settings = self.awaits_settings(request);
        let settings = self.connection.pool.settings();
        let timeout_ms = match awaits_settings {
            true => settings.connect_timeout_ms,
            false => settings.response_timeout_ms,
        };
        let is_connecting = self.connection.connecting;
        Some(ConnectionState { awaits_settings, is_connecting, timeout_ms })
    }

    /// Whether the member has received the data that was sent to it.
    pub fn lag(&mut self, io: &mut EventLoop) -> Lag {
        let is_connecting = self.connection.connecting;
        let queued = io.sockets.queued(self.connection.token);
        let Some(StreamOf { stream, .. }) = self.stream_mut() else {
            return match (queued > 0, is_connecting) {
                (false, _) => Lag::None,
                (true, true) => Lag::Excused,
                (true, false) => Lag::Behind,
            };
        };
        let is_behind = stream.is_behind();
        if !is_behind && queued == 0 {
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
    pub fn set_due(&mut self, io: &mut EventLoop, at_ms: Option<u64>) {
        if let Some(StreamOf { stream, .. }) = self.stream_mut() {
            stream.deadline_ms = at_ms;
            if let Some(at_ms) = at_ms {
                self.connection.arm(io, at_ms);
            }
            return;
        }
        match at_ms {
            Some(at_ms) => io.set_deadline(self.connection.token, at_ms),
            None => io.clear_deadline(self.connection.token),
        }
    }

    /// Pauses or resumes reading from the member, sets how much is read at once, or returns window.
    pub fn set_flow(&mut self, (io, agenda): (&mut EventLoop, &mut Agenda), flow: Flow) {
        if let Some(key) = self.stream {
            if matches!(flow, Flow::Go | Flow::Window)
                && let Some(http2) = &mut self.connection.http2
                && http2.give_window(key)
            {
                self.list_for_flush(agenda);
            }
            return;
        }
        let connection = &mut *self.connection;
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

    /// Sends bytes of a tunnel to the member, or counts those that were moved to it. A stream carries the end with the last
    /// ones.
    pub fn pass(&mut self, (io, agenda): (&mut EventLoop, &mut Agenda), bytes: TunnelBytes<'_>) {
        let (bytes, end) = match bytes {
            TunnelBytes::Bytes(bytes) => (bytes, End::No),
            TunnelBytes::Last(bytes) => (bytes, End::Data),
            TunnelBytes::Moved(_) => return self.connection.count_sent(io),
        };
        match self.stream {
            Some(_) => self.ask_on_stream((io, agenda), bytes, end),
            None => self.connection.send(io, bytes),
        }
    }

    /// Half-closes the connection to the member: a stream after the sent data, a socket only if no data is queued.
    pub fn half_close(&mut self, (io, agenda): (&mut EventLoop, &mut Agenda)) {
        if self.stream.is_some() {
            return self.ask_on_stream((io, agenda), b"", End::Data);
        }
        let token = self.connection.token;
        if io.sockets.queued(token) == 0 {
            io.shut_write(token);
        }
    }

    /// The deadline of a member that receives data slowly; 0: there is no sign of progress. If data of this stream waits for
    /// a window, the deadline is for that window. Progress of the connection counts only if this stream waits for the
    /// socket.
    pub fn patience_until_ms(&self, io: &mut EventLoop, timeout_ms: u64) -> u64 {
        match (self.stream(), &self.connection.http2) {
            (Some(stream), Some(http2)) if stream.out.is_behind() => {
                let since_ms = http2.frames.connection.stalled_since_ms(stream.out.id);
                since_ms.map_or(0, |since_ms| since_ms + timeout_ms)
            }
            (Some(stream), _) if !stream.was_backed_up => 0,
            _ => io.patience_until_ms(self.connection.token, timeout_ms),
        }
    }

    /// Whether no unread data of the member is known. Unread data on a shared connection is not counted, because it may
    /// belong to other responses.
    pub fn is_dry(&self, io: &mut EventLoop) -> bool {
        self.stream.is_some() || !io.sockets.has_unread(self.connection.token)
    }
}
