//! Sends a request to a member with HTTP/2: the head on a new stream, and the body as it arrives.

use std::rc::Rc;

use weir_connection::member::streams::MemberStream;
use weir_event_loop::EventLoop;
use weir_exchange::parts::attempt::Link;
use weir_exchange::parts::end::End;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::request::Request;
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::transaction::exchange::REPLAY_BYTES_MAX;
use weir_http::message::Scheme;

use crate::worker::agenda::{Agenda, Task};
use crate::worker::edge::WorkerEdge;
use crate::worker::state::lost_stream::LostStream;
use crate::worker::state::members::{Members, StreamOf};
use crate::worker::wire::{Socket, Spares};

impl Members {
    /// Writes the head of an exchange's request on a new stream.
    pub fn open_stream(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        ends: &mut TransactionEnds,
        request: &mut Request,
        is_end: bool,
    ) {
        let is_open = self.stream(ends).is_some_and(MemberStream::is_opened);
        debug_assert!(!is_open, "a request has one stream");
        if is_open {
            return;
        }
        let link = ends.phase.link();
        let Some(Link { connection: connection_key, stream: Some(stream) }) = link else { return };
        let Some(connection) = self.all.get_mut(connection_key) else { return };
        let is_secure = connection.pool.settings().tls.is_some();
        let Some(http2) = &mut connection.http2 else { return };
        http2.frames.have_buffer(&mut Spares(io));
        let scheme = if is_secure { Scheme::Https } else { Scheme::Http };
        let (frames, out) = (&mut http2.frames.connection, &mut http2.frames.out);
        let opened = frames.open_stream(request.answer(), is_end, out, |lines| {
            request.lines().encode(scheme, lines);
        });
        match opened {
            Ok(id) => {
                frames.set_tag(id, ends.key.to_bits());
                if let Some(stream) = http2.streams.get_mut(stream) {
                    stream.out.id = id;
                }
            }
            // The member accepts no more streams on this connection, so the request moves to another connection.
            Err(_) => agenda.add(Task::lose_stream(ends, LostStream::Full)),
        }
        self.list_for_flush(agenda, connection_key);
    }
}

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
            self.world.members.wait_for_window(self.io, ends);
        }
        let stream = self.world.members.stream_mut(ends).map(|it| it.stream);
        let waits = stream.is_some_and(|stream| {
            stream.is_whole |= !matches!(end, End::No);
            stream.awaits_window
        });
        let connection =
            ends.phase.connection().and_then(|connection| self.world.members.all.get(connection));
        let cannot_be_out = waits || connection.is_some_and(|connection| connection.connecting);
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
        if waits {
            return;
        }
        if is_first {
            self.world.members.open_stream((self.io, &mut self.world.agenda), ends, request, false);
        }
        self.world.members.send_on_stream(
            (self.io, &mut self.world.agenda),
            ends,
            input,
            pieces,
            end,
        );
    }

    /// Moves an exchange that has sent nothing to another connection, if its connection accepts no more streams.
    pub fn move_if_full(&mut self, ends: &mut TransactionEnds, request: &mut Request) {
        let (Some(connection), Some(member)) = (ends.phase.connection(), ends.phase.member())
        else {
            return;
        };
        let http2 = self.world.members.all.get(connection).and_then(|it| it.http2.as_ref());
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
        self.leave_stream(ends);
        let has_one = self.take_multiplexed(ends, &local, need, false)
            || self.open_connection(ends, member, need).is_ok();
        if !has_one {
            self.world.agenda.add(Task::lose_stream(ends, LostStream::Full));
        }
        has_one
    }
}

impl Members {
    /// Sends data on the stream of an exchange, if it is open.
    pub fn send_on_stream(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        ends: &mut TransactionEnds,
        input: &[u8],
        pieces: &Pieces,
        end: End<'_>,
    ) {
        let Some(StreamOf { key, token, frames, stream }) = self.stream_mut(ends) else {
            return;
        };
        if stream.is_opened() {
            stream.out.send(&mut Socket::of(io, token), frames, (input, pieces), end);
            self.note_window(key, io.now_ms());
            self.list_for_flush(agenda, key);
        }
    }
}

impl WorkerEdge<'_> {
    /// Sends a stored request again, on another stream.
    pub fn resend_on_stream(&mut self, ends: &mut TransactionEnds, request: &mut Request) {
        if request.websocket.is_some() {
            return self.world.members.ask_for_tunnel(
                (self.io, &mut self.world.agenda),
                ends,
                request,
            );
        }
        let head_bytes = request.head_bytes as usize;
        let is_bare = request.framing.is_empty();
        if !is_bare && self.world.members.wait_for_window(self.io, ends) {
            return;
        }
        self.world.members.open_stream((self.io, &mut self.world.agenda), ends, request, is_bare);
        if !is_bare {
            let body = &request.bytes[head_bytes..];
            self.world.members.send_on_stream(
                (self.io, &mut self.world.agenda),
                ends,
                body,
                &Pieces::whole(body.len()),
                request.end(),
            );
        }
        let connection =
            ends.phase.connection().and_then(|connection| self.world.members.all.get(connection));
        let is_opened = self.world.members.stream(ends).is_some_and(MemberStream::is_opened);
        let may_be_out = is_opened && connection.is_some_and(|connection| !connection.connecting);
        if may_be_out && request.bytes.len() - head_bytes > REPLAY_BYTES_MAX {
            // The request was stored while it waited, but it is too long to be stored for further retries.
            request.let_go();
            request.bytes.truncate(head_bytes);
            request.bytes.shrink_to_fit();
        }
    }
}
