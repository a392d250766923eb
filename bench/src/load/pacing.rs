//! The schedule of an open loop.
//!
//! The schedule does not depend on the server. A due request waits while all connections are busy, and its latency
//! counts from its due time, so stalls are not hidden (Gil Tene, "How NOT to Measure Latency": coordinated omission).

/// The schedule of one thread: request `k` is due at `start + (k + offset) / rate`.
#[derive(Debug, Clone)]
pub struct Pacer {
    start_us: u64,
    interval_us: f64,
    offset: f64,
    taken: u64,
}

impl Pacer {
    /// A schedule of `rate` requests per second from `start_us` on. `offset` from 0 to 1 is a share of the interval.
    /// Threads that share a rate have different offsets, so that their requests interleave instead of coming in bursts.
    pub fn new(start_us: u64, rate: f64, offset: f64) -> Self {
        Self { start_us, interval_us: 1e6 / rate, offset, taken: 0 }
    }

    /// The due time of the next request.
    #[inline]
    pub fn next_us(&self) -> u64 {
        self.due_us(self.taken)
    }

    /// Takes the next request if it is due. Returns its due time.
    #[inline]
    pub fn take(&mut self, now_us: u64) -> Option<u64> {
        let due_us = self.next_us();
        (due_us <= now_us).then(|| {
            self.taken += 1;
            due_us
        })
    }

    /// Number of requests that are due in `from_us..until_us` and were not taken.
    pub fn left_between(&self, from_us: u64, until_us: u64) -> u64 {
        let first = self.taken.max(self.first_at(from_us));
        self.first_at(until_us).saturating_sub(first)
    }

    /// The first request that is due at or after `at_us`.
    fn first_at(&self, at_us: u64) -> u64 {
        let since_us = at_us.saturating_sub(self.start_us) as f64;
        let mut number = ((since_us / self.interval_us - self.offset).floor().max(0.0)) as u64;
        // `due_us` rounds down, so the estimate may be off by a few at short intervals.
        number = number.saturating_sub(1 + (1.0 / self.interval_us) as u64);
        while self.due_us(number) < at_us {
            number += 1;
        }
        number
    }

    #[inline]
    fn due_us(&self, number: u64) -> u64 {
        // Compensates binary rounding, so that whole microseconds stay whole when rounded down.
        const ROUNDING_US: f64 = 1e-6;
        let after_us = (number as f64 + self.offset) * self.interval_us + ROUNDING_US;
        self.start_us.saturating_add(after_us as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_at_their_rate_whatever_the_steps_of_time() {
        for (rate, step_us) in
            [(1.0, 1), (3.0, 10), (100.0, 7), (25_000.0, 1), (333_333.0, 16_000), (2e6, 999)]
        {
            let mut pacer = Pacer::new(1_000, rate, 0.0);
            let (mut now_us, mut taken, mut last_us) = (1_000, 0_u64, 0);
            while now_us < 1_000 + 2_000_000 {
                while let Some(due_us) = pacer.take(now_us) {
                    assert!(due_us <= now_us && due_us >= last_us, "rate {rate}");
                    last_us = due_us;
                    taken += 1;
                }
                now_us += step_us;
            }
            let missing = pacer.left_between(0, 1_000 + 2_000_000);
            assert_eq!(taken + missing, (2.0 * rate) as u64, "rate {rate}");
        }
    }

    #[test]
    fn what_is_left_is_counted_from_what_was_taken() {
        let mut pacer = Pacer::new(0, 1_000.0, 0.0);
        assert_eq!(pacer.left_between(0, 10_000), 10);
        assert_eq!(pacer.left_between(5_000, 10_000), 5);
        for _ in 0..7 {
            assert!(pacer.take(9_000).is_some());
        }
        assert_eq!(pacer.left_between(0, 10_000), 3);
        assert_eq!(pacer.left_between(5_000, 10_000), 3);
        assert_eq!(pacer.left_between(0, 6_000), 0);
    }

    #[test]
    fn threads_interleave() {
        let mut all: Vec<u64> = (0..4)
            .flat_map(|thread| {
                let mut pacer = Pacer::new(0, 250.0, f64::from(thread) / 4.0);
                std::iter::from_fn(move || pacer.take(40_000)).collect::<Vec<_>>()
            })
            .collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] == 1_000), "{all:?}");
    }
}
