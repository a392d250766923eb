//! The queue of a pool, in which one transaction may wait, and other requests that occupy places at the members.

use std::rc::Rc;

use weir_config::snapshot::HalfClosed;
use weir_core::clock::Clock;
use weir_core::queue::Line;
use weir_exchange::arena::ExchangeKey;
use weir_exchange::local::pool::{LocalPool, Preference};
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::parts::tries::Lease;
use weir_exchange::parts::wait_state::WaitState;

/// The waiting transaction, and the occupied places.
#[derive(Default)]
pub struct Queue {
    /// The queue.
    line: Option<Line<ExchangeKey>>,
    /// The transaction that waits outside the queue for a retry, and its deadline.
    beside: Option<(ExchangeKey, u64)>,
    /// The places occupied by other requests.
    others: Vec<Lease>,
}

impl Queue {
    /// Lets other requests occupy all places of this pool.
    pub fn fill(&mut self, pool: &Rc<LocalPool>, now: Clock) {
        while self.others.len() < 8
            && let Ok(member) = pool.occupy(&[], now, Preference::Any)
        {
            self.others.push(Lease::of(pool, member));
        }
    }

    /// The number of places occupied by other requests.
    pub fn others(&self) -> usize {
        self.others.len()
    }

    /// Ends another request, which frees its place.
    pub fn free(&mut self) {
        self.others.pop();
    }

    /// Whether a transaction waits.
    pub fn is_empty(&self) -> bool {
        self.line.as_ref().is_none_or(Line::is_empty) && self.beside.is_none()
    }

    /// The time until which the transaction waits.
    pub fn due_ms(&self) -> Option<u64> {
        let in_line = self.line.as_ref().and_then(Line::next_deadline_ms);
        in_line.or(self.beside.map(|(_, until_ms)| until_ms))
    }

    /// Adds a transaction to the queue. False: it cannot wait.
    pub fn join(
        &mut self,
        ends: &mut TransactionEnds,
        is_sent: bool,
        has_client_ended: bool,
        now_ms: u64,
    ) -> bool {
        let pool = Rc::clone(&ends.tries.pool);
        let Some(settings) = pool.settings().queue else { return false };
        if settings.half_closed == Some(HalfClosed::Leave) && has_client_ended {
            return false;
        }
        assert!(self.is_empty(), "it waits already");
        if ends.tries.tried().is_empty() && !is_sent {
            let line = self.line.get_or_insert_with(|| Line::new(4));
            let Ok(ticket) = line.push(ends.key, now_ms, settings.timeout_ms) else { return false };
            ends.phase.park(WaitState::InLine(ticket));
        } else {
            self.beside = Some((ends.key, now_ms + settings.timeout_ms));
            ends.phase.park(WaitState::Beside);
        }
        self.publish(&pool);
        true
    }

    /// Removes a transaction that ends.
    pub fn leave(&mut self, pool: &LocalPool, wait_state: &WaitState) {
        match (wait_state, &mut self.line) {
            (WaitState::InLine(ticket), Some(line)) => {
                assert!(line.cancel(*ticket).is_some(), "its ticket")
            }
            (WaitState::Beside, _) => {
                assert!(self.beside.take().is_some(), "its place beside the line")
            }
            _ => {}
        }
        self.publish(pool);
    }

    /// Removes the transaction, because it gets a place or its timeout has expired.
    pub fn take_out(&mut self, pool: &LocalPool) {
        if self.beside.take().is_none() {
            let first = self.line.as_mut().and_then(Line::pop);
            assert!(first.is_some(), "somebody waits");
        }
        self.publish(pool);
    }

    fn publish(&self, pool: &LocalPool) {
        let since_ms = self.line.as_ref().map_or(0, Line::waiting_since_ms);
        pool.live.waiting_since_ms[0].store(since_ms, std::sync::atomic::Ordering::SeqCst);
    }
}
