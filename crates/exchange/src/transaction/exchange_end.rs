//! The end of an exchange: with the member's response, with a response of weir's own, or without a response.

use std::rc::Rc;

use weir_core::policy::Decision;
use weir_http::edits::FieldEdits;
use weir_http::message::{Framing, Method};

use crate::edge::{Edge, Release};
use crate::parts::caller::Caller;
use crate::parts::messages::OwnAnswer;
use crate::parts::phase::{Begun, Phase, RestOfResponse};
use crate::parts::stream_end::StreamEnd;
use crate::parts::transaction_ends::{KeepAliveFacts, NextClientState};
use crate::parts::weir_response::{ExchangeEnd, WeirResponse};
use crate::shared::counters::count_status;
use crate::termination::Termination;
use crate::transaction::exchange::Exchange;
use crate::transaction::policy::keep_cookies;
use crate::transaction::stages::unawaited_ended;

impl Exchange {
    /// Answers in place of a member, with the virtual server's page for the status if it has one; ends
    /// the exchange.
    pub fn respond(&mut self, at: &mut impl Edge, status: u16, termination: Termination) {
        let response = WeirResponse::new(&self.ends.server, status, termination);
        self.end_with(at, ExchangeEnd::Response(response));
    }

    /// Ends the exchange without the response of a member.
    pub fn end_with(&mut self, at: &mut impl Edge, end: ExchangeEnd<'_>) {
        if matches!(end, ExchangeEnd::Cut { .. }) && self.ends.phase.begun() != Some(Begun::Sent) {
            // The client gets nothing, whatever its member has answered.
            self.ends.account.status = 0;
        }
        self.ends.drop_member(at);
        let response = match end {
            ExchangeEnd::Response(response) => response,
            ExchangeEnd::Cut { termination, must_reset } => {
                return self.end(at, termination, NextClientState::Cut { termination, must_reset });
            }
        };
        let (termination, is_meant) = (response.termination, response.is_meant);
        if self.reply.is_some() {
            return self.end(at, termination, NextClientState::Subrequest);
        }
        self.inspection.leave(at, &self.ends.server);
        self.ends.phase.drop_held();
        if self.ends.phase.begun().is_some() {
            return self.truncate(at, termination);
        }
        let mut edits = std::mem::take(&mut at.tools().response_edits);
        let mut head = at.tools().own_head.take().unwrap_or_default();
        head.clear();
        head.status = response.status;
        let codings = &mut self.filters.codings;
        let answer = self.ends.edit_response(at, codings, (&head, b""), &mut edits);
        at.tools().own_head = Some(head);
        match answer {
            Some(decision) => self.send_decided(at, decision, termination, edits),
            None => self.send_own(at, response, edits),
        }
        if is_meant && self.ends.account.status >= 500 {
            self.ends.server.counters.responses_5xx_meant.add(1);
        }
    }

    /// Sends the answer of a rule that replaces a response, and ends the exchange. Rules do not run again.
    pub fn send_decided(
        &mut self,
        at: &mut impl Edge,
        mut decision: Box<Decision>,
        termination: Termination,
        edits: FieldEdits,
    ) {
        let server = Rc::clone(&self.ends.server);
        server.counters.responses_replaced.add(1);
        if let Some(response) = WeirResponse::decided(&server, &mut decision, termination) {
            self.send_own(at, response, edits);
        }
        decision.clear();
        at.tools().response_decision = Some(decision);
    }

    /// Sends a response of weir's own with these changes, and ends the exchange.
    fn send_own(&mut self, at: &mut impl Edge, response: WeirResponse<'_>, mut edits: FieldEdits) {
        let WeirResponse { status, termination, fields, body, .. } = response;
        // weir does not wait for the rest of a request body: it may be long and is not needed.
        let may_go_on = self.request.is_whole() && !at.turn().is_draining;
        self.keep_alive &= may_go_on;
        self.ends.account.status = status;
        count_status!(self.ends.server.counters, status);
        let head_only = self.request.method == Method::Head;
        let (version, keep_alive) = (self.request.version, self.keep_alive);
        let mut head = at.tools().own_head.take().unwrap_or_default();
        head.clear();
        head.status = status;
        for (name, value) in fields.added() {
            if !edits.withholds(name) {
                edits.add(name, |out| out.extend_from_slice(value));
            }
        }
        keep_cookies(&self.ends.server, at, (&head, b""), &mut edits);
        at.tools().own_head = Some(head);
        let (edits, body) = (edits, body.bytes());
        let own = OwnAnswer { status, version, keep_alive, head_only, edits: &edits, body };
        at.answer(&mut self.ends, &own);
        at.tools().response_edits = edits;
        self.complete(at, termination);
    }

    /// The whole response is handed over, and the member connection is released: the exchange ends now, or when the client
    /// has taken the response. If the response still waits for its verdict, that comes first.
    pub fn complete(&mut self, at: &mut impl Edge, termination: Termination) {
        if self.ends.phase.begun() == Some(Begun::Judging) {
            self.ends.phase = Phase::Judge(termination);
            // Nobody needs the rest of a request that is still arriving.
            self.ends.clear_client_deadline(at);
            return self.patience.watch_leaving_client(at, &mut self.ends);
        }
        if !self.ends.is_undelivered(at) {
            let after = after_response(self);
            return self.end(at, termination, after);
        }
        if self.ends.is_over() {
            return;
        }
        self.ends.phase =
            Phase::Deliver(RestOfResponse { ends_as: termination, unwanted_bytes: 0 });
        self.patience.await_client(at, &mut self.ends);
    }

    /// Ends an exchange whose response cannot be completed, so that the client notices.
    pub fn truncate(&mut self, at: &mut impl Edge, termination: Termination) {
        self.ends.drop_member(at);
        let is_sent = self.ends.phase.begun() == Some(Begun::Sent);
        if is_sent && termination.cuts_response() && self.ends.account.status < 500 {
            self.ends.server.counters.responses_cut.add(1);
        }
        // An end by closing would make the part look like the whole.
        let must_reset = self.response_framing == Framing::UntilClose;
        // The client's stream is reset with it.
        self.end(at, termination, NextClientState::Broken { must_reset });
    }

    /// Ends an exchange whose response is no longer needed.
    pub fn abandon(
        &mut self,
        at: &mut impl Edge,
        termination: Termination,
        after: NextClientState,
    ) {
        if self.request.upgrade_bytes > 0 {
            // The member may have agreed already, and would take an orderly end for that of the tunnel.
            at.release(&mut self.ends, Release::Reset { is_told: self.client_ended });
        }
        self.ends.drop_member(at);
        self.end(at, termination, after);
    }

    /// Ends an exchange in the accounts of the worker, and logs it. A request of weir's own does not appear in access logs, and counts
    /// for no virtual server.
    pub fn end(&mut self, at: &mut impl Edge, termination: Termination, after: NextClientState) {
        if self.ends.is_over() {
            return;
        }
        let (stream_end, after) = match self.reply.as_deref() {
            Some(reply) => {
                if self.ends.caller == Caller::Nobody {
                    let is_answered = reply.head.status != 0;
                    unawaited_ended(at.tools(), &self.ends.server, is_answered);
                }
                (StreamEnd::of_broken(termination), NextClientState::Subrequest)
            }
            None => {
                self.inspection.leave(at, &self.ends.server);
                self.ends.count_request(at);
                if self.ends.phase.begun().is_some_and(Begun::is_held) {
                    // Nothing of a held response was sent.
                    self.ends.account.status = 0;
                }
                (stream_end(self, at, termination), after)
            }
        };
        self.ends.end(at, termination, stream_end);
        at.recycle(std::mem::take(&mut self.request.bytes));
        let transforms = self.filters.on.take();
        at.tools().give_transforms(transforms);
        self.ends.over = Some(after);
    }
}

/// How the client's stream ends with the exchange.
#[inline]
fn stream_end(exchange: &Exchange, at: &mut impl Edge, termination: Termination) -> StreamEnd {
    let ends = &exchange.ends;
    let status = ends.account.status;
    let is_answered = match (ends.caller.stream(), &ends.phase) {
        (None, _) => true,
        (_, Phase::Deliver(_)) => !ends.is_undelivered(at),
        (_, phase) => match phase.begun() {
            None => status != 0,
            Some(Begun::Held | Begun::Judging) => false,
            Some(Begun::Sent) => termination == Termination::Complete,
        },
    };
    match is_answered {
        true => StreamEnd::Answered(status),
        false => StreamEnd::of_broken(termination),
    }
}

/// What becomes of the client's connection behind a response that was sent.
pub fn after_response(exchange: &Exchange) -> NextClientState {
    let request_done = exchange.request.is_whole();
    NextClientState::Response(KeepAliveFacts {
        keep_alive: exchange.keep_alive && request_done,
        request_done,
        client_closes: exchange.client_closes,
    })
}
