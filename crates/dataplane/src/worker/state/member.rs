//! The state of a connection to a member.

use std::io::IoSlice;
use std::rc::Rc;

use weir_connection::member::http1::MemberHttp1;
use weir_connection::member::http2::MemberHttp2;
use weir_event_loop::{EventLoop, Token};
use weir_exchange::arena::ExchangeKey;
use weir_exchange::local::member::LocalMember;
use weir_exchange::local::pool::LocalPool;
use weir_http::flaws::Flaws;

use crate::worker::state::bound_connections::ConnectionSharing;

/// A connection to a member.
pub struct MemberConnection {
    /// The socket.
    pub token: Token,
    /// This worker's state of the member.
    pub member: Rc<LocalMember>,
    /// The pool that the connection was opened for.
    pub pool: Rc<LocalPool>,
    /// The member's connection limit.
    pub connections_max: Option<u32>,
    /// The exchange on an HTTP/1 connection; `None`: idle.
    pub exchange: Option<ExchangeKey>,
    pub connecting: bool,
    /// The state of HTTP/2, if the member uses it. The connection then carries many exchanges.
    pub http2: Option<Box<MemberHttp2>>,
    /// The state of HTTP/1, if the member uses it.
    pub http1: MemberHttp1,
    /// The size of the PROXY header in the queued data. The header is removed when the data moves to another connection.
    pub preface_bytes: usize,
    /// Who may use the connection.
    pub sharing: ConnectionSharing,
    /// Whether the connection is read in slices.
    pub is_sliced: bool,
    pub requests: u32,
    /// The number of sent bytes that were already counted.
    pub counted_bytes: u64,
    /// The time since which the connection has been idle.
    pub idle_since_ms: u64,
}

impl MemberConnection {
    /// The exchanges with streams on the connection.
    pub fn exchanges(&self) -> Vec<ExchangeKey> {
        self.http2.as_ref().map(|http2| http2.streams.exchanges()).unwrap_or_default()
    }

    /// Creates the state of an HTTP/1 connection that is opening.
    pub fn opening(token: Token, member: &Rc<LocalMember>, pool: &Rc<LocalPool>) -> Self {
        Self {
            token,
            member: Rc::clone(member),
            pool: Rc::clone(pool),
            connections_max: None,
            exchange: None,
            connecting: true,
            http2: None,
            http1: MemberHttp1::opening(),
            preface_bytes: 0,
            sharing: ConnectionSharing::default(),
            is_sliced: false,
            requests: 1,
            counted_bytes: 0,
            idle_since_ms: 0,
        }
    }

    /// Marks the connection as bound, if its pool binds connections. Returns whether it is.
    pub fn bind(&mut self) -> bool {
        let binds = self.pool.settings().reuse.binds;
        self.sharing.is_bound |= binds;
        self.sharing.is_of_one_client |= binds;
        binds
    }

    /// Counts the tolerated flaws of a response.
    pub fn count_flaws(&self, flaws: Flaws) {
        if !flaws.is_empty() {
            self.member.counters.count_flaws(flaws);
        }
    }

    /// Sends bytes.
    #[inline]
    pub fn send(&mut self, io: &mut EventLoop, bytes: &[u8]) {
        io.send(self.token, &[IoSlice::new(bytes)]);
        self.count_sent(io);
    }

    /// Counts the bytes that the member's socket has accepted since the last call.
    #[inline]
    pub fn count_sent(&mut self, io: &mut EventLoop) {
        let sent = io.sockets.sent_bytes(self.token);
        let more = sent - std::mem::replace(&mut self.counted_bytes, sent);
        self.member.counters.bytes_sent.add(more);
    }

    /// Whether the connection has an exchange.
    #[cfg(feature = "simulation")]
    pub fn is_busy(&self) -> bool {
        let carries = |http2: &MemberHttp2| !http2.streams.is_empty();
        self.exchange.is_some() || self.http2.as_deref().is_some_and(carries)
    }

    /// Maximum number of idle connections to the member for this worker. The idle connections of all workers together must
    /// leave places under `connections_max`.
    pub fn idle_max(&self, workers: usize) -> usize {
        let limit = self.connections_max;
        let share = limit.map_or(usize::MAX, |limit| {
            (limit as usize / workers).saturating_sub(self.member.bound.borrow().len())
        });
        share.min(self.pool.settings().reuse.idle_per_worker as usize)
    }
}

/// Time and the window of a connection with HTTP/2.
impl MemberConnection {
    /// Sets the timer to `at_ms`, unless it is set to an earlier time.
    pub fn arm(&mut self, io: &mut EventLoop, at_ms: u64) {
        if self.http2.as_mut().is_some_and(|http2| http2.arm(at_ms)) {
            io.set_deadline(self.token, at_ms);
        }
    }

    /// Updates the state of the window after data was sent or the window has opened.
    pub fn note_window(&mut self, now_ms: u64) {
        if let Some(http2) = &mut self.http2 {
            http2.note_window(self.connecting, now_ms);
        }
    }

    /// The exchanges whose requests have waited for the window, if it is open.
    pub fn admitted_by_window(&self) -> Vec<ExchangeKey> {
        let http2 = self.http2.as_ref().filter(|http2| !http2.has_shut_window());
        http2.map(|http2| http2.awaiting_window()).unwrap_or_default()
    }

    /// Sets the timer if the window is exhausted and requests wait for it.
    pub fn watch_exhausted_window(&mut self, io: &mut EventLoop) {
        let now_ms = io.now_ms();
        self.note_window(now_ms);
        let http2 = self.http2.as_ref();
        if let Some(at_ms) = http2.and_then(|http2| http2.waits_for_window_until_ms(now_ms)) {
            self.arm(io, at_ms);
        }
    }

    /// Handles the end of the last stream: the connection stays open for the next request, or is closed by its timer, because
    /// the caller may still use it.
    pub fn rest(&mut self, io: &mut EventLoop, is_draining: bool) {
        let reuse = self.pool.settings().reuse;
        let is_kept = !self.member.retired.get()
            && !self.sharing.is_bound
            && self.requests < reuse.requests_max
            && reuse.idle_per_worker > 0
            && reuse.idle_timeout_ms > 0
            && !is_draining;
        let Some(http2) = &mut self.http2 else { return };
        self.member.counters.connections_idle.add(1);
        let until_ms = http2.rest(is_kept, reuse.idle_timeout_ms, io.now_ms());
        self.arm(io, until_ms);
    }
}
