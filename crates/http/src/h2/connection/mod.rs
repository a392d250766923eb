//! The state machine of a connection, for both roles, without any I/O.
//!
//! The caller reads bytes and calls [`Connection::receive`] until all are consumed; each call returns at most one
//! event. Protocol replies are appended to `out`, which the caller sends before any later data of its own. The same
//! `out` has the caller's frames: heads ([`open_stream`](Connection::open_stream),
//! [`send_headers`](Connection::send_headers)) and the headers of DATA frames
//! ([`write_data_header`](Connection::write_data_header)), behind which the data itself goes in one vectored send. Body
//! bytes are never copied, in either direction.
//!
//! Duties of the caller:
//! - it returns every byte of an [`Event::Data`] with [`release`](Connection::release) once it was forwarded, even if
//!   its stream is gone by then; the machine itself returns padding;
//! - it answers a malformed message with [`refuse`](Connection::refuse), which counts against the peer;
//! - it stops reading from a peer that does not take the data in `out`. Protocol replies in `out` are bounded by a
//!   budget, but only sending empties it;
//! - it sets deadlines: for the acknowledgement of SETTINGS, for heads and bodies, and for
//!   [stalled](Connection::oldest_stall) streams.
//!
//! An error is final: GOAWAY is in `out`, which must be sent before the connection closes.
//!
//! Sources: RFC 9113 sections 3 to 6, RFC 8441, RFC 9218; section 5.3.1 of RFC 7540 as far as
//! self-dependency goes.

mod control;
mod data;
mod discarded_requests;
mod headers;
mod receive;
mod send;

use std::collections::VecDeque;

use super::error::{ConnectionError, Flood, Misbehaviour};
use super::error_code::ErrorCode;
use super::frame::{self, STREAM_ID_MAX, WINDOW_SIZE_MAX};
use super::hpack::{Decoder, Encoder};
use super::limits::{Budgets, CONNECTION_WINDOW_DEFAULT, Limits};
use super::priority::Priority;
use super::settings::{self, PeerSettings};
use super::streams::{CloseReason, Half, Stream, Streams};
use super::window::ReceiveWindow;
use receive::ExpectedInput;
pub use send::{SendKind, end_with_data};

/// The role of this end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Accepts requests.
    Server,
    /// Sends requests.
    Client,
}

/// The result of processing received bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveResult {
    /// The number of processed bytes of the input; the next call starts after them.
    pub consumed: usize,
    /// The event in these bytes.
    pub event: Event,
}

/// The kind of a header section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadersKind {
    /// The head of a request, which opens its stream.
    Request,
    /// The final head of a response.
    Response,
    /// The head of an interim response.
    Interim,
    /// Trailers; they always end the stream.
    Trailers,
}

/// The side that reset a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetBy {
    /// The peer.
    Peer,
    /// The machine, for an error of the peer. RST_STREAM is in the output already.
    Us,
}

/// An event for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The whole input is consumed, and there is no further event.
    NeedMore,
    /// A header section; its list is in the block. The list is truncated if [`HeaderBlock::excess`] says so.
    ///
    /// [`HeaderBlock::excess`]: super::hpack::HeaderBlock::excess
    Headers {
        /// The stream.
        stream: u32,
        /// The stream's [tag](Connection::set_tag), as before this event; a new stream has 0.
        tag: u64,
        /// The kind of the headers.
        kind: HeadersKind,
        /// Whether the section ends the stream.
        end_stream: bool,
    },
    /// `input[start..end]`, possibly empty at the end of a stream, is data.
    Data {
        /// The stream.
        stream: u32,
        /// The stream's tag; the stream itself may have ended with this.
        tag: u64,
        /// The first byte, in the input of this call.
        start: usize,
        /// One past the last byte.
        end: usize,
        /// Whether the data ends the stream.
        end_stream: bool,
    },
    /// A stream that the caller knows has been reset. A NO_ERROR reset of a server whose response is complete by its
    /// Content-Length (section 8.1) is reported as its end instead.
    StreamReset {
        /// The stream.
        stream: u32,
        /// The stream's tag.
        tag: u64,
        /// The error code.
        code: ErrorCode,
        /// The side.
        by: ResetBy,
        /// Whether all data of the peer's message had arrived by its Content-Length: only the end of the stream was missing.
        is_whole: bool,
    },
    /// A client has ended its request short of its Content-Length, after the response had begun. The reported part of
    /// the request is incomplete.
    RequestCut {
        /// The stream.
        stream: u32,
        /// The stream's tag; the stream itself may have ended with this.
        tag: u64,
    },
    /// More can be sent than before.
    WindowOpened {
        /// The stream; `None`: the connection's window has opened.
        stream: Option<u32>,
    },
    /// The peer's settings changed: windows, limits, supported features.
    SettingsChanged,
    /// Our settings apply at the peer.
    SettingsAcknowledged,
    /// The peer processes no streams above `last_stream`. Our streams above it were not processed and are closed; their
    /// requests may be sent again.
    Goaway {
        /// The last stream that the peer processes.
        last_stream: u32,
        /// The error code.
        code: ErrorCode,
    },
    /// The answer to a ping.
    Pong {
        /// The payload of the ping.
        payload: [u8; 8],
    },
    /// A client requests another priority for a stream (RFC 9218 section 7).
    Priority {
        /// The stream.
        stream: u32,
        /// The requested priority.
        priority: Priority,
    },
}

/// Settings of ours that the peer has not acknowledged yet.
#[derive(Debug, Clone, Copy)]
struct OwnSettings {
    stream_window_size: u32,
    decoder_table_size: Option<u32>,
}

/// Maximum number of unacknowledged SETTINGS frames of ours.
const SETTINGS_UNACKNOWLEDGED_MAX: usize = 4;

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    limits: Limits,
    budgets: Budgets,
    now_ms: u64,
    is_started: bool,
    failed: Option<ConnectionError>,

    reading: ExpectedInput,
    /// Part of a frame header or payload whose rest has not arrived.
    partial: Vec<u8>,
    /// The header block that CONTINUATION continues.
    continuing: Option<Box<headers::IncompleteHeaders>>,
    decoder: Decoder,
    encoder: Encoder,

    peer: PeerSettings,
    peer_settings_seen: bool,
    unacknowledged: VecDeque<OwnSettings>,
    /// The receive window of a new stream, as far as the peer has acknowledged it.
    stream_window_size: u32,
    pings_unanswered: u32,

    streams: Streams,
    receive_window: ReceiveWindow,
    send_window: i64,
    /// The highest stream that the peer has opened.
    peer_highest: u32,
    /// The next stream that we open.
    next_stream: u32,
    /// The last stream in our GOAWAY, if we have sent one.
    goaway_sent: Option<u32>,
    /// The last stream in the peer's GOAWAY, if it has sent one.
    goaway_received: Option<u32>,
}

impl Connection {
    /// The server's end of a connection. It checks the client's preface, both with prior knowledge in plain text
    /// and within TLS.
    pub fn server(limits: Limits) -> Self {
        Self::new(Role::Server, limits)
    }

    /// The client's end of a connection.
    pub fn client(limits: Limits) -> Self {
        Self::new(Role::Client, limits)
    }

    fn new(role: Role, limits: Limits) -> Self {
        let limits = limits.sound();
        Self {
            role,
            limits,
            budgets: Budgets::new(&limits),
            now_ms: 0,
            is_started: false,
            failed: None,
            reading: match role {
                Role::Server => ExpectedInput::Preface { matched: 0 },
                Role::Client => ExpectedInput::FrameHeader,
            },
            partial: Vec::new(),
            continuing: None,
            decoder: Decoder::new(),
            encoder: Encoder::new(limits.encoder_table_size_max),
            peer: PeerSettings::new(),
            peer_settings_seen: false,
            unacknowledged: VecDeque::new(),
            stream_window_size: CONNECTION_WINDOW_DEFAULT,
            pings_unanswered: 0,
            streams: Streams::default(),
            receive_window: ReceiveWindow::new(CONNECTION_WINDOW_DEFAULT),
            send_window: i64::from(CONNECTION_WINDOW_DEFAULT),
            peer_highest: 0,
            next_stream: 1,
            goaway_sent: None,
            goaway_received: None,
        }
    }

    /// Appends the beginning of a connection: the preface of a client, SETTINGS, and the connection's window. To be
    /// called as soon as the connection is open; a second call does nothing.
    pub fn start(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_started, true) {
            return;
        }
        if self.role == Role::Client {
            out.extend_from_slice(frame::PREFACE);
        }
        settings::write_initial(&self.limits, self.role == Role::Server, out);
        self.unacknowledged.push_back(OwnSettings {
            stream_window_size: self.limits.stream_window_size,
            decoder_table_size: Some(self.limits.decoder_table_size),
        });
        let increment = self.limits.connection_window_size - CONNECTION_WINDOW_DEFAULT;
        if increment > 0 {
            frame::write_window_update(0, increment, out);
            let due = self.receive_window.resize(self.limits.connection_window_size);
            debug_assert_eq!(due, None);
        }
    }

    /// The role of this end.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The peer's settings.
    pub fn peer_settings(&self) -> &PeerSettings {
        &self.peer
    }

    /// The number of streams that are open or half-closed.
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// Whether the peer has not acknowledged all of our settings.
    pub fn awaits_settings_ack(&self) -> bool {
        !self.unacknowledged.is_empty()
    }

    /// Whether the connection ends with its last stream: either side has sent GOAWAY.
    pub fn is_closing(&self) -> bool {
        self.goaway_sent.is_some() || self.goaway_received.is_some() || self.failed.is_some()
    }

    /// Whether certainly no further stream is opened: as [`is_closing`](Self::is_closing), but not for an end
    /// that was only announced.
    pub fn takes_no_more(&self) -> bool {
        let is_final = self.goaway_sent.is_some_and(|last_stream| last_stream != STREAM_ID_MAX);
        is_final || self.goaway_received.is_some() || self.failed.is_some()
    }

    /// Whether no part of a frame is stored that waits for its rest, so that an end of the transport here does
    /// not truncate a frame.
    pub fn is_between_frames(&self) -> bool {
        matches!(self.reading, ExpectedInput::FrameHeader)
            && self.partial.is_empty()
            && self.continuing.is_none()
    }

    /// Whether a part of a frame other than DATA, or of a header block, has arrived and the rest is missing: these are
    /// small, so a slow sender is suspicious.
    pub fn awaits_rest(&self) -> bool {
        !self.partial.is_empty()
            || self.continuing.is_some()
            || matches!(self.reading, ExpectedInput::Payload(_) | ExpectedInput::Preface { .. })
    }

    /// Sets the caller's number for a stream, such as the key of its transaction.
    pub fn set_tag(&mut self, stream: u32, tag: u64) {
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.tag = tag;
        }
    }

    /// The caller's number for a stream; `None`: the stream is closed.
    pub fn tag(&self, stream: u32) -> Option<u64> {
        self.streams.get(stream).map(|stream| stream.tag)
    }

    /// The streams that are open or half-closed, with the caller's numbers.
    pub fn streams(&self) -> impl Iterator<Item = (u32, u64)> {
        self.streams.iter().map(|stream| (stream.id, stream.tag))
    }

    /// The memory in bytes, without the connection itself.
    pub fn memory_size(&self) -> usize {
        let fragments = self.continuing.as_ref().map_or(0, |it| it.fragments.capacity());
        self.partial.capacity()
            + fragments
            + self.decoder.memory_size()
            + self.encoder.memory_size()
            + self.streams.memory_size()
    }

    /// Whether a stream was never used: a frame on it is an error of the connection.
    fn is_idle(&self, stream: u32) -> bool {
        let is_clients = stream % 2 == 1;
        match self.role {
            Role::Server => !is_clients || stream > self.peer_highest,
            Role::Client => !is_clients || stream >= self.next_stream,
        }
    }

    fn spend(&mut self, flood: Flood) -> Result<(), ConnectionError> {
        Ok(self.budgets.spend(flood, &self.limits, self.now_ms)?)
    }

    fn earn(&mut self, flood: Flood, count: u32) {
        self.budgets.earn(flood, count, &self.limits);
    }

    /// Ends a stream because of an error of the peer (section 5.4.2). The stream is gone even if this exceeds a budget.
    fn stream_error(
        &mut self,
        stream: u32,
        error: Misbehaviour,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, ConnectionError> {
        let code = error.code();
        frame::write_reset(stream, code, out);
        let closed = self.streams.close(stream, CloseReason::ByUs);
        if closed.is_none() {
            // The caller does not know the stream yet, or has forgotten it.
            self.streams.remember_reset(stream);
        }
        match (self.role, &closed) {
            (Role::Server, _) => self.spend(Flood::StreamErrors)?,
            // The number of these errors is bounded by the client's own requests, and a bad response does not concern other
            // streams.
            (Role::Client, Some(_)) => {}
            (Role::Client, None) => self.spend(Flood::ClosedStreams)?,
        }
        Ok(closed.map(|closed| Event::StreamReset {
            stream,
            tag: closed.tag,
            code,
            by: ResetBy::Us,
            is_whole: closed.is_whole(),
        }))
    }

    /// Ends the connection (section 5.4.1).
    fn fail(&mut self, error: ConnectionError, out: &mut Vec<u8>) {
        self.failed = Some(error);
        let last_stream = self.goaway_sent.unwrap_or(STREAM_ID_MAX).min(self.peer_highest);
        frame::write_goaway(last_stream, error.code(), error.text(), out);
        self.goaway_sent = Some(last_stream);
        self.partial = Vec::new();
        self.continuing = None;
    }

    /// One side of a stream has ended. The stream closes when the other side has ended too.
    fn close_if_ended(&mut self, stream: u32) {
        let both = |half: Half, other: Half| half == Half::Ended && other == Half::Ended;
        if self.streams.get(stream).is_some_and(|found| both(found.peer, found.ours)) {
            self.streams.close(stream, CloseReason::Ended);
            self.earn(Flood::Resets, 1);
            self.earn(Flood::StreamErrors, 1);
        }
    }

    /// Panics if the machine's state is inconsistent; for tests, and called after every event in debug builds.
    pub fn check_invariants(&self) {
        self.streams.check_invariants();
        self.receive_window.check_invariants();
        self.encoder.check_invariants();
        self.decoder.check_invariants();
        assert!(self.send_window <= i64::from(WINDOW_SIZE_MAX));
        assert!(self.streams.len() <= self.limits.streams_max as usize);
        let mut unreleased = 0;
        for stream in self.streams.iter() {
            assert!(!self.is_idle(stream.id));
            assert!(stream.send_window <= i64::from(WINDOW_SIZE_MAX));
            if stream.unwanted.is_some() {
                assert!(stream.ours == Half::Ended && stream.tag == 0);
                // Bytes that do not reopen the stream's window are still returned to the connection's window.
                continue;
            }
            unreleased += stream.receive.unreleased();
        }
        // The connection's window also counts data of closed streams.
        assert!(unreleased <= self.receive_window.unreleased());
        let largest = self.limits.frame_size_max as usize;
        assert!(self.partial.len() <= largest && self.partial.capacity() <= 2 * largest);
        let fragments = self.continuing.as_ref().map_or(0, |it| it.fragments.len());
        assert!(fragments <= self.limits.header_block_size_max as usize);
    }
}

/// Whether all data of the peer's message on a stream has arrived by its Content-Length, without the end of the stream.
pub fn is_whole(connection: &Connection, stream: u32) -> bool {
    // A whole frame is counted when its header has arrived.
    let is_arriving = matches!(
        connection.reading,
        ExpectedInput::Data(progress) if progress.stream == stream && progress.data_left > 0
    );
    !is_arriving && connection.streams.get(stream).is_some_and(Stream::is_whole)
}
