//! Additional state of a client connection with HTTP/2.

use weir_http::h2::{Connection, Limits};

use crate::worker::state::frames::Frames;
use crate::worker::state::pending::PendingRequests;
use crate::worker::state::streams::ClientStreams;

/// Additional state of a client connection with HTTP/2.
pub struct Http2 {
    /// The protocol's state, and frames that go out at the end of the turn.
    pub frames: Frames,
    /// Requests that have not begun, if any.
    pub pending: Option<Box<PendingRequests>>,
    /// Its streams with exchanges. A stream may end in the protocol before its exchange ends.
    pub streams: ClientStreams,
    /// Whether the client is listed as one with frames to send.
    pub is_listed: bool,
    /// The deadline of the socket; never later than the earliest deadline of the connection.
    pub timer_ms: u64,
    /// Since when there has been no exchange.
    pub idle_since_ms: u64,
    /// Since when a frame that is not DATA has been incomplete.
    pub partial_since_ms: Option<u64>,
    /// When the end was announced.
    pub announced_ms: Option<u64>,
    /// Whether windows have opened, so that streams can send more.
    pub has_opened: bool,
}

impl Http2 {
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
        }
    }

    /// Whether the connection has no exchanges.
    pub fn has_no_exchange(&self) -> bool {
        self.streams.is_empty()
    }

    /// Whether there are neither exchanges nor open streams.
    pub fn has_nothing(&self) -> bool {
        self.has_no_exchange() && self.frames.connection.stream_count() == 0
    }
}
