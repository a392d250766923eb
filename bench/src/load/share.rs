//! One thread's share of a load, and the signals between threads.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64};

use weir_event_loop::clock;

use super::plan::{CONNECTIONS_PER_THREAD_MAX, Extent, Plan};
use super::tally::{CompletedResponses, Tally};

/// One thread's share of a load.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// Index of the thread.
    pub thread: usize,
    /// The number of threads.
    pub threads: usize,
    /// Number of the thread's connections.
    pub connections: usize,
    /// Number of connections of the threads before it.
    pub connections_before: usize,
    /// The thread's share of the offered rate.
    pub rate: Option<f64>,
    /// The thread's share of the requests.
    pub requests_max: Option<u64>,
    /// Start of the load, for the ramp.
    pub begun_us: u64,
}

impl Share {
    /// Divides a plan into shares.
    pub fn divide(plan: &Plan, begun_us: u64) -> Vec<Self> {
        let least = plan.connections.div_ceil(CONNECTIONS_PER_THREAD_MAX);
        // A thread without a connection could not send its share.
        let threads = plan.threads.max(least).clamp(1, plan.connections.max(1));
        let mut connections_before = 0;
        (0..threads)
            .map(|thread| {
                let part = |whole| part(whole, thread as u64, threads as u64);
                let connections = part(plan.connections as u64) as usize;
                let requests_max = match plan.extent {
                    Extent::Requests(requests) => Some(part(requests)),
                    Extent::Time(_) => None,
                };
                let share = Self {
                    thread,
                    threads,
                    connections,
                    connections_before,
                    rate: plan.rate.map(|rate| rate / threads as f64),
                    requests_max,
                    begun_us,
                };
                connections_before += connections;
                share
            })
            .collect()
    }

    /// Offset of the thread's schedule within the interval between two requests.
    pub fn offset(&self) -> f64 {
        self.thread as f64 / self.threads as f64
    }

    /// The source address of the thread's user `index`; `None` without configured sources.
    pub fn source_of(&self, plan: &Plan, index: usize) -> Option<IpAddr> {
        let count = plan.sources.len();
        (count > 0).then(|| plan.sources[(self.connections_before + index) % count])
    }

    /// Whether the ramp allows another connection after `attempted` attempts of this thread.
    pub fn may_open(&self, plan: &Plan, attempted: usize, now_us: u64) -> bool {
        let ramp_us = plan.ramp_up.as_micros() as u64;
        let since_us = now_us.saturating_sub(self.begun_us);
        since_us >= ramp_us || (attempted as u64) * ramp_us <= since_us * self.connections as u64
    }
}

/// Splits an integer evenly: part `index` of `parts`. Parts differ by 1 at most, and their sum is `whole`.
fn part(whole: u64, index: u64, parts: u64) -> u64 {
    let (each, rest) = (whole / parts, whole % parts);
    // Avoids the product of `whole`, which might overflow.
    each + rest * (index + 1) / parts - rest * index / parts
}

/// Signals between the threads and their starter. Times are in microseconds of the monotonic clock; `u64::MAX` means
/// not known yet.
#[derive(Debug)]
pub struct Signals {
    /// Start of the schedule of an open loop.
    pub start_us: AtomicU64,
    /// Start of the measurement.
    pub begin_us: AtomicU64,
    /// End of the measurement. No request begins after it.
    pub end_us: AtomicU64,
    /// For each thread, whether it has tried to open every connection.
    pub ready: Vec<AtomicBool>,
    /// Progress of each thread.
    pub progress: Vec<ThreadProgress>,
}

/// The progress of a thread in the measurement.
#[derive(Debug, Default)]
pub struct ThreadProgress {
    /// Good transactions.
    pub requests: AtomicU64,
    /// Errors.
    pub errors: AtomicU64,
}

impl Signals {
    /// Initial signals for this many threads.
    pub fn new(threads: usize) -> Self {
        Self {
            start_us: AtomicU64::new(u64::MAX),
            begin_us: AtomicU64::new(u64::MAX),
            end_us: AtomicU64::new(u64::MAX),
            ready: (0..threads).map(|_| AtomicBool::new(false)).collect(),
            progress: (0..threads).map(|_| ThreadProgress::default()).collect(),
        }
    }
}

/// The current time on the clock of [`Signals`]. The time of an event loop's turn is too coarse: a turn may last longer
/// than the measured interval.
#[inline]
pub fn now_us() -> u64 {
    clock::now().now_us()
}

/// The results of one thread.
#[derive(Debug)]
pub struct ThreadResult {
    /// Transactions that began before the measurement.
    pub warm_up: Tally,
    /// Transactions that began in the measurement.
    pub measured: Tally,
    /// Responses that were complete within the measurement, whenever they began.
    pub completed: CompletedResponses,
    /// Number of due requests that were never sent.
    pub unsent: u64,
    /// CPU time within the measurement.
    pub cpu_s: f64,
    /// Time when the last response was complete or failed; 0 without responses.
    pub last_done_us: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_even_and_make_up_the_whole() {
        let check = |whole: u64, parts: u64| {
            let all: Vec<u64> = (0..parts).map(|index| part(whole, index, parts)).collect();
            let sum: u128 = all.iter().map(|&one| u128::from(one)).sum();
            assert_eq!(sum, u128::from(whole), "{whole} in {parts}");
            let (least, most) = (all.iter().min(), all.iter().max());
            let apart = most.zip(least).map(|(most, least)| most - least);
            assert!(apart <= Some(1), "{whole} in {parts}: {all:?}");
        };
        for parts in [1, 2, 3, 7, 1_024] {
            for whole in [0, 1, 2, 64, 1_023, 1_000_000, u64::MAX - 1, u64::MAX] {
                check(whole, parts);
            }
        }
        assert_eq!([0, 1, 2].map(|index| part(7, index, 3)), [2, 2, 3]);
    }
}
