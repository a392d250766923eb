//! Waiting requests: in the queue for a member, or in the delay of a rate limit.
//!
//! A worker checks its queues at the end of each turn of its loop, as long as requests wait. It also wakes up for that from time to
//! time, which finds places that other workers have freed.

use weir_config::snapshot::HalfClosed;
use weir_event_loop::EventLoop;
use weir_exchange::parts::transaction_ends::TransactionEnds;

use super::agenda::Task;
use super::edge::WorkerEdge;
use super::router::Router;
use crate::worker::state::waiting_requests::newer_pool;

impl WorkerEdge<'_> {
    /// Adds a request to the queue of its pool. False: there is no queue, it is full, or it excludes this client.
    pub fn join_line(&mut self, ends: &mut TransactionEnds, is_sent: bool) -> bool {
        if let Some(newer) = newer_pool(&self.world.table, &ends.tries.pool) {
            ends.move_to(&newer);
        }
        let half_closed = ends.tries.pool.settings().queue.and_then(|queue| queue.half_closed);
        let client = self.world.clients.all.find(ends.caller.client());
        if half_closed == Some(HalfClosed::Leave) && client.is_some_and(|client| client.ended) {
            return false;
        }
        if !self.world.waiting.join(ends, is_sent, self.io.now_ms()) {
            return false;
        }
        self.world.agenda.add_once(Task::ServeWaiting);
        self.world.clients.set_due(self.io, ends, None);
        true
    }
}

impl Router {
    /// Continues requests that get a place at a member, and requests whose time is over.
    pub fn serve_waiting(&mut self, io: &mut EventLoop) {
        let now = io.clock();
        while let Some(key) = self.world.waiting.next_delayed(now.now_us()) {
            self.with_any(io, key, |it, at| it.resume(at));
        }
        for pool in self.world.waiting.pools() {
            while let Some(key) = self.world.waiting.next_late(pool, now.now_ms()) {
                self.with_any(io, key, |it, at| {
                    it.ends_mut().phase.end_wait();
                    it.wait_timed_out(at);
                });
            }
            let mut check = self.world.waiting.begin_retries(pool);
            let (waiting, exchanges) = (&mut self.world.waiting, &mut self.exchanges);
            let mut next = waiting.next_retry(pool, &mut check, exchanges, now);
            while let Some(key) = next {
                self.with_any(io, key, |it, at| it.resume(at));
                let (waiting, exchanges) = (&mut self.world.waiting, &mut self.exchanges);
                next = waiting.next_retry(pool, &mut check, exchanges, now);
            }
            while let Some(key) = self.world.waiting.next_in_line(pool, &mut self.exchanges, now) {
                self.with_any(io, key, |it, at| it.resume(at));
            }
        }
        if self.world.waiting.end_check() {
            self.world.agenda.add_once(Task::ServeWaiting);
        }
    }
}
