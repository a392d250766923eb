//! Selection of a member for a transaction, or its wait in the queue.

use std::rc::Rc;

use weir_config::snapshot::HalfClosed;
use weir_core::clock::Clock;

use crate::edge::Edge;
use crate::local::member::LocalMember;
use crate::local::pool::{LocalPool, NoMember, have_same_labels};
use crate::parts::account::Times;
use crate::parts::attempt::Attempt;
use crate::parts::failure::{Blame, MemberFailure};
use crate::parts::notice::Notice;
use crate::parts::phase::Phase;
use crate::parts::request::{ConnectionNeed, Request};
use crate::parts::transaction_ends::TransactionEnds;
use crate::parts::tries::Lease;
use crate::parts::wait_state::WaitState;
use crate::parts::witness::Step;
use crate::shared::counters::count_status;
use crate::termination::Termination;
use crate::transaction::tracing::note_failed;

/// Minimum response time that is recorded for a failure when members are compared by response time.
const FAILED_US_MIN: u64 = 100_000;

/// The result of a search for a member.
pub enum MemberSearchResult {
    /// The transaction has a member and a connection to it.
    Member,
    /// The transaction waits in the queue.
    Waits,
    /// There is no member.
    Nobody {
        /// Some members are up, but all are at their limit.
        is_full: bool,
    },
}

impl TransactionEnds {
    /// Finds a member and a connection to it.
    pub fn find_member(&mut self, at: &mut impl Edge, need: ConnectionNeed) -> MemberSearchResult {
        let (mut is_full, mut has_failed) = (false, false);
        while self.tries.seek() {
            let is_called = self.follow_pool();
            let pool = Rc::clone(&self.tries.pool);
            let now = at.turn().clock;
            let is_first = self.tries.count == 0;
            let is_behind = is_first && !is_called && pool.must_queue();
            let leased = |member| Lease::of(&pool, member);
            let occupied = match self.phase.take_place() {
                Some(lease) => Ok(lease),
                // Requests in the queue do not wait for a drained member, which serves only its persistent clients.
                None if is_behind => pool
                    .occupy_drained(self.tries.preference, now)
                    .ok_or(NoMember::Full)
                    .map(leased),
                None => pool.occupy(self.tries.tried(), now, self.tries.preference).map(leased),
            };
            let lease = match occupied {
                Ok(lease) => lease,
                Err(reason) => {
                    is_full = reason == NoMember::Full;
                    // A request that was sent to a member can only wait if it is still stored completely.
                    let may_wait =
                        is_first || !need.is_sent || (need.is_replayable && need.is_whole);
                    if is_full
                        && may_wait
                        && !self.tries.never_waits
                        && at.enqueue(self, need.is_sent)
                    {
                        return MemberSearchResult::Waits;
                    }
                    break;
                }
            };
            if has_failed && !pool.may_retry(at.turn().now_ms()) {
                break;
            }
            debug_assert!(is_called || pool.newer().is_none(), "the pool has other members now");
            let member = lease.member;
            self.note_member(member, now.now_ms());
            if self.tries.count == 0 {
                self.account.tried_us = now.now_us();
            } else {
                self.account.retries += 1;
                self.tries.count_retry();
            }
            self.tries.note(member);
            self.phase = Phase::Asked(Attempt::at(lease), None);
            self.account.times = Times::begin(now.now_us());
            let local = &pool.members[member as usize];
            self.account.last_member = Some(Rc::clone(local));
            local.counters.requests_active.add(1);
            match at.connect(self, member, need, false) {
                Ok(()) => return MemberSearchResult::Member,
                Err(reason) => {
                    note_failed(self, at, reason, false);
                    self.release_member(at, Some(reason));
                    self.tries.failure = Some(reason);
                    if reason == MemberFailure::NoSocket {
                        break;
                    }
                    has_failed = true;
                }
            }
        }
        MemberSearchResult::Nobody { is_full }
    }

    /// The status and termination reason of a transaction without a member.
    pub fn why_nobody(&self) -> (u16, Termination) {
        match self.tries.failure {
            Some(reason) => (reason.status(), reason.termination()),
            None => {
                self.tries.pool.counters.no_member.add(1);
                (503, Termination::NoMember)
            }
        }
    }

    /// Releases the member of this transaction, if it has one. `failure`: counts as a failure of the member.
    pub fn release_member(&mut self, at: &mut impl Edge, failure: Option<MemberFailure>) {
        let Some(Attempt { lease, link, .. }) = self.phase.leave() else {
            return;
        };
        debug_assert!(link.is_none(), "its connection was released or lost");
        let (pool, member) = (&lease.pool, lease.member);
        let LocalMember { live, counters, .. } = &*pool.members[member as usize];
        counters.requests_active.subtract(1);
        let Some(why) = failure else { return };
        at.note(Step::Failed { ends: self, member, why });
        if !why.is_of_member() {
            return pool.counters.unconnected.add(1);
        }
        match why {
            MemberFailure::Connect | MemberFailure::ConnectTimeout => {
                counters.connect_failures.add(1);
            }
            _ => counters.response_failures.add(1),
        }
        if pool.is_timed() {
            let now_ms = at.turn().now_ms();
            // A fast failure must not make the member look fast.
            let elapsed_us =
                (now_ms * 1_000).saturating_sub(self.account.times.try_us).max(FAILED_US_MIN);
            live.note_response_time(now_ms, elapsed_us, true);
        }
        mark_failure(at, pool, member, Blame::Failure(why));
    }

    /// Turns to the members that the pool has now, if others have come into force while the transaction waited or tried a member. Returns
    /// whether it has been called: then it keeps those of that moment, to which its place belongs.
    fn follow_pool(&mut self) -> bool {
        let is_called = matches!(self.phase, Phase::Before(WaitState::Called(_)));
        if !is_called && let Some(newer) = self.tries.pool.newer() {
            self.move_to(&newer);
        }
        is_called
    }

    /// The head of the response to this request has arrived: records the times and drops the stored request. `is_failure`: the
    /// status counts as a failure of the member.
    #[inline]
    pub fn response_began(
        &mut self,
        at: &mut impl Edge,
        request: &mut Request,
        status: u16,
        is_failure: bool,
    ) {
        let now_us = at.turn().now_us();
        self.account.times.note_first_byte(now_us);
        self.account.status = status;
        at.recycle(std::mem::take(&mut request.bytes));
        request.let_go();
        self.note_response(at, status, is_failure);
    }

    /// Records the status of a member's response as its success or failure.
    #[inline]
    pub fn note_response(&self, at: &mut impl Edge, status: u16, is_failure: bool) {
        let Some(member) = self.phase.member() else {
            return;
        };
        let times = self.account.times;
        let (now_us, first_byte_us) = (at.turn().now_us(), times.first_byte_us);
        let pool = &self.tries.pool;
        let local = &pool.members[member as usize];
        let (live, counters) = (&local.live, &local.counters);
        count_status!(counters, status);
        let duration_us = first_byte_us.saturating_sub(times.connected_us);
        pool.counters.count_response_time(member, duration_us);
        // The response time begins when the member has the whole request: a slow client must not count.
        if pool.is_timed() && times.asked_us != 0 {
            let from_us = times.asked_us.max(times.connected_us);
            let own_us = first_byte_us.saturating_sub(from_us);
            live.note_response_time(now_us / 1_000, own_us, is_failure);
        }
        if is_failure {
            mark_failure(at, pool, member, Blame::Status(status));
        } else {
            live.mark_success(now_us / 1_000);
        }
    }

    /// Moves a waiting transaction to the same pool of a new table or with other members, if that pool is compatible. Members
    /// are found by their labels. Persistence is kept, but not over a new table in which the list of members is another.
    pub fn move_to(&mut self, pool: &Rc<LocalPool>) {
        if !is_written_alike(&self.tries.pool, pool) {
            return;
        }
        let before = std::mem::replace(&mut self.tries.pool, Rc::clone(pool));
        if have_same_labels(&before, pool) {
            return;
        }
        let moved = |member: u32| pool.member(&before.members[member as usize].live.label);
        self.tries.renumber(moved);
        let Some(context) = &mut self.context else { return };
        let Some(stickiness) = &mut context.stickiness else { return };
        let traffic = self.server.traffic.as_ref();
        match traffic.and_then(|traffic| traffic.sticky_now(stickiness.persistence, pool)) {
            Some(sticky) => stickiness.renumber(sticky, moved),
            None => context.stickiness = None,
        }
    }

    /// No member of the pool is up: moves to the pool's fallback, if it has one. Nothing of the request was sent yet.
    pub fn move_to_fallback(&mut self, now: Clock) {
        let traffic = self.server.traffic.as_ref();
        let pool = traffic.and_then(|traffic| traffic.instead_of(&self.tries.pool, now));
        if let Some(pool) = pool {
            self.tries.begin_anew(&pool);
            if let Some(context) = &mut self.context {
                context.stickiness = None;
            }
        }
    }

    /// Whether to leave the queue because the client has ended its sending side and the pool's queue excludes such
    /// clients.
    pub fn gives_up_its_place(&self) -> bool {
        self.half_closed_in_queue() == Some(HalfClosed::Leave)
    }

    /// The queue's own treatment of clients that have ended their sending side, while the request waits there.
    pub fn half_closed_in_queue(&self) -> Option<HalfClosed> {
        let queue =
            self.tries.pool.settings().queue.filter(|_| self.phase.wait_state().is_in_queue());
        queue.and_then(|queue| queue.half_closed)
    }

    /// Records the selected member for persistence.
    #[inline]
    pub fn note_member(&self, member: u32, now_ms: u64) {
        let stickiness = self.context.as_ref().and_then(|context| context.stickiness.as_ref());
        if let Some(stickiness) = stickiness {
            stickiness.note_member(member, now_ms);
        }
    }
}

/// Whether a waiting transaction can move from one pool to the other: its request was already written in the forms of the first.
pub(super) fn is_written_alike(one: &LocalPool, other: &LocalPool) -> bool {
    one.forms == other.forms && one.settings().http2 == other.settings().http2
}

/// Passive health check: records a failed request, and reports the member's ejection if that follows.
pub fn mark_failure(at: &mut impl Edge, pool: &LocalPool, member: u32, why: Blame) {
    if let Some(until_ms) = pool.mark_failure(member, at.turn().now_ms()) {
        let member = &pool.members[member as usize];
        member.live.note_ejection(why.to_bits());
        at.tell(Notice::Ejected { pool, member, until_ms, why });
    }
}
