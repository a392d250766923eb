//! Sends a request to a member with HTTP/2: the head on a new stream, and the body as it arrives.
//!
//! WebSockets are opened by extended CONNECT (RFC 8441), whichever HTTP version the client uses. Their stream is opened only after
//! the member's SETTINGS have announced support. Until then, the request waits on its own connection, because data that a member
//! does not read could exhaust a shared window. After the member's 2xx, the stream is a tunnel like any other
//! ([`weir_exchange::transaction::tunnel`]).

use std::rc::Rc;

use weir_connection::member::streams::MemberStream;
use weir_event_loop::EventLoop;
use weir_exchange::parts::end::End;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::request::Request;
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::transaction::exchange::REPLAY_BYTES_MAX;
use weir_http::message::Scheme;

use crate::worker::agenda::{Agenda, Task};
use crate::worker::edge::WorkerEdge;
use crate::worker::state::lost_stream::LostStream;
use crate::worker::state::members::{MemberEnd, StreamOf};
use crate::worker::wire::{Socket, Spares};
use crate::worker::world::World;

impl WorkerEdge<'_> {
    /// Sends pieces of a request's body and its end, after the head if that was not sent yet.
    pub fn pass_on_stream(
        &mut self,
        ends: &mut TransactionEnds,
        request: &mut Request,
        input: &[u8],
        pieces: &Pieces,
        end: End<'_>,
    ) {
        let is_first = request.send();
        if is_first {
            self.move_if_full(ends, request);
        }
        let World { members, agenda, .. } = &mut *self.world;
        let mut member = members.end_of(ends);
        let waits = member.as_mut().is_some_and(|member| {
            if is_first {
                member.wait_for_window(self.io);
            }
            member.stream_mut().is_some_and(|StreamOf { stream, .. }| {
                stream.is_whole |= !matches!(end, End::No);
                stream.awaits_window
            })
        });
        let cannot_be_out = waits || member.as_ref().is_some_and(|it| it.connection.connecting);
        if request.is_replayable() {
            // Data that could not be sent yet is stored in any case. The client's window limits its size.
            let fits = request.bytes.len() + pieces.data_bytes <= REPLAY_BYTES_MAX;
            if !(fits || cannot_be_out) {
                request.let_go();
            }
        }
        if request.is_replayable() || waits {
            pieces.of(input).for_each(|data| request.bytes.extend_from_slice(data));
            request.keep_trailers(end);
        }
        let Some(mut member) = member.filter(|_| !waits) else { return };
        if is_first {
            member.open_stream((self.io, agenda), ends, request, false);
        }
        member.send_on_stream((self.io, agenda), input, pieces, end);
    }

    /// Moves an exchange that has sent nothing to another connection, if its connection accepts no more streams.
    pub fn move_if_full(&mut self, ends: &mut TransactionEnds, request: &mut Request) {
        let (Some(connection), Some(member)) = (ends.phase.connection(), ends.phase.member())
        else {
            return;
        };
        let http2 = self.world.members.http2_mut(connection);
        if http2.is_none_or(|http2| http2.may_open()) {
            return;
        }
        self.move_to_another(ends, request, member);
    }

    /// Moves an exchange that has sent nothing to another connection to its member. False: no connection is available.
    pub fn move_to_another(
        &mut self,
        ends: &mut TransactionEnds,
        request: &mut Request,
        member: u32,
    ) -> bool {
        let local = Rc::clone(&ends.tries.pool.members[member as usize]);
        let need = request.need();
        let World { members, clients, agenda, .. } = &mut *self.world;
        members.leave_stream((self.io, agenda), ends, clients.draining.is_some());
        let has_one = members.take_multiplexed(self.io, ends, &local, need, false)
            || self.open_connection(ends, member, need).is_ok();
        if !has_one {
            self.world.agenda.add(Task::lose_stream(ends, LostStream::Full));
        }
        has_one
    }
}

impl MemberEnd<'_> {
    /// Writes the head of an exchange's request on a new stream.
    pub fn open_stream(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        ends: &TransactionEnds,
        request: &Request,
        is_end: bool,
    ) {
        let is_open = self.stream().is_some_and(MemberStream::is_opened);
        debug_assert!(!is_open, "a request has one stream");
        let Some(stream) = self.stream.filter(|_| !is_open) else { return };
        let is_secure = self.connection.pool.settings().tls.is_some();
        let scheme = if is_secure { Scheme::Https } else { Scheme::Http };
        let Some(http2) = &mut self.connection.http2 else { return };
        if !http2.open_stream(stream, request, (scheme, is_end), &mut Spares(io)) {
            // The member accepts no more streams on this connection, so the request moves to another connection.
            agenda.add(Task::lose_stream(ends, LostStream::Full));
        }
        self.list_for_flush(agenda);
    }

    /// Sends data on the stream, if it is open.
    pub fn send_on_stream(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        input: &[u8],
        pieces: &Pieces,
        end: End<'_>,
    ) {
        let Some(StreamOf { token, frames, stream }) = self.stream_mut() else { return };
        if stream.is_opened() {
            stream.out.send(&mut Socket::of(io, token), frames, (input, pieces), end);
            self.connection.note_window(io.now_ms());
            self.list_for_flush(agenda);
        }
    }

    /// Sends queued data of a request within the member's windows. Returns whether any data was queued.
    pub fn send_waiting_data(&mut self, (io, agenda): (&mut EventLoop, &mut Agenda)) -> bool {
        let Some(StreamOf { token, frames, stream }) = self.stream_mut() else { return false };
        if !stream.out.is_behind() {
            return false;
        }
        stream.out.send_waiting_data(&mut Socket::of(io, token), frames, usize::MAX);
        self.connection.note_window(io.now_ms());
        self.list_for_flush(agenda);
        true
    }

    /// Sends data of a tunnel, and its end, on the stream.
    pub fn ask_on_stream(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        data: &[u8],
        end: End<'_>,
    ) {
        let Some(StreamOf { stream, .. }) = self.stream_mut() else { return };
        if stream.is_end_told {
            return;
        }
        stream.is_end_told = !matches!(end, End::No);
        self.send_on_stream((io, agenda), data, &Pieces::whole(data.len()), end);
    }

    /// Sends a stored request again, on another stream.
    pub fn send_stored(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        ends: &TransactionEnds,
        request: &mut Request,
    ) {
        if request.websocket.is_some() {
            return self.ask_for_tunnel((io, agenda), ends, request);
        }
        let head_bytes = request.head_bytes as usize;
        let is_bare = request.framing.is_empty();
        if !is_bare && self.wait_for_window(io) {
            return;
        }
        self.open_stream((io, agenda), ends, request, is_bare);
        if !is_bare {
            let body = &request.bytes[head_bytes..];
            self.send_on_stream((io, agenda), body, &Pieces::whole(body.len()), request.end());
        }
        let is_opened = self.stream().is_some_and(MemberStream::is_opened);
        let may_be_out = is_opened && !self.connection.connecting;
        if may_be_out && request.bytes.len() - head_bytes > REPLAY_BYTES_MAX {
            // The request was stored while it waited, but it is too long to be stored for further retries.
            request.let_go();
            request.bytes.truncate(head_bytes);
            request.bytes.shrink_to_fit();
        }
    }

    /// Whether a request with a body, of which nothing was sent, must wait for the window of its connection.
    pub fn wait_for_window(&mut self, io: &mut EventLoop) -> bool {
        let is_shut = self.connection.http2.as_ref().is_some_and(|it| it.has_shut_window());
        let Some(StreamOf { stream, .. }) = self.stream_mut() else { return false };
        stream.awaits_window = is_shut;
        if is_shut {
            self.connection.watch_exhausted_window(io);
        }
        is_shut
    }

    /// Whether the exchange waits for the member's SETTINGS before it opens the stream of a WebSocket.
    pub fn awaits_settings(&self, request: &Request) -> bool {
        let has_none = self.stream().is_some_and(|stream| !stream.is_opened());
        has_none && request.websocket.is_some()
    }

    /// Opens the stream of a WebSocket, if the member supports extended CONNECT. Before the SETTINGS have arrived, the
    /// request waits.
    pub fn ask_for_tunnel(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        ends: &TransactionEnds,
        request: &Request,
    ) {
        let Some(http2) = &self.connection.http2 else { return };
        match http2.takes_tunnels() {
            // The request moves to another connection at most once, like a request that the member has not processed.
            _ if !http2.may_open() => agenda.add(Task::lose_stream(ends, LostStream::Full)),
            // A member may send its SETTINGS only after it has received the connection preface.
            None => self.list_for_flush(agenda),
            Some(true) => self.open_stream((io, agenda), ends, request, false),
            Some(false) => agenda.add(Task::lose_stream(ends, LostStream::NoTunnel)),
        }
    }
}
