//! Waiting requests: in the queue for a member, or in the delay of a rate limit.
//!
//! The queues and their order are implemented in [`weir_core::queue`]. A worker checks its queues at the end of each turn of
//! its loop. While requests wait, it also checks them every [`LOOK_US`], which finds places that other workers have freed.

use std::cmp::Reverse;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_config::snapshot::HalfClosed;
use weir_core::queue::{Line, Places, Turn};
use weir_event_loop::EventLoop;
use weir_exchange::arena::ExchangeKey;
use weir_exchange::local::pool::{LocalPool, NoMember};
use weir_exchange::local::pools::PoolInForce;
use weir_exchange::local::table::LocalTable;
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::parts::tries::Lease;
use weir_exchange::parts::wait_state::WaitState;
use weir_exchange::transaction::Transaction;

use super::Worker;
use super::edge::WorkerEdge;
use super::world::World;
use crate::worker::state::waiting_requests::{PoolLine, WaitingRetry};

/// Interval between checks for places that other workers have freed, while requests wait.
const LOOK_US: u64 = 1_000;

/// Maximum number of requests with a pending retry that are checked per turn of the loop.
const AGAIN_LOOKS_MAX: usize = 64;

impl WorkerEdge<'_> {
    /// Adds a request to the queue of its pool. False: there is no queue, it is full, or it excludes this client.
    pub fn join_line(&mut self, ends: &mut TransactionEnds, is_sent: bool) -> bool {
        if let Some(newer) = newer_pool(&self.world.table, &ends.tries.pool) {
            ends.move_to(&newer);
        }
        let pool = Rc::clone(&ends.tries.pool);
        let Some(queue) = pool.settings().queue else {
            return false;
        };
        let length_max = queue.length_max;
        let client = self.world.clients.find(ends.caller.client());
        if queue.half_closed == Some(HalfClosed::Leave) && client.is_some_and(|client| client.ended)
        {
            return false;
        }
        if pool.live.waiting.fetch_add(1, Relaxed) >= length_max {
            pool.live.waiting.fetch_sub(1, Relaxed);
            return false;
        }
        let line = self.world.waiting.lines.entry(pool.live.number).or_insert_with(|| PoolLine {
            live: Arc::clone(&pool.live),
            line: Line::new(length_max as usize),
            again: Vec::new(),
            again_from: 0,
            places: Places::new(),
        });
        let now_ms = self.io.now_ms();
        if ends.tries.tried().is_empty() && !is_sent {
            line.line.set_length_max(length_max as usize);
            let Ok(ticket) = line.line.push(ends.key, now_ms, queue.timeout_ms) else {
                pool.live.waiting.fetch_sub(1, Relaxed);
                return false;
            };
            line.publish(self.world.id);
            ends.phase.park(WaitState::InLine(ticket));
        } else {
            let deadline_ms = now_ms.saturating_add(queue.timeout_ms);
            line.again.push(WaitingRetry { exchange: ends.key, deadline_ms });
            ends.phase.park(WaitState::Beside);
        }
        self.set_client_due(ends, None);
        let counters = &pool.counters;
        counters.queued.add(1);
        counters.queue_length.add(1);
        true
    }
}

impl World {
    /// Removes a request from the queue because the request ends.
    pub fn leave_line(&mut self, pool: &LocalPool, wait_state: &WaitState, exchange: ExchangeKey) {
        if let Some(line) = self.waiting.lines.get_mut(&pool.live.number) {
            let was_there = match wait_state {
                WaitState::InLine(ticket) => line.line.cancel(*ticket).is_some(),
                _ => {
                    let at = line.again.iter().position(|again| again.exchange == exchange);
                    at.map(|at| line.again.remove(at)).is_some()
                }
            };
            if was_there {
                line.note_left(self.id);
            }
            line.publish(self.id);
        }
    }
}

impl Worker {
    /// Continues requests that get a place at a member, and requests whose time is over. Returns the time of the next check.
    pub fn serve_waiting(&mut self, io: &mut EventLoop) -> Option<u64> {
        if self.world.waiting.lines.is_empty() && self.world.waiting.delayed.is_empty() {
            return None;
        }
        let now_us = io.clock().now_us();
        while let Some(&Reverse((until_us, key))) = self.world.waiting.delayed.peek() {
            if until_us > now_us {
                break;
            }
            self.world.waiting.delayed.pop();
            self.with_any(io, key, |it, at| it.resume(at));
        }
        let pools: Vec<u64> = self.world.waiting.lines.keys().copied().collect();
        for pool in pools {
            self.serve_line(io, pool);
        }
        self.world.waiting.lines.retain(|_, line| !line.line.is_empty() || !line.again.is_empty());
        let line_us = (!self.world.waiting.lines.is_empty()).then_some(now_us + LOOK_US);
        let delayed_us = self.world.waiting.delayed.peek().map(|Reverse((until_us, _))| *until_us);
        [line_us, delayed_us].into_iter().flatten().min()
    }

    fn serve_line(&mut self, io: &mut EventLoop, pool: u64) {
        let now = io.clock();
        while let Some(line) = self.world.waiting.lines.get_mut(&pool) {
            let late = line.again.iter().position(|again| again.deadline_ms <= now.now_ms());
            let late = late.map(|at| line.again.remove(at).exchange);
            let Some(key) = late.or_else(|| line.line.expire(now.now_ms())) else { break };
            line.publish(self.world.id);
            line.note_left(self.world.id);
            line.live.counters.of(self.world.id).queue_timeouts.add(1);
            let Some(transaction) = self.exchanges.get_mut(key) else { continue };
            transaction.ends_mut().phase.end_wait();
            self.with_any(io, key, |it, at| it.wait_timed_out(at));
        }
        self.serve_again(io, pool);
        while let Some(line) = self.world.waiting.lines.get_mut(&pool) {
            let PoolLine { live, line: waiters, places, .. } = line;
            let Some(&key) = waiters.first() else { break };
            let Some(ends) = self.exchanges.get_mut(key).map(Transaction::ends_mut) else {
                debug_assert!(false, "an exchange that ends leaves its line");
                line.pop_first(self.world.id);
                continue;
            };
            // Another worker whose first request has waited for about the same time gets one of several free places.
            let (next, after) = places.next(live.waiting_words(), self.world.id);
            let member = match next {
                Turn::Own => ends.tries.pool.occupy(&[], now, ends.tries.preference).map(Some),
                _ => ends.tries.pool.outlook(now).map(|()| None),
            };
            match member {
                Ok(member) => {
                    *places = after;
                    if member.is_none() {
                        break;
                    }
                    let lease = member.map(|member| Lease::of(&ends.tries.pool, member));
                    ends.phase.park(WaitState::Called(lease));
                }
                Err(NoMember::Full) => break,
                // All members are down, so the request is handled like a new one.
                Err(NoMember::Down) => {
                    ends.move_to_fallback(now);
                    ends.phase.park(WaitState::Called(None));
                }
            }
            line.pop_first(self.world.id);
            self.with_any(io, key, |it, at| it.resume(at));
        }
    }

    /// Continues requests that wait for a retry, if other members have places. If one turn cannot check all of them, the
    /// next turn continues after the last one checked.
    fn serve_again(&mut self, io: &mut EventLoop, pool: u64) {
        let now = io.clock();
        let Some(line) = self.world.waiting.lines.get(&pool) else { return };
        let is_one_look = line.again.len() <= AGAIN_LOOKS_MAX;
        let looks = line.again.len().min(AGAIN_LOOKS_MAX);
        let mut at = if is_one_look { 0 } else { line.again_from };
        for _ in 0..looks {
            let Some(line) = self.world.waiting.lines.get_mut(&pool) else { return };
            if at >= line.again.len() {
                at = 0;
            }
            let Some(&WaitingRetry { exchange: key, .. }) = line.again.get(at) else { break };
            let Some(ends) = self.exchanges.get_mut(key).map(Transaction::ends_mut) else {
                debug_assert!(false, "an exchange that ends leaves its line");
                line.again.remove(at);
                line.note_left(self.world.id);
                continue;
            };
            match ends.tries.pool.occupy(ends.tries.tried(), now, ends.tries.preference) {
                Ok(member) => {
                    let lease = Lease::of(&ends.tries.pool, member);
                    ends.phase.park(WaitState::Called(Some(lease)));
                }
                Err(NoMember::Full) => {
                    at += 1;
                    continue;
                }
                Err(NoMember::Down) => ends.phase.park(WaitState::Called(None)),
            }
            line.again.remove(at);
            line.note_left(self.world.id);
            self.with_any(io, key, |it, at| it.resume(at));
        }
        if let Some(line) = self.world.waiting.lines.get_mut(&pool) {
            line.again_from = at;
        }
    }

    /// Moves waiting requests to the pools of the active table.
    pub fn move_waiting(&mut self) {
        if self.world.waiting.lines.is_empty() {
            return;
        }
        // Most that wait have the same pool.
        let mut last: Option<(Rc<LocalPool>, Option<Rc<LocalPool>>)> = None;
        for transaction in self.exchanges.values_mut() {
            if !transaction.ends().phase.wait_state().is_in_queue() {
                continue;
            }
            let pool = &transaction.ends().tries.pool;
            let found = match last.take_if(|(before, _)| Rc::ptr_eq(before, pool)) {
                Some(found) => found,
                None => (Rc::clone(pool), newer_pool(&self.world.table, pool)),
            };
            let (_, newer) = last.insert(found);
            if let Some(newer) = newer {
                transaction.ends_mut().move_to(newer);
            }
        }
    }
}

/// The same pool in a table, if that table has the pool with other settings or other members.
fn newer_pool(table: &LocalTable, pool: &Rc<LocalPool>) -> Option<Rc<LocalPool>> {
    let is_it = |other: &&Rc<PoolInForce>| Arc::ptr_eq(other.live(), &pool.live);
    let newer = table.pools().iter().find(is_it)?.now();
    (!Rc::ptr_eq(&newer, pool)).then_some(newer)
}
