//! A client's connection with HTTP/2: its bytes become events of streams, and what transactions send becomes frames.
//!
//! A transaction sends on its stream within the windows. Data that exceeds a window waits with its stream, and its member is paused
//! meanwhile, so at most the data of one read waits per stream.

use weir_exchange::arena::{ExchangeKey, StreamKey};
use weir_exchange::parts::end::End;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::stream_end::StreamEnd;
use weir_http::h1::OwnResponse;
use weir_http::h2::hpack::{BlockEncoder, HeaderBlock};
use weir_http::h2::message::{own_response_has_body, write_own_response};
use weir_http::h2::{
    Connection, ConnectionError, ErrorCode, Event, HeadersKind, Limits, Priority, ResetBy, SendKind,
};
use weir_http::message::RequestHead;

use crate::client::memory::ConnectionMemory;
use crate::client::pending::PendingRequests;
use crate::client::streams::{ClientStreams, Stream};
use crate::frames::{Frames, SentBytes, exchange_of};
use crate::wire::{Buffers, Wire};

/// When a client receives GOAWAY, it may have just opened more streams. They are accepted for this time, or until the client
/// answers a ping.
const LAST_STREAMS_MS: u64 = 1_000;

/// The payload of the ping that follows the first GOAWAY.
const END_PING: [u8; 8] = *b"weir end";

/// The additional state of a client connection with HTTP/2.
pub struct Http2 {
    /// The state of the protocol, and frames that are sent at the end of the turn.
    pub frames: Frames,
    /// The pending requests, if any.
    pub pending: Option<Box<PendingRequests>>,
    /// The streams with exchanges. A stream may be closed in the protocol before its exchange ends.
    pub streams: ClientStreams,
    /// Whether it is on the agenda to send its frames.
    pub is_listed: bool,
    /// The time of the socket's timer; never later than the earliest deadline of the connection.
    pub timer_ms: u64,
    /// The time since which the connection has had no exchange.
    idle_since_ms: u64,
    /// The time since which a frame other than DATA has been incomplete.
    partial_since_ms: Option<u64>,
    /// The time at which the end of the connection was announced (GOAWAY).
    announced_ms: Option<u64>,
    /// Whether a window of the connection has opened during the current read. Then it is on the agenda to send more.
    has_opened: bool,
    /// What the connection holds in memory.
    pub held: ConnectionMemory,
}

/// What received bytes mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http2Event {
    /// More bytes are needed.
    More,
    /// Nothing that a transaction has to know.
    Nothing,
    /// The head of a request, in the block.
    Request {
        /// The new stream.
        stream: u32,
        /// Whether the request ends with its head.
        is_whole: bool,
    },
    /// The trailers of a request, in the block.
    Trailers {
        /// The stream.
        stream: u32,
        /// The exchange; `None`: the request has not begun.
        exchange: Option<ExchangeKey>,
    },
    /// Data of a request: `input[start..end]`.
    Data {
        /// The stream. It may have ended with the data.
        stream: u32,
        /// The exchange; `None`: the request has not begun.
        exchange: Option<ExchangeKey>,
        /// The first byte.
        start: usize,
        /// One past the last byte.
        end: usize,
        /// Whether the request ends with the data.
        is_end: bool,
    },
    /// The client has ended a request short of its Content-Length.
    Cut(Option<ExchangeKey>),
    /// A stream was reset, by the client or because of its error.
    Reset {
        /// The exchange; `None`: the request has not begun.
        exchange: Option<ExchangeKey>,
        /// The side.
        by: ResetBy,
    },
    /// The window of a stream has opened.
    StreamOpened(ExchangeKey),
    /// Windows have opened, for the first time in this read.
    Opened,
}

/// What is due on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// The connection ends: a frame was not complete in time.
    Partial,
    /// The connection ends: it was idle for too long. GOAWAY is written.
    Idle,
    /// The next deadline of the connection, besides those of its streams; `u64::MAX`: none.
    Next(u64),
}

/// A response that weir has sent on a stream without an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnsweredStream {
    /// Bytes of the head.
    pub head_bytes: usize,
    /// Bytes of head and body.
    pub bytes: usize,
    /// The deadline of the rest of the request; `u64::MAX`: none.
    pub until_ms: u64,
}

impl Http2 {
    /// The state of a new connection.
    pub fn new(limits: Limits, now_ms: u64) -> Self {
        Self {
            frames: Frames::new(Connection::server(limits)),
            pending: None,
            streams: ClientStreams::default(),
            is_listed: false,
            timer_ms: u64::MAX,
            idle_since_ms: now_ms,
            partial_since_ms: Some(now_ms),
            announced_ms: None,
            has_opened: false,
            held: ConnectionMemory::default(),
        }
    }

    /// Processes received bytes up to the next event. Returns their number, and the event. Header sections are in `block`. After an
    /// error, GOAWAY is written.
    pub fn received(
        &mut self,
        input: &[u8],
        now_ms: u64,
        block: &mut HeaderBlock,
    ) -> Result<(usize, Http2Event), ConnectionError> {
        let (connection, out) = (&mut self.frames.connection, &mut self.frames.out);
        let received = connection.receive(input, now_ms, block, out)?;
        let event = match received.event {
            Event::NeedMore => Http2Event::More,
            Event::Headers { stream, kind: HeadersKind::Request, end_stream, .. } => {
                Http2Event::Request { stream, is_whole: end_stream }
            }
            Event::Headers { stream, tag, .. } => {
                Http2Event::Trailers { stream, exchange: exchange_of(tag) }
            }
            Event::Data { stream, tag, start, end, end_stream: is_end } => {
                Http2Event::Data { stream, exchange: exchange_of(tag), start, end, is_end }
            }
            Event::RequestCut { tag, .. } => Http2Event::Cut(exchange_of(tag)),
            Event::StreamReset { tag, by, .. } => {
                Http2Event::Reset { exchange: exchange_of(tag), by }
            }
            Event::WindowOpened { stream: Some(stream) } => {
                self.exchange_on(stream).map_or(Http2Event::Nothing, Http2Event::StreamOpened)
            }
            Event::WindowOpened { stream: None } | Event::SettingsChanged => {
                match std::mem::replace(&mut self.has_opened, true) {
                    true => Http2Event::Nothing,
                    false => Http2Event::Opened,
                }
            }
            Event::Priority { stream, priority } => {
                self.prioritize(stream, priority);
                Http2Event::Nothing
            }
            Event::Pong { .. } => {
                if self.announced_ms.is_some() {
                    self.end();
                }
                Http2Event::Nothing
            }
            Event::SettingsAcknowledged | Event::Goaway { .. } => Http2Event::Nothing,
        };
        Ok((received.consumed, event))
    }

    /// Handles the end of a read. Returns whether an incomplete frame has begun in it.
    pub fn end_read(&mut self, has_used_bytes: bool, now_ms: u64) -> bool {
        if !self.frames.connection.awaits_rest() {
            self.partial_since_ms = None;
            return false;
        }
        let has_begun = has_used_bytes || self.partial_since_ms.is_none();
        if has_begun {
            // The incomplete frame began after the last complete event.
            self.partial_since_ms = Some(now_ms);
        }
        has_begun
    }

    /// The exchange of an open stream, if it has begun.
    pub fn exchange_on(&self, stream: u32) -> Option<ExchangeKey> {
        self.frames.connection.tag(stream).and_then(exchange_of)
    }

    /// The index of the pending request that has to begin before this event.
    pub fn begins_before(&self, event: &Http2Event) -> Option<usize> {
        let (Http2Event::Data { stream, exchange: None, .. }
        | Http2Event::Trailers { stream, exchange: None }) = event
        else {
            return None;
        };
        self.pending.as_ref()?.place_of(*stream)
    }

    /// The event, with the exchange of its request, which has begun.
    pub fn of_begun(&self, mut event: Http2Event) -> Http2Event {
        if let Http2Event::Data { stream, exchange, .. }
        | Http2Event::Trailers { stream, exchange } = &mut event
        {
            *exchange = self.exchange_on(*stream);
        }
        event
    }

    /// Whether a stream is open.
    pub fn has_open(&self, stream: u32) -> bool {
        self.frames.connection.tag(stream).is_some()
    }

    /// Sets the priority of a stream to the one that the client requests. Its request may not have begun.
    pub fn prioritize(&mut self, stream: u32, priority: Priority) {
        if let Some(exchange) = self.exchange_on(stream) {
            if let Some(stream) = self.streams.of_exchange_mut(exchange) {
                stream.priority = priority;
            }
        } else if let Some(pending) = &mut self.pending
            && let Some(place) = pending.place_of(stream)
        {
            pending.requests[place].priority = Some(priority);
        }
    }

    /// Assigns an exchange to its stream. `input`: the bytes to which the head refers.
    pub fn begin_exchange(
        &mut self,
        key: StreamKey,
        exchange: ExchangeKey,
        head: &RequestHead,
        input: &[u8],
    ) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        let priority = head.fields.iter().find(|field| field.name.of(input) == b"priority");
        if let Some(priority) = priority {
            stream.priority = Priority::parse(priority.value.of(input));
        }
        stream.head_bytes += self.held.count_head(input);
        self.frames.connection.set_tag(stream.out.id, exchange.to_bits());
    }

    /// Counts the trailers of a request: they may have to wait until its member can take them.
    pub fn count_trailers(&mut self, key: StreamKey, text: &[u8]) {
        if let Some(stream) = self.streams.get_mut(key) {
            stream.head_bytes += self.held.count_head(text);
        }
    }

    /// Returns flow-control window to the client for processed bytes. Returns whether there were any.
    pub fn release(&mut self, stream: u32, bytes: u32) -> bool {
        if bytes > 0 {
            self.frames.connection.release(stream, bytes, &mut self.frames.out);
        }
        bytes > 0
    }

    /// Returns window for the forwarded bytes of a stream, and of its connection. Returns whether there were any.
    pub fn give_window(&mut self, key: StreamKey) -> bool {
        let Some(stream) = self.streams.get_mut(key) else { return false };
        // Data that waits for a member, for a tunnel, or for the rest of a read was not forwarded yet.
        let held = (stream.held.bytes() + stream.joined.bytes()) as u32;
        let bytes = std::mem::replace(&mut stream.unreleased, held) - held;
        let id = stream.out.id;
        self.release(id, bytes)
    }

    /// Writes a head on a stream. Returns its size in bytes; `None`: the stream has ended.
    pub fn send_head(
        &mut self,
        buffers: &mut impl Buffers,
        key: StreamKey,
        (kind, is_end): (SendKind, bool),
        write: impl FnOnce(&mut BlockEncoder<'_>),
    ) -> Option<usize> {
        let stream = self.streams.get(key)?;
        self.frames.have_buffer(buffers);
        let (connection, out) = (&mut self.frames.connection, &mut self.frames.out);
        let before = out.len();
        // This cannot fail: an exchange ends when its stream is closed, and only one head is written.
        let sent = connection.send_headers(stream.out.id, kind, is_end, out, write);
        debug_assert_eq!(sent, Ok(()));
        Some(out.len() - before)
    }

    /// Sends data and its end on a stream within the windows; the rest waits. Returns the number of bytes sent; `None`: the stream
    /// has ended.
    pub fn deliver(
        &mut self,
        wire: &mut impl Wire,
        key: StreamKey,
        body: (&[u8], &Pieces),
        end: End<'_>,
    ) -> Option<usize> {
        let stream = self.streams.get_mut(key)?;
        let before = stream.out.memory();
        let sent = stream.out.send(wire, &mut self.frames, body, end);
        self.held.bytes = self.held.bytes + stream.out.memory() - before;
        Some(sent)
    }

    /// Sends waiting data of a stream within the windows, at most this many bytes. Returns what was sent, and whether more waits;
    /// `None`: no data waits.
    pub fn send_waiting(
        &mut self,
        wire: &mut impl Wire,
        key: StreamKey,
        bytes_max: usize,
    ) -> Option<(SentBytes, bool)> {
        let stream = self.streams.get_mut(key).filter(|it| it.out.is_behind())?;
        let before = stream.out.memory();
        let sent = stream.out.send_waiting_data(wire, &mut self.frames, bytes_max);
        self.held.bytes = self.held.bytes + stream.out.memory() - before;
        self.held.note_taken(sent.data_bytes, wire.now_ms());
        Some((sent, stream.out.is_behind()))
    }

    /// The exchanges whose data waits for windows, with the urgency of each, in the order in which they are served.
    pub fn waiting(&mut self) -> Vec<(u8, ExchangeKey)> {
        self.has_opened = false;
        let waits = |stream: &Stream| {
            let exchange = stream.exchange.filter(|_| stream.out.is_behind())?;
            let is_open = self.exchange_on(stream.out.id) == Some(exchange);
            is_open.then_some((stream.priority.urgency, stream.out.id, exchange))
        };
        let mut waiting: Vec<_> = self.streams.all().filter_map(waits).collect();
        waiting.sort_unstable();
        waiting.into_iter().map(|(urgency, _, exchange)| (urgency, exchange)).collect()
    }

    /// The time by which the client must open the window, if data of the stream waits for the window.
    pub fn window_until_ms(&self, stream: &Stream, timeout_ms: u64) -> Option<u64> {
        let (connection, id) = (&self.frames.connection, stream.out.id);
        let is_shut = stream.out.is_behind() && connection.data_allowance(id) == 0;
        is_shut.then(|| connection.stalled_since_ms(id).map_or(0, |since_ms| since_ms + timeout_ms))
    }

    /// Removes the stream of an ended exchange, and closes it in the protocol. Returns it, with the deadline of what is left of the
    /// request (`u64::MAX`: none). What it holds must be returned to the [`Buffers`].
    pub fn end_stream(
        &mut self,
        key: StreamKey,
        end: StreamEnd,
        now_ms: u64,
    ) -> Option<(Box<Stream>, u64)> {
        let stream = self.streams.remove(key)?;
        self.held.bytes -= stream.out.memory() + stream.head_bytes as usize;
        let (connection, out) = (&mut self.frames.connection, &mut self.frames.out);
        let id = stream.out.id;
        connection.release(id, stream.unreleased, out);
        let ends_ms = match end {
            StreamEnd::Answered(status) => connection.leave_answered(id, status, now_ms, out),
            StreamEnd::Broken(code) => {
                connection.reset(id, code, out);
                None
            }
        };
        if self.has_no_exchange() {
            self.idle_since_ms = now_ms;
        }
        Some((stream, ends_ms.unwrap_or(u64::MAX)))
    }

    /// Resets a stream whose data is malformed, and counts the error toward the flood limit.
    pub fn refuse_stream(&mut self, stream: u32) -> Result<(), ConnectionError> {
        self.frames.connection.refuse(stream, &mut self.frames.out)
    }

    /// Resets a stream whose request the client may repeat.
    pub fn refuse_for_repeat(&mut self, stream: u32) {
        self.frames.connection.reset(stream, ErrorCode::REFUSED_STREAM, &mut self.frames.out);
    }

    /// Sends a response generated by weir on a stream without an exchange.
    pub fn answer(
        &mut self,
        stream: u32,
        response: &OwnResponse<'_>,
        now_ms: u64,
    ) -> AnsweredStream {
        let (connection, out) = (&mut self.frames.connection, &mut self.frames.out);
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
        let ends_ms = connection.leave_answered(stream, response.status, now_ms, out);
        let until_ms = ends_ms.unwrap_or(u64::MAX);
        AnsweredStream { head_bytes, bytes: out.len() - before, until_ms }
    }

    /// Announces the end of the connection (GOAWAY). Open requests are still answered. Returns the time by which the client may open
    /// more streams; `None`: the end was announced before.
    pub fn announce_end(&mut self, now_ms: u64) -> Option<u64> {
        if self.announced_ms.is_some() {
            return None;
        }
        self.announced_ms = Some(now_ms);
        self.frames.connection.announce_end(&mut self.frames.out);
        // A client that waits for nothing is not pinged: some (python-h2) take a PING behind GOAWAY for an error. It may open
        // streams until the time is over.
        if !self.has_nothing() {
            self.frames.connection.ping(END_PING, &mut self.frames.out);
        }
        Some(now_ms + LAST_STREAMS_MS)
    }

    /// Ends the connection with GOAWAY.
    pub fn end(&mut self) {
        self.frames.connection.end(ErrorCode::NO_ERROR, "", &mut self.frames.out);
    }

    /// Handles the deadlines of the connection, besides those of its streams. `has_arrived`: whether bytes of an idle client have
    /// arrived, which were not read yet.
    pub fn timed_out(
        &mut self,
        now_ms: u64,
        (header_timeout_ms, idle_timeout_ms): (u64, u64),
        has_arrived: impl FnOnce() -> bool,
    ) -> Due {
        let mut next_ms = u64::MAX;
        if let Some(since_ms) = self.partial_since_ms {
            next_ms = since_ms + header_timeout_ms;
            if next_ms <= now_ms {
                return Due::Partial;
            }
        }
        next_ms = next_ms.min(self.end_announced(now_ms).unwrap_or(u64::MAX));
        let (connection, out) = (&mut self.frames.connection, &mut self.frames.out);
        connection.end_unwanted(now_ms, out);
        let mut until_ms = connection.unwanted_until_ms().unwrap_or(u64::MAX);
        if self.has_nothing() {
            until_ms = self.idle_since_ms + idle_timeout_ms;
            if until_ms <= now_ms && has_arrived() {
                // The arrived data is probably a request, which is served.
                until_ms = now_ms + header_timeout_ms;
            } else if until_ms <= now_ms {
                self.end();
                return Due::Idle;
            }
        }
        Due::Next(next_ms.min(until_ms))
    }

    /// Ends the connection, if its end was announced and the time of its last streams is over. Returns when that will be.
    fn end_announced(&mut self, now_ms: u64) -> Option<u64> {
        let since_ms = self.announced_ms.filter(|_| !self.frames.connection.takes_no_more())?;
        let until_ms = since_ms + LAST_STREAMS_MS;
        if until_ms > now_ms {
            return Some(until_ms);
        }
        self.end();
        None
    }

    /// Whether the connection has no exchanges.
    pub fn has_no_exchange(&self) -> bool {
        self.streams.is_empty()
    }

    /// Whether the connection has neither exchanges nor open streams.
    pub fn has_nothing(&self) -> bool {
        self.has_no_exchange() && self.frames.connection.stream_count() == 0
    }

    /// Whether the connection has nothing, and takes no more.
    pub fn is_over(&self) -> bool {
        self.has_nothing() && self.frames.connection.takes_no_more()
    }

    /// What the connection holds in memory, if so many bytes are queued on its socket.
    pub fn memory_bytes(&self, queued: usize) -> u64 {
        (self.held.bytes + queued) as u64 + self.frames.connection.unreleased_bytes()
    }
}

#[cfg(test)]
mod tests {
    use weir_http::h2::Answer;

    use super::*;

    /// The bytes of a client: a request with a body in two frames, and one without.
    fn bytes_of_client() -> Vec<u8> {
        let (mut client, mut out) = (Connection::client(Limits::default()), Vec::new());
        client.start(&mut out);
        let open = |client: &mut Connection, out: &mut Vec<u8>, is_whole| {
            let opened = client.open_stream(Answer::Usual, is_whole, out, |lines| {
                lines.field(b":method", b"POST");
                lines.field(b":scheme", b"http");
                lines.field(b":authority", b"a");
                lines.field(b":path", b"/");
            });
            opened.expect("a stream")
        };
        let stream = open(&mut client, &mut out, false);
        for (data, is_end) in [(&b"one"[..], false), (b"four", true)] {
            client.write_data_header(stream, data.len(), is_end, &mut out).expect("a window");
            out.extend_from_slice(data);
        }
        open(&mut client, &mut out, true);
        out
    }

    /// What a connection reads of these bytes, cut into two.
    fn seen(input: &[u8], at: usize) -> String {
        let mut http2 = Http2::new(Limits::default(), 0);
        let (mut block, mut seen) = (HeaderBlock::default(), String::new());
        for part in [&input[..at], &input[at..]] {
            let mut used = 0;
            loop {
                let rest = &part[used..];
                let (consumed, event) = http2.received(rest, 0, &mut block).expect("sound bytes");
                match event {
                    Http2Event::More => break,
                    Http2Event::Request { stream, is_whole } => {
                        seen += &format!("request {stream} {is_whole};");
                    }
                    Http2Event::Data { stream, exchange: None, start, end, is_end } => {
                        seen += std::str::from_utf8(&rest[start..end]).expect("text");
                        if is_end {
                            seen += &format!(" ends {stream};");
                        }
                    }
                    Http2Event::Nothing | Http2Event::Opened => {}
                    other => panic!("{other:?}"),
                }
                used += consumed;
            }
            http2.end_read(used > 0, 0);
        }
        seen
    }

    #[test]
    fn requests_are_read_however_their_bytes_are_cut() {
        let input = bytes_of_client();
        for at in 0..=input.len() {
            assert_eq!(
                seen(&input, at),
                "request 1 false;onefour ends 1;request 3 true;",
                "cut at {at}"
            );
        }
    }

    /// What is due on a connection whose preface has arrived at 0 ms, or not at all. A header has to come within 500 ms, a
    /// request within 2000 ms.
    #[track_caller]
    fn check_due(has_begun: bool, (now_ms, has_arrived): (u64, bool), expected: Due) {
        let mut http2 = Http2::new(Limits::default(), 0);
        if has_begun {
            let (mut client, mut out) = (Connection::client(Limits::default()), Vec::new());
            client.start(&mut out);
            let mut block = HeaderBlock::default();
            let mut rest = &out[..];
            while let Ok((consumed, event)) = http2.received(rest, 0, &mut block)
                && event != Http2Event::More
            {
                rest = &rest[consumed..];
            }
            http2.end_read(true, 0);
        }
        let due = http2.timed_out(now_ms, (500, 2_000), || has_arrived);
        assert_eq!(due, expected, "begun: {has_begun}, at {now_ms}, arrived: {has_arrived}");
    }

    #[test]
    fn deadlines_follow_the_state() {
        check_due(false, (100, false), Due::Next(500));
        check_due(false, (500, false), Due::Partial);
        check_due(true, (500, false), Due::Next(2_000));
        check_due(true, (2_000, false), Due::Idle);
        check_due(true, (2_000, true), Due::Next(2_500));
    }

    #[test]
    fn an_announced_end_comes_when_its_time_is_over() {
        let mut http2 = Http2::new(Limits::default(), 0);
        http2.end_read(false, 0);
        assert_eq!(http2.announce_end(100), Some(100 + LAST_STREAMS_MS));
        assert_eq!(http2.announce_end(200), None, "it is announced once");
        assert!(!http2.is_over());
        http2.timed_out(100 + LAST_STREAMS_MS, (10_000, 20_000), || false);
        assert!(http2.is_over());
    }
}
