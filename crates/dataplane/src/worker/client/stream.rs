//! Responses on an HTTP/2 stream: heads, data within the windows, and the end.
//!
//! Data that exceeds a window is stored with its stream, and the member is paused meanwhile. So at most the data of one read
//! waits per stream.

use weir_connection::{client::streams::Stream, frames::exchange_of};
use weir_event_loop::EventLoop;
use weir_exchange::arena::{ClientKey, ExchangeKey};
use weir_exchange::parts::caller::Caller;
use weir_exchange::parts::end::End;
use weir_exchange::parts::messages::OwnAnswer;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::stream_end::StreamEnd;
use weir_exchange::parts::transaction_ends::{LetOut, TransactionEnds};
use weir_http::h1::{OwnResponse, reason_phrase};
use weir_http::h2::SendKind;
use weir_http::h2::hpack::BlockEncoder;
use weir_http::h2::message::{own_response_has_body, write_own_response};

use crate::worker::agenda::Agenda;
use crate::worker::client::own_response::OwnBytes;
use crate::worker::edge::WorkerEdge;
use crate::worker::router::Router;
use crate::worker::state::clients::Clients;
use crate::worker::wire::{Socket, Spares};

/// The number of bytes that each stream sends in its turn, while several streams wait for the connection's window.
const TURN_BYTES: usize = 16 * 1024;

impl Clients {
    /// Removes and closes the stream of an ended exchange.
    pub fn end_stream(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        ends: &mut TransactionEnds,
        end: StreamEnd,
    ) {
        let Some(stream) = ends.caller.take_stream() else { return };
        let Some(client) = ends.caller.client() else { return };
        let http2 = self.all.get_mut(client).and_then(|client| client.http2.as_mut());
        let Some(http2) = http2 else { return };
        let Some(mut stream) = http2.streams.remove(stream) else { return };
        http2.held.bytes -= stream.out.memory() + stream.head_bytes as usize;
        self.spare.give_room(&mut http2.streams);
        let out = (stream.out.id, stream.unreleased);
        self.close_stream((io, agenda), client, out, end);
        let Stream { out: unsent, held, joined, .. } = &mut *stream;
        let buffers = &mut Spares(io);
        unsent.clear(buffers);
        held.clear(buffers);
        joined.clear(buffers);
        self.spare.give_stream(stream);
    }

    /// Writes a head on the stream of an exchange, and returns its size in bytes.
    pub fn send_head(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        ends: &mut TransactionEnds,
        kind: SendKind,
        is_end: bool,
        write: impl FnOnce(&mut BlockEncoder<'_>),
    ) -> usize {
        let Caller::Client(client_key, Some(stream)) = ends.caller else { return 0 };
        let Some(http2) = self.all.get_mut(client_key).and_then(|it| it.http2.as_mut()) else {
            return 0;
        };
        let Some(stream) = http2.streams.get(stream) else { return 0 };
        http2.frames.have_buffer(&mut Spares(io));
        let (connection, out) = (&mut http2.frames.connection, &mut http2.frames.out);
        let before = out.len();
        // This cannot fail: an exchange ends when its stream is closed, and only one head is written.
        let sent = connection.send_headers(stream.out.id, kind, is_end, out, write);
        debug_assert_eq!(sent, Ok(()));
        let bytes = out.len() - before;
        self.list_for_flush(agenda, client_key);
        bytes
    }

    /// Sends data and its end on the client's stream.
    pub fn deliver(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        ends: &mut TransactionEnds,
        body: &[u8],
        pieces: &Pieces,
        end: End<'_>,
    ) {
        let Caller::Client(client_key, Some(stream)) = ends.caller else { return };
        let Some(client) = self.all.get_mut(client_key) else { return };
        let Some(http2) = &mut client.http2 else { return };
        let Some(stream) = http2.streams.get_mut(stream) else { return };
        let before = stream.out.memory();
        let sent = stream.out.send(
            &mut Socket::of(io, client.token),
            &mut http2.frames,
            (body, pieces),
            end,
        );
        http2.held.bytes = http2.held.bytes + stream.out.memory() - before;
        ends.count_sent(sent);
        self.flush_if_many_frames((io, agenda), client_key);
    }

    /// Sends queued data within the client's windows, at most this many bytes. `None`: no data is queued, or the socket
    /// still has data to send.
    pub fn send_waiting_response(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        ends: &mut TransactionEnds,
        bytes_max: usize,
    ) -> Option<LetOut> {
        let Caller::Client(client_key, Some(stream)) = ends.caller else { return None };
        let client = self.all.get_mut(client_key)?;
        let token = client.token;
        let http2 = client.http2.as_mut().filter(|_| io.sockets.queued(token) == 0)?;
        let stream = http2.streams.get_mut(stream).filter(|it| it.out.is_behind())?;
        let before = stream.out.memory();
        let sent =
            stream.out.send_waiting_data(&mut Socket::of(io, token), &mut http2.frames, bytes_max);
        http2.held.bytes = http2.held.bytes + stream.out.memory() - before;
        http2.held.note_taken(sent.data_bytes, io.now_ms());
        let is_behind = stream.out.is_behind();
        ends.count_sent(sent.bytes);
        self.flush_if_many_frames((io, agenda), client_key);
        Some(LetOut { data_bytes: sent.data_bytes, is_behind })
    }
}

impl Router {
    /// Sends waiting data of a transaction after windows have opened, at most this many bytes. Returns whether more can be
    /// sent.
    pub fn send_waiting_data(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        bytes_max: usize,
    ) -> bool {
        self.with_any(io, key, |it, at| {
            let sent = at.world.clients.send_waiting_response(
                (at.io, &mut at.world.agenda),
                it.ends_mut(),
                bytes_max,
            );
            sent.is_some_and(|sent| it.client_let_out(at, &sent))
        })
    }

    /// Sends waiting data after the windows of a connection have opened. Streams of equal urgency take turns; urgent ones
    /// are first.
    pub fn streams_opened(&mut self, io: &mut EventLoop, key: ClientKey) {
        if let Some(http2) = self.world.clients.all.get_mut(key).and_then(|it| it.http2.as_mut()) {
            http2.has_opened = false;
        }
        let Some(http2) = self.world.clients.all.get(key).and_then(|it| it.http2.as_ref()) else {
            return;
        };
        let exchanges = http2.frames.connection.streams().filter_map(|(_, tag)| exchange_of(tag));
        let waits = |key: ExchangeKey| {
            let transaction = self.exchanges.get(key);
            let stream = transaction.and_then(|it| self.world.clients.stream(it.ends()));
            let stream = stream.filter(|stream| stream.out.is_behind());
            stream.map(|stream| (stream.priority.urgency, stream.out.id))
        };
        let mut waiting: Vec<((u8, u32), ExchangeKey)> =
            exchanges.filter_map(|key| waits(key).map(|order| (order, key))).collect();
        waiting.sort_unstable();
        for alike in waiting.chunk_by(|((one, _), _), ((other, _), _)| one == other) {
            let mut alike: Vec<ExchangeKey> = alike.iter().map(|(_, exchange)| *exchange).collect();
            while !alike.is_empty() {
                alike.retain(|&exchange| self.send_waiting_data(io, exchange, TURN_BYTES));
            }
        }
    }
}

impl WorkerEdge<'_> {
    /// Sends a response generated by weir on the stream of an exchange.
    pub fn send_own_on_stream(&mut self, ends: &mut TransactionEnds, answer: &OwnAnswer<'_>) {
        let line = format!("{} {}\n", answer.status, reason_phrase(answer.status));
        let mut wall = std::mem::take(&mut self.world.wall);
        let (date, _) = wall.at(self.io.clock());
        let fields = [("Date", date.http.as_bytes())];
        let response = answer.with(&fields, line.as_bytes());
        let has_body = own_response_has_body(&response);
        let head_bytes = self.world.clients.send_head(
            (self.io, &mut self.world.agenda),
            ends,
            SendKind::Response,
            !has_body,
            |lines| {
                write_own_response(&response, lines);
            },
        );
        ends.count_sent(head_bytes);
        if has_body {
            self.world.clients.deliver(
                (self.io, &mut self.world.agenda),
                ends,
                response.body,
                &Pieces::whole(response.body.len()),
                End::Data,
            );
        }
        self.world.wall = wall;
        ends.account.head_bytes_sent += head_bytes as u64;
    }
}

impl Clients {
    /// Sends a response generated by weir on a stream without an exchange.
    pub fn send_without_exchange(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        key: ClientKey,
        stream: u32,
        response: &OwnResponse<'_>,
    ) -> OwnBytes {
        let Some(client) = self.all.get_mut(key) else { return OwnBytes::default() };
        let Some(http2) = &mut client.http2 else { return OwnBytes::default() };
        let (connection, out) = (&mut http2.frames.connection, &mut http2.frames.out);
        let before = out.len();
        let has_body = own_response_has_body(response);
        let sent = connection.send_headers(stream, SendKind::Response, !has_body, out, |lines| {
            write_own_response(response, lines);
        });
        let head_bytes = out.len() - before;
        let length = response.body.len();
        if sent.is_ok() && has_body {
            // A client with a closed window gets only the head, and then a reset because the body is missing.
            let is_open = connection.data_allowance(stream) >= length;
            if is_open && connection.write_data_header(stream, length, true, out).is_ok() {
                out.extend_from_slice(response.body);
            }
        }
        let ends_ms = connection.leave_answered(stream, response.status, io.now_ms(), out);
        let bytes = (out.len() - before) as u64;
        client.server.counters.bytes_sent.add(bytes);
        self.arm(io, key, ends_ms.unwrap_or(u64::MAX));
        self.list_for_flush(agenda, key);
        OwnBytes { bytes, head_bytes: head_bytes as u64 }
    }

    /// Sends the collected frames before the end of the turn, if there are many.
    pub fn flush_if_many_frames(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        key: ClientKey,
    ) {
        let http2 = self.all.get(key).and_then(|it| it.http2.as_ref());
        if http2.is_some_and(|http2| http2.frames.is_much()) {
            self.flush((io, agenda), key);
        } else {
            self.bound_untaken_data(io, key);
            self.list_for_flush(agenda, key);
        }
    }
}
