//! What goes to a client on a stream of HTTP/2: heads, data within the windows, the end.
//!
//! Data that a window does not let out waits with its exchange, and the member is not read meanwhile: at most
//! one read of it waits per stream.

use weir_event_loop::EventLoop;
use weir_http::h1::{OwnResponse, reason_phrase};
use weir_http::h2::hpack::BlockEncoder;
use weir_http::h2::message::{own_response_has_body, write_own_response};
use weir_http::h2::{ErrorCode, SendKind};

use crate::access_log::Termination;
use crate::arena::{ClientKey, ExchangeKey, StreamKey};
use crate::worker::Worker;
use crate::worker::body::Pieces;
use crate::worker::client::own_response::{OwnAnswer, OwnBytes};
use crate::worker::streams::{Stream, exchange_of};
use crate::worker::transaction::end::End;
use crate::worker::transaction::ends::Ends;
use crate::worker::transaction::exchange::{Exchange, Phase};
use crate::worker::world::{Desk, World};

/// Streams whose data waits for the connection's window take turns with so many bytes.
const TURN_BYTES: usize = 16 * 1024;

/// Room for held data that a stream keeps when it is used again.
const KEPT_BYTES_MAX: usize = 4 * 1024;

/// Streams that are kept to be used again.
const SPARE_MAX: usize = 128;

impl Worker {
    /// What an exchange on a stream needs, from those that were used before.
    pub fn take_stream(&mut self, key: ClientKey, id: u32) -> Option<StreamKey> {
        let http2 = self.world.clients.get_mut(key)?.http2.as_mut()?;
        let mut stream = self.world.spare_streams.pop().unwrap_or_default();
        stream.exchange = Some(self.exchanges.next_key());
        stream.out.id = id;
        Some(http2.streams.insert(stream))
    }
}

impl World {
    /// Takes it back.
    fn give_stream(&mut self, mut stream: Box<Stream>) {
        if self.spare_streams.len() < SPARE_MAX {
            let Stream { mut out, mut held, .. } = std::mem::take(&mut *stream);
            out.reset();
            held.clear();
            held.shrink_to(KEPT_BYTES_MAX);
            *stream = Stream { out, held, ..Stream::default() };
            self.spare_streams.push(stream);
        }
    }
}

impl Desk<'_> {
    /// An exchange is over: so is its stream.
    pub fn end_stream(&mut self, ends: &mut Ends, end: StreamEnd) {
        let Some(stream) = ends.stream.take() else { return };
        let client = self.world.clients.get_mut(ends.client);
        let http2 = client.and_then(|client| client.http2.as_mut());
        let Some(mut stream) = http2.and_then(|http2| http2.streams.remove(stream)) else { return };
        let out = (stream.out.id, stream.unreleased);
        self.close_stream(ends.client, out, end);
        self.io.give_buffer(std::mem::take(&mut stream.joined));
        self.world.give_stream(stream);
    }
}

impl Ends {
    /// Writes a head on the stream of an exchange; the bytes that it takes.
    pub fn send_stream_head(
        &mut self,
        at: &mut Desk<'_>,
        kind: SendKind,
        is_end: bool,
        write: impl FnOnce(&mut BlockEncoder<'_>),
    ) -> usize {
        let client_key = self.client;
        let Some(stream) = self.stream else { return 0 };
        let Some(http2) = at.world.clients.get_mut(client_key).and_then(|it| it.http2.as_mut())
        else {
            return 0;
        };
        let Some(stream) = http2.streams.get(stream) else { return 0 };
        http2.frames.have_buffer(at.io);
        let (connection, out) = (&mut http2.frames.connection, &mut http2.frames.out);
        let before = out.len();
        // A stream that is gone has taken its exchange with it, and one head is written.
        let sent = connection.send_headers(stream.out.id, kind, is_end, out, write);
        debug_assert_eq!(sent, Ok(()));
        let bytes = out.len() - before;
        at.world.list_for_flush(client_key);
        bytes
    }
}

impl Worker {
    /// The windows of a connection may let out more: streams take turns, the urgent ones first.
    pub fn streams_opened(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(http2) = self.world.clients.get(key).and_then(|it| it.http2.as_ref()) else {
            return;
        };
        let exchanges = http2.frames.connection.streams().filter_map(|(_, tag)| exchange_of(tag));
        let waits = |key: ExchangeKey| {
            let transaction = self.exchanges.get(key);
            let stream = transaction.and_then(|it| self.world.stream(it.ends()));
            let stream = stream.filter(|stream| stream.out.is_behind());
            stream.map(|stream| (stream.priority.urgency, stream.out.id))
        };
        let mut waiting: Vec<((u8, u32), ExchangeKey)> =
            exchanges.filter_map(|key| waits(key).map(|order| (order, key))).collect();
        waiting.sort_unstable();
        for alike in waiting.chunk_by(|((one, _), _), ((other, _), _)| one == other) {
            let mut alike: Vec<ExchangeKey> = alike.iter().map(|(_, exchange)| *exchange).collect();
            while !alike.is_empty() {
                alike.retain(|&exchange| {
                    self.with_any(io, exchange, |it, at| it.let_out(at, TURN_BYTES))
                });
            }
        }
    }
}

impl Exchange {
    /// Sends up to so many bytes of what waits. Whether more of it may go.
    pub fn let_out(&mut self, at: &mut Desk<'_>, bytes_max: usize) -> bool {
        let Some(sent) = self.ends.let_out(at, bytes_max) else { return false };
        if sent.is_behind {
            let until_ms = at.io.now_ms() + self.client_timeout_ms();
            self.ends.set_client_deadline(at, until_ms);
            return sent.data_bytes > 0;
        }
        if let Phase::Deliver { ends_as, .. } = self.phase {
            self.end_answered(at, ends_as);
        } else if !self.ends.is_client_behind(at) {
            self.client_takes_more(at);
        }
        false
    }
}

impl Ends {
    /// Whether something of a response waits for its client's window.
    pub fn is_undelivered(&self, at: &Desk<'_>) -> bool {
        at.world.stream(self).is_some_and(|stream| stream.out.is_behind())
    }
}

impl Ends {
    /// Since when the client has not let more than a little of a response out.
    pub fn stalled_since_ms(&self, at: &mut Desk<'_>) -> Option<u64> {
        let stream = at.world.stream(self)?;
        let http2 = at.world.clients.get(self.client)?.http2.as_ref()?;
        http2.frames.connection.stalled_since_ms(stream.out.id)
    }
}

impl Ends {
    /// Sends a response of weir's own on the stream of an exchange.
    pub fn send_own_on_stream(&mut self, at: &mut Desk<'_>, answer: &OwnAnswer<'_>) -> OwnBytes {
        let line = format!("{} {}\n", answer.status, reason_phrase(answer.status));
        let mut wall = std::mem::take(&mut at.world.wall);
        let (date, _) = wall.at(at.io.clock());
        let fields = [("Date", date.http.as_bytes())];
        let response = answer.with(&fields, line.as_bytes());
        let has_body = own_response_has_body(&response);
        let head_bytes = self.send_stream_head(at, SendKind::Response, !has_body, |lines| {
            write_own_response(&response, lines);
        });
        self.count_sent(at.world.id, head_bytes);
        if has_body {
            self.deliver(at, response.body, &Pieces::whole(response.body.len()), End::Data);
        }
        at.world.wall = wall;
        // All of it is counted where it was sent.
        OwnBytes { bytes: 0, head_bytes: head_bytes as u64 }
    }
}

impl Desk<'_> {
    /// Answers a request that never became an exchange, on its stream.
    pub fn send_own_without_exchange(
        &mut self,
        key: ClientKey,
        stream: u32,
        response: &OwnResponse<'_>,
    ) -> OwnBytes {
        let Some(client) = self.world.clients.get_mut(key) else { return OwnBytes::default() };
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
            // A client whose window is shut from the start gets the head alone, and a reset that says so.
            let is_open = connection.data_allowance(stream) >= length;
            if is_open && connection.write_data_header(stream, length, true, out).is_ok() {
                out.extend_from_slice(response.body);
            }
        }
        let ends_ms = connection.leave_answered(stream, response.status, self.io.now_ms(), out);
        let bytes = (out.len() - before) as u64;
        client.server.live.counters.of(self.world.id).bytes_sent.add(bytes);
        self.arm(key, ends_ms.unwrap_or(u64::MAX));
        self.world.list_for_flush(key);
        OwnBytes { bytes, head_bytes: head_bytes as u64 }
    }

    /// Much that was gathered goes out before the end of the turn.
    pub fn heed_gathered(&mut self, key: ClientKey) {
        let http2 = self.world.clients.get(key).and_then(|it| it.http2.as_ref());
        if http2.is_some_and(|http2| http2.frames.is_much()) {
            self.flush_http2(key);
        } else {
            self.heed_untaken(key);
            self.world.list_for_flush(key);
        }
    }
}

/// How the stream of an exchange ends, if its client has not ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// All of the answer is out, which has this status, and the rest of the request is not wanted.
    Answered(u16),
    /// It is reset with this code.
    Broken(ErrorCode),
}

impl StreamEnd {
    /// That of an exchange which ended so.
    pub fn of(exchange: &Exchange, world: &World, termination: Termination) -> Self {
        match is_answered(exchange, world, termination) {
            true => Self::Answered(exchange.ends.account.status),
            false => Self::Broken(reset_code(termination)),
        }
    }

    /// That of a tunnel.
    pub fn of_tunnel(termination: Termination) -> Self {
        Self::Broken(match termination {
            // Only its member does not want what its client may yet send.
            Termination::Complete => ErrorCode::NO_ERROR,
            _ => ErrorCode::CANCEL,
        })
    }
}

/// The code of RST_STREAM that tells how an exchange ended of which not all is answered.
fn reset_code(termination: Termination) -> ErrorCode {
    match termination {
        Termination::ClientMalformed => ErrorCode::PROTOCOL_ERROR,
        Termination::ClientTimeout | Termination::ClientAbort => ErrorCode::CANCEL,
        Termination::ClientFlood => ErrorCode::ENHANCE_YOUR_CALM,
        Termination::MemberAbort
        | Termination::MemberTimeout
        | Termination::MemberMalformed
        | Termination::EncodingFailed
        | Termination::Stopped => ErrorCode::INTERNAL_ERROR,
        // A part must not look like the whole.
        _ => ErrorCode::CANCEL,
    }
}

/// Whether all of a response is out.
fn is_answered(exchange: &Exchange, world: &World, termination: Termination) -> bool {
    match exchange.phase {
        Phase::AwaitHead => exchange.ends.account.status != 0,
        Phase::Respond => termination == Termination::Complete,
        Phase::Deliver { .. } => {
            !world.stream(&exchange.ends).is_some_and(|stream| stream.out.is_behind())
        }
    }
}
