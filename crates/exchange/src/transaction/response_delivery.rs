//! Carries out what follows an inspection of a held response.

use weir_http::message::{Field, Framing};

use crate::edge::Edge;
use crate::parts::end::End;
use crate::parts::held_response::HeldResponse;
use crate::parts::phase::{Begun, Phase};
use crate::parts::pieces::Pieces;
use crate::transaction::exchange::{Exchange, is_held_up};
use crate::transaction::inspection_results::end_of_blocked;
use crate::transaction::response_data::ForwardResult;
use crate::transaction::response_verdict::DeliveryDecision;
use crate::transaction::trailers;

impl Exchange {
    /// Something has happened for which the response may wait: goes on if there is a verdict, or if it has waited long enough. What was
    /// held has gone on then, so do member and client.
    pub fn resume_response(&mut self, at: &mut impl Edge) {
        let (ends_as, was_held_up) = (self.ends.phase.whole(), is_held_up(self));
        let Some(fate) = self.inspection.look_for_response(at, &self.ends) else { return };
        let passed = self.deliver(at, fate);
        if passed == ForwardResult::Over {
            return;
        }
        if self.ends.phase.begun() != Some(Begun::Judging) {
            if let Some(ends_as) = ends_as {
                self.ends.phase.deliver(ends_as);
                return self.complete(at, ends_as);
            }
            if passed == ForwardResult::Enough {
                let is_stream = self.ends.phase.member_stream().is_some();
                return self.response_done(at, is_stream);
            }
            if self.patience.pace_response(at, &mut self.ends, &self.request) {
                self.ends.resume_member(at);
            }
        }
        if was_held_up && self.takes_body() {
            // The body of the request has waited, too. What has arrived of it comes before what arrives next, also while the body of
            // the response is judged. Without a member, nobody needs it.
            self.request_goes_on(at);
        }
    }

    /// Carries out what follows an inspection of a held response. A response that is forwarded goes as far as it has arrived.
    pub fn deliver(
        &mut self,
        at: &mut impl Edge,
        fate: DeliveryDecision<HeldResponse>,
    ) -> ForwardResult {
        let HeldResponse { mut head, text, mut body, end, .. } = match fate {
            DeliveryDecision::Forward(response) => response,
            DeliveryDecision::Hold(how) => {
                self.ends.phase.begin(how);
                return ForwardResult::On;
            }
            DeliveryDecision::Block(block) => {
                let end = end_of_blocked(&block, &self.ends, at.tools());
                self.end_with(at, end);
                return ForwardResult::Over;
            }
        };
        body.join();
        let (body, end) = (body.bytes(), end.get());
        // A response of known length is compressed as a whole.
        let is_whole = !matches!(end, End::No);
        let begins_with = match head.framing {
            Framing::Length(_) if is_whole => body,
            _ => &b""[..],
        };
        let message = self.begin_judged(at, &mut head, (&text, begins_with));
        if !matches!(self.ends.phase, Phase::Asked(..) | Phase::Left(Begun::Sent)) {
            // A rule has answered instead of the member, and the client may not have taken all of the answer.
            at.tools().scratch.give(message);
            return ForwardResult::Over;
        }
        let pieces = if is_whole { Pieces::whole(body.len()) } else { Pieces::part(body.len()) };
        let End::Trailers(fields, text) = end else {
            return self.send_judged(at, message, (body, &pieces), end);
        };
        // When the trailers came, the changes to the head were not known yet.
        let edits = trailers::of_response(&self.ends);
        let passing = fields.iter().filter(|field| edits.let_pass(field.name.of(text)));
        let fields: Vec<Field> = passing.cloned().collect();
        self.send_judged(at, message, (body, &pieces), End::Trailers(&fields, text))
    }
}
