//! Waiting requests: in the queue for a member, or in a delay. They are found here when their wait is over; the worker continues them.
//!
//! The queues and their order are implemented in [`weir_core::queue`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use weir_core::clock::Clock;
use weir_core::queue::{Line, Places, Turn};
use weir_exchange::arena::{Arena, ExchangeKey, OfExchange};
use weir_exchange::local::pool::{LocalPool, NoMember};
use weir_exchange::local::pools::PoolInForce;
use weir_exchange::local::table::LocalTable;
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::parts::tries::Lease;
use weir_exchange::parts::wait_state::WaitState;
use weir_exchange::shared::live::LivePool;
use weir_exchange::transaction::Transaction;

/// Interval between checks for places that other workers have freed, while requests wait.
const LOOK_US: u64 = 1_000;

/// Maximum number of requests with a pending retry that are checked per turn of the loop.
const AGAIN_LOOKS_MAX: usize = 64;

/// The waiting requests of a worker.
pub struct WaitingRequests {
    /// The index of the worker.
    worker: usize,
    /// The queues for members, by the number of the pool.
    lines: BTreeMap<u64, PoolLine>,
    /// Delayed requests, by the end of their delay.
    delayed: BinaryHeap<Reverse<(u64, ExchangeKey)>>,
}

/// The requests that wait for a member of one pool.
struct PoolLine {
    /// The state of the pool across reloads. The members of a table are stored in each request.
    live: Arc<LivePool>,
    line: Line<ExchangeKey>,
    /// Requests that wait for a retry. They are checked first and one by one, because a free place may be at a member that
    /// they have already tried.
    again: Vec<WaitingRetry>,
    /// The index at which the next check starts, if there are too many requests for one check.
    again_from: usize,
    places: Places,
}

/// A request that waits for a member that it has not tried.
struct WaitingRetry {
    exchange: ExchangeKey,
    deadline_ms: u64,
}

/// A check of the requests of a pool that wait for a retry. If one turn cannot check all of them, the next turn continues after the
/// last one checked.
pub struct RetryCheck {
    left: usize,
    at: usize,
}

impl PoolLine {
    /// Counts a request that has left the queue.
    fn note_left(&self, worker: usize) {
        self.live.waiting.fetch_sub(1, Relaxed);
        self.live.counters.of(worker).queue_length.subtract(1);
    }

    /// Removes the first request of the queue.
    fn pop_first(&mut self, worker: usize) {
        self.line.pop();
        self.publish(worker);
        self.note_left(worker);
    }

    fn publish(&self, worker: usize) {
        let word = &self.live.waiting_since_ms[worker];
        word.store(self.line.waiting_since_ms(), SeqCst);
    }
}

impl WaitingRequests {
    /// No requests wait. `worker`: the index of the worker.
    pub fn new(worker: usize) -> Self {
        Self { worker, lines: BTreeMap::new(), delayed: BinaryHeap::new() }
    }

    /// The number of waiting requests.
    #[cfg(feature = "simulation")]
    pub fn len(&self) -> usize {
        let in_line: usize = self.lines.values().map(|it| it.line.len() + it.again.len()).sum();
        in_line + self.delayed.len()
    }

    /// Adds a transaction that waits until `until_us`.
    pub fn delay(&mut self, until_us: u64, key: ExchangeKey) {
        self.delayed.push(Reverse((until_us, key)));
    }

    /// Adds a request to the queue of its pool. `is_sent`: it was sent to a member before. False: there is no queue, or it is full.
    pub fn join(&mut self, ends: &mut TransactionEnds, is_sent: bool, now_ms: u64) -> bool {
        let pool = Rc::clone(&ends.tries.pool);
        let Some(queue) = pool.settings().queue else { return false };
        let length_max = queue.length_max;
        if pool.live.waiting.fetch_add(1, Relaxed) >= length_max {
            pool.live.waiting.fetch_sub(1, Relaxed);
            return false;
        }
        let line = self.lines.entry(pool.live.number).or_insert_with(|| PoolLine {
            live: Arc::clone(&pool.live),
            line: Line::new(length_max as usize),
            again: Vec::new(),
            again_from: 0,
            places: Places::new(),
        });
        if ends.tries.tried().is_empty() && !is_sent {
            line.line.set_length_max(length_max as usize);
            let Ok(ticket) = line.line.push(ends.key, now_ms, queue.timeout_ms) else {
                pool.live.waiting.fetch_sub(1, Relaxed);
                return false;
            };
            line.publish(self.worker);
            ends.phase.park(WaitState::InLine(ticket));
        } else {
            let deadline_ms = now_ms.saturating_add(queue.timeout_ms);
            line.again.push(WaitingRetry { exchange: ends.key, deadline_ms });
            ends.phase.park(WaitState::Beside);
        }
        pool.counters.queued.add(1);
        pool.counters.queue_length.add(1);
        true
    }

    /// Removes a request from the queue because the request ends.
    pub fn leave(&mut self, pool: &LocalPool, wait_state: &WaitState, exchange: ExchangeKey) {
        let Some(line) = self.lines.get_mut(&pool.live.number) else { return };
        let was_there = match wait_state {
            WaitState::InLine(ticket) => line.line.cancel(*ticket).is_some(),
            _ => {
                let at = line.again.iter().position(|again| again.exchange == exchange);
                at.map(|at| line.again.remove(at)).is_some()
            }
        };
        if was_there {
            line.note_left(self.worker);
        }
        line.publish(self.worker);
    }

    /// The pools with queues, by their numbers.
    pub fn pools(&self) -> Vec<u64> {
        self.lines.keys().copied().collect()
    }

    /// Removes and returns a transaction whose delay is over.
    pub fn next_delayed(&mut self, now_us: u64) -> Option<ExchangeKey> {
        let Reverse((until_us, _)) = self.delayed.peek()?;
        if *until_us > now_us {
            return None;
        }
        self.delayed.pop().map(|Reverse((_, key))| key)
    }

    /// Removes and returns a request of a pool that has waited for too long.
    pub fn next_late(&mut self, pool: u64, now_ms: u64) -> Option<ExchangeKey> {
        let line = self.lines.get_mut(&pool)?;
        let late = line.again.iter().position(|again| again.deadline_ms <= now_ms);
        let late = late.map(|at| line.again.remove(at).exchange);
        let key = late.or_else(|| line.line.expire(now_ms))?;
        line.publish(self.worker);
        line.note_left(self.worker);
        line.live.counters.of(self.worker).queue_timeouts.add(1);
        Some(key)
    }

    /// Begins to check the requests of a pool that wait for a retry.
    pub fn begin_retries(&self, pool: u64) -> RetryCheck {
        let count = self.lines.get(&pool).map_or(0, |line| line.again.len());
        let is_one_look = count <= AGAIN_LOOKS_MAX;
        let from = self.lines.get(&pool).map_or(0, |line| line.again_from);
        RetryCheck { left: count.min(AGAIN_LOOKS_MAX), at: if is_one_look { 0 } else { from } }
    }

    /// Removes and returns the next request of a pool that gets a place for its retry.
    pub fn next_retry(
        &mut self,
        pool: u64,
        check: &mut RetryCheck,
        exchanges: &mut Arena<OfExchange, Transaction>,
        now: Clock,
    ) -> Option<ExchangeKey> {
        let line = self.lines.get_mut(&pool)?;
        while check.left > 0 {
            check.left -= 1;
            if check.at >= line.again.len() {
                check.at = 0;
            }
            let Some(&WaitingRetry { exchange: key, .. }) = line.again.get(check.at) else { break };
            let Some(ends) = exchanges.get_mut(key).map(Transaction::ends_mut) else {
                debug_assert!(false, "an exchange that ends leaves its line");
                line.again.remove(check.at);
                line.note_left(self.worker);
                continue;
            };
            match ends.tries.pool.occupy(ends.tries.tried(), now, ends.tries.preference) {
                Ok(member) => {
                    let lease = Lease::of(&ends.tries.pool, member);
                    ends.phase.park(WaitState::Called(Some(lease)));
                }
                Err(NoMember::Full) => {
                    check.at += 1;
                    continue;
                }
                Err(NoMember::Down) => ends.phase.park(WaitState::Called(None)),
            }
            line.again.remove(check.at);
            line.note_left(self.worker);
            return Some(key);
        }
        line.again_from = check.at;
        None
    }

    /// Removes and returns the first request of a pool's queue, if it gets a place.
    pub fn next_in_line(
        &mut self,
        pool: u64,
        exchanges: &mut Arena<OfExchange, Transaction>,
        now: Clock,
    ) -> Option<ExchangeKey> {
        let line = self.lines.get_mut(&pool)?;
        loop {
            let PoolLine { live, line: waiters, places, .. } = line;
            let &key = waiters.first()?;
            let Some(ends) = exchanges.get_mut(key).map(Transaction::ends_mut) else {
                debug_assert!(false, "an exchange that ends leaves its line");
                line.pop_first(self.worker);
                continue;
            };
            // Another worker whose first request has waited for about the same time gets one of several free places.
            let (next, after) = places.next(live.waiting_words(), self.worker);
            let member = match next {
                Turn::Own => ends.tries.pool.occupy(&[], now, ends.tries.preference).map(Some),
                _ => ends.tries.pool.outlook(now).map(|()| None),
            };
            match member {
                Ok(member) => {
                    *places = after;
                    let member = member?;
                    let lease = Lease::of(&ends.tries.pool, member);
                    ends.phase.park(WaitState::Called(Some(lease)));
                }
                Err(NoMember::Full) => return None,
                // All members are down, so the request is handled like a new one.
                Err(NoMember::Down) => {
                    ends.move_to_fallback(now);
                    ends.phase.park(WaitState::Called(None));
                }
            }
            line.pop_first(self.worker);
            return Some(key);
        }
    }

    /// Forgets queues that are empty. Returns whether requests wait.
    pub fn end_check(&mut self) -> bool {
        self.lines.retain(|_, line| !line.line.is_empty() || !line.again.is_empty());
        !self.lines.is_empty() || !self.delayed.is_empty()
    }

    /// The time of the next check; `None`: no request waits.
    pub fn next_check_us(&self, now_us: u64) -> Option<u64> {
        let line_us = (!self.lines.is_empty()).then_some(now_us + LOOK_US);
        let delayed_us = self.delayed.peek().map(|Reverse((until_us, _))| *until_us);
        [line_us, delayed_us].into_iter().flatten().min()
    }

    /// Moves waiting requests to the pools of the active table.
    pub fn move_to(&self, table: &LocalTable, exchanges: &mut Arena<OfExchange, Transaction>) {
        if self.lines.is_empty() {
            return;
        }
        // Most that wait have the same pool.
        let mut last: Option<(Rc<LocalPool>, Option<Rc<LocalPool>>)> = None;
        for transaction in exchanges.values_mut() {
            if !transaction.ends().phase.wait_state().is_in_queue() {
                continue;
            }
            let pool = &transaction.ends().tries.pool;
            let found = match last.take_if(|(before, _)| Rc::ptr_eq(before, pool)) {
                Some(found) => found,
                None => (Rc::clone(pool), newer_pool(table, pool)),
            };
            let (_, newer) = last.insert(found);
            if let Some(newer) = newer {
                transaction.ends_mut().move_to(newer);
            }
        }
    }
}

/// The same pool in a table, if that table has the pool with other settings or other members.
pub fn newer_pool(table: &LocalTable, pool: &Rc<LocalPool>) -> Option<Rc<LocalPool>> {
    let is_it = |other: &&Rc<PoolInForce>| Arc::ptr_eq(other.live(), &pool.live);
    let newer = table.pools().iter().find(is_it)?.now();
    (!Rc::ptr_eq(&newer, pool)).then_some(newer)
}
