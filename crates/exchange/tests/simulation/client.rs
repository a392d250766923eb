//! The client's side of the fake world: a connection of HTTP/1, or a stream of one of HTTP/2.

use weir_exchange::edge::Lag;
use weir_exchange::parts::end::{End, OwnedEnd};
use weir_exchange::parts::pieces::Pieces;

use super::plan::Plan;

/// Data received by a client.
#[derive(Debug, Default)]
pub struct Got {
    /// Heads of interim responses.
    pub interims: usize,
    /// The status of the one final head; 0: none has arrived.
    pub status: u16,
    /// The head was written, and has yet to go out.
    pub is_head_written: bool,
    /// Weir generated the response.
    pub is_own: bool,
    /// Bytes of the body, or of the tunnel.
    pub bytes: usize,
    /// The end, after all of them.
    pub has_end: bool,
    /// It ends with the connection.
    pub is_until_close: bool,
    /// Nothing else follows on the connection.
    pub is_last: bool,
}

/// The stream of a client of HTTP/2.
pub struct ClientStream {
    /// Bytes that the client's window still allows.
    pub allowance: usize,
    /// Bytes that wait for the window.
    pub pending: usize,
    /// The end waits with them.
    pub is_end_pending: bool,
    /// Bytes that cannot be sent yet.
    pub held: Vec<u8>,
    /// The part that follows.
    pub held_end: OwnedEnd,
    /// Bytes of the request that were not returned to the window.
    pub unreleased: usize,
    /// The client of a tunnel knows that its member sends nothing more.
    pub is_end_told: bool,
    /// Since when its window has been closed.
    pub stalled_ms: u64,
}

/// A client, and weir's state of its connection.
pub struct Client {
    /// Its stream, with HTTP/2.
    pub stream: Option<ClientStream>,
    /// It does not read from its connection for now.
    pub is_slow: bool,
    /// Bytes that it has not read.
    pub queued: usize,
    /// When it last read something.
    pub progress_ms: u64,
    /// Weir does not read from it.
    pub is_paused: bool,
    /// Bytes that it has sent, and how many of them the transaction has seen.
    pub sent: usize,
    pub used: usize,
    /// It has sent the end of its body, and the transaction has seen that.
    pub has_sent_end: bool,
    pub is_end_used: bool,
    /// It has ended its connection.
    pub has_ended: bool,
    /// Its buffered bytes are examined after the call has returned.
    pub goes_on: bool,
    /// When it must have done something.
    pub due_ms: Option<u64>,
    /// What it has got.
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

    /// Whether some of its bytes are buffered.
    pub fn has_input(&self) -> bool {
        self.stream.is_none() && (self.used < self.sent || self.has_sent_end && !self.is_end_used)
    }

    /// Whether it reads its bytes.
    pub fn lag(&self) -> Lag {
        match &self.stream {
            Some(stream) if stream.pending > 0 => Lag::Behind,
            Some(_) if self.queued > 0 => Lag::Others,
            None if self.queued > 0 => Lag::Behind,
            _ => Lag::None,
        }
    }

    /// Bytes are sent on its connection.
    pub fn queue(&mut self, bytes: usize, now_ms: u64) {
        if self.is_slow && bytes > 0 {
            if self.queued == 0 {
                self.progress_ms = now_ms;
            }
            self.queued += bytes;
        }
    }

    /// It receives data, and perhaps the end. Data of its member follows the plan.
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

    /// Bytes go out on its stream, as its window allows.
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

    /// Whether all of its bytes were sent.
    pub fn is_delivered(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| stream.pending == 0)
    }
}
