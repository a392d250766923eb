//! Timeouts of both sides of an exchange.

use crate::edge::{Edge, Lag, Side};
use crate::parts::inspection::{ExchangeInspection, InspectionState};
use crate::parts::pace::{Pace, Patience};
use crate::parts::phase::Begun;
use crate::parts::request::Request;
use crate::parts::transaction_ends::TransactionEnds;

/// The grace of a client that has ended its sending side: so long it may wait for a part of its response.
const LEAVING_MS: u64 = 1_000;

// The client.
impl Patience {
    /// Sets the client's deadline for progress. No body of its request is held.
    pub fn await_client(self, at: &mut impl Edge, ends: &mut TransactionEnds) {
        let until_ms = at.turn().now_ms() + self.pace.client_timeout_ms(&ends.server);
        ends.set_client_deadline(at, until_ms);
    }

    /// Sets the client's deadline for progress. The body of its request may be held.
    pub fn await_request(
        self,
        at: &mut impl Edge,
        ends: &mut TransactionEnds,
        inspection: &ExchangeInspection,
    ) {
        let mut until_ms = at.turn().now_ms() + self.pace.client_timeout_ms(&ends.server);
        if let Some(InspectionState::Reading(reading)) = inspection.state() {
            // A held body must be complete at some time, or it would occupy memory forever.
            until_ms = until_ms.min(reading.until_ms);
        }
        ends.set_client_deadline(at, until_ms);
    }

    /// A part of a request has arrived, and more follows. With sparse bodies, this shows that both sides are
    /// alive.
    pub fn await_more_of_request(
        self,
        at: &mut impl Edge,
        ends: &mut TransactionEnds,
        inspection: &ExchangeInspection,
    ) {
        self.await_request(at, ends, inspection);
        if (self.pace, ends.phase.begun()) == (Pace::Sparse, Some(Begun::Sent)) {
            let until_ms = at.turn().now_ms() + self.pace.response_body_timeout_ms(&ends.server);
            ends.set_member_deadline(at, until_ms);
        }
    }

    /// A part of the response was sent: a client that has ended its sending side has its grace anew. If it has closed its
    /// connection, it answers the part with a reset.
    #[inline]
    pub fn watch_leaving_client(self, at: &mut impl Edge, ends: &mut TransactionEnds) {
        if self.is_client_leaving {
            ends.set_client_deadline(at, at.turn().now_ms() + LEAVING_MS);
        }
    }
}

// The member.
impl Patience {
    /// The connection to the member has the whole request: starts the timeout for the response.
    pub fn request_handed_over(
        self,
        at: &mut impl Edge,
        ends: &mut TransactionEnds,
        request: &Request,
    ) {
        let Some(reach) = at.reach(ends, request) else {
            return;
        };
        let times = &mut ends.account.times;
        if request.is_whole() && times.asked_us == 0 && !reach.awaits_settings {
            times.asked_us = at.turn().now_us();
        }
        let is_head_awaited = request.is_whole() && ends.phase.begun().is_none();
        if !is_head_awaited || reach.is_connecting {
            return;
        }
        // While the client does not take interim responses, the member is not read: the client's timeout applies then,
        // not the member's.
        if ends.is_client_holding_up(at) {
            self.await_client(at, ends);
        } else {
            ends.set_member_deadline(at, at.turn().now_ms() + reach.timeout_ms);
        }
    }

    /// Whether the member takes data more slowly than the client sends it. If so, sets the member's deadline. A member that is not
    /// read, because its response waits for a verdict, has none: it may be waiting for weir.
    pub fn is_member_backed_up(self, at: &mut impl Edge, ends: &mut TransactionEnds) -> bool {
        let lag = at.lag(ends, Side::Member);
        let is_paused = ends.phase.begun() == Some(Begun::Judging);
        if matches!(lag, Lag::Behind | Lag::Others) && !is_paused {
            let timeout_ms = self.pace.client_timeout_ms(&ends.server);
            ends.set_member_deadline(at, at.turn().now_ms() + timeout_ms);
        }
        lag != Lag::None
    }

    /// Adapts reading from the member to the speed of the client, and sets deadlines. Returns whether the member may send more.
    pub fn pace_response(
        self,
        at: &mut impl Edge,
        ends: &mut TransactionEnds,
        request: &Request,
    ) -> bool {
        if ends.phase.begun() == Some(Begun::Judging) {
            ends.pause_member(at);
            ends.clear_member_deadline(at);
            return false;
        }
        let until_ms = at.turn().now_ms() + self.pace.response_body_timeout_ms(&ends.server);
        let is_behind = ends.is_client_behind(at);
        if is_behind {
            ends.pause_member(at);
            ends.clear_member_deadline(at);
            self.await_client(at, ends);
        } else {
            if self.pace == Pace::Sparse && !request.is_whole() {
                // With alternating bodies, data in either direction restarts both deadlines.
                self.await_client(at, ends);
            }
            ends.set_member_deadline(at, until_ms);
            self.watch_leaving_client(at, ends);
        }
        !is_behind
    }

    /// The client took everything: resumes reading from the member.
    pub fn client_takes_more(
        self,
        at: &mut impl Edge,
        ends: &mut TransactionEnds,
        request: &Request,
    ) {
        if ends.phase.connection().is_none() {
            return self.watch_leaving_client(at, ends);
        }
        let until_ms = at.turn().now_ms() + self.pace.response_body_timeout_ms(&ends.server);
        let is_responding = ends.phase.begun().is_some();
        if request.is_whole() {
            ends.clear_client_deadline(at);
            self.watch_leaving_client(at, ends);
        } else {
            self.await_client(at, ends);
        }
        if ends.phase.begun() == Some(Begun::Judging) {
            // The verdict resumes the member.
            return;
        }
        ends.resume_member(at);
        if is_responding {
            ends.set_member_deadline(at, until_ms);
        } else {
            // Only interim responses were queued.
            self.request_handed_over(at, ends, request);
        }
    }
}
