//! A connection that one task reads and writes concurrently.

use std::fmt::Debug;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::task::Poll;
use std::time::Duration;

use crate::clock::{Clock, Moment};
use crate::world::World;

/// The transport of a connection. A session owns it. Dropping it closes the connection.
pub trait Stream: Debug {
    /// Reads available bytes. 0: the peer has sent FIN; `WouldBlock`: no bytes are available.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Writes as many bytes as possible. `WouldBlock`: none.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Sends FIN after the written bytes.
    fn finish(&mut self);

    /// Makes the drop of this stream reset the connection.
    fn reset_on_close(&mut self);

    /// Whether the peer has received all written bytes and the FIN. `false`: no, or unknown.
    fn is_delivered(&self) -> bool {
        false
    }

    /// Closes or reopens the receive window, if the transport supports that.
    fn take_nothing(&mut self, _takes_nothing: bool) {}

    /// Delivers the end of a response, directly followed by unsolicited bytes. Returns false and sends nothing if that is
    /// not possible at the moment, or if the peer's knowledge could not be determined afterwards.
    fn say_unasked(&mut self, _tail: &[u8], _surplus: &[u8]) -> bool {
        false
    }

    /// The peer's reaction to unsolicited bytes.
    fn unasked(&self) -> Option<Unasked> {
        None
    }

    /// Ready when the stream can be read or written as requested, when it has ended and either is requested, or at `until`.
    /// It may be ready too early, and may be polled again with the same request although nothing has changed.
    fn poll_wait(&mut self, wants_read: bool, wants_write: bool, until: Moment) -> Poll<()>;
}

/// The peer's reaction to unsolicited bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unasked {
    /// Nothing was sent after them.
    Heeded,
    /// Something was sent before the peer could receive them.
    Crossed,
    /// Something was sent although the peer had received them.
    Ignored,
}

/// Initial size of the input buffer, and minimum free space for each read.
const INPUT_BYTES_FIRST: usize = 4 * 1024;
const ROOM_BYTES_MIN: usize = 2 * 1024;
/// Maximum size to which a full read extends the input buffer.
const ROOM_BYTES_MAX: usize = 32 * 1024;
/// Number of received bytes that are stored for the report of a finding.
const RECENT_BYTES: usize = 4 * 1024;

/// Idle clients must detect weir's shutdown within this time.
pub const END_TOLD_MAX: Duration = Duration::from_secs(20);

/// A wait without timeout, which only an event on the connection ends.
pub const UNTIL_EVENT: Duration = Duration::MAX;

/// How the peer has ended the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// In order, with FIN.
    Fin,
    /// By a reset.
    Reset,
}

/// A connection.
#[derive(Debug)]
pub struct Link {
    stream: Box<dyn Stream>,
    clock: Clock,
    turn_max: Duration,
    /// The input buffer; `start..filled` contains the received bytes that are not consumed yet.
    input: Vec<u8>,
    start: usize,
    filled: usize,
    out: Vec<u8>,
    out_at: usize,
    /// How the peer has ended the connection. Earlier bytes may remain in the input.
    end: Option<End>,
    /// Whether writes have failed, so that sent bytes no longer arrive.
    is_deaf: bool,
    /// Whether a write has failed with a reset. The system reports a reset only once, so the read after it returns an end.
    was_reset: bool,
    /// The time of the last transferred byte, in either direction.
    moved: Moment,
    /// Until this time, received bytes stay in the socket.
    holds_until: Option<Moment>,
    recent: Vec<u8>,
    /// The number of received bytes.
    pub received: usize,
}

impl Link {
    /// A connection over this stream, with the clock of this world.
    pub fn over(stream: Box<dyn Stream>, world: &World) -> Self {
        Self {
            stream,
            clock: world.clock.clone(),
            turn_max: world.profile.turn_max,
            input: Vec::new(),
            start: 0,
            filled: 0,
            out: Vec::new(),
            out_at: 0,
            end: None,
            is_deaf: false,
            was_reset: false,
            moved: world.now(),
            holds_until: None,
            recent: Vec::new(),
            received: 0,
        }
    }

    /// The current time.
    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    /// The received bytes that are not consumed yet.
    pub fn input(&self) -> &[u8] {
        &self.input[self.start..self.filled]
    }

    /// Consumes this number of bytes of the input.
    pub fn take(&mut self, bytes: usize) {
        self.start += bytes;
        debug_assert!(self.start <= self.filled);
        if self.start == self.filled {
            (self.start, self.filled) = (0, 0);
        }
    }

    /// The number of bytes in the output buffer.
    pub fn queued(&self) -> usize {
        self.out.len() - self.out_at
    }

    /// The output buffer.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// How the peer has ended the connection, if all input is consumed.
    pub fn ended(&self) -> Option<End> {
        self.end.filter(|_| self.input().is_empty())
    }

    /// Whether the peer has ended the connection, even if input remains.
    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Whether writes have failed, so that sent bytes do not arrive.
    pub fn is_deaf(&self) -> bool {
        self.is_deaf
    }

    /// The time since the last transferred byte.
    pub fn still(&self) -> Duration {
        self.now() - self.moved
    }

    /// The last received bytes.
    pub fn recent(&self) -> &[u8] {
        &self.recent[self.recent.len().saturating_sub(RECENT_BYTES)..]
    }

    /// Sends as much of the output as possible without waiting.
    pub fn flush(&mut self) {
        while self.queued() > 0 && !self.is_deaf {
            match self.stream.write(&self.out[self.out_at..]) {
                Ok(count) => {
                    self.out_at += count;
                    self.moved = self.now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // Earlier bytes of the peer can still be read.
                Err(error) => {
                    self.is_deaf = true;
                    self.was_reset |= error.kind() == ErrorKind::ConnectionReset;
                }
            }
        }
        self.out.clear();
        self.out_at = 0;
    }

    /// Pauses reading for this time.
    pub fn hold(&mut self, time: Duration) {
        self.holds_until = Some(self.now() + time);
    }

    /// The time until which reading is paused.
    fn held(&mut self) -> Option<Moment> {
        let until = self.holds_until?;
        if until <= self.now() {
            self.holds_until = None;
        }
        self.holds_until
    }

    /// Reads once without waiting. Returns whether bytes or an end arrived.
    pub fn fill(&mut self) -> bool {
        if self.end.is_some() || self.held().is_some() {
            return false;
        }
        self.make_room();
        let read = self.stream.read(&mut self.input[self.filled..]);
        match read {
            Ok(0) if self.was_reset => self.end = Some(End::Reset),
            Ok(0) => self.end = Some(End::Fin),
            Ok(count) => {
                self.moved = self.now();
                self.received += count;
                self.filled += count;
                self.remember(count);
                if self.filled == self.input.len() && self.filled < ROOM_BYTES_MAX {
                    self.input.resize(2 * self.input.len(), 0);
                }
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return false;
            }
            Err(_) => self.end = Some(End::Reset),
        }
        true
    }

    fn make_room(&mut self) {
        if self.input.len() - self.filled >= ROOM_BYTES_MIN {
            return;
        }
        self.input.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
        if self.input.len() - self.filled < ROOM_BYTES_MIN {
            self.input.resize((2 * self.input.len()).max(INPUT_BYTES_FIRST), 0);
        }
    }

    /// Stores the last received bytes for reports, and drops older ones.
    fn remember(&mut self, count: usize) {
        let fresh = &self.input[self.filled - count.min(RECENT_BYTES)..self.filled];
        if self.recent.len() + fresh.len() > 2 * RECENT_BYTES {
            let surplus = (self.recent.len() + fresh.len()) - RECENT_BYTES;
            self.recent.drain(..surplus.min(self.recent.len()));
        }
        self.recent.extend_from_slice(fresh);
    }

    /// Sends the output and waits until bytes arrive, bytes are sent, or the time is over.
    pub async fn turn(&mut self, at_most: Duration) {
        let was_queued = self.queued() > 0;
        self.flush();
        // A caller that waits for the end of the output must continue at once.
        if self.fill() || (was_queued && self.queued() == 0) {
            return;
        }
        let until = self.now() + at_most.min(self.turn_max);
        let held = self.held();
        let until = held.map_or(until, |held| held.min(until));
        self.wait(self.end.is_none() && held.is_none(), self.queued() > 0, until).await;
        self.flush();
        self.fill();
    }

    async fn wait(&mut self, wants_read: bool, wants_write: bool, until: Moment) {
        poll_fn(|_| self.stream.poll_wait(wants_read, wants_write, until)).await;
    }

    /// Waits for this time without reading or writing.
    pub async fn pause(&mut self, time: Duration) {
        let until = self.now() + time;
        while self.now() < until {
            self.wait(false, false, until).await;
        }
    }

    /// See [`Stream::take_nothing`].
    pub fn take_nothing(&mut self, takes_nothing: bool) {
        self.stream.take_nothing(takes_nothing);
    }

    /// See [`Stream::say_unasked`].
    pub fn say_unasked(&mut self, tail: &[u8], surplus: &[u8]) -> bool {
        self.queued() == 0 && self.input().is_empty() && self.stream.say_unasked(tail, surplus)
    }

    /// See [`Stream::unasked`].
    pub fn unasked(&self) -> Option<Unasked> {
        self.stream.unasked()
    }

    /// Sends FIN after the sent bytes.
    pub fn finish(&mut self) {
        // If the peer has closed, this has no effect.
        self.stream.finish();
    }

    /// Waits, without reading, until the peer has received all sent bytes and the FIN. `false`: not within this time, or
    /// unknown.
    pub async fn delivered(&mut self, at_most: Duration) -> bool {
        let until = self.now() + at_most;
        while !self.stream.is_delivered() && self.now() < until {
            self.pause(Duration::from_millis(5)).await;
        }
        self.stream.is_delivered()
    }

    /// Makes the drop of this connection send a reset.
    pub fn reset(&mut self) {
        self.stream.reset_on_close();
    }

    /// Sends the remaining output and FIN, and waits until the peer has also ended. Received bytes are dropped.
    pub async fn close_in_order(&mut self, at_most: Duration) {
        let until = self.now() + at_most;
        while self.queued() > 0 && !self.is_deaf && self.now() < until {
            self.turn(until - self.now()).await;
            let length = self.input().len();
            self.take(length);
        }
        self.finish();
        while self.end.is_none() && self.now() < until {
            self.turn(until - self.now()).await;
            let length = self.input().len();
            self.take(length);
        }
    }
}
