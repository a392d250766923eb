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

use rustix::net::{RecvFlags, SendFlags};

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
pub const LINGER_SILENCE_MS: u64 = 5_000;
/// Maximum interval between two queries for unacknowledged data. The first intervals are shorter.
const TAKEN_INTERVAL_MS_MAX: u64 = 500;

const _: () = assert!(LINGER_SILENCE_MS < LINGER_MS && TAKEN_INTERVAL_MS_MAX < LINGER_SILENCE_MS);

/// What follows for a finished socket.
pub enum LeavingStep {
    /// It is closed, and the handler is told.
    Close,
    /// It stays open until this time at least.
    Wait { until_ms: u64 },
    /// It waits for an event, or for the deadline that it has.
    Stay,
}

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
        self.sockets.reset_on_close(token);
        self.leave(token, State::Resetting, timeout_ms);
    }

    fn leave(&mut self, token: Token, state: State, timeout_ms: u64) {
        let now_ms = self.clock.now_ms();
        self.sockets.seal_end(token, &mut self.sealed);
        self.send_sealed(token, SendFlags::MORE);
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
            socket.all_sent(now_ms);
            LINGER_SILENCE_MS
        };
        self.timers.set(&mut self.sockets, token.index, now_ms + wait_ms);
        self.sockets.make_ready(token);
    }

    /// Performs a step of a finished socket.
    pub(crate) fn go_on_leaving(
        &mut self,
        handler: &mut impl Handler,
        token: Token,
        step: LeavingStep,
    ) {
        match step {
            LeavingStep::Close => {
                let Some(owner) = self.sockets.get(token).map(|socket| socket.owner) else {
                    return;
                };
                self.close(token);
                handler.closed(self, owner);
            }
            LeavingStep::Wait { until_ms } => self.set_deadline(token, until_ms),
            LeavingStep::Stay => {}
        }
    }
}

impl Socket {
    /// Notes the end of the queued data of a finished socket: a lingering one sends FIN, or is closed if that fails.
    pub fn all_sent(&mut self, now_ms: u64) {
        self.leaving.since_ms = now_ms;
        self.progress_ms = now_ms;
        if self.state == State::Lingering {
            let sent = self.fd.as_ref().map(Descriptor::shut_write);
            if !matches!(sent, Some(Ok(()))) {
                self.state = State::Closing;
            }
            // Only data that the peer acknowledges from here on counts as progress.
            self.note_taken();
        }
    }

    /// The next step of a finished socket that needs no event from the kernel.
    pub fn leaving_step(&mut self, now_ms: u64) -> LeavingStep {
        match self {
            Self { state: State::Closing, output: None, .. } => LeavingStep::Close,
            Self { state: State::Resetting, output: None, .. } => self.reset_if_taken(now_ms),
            _ => LeavingStep::Stay,
        }
    }

    /// Resets a socket whose peer has acknowledged everything, or makes no progress.
    fn reset_if_taken(&mut self, now_ms: u64) -> LeavingStep {
        let (waiting, took_more) = self.note_taken();
        if took_more {
            self.progress_ms = now_ms;
        }
        if waiting == 0 || now_ms >= self.progress_ms + LINGER_SILENCE_MS {
            return LeavingStep::Close;
        }
        let elapsed_ms = now_ms - self.leaving.since_ms;
        let interval_ms = elapsed_ms.clamp(TICK_MS, TAKEN_INTERVAL_MS_MAX);
        LeavingStep::Wait { until_ms: now_ms + interval_ms }
    }

    /// Reads once from a finished socket and drops the data.
    pub fn drop_input(&mut self, scratch: &mut [u8], now_ms: u64) -> LeavingStep {
        // With this flag, TCP discards the bytes without copying them.
        match self.receive(&mut scratch[..SCRATCH_BYTES], RecvFlags::TRUNC) {
            ReadResult::Bytes(count) => {
                self.leaving.heard_ms = now_ms;
                self.leaving.dropped_bytes += count as u32;
                // Flow control stops a peer that continues to send. The peer may still receive its data.
                self.paused = self.leaving.dropped_bytes > LINGER_BYTES_MAX;
            }
            ReadResult::Nothing => {}
            ReadResult::Failure(_) => return LeavingStep::Close,
            ReadResult::End if self.state == State::Resetting => {}
            ReadResult::End if self.output.is_some() => self.state = State::Closing,
            ReadResult::End => return LeavingStep::Close,
        }
        LeavingStep::Stay
    }

    /// The step at the deadline of a finished socket. A peer that still receives or sends data gets more time.
    pub fn expire_leaving(&mut self, now_ms: u64) -> LeavingStep {
        let (state, leaving, is_queued) = (self.state, self.leaving, self.output.is_some());
        if state == State::Resetting && !is_queued {
            return self.reset_if_taken(now_ms);
        }
        let mut until_ms = self.patience_until_ms(u64::from(leaving.timeout_ms), now_ms);
        if state == State::Lingering && !is_queued {
            let heard_until_ms = leaving.heard_ms + LINGER_SILENCE_MS;
            until_ms = until_ms.max(heard_until_ms.min(leaving.since_ms + LINGER_MS));
        }
        if until_ms > now_ms { LeavingStep::Wait { until_ms } } else { LeavingStep::Close }
    }
}
