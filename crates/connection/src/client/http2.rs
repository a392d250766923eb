//! The additional state of a client connection with HTTP/2.

use weir_http::h2::{Connection, ErrorCode, Limits};

use crate::client::memory::ConnectionMemory;
use crate::client::pending::PendingRequests;
use crate::client::streams::ClientStreams;
use crate::frames::Frames;

/// When a client receives GOAWAY, it may have just opened more streams. They are accepted for this time, or until the client
/// answers a ping.
pub const LAST_STREAMS_MS: u64 = 1_000;

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
    pub idle_since_ms: u64,
    /// The time since which a frame other than DATA has been incomplete.
    pub partial_since_ms: Option<u64>,
    /// The time at which the end of the connection was announced (GOAWAY).
    pub announced_ms: Option<u64>,
    /// Whether a window of the connection has opened during the current read. Then it is on the agenda to send more.
    pub has_opened: bool,
    /// What the connection holds in memory.
    pub held: ConnectionMemory,
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

    /// Ends the connection with GOAWAY.
    pub fn end(&mut self) {
        self.frames.connection.end(ErrorCode::NO_ERROR, "", &mut self.frames.out);
    }

    /// Ends the connection, if its end was announced and the time of its last streams is over. Returns when that will be.
    pub fn end_announced(&mut self, now_ms: u64) -> Option<u64> {
        let since_ms = self.announced_ms.filter(|_| !self.frames.connection.takes_no_more())?;
        let until_ms = since_ms + LAST_STREAMS_MS;
        if until_ms > now_ms {
            return Some(until_ms);
        }
        self.end();
        None
    }

    /// Notes that a window of the connection has opened. Returns whether it is the first in this read.
    pub fn note_opened(&mut self) -> bool {
        !std::mem::replace(&mut self.has_opened, true)
    }

    /// Whether the connection has no exchanges.
    pub fn has_no_exchange(&self) -> bool {
        self.streams.is_empty()
    }

    /// Whether the connection has neither exchanges nor open streams.
    pub fn has_nothing(&self) -> bool {
        self.has_no_exchange() && self.frames.connection.stream_count() == 0
    }
}
