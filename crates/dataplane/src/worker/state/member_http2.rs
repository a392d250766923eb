//! Additional state of a connection to a member with HTTP/2.

use weir_exchange::local::pool::LocalMember;
use weir_http::h2::{Connection, Limits};

use crate::worker::state::frames::Frames;
use crate::worker::state::streams::MemberStreams;

/// Limits of a member. The connection's window has room for the windows of all streams: a slow client must not block the
/// responses of others.
pub const LIMITS: Limits = Limits {
    stream_window_size: STREAM_WINDOW_SIZE,
    connection_window_size: STREAM_WINDOW_SIZE * STREAMS_MAX,
    streams_max: STREAMS_MAX,
    extended_connect: false,
    ..Limits::DEFAULT
};
pub const STREAMS_MAX: u32 = 100;
pub const STREAM_WINDOW_SIZE: u32 = 128 * 1024;

/// Additional state of a connection to a member with HTTP/2.
pub struct MemberHttp2 {
    /// The protocol's state, and frames that go out at the end of the turn.
    pub frames: Frames,
    /// The streams that it carries, or that wait for it.
    pub streams: MemberStreams,
    /// It is among those that have frames to send.
    pub is_listed: bool,
    /// The socket's deadline; never later than the first thing that is due.
    pub timer_ms: u64,
    /// Until when it has to be open, and since when it has carried nothing.
    pub open_by_ms: u64,
    pub idle_since_ms: u64,
    /// When the member was last heard of.
    pub received_ms: u64,
    /// It carries nothing, and is counted among those.
    pub is_resting: bool,
    /// It takes no more requests and closes when it carries nothing.
    pub is_leaving: bool,
    /// The member has said how many streams it allows.
    pub has_settings: bool,
    /// The one exchange that it carries is or may become a tunnel.
    pub is_tunnels: bool,
    /// Since when its window has been shut.
    pub shut_since_ms: Option<u64>,
}

impl MemberHttp2 {
    /// The state of a new connection, which must be open in time.
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

    /// Whether the member takes extended CONNECT; `None`: it has not said yet.
    pub fn takes_tunnels(&self) -> Option<bool> {
        let settings = self.frames.connection.peer_settings();
        self.has_settings.then_some(settings.extended_connect)
    }

    /// It takes no more requests from now on.
    pub fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Whether a stream can be opened now.
    pub fn may_open(&self) -> bool {
        let connection = &self.frames.connection;
        let streams_max = connection.peer_settings().streams_max.min(STREAMS_MAX);
        !connection.is_closing() && connection.stream_count() < streams_max as usize
    }

    /// Whether it can carry a further exchange. Until the member says how many, it is taken to allow as many as it
    /// did before.
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
