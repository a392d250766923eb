//! The decision about a free place, from one word per worker.

/// A waiting request is served before one that has waited longer only if the difference is at most this.
pub const OVERTAKING_MS_MAX: u64 = 20;

/// Maximum number of successive places that a worker keeps for its own line while another worker's first request has
/// waited about as long; the next place goes to that worker.
pub const KEPT_MAX: u32 = 8;

/// The recipient of a free place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// No request waits.
    Nobody,
    /// The first request in the worker's own line.
    Own,
    /// The first request in the line of this worker, which must be woken.
    Other(usize),
}

/// Whether any request waits on any worker, by their words.
///
/// Cost: O(workers).
pub fn anybody_waits(waiting_since_ms: impl IntoIterator<Item = u64>) -> bool {
    waiting_since_ms.into_iter().any(|since_ms| since_ms != 0)
}

/// The next turn from the view of the worker `own`: its own first request if that has waited about as long as the
/// longest waiting one, else the longest waiting one. Each worker's word is the time since which its first request has
/// waited, on one clock; 0: no request waits.
///
/// Cost: O(workers).
pub fn turn(waiting_since_ms: impl Iterator<Item = u64> + Clone, own: usize) -> Turn {
    let words = waiting_since_ms.clone().enumerate();
    let longest = words.filter(|word| word.1 != 0).min_by_key(|word| word.1);
    match longest {
        None => Turn::Nobody,
        Some((_, longest_ms)) if near(waiting_since_ms, longest_ms).any(|near| near == own) => {
            Turn::Own
        }
        Some((worker, _)) => Turn::Other(worker),
    }
}

/// Workers whose first request has waited about as long as one that waits since `longest_ms`.
fn near(
    waiting_since_ms: impl Iterator<Item = u64>,
    longest_ms: u64,
) -> impl Iterator<Item = usize> {
    let is_near = move |word: &(usize, u64)| {
        word.1 != 0 && word.1.saturating_sub(longest_ms) <= OVERTAKING_MS_MAX
    };
    waiting_since_ms.enumerate().filter(is_near).map(|(worker, _)| worker)
}

/// A worker's fairness state for the places that it frees in one pool.
#[derive(Debug, Clone, Copy, Default)]
pub struct Places {
    /// Number of places kept for the own line, while others waited, since the last place was given away.
    kept: u32,
    /// The last worker that got a place.
    last: usize,
}

impl Places {
    /// The state before the first freed place.
    pub fn new() -> Self {
        Self::default()
    }

    /// The recipient of the place that this worker, `own`, has freed, and the new state after the place is taken. The words
    /// are those of [`turn`].
    ///
    /// Cost: O(workers).
    pub fn next(
        self,
        waiting_since_ms: impl Iterator<Item = u64> + Clone,
        own: usize,
    ) -> (Turn, Self) {
        let turn = turn(waiting_since_ms.clone(), own);
        if turn != Turn::Own {
            return (turn, self);
        }
        let longest_ms = waiting_since_ms.clone().filter(|&since_ms| since_ms != 0).min();
        let others = near(waiting_since_ms, longest_ms.unwrap_or(0)).filter(|&near| near != own);
        // Round robin: the first worker after the last recipient, else the first of all.
        let Some(other) = others.min_by_key(|&other| (other <= self.last, other)) else {
            return (Turn::Own, self);
        };
        if self.kept < KEPT_MAX {
            return (Turn::Own, Self { kept: self.kept + 1, ..self });
        }
        (Turn::Other(other), Self { kept: 0, last: other })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_first_if_it_has_waited_about_as_long() {
        let check = |words: &[u64], own, expected| {
            assert_eq!(turn(words.iter().copied(), own), expected, "{words:?} {own}");
            let (next, _) = Places::new().next(words.iter().copied(), own);
            assert_eq!(next, expected, "{words:?} {own}");
            assert_eq!(anybody_waits(words.iter().copied()), expected != Turn::Nobody);
        };
        check(&[], 0, Turn::Nobody);
        check(&[0, 0, 0], 1, Turn::Nobody);
        check(&[0, 7, 0], 1, Turn::Own);
        check(&[0, 7, 0], 0, Turn::Other(1));
        check(&[90, 100, 95], 0, Turn::Own);
        check(&[100, 80, 95], 0, Turn::Own);
        check(&[100, 79, 95], 0, Turn::Other(1));
        check(&[100, 79, 70], 0, Turn::Other(2));
        check(&[0, 79, 70], 0, Turn::Other(2));
        check(&[u64::MAX, 1], 0, Turn::Other(1));
        check(&[u64::MAX, 0], 0, Turn::Own);
        check(&[u64::MAX, 0], 1, Turn::Other(0));
    }

    #[test]
    fn every_so_often_a_place_is_given_away_in_rotation() {
        let mut places = Places::new();
        // An older request, one about as old, one too young, and an empty line.
        let words = [100, 95, 110, 116, 0];
        let mut freed = |words: [u64; 5]| {
            let (turn, after) = places.next(words.into_iter(), 0);
            places = after;
            turn
        };
        for expected in [1, 2, 1, 2] {
            for _ in 0..KEPT_MAX {
                assert_eq!(freed(words), Turn::Own);
                // While no other worker has a waiting request, no place has to be given away.
                assert_eq!(freed([100, 0, 0, 0, 0]), Turn::Own);
            }
            assert_eq!(freed(words), Turn::Other(expected));
        }
    }
}
