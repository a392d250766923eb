//! Forwarding of a response from a member to a client, for any combination of HTTP versions.

use weir_http::message::{ResponseHead, Version};

use crate::edge::{Edge, Release};
use crate::parts::caller::Caller;
use crate::parts::end::End;
use crate::parts::messages::Message;
use crate::parts::phase::{Begun, Phase, RestOfResponse};
use crate::parts::pieces::Pieces;
use crate::parts::transaction_ends::LetOut;
use crate::shared::counters::count_status;
use crate::termination::Termination;
use crate::transaction::exchange::Exchange;
use crate::transaction::exchange_end::after_response;
use crate::transaction::inspection_results::end_of_blocked;
use crate::transaction::response_data::ForwardResult;
use crate::transaction::response_verdict::DeliveryDecision;
use crate::transaction::retry_on::repeats;
use crate::transaction::tracing::note_member_status;

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
        self.ends.send_interim(at, self.request.version, (head, input));
        self.patience.watch_leaving_client(at, &mut self.ends);
        if self.ends.is_client_behind(at) {
            self.patience.await_client(at, &mut self.ends);
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
        let is_failing = head.status >= 400;
        if is_failing && repeats(&mut self.ends, at, &mut self.request, (head, body)) {
            if self.dispatch(at) {
                self.resend(at, &[]);
            }
            return at.tools().scratch.take();
        }
        let is_failure = is_failing && head.status >= 500;
        self.ends.response_began(at, &mut self.request, head.status, is_failure);
        match self.ends.caller {
            Caller::Client(..) if self.inspection.is_none() => {}
            Caller::Client(..) => {
                let of = (&self.ends, self.request.method);
                let message = (&*head, input);
                match self.inspection.begin_response(at, of, message) {
                    DeliveryDecision::Forward(()) => {}
                    DeliveryDecision::Hold(how) => {
                        self.ends.phase.begin(how);
                        return at.tools().scratch.take();
                    }
                    DeliveryDecision::Block(block) => {
                        let end = end_of_blocked(&block, &self.ends, at.tools());
                        self.end_with(at, end);
                        return at.tools().scratch.take();
                    }
                }
            }
            Caller::Parent(_) | Caller::Nobody => {
                let is_awaited = self.ends.caller != Caller::Nobody;
                self.reply.get_or_insert_default().keep_head((head, input), is_awaited);
                self.ends.phase.begin(Begun::Held);
                note_member_status(&mut self.ends, head.status);
                return at.tools().scratch.take();
            }
        }
        self.begin_judged(at, head, (input, body))
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
                let fate = self.inspection.hold_response(at, &self.ends, data, end);
                return fate.map_or(ForwardResult::Over, |fate| self.deliver(at, fate));
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
        self.send_judged(at, head, (input, pieces), end)
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
        if self.patience.pace_response(at, &mut self.ends, &self.request) {
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
            self.patience.await_request(at, &mut self.ends, &self.inspection);
            return sent.data_bytes > 0;
        }
        if let Phase::Deliver(RestOfResponse { ends_as, .. }) = self.ends.phase {
            let after = after_response(self);
            self.end(at, ends_as, after);
        } else if !self.ends.is_client_behind(at) {
            self.patience.client_takes_more(at, &mut self.ends, &self.request);
        }
        false
    }
}
