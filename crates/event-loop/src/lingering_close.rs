//! Sockets that the handler has finished with, until they are closed.
//!
//! | state | waits until | then |
//! |---|---|---|
//! | `Closing` | the queued data is sent | closed |
//! | `Lingering` | the queued data and FIN are sent, and the peer's FIN has arrived | closed |
//! | `Resetting` | the queued data is sent, and the peer has acknowledged everything | reset |
//!
//! Data that arrives in these states is dropped. All states are limited in time. A socket stays open while its peer still
//! receives data. A peer that only sends data has [`LINGER_MS`], and [`LINGER_SILENCE_MS`] between two reads.

use rustix::net::RecvFlags;

use crate::bounds::SCRATCH_BYTES;
use crate::event_loop::EventLoop;
use crate::handler::Handler;
use crate::kernel::Descriptor;
use crate::socket::{LingeringClose, ReadResult, Socket, State};
use crate::timers::TICK_MS;
use crate::token::Token;

/// Maximum number of bytes that a lingering socket reads and drops. After that, flow control stops the peer.
const LINGER_BYTES_MAX: u32 = 64 * 1024 * 1024;
/// Maximum time during which a lingering socket reads and drops data.
const LINGER_MS: u64 = 30_000;
/// A finished socket is closed when its peer has neither sent nor acknowledged data for this time.
const LINGER_SILENCE_MS: u64 = 5_000;
/// Maximum interval between two queries for unacknowledged data. The first intervals are shorter.
const TAKEN_INTERVAL_MS_MAX: u64 = 500;

const _: () = assert!(LINGER_SILENCE_MS < LINGER_MS && TAKEN_INTERVAL_MS_MAX < LINGER_SILENCE_MS);

impl EventLoop {
    /// Closes the socket when all queued data has been sent. [`Handler::closed`] follows in any case, even if the peer
    /// receives nothing for `timeout_ms`.
    pub fn close_when_sent(&mut self, token: Token, timeout_ms: u64) {
        self.leave(token, State::Closing, timeout_ms);
    }

    /// Like [`Self::close_when_sent`], for a peer that may still be sending. After a plain close, the kernel would answer
    /// the peer's data with a reset, which destroys data that weir has sent (RFC 9112 section 9.6). So FIN is sent, and
    /// arriving data is dropped, with limits on time and amount.
    pub fn linger(&mut self, token: Token, timeout_ms: u64) {
        self.leave(token, State::Lingering, timeout_ms);
    }

    /// Like [`Self::reset`], but the peer receives the earlier data first: a reset destroys data in flight, even a complete
    /// response before the incomplete one. [`Handler::closed`] follows in any case.
    pub fn reset_when_taken(&mut self, token: Token, timeout_ms: u64) {
        // From here on every close sends a reset, even at the end of the process.
        self.reset_on_close(token);
        self.leave(token, State::Resetting, timeout_ms);
    }

    fn leave(&mut self, token: Token, state: State, timeout_ms: u64) {
        let now_ms = self.clock.now_ms();
        self.send_close_notify(token);
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        let is_broken = matches!(socket.state, State::Broken(_) | State::Draining(_));
        let is_queued = socket.output.is_some();
        socket.paused = false;
        // Received data that was not delivered is dropped, too.
        socket.secure = None;
        let leaving_ms = u32::try_from(timeout_ms).unwrap_or(u32::MAX);
        socket.leaving = LingeringClose { timeout_ms: leaving_ms, ..LingeringClose::default() };
        socket.state = if is_broken { State::Closing } else { state };
        if is_broken && let Some(output) = socket.output.take() {
            self.spares.give_output(*output);
        }
        let wait_ms = if is_queued && !is_broken {
            timeout_ms
        } else {
            all_sent(socket, now_ms);
            LINGER_SILENCE_MS
        };
        self.timers.set(&mut self.sockets, token.index, now_ms + wait_ms);
        self.make_ready(token);
    }

    /// Continues with a finished socket when it has no queued data.
    pub(crate) fn sent_all(&mut self, handler: &mut impl Handler, token: Token) {
        let now_ms = self.now_ms();
        if let Some(socket) = self.sockets.get(token) {
            all_sent(socket, now_ms);
        }
        self.set_deadline(token, now_ms + LINGER_SILENCE_MS);
        self.look_at_leaving(handler, token);
    }

    /// Performs the next step of a finished socket that needs no event from the kernel.
    pub(crate) fn look_at_leaving(&mut self, handler: &mut impl Handler, token: Token) {
        match self.sockets.get(token) {
            Some(Socket { state: State::Closing, output: None, .. }) => {
                self.close_and_tell(handler, token);
            }
            Some(Socket { state: State::Resetting, output: None, .. }) => {
                self.reset_if_taken(handler, token);
            }
            _ => {}
        }
    }

    /// Resets a socket whose peer has acknowledged everything, or makes no progress.
    fn reset_if_taken(&mut self, handler: &mut impl Handler, token: Token) {
        let now_ms = self.now_ms();
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        let (waiting, took_more) = socket.note_taken();
        if took_more {
            socket.progress_ms = now_ms;
        }
        if waiting == 0 || now_ms >= socket.progress_ms + LINGER_SILENCE_MS {
            return self.close_and_tell(handler, token);
        }
        let elapsed_ms = now_ms - socket.leaving.since_ms;
        let interval_ms = elapsed_ms.clamp(TICK_MS, TAKEN_INTERVAL_MS_MAX);
        self.set_deadline(token, now_ms + interval_ms);
    }

    /// Reads once from a finished socket and drops the data.
    pub(crate) fn drop_input(&mut self, handler: &mut impl Handler, token: Token) {
        let mut scratch = std::mem::take(&mut self.scratch);
        // With this flag, TCP discards the bytes without copying them.
        let read = self.read_once(token, &mut scratch[..SCRATCH_BYTES], RecvFlags::TRUNC);
        self.scratch = scratch;
        let now_ms = self.now_ms();
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        match read {
            ReadResult::Bytes(count) => {
                socket.leaving.heard_ms = now_ms;
                socket.leaving.dropped_bytes += count as u32;
                // Flow control stops a peer that continues to send. The peer may still receive its data.
                socket.paused = socket.leaving.dropped_bytes > LINGER_BYTES_MAX;
            }
            ReadResult::Nothing => {}
            ReadResult::Failure(_) => self.close_and_tell(handler, token),
            ReadResult::End if socket.state == State::Resetting => {}
            ReadResult::End if socket.output.is_some() => socket.state = State::Closing,
            ReadResult::End => self.close_and_tell(handler, token),
        }
    }

    /// Handles the deadline of a finished socket. A peer that still receives or sends data gets more time.
    pub(crate) fn expire_leaving(&mut self, handler: &mut impl Handler, token: Token) {
        let now_ms = self.now_ms();
        let Some(socket) = self.sockets.get(token) else {
            return;
        };
        let (state, leaving, is_queued) = (socket.state, socket.leaving, socket.output.is_some());
        if state == State::Resetting && !is_queued {
            return self.reset_if_taken(handler, token);
        }
        let mut until_ms = self.patience_until_ms(token, u64::from(leaving.timeout_ms));
        if state == State::Lingering && !is_queued {
            let heard_until_ms = leaving.heard_ms + LINGER_SILENCE_MS;
            until_ms = until_ms.max(heard_until_ms.min(leaving.since_ms + LINGER_MS));
        }
        if until_ms > now_ms {
            return self.set_deadline(token, until_ms);
        }
        self.close_and_tell(handler, token);
    }

    pub(crate) fn close_and_tell(&mut self, handler: &mut impl Handler, token: Token) {
        let Some(owner) = self.sockets.get(token).map(|socket| socket.owner) else {
            return;
        };
        self.close(token);
        handler.closed(self, owner);
    }
}

/// Handles the end of the queued data of a finished socket: a lingering one sends FIN, or is closed if that fails.
fn all_sent(socket: &mut Socket, now_ms: u64) {
    socket.leaving.since_ms = now_ms;
    socket.progress_ms = now_ms;
    if socket.state == State::Lingering {
        let sent = socket.fd.as_ref().map(Descriptor::shut_write);
        if !matches!(sent, Some(Ok(()))) {
            socket.state = State::Closing;
        }
        // Only data that the peer acknowledges from here on counts as progress.
        socket.note_taken();
    }
}
