//! The client side of the simulated world: an HTTP/1 connection, or a stream of an HTTP/2 connection.

use weir_exchange::edge::Lag;
use weir_exchange::parts::end::{End, OwnedEnd};
use weir_exchange::parts::pieces::Pieces;

use super::plan::Plan;

/// The data that a client has received.
#[derive(Debug, Default)]
pub struct Got {
    /// The number of interim responses.
    pub interims: usize,
    /// The status of the final response; 0: no final head has arrived.
    pub status: u16,
    /// Whether the final head was written, but not sent yet.
    pub is_head_written: bool,
    /// Whether weir generated the response.
    pub is_own: bool,
    /// The number of body bytes, or of tunnel bytes.
    pub bytes: usize,
    /// Whether the end has arrived.
    pub has_end: bool,
    /// Whether the response ends with the connection.
    pub is_until_close: bool,
    /// Whether the response is the last one on the connection.
    pub is_last: bool,
}

/// The stream of an HTTP/2 client.
pub struct ClientStream {
    /// The number of bytes that the client's window still allows.
    pub allowance: usize,
    /// The number of bytes that wait for the window.
    pub pending: usize,
    /// Whether the end waits after these bytes.
    pub is_end_pending: bool,
    /// Request bytes that cannot be forwarded yet.
    pub held: Vec<u8>,
    /// The end that follows the held bytes.
    pub held_end: OwnedEnd,
    /// The number of received request bytes whose window was not returned yet.
    pub unreleased: usize,
    /// Whether END_STREAM was sent to the client of a tunnel, because the member has ended its sending direction.
    pub is_end_told: bool,
    /// The time since which the client's window has been exhausted.
    pub stalled_ms: u64,
}

/// A client, and weir's state of its connection.
pub struct Client {
    /// The stream, with HTTP/2.
    pub stream: Option<ClientStream>,
    /// Whether the client does not read from the connection.
    pub is_slow: bool,
    /// The number of bytes sent to the client that it has not read.
    pub queued: usize,
    /// The time of the client's last read.
    pub progress_ms: u64,
    /// Whether weir does not read from the client.
    pub is_paused: bool,
    /// The number of bytes that the client has sent, and the number of those that the transaction has received.
    pub sent: usize,
    pub used: usize,
    /// Whether the client has sent the end of its body, and whether the transaction has received the end.
    pub has_sent_end: bool,
    pub is_end_used: bool,
    /// Whether the client has closed its side of the connection.
    pub has_ended: bool,
    /// Whether the client's buffered bytes must be processed after the call.
    pub goes_on: bool,
    /// The deadline of the client.
    pub due_ms: Option<u64>,
    /// The data that the client has received.
    pub got: Got,
}

impl Client {
    /// Creates a client that has sent the head of its request.
    pub fn new(plan: &Plan, now_ms: u64) -> Self {
        let stream = plan.has_http2_client.then(|| ClientStream {
            allowance: usize::MAX,
            pending: 0,
            is_end_pending: false,
            held: Vec::new(),
            held_end: OwnedEnd::No,
            unreleased: 0,
            is_end_told: false,
            stalled_ms: now_ms,
        });
        Self {
            stream,
            is_slow: false,
            queued: 0,
            progress_ms: now_ms,
            is_paused: false,
            sent: 0,
            used: 0,
            has_sent_end: false,
            is_end_used: false,
            has_ended: false,
            goes_on: false,
            due_ms: None,
            got: Got::default(),
        }
    }

    /// Whether bytes of the client are buffered.
    pub fn has_input(&self) -> bool {
        self.stream.is_none() && (self.used < self.sent || self.has_sent_end && !self.is_end_used)
    }

    /// Whether the client has received the data that was sent to it.
    pub fn lag(&self) -> Lag {
        match &self.stream {
            Some(stream) if stream.pending > 0 => Lag::Behind,
            Some(_) if self.queued > 0 => Lag::Others,
            None if self.queued > 0 => Lag::Behind,
            _ => Lag::None,
        }
    }

    /// Queues bytes on the client's connection, if the client does not read.
    pub fn queue(&mut self, bytes: usize, now_ms: u64) {
        if self.is_slow && bytes > 0 {
            if self.queued == 0 {
                self.progress_ms = now_ms;
            }
            self.queued += bytes;
        }
    }

    /// Delivers data to the client, and possibly the end. Data of a member must be as planned.
    pub fn get(&mut self, plan: &Plan, (input, pieces): (&[u8], &Pieces), end: End<'_>) {
        let got = &mut self.got;
        assert!(!got.has_end, "nothing follows the end");
        for data in pieces.of(input) {
            if !got.is_own {
                assert!(plan.response_bytes(got.bytes, data.len()) == data, "another's bytes");
            }
            got.bytes += data.len();
        }
        got.has_end = !matches!(end, End::No);
    }

    /// Sends bytes on the client's stream, as far as its window allows.
    pub fn deliver(&mut self, bytes: usize, is_end: bool, now_ms: u64) {
        let Some(stream) = &mut self.stream else { return };
        let sent = if stream.pending > 0 { 0 } else { bytes.min(stream.allowance) };
        stream.allowance -= sent;
        if sent < bytes {
            stream.pending += bytes - sent;
            stream.stalled_ms = now_ms;
        }
        if stream.pending > 0 {
            stream.is_end_pending = is_end;
        }
        self.queue(sent, now_ms);
    }

    /// Whether all bytes for the client were sent.
    pub fn is_delivered(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| stream.pending == 0)
    }
}
