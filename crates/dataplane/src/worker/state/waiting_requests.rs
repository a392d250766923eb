//! Waiting requests: in the queue for a member, or in a delay.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use weir_core::queue::{Line, Places};
use weir_exchange::arena::ExchangeKey;
use weir_exchange::shared::live::LivePool;

/// The waiting requests of a worker.
#[derive(Default)]
pub struct WaitingRequests {
    /// The queues for members, by the number of the pool.
    pub lines: BTreeMap<u64, PoolLine>,
    /// Delayed requests, by the end of their delay.
    pub delayed: BinaryHeap<Reverse<(u64, ExchangeKey)>>,
}

#[cfg(feature = "simulation")]
impl WaitingRequests {
    /// The number of waiting requests.
    pub fn len(&self) -> usize {
        let in_line: usize = self.lines.values().map(|it| it.line.len() + it.again.len()).sum();
        in_line + self.delayed.len()
    }
}

/// The requests that wait for a member of one pool.
pub struct PoolLine {
    /// The state of the pool across reloads. The members of a table are stored in each request.
    pub live: Arc<LivePool>,
    pub line: Line<ExchangeKey>,
    /// Requests that wait for a retry. They are checked first and one by one, because a free place may be at a member that
    /// they have already tried.
    pub again: Vec<WaitingRetry>,
    /// The index at which the next check starts, if there are too many requests for one check.
    pub again_from: usize,
    pub places: Places,
}

/// A request that waits for a member that it has not tried.
pub struct WaitingRetry {
    pub exchange: ExchangeKey,
    pub deadline_ms: u64,
}

impl PoolLine {
    /// Counts a request that has left the queue.
    pub fn note_left(&self, worker: usize) {
        self.live.waiting.fetch_sub(1, Relaxed);
        self.live.counters.of(worker).queue_length.subtract(1);
    }

    /// Removes the first request of the queue.
    pub fn pop_first(&mut self, worker: usize) {
        self.line.pop();
        self.publish(worker);
        self.note_left(worker);
    }

    pub fn publish(&self, worker: usize) {
        let word = &self.live.waiting_since_ms[worker];
        word.store(self.line.waiting_since_ms(), SeqCst);
    }
}

impl WaitingRequests {
    /// Adds a transaction that waits until `until_us`.
    pub fn delay(&mut self, until_us: u64, key: ExchangeKey) {
        self.delayed.push(Reverse((until_us, key)));
    }
}
