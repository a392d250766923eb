//! Forwarding of a response from a member to a client, for any combination of HTTP versions.

use weir_http::message::{ResponseHead, Version};

use crate::edge::{Edge, Release};
use crate::parts::caller::Caller;
use crate::parts::end::End;
use crate::parts::messages::Message;
use crate::parts::pace::Pace;
use crate::parts::phase::{Begun, Phase, RestOfResponse};
use crate::parts::pieces::Pieces;
use crate::parts::transaction_ends::LetOut;
use crate::shared::counters::count_status;
use crate::termination::Termination;
use crate::transaction::exchange::Exchange;
use crate::transaction::inspection_results::answer_blocked;
use crate::transaction::lost_streams::watch_leaving_client;
use crate::transaction::response_data::{ForwardResult, send_interim, send_judged};
use crate::transaction::response_delivery::{DeliveryDecision, deliver};
use crate::transaction::response_start::begin_judged;
use crate::transaction::tracing::note_member_status;
use crate::transaction::{response_inspection, retry_on};

/// Begins a response with a status of 400 or above: it may be a failure of the member, and may be retried on another
/// one.
#[cold]
fn begin_failing(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    head: &mut ResponseHead,
    (input, body): (&[u8], &[u8]),
) -> Message {
    let is_failure = head.status >= 500;
    if retry_on::repeat(exchange, at, head, body) {
        return at.tools().scratch.take();
    }
    exchange.response_began(at, head.status, is_failure);
    begin_known(exchange, at, head, (input, body))
}

/// Begins a response to the client, or holds it for inspection.
#[inline]
fn begin_known(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    head: &mut ResponseHead,
    (input, body): (&[u8], &[u8]),
) -> Message {
    let is_kept = match exchange.ends.caller {
        Caller::Client(..) => {
            exchange.inspection_state.is_some() && is_kept_back(exchange, at, (head, input))
        }
        Caller::Parent(_) | Caller::Nobody => {
            let is_awaited = exchange.ends.caller != Caller::Nobody;
            exchange.reply.get_or_insert_default().keep_head((head, input), is_awaited);
            exchange.ends.phase.begin(Begun::Held);
            note_member_status(&mut exchange.ends, head.status);
            true
        }
    };
    if is_kept {
        return at.tools().scratch.take();
    }
    begin_judged(exchange, at, head, (input, body))
}

/// Inspects the head of a response. Returns whether nothing more is to do now: the response is held, or was replaced by an answer.
fn is_kept_back(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    message: (&ResponseHead, &[u8]),
) -> bool {
    let of = (&exchange.ends, exchange.request.method);
    match response_inspection::begin(&mut exchange.inspection_state, at, of, message) {
        DeliveryDecision::Forward(()) => return false,
        DeliveryDecision::Hold(how) => exchange.ends.phase.begin(how),
        DeliveryDecision::Block(block) => answer_blocked(exchange, at, &block),
    }
    true
}

impl Exchange {
    /// Forwards an interim response of the member.
    pub fn forward_interim(&mut self, at: &mut impl Edge, head: &ResponseHead, input: &[u8]) {
        if let Some(member) = &self.ends.account.last_member {
            count_status!(member.counters, head.status);
        }
        if self.request.version == Version::Http10 || !self.ends.caller.is_client() {
            return;
        }
        // The client has received a part of this member's response: no retry on another member.
        self.request.let_go();
        send_interim(self, at, head, input);
        watch_leaving_client(self, at);
        if self.ends.is_client_behind(at) {
            self.await_client(at);
            self.ends.pause_member(at);
            self.ends.clear_member_deadline(at);
        }
    }

    /// Begins a response. For HTTP/1, returns the head for the client, which is sent with the first bytes of the body.
    /// `input` is the text of the head, `body` the data received behind it.
    pub fn begin_response(
        &mut self,
        at: &mut impl Edge,
        head: &mut ResponseHead,
        (input, body): (&[u8], &[u8]),
    ) -> Message {
        self.filters.leave_out_known(head, input);
        if head.status >= 400 {
            return begin_failing(self, at, head, (input, body));
        }
        self.response_began(at, head.status, false);
        begin_known(self, at, head, (input, body))
    }

    /// Forwards pieces of a response's body: behind `head` if that was not sent yet, and followed by the end.
    pub fn send_response(
        &mut self,
        at: &mut impl Edge,
        head: Message,
        (input, pieces): (&[u8], &Pieces),
        end: End<'_>,
    ) -> ForwardResult {
        match self.ends.phase {
            Phase::Asked(_, Some(Begun::Sent)) => {}
            Phase::Asked(_, Some(Begun::Held | Begun::Judging)) => {
                // Nothing was written to the buffer.
                at.tools().scratch.give(head);
                if let Some(reply) = self.reply.as_deref_mut() {
                    let is_enough = reply.keep_body((input, pieces), !matches!(end, End::No));
                    return if is_enough { ForwardResult::Enough } else { ForwardResult::On };
                }
                let data = pieces.of(input);
                let fate = response_inspection::hold(
                    &mut self.inspection_state,
                    at,
                    &self.ends,
                    data,
                    end,
                );
                return fate.map_or(ForwardResult::Over, |fate| deliver(self, at, fate));
            }
            Phase::Before(_)
            | Phase::Asked(_, None)
            | Phase::Left(_)
            | Phase::Judge(_)
            | Phase::Deliver(_) => {
                // The client got another response already.
                at.tools().scratch.give(head);
                return ForwardResult::Over;
            }
        }
        send_judged(self, at, head, (input, pieces), end)
    }

    /// Adapts reading from the member to the speed of the client, and sets deadlines. Returns whether the member may send more.
    pub fn pace_response(&mut self, at: &mut impl Edge) -> bool {
        if self.ends.phase.begun() == Some(Begun::Judging) {
            self.ends.pause_member(at);
            self.ends.clear_member_deadline(at);
            return false;
        }
        let until_ms = at.turn().now_ms() + self.pace.response_body_timeout_ms(&self.ends.server);
        let is_behind = self.ends.is_client_behind(at);
        if is_behind {
            self.ends.pause_member(at);
            self.ends.clear_member_deadline(at);
            self.await_client(at);
        } else {
            if self.pace == Pace::Sparse && !self.request.is_whole() {
                // With alternating bodies, data in either direction restarts both deadlines.
                self.await_client(at);
            }
            self.ends.set_member_deadline(at, until_ms);
            watch_leaving_client(self, at);
        }
        !is_behind
    }

    /// The client took everything: resumes reading from the member.
    pub fn client_takes_more(&mut self, at: &mut impl Edge) {
        if self.ends.phase.connection().is_none() {
            return watch_leaving_client(self, at);
        }
        let until_ms = at.turn().now_ms() + self.pace.response_body_timeout_ms(&self.ends.server);
        let is_responding = self.ends.phase.begun().is_some();
        let request_done = self.request.is_whole();
        if request_done {
            self.ends.clear_client_deadline(at);
            watch_leaving_client(self, at);
        } else {
            self.await_client(at);
        }
        if self.ends.phase.begun() == Some(Begun::Judging) {
            // The verdict resumes the member.
            return;
        }
        self.ends.resume_member(at);
        if is_responding {
            self.ends.set_member_deadline(at, until_ms);
        } else {
            // Only interim responses were queued.
            self.request_handed_over(at);
        }
    }

    /// Data arrived on the member's stream, possibly with its end.
    pub fn member_data(&mut self, at: &mut impl Edge, data: &[u8], end: End<'_>) {
        if matches!(self.ends.phase, Phase::Asked(_, Some(_))) {
            let nothing = at.tools().scratch.take();
            self.member_body(at, nothing, data, end);
        }
    }

    /// Forwards data of a response that arrived on a stream: behind `head` if that was not sent yet, and followed by
    /// the end.
    pub fn member_body(&mut self, at: &mut impl Edge, head: Message, data: &[u8], end: End<'_>) {
        let mut is_end = !matches!(end, End::No);
        match self.send_response(at, head, (data, &Pieces::part(data.len())), end) {
            ForwardResult::On => {}
            ForwardResult::Enough => is_end = true,
            ForwardResult::Over => return,
        }
        if is_end {
            return self.response_done(at, true);
        }
        if self.pace_response(at) {
            self.ends.give_member_window(at);
        }
    }

    /// The response is complete: ends the exchange. The member connection is kept if `is_reusable` and the request is
    /// complete.
    pub fn response_done(&mut self, at: &mut impl Edge, is_reusable: bool) {
        let is_kept = is_reusable && self.request.is_whole();
        at.release(&mut self.ends, if is_kept { Release::Keep } else { Release::Drop });
        self.ends.release_member(at, None);
        self.complete(at, Termination::Complete);
    }

    /// The client's windows let out some queued data. Returns whether more may be sent.
    pub fn client_let_out(&mut self, at: &mut impl Edge, sent: &LetOut) -> bool {
        if sent.is_behind {
            self.await_client(at);
            return sent.data_bytes > 0;
        }
        if let Phase::Deliver(RestOfResponse { ends_as, .. }) = self.ends.phase {
            self.end_answered(at, ends_as);
        } else if !self.ends.is_client_behind(at) {
            self.client_takes_more(at);
        }
        false
    }
}
