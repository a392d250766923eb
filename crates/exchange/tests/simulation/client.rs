//! The client's side of the simulated world: an HTTP/1 connection, or a stream of an HTTP/2 connection.

use weir_exchange::edge::Lag;
use weir_exchange::parts::end::{End, OwnedEnd};
use weir_exchange::parts::pieces::Pieces;

use super::plan::Plan;

/// Data received by a client.
#[derive(Debug, Default)]
pub struct Got {
    /// Heads of interim responses.
    pub interims: usize,
    /// The status of the final head; 0: none has arrived.
    pub status: u16,
    /// The final head was written, but not sent yet.
    pub is_head_written: bool,
    /// Weir generated the response.
    pub is_own: bool,
    /// Bytes of the body, or of the tunnel.
    pub bytes: usize,
    /// Whether the end has arrived, after all bytes.
    pub has_end: bool,
    /// Whether the response ends with the connection.
    pub is_until_close: bool,
    /// Whether the response is the last one on the connection.
    pub is_last: bool,
}

/// The stream of an HTTP/2 client.
pub struct ClientStream {
    /// Bytes that the client's window still allows.
    pub allowance: usize,
    /// Bytes that wait for the window.
    pub pending: usize,
    /// Whether the end waits with them.
    pub is_end_pending: bool,
    /// Bytes that cannot be sent yet.
    pub held: Vec<u8>,
    /// The end that follows the held bytes.
    pub held_end: OwnedEnd,
    /// Bytes of the request that were not returned to the window.
    pub unreleased: usize,
    /// Whether the client of a tunnel knows that the member has ended its sending side.
    pub is_end_told: bool,
    /// Since when the client's window has been closed.
    pub stalled_ms: u64,
}

/// A client, and weir's state of its connection.
pub struct Client {
    /// The stream, with HTTP/2.
    pub stream: Option<ClientStream>,
    /// Whether the client currently does not read from the connection.
    pub is_slow: bool,
    /// Bytes that the client has not read.
    pub queued: usize,
    /// When the client last read something.
    pub progress_ms: u64,
    /// Whether weir currently does not read from the client.
    pub is_paused: bool,
    /// Bytes that the client has sent, and how many of them the transaction has seen.
    pub sent: usize,
    pub used: usize,
    /// Whether the client has sent the end of its body, and whether the transaction has seen it.
    pub has_sent_end: bool,
    pub is_end_used: bool,
    /// Whether the client has ended its connection.
    pub has_ended: bool,
    /// Whether the client's buffered bytes are examined after the call.
    pub goes_on: bool,
    /// The client's deadline.
    pub due_ms: Option<u64>,
    /// The data that the client has received.
    pub got: Got,
}

impl Client {
    /// A client that has sent the head of its request.
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

    /// Whether some of the client's bytes are buffered.
    pub fn has_input(&self) -> bool {
        self.stream.is_none() && (self.used < self.sent || self.has_sent_end && !self.is_end_used)
    }

    /// Whether the client reads its data.
    pub fn lag(&self) -> Lag {
        match &self.stream {
            Some(stream) if stream.pending > 0 => Lag::Behind,
            Some(_) if self.queued > 0 => Lag::Others,
            None if self.queued > 0 => Lag::Behind,
            _ => Lag::None,
        }
    }

    /// Queues bytes on the client's connection.
    pub fn queue(&mut self, bytes: usize, now_ms: u64) {
        if self.is_slow && bytes > 0 {
            if self.queued == 0 {
                self.progress_ms = now_ms;
            }
            self.queued += bytes;
        }
    }

    /// The client receives data, and possibly the end. Data of the member is compared with the plan.
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
