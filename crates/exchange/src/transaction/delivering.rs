//! What becomes of a response after the inspection by the web application firewall: it is forwarded, replaced by an answer, or
//! waits for its verdict.

use weir_http::message::{Field, Framing};
use weir_waf::inspection::{Inspection, Unfinished, Verdict};

use crate::edge::Edge;
use crate::parts::end::End;
use crate::parts::held_response::{HeldResponse, ResponseFacts};
use crate::parts::inspecting::{Block, Calling, Judging, Of, Scrutiny, Terms};
use crate::parts::job::Ticket;
use crate::parts::phase::{Begun, Phase};
use crate::parts::pieces::Pieces;
use crate::parts::stages::Wait;
use crate::transaction::awaiting;
use crate::transaction::beginning::begin_judged;
use crate::transaction::concluding::{answer_blocked, conclude};
use crate::transaction::exchange::Exchange;
use crate::transaction::sending::{Passed, send_judged};

impl ResponseFacts {
    /// Applies the verdict on a response. Returns true if the response was replaced by an answer.
    pub fn is_replaced(
        &mut self,
        exchange: &mut Exchange,
        at: &mut impl Edge,
        terms: Terms,
        (inspection, verdict): (Inspection, Verdict),
    ) -> bool {
        let verdict = self.verdict(verdict);
        if let Some(look) = self.look.take()
            && Block::of(&verdict, terms.blocks_unjudged()).is_none()
        {
            let calling = Calling { inspection, terms, verdict, look };
            exchange.scrutiny = Some(Box::new(Scrutiny::Calling(Box::new(calling))));
            return false;
        }
        let block = conclude(at, &exchange.ends.server, &terms, inspection, verdict);
        if let Some(block) = &block {
            exchange.ends.drop_member(at);
            answer_blocked(exchange, at, block);
        }
        block.is_some()
    }

    /// Whether nothing depends on the verdict on the response: neither the response nor the body of its request.
    pub fn need_no_verdict(&self, terms: &Terms) -> bool {
        terms.only_watch() && self.look.is_none()
    }
}

impl Judging {
    /// Sends the inspection elsewhere. The response is held until there is a verdict.
    pub fn hold_response(mut self, exchange: &mut Exchange, at: &mut impl Edge) {
        if let Err(Wait::Until(until_us)) = self.look(exchange.ends.key, at) {
            at.delay(&exchange.ends, until_us);
        }
        exchange.scrutiny = Some(Box::new(Scrutiny::Judging(Box::new(self))));
        exchange.ends.phase.begin(Begun::Judging);
    }
}

impl HeldResponse {
    /// Forwards the response after its verdict, unless that replaces it by an answer.
    pub fn deliver(
        mut self,
        exchange: &mut Exchange,
        at: &mut impl Edge,
        terms: Terms,
        found: (Inspection, Verdict),
    ) -> Passed {
        match self.facts.is_replaced(exchange, at, terms, found) {
            true => Passed::Over,
            false => self.forward(exchange, at),
        }
    }

    /// The verdict needs another turn: the response waits for it, or is forwarded if nothing depends on it.
    pub fn deliver_later(
        mut self,
        exchange: &mut Exchange,
        at: &mut impl Edge,
        (unfinished, terms): (Unfinished, Terms),
    ) -> Passed {
        if !self.facts.need_no_verdict(&terms) {
            let of = Of::Response(Box::new(self));
            Judging::new(unfinished, terms, of).hold_response(exchange, at);
            return Passed::On;
        }
        let (limit, held) = (self.facts.limit(), vec![self.body.take_reservation()]);
        awaiting::go_on_without(exchange, at, (unfinished, terms), limit, held);
        self.forward(exchange, at)
    }

    /// There is no verdict: the response is blocked or forwarded, as its virtual server has it.
    pub fn deliver_unjudged(
        mut self,
        exchange: &mut Exchange,
        at: &mut impl Edge,
        terms: Terms,
        ticket: Option<Ticket>,
    ) -> Passed {
        let held = vec![self.body.take_reservation()];
        match awaiting::give_up(exchange, at, terms, ticket, (false, held)) {
            Some(block) => {
                exchange.ends.drop_member(at);
                answer_blocked(exchange, at, &block);
                Passed::Over
            }
            None => self.forward(exchange, at),
        }
    }

    /// Forwards the response, as far as it has arrived.
    fn forward(mut self, exchange: &mut Exchange, at: &mut impl Edge) -> Passed {
        self.body.join();
        let (body, end) = (self.body.bytes(), self.end.get());
        // A response of known length is compressed as a whole.
        let is_whole = !matches!(end, End::No);
        let begins_with = match self.head.framing {
            Framing::Length(_) if is_whole => body,
            _ => &b""[..],
        };
        let message = begin_judged(exchange, at, &mut self.head, (&self.text, begins_with));
        if !matches!(exchange.ends.phase, Phase::Asked(..) | Phase::Left(Begun::Sent)) {
            // A rule has answered instead of the member, and the client may not have taken all of the answer.
            at.tools().scratch.give(message);
            return Passed::Over;
        }
        let pieces = if is_whole { Pieces::whole(body.len()) } else { Pieces::part(body.len()) };
        let End::Trailers(fields, text) = end else {
            return send_judged(exchange, at, message, (body, &pieces), end);
        };
        // When the trailers came, the changes to the head were not known yet.
        let edits = exchange.response_trailers();
        let passing = fields.iter().filter(|field| edits.let_pass(field.name.of(text)));
        let fields: Vec<Field> = passing.cloned().collect();
        send_judged(exchange, at, message, (body, &pieces), End::Trailers(&fields, text))
    }
}
