//! Reception of a request from its client.

use crate::edge::Edge;
use crate::parts::end::{End, OwnedEnd};
use crate::parts::phase::Phase;
use crate::parts::pieces::Pieces;
use crate::termination::Termination;
use crate::transaction::exchange::{Exchange, is_held_now, is_held_up};
use crate::transaction::inspection_results::end_of_blocked;

impl Exchange {
    /// Pieces of a request's body, and its end.
    pub fn client_data(
        &mut self,
        at: &mut impl Edge,
        (input, pieces): (&[u8], &Pieces),
        end: End<'_>,
    ) {
        let awaits_tunnel = self.request.awaits_tunnel(&self.ends.phase);
        if self.request.is_whole() && !awaits_tunnel {
            // The end contains no information, because the length was known to be 0.
            return self.ends.give_window(at);
        }
        self.ends.account.bytes_received += pieces.data_bytes as u64;
        if awaits_tunnel {
            // The data belongs to the tunnel, if the member accepts it.
            return at.hold(&mut self.ends, (input, pieces), end);
        }
        if let Phase::Deliver(rest) = &mut self.ends.phase {
            // The data is no longer needed. A client that takes nothing of its response may not continue to send
            // forever.
            rest.unwanted_bytes += pieces.data_bytes as u64;
            if rest.unwanted_bytes <= u64::from(self.ends.server.http2_limits.unwanted_size_max) {
                self.ends.give_window(at);
            }
            return;
        }
        let size_max = self.ends.server.http.body_size_max;
        if size_max.is_some_and(|max| self.ends.account.bytes_received > max) {
            return self.respond(at, 413, Termination::ClientLimit);
        }
        if is_held_now(self) {
            let Self { inspection, ends, patience, request, stages, .. } = self;
            let (client, left) = ((ends, *patience), (request, stages));
            let piece = (input, pieces);
            let judged = inspection.hold_request(at, client, left, piece, end);
            if judged.is_some_and(|result| self.carry_out(at, result)) {
                self.seek_member(at);
            }
            return;
        }
        if self.ends.phase.connection().is_none() || is_held_up(self) {
            // The request waits for a member, or for the verdict on the head of its response.
            return at.hold(&mut self.ends, (input, pieces), end);
        }
        let is_whole = !matches!(end, End::No);
        if !self.inspection.is_none() {
            let piece = (input, pieces);
            let block = self.inspection.follow(at, &self.ends, piece, is_whole);
            if let Some(block) = block {
                let end = end_of_blocked(&block, &self.ends, at.tools());
                return self.end_with(at, end);
            }
        }
        self.send_body(at, (input, pieces), end);
    }

    /// The client has ended its request early, because it knows the answer. The member gets no more of the request, so it
    /// cannot take the request for a complete one.
    pub fn request_cut(&mut self, at: &mut impl Edge) {
        self.request.cut();
        if self.inspection.may_hold_request() {
            // The firewall cannot judge a part of a request, so no member gets it.
            return self.respond(at, 400, Termination::ClientAbort);
        }
        if !self.ends.is_client_behind(at) {
            self.ends.clear_client_deadline(at);
        }
    }

    /// The member accepts more of a request body that is still arriving.
    pub fn request_goes_on(&mut self, at: &mut impl Edge) {
        self.patience.await_more_of_request(at, &mut self.ends, &self.inspection);
        let is_sent = self.request.is_sent();
        match at.resume_client(&mut self.ends) {
            Some((held, OwnedEnd::No)) if held.is_empty() && is_sent => self.ends.give_window(at),
            Some((held, end)) => {
                // `client_data` counts it a second time.
                self.ends.account.bytes_received -= held.len() as u64;
                self.client_data(at, (&held, &Pieces::whole(held.len())), end.get());
                at.recycle(held);
            }
            None => {}
        }
    }
}
