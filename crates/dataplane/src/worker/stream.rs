//! What goes to a client on a stream of HTTP/2: heads, data within the windows, the end.
//!
//! Data that a window does not let out waits with its exchange, and the member is not read meanwhile: at most
//! one read of it waits per stream.

use std::io::IoSlice;

use weir_http::h1::OwnResponse;
use weir_http::h2::hpack::BlockEncoder;
use weir_http::h2::message::{own_response_has_body, write_own_response, write_trailers};
use weir_http::h2::{Connection, ErrorCode, Priority, SendKind};
use weir_http::message::Field;

use super::Worker;
use super::body::{COALESCE_BYTES, Pieces};
use super::exchange::{Exchange, Phase};
use super::http2::Http2;
use super::own_response::OwnBytes;
use crate::access_log::Termination;
use crate::event_loop::{EventLoop, Token};

/// Frames of data that go out in one send.
const FRAMES_MAX: usize = 8;

/// Streams whose data waits for the connection's window take turns with so many bytes.
const TURN_BYTES: usize = 16 * 1024;

/// Room for pending data that a stream keeps when it is used again.
const KEPT_BYTES_MAX: usize = 4 * 1024;

/// Streams that are kept to be used again.
const SPARE_MAX: usize = 128;

/// The stream that an exchange is on.
pub struct Stream {
    /// Its number.
    pub id: u32,
    /// What the client wants to have first.
    pub priority: Priority,
    /// When its client must have done something; MAX: it need not.
    pub deadline_ms: u64,
    /// Bytes of the request whose window is not given back yet.
    pub unreleased: u32,
    /// Those among them that wait for a member.
    pub held: Vec<u8>,
    /// What follows them: trailers as HTTP/1 has them, or nothing.
    pub held_end: Option<Vec<u8>>,
    /// Bytes of the response that wait for a window.
    pending: Vec<u8>,
    /// So many at the front of them are out.
    pending_sent: usize,
    /// What follows them.
    pending_end: OwnedEnd,
    /// How the exchange ends when all of it is out; `None`: more comes.
    ends_as: Option<Termination>,
}

/// What follows data.
#[derive(Clone, Copy)]
pub enum End<'a> {
    /// More, at some time.
    No,
    /// Nothing.
    Data,
    /// Trailers, and the text that they are in.
    Trailers(&'a [Field], &'a [u8]),
}

/// The same, kept.
enum OwnedEnd {
    No,
    Data,
    Trailers(Vec<Field>, Vec<u8>),
}

impl Stream {
    fn new() -> Self {
        Self {
            id: 0,
            priority: Priority::default(),
            deadline_ms: u64::MAX,
            unreleased: 0,
            held: Vec::new(),
            held_end: None,
            pending: Vec::new(),
            pending_sent: 0,
            pending_end: OwnedEnd::No,
            ends_as: None,
        }
    }

    /// Whether something of the response waits.
    pub fn is_behind(&self) -> bool {
        !self.pending.is_empty()
    }
}

impl Worker {
    /// What an exchange on a stream needs, from those that were used before.
    pub fn take_stream(&mut self, id: u32) -> Box<Stream> {
        let mut stream = self.spare_streams.pop().unwrap_or_else(|| Box::new(Stream::new()));
        stream.id = id;
        stream
    }

    /// Takes it back.
    pub fn give_stream(&mut self, mut stream: Box<Stream>) {
        if self.spare_streams.len() < SPARE_MAX {
            let Stream { mut held, mut pending, .. } = *stream;
            held.clear();
            pending.clear();
            held.shrink_to(KEPT_BYTES_MAX);
            pending.shrink_to(KEPT_BYTES_MAX);
            *stream = Stream { held, pending, ..Stream::new() };
            self.spare_streams.push(stream);
        }
    }

    /// Writes a head on the stream of an exchange; the bytes that it takes.
    pub fn send_stream_head(
        &mut self,
        key: u32,
        kind: SendKind,
        is_end: bool,
        write: impl FnOnce(&mut BlockEncoder<'_>),
    ) -> usize {
        let exchange = &self.exchanges[key as usize];
        let client_key = exchange.client;
        let Some(stream) = &exchange.stream else { return 0 };
        let Some(http2) = &mut self.clients[client_key as usize].http2 else { return 0 };
        let before = http2.out.len();
        // A stream that is gone has taken its exchange with it, and one head is written.
        let sent = http2.connection.send_headers(stream.id, kind, is_end, &mut http2.out, write);
        debug_assert_eq!(sent, Ok(()));
        let bytes = http2.out.len() - before;
        self.list_for_flush(client_key);
        bytes
    }

    /// Sends data of a response, and its end.
    pub fn deliver(
        &mut self,
        io: &mut EventLoop,
        key: u32,
        body: &[u8],
        pieces: &Pieces,
        end: End<'_>,
    ) {
        let exchange = &mut self.exchanges[key as usize];
        let client_key = exchange.client;
        let Some(stream) = &mut exchange.stream else { return };
        let client = &mut self.clients[client_key as usize];
        let Some(http2) = &mut client.http2 else { return };
        let mut frames = Sent::default();
        if !stream.is_behind() {
            let parts = pieces.of(body);
            frames = send_data(io, client.token, http2, stream.id, parts, pieces.data_bytes, end);
        }
        if frames.data_bytes < pieces.data_bytes {
            if stream.pending.capacity() == 0 {
                stream.pending = io.take_buffer();
            }
            let mut skip = frames.data_bytes;
            for part in pieces.of(body) {
                let skipped = skip.min(part.len());
                stream.pending.extend_from_slice(&part[skipped..]);
                skip -= skipped;
            }
            http2.connection.mark_stalled(stream.id, io.now_ms());
        }
        if stream.is_behind() {
            stream.pending_end = match end {
                End::No => OwnedEnd::No,
                End::Data => OwnedEnd::Data,
                End::Trailers(fields, text) => OwnedEnd::Trailers(fields.to_vec(), text.to_vec()),
            };
        }
        exchange.count_sent(self.id, frames.bytes);
        self.heed_gathered(io, client_key);
    }

    /// The windows of a connection may let out more: streams take turns, the urgent ones first.
    pub fn streams_opened(&mut self, io: &mut EventLoop, key: u32) {
        let Some(http2) = &self.clients[key as usize].http2 else { return };
        let exchanges = http2.connection.streams().filter_map(|(_, tag)| tag.checked_sub(1));
        let waits = |key: u32| {
            let stream = self.exchanges.get(key as usize).and_then(|it| it.stream.as_ref());
            stream
                .filter(|stream| stream.is_behind())
                .map(|stream| (stream.priority.urgency, stream.id))
        };
        let mut waiting: Vec<((u8, u32), u32)> =
            exchanges.filter_map(|key| waits(key).map(|order| (order, key))).collect();
        waiting.sort_unstable();
        for alike in waiting.chunk_by(|((one, _), _), ((other, _), _)| one == other) {
            let mut alike: Vec<u32> = alike.iter().map(|(_, exchange)| *exchange).collect();
            while !alike.is_empty() {
                alike.retain(|&exchange| self.let_out(io, exchange, TURN_BYTES));
            }
        }
    }

    /// The window of one stream may let out more.
    pub fn stream_opened(&mut self, io: &mut EventLoop, key: u32) {
        while self.let_out(io, key, usize::MAX) {}
    }

    /// Sends up to so many bytes of what waits. Whether more of it may go.
    fn let_out(&mut self, io: &mut EventLoop, key: u32, bytes_max: usize) -> bool {
        let Some(exchange) = self.exchanges.get_mut(key as usize) else { return false };
        let client_key = exchange.client;
        let Some(stream) = exchange.stream.as_mut().filter(|stream| stream.is_behind()) else {
            return false;
        };
        let client = &mut self.clients[client_key as usize];
        let token = client.token;
        let Some(http2) = client.http2.as_mut().filter(|_| io.queued(token) == 0) else {
            return false;
        };
        let rest = &stream.pending[stream.pending_sent..];
        let turn = &rest[..rest.len().min(bytes_max)];
        let end = match &stream.pending_end {
            OwnedEnd::Data if turn.len() == rest.len() => End::Data,
            OwnedEnd::Trailers(fields, text) if turn.len() == rest.len() => {
                End::Trailers(fields, text)
            }
            _ => End::No,
        };
        let parts = std::iter::once(turn);
        let frames = send_data(io, token, http2, stream.id, parts, turn.len(), end);
        let is_all = frames.data_bytes == rest.len();
        stream.pending_sent += frames.data_bytes;
        exchange.bytes_sent += frames.bytes as u64;
        exchange.server.live.counters.of(self.id).bytes_sent.add(frames.bytes as u64);
        if !is_all {
            http2.connection.mark_stalled(stream.id, io.now_ms());
            let (timeout_ms, moved) = (exchange.server.http.body_timeout_ms, frames.data_bytes > 0);
            self.set_client_deadline(io, key, io.now_ms() + timeout_ms);
            self.heed_gathered(io, client_key);
            return moved;
        }
        io.give_buffer(std::mem::take(&mut stream.pending));
        stream.pending_sent = 0;
        stream.pending_end = OwnedEnd::No;
        let ends_as = stream.ends_as;
        self.heed_gathered(io, client_key);
        match ends_as {
            Some(termination) => {
                self.end(io, key, termination);
            }
            None => {
                if !self.is_client_behind(io, key) {
                    self.client_takes_more(io, key);
                }
            }
        }
        false
    }

    /// Whether something of a response waits for its client's window.
    pub fn is_undelivered(&self, key: u32) -> bool {
        self.exchanges[key as usize].stream.as_ref().is_some_and(|stream| stream.is_behind())
    }

    /// The response of an exchange on a stream is whole: it ends now, or when the client has taken it.
    pub fn end_delivery(&mut self, io: &mut EventLoop, key: u32, termination: Termination) {
        if !self.is_undelivered(key) {
            self.end(io, key, termination);
            return;
        }
        let exchange = &mut self.exchanges[key as usize];
        exchange.phase = Phase::Deliver;
        if let Some(stream) = &mut exchange.stream {
            stream.ends_as = Some(termination);
        }
        let until_ms = io.now_ms() + exchange.server.http.body_timeout_ms;
        self.set_client_deadline(io, key, until_ms);
    }

    /// Since when the client has not let more than a little of a response out.
    pub fn stalled_since_ms(&self, key: u32) -> Option<u64> {
        let exchange = &self.exchanges[key as usize];
        let stream = exchange.stream.as_ref()?;
        self.clients[exchange.client as usize]
            .http2
            .as_ref()?
            .connection
            .stalled_since_ms(stream.id)
    }

    /// Sends a response of weir's own on the stream of an exchange.
    pub fn send_own_on_stream(
        &mut self,
        io: &mut EventLoop,
        key: u32,
        response: &OwnResponse<'_>,
    ) -> OwnBytes {
        let has_body = own_response_has_body(response);
        let head_bytes = self.send_stream_head(key, SendKind::Response, !has_body, |lines| {
            write_own_response(response, lines);
        });
        let exchange = &mut self.exchanges[key as usize];
        exchange.count_sent(self.id, head_bytes);
        if has_body {
            self.deliver(io, key, response.body, &Pieces::whole(response.body.len()), End::Data);
        }
        // All of it is counted where it was sent.
        OwnBytes { bytes: 0, head_bytes: head_bytes as u64 }
    }

    /// Answers a request that never became an exchange, on its stream.
    pub fn send_own_without_exchange(
        &mut self,
        key: u32,
        stream: u32,
        response: &OwnResponse<'_>,
    ) -> OwnBytes {
        let client = &mut self.clients[key as usize];
        let Some(http2) = &mut client.http2 else { return OwnBytes::default() };
        let before = http2.out.len();
        let (connection, out) = (&mut http2.connection, &mut http2.out);
        let has_body = own_response_has_body(response);
        let sent = connection.send_headers(stream, SendKind::Response, !has_body, out, |lines| {
            write_own_response(response, lines);
        });
        let head_bytes = out.len() - before;
        let length = response.body.len();
        if sent.is_ok() && has_body {
            // A client whose window is shut from the start gets the head alone.
            let is_open = connection.data_allowance(stream) >= length;
            if is_open && connection.write_data_header(stream, length, true, out).is_ok() {
                out.extend_from_slice(response.body);
            }
        }
        connection.reset(stream, ErrorCode::NO_ERROR, out);
        let bytes = (out.len() - before) as u64;
        client.server.live.counters.of(self.id).bytes_sent.add(bytes);
        self.list_for_flush(key);
        OwnBytes { bytes, head_bytes: head_bytes as u64 }
    }

    /// Much that was gathered goes out before the end of the turn.
    fn heed_gathered(&mut self, io: &mut EventLoop, key: u32) {
        let http2 = self.clients[key as usize].http2.as_ref();
        if http2.is_some_and(|http2| Self::has_gathered_enough(http2)) {
            self.flush_http2(io, key);
        } else {
            self.heed_untaken(io, key);
            self.list_for_flush(key);
        }
    }
}

/// The code of RST_STREAM that tells how an exchange ended; a stream that has ended needs none.
pub fn reset_code(exchange: &Exchange, termination: Termination) -> ErrorCode {
    match termination {
        _ if exchange.phase == Phase::Tunnel => ErrorCode::CANCEL,
        Termination::ClientMalformed => ErrorCode::PROTOCOL_ERROR,
        Termination::ClientTimeout | Termination::ClientAbort => ErrorCode::CANCEL,
        Termination::ClientFlood => ErrorCode::ENHANCE_YOUR_CALM,
        Termination::MemberAbort
        | Termination::MemberTimeout
        | Termination::MemberMalformed
        | Termination::EncodingFailed
        | Termination::Stopped => ErrorCode::INTERNAL_ERROR,
        _ => ErrorCode::NO_ERROR,
    }
}

/// What went out.
#[derive(Default)]
struct Sent {
    data_bytes: usize,
    /// With the headers of frames.
    bytes: usize,
}

/// Sends of `parts`, which are `data_bytes` long, what the windows let out, and the end behind the last of it.
/// What is short is gathered, what is long goes out at once.
fn send_data<'p>(
    io: &mut EventLoop,
    token: Token,
    http2: &mut Http2,
    stream: u32,
    parts: impl Iterator<Item = &'p [u8]>,
    data_bytes: usize,
    end: End<'_>,
) -> Sent {
    let mut sent = Sent::default();
    let mut parts = Parts { parts, rest: b"" };
    let ends_with_data = matches!(end, End::Data);
    let is_short = data_bytes <= COALESCE_BYTES;
    while sent.data_bytes < data_bytes {
        let mut frames = [(0, 0); FRAMES_MAX];
        let mut count = 0;
        let gathered = http2.out.len();
        while count < FRAMES_MAX && sent.data_bytes < data_bytes {
            let left = data_bytes - sent.data_bytes;
            let length = http2.connection.data_allowance(stream).min(left);
            let is_last = length == left;
            let (connection, out) = (&mut http2.connection, &mut http2.out);
            let end_stream = is_last && ends_with_data;
            if length == 0 || connection.write_data_header(stream, length, end_stream, out).is_err()
            {
                break;
            }
            sent.data_bytes += length;
            if is_short {
                parts.take(length, |part| out.extend_from_slice(part));
            } else {
                frames[count] = (out.len(), length);
                count += 1;
            }
        }
        if is_short {
            sent.bytes += http2.out.len() - gathered;
            break;
        }
        if count == 0 {
            break;
        }
        let mut slices = Slices::new(io, token);
        let mut at = 0;
        for (headers_end, length) in frames[..count].iter().copied() {
            slices.add(&http2.out[at..headers_end]);
            at = headers_end;
            sent.bytes += length;
            parts.take(length, |part| slices.add(part));
        }
        slices.flush();
        sent.bytes += http2.out.len() - gathered;
        http2.out.clear();
    }
    if sent.data_bytes == data_bytes {
        sent.bytes += send_end(&mut http2.connection, &mut http2.out, stream, data_bytes, end);
    }
    sent
}

/// Ends a stream behind its data, where the last frame of that did not; the bytes that it takes.
fn send_end(
    connection: &mut Connection,
    out: &mut Vec<u8>,
    stream: u32,
    data_bytes: usize,
    end: End<'_>,
) -> usize {
    let before = out.len();
    let ended = match end {
        End::Trailers(fields, text) if fields.iter().any(|field| field.forward) => connection
            .send_headers(stream, SendKind::Trailers, true, out, |lines| {
                write_trailers(fields, text, lines);
            }),
        End::Trailers(..) => connection.write_data_header(stream, 0, true, out),
        End::Data if data_bytes == 0 => connection.write_data_header(stream, 0, true, out),
        End::Data | End::No => Ok(()),
    };
    debug_assert_eq!(ended, Ok(()));
    out.len() - before
}

/// Slices from which lengths are taken.
struct Parts<'p, I> {
    parts: I,
    rest: &'p [u8],
}

impl<'p, I: Iterator<Item = &'p [u8]>> Parts<'p, I> {
    /// The next `length` bytes, which are there.
    fn take(&mut self, mut length: usize, mut each: impl FnMut(&'p [u8])) {
        while length > 0 {
            if self.rest.is_empty() {
                match self.parts.next() {
                    Some(part) => self.rest = part,
                    None => return,
                }
                continue;
            }
            let (part, rest) = self.rest.split_at(length.min(self.rest.len()));
            length -= part.len();
            self.rest = rest;
            each(part);
        }
    }
}

/// Slices that go out together; more of them than fit take a further send.
struct Slices<'a, 'io> {
    io: &'io mut EventLoop,
    token: Token,
    slices: [IoSlice<'a>; SLICES_MAX],
    count: usize,
}

const SLICES_MAX: usize = 3 * FRAMES_MAX;

impl<'a, 'io> Slices<'a, 'io> {
    fn new(io: &'io mut EventLoop, token: Token) -> Self {
        Self { io, token, slices: [IoSlice::new(b""); SLICES_MAX], count: 0 }
    }

    fn add(&mut self, slice: &'a [u8]) {
        if slice.is_empty() {
            return;
        }
        if self.count == SLICES_MAX {
            self.flush();
        }
        self.slices[self.count] = IoSlice::new(slice);
        self.count += 1;
    }

    fn flush(&mut self) {
        if self.count > 0 {
            self.io.send(self.token, &self.slices[..self.count]);
            self.count = 0;
        }
    }
}
