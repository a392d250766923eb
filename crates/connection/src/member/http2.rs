//! The state of an HTTP/2 connection to a member.

use weir_exchange::arena::{ExchangeKey, MemberStreamKey};
use weir_exchange::local::member::LocalMember;
use weir_exchange::parts::request::{ConnectionNeed, Request};
use weir_http::h2::{Connection, ErrorCode, Limits, is_whole};
use weir_http::message::Scheme;

use crate::frames::Frames;
use crate::member::streams::{MemberStream, MemberStreams};
use crate::wire::{Buffers, Wire};

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

    /// Notes that the connection is open: its timer is off.
    pub fn opened(&mut self) {
        self.timer_ms = u64::MAX;
    }

    /// Whether its frames have to be put on the agenda: they are not there yet.
    pub fn must_be_listed(&mut self) -> bool {
        !std::mem::replace(&mut self.is_listed, true)
    }

    /// Sends the collected frames, at the end of a turn.
    pub fn flush(&mut self, wire: &mut impl Wire) {
        self.is_listed = false;
        self.frames.flush(wire);
    }

    /// Ends the connection, which has no streams. Queued data is still sent, such as the end of a tunnel whose exchange has ended.
    pub fn end(&mut self, wire: &mut impl Wire) {
        self.frames.connection.end(ErrorCode::NO_ERROR, "", &mut self.frames.out);
        self.frames.flush(wire);
    }

    /// Makes the connection refuse further requests.
    pub fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Whether the connection accepts no more requests, by its own or the member's will.
    fn is_ending(&self) -> bool {
        self.is_leaving || self.frames.connection.is_closing()
    }
}

/// Which requests the connection can carry.
impl MemberHttp2 {
    /// Whether the member supports extended CONNECT; `None`: the SETTINGS have not arrived.
    pub fn takes_tunnels(&self) -> Option<bool> {
        let settings = self.frames.connection.peer_settings();
        self.has_settings.then_some(settings.extended_connect)
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

    /// Whether the connection suits a request. A tunnel needs its own connection, because data that a tunnel's member does
    /// not read could exhaust the shared window. For the same reason, a request with a body does not use a connection whose
    /// window is exhausted.
    pub fn suits(&self, need: ConnectionNeed, now_ms: u64) -> bool {
        if need.is_tunnel {
            return self.streams.is_empty() && self.takes_body(now_ms);
        }
        !need.has_body || self.takes_body(now_ms)
    }

    /// Whether the connection can get another request with a body, or a tunnel: the window is open, or active requests have
    /// exhausted it recently.
    pub fn takes_body(&self, now_ms: u64) -> bool {
        let is_long = |since_ms: u64| since_ms + SHUT_MS_MAX <= now_ms;
        let goes_on = |stream: &MemberStream| {
            stream.is_opened() && (stream.out.is_behind() || !stream.is_whole)
        };
        !self.has_shut_window()
            || !self.shut_since_ms.is_some_and(is_long) && self.streams.iter().any(goes_on)
    }
}

/// Streams.
impl MemberHttp2 {
    /// Whether all data of the response on a stream has arrived by its Content-Length, without the end of the stream.
    pub fn is_whole(&self, stream: &MemberStream) -> bool {
        stream.is_opened() && is_whole(&self.frames.connection, stream.out.id)
    }

    /// Writes the head of a request on a new stream. False: the connection accepts no more streams.
    pub fn open_stream(
        &mut self,
        key: MemberStreamKey,
        request: &Request,
        (scheme, is_end): (Scheme, bool),
        buffers: &mut impl Buffers,
    ) -> bool {
        self.frames.have_buffer(buffers);
        let (frames, out) = (&mut self.frames.connection, &mut self.frames.out);
        let opened = frames.open_stream(request.answer(), is_end, out, |lines| {
            request.lines().encode(scheme, lines);
        });
        let Ok(id) = opened else { return false };
        frames.set_tag(id, key.to_bits());
        if let Some(stream) = self.streams.get_mut(key) {
            stream.out.id = id;
        }
        true
    }

    /// Removes a stream, and resets it if it is open. Returns whether it was opened; `None`: there is no such stream.
    pub fn leave_stream(
        &mut self,
        key: MemberStreamKey,
        buffers: &mut impl Buffers,
    ) -> Option<bool> {
        let mut stream = self.streams.remove(key)?;
        let (protocol, out) = (&mut self.frames.connection, &mut self.frames.out);
        if stream.is_opened() {
            protocol.release(stream.out.id, stream.unreleased, out);
            protocol.reset(stream.out.id, ErrorCode::CANCEL, out);
        }
        stream.joined.clear(buffers);
        stream.out.clear(buffers);
        Some(stream.is_opened())
    }

    /// Returns window to the member for forwarded bytes of a stream. False: there was nothing to return.
    pub fn give_window(&mut self, key: MemberStreamKey) -> bool {
        let Some(stream) = self.streams.get_mut(key) else { return false };
        // Data that waits for the rest of a read was not forwarded yet.
        let joined = stream.joined.bytes() as u32;
        let bytes = std::mem::replace(&mut stream.unreleased, joined) - joined;
        if bytes > 0 {
            self.frames.connection.release(stream.out.id, bytes, &mut self.frames.out);
        }
        bytes > 0
    }

    /// Handles malformed data on a stream: resets it. The next read reports too many refused streams as a connection error.
    pub fn refuse(&mut self, stream: u32) {
        let _ = self.frames.connection.refuse(stream, &mut self.frames.out);
    }

    /// Removes all streams, because the connection is lost.
    pub fn lose_all(&mut self) -> Vec<LostStream> {
        let streams = self.streams.take_all();
        let lost = |stream: MemberStream| LostStream {
            exchange: stream.exchange,
            was_opened: stream.is_opened(),
            is_whole: self.is_whole(&stream),
        };
        streams.into_iter().map(lost).collect()
    }
}

/// A stream that was lost with its connection.
pub struct LostStream {
    /// The exchange whose request it carried.
    pub exchange: ExchangeKey,
    /// Whether the head of the request was written.
    pub was_opened: bool,
    /// Whether all data of the response had arrived by its Content-Length, without the end of the stream.
    pub is_whole: bool,
}

/// The send window of the connection, which all requests with a body share.
///
/// If a member does not read the whole body of a request, for example after an early response, the window may stay
/// exhausted. The connection is then useless for bodies. Therefore a request with a body waits with its head while the
/// window is exhausted. It continues when the window opens, or moves to another connection after a while.
impl MemberHttp2 {
    /// Whether the window is exhausted.
    pub fn has_shut_window(&self) -> bool {
        self.frames.connection.is_send_window_shut()
    }

    /// Updates the state of the window after data was sent or the window has opened. Before the connection is open, the member
    /// cannot open it.
    pub fn note_window(&mut self, is_connecting: bool, now_ms: u64) {
        if !is_connecting {
            let since_ms = self.shut_since_ms.unwrap_or(now_ms);
            self.shut_since_ms = self.has_shut_window().then_some(since_ms);
        }
    }

    /// The exchanges whose requests wait for the window.
    pub fn awaiting_window(&self) -> Vec<ExchangeKey> {
        let waiting = self.streams.iter().filter(|stream| stream.awaits_window);
        waiting.map(|stream| stream.exchange).collect()
    }

    /// When requests that wait for the window leave it; `None`: none waits.
    pub fn waits_for_window_until_ms(&self, now_ms: u64) -> Option<u64> {
        let since_ms = self.shut_since_ms?;
        self.streams.iter().any(|stream| stream.awaits_window).then(|| {
            match self.takes_body(now_ms) {
                true => since_ms + SHUT_MS_MAX,
                false => now_ms,
            }
        })
    }
}

/// Time.
impl MemberHttp2 {
    /// Sets the timer, unless it is set to an earlier time. Returns whether it was set.
    pub fn arm(&mut self, at_ms: u64) -> bool {
        let is_earlier = at_ms < self.timer_ms;
        if is_earlier {
            self.timer_ms = at_ms;
        }
        is_earlier
    }

    /// The connection has no streams any more. `is_kept`: it may stay for the next request. Returns when it is closed; it is
    /// not closed earlier, because the caller may still use it.
    pub fn rest(&mut self, is_kept: bool, idle_timeout_ms: u64, now_ms: u64) -> u64 {
        self.idle_since_ms = now_ms;
        (self.is_resting, self.is_tunnels) = (true, false);
        let takes_streams = self.frames.connection.peer_settings().streams_max > 0;
        let is_kept = is_kept && takes_streams && !self.is_ending();
        self.is_leaving |= !is_kept;
        if is_kept { self.rests_until_ms(idle_timeout_ms) } else { now_ms }
    }

    /// The time when a connection without streams is closed: after `idle_timeout_ms`, or earlier if its window is exhausted.
    pub fn rests_until_ms(&self, idle_timeout_ms: u64) -> u64 {
        let until_ms = self.idle_since_ms + idle_timeout_ms;
        self.shut_since_ms.map_or(until_ms, |since_ms| until_ms.min(since_ms + SHUT_MS_MAX))
    }

    /// The timer has expired. Returns what is due.
    pub fn timer(&mut self, is_connecting: bool, idle_timeout_ms: u64, now_ms: u64) -> DueAtTimer {
        self.timer_ms = u64::MAX;
        if is_connecting {
            return match self.open_by_ms <= now_ms {
                true => DueAtTimer::NotOpen,
                false => DueAtTimer::Later(self.open_by_ms),
            };
        }
        if !self.streams.is_empty() {
            return DueAtTimer::Streams;
        }
        let until_ms = self.rests_until_ms(idle_timeout_ms);
        match until_ms <= now_ms || self.is_ending() {
            true => DueAtTimer::End,
            false => DueAtTimer::Later(until_ms),
        }
    }
}

/// What is due when the timer of a connection expires.
#[derive(Debug, PartialEq, Eq)]
pub enum DueAtTimer {
    /// Nothing until this time.
    Later(u64),
    /// The connection did not open in time.
    NotOpen,
    /// The connection has rested for long enough, or takes no more requests.
    End,
    /// Deadlines of streams, and of requests that wait for the window.
    Streams,
}
