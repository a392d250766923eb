//! The member side of the simulated world: HTTP/1 connections, and HTTP/2 connections with one stream each.

use weir_exchange::arena::ExchangeKey;
use weir_exchange::edge::Lag;
use weir_exchange::parts::end::OwnedEnd;

/// The stream of an HTTP/2 member.
pub struct MemberStream {
    /// Whether the request head was written.
    pub is_opened: bool,
    /// The number of bytes that the member's window still allows.
    pub allowance: usize,
    /// The bytes that wait for the window.
    pub pending: Vec<u8>,
    /// The end that waits after these bytes.
    pub pending_end: OwnedEnd,
    /// Whether the client is paused until the member has accepted the request data sent so far.
    pub was_backed_up: bool,
    /// Whether END_STREAM was sent to the member of a tunnel, because the client has ended its sending direction.
    pub is_end_told: bool,
    /// The number of received response bytes whose window was not returned yet.
    pub unreleased: usize,
}

impl MemberStream {
    /// Creates a stream that is not open yet.
    pub fn new() -> Self {
        Self {
            is_opened: false,
            allowance: usize::MAX,
            pending: Vec::new(),
            pending_end: OwnedEnd::No,
            was_backed_up: false,
            is_end_told: false,
            unreleased: 0,
        }
    }
}

/// A connection to a member.
pub struct MemberConnection {
    /// The index of the member in its pool.
    pub member: u32,
    /// The exchange on the connection.
    pub exchange: Option<ExchangeKey>,
    /// Whether the connection is not open yet.
    pub is_connecting: bool,
    /// Whether the member does not read.
    pub is_slow: bool,
    /// The bytes sent to the member that it has not read.
    pub queued: Vec<u8>,
    /// The number of bytes that the member has read.
    pub sent_bytes: u64,
    /// The time of the member's last read.
    pub progress_ms: u64,
    /// Whether weir does not read from the member.
    pub is_paused: bool,
    /// The time since which the connection has been idle.
    pub idle_since_ms: u64,
    /// Whether the connection may carry another request.
    pub keep: bool,
    /// The deadline of the member.
    pub due_ms: Option<u64>,
    /// Whether the connection uses HTTP/2.
    pub is_http2: bool,
    /// Whether the member supports extended CONNECT; `None`: not announced yet.
    pub takes_tunnels: Option<bool>,
    /// The stream of the exchange, with HTTP/2.
    pub stream: Option<MemberStream>,
    /// The index of the exchange's attempt in the model.
    pub attempt: usize,
}

impl MemberConnection {
    /// Creates a connection that is not open yet.
    pub fn opening(member: u32, is_http2: bool, now_ms: u64) -> Self {
        Self {
            member,
            exchange: None,
            is_connecting: true,
            is_slow: false,
            queued: Vec::new(),
            sent_bytes: 0,
            progress_ms: now_ms,
            is_paused: false,
            idle_since_ms: 0,
            keep: false,
            due_ms: None,
            is_http2,
            takes_tunnels: None,
            stream: None,
            attempt: 0,
        }
    }

    /// Sends bytes. Returns whether the member reads them at once.
    pub fn send(&mut self, bytes: &[u8], now_ms: u64) -> bool {
        let waits = self.is_connecting || self.is_slow || !self.queued.is_empty();
        if waits && !bytes.is_empty() {
            if self.queued.is_empty() {
                self.progress_ms = now_ms;
            }
            self.queued.extend_from_slice(bytes);
            return false;
        }
        self.sent_bytes += bytes.len() as u64;
        !bytes.is_empty()
    }

    /// Reads the queued bytes. Returns whether there were any.
    pub fn take_all(&mut self, now_ms: u64) -> bool {
        let bytes = std::mem::take(&mut self.queued);
        self.sent_bytes += bytes.len() as u64;
        self.progress_ms = now_ms;
        !bytes.is_empty()
    }

    /// Whether the member has received the data that was sent to it. If not, a stream is marked as waited for.
    pub fn lag(&mut self) -> Lag {
        let is_queued = !self.queued.is_empty();
        let Some(stream) = &mut self.stream else {
            return match (is_queued, self.is_connecting) {
                (false, _) => Lag::None,
                (true, true) => Lag::Excused,
                (true, false) => Lag::Behind,
            };
        };
        let is_behind = !stream.pending.is_empty();
        if !is_behind && !is_queued {
            return Lag::None;
        }
        stream.was_backed_up = true;
        match (self.is_connecting, is_behind) {
            (true, _) => Lag::Excused,
            (false, true) => Lag::Behind,
            (false, false) => Lag::Others,
        }
    }
}
