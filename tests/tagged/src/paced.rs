//! Bytes that are sent in pieces, with pauses between the pieces.

use std::time::Duration;

use weir_testing::Random;

use crate::clock::Moment;
use crate::link::{Link, UNTIL_EVENT};
use crate::profile::Profile;

/// A condition for sending the next piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// No condition.
    Nothing,
    /// This time has passed.
    Time(Duration),
    /// 100 or the final response to the request at this index of its batch has arrived, or this time has passed.
    Continue(usize, Duration),
    /// The request at this index of its batch has its complete response.
    Answered(usize),
}

/// Bytes that are sent in pieces.
#[derive(Debug)]
pub struct Paced {
    profile: Profile,
    bytes: Vec<u8>,
    at: usize,
    /// The end of each piece, and the condition for sending the next one.
    pieces: Vec<(usize, Wait)>,
    next: usize,
    since: Option<Moment>,
}

impl Paced {
    /// No bytes.
    pub fn new(profile: Profile) -> Self {
        Self { profile, bytes: Vec::new(), at: 0, pieces: Vec::new(), next: 0, since: None }
    }

    /// Appends bytes, divided at random. `then` is the condition for sending any bytes after them.
    pub fn add(&mut self, bytes: &[u8], then: Wait, random: &mut Random) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let [one, few] = self.profile.pieces;
        let count = match random.below(100) {
            place if place < one => 1,
            place if place < one + few => 2 + random.below(3),
            _ => 5 + random.below(20),
        };
        let mut cuts: Vec<usize> = (1..count).map(|_| random.below(bytes.len() + 1)).collect();
        // Cuts near the end find more errors than others.
        if count > 1 && random.percent(50) {
            cuts.push(bytes.len().saturating_sub(1 + random.below(8)));
        }
        cuts.sort_unstable();
        for cut in cuts {
            let wait = match random.below(100) {
                0..50 => Wait::Nothing,
                50..80 => Wait::Time(self.profile.pause(random, 500)),
                _ => Wait::Time(self.profile.pause(random, 4_000)),
            };
            self.pieces.push((start + cut, wait));
        }
        self.pieces.push((self.bytes.len(), then));
    }

    /// Drops all bytes after the first `bytes`.
    pub fn limit(&mut self, bytes: usize) {
        self.bytes.truncate(bytes);
        for (end, _) in &mut self.pieces {
            *end = bytes.min(*end);
        }
    }

    /// The total number of bytes.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// The number of released bytes.
    pub fn sent(&self) -> usize {
        self.at
    }

    /// Whether all bytes were released.
    pub fn is_done(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Drops the remaining bytes.
    pub fn stop(&mut self) {
        self.limit(self.at);
    }

    /// Moves bytes whose conditions are met to the output. Returns the time until the next call without further events; zero
    /// after the last bytes.
    pub fn feed(&mut self, link: &mut Link, is_met: impl Fn(Wait) -> bool) -> Duration {
        let was_done = self.is_done();
        let wait = self.feed_pieces(link, is_met);
        if self.is_done() && !was_done { Duration::ZERO } else { wait }
    }

    fn feed_pieces(&mut self, link: &mut Link, is_met: impl Fn(Wait) -> bool) -> Duration {
        while let Some(&(end, wait)) = self.pieces.get(self.next) {
            if self.at < end {
                if link.queued() > 0 {
                    return UNTIL_EVENT;
                }
                link.out().extend_from_slice(&self.bytes[self.at..end]);
                self.at = end;
                link.flush();
            }
            let now = link.now();
            let since = *self.since.get_or_insert(now);
            let until = match wait {
                Wait::Nothing => since,
                Wait::Time(time) => since + time,
                Wait::Continue(_, most) if !is_met(wait) => since + most,
                Wait::Answered(_) if !is_met(wait) => return UNTIL_EVENT,
                Wait::Continue(..) | Wait::Answered(_) => since,
            };
            if let Some(left) = now.left_until(until) {
                return left;
            }
            self.next += 1;
            self.since = None;
        }
        UNTIL_EVENT
    }
}
