//! Sending a request to a member: its head, its body.

use crate::edge::{Edge, Flow, Side};
use crate::parts::end::End;
use crate::parts::pace::Patience;
use crate::parts::pieces::Pieces;
use crate::parts::request::Request;
use crate::parts::transaction_ends::TransactionEnds;
use crate::transaction::exchange::Exchange;
use crate::transaction::stages;

impl Request {
    /// Sends the head of a request that has no body.
    pub fn send_head(
        &mut self,
        at: &mut impl Edge,
        ends: &mut TransactionEnds,
        patience: Patience,
    ) {
        if ends.phase.connection().is_some() {
            let nothing = (&b""[..], &Pieces::whole(0));
            at.ask(ends, self, nothing, End::Data);
            patience.request_handed_over(at, ends, self);
        }
    }
}

impl Exchange {
    /// Finds a member, and sends it what there is of the request.
    pub fn seek_member(&mut self, at: &mut impl Edge) {
        if !self.dispatch(at) || self.ends.is_over() {
            return;
        }
        if let Some((bytes, end)) = self.inspection.take_judged_body(&mut self.request) {
            self.send_body(at, (&bytes[..], &Pieces::whole(bytes.len())), end.get());
            if !self.request.is_whole() && !self.ends.is_over() {
                self.request_goes_on(at);
            }
            return;
        }
        if self.request.is_sent() {
            // Another member has failed: the stored request is sent to this one.
            return self.resend(at, &[]);
        }
        if self.request.is_whole() {
            return self.request.send_head(at, &mut self.ends, self.patience);
        }
        if self.ends.caller.sends_head_first() {
            at.ask(&mut self.ends, &mut self.request, (b"", &Pieces::part(0)), End::No);
        }
        self.request_goes_on(at);
    }

    /// Sends pieces of the body, and its end, to the member. The client may continue to send, unless the member takes data more slowly.
    /// Behind its request a client is read all the same: otherwise nobody would notice that it has left.
    pub fn send_body(
        &mut self,
        at: &mut impl Edge,
        (input, pieces): (&[u8], &Pieces),
        end: End<'_>,
    ) {
        let is_last = !matches!(end, End::No);
        self.request.receive(is_last);
        at.ask(&mut self.ends, &mut self.request, (input, pieces), end);
        if is_last {
            if self.ends.context.is_some() {
                let is_on_stream = self.ends.phase.member_stream().is_some();
                let TransactionEnds { context, server, tries, .. } = &mut self.ends;
                let of = (&*server, tries.pool.forms, is_on_stream);
                stages::request_is_whole(context.as_deref_mut(), at, of, &self.request);
            }
            self.patience.request_handed_over(at, &mut self.ends, &self.request);
            if !self.ends.is_client_behind(at) {
                self.ends.clear_client_deadline(at);
                self.patience.watch_leaving_client(at, &mut self.ends);
            }
        } else {
            self.patience.await_more_of_request(at, &mut self.ends, &self.inspection);
        }
        if self.ends.is_over() {
            return;
        }
        if !self.patience.is_member_backed_up(at, &mut self.ends) {
            self.ends.give_window(at);
        } else if !self.request.is_whole() {
            at.flow(&mut self.ends, Side::Client, Flow::Stop);
        }
    }

    /// The member has taken everything that was sent so far.
    pub fn member_took(&mut self, at: &mut impl Edge) {
        if self.request.is_whole() {
            self.ends.give_window(at);
            return self.patience.request_handed_over(at, &mut self.ends, &self.request);
        }
        if self.ends.phase.begun().is_none() {
            self.ends.clear_member_deadline(at);
        }
        self.request_goes_on(at);
    }
}
