//! State of an HTTP/2 connection to a member.

use weir_exchange::local::pool::LocalMember;
use weir_http::h2::{Connection, Limits};

use crate::worker::state::frames::Frames;
use crate::worker::state::streams::MemberStreams;

/// Limits announced to members. The connection window has room for the windows of all streams, so one slow client
/// cannot block the responses of others.
pub const LIMITS: Limits = Limits {
    stream_window_size: STREAM_WINDOW_SIZE,
    connection_window_size: STREAM_WINDOW_SIZE * STREAMS_MAX,
    streams_max: STREAMS_MAX,
    extended_connect: false,
    ..Limits::DEFAULT
};
pub const STREAMS_MAX: u32 = 100;
pub const STREAM_WINDOW_SIZE: u32 = 128 * 1024;

/// State of an HTTP/2 connection to a member.
pub struct MemberHttp2 {
    /// The state of the protocol, and frames that are sent at the end of the turn.
    pub frames: Frames,
    /// The open streams, and those that wait to be opened.
    pub streams: MemberStreams,
    /// Whether the connection is in the list of those with frames to send.
    pub is_listed: bool,
    /// The deadline of the socket; never later than the earliest deadline of the connection.
    pub timer_ms: u64,
    /// The deadline for opening; and the time since which the connection has had no streams.
    pub open_by_ms: u64,
    pub idle_since_ms: u64,
    /// When bytes of the member last arrived.
    pub received_ms: u64,
    /// The connection has no streams and is counted as idle.
    pub is_resting: bool,
    /// The connection accepts no more requests and closes when it has no streams.
    pub is_leaving: bool,
    /// The member's SETTINGS have arrived.
    pub has_settings: bool,
    /// The connection belongs to one exchange that is a tunnel or may become one.
    pub is_tunnels: bool,
    /// Since when the connection's send window has been exhausted.
    pub shut_since_ms: Option<u64>,
}

impl MemberHttp2 {
    /// The state of a new connection. `open_by_ms`: the deadline for opening.
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

    /// Whether the member supports extended CONNECT; `None`: its SETTINGS have not arrived.
    pub fn takes_tunnels(&self) -> Option<bool> {
        let settings = self.frames.connection.peer_settings();
        self.has_settings.then_some(settings.extended_connect)
    }

    /// Makes the connection accept no more requests.
    pub fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Whether another stream can be opened now.
    pub fn may_open(&self) -> bool {
        let connection = &self.frames.connection;
        let streams_max = connection.peer_settings().streams_max.min(STREAMS_MAX);
        !connection.is_closing() && connection.stream_count() < streams_max as usize
    }

    /// Whether the connection can serve another exchange. Until the member's SETTINGS arrive, the stream limit of its
    /// previous connection is assumed.
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
}
