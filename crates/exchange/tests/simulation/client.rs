//! The client's side of the fake world: a connection of HTTP/1, or a stream of one of HTTP/2.

use weir_exchange::edge::Lag;
use weir_exchange::parts::end::{End, OwnedEnd};
use weir_exchange::parts::pieces::Pieces;

use super::plan::Plan;

/// What a client has got.
#[derive(Debug, Default)]
pub struct Got {
    /// Heads of interim responses.
    pub interims: usize,
    /// The status of the one final head; 0: none has come.
    pub status: u16,
    /// The head was written, and has yet to go out.
    pub is_head_written: bool,
    /// Weir has made the response.
    pub is_own: bool,
    /// Bytes of the body, or of the tunnel.
    pub bytes: usize,
    /// The end of it, behind all of them.
    pub has_end: bool,
    /// It ends with the connection.
    pub is_until_close: bool,
    /// Nothing else follows on the connection.
    pub is_last: bool,
}

/// The stream of a client of HTTP/2.
pub struct ClientStream {
    /// So many bytes more the client lets out.
    pub allowance: usize,
    /// Bytes that wait for that.
    pub pending: usize,
    /// The end waits with them.
    pub is_end_pending: bool,
    /// What has nowhere to go yet.
    pub held: Vec<u8>,
    /// What follows that.
    pub held_end: OwnedEnd,
    /// Bytes of the request whose window is not given back.
    pub unreleased: usize,
    /// The client of a tunnel knows that its member sends nothing more.
    pub is_end_told: bool,
    /// Since when its window has let nothing out.
    pub stalled_ms: u64,
}

/// A client, and what weir knows of its connection.
pub struct Client {
    /// Its stream, with HTTP/2.
    pub stream: Option<ClientStream>,
    /// It takes nothing of its connection for now.
    pub is_slow: bool,
    /// Bytes that it has not taken.
    pub queued: usize,
    /// When it has last taken something.
    pub progress_ms: u64,
    /// It is not read.
    pub is_paused: bool,
    /// Bytes that it has sent, and so many of them the transaction has seen.
    pub sent: usize,
    pub used: usize,
    /// It has sent the end of its body, and the transaction has seen that.
    pub has_sent_end: bool,
    pub is_end_used: bool,
    /// It has ended its connection.
    pub has_ended: bool,
    /// What was kept of it is looked at when the call has returned.
    pub goes_on: bool,
    /// When it must have done something.
    pub due_ms: Option<u64>,
    /// What it has got.
    pub got: Got,
}

impl Client {
    /// One that has sent the head of its request.
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

    /// Whether something that it has sent was kept.
    pub fn has_input(&self) -> bool {
        self.stream.is_none() && (self.used < self.sent || self.has_sent_end && !self.is_end_used)
    }

    /// Whether it takes what it is sent.
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

    /// It gets data, and perhaps the end. What is its member's is what the plan says.
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

    /// Bytes go out on its stream, as far as its window lets them.
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

    /// Whether all that it was sent is on its way.
    pub fn is_delivered(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| stream.pending == 0)
    }
}
