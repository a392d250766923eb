//! Retry by status (`retry_on`): the response is dropped, and another member gets the request.

use std::borrow::Cow;
use std::rc::Rc;

use weir_core::clock::Clock;
use weir_http::message::ResponseHead;

use crate::edge::{Edge, Release};
use crate::local::pool::LocalPool;
use crate::parts::request::Request;
use crate::parts::transaction_ends::TransactionEnds;
use crate::parts::tries::Lease;
use crate::parts::wait_state::WaitState;
use crate::transaction::member_search::is_written_alike;
use crate::transaction::response_data::is_all;
use crate::transaction::tracing::{begin_attempt_span, note_repeated};

/// Whether the request is retried on another member after this response: if the pool's settings, the request and the members permit
/// it. Then the response is dropped, and a place at the other member is reserved.
#[cold]
#[inline(never)]
pub fn repeats(
    ends: &mut TransactionEnds,
    at: &mut impl Edge,
    request: &mut Request,
    (head, body): (&ResponseHead, &[u8]),
) -> bool {
    let pool = pool_now(&ends.tries.pool);
    let retries = &pool.settings().retries;
    if !retries.on.contains(&head.status) || !may_repeat(ends, request, retries.non_idempotent) {
        return false;
    }
    let clock = at.turn().clock;
    // A place counts for the member's rate and may be its trial request, so it is taken only if the retry is permitted.
    if !pool.has_retry(clock.now_ms()) {
        return false;
    }
    // If no retry is possible, the client gets the response, which contains more information than weir's own.
    let Some(lease) = occupy_another(ends, &pool, clock) else { return false };
    // The budget counts only retries that take place.
    if !pool.may_retry(clock.now_ms()) {
        return false;
    }
    ends.account.times.note_first_byte(clock.now_us());
    ends.note_response(at, head.status, head.status >= 500);
    // Other failures are counted where the next member is found.
    if head.status >= 500 && ends.tries.failure.is_none() {
        pool.counters.failures_retried.add(1);
    }
    note_repeated(ends, at, head.status);
    begin_attempt_span(ends.context.as_deref_mut(), at, request);
    let is_kept = is_all(head.framing, body) && request.is_whole();
    at.release(ends, if is_kept { Release::Keep } else { Release::Drop });
    ends.release_member(at, None);
    ends.account.times.first_byte_us = 0;
    // The members are numbered anew only now: until here, the number of the one that has responded was needed.
    ends.move_to(&pool);
    ends.phase.park(WaitState::Called(Some(lease)));
    true
}

/// The view of a pool that is in force: members may have changed while this one responded.
fn pool_now(pool: &Rc<LocalPool>) -> Rc<LocalPool> {
    let newer = pool.newer().filter(|newer| is_written_alike(pool, newer));
    newer.unwrap_or_else(|| Rc::clone(pool))
}

/// Takes a place at a member of `pool` that was not tried. `pool` may be newer than the view to which the numbers of the tried
/// members belong.
fn occupy_another(ends: &TransactionEnds, pool: &Rc<LocalPool>, clock: Clock) -> Option<Lease> {
    let tries = &ends.tries;
    let (tried, preference) = match Rc::ptr_eq(pool, &tries.pool) {
        true => (Cow::Borrowed(tries.tried()), tries.preference),
        false => {
            let (tried, preference) = tries.in_view(pool);
            (Cow::Owned(tried), preference)
        }
    };
    let member = pool.occupy(&tried, clock, preference).ok()?;
    Some(Lease::of(pool, member))
}

/// Whether the request can be sent again, and no part of a response was sent. After an interim response, the request is
/// no longer stored.
fn may_repeat(ends: &TransactionEnds, request: &Request, non_idempotent: bool) -> bool {
    ends.phase.begun().is_none()
        && request.is_replayable()
        && !request.is_cut()
        && (request.method.is_idempotent() || non_idempotent)
        && ends.tries.left() > 0
}
