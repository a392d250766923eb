//! Attempts at members: the first one, and what follows when one is lost.

use weir_config::snapshot::Maintenance;
use weir_core::retry::{FailedAttempt, SendProgress, may_retry};
use weir_http::edits::FieldEdits;

use crate::edge::Edge;
use crate::parts::end::End;
use crate::parts::failure::{Loss, MemberFailure};
use crate::parts::phase::Begun;
use crate::parts::pieces::Pieces;
use crate::parts::request::Request;
use crate::parts::transaction_ends::TransactionEnds;
use crate::parts::weir_response::{ExchangeEnd, WeirResponse};
use crate::termination::Termination;
use crate::transaction::exchange::Exchange;
use crate::transaction::lost_streams::is_whole_with_its_head;
use crate::transaction::member_search::MemberSearchResult;
use crate::transaction::response_data::ForwardResult;
use crate::transaction::tracing::{begin_attempt_span, note_failed};

/// The status of a maintenance redirect: 302, temporary (RFC 9110 section 15.4.3).
const MAINTENANCE_REDIRECT: u16 = 302;

impl Exchange {
    /// Finds a member and a connection to it. Returns false if the exchange waits for a member, or has ended because no
    /// member is available.
    pub fn dispatch(&mut self, at: &mut impl Edge) -> bool {
        let need = self.request.need();
        let is_full = match self.ends.find_member(at, need) {
            MemberSearchResult::Member => {
                if self.filters.codings.is_some() {
                    self.filters.limit_reads(at, &mut self.ends);
                }
                return true;
            }
            MemberSearchResult::Waits => {
                // Its client has no deadline in the queue, unless it has left.
                self.patience.watch_leaving_client(at, &mut self.ends);
                return false;
            }
            MemberSearchResult::Nobody { is_full } => is_full,
        };
        let response = response_without_member(&self.ends, is_full);
        self.end_with(at, ExchangeEnd::Response(response));
        false
    }

    /// The member connection has failed and was closed: retries the request, or reports the failure to the client.
    pub fn member_lost(&mut self, at: &mut impl Edge, loss: Loss) {
        let Loss { reason, nothing_sent, unsent, is_counted, is_whole } = loss;
        self.ends.phase.take_link();
        self.ends.tries.failure = Some(reason);
        match self.ends.phase.begun() {
            None => {}
            Some(_) if is_whole || is_whole_with_its_head(self) => {
                // What the length says is whole is whole, so the client's connection goes on as after any response.
                note_failed(&mut self.ends, at, reason, true);
                let (nothing, rest) = (at.tools().scratch.take(), (&b""[..], &Pieces::part(0)));
                if self.send_response(at, nothing, rest, End::Data) == ForwardResult::Over {
                    return;
                }
                self.ends.release_member(at, None);
                self.ends.phase.deliver(reason.termination());
                return self.complete(at, reason.termination());
            }
            Some(Begun::Held | Begun::Judging) => {
                note_failed(&mut self.ends, at, reason, true);
                self.ends.release_member(at, Some(reason));
                return self.respond(at, reason.status(), reason.termination());
            }
            Some(Begun::Sent) => {
                note_failed(&mut self.ends, at, reason, true);
                self.ends.release_member(at, Some(reason));
                return self.truncate(at, reason.termination());
            }
        }
        self.ends.account.times.first_byte_us = 0;
        let attempt = failed_attempt(&self.ends, &self.request, nothing_sent);
        // A kept connection that closes says nothing about its member. So the request is sent to the same member on a
        // new connection; this counts neither as a try of another member nor against the retry budget.
        let stale = attempt.reused_connection && reason == MemberFailure::Abort;
        let repeat = reason != MemberFailure::Timeout
            && reason != MemberFailure::Malformed
            && (self.request.is_replayable() || !unsent.is_empty())
            && may_retry(&attempt)
            && (stale || self.ends.tries.pool.may_retry(at.turn().now_ms()));
        if stale && repeat {
            return self.retry_stale(at, unsent);
        }
        note_failed(&mut self.ends, at, reason, !nothing_sent);
        let is_blamed = !stale && !is_counted;
        self.ends.release_member(at, is_blamed.then_some(reason));
        if !repeat {
            return self.respond(at, reason.status(), reason.termination());
        }
        if self.ends.is_over() {
            return;
        }
        if !nothing_sent {
            begin_attempt_span(self.ends.context.as_deref_mut(), at, &mut self.request);
        }
        if self.dispatch(at) {
            self.resend(at, &unsent);
        }
    }

    /// Sends the request again on a new connection to the same member. Other requests of the failed connection share
    /// the new one.
    fn retry_stale(&mut self, at: &mut impl Edge, unsent: Vec<u8>) {
        let Some(member) = self.ends.phase.member() else {
            return;
        };
        self.ends.account.retries += 1;
        self.ends.tries.pool.counters.retries.add(1);
        match at.connect(&mut self.ends, member, self.request.need(), true) {
            Ok(()) => {
                self.filters.limit_reads(at, &mut self.ends);
                self.resend(at, &unsent);
            }
            Err(reason) => {
                note_failed(&mut self.ends, at, reason, true);
                self.ends.release_member(at, Some(reason));
                if self.ends.is_over() {
                    return;
                }
                begin_attempt_span(self.ends.context.as_deref_mut(), at, &mut self.request);
                self.ends.tries.failure = Some(reason);
                if !self.ends.tries.pool.may_retry(at.turn().now_ms()) {
                    return self.respond(at, reason.status(), reason.termination());
                }
                if self.dispatch(at) {
                    self.resend(at, &unsent);
                }
            }
        }
    }

    /// Sends the request on a new connection: `unsent` (the data that was queued for the old connection), or all of it.
    pub fn resend(&mut self, at: &mut impl Edge, unsent: &[u8]) {
        if self.ends.phase.connection().is_none() {
            return;
        }
        at.ask_again(&mut self.ends, &mut self.request, unsent);
        self.patience.request_handed_over(at, &mut self.ends, &self.request);
        // The client may have been paused because the old connection was slow.
        if self.request.is_whole() {
            if !self.ends.is_over() && !self.patience.is_member_backed_up(at, &mut self.ends) {
                self.ends.give_window(at);
            }
        } else if !self.patience.is_member_backed_up(at, &mut self.ends) {
            self.request_goes_on(at);
        }
    }
}

/// The attempt whose connection was lost.
fn failed_attempt(ends: &TransactionEnds, request: &Request, nothing_sent: bool) -> FailedAttempt {
    let attempt = ends.phase.attempt();
    FailedAttempt {
        idempotent: request.method.is_idempotent(),
        sent: match (nothing_sent, request.is_replayable()) {
            (true, _) => SendProgress::Nothing,
            (false, true) => SendProgress::Replayable,
            (false, false) => SendProgress::Consumed,
        },
        response_started: attempt.is_some_and(|attempt| attempt.response_seen),
        reused_connection: attempt.is_some_and(|attempt| attempt.may_be_stale),
        tries_left: ends.tries.left(),
    }
}

/// The response to a request for which there is no member. `is_full`: some members are up, but all are at their limit.
fn response_without_member(ends: &TransactionEnds, is_full: bool) -> WeirResponse<'static> {
    let (status, termination) = ends.why_nobody();
    let instead = ends.tries.pool.settings().instead.maintenance.clone();
    match instead.filter(|_| termination == Termination::NoMember && !is_full) {
        Some(Maintenance::Page(page)) => {
            WeirResponse::with_page(status, termination, page, FieldEdits::default())
        }
        Some(Maintenance::Redirect(to)) => {
            let mut fields = FieldEdits::default();
            fields.add(b"Location", |out| out.extend_from_slice(&to));
            WeirResponse::with_fields(&ends.server, MAINTENANCE_REDIRECT, termination, fields)
        }
        None => WeirResponse::new(&ends.server, status, termination),
    }
}
