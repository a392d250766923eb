//! The state of an HTTP/2 connection to a member.

use weir_exchange::local::member::LocalMember;
use weir_http::h2::{Connection, Limits, is_whole};

use crate::frames::Frames;
use crate::member::streams::{MemberStream, MemberStreams};

/// The limits announced to members. The connection window is as large as the windows of all streams together, so a slow
/// client cannot block the responses of others.
pub const LIMITS: Limits = Limits {
    stream_window_size: STREAM_WINDOW_SIZE,
    connection_window_size: STREAM_WINDOW_SIZE * STREAMS_MAX,
    streams_max: STREAMS_MAX,
    extended_connect: false,
    ..Limits::DEFAULT
};
/// Maximum number of open streams.
pub const STREAMS_MAX: u32 = 100;
/// The receive window of a stream, in bytes.
pub const STREAM_WINDOW_SIZE: u32 = 128 * 1024;

/// Time after which an exhausted window is expected to stay exhausted.
pub const SHUT_MS_MAX: u64 = 1_000;

/// The state of an HTTP/2 connection to a member.
pub struct MemberHttp2 {
    /// The state of the protocol, and frames that are sent at the end of the turn.
    pub frames: Frames,
    /// The streams, including those that are not opened yet.
    pub streams: MemberStreams,
    /// Whether it is on the agenda to send its frames.
    pub is_listed: bool,
    /// The time of the socket's timer; never later than the earliest deadline of the connection.
    pub timer_ms: u64,
    /// The time by which the connection must be open.
    pub open_by_ms: u64,
    /// The time since which the connection has had no streams.
    pub idle_since_ms: u64,
    /// The time of the last read from the member.
    pub received_ms: u64,
    /// Whether the connection has no streams and is counted as idle.
    pub is_resting: bool,
    /// Whether the connection accepts no more requests, and closes when it has no streams.
    pub is_leaving: bool,
    /// Whether the member's SETTINGS have arrived.
    pub has_settings: bool,
    /// Whether the connection belongs to one exchange, which is a tunnel or may become one.
    pub is_tunnels: bool,
    /// The time since which the connection's send window has been exhausted; `None`: the window is open.
    pub shut_since_ms: Option<u64>,
}

impl MemberHttp2 {
    /// Creates the state of a new connection. `open_by_ms`: the time by which it must be open.
    pub fn new(open_by_ms: u64) -> Self {
        Self {
            frames: Frames::new(Connection::client(LIMITS)),
            streams: MemberStreams::default(),
            is_listed: false,
            timer_ms: open_by_ms,
            open_by_ms,
            idle_since_ms: open_by_ms,
            received_ms: 0,
            is_resting: false,
            is_leaving: false,
            has_settings: false,
            is_tunnels: false,
            shut_since_ms: None,
        }
    }

    /// Whether the member supports extended CONNECT; `None`: the SETTINGS have not arrived.
    pub fn takes_tunnels(&self) -> Option<bool> {
        let settings = self.frames.connection.peer_settings();
        self.has_settings.then_some(settings.extended_connect)
    }

    /// Whether all data of the response on a stream has arrived by its Content-Length, without the end of the stream.
    pub fn is_whole(&self, stream: &MemberStream) -> bool {
        stream.is_opened() && is_whole(&self.frames.connection, stream.out.id)
    }

    /// Makes the connection refuse further requests.
    pub fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Whether another stream can be opened.
    pub fn may_open(&self) -> bool {
        let connection = &self.frames.connection;
        let streams_max = connection.peer_settings().streams_max.min(STREAMS_MAX);
        !connection.is_closing() && connection.stream_count() < streams_max as usize
    }

    /// Whether the connection can serve another exchange. Before the member's SETTINGS arrive, the last known stream limit
    /// of the member is used.
    pub fn has_room(&self, member: &LocalMember) -> bool {
        let connection = &self.frames.connection;
        let allowed = match self.has_settings {
            true => connection.peer_settings().streams_max,
            false => member.streams_max.get(),
        };
        let streams_max = allowed.min(STREAMS_MAX);
        let is_free = !self.is_leaving && !self.is_tunnels && !connection.is_closing();
        is_free && self.streams.len() < streams_max as usize
    }

    /// Whether the connection can get another request with a body, or a tunnel: the window is open, or active requests have
    /// exhausted it recently.
    pub fn takes_body(&self, now_ms: u64) -> bool {
        let is_long = |since_ms: u64| since_ms + SHUT_MS_MAX <= now_ms;
        let goes_on = |stream: &MemberStream| {
            stream.is_opened() && (stream.out.is_behind() || !stream.is_whole)
        };
        !self.frames.connection.is_send_window_shut()
            || !self.shut_since_ms.is_some_and(is_long) && self.streams.iter().any(goes_on)
    }

    /// The time when a connection without streams is closed: after `idle_timeout_ms`, or earlier if its window is exhausted.
    pub fn rests_until_ms(&self, idle_timeout_ms: u64) -> u64 {
        let until_ms = self.idle_since_ms + idle_timeout_ms;
        self.shut_since_ms.map_or(until_ms, |since_ms| until_ms.min(since_ms + SHUT_MS_MAX))
    }
}
