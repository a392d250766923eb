//! A connection that is read and written at the same time, by one task.

use std::fmt::Debug;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::task::Poll;
use std::time::Duration;

use crate::clock::{Clock, Moment};
use crate::world::World;

/// What a connection stands on. A session holds it alone, and drops it to close it.
pub trait Stream: Debug {
    /// Reads what there is; 0: the other side has ended it in order; `WouldBlock`: there is nothing yet.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Writes as much as goes; `WouldBlock`: nothing goes yet.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Sends FIN behind what was written.
    fn finish(&mut self);

    /// Lets it close with a reset when it is dropped.
    fn reset_on_close(&mut self);

    /// Whether the other side has everything that was written, and the FIN behind it. `false`: nobody knows.
    fn is_delivered(&self) -> bool {
        false
    }

    /// From now on the other side finds no room for what it sends, or finds some again; where that can be had.
    fn take_nothing(&mut self, _takes_nothing: bool) {}

    /// Lets the end of a response arrive at once, and right behind it what was not asked for. False, and nothing is done: not
    /// now, or nobody could tell what is to come of it.
    fn say_unasked(&mut self, _tail: &[u8], _surplus: &[u8]) -> bool {
        false
    }

    /// What the other side has made of that.
    fn unasked(&self) -> Option<Unasked> {
        None
    }

    /// Ready when it can be read or written as is wanted, when it has ended and one of both is wanted, or when the time
    /// has come. It may be ready too early, and it may be asked again with the same wishes though nothing has changed.
    fn poll_wait(&mut self, wants_read: bool, wants_write: bool, until: Moment) -> Poll<()>;
}

/// What the other side has made of what it had not asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unasked {
    /// It has sent nothing since.
    Heeded,
    /// It has sent something when it could not know of it yet.
    Crossed,
    /// It has sent something although it knew of it.
    Ignored,
}

/// Bytes that the input has room for at first, and at least at each read.
const INPUT_BYTES_FIRST: usize = 4 * 1024;
const ROOM_BYTES_MIN: usize = 2 * 1024;
/// Room for input grows to this where reads fill it.
const ROOM_BYTES_MAX: usize = 32 * 1024;
/// What is kept of what came, to be told with a finding.
const RECENT_BYTES: usize = 4 * 1024;

/// When weir is about to end, who waits for nothing hears of it in this time.
pub const END_TOLD_MAX: Duration = Duration::from_secs(20);

/// A wait that only what happens on the connection ends.
pub const UNTIL_EVENT: Duration = Duration::MAX;

/// How the other side has ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// In order.
    Fin,
    /// Broken off.
    Reset,
}

/// A connection.
#[derive(Debug)]
pub struct Link {
    stream: Box<dyn Stream>,
    clock: Clock,
    turn_max: Duration,
    /// Room for what comes; of it, what came and was not taken stands in `start..filled`.
    input: Vec<u8>,
    start: usize,
    filled: usize,
    out: Vec<u8>,
    out_at: usize,
    /// How the other side has ended it; what came before is in the input.
    end: Option<End>,
    /// Nothing that is sent arrives any more.
    is_deaf: bool,
    /// A write has met the reset, which the system tells once: reading meets an end then.
    was_reset: bool,
    /// When the last byte passed, in either direction.
    moved: Moment,
    /// Until when what has come stays where it is.
    holds_until: Option<Moment>,
    recent: Vec<u8>,
    /// Bytes that came.
    pub received: usize,
}

impl Link {
    /// Over this stream, in the time of this world.
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

    /// What time it is.
    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    /// What has come and was not taken yet.
    pub fn input(&self) -> &[u8] {
        &self.input[self.start..self.filled]
    }

    /// So many bytes of the input are done with.
    pub fn take(&mut self, bytes: usize) {
        self.start += bytes;
        debug_assert!(self.start <= self.filled);
        if self.start == self.filled {
            (self.start, self.filled) = (0, 0);
        }
    }

    /// Bytes that wait to be sent.
    pub fn queued(&self) -> usize {
        self.out.len() - self.out_at
    }

    /// Where bytes are put that are to be sent.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// How the other side has ended it, once all that came before has been taken.
    pub fn ended(&self) -> Option<End> {
        self.end.filter(|_| self.input().is_empty())
    }

    /// The same, whatever is left.
    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Whether what is sent still goes anywhere.
    pub fn is_deaf(&self) -> bool {
        self.is_deaf
    }

    /// How long nothing has passed.
    pub fn still(&self) -> Duration {
        self.now() - self.moved
    }

    /// The last bytes that came.
    pub fn recent(&self) -> &[u8] {
        &self.recent[self.recent.len().saturating_sub(RECENT_BYTES)..]
    }

    /// Sends as much as goes without waiting.
    pub fn flush(&mut self) {
        while self.queued() > 0 && !self.is_deaf {
            match self.stream.write(&self.out[self.out_at..]) {
                Ok(count) => {
                    self.out_at += count;
                    self.moved = self.now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // What the other side has sent before is still to be read.
                Err(error) => {
                    self.is_deaf = true;
                    self.was_reset |= error.kind() == ErrorKind::ConnectionReset;
                }
            }
        }
        self.out.clear();
        self.out_at = 0;
    }

    /// Reads nothing for so long.
    pub fn hold(&mut self, time: Duration) {
        self.holds_until = Some(self.now() + time);
    }

    /// Until when nothing is read.
    fn held(&mut self) -> Option<Moment> {
        let until = self.holds_until?;
        if until <= self.now() {
            self.holds_until = None;
        }
        self.holds_until
    }

    /// Reads once, without waiting; whether anything came.
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

    /// Keeps the last bytes that came, and now and then forgets those before.
    fn remember(&mut self, count: usize) {
        let fresh = &self.input[self.filled - count.min(RECENT_BYTES)..self.filled];
        if self.recent.len() + fresh.len() > 2 * RECENT_BYTES {
            let surplus = (self.recent.len() + fresh.len()) - RECENT_BYTES;
            self.recent.drain(..surplus.min(self.recent.len()));
        }
        self.recent.extend_from_slice(fresh);
    }

    /// Sends what there is and waits until something comes, something was sent, or the time is over.
    pub async fn turn(&mut self, at_most: Duration) {
        let was_queued = self.queued() > 0;
        self.flush();
        // Who waits for the end of what was queued need not wait for more.
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

    /// Does nothing at all for so long.
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

    /// Sends FIN behind what was sent.
    pub fn finish(&mut self) {
        // The other side may be gone.
        self.stream.finish();
    }

    /// Waits until the other side has all that was sent, with the end behind it, and reads nothing meanwhile; `false`: it
    /// has not in this time, or nobody knows.
    pub async fn delivered(&mut self, at_most: Duration) -> bool {
        let until = self.now() + at_most;
        while !self.stream.is_delivered() && self.now() < until {
            self.pause(Duration::from_millis(5)).await;
        }
        self.stream.is_delivered()
    }

    /// Lets it close with a reset.
    pub fn reset(&mut self) {
        self.stream.reset_on_close();
    }

    /// Sends what is left, half-closes, and waits until the other side has ended, too; what still comes is dropped.
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
