//! Failed member streams, and timeouts of the client.

use weir_config::snapshot::HalfClosed;
use weir_http::message::Framing;

use crate::edge::{Edge, Lag, Release, Side};
use crate::parts::failure::{Loss, MemberFailure, Progress};
use crate::parts::notice::Notice;
use crate::parts::phase::Begun;
use crate::parts::transaction_ends::{NextClientState, TransactionEnds};
use crate::termination::Termination;
use crate::transaction::exchange::{Exchange, is_held_up};

impl TransactionEnds {
    /// The stream of an exchange has failed: releases it. If the member has not read the request, this is not its failure: once, the
    /// request uses another connection to it, as after a stale one.
    pub fn lose_stream(
        &mut self,
        at: &mut impl Edge,
        why: MemberFailure,
        progress: Progress,
    ) -> Loss {
        let is_unread = matches!(progress, Progress::Unread | Progress::Unsettled);
        if is_unread && let Some(attempt) = self.phase.attempt_mut() {
            // A connection whose SETTINGS are late was not stale, even if it was there before.
            attempt.may_be_stale = progress == Progress::Unread
                && !std::mem::replace(&mut self.tries.was_unread, true);
        }
        let was_opened = at.release(self, Release::Drop);
        let nothing_sent = is_unread || !was_opened;
        let is_whole = progress == Progress::Whole;
        Loss { nothing_sent, is_whole, ..Loss::of(why) }
    }
}

impl Exchange {
    /// The member does not support extended CONNECT. This is not a failure of the member, and no other is tried:
    /// members of a pool are alike, and tries would use up the retry budget.
    pub fn refuse_tunnel(&mut self, at: &mut impl Edge) {
        if let Some(member) = &self.ends.account.last_member {
            at.tell(Notice::NoTunnel(member));
        }
        self.respond(at, 502, Termination::MemberConnect);
    }

    /// The client has ended its sending side; its connection is not shared. If the request is complete, the client may still
    /// wait for the response.
    pub fn client_finished(&mut self, at: &mut impl Edge) {
        if !self.request.is_whole() {
            // A truncated message must not look complete to anyone.
            self.respond(at, 400, Termination::ClientAbort);
        } else if self.ends.gives_up_its_place() {
            self.abandon(at, Termination::ClientAbort, NextClientState::Gone { must_reset: false });
        } else if self.ends.server.http.half_closed == HalfClosed::Leave {
            self.patience.is_client_leaving = true;
            self.patience.watch_leaving_client(at, &mut self.ends);
        }
    }

    /// The client was too slow: to take data, or to send it.
    pub fn client_timed_out(&mut self, at: &mut impl Edge) {
        if at.lag(&self.ends, Side::Client) == Lag::Behind {
            let timeout_ms = self.patience.pace.client_timeout_ms(&self.ends.server);
            let until_ms = at.patience_until_ms(&self.ends, Side::Client, timeout_ms);
            if until_ms > at.turn().now_ms() {
                return self.ends.set_client_deadline(at, until_ms);
            }
            self.ends.server.counters.body_timeouts.add(1);
            return self.abandon(
                at,
                Termination::ClientTimeout,
                NextClientState::Gone { must_reset: true },
            );
        }
        if self.patience.is_client_leaving {
            if self.ends.half_closed_in_queue() == Some(HalfClosed::Wait) {
                return self.patience.watch_leaving_client(at, &mut self.ends);
            }
            return self.abandon(
                at,
                Termination::ClientAbort,
                NextClientState::Gone { must_reset: false },
            );
        }
        // While its body waits for a verdict, the client is not to blame; the deadline is set again behind that.
        let is_awaited = !self.request.is_whole() && !self.request.is_cut() && !is_held_up(self);
        if is_awaited && !self.patience.is_member_backed_up(at, &mut self.ends) {
            if self.ends.is_over() {
                return;
            }
            self.ends.server.counters.body_timeouts.add(1);
            self.respond(at, 408, Termination::ClientTimeout);
        }
    }
}

/// Whether the response is whole with its head: it has no body, and no stream that frames it.
pub fn is_whole_with_its_head(exchange: &Exchange) -> bool {
    let framing = match exchange.ends.phase.begun() {
        Some(Begun::Sent) => Some(exchange.response_framing),
        Some(Begun::Judging) => exchange.inspection.response().map(|it| it.head.framing),
        Some(Begun::Held) | None => None,
    };
    framing.is_some_and(Framing::is_empty) && exchange.ends.caller.stream().is_none()
}

/// Whether the response that was begun is whole with its last byte, whatever its trailers say: its client uses HTTP/1, and
/// knows the length.
pub fn is_whole_without_trailers(exchange: &Exchange) -> bool {
    let is_counted = matches!(exchange.response_framing, Framing::None | Framing::Length(_));
    exchange.ends.phase.begun() == Some(Begun::Sent)
        && exchange.ends.caller.stream().is_none()
        && is_counted
}
