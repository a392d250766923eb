//! Retry by status (`retry_on`): the response is dropped, and another member gets the request.

use std::rc::Rc;

use weir_http::message::ResponseHead;

use crate::edge::{Edge, Release};
use crate::parts::tries::Lease;
use crate::parts::wait_state::WaitState;
use crate::transaction::exchange::Exchange;
use crate::transaction::response_data::is_all;
use crate::transaction::tracing::{begin_attempt_span, note_repeated};

/// Retries on another member after this response, if the pool's settings, the request and the members permit it.
/// Returns whether it does.
pub fn repeat(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    head: &ResponseHead,
    body: &[u8],
) -> bool {
    let pool = Rc::clone(&exchange.ends.tries.pool);
    let retries = &pool.settings().retries;
    if !retries.on.contains(&head.status) || !may_repeat(exchange, retries.non_idempotent) {
        return false;
    }
    let clock = at.turn().clock;
    // A place counts for the member's rate and may be its trial request, so it is taken only if the retry is permitted.
    if !pool.has_retry(clock.now_ms()) {
        return false;
    }
    // If no retry is possible, the client gets the response, which contains more information than weir's own.
    let tries = &exchange.ends.tries;
    let Ok(member) = pool.occupy(tries.tried(), clock, tries.preference) else { return false };
    let lease = Lease::of(&pool, member);
    // The budget counts only retries that take place.
    if !pool.may_retry(clock.now_ms()) {
        return false;
    }
    exchange.ends.account.times.note_first_byte(clock.now_us());
    exchange.ends.note_response(at, head.status, head.status >= 500);
    // Other failures are counted where the next member is found.
    if head.status >= 500 && exchange.ends.tries.failure.is_none() {
        pool.counters.failures_retried.add(1);
    }
    note_repeated(&mut exchange.ends, at, head.status);
    begin_attempt_span(exchange.ends.context.as_deref_mut(), at, &mut exchange.request);
    let is_kept = is_all(head.framing, body) && exchange.request.is_whole();
    at.release(&mut exchange.ends, if is_kept { Release::Keep } else { Release::Drop });
    exchange.ends.release_member(at, None);
    exchange.ends.account.times.first_byte_us = 0;
    exchange.ends.phase.park(WaitState::Called(Some(lease)));
    if exchange.dispatch(at) {
        exchange.resend(at, &[]);
    }
    true
}

/// Whether the request can be sent again, and no part of a response was sent. After an interim response, the request is
/// no longer stored.
fn may_repeat(exchange: &Exchange, non_idempotent: bool) -> bool {
    let request = &exchange.request;
    exchange.ends.phase.begun().is_none()
        && request.is_replayable()
        && !request.is_cut()
        && (request.method.is_idempotent() || non_idempotent)
        && exchange.ends.tries.left() > 0
}
