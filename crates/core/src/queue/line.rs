//! The queue of one worker: first come, first served, with deadlines.
//!
//! A ring in order of arrival. A waiter that leaves early leaves an empty place. Empty places at either end are removed at
//! once; if more than half of the ring (and more than [`EMPTY_MIN`]) is empty, the ring is compacted. So waiters that come
//! and leave do not make it grow, and each departure costs the removal of at most two places.
//!
//! | operation | cost |
//! |---|---|
//! | `push` | O(1) amortised |
//! | `pop`, `expire` | O(1) amortised |
//! | `cancel` | O(1) amortised if the ring was not compacted behind the waiter, else O(log n) |
//! | `waiting_since_ms`, `next_deadline_ms`, `len` | O(1) |
//! | memory | at most two places per waiting request, and [`EMPTY_MIN`] |

use std::collections::VecDeque;

/// Minimum number of empty places before the ring is compacted.
const EMPTY_MIN: usize = 32;

/// Waiting requests of one pool on one worker; `T` identifies a request for the caller.
#[derive(Debug, Clone)]
pub struct Line<T> {
    /// The places, in order of tickets and of deadlines. Neither the first nor the last is empty.
    places: VecDeque<Place<T>>,
    /// Number of places that are not empty.
    waiting: usize,
    length_max: usize,
    next_ticket: u64,
}

/// Identifies a waiter of one line; it is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u64);

#[derive(Debug, Clone)]
struct Place<T> {
    ticket: u64,
    since_ms: u64,
    deadline_ms: u64,
    waiter: Option<T>,
}

impl<T> Line<T> {
    /// An empty line for at most `length_max` waiters.
    pub fn new(length_max: usize) -> Self {
        Self { places: VecDeque::new(), waiting: 0, length_max, next_ticket: 0 }
    }

    /// Adds a waiter at the end, for at most `timeout_ms`. Returns the waiter if the line is full.
    ///
    /// Deadlines are kept in order of arrival: a deadline before that of the previous waiter is moved to that one. This
    /// happens only after the timeout was shortened.
    pub fn push(&mut self, waiter: T, now_ms: u64, timeout_ms: u64) -> Result<Ticket, T> {
        if self.waiting >= self.length_max {
            return Err(waiter);
        }
        let before_ms = self.places.back().map_or(0, |place| place.deadline_ms);
        let deadline_ms = now_ms.saturating_add(timeout_ms).max(before_ms);
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting += 1;
        let place = Place { ticket, since_ms: now_ms, deadline_ms, waiter: Some(waiter) };
        self.places.push_back(place);
        self.check_invariants();
        Ok(Ticket(ticket))
    }

    /// The first waiter.
    pub fn first(&self) -> Option<&T> {
        self.places.front()?.waiter.as_ref()
    }

    /// Removes the first waiter, even if its deadline has just passed: it is served.
    pub fn pop(&mut self) -> Option<T> {
        let waiter = self.places.pop_front()?.waiter;
        self.waiting -= 1;
        self.tidy();
        waiter
    }

    /// Removes the first waiter if its deadline has passed; call this until the result is `None`.
    pub fn expire(&mut self, now_ms: u64) -> Option<T> {
        if self.next_deadline_ms()? > now_ms {
            return None;
        }
        self.pop()
    }

    /// Removes a waiter at any position; `None`: it has left already.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<T> {
        let index = self.index_of(ticket)?;
        let waiter = self.places[index].waiter.take()?;
        self.waiting -= 1;
        self.tidy();
        Some(waiter)
    }

    /// Changes the maximum length. Requests that already wait stay.
    pub fn set_length_max(&mut self, length_max: usize) {
        self.length_max = length_max;
    }

    /// The word that this worker publishes: the time since which its first request has waited, at least 1; 0: no
    /// request waits.
    pub fn waiting_since_ms(&self) -> u64 {
        self.places.front().map_or(0, |place| place.since_ms.max(1))
    }

    /// The time of the next call of [`Self::expire`] that has an effect.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        self.places.front().map(|place| place.deadline_ms)
    }

    /// The number of waiting requests.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    fn index_of(&self, Ticket(ticket): Ticket) -> Option<usize> {
        let first = self.places.front()?.ticket;
        // The index, if no place in between was removed.
        let index = usize::try_from(ticket.checked_sub(first)?).ok()?;
        if self.places.get(index).is_some_and(|place| place.ticket == ticket) {
            return Some(index);
        }
        self.places.binary_search_by_key(&ticket, |place| place.ticket).ok()
    }

    /// Removes empty places at the ends, and all empty places when they are too many.
    fn tidy(&mut self) {
        let is_empty = |place: Option<&Place<T>>| place.is_some_and(|place| place.waiter.is_none());
        while is_empty(self.places.front()) {
            self.places.pop_front();
        }
        while is_empty(self.places.back()) {
            self.places.pop_back();
        }
        let empty = self.places.len() - self.waiting;
        if empty > self.waiting.max(EMPTY_MIN) {
            self.places.retain(|place| place.waiter.is_some());
        }
        self.check_invariants();
    }

    /// Neither end is empty, tickets and deadlines rise, and empty places are bounded.
    fn check_invariants(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let waiting = self.places.iter().filter(|place| place.waiter.is_some()).count();
        assert_eq!(waiting, self.waiting);
        let ends = self.places.front().into_iter().chain(self.places.back());
        assert!(ends.into_iter().all(|place| place.waiter.is_some()));
        assert!(self.places.len() <= waiting + waiting.max(EMPTY_MIN));
        for (place, next) in self.places.iter().zip(self.places.iter().skip(1)) {
            assert!(place.ticket < next.ticket && place.deadline_ms <= next.deadline_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_testing::Random;

    #[test]
    fn first_come_first_served() {
        let mut line = Line::new(3);
        assert_eq!((line.waiting_since_ms(), line.next_deadline_ms(), line.pop()), (0, None, None));
        line.push('a', 0, 100).unwrap();
        line.push('b', 10, 100).unwrap();
        line.push('c', 20, 100).unwrap();
        assert_eq!(line.push('d', 30, 100), Err('d'));
        assert_eq!((line.len(), line.waiting_since_ms()), (3, 1));
        assert_eq!((line.pop(), line.waiting_since_ms()), (Some('a'), 10));
        line.push('d', 30, 100).unwrap();
        assert_eq!(
            [line.pop(), line.pop(), line.pop(), line.pop()].map(|waiter| waiter.is_some()),
            [true, true, true, false]
        );
        assert!(line.is_empty());
    }

    #[test]
    fn deadlines_pass_in_order() {
        let mut line = Line::new(10);
        line.push('a', 0, 100).unwrap();
        line.push('b', 10, 100).unwrap();
        // A later waiter with a shorter timeout keeps its position.
        line.push('c', 20, 5).unwrap();
        assert_eq!((line.next_deadline_ms(), line.expire(99)), (Some(100), None));
        assert_eq!((line.expire(100), line.expire(100)), (Some('a'), None));
        assert_eq!(
            (line.expire(500), line.expire(500), line.expire(500)),
            (Some('b'), Some('c'), None)
        );
    }

    #[test]
    fn who_leaves_is_passed_over() {
        let mut line = Line::new(4);
        let tickets: Vec<Ticket> =
            "abcd".chars().map(|waiter| line.push(waiter, 5, 100).unwrap()).collect();
        assert_eq!(line.cancel(tickets[1]), Some('b'));
        assert_eq!(line.cancel(tickets[1]), None);
        assert_eq!((line.len(), line.pop()), (3, Some('a')));
        assert_eq!(line.cancel(tickets[0]), None);
        assert_eq!(line.cancel(tickets[3]), Some('d'));
        let late = line.push('e', 9, 100).unwrap();
        assert_eq!((line.pop(), line.cancel(late), line.pop()), (Some('c'), Some('e'), None));
    }

    #[test]
    fn a_line_of_length_0_takes_nobody() {
        let mut line = Line::new(0);
        assert_eq!(line.push(1, 0, 10), Err(1));
        line.set_length_max(1);
        assert!(line.push(1, 0, 10).is_ok());
        line.set_length_max(0);
        assert_eq!(line.pop(), Some(1));
    }

    /// One waiter stays while thousands join and leave behind it.
    #[test]
    fn departures_do_not_make_it_grow() {
        let mut line = Line::new(100);
        line.push(0, 0, 1_000).unwrap();
        let mut last = None;
        for number in 1..10_000 {
            let ticket = line.push(number, 0, 1_000).unwrap();
            // The last waiter stays, so that the place cannot be removed at once.
            if let Some(before) = last.replace(ticket) {
                assert_eq!(line.cancel(before), Some(number - 1));
            }
            assert!(line.places.len() <= 2 + EMPTY_MIN);
        }
        assert_eq!(line.len(), 2);
    }

    /// Comparison with a simple list.
    #[test]
    fn agrees_with_a_list() {
        for seed in 0..128 {
            let mut random = Random::new(seed);
            let length_max = 1 + random.below(200);
            let mut line = Line::new(length_max);
            let mut model: Vec<(u32, u64, Ticket)> = Vec::new();
            let mut gone: Vec<Ticket> = Vec::new();
            let mut now_ms = 1;
            for number in 0..2_000 {
                now_ms += random.below(3) as u64;
                match random.below(10) {
                    0..5 => match line.push(number, now_ms, 300) {
                        Ok(ticket) => model.push((number, now_ms + 300, ticket)),
                        Err(_) => assert_eq!(model.len(), length_max, "seed {seed}"),
                    },
                    5..8 if !model.is_empty() => {
                        let (waiter, _, ticket) = model.remove(random.below(model.len()));
                        assert_eq!(line.cancel(ticket), Some(waiter), "seed {seed}");
                        gone.push(ticket);
                    }
                    8 if !model.is_empty() => {
                        let (waiter, _, ticket) = model.remove(0);
                        assert_eq!(line.pop(), Some(waiter), "seed {seed}");
                        gone.push(ticket);
                    }
                    _ => {
                        while let Some(waiter) = line.expire(now_ms) {
                            let (first, deadline_ms, ticket) = model.remove(0);
                            assert!(first == waiter && deadline_ms <= now_ms, "seed {seed}");
                            gone.push(ticket);
                        }
                        assert!(model.iter().all(|waiter| waiter.1 > now_ms), "seed {seed}");
                    }
                }
                if !gone.is_empty() {
                    let ticket = gone[random.below(gone.len())];
                    assert_eq!(line.cancel(ticket), None, "seed {seed}");
                }
                assert_eq!(line.len(), model.len(), "seed {seed}");
                let since_ms = model.first().map_or(0, |waiter| waiter.1 - 300);
                assert_eq!(line.waiting_since_ms(), since_ms, "seed {seed}");
            }
        }
    }
}
