//! The end of an exchange: with the member's response, with a response of weir's own, or without a response.

use weir_core::policy::{AnswerBody, Decision, End};
use weir_http::edits::FieldEdits;
use weir_http::message::{Framing, Method};

use crate::edge::{Edge, Release};
use crate::parts::messages::OwnAnswer;
use crate::parts::phase::{Begun, Phase, RestOfResponse};
use crate::parts::request_decisions::EndWithoutMember;
use crate::parts::stream_end::StreamEnd;
use crate::parts::transaction_ends::{KeepAliveFacts, NextClientState};
use crate::shared::counters::count_status;
use crate::termination::Termination;
use crate::transaction::exchange::Exchange;
use crate::transaction::inspection_results::answer_blocked;
use crate::transaction::lost_streams::watch_leaving_client;
use crate::transaction::policy::keep_cookies;
use crate::transaction::{request_inspection, subrequest};

impl Exchange {
    /// Answers in place of a member, with the virtual server's page for the status if it has one; ends
    /// the exchange.
    pub fn respond(&mut self, at: &mut impl Edge, status: u16, termination: Termination) {
        self.respond_adding(at, status, termination, FieldEdits::NONE);
    }

    /// As [`Self::respond`], with further fields.
    pub fn respond_adding(
        &mut self,
        at: &mut impl Edge,
        status: u16,
        termination: Termination,
        mut fields: FieldEdits,
    ) {
        let page = self.ends.server.error_page(status);
        if let Some(page) = &page {
            let content_type = page.content_type.as_bytes();
            fields.add(b"Content-Type", |out| out.extend_from_slice(content_type));
        }
        let body = page.as_ref().map(|page| &*page.body);
        self.respond_with(at, status, termination, &fields, body);
    }

    /// Answers in place of a member, with these fields and this body (`None`: a line that says the
    /// status); ends the exchange.
    pub fn respond_with(
        &mut self,
        at: &mut impl Edge,
        status: u16,
        termination: Termination,
        fields: &FieldEdits,
        body: Option<&[u8]>,
    ) {
        self.ends.drop_member(at);
        if self.reply.is_some() {
            return subrequest::end(self, at, termination);
        }
        request_inspection::leave(&mut self.inspection_state, at, &self.ends.server);
        self.ends.phase.drop_held();
        if self.ends.phase.begun().is_some() {
            return self.truncate(at, termination);
        }
        let mut edits = std::mem::take(&mut at.tools().response_edits);
        let mut head = at.tools().own_head.take().unwrap_or_default();
        head.clear();
        head.status = status;
        let answer = self.edit_response(at, &head, b"", &mut edits);
        at.tools().own_head = Some(head);
        match answer {
            Some(decision) => send_decided(self, at, decision, termination, edits),
            None => send_own(self, at, (status, fields, body), termination, edits),
        }
    }

    /// The whole response is handed over, and the member connection is released: the exchange ends now, or when the client
    /// has taken the response. If the response still waits for its verdict, that comes first.
    pub fn complete(&mut self, at: &mut impl Edge, termination: Termination) {
        if self.ends.phase.begun() == Some(Begun::Judging) {
            self.ends.phase = Phase::Judge(termination);
            // Nobody needs the rest of a request that is still arriving.
            self.ends.clear_client_deadline(at);
            return watch_leaving_client(self, at);
        }
        if !self.ends.is_undelivered(at) {
            return self.end_answered(at, termination);
        }
        if self.is_over() {
            return;
        }
        self.ends.phase =
            Phase::Deliver(RestOfResponse { ends_as: termination, unwanted_bytes: 0 });
        self.await_client(at);
    }

    /// Ends an exchange whose response was sent.
    pub fn end_answered(&mut self, at: &mut impl Edge, termination: Termination) {
        let request_done = self.request.is_whole();
        let outcome = KeepAliveFacts {
            keep_alive: self.keep_alive && request_done,
            request_done,
            client_closes: self.client_closes,
        };
        self.end(at, termination, NextClientState::Response(outcome));
    }

    /// Ends an exchange and its connection without an answer.
    pub fn end_unanswered(
        &mut self,
        at: &mut impl Edge,
        termination: Termination,
        must_reset: bool,
    ) {
        self.end(at, termination, NextClientState::Cut { termination, must_reset });
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

    /// Ends an exchange in the accounts of the worker, and logs it.
    pub fn end(&mut self, at: &mut impl Edge, termination: Termination, after: NextClientState) {
        if self.is_over() {
            return;
        }
        if self.reply.is_some() {
            return subrequest::end(self, at, termination);
        }
        request_inspection::leave(&mut self.inspection_state, at, &self.ends.server);
        self.ends.count_request(at);
        if self.ends.phase.begun().is_some_and(Begun::is_held) {
            // Nothing of a held response was sent.
            self.ends.account.status = 0;
        }
        let status = self.ends.account.status;
        let is_answered = match (self.ends.caller.stream(), &self.ends.phase) {
            (None, _) => true,
            (_, Phase::Deliver(_)) => !self.ends.is_undelivered(at),
            (_, phase) => match phase.begun() {
                None => status != 0,
                Some(Begun::Held | Begun::Judging) => false,
                Some(Begun::Sent) => termination == Termination::Complete,
            },
        };
        let stream_end = match is_answered {
            true => StreamEnd::Answered(status),
            false => StreamEnd::of_broken(termination),
        };
        self.ends.end(at, termination, stream_end);
        at.recycle(std::mem::take(&mut self.request.bytes));
        let transforms = self.filters.on.take();
        at.tools().give_transforms(transforms);
        self.ends.over = Some(after);
    }
}

/// Sends a response of weir's own with these changes, and ends the exchange.
fn send_own(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    (status, fields, body): (u16, &FieldEdits, Option<&[u8]>),
    termination: Termination,
    mut edits: FieldEdits,
) {
    // weir does not wait for the rest of a request body: it may be long and is not needed.
    let may_go_on = exchange.request.is_whole() && !at.turn().is_draining;
    exchange.keep_alive &= may_go_on;
    exchange.ends.account.status = status;
    count_status!(exchange.ends.server.counters, status);
    let head_only = exchange.request.method == Method::Head;
    let (version, keep_alive) = (exchange.request.version, exchange.keep_alive);
    let mut head = at.tools().own_head.take().unwrap_or_default();
    head.clear();
    head.status = status;
    for (name, value) in fields.added() {
        if !edits.withholds(name) {
            edits.add(name, |out| out.extend_from_slice(value));
        }
    }
    keep_cookies(exchange, at, (&head, b""), &mut edits);
    at.tools().own_head = Some(head);
    let own = OwnAnswer { status, version, keep_alive, head_only, edits: &edits, body };
    at.answer(&mut exchange.ends, &own);
    at.tools().response_edits = edits;
    exchange.complete(at, termination);
}

/// The response that was sent in place of a member's is meant: with 5xx it is no failure (a page for maintenance).
fn note_meant(exchange: &Exchange) {
    if exchange.ends.account.status >= 500 {
        exchange.ends.server.counters.responses_5xx_meant.add(1);
    }
}

/// Sends the answer of a rule that replaces a response, and ends the exchange. Rules do not run again.
fn send_decided(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    mut decision: Box<Decision>,
    termination: Termination,
    edits: FieldEdits,
) {
    exchange.ends.server.counters.responses_replaced.add(1);
    with_answer(exchange, &mut decision, |exchange, answer| {
        send_own(exchange, at, answer, termination, edits);
    });
    decision.clear();
    at.tools().response_decision = Some(decision);
}

/// Sends the answer that policies have decided, with the page for its status if it has no body of its own.
fn with_answer(
    exchange: &mut Exchange,
    decision: &mut Decision,
    then: impl FnOnce(&mut Exchange, (u16, &FieldEdits, Option<&[u8]>)),
) {
    let Some(End::Answer { status, body }) = &decision.end else {
        debug_assert!(false, "it ends otherwise");
        return;
    };
    let page = exchange.ends.server.error_page(*status);
    let fields = &mut decision.answer;
    let body = match body {
        AnswerBody::Fixed(bytes) => bytes,
        AnswerBody::Made => &decision.body[..],
        AnswerBody::None => page.as_ref().map_or(&b""[..], |page| {
            let content_type = page.content_type.as_bytes();
            fields.set(b"Content-Type", |out| out.extend_from_slice(content_type));
            &page.body
        }),
    };
    then(exchange, (*status, fields, Some(body)));
}

/// Answers instead of a member that has responded: the rest of its response is dropped. `is_whole`: the response is
/// complete.
pub fn replace_response(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    decision: Box<Decision>,
    is_whole: bool,
    mut edits: FieldEdits,
) {
    let is_kept = is_whole && exchange.request.is_whole();
    at.release(&mut exchange.ends, if is_kept { Release::Keep } else { Release::Drop });
    exchange.ends.release_member(at, None);
    request_inspection::leave(&mut exchange.inspection_state, at, &exchange.ends.server);
    exchange.ends.phase.drop_held();
    edits.forget_received();
    send_decided(exchange, at, decision, Termination::Policy, edits);
}

impl Exchange {
    /// Ends an exchange that gets no member.
    pub fn end_early(
        &mut self,
        at: &mut impl Edge,
        ending: EndWithoutMember,
        decision: &mut Decision,
    ) {
        match ending {
            EndWithoutMember::Limited { retry_after_s } => {
                let mut fields = FieldEdits::default();
                fields.add(b"Retry-After", |out| {
                    out.extend_from_slice(retry_after_s.to_string().as_bytes());
                });
                self.respond_adding(at, 429, Termination::RateLimit, fields);
            }
            EndWithoutMember::Overloaded => {
                let mut fields = FieldEdits::default();
                fields.add(b"Retry-After", |out| out.push(b'1'));
                self.respond_adding(at, 503, Termination::RateLimit, fields);
            }
            // Without a page, because the page might belong to another name.
            EndWithoutMember::Misdirected => {
                let termination = Termination::Misdirected;
                self.respond_with(at, 421, termination, &FieldEdits::NONE, None);
            }
            EndWithoutMember::Blocked => {
                if let Some(block) = request_inspection::take_block(&mut self.inspection_state) {
                    answer_blocked(self, at, &block);
                }
                note_meant(self);
            }
            EndWithoutMember::Failed => self.respond(at, 500, Termination::PolicyFailed),
            EndWithoutMember::Closed => self.end_unanswered(at, Termination::RateLimit, false),
            EndWithoutMember::Challenge => {
                with_answer(self, decision, |exchange, (status, fields, body)| {
                    exchange.respond_with(at, status, Termination::Challenge, fields, body);
                });
            }
            EndWithoutMember::Policy => match &decision.end {
                Some(End::Answer { .. }) => {
                    with_answer(self, decision, |exchange, (status, fields, body)| {
                        exchange.respond_with(at, status, Termination::Policy, fields, body);
                    });
                    note_meant(self);
                }
                Some(End::Reset) => {
                    self.end_unanswered(at, Termination::Policy, true);
                }
                // A hand-over does not end the request here.
                Some(End::Close | End::VirtualServer(_)) | None => {
                    self.end_unanswered(at, Termination::Policy, false);
                }
            },
        }
    }
}
