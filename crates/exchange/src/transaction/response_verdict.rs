//! What becomes of a response after the inspection by the web application firewall: it is forwarded, replaced by an answer, or
//! waits for its verdict.

use weir_waf::inspection::{Inspection, UnfinishedInspection, Verdict};

use crate::edge::Edge;
use crate::local::table::LocalServer;
use crate::parts::held_response::{HeldResponse, ResponseFacts};
use crate::parts::inspection::{
    Block, ExchangeInspection, GrpcCallCheck, InspectedPart, InspectionState, LongInspection, Terms,
};
use crate::parts::inspection_job::Ticket;
use crate::parts::phase::Begun;
use crate::parts::stages::Wait;
use crate::parts::transaction_ends::TransactionEnds;
use crate::transaction::inspection_results::conclude;
use crate::transaction::verdict_waits;

/// What follows an inspection of a response.
pub enum DeliveryDecision<T> {
    /// It is forwarded.
    Forward(T),
    /// It is held: until its body has arrived, or until there is a verdict.
    Hold(Begun),
    /// It is replaced by an answer.
    Block(Block),
}

impl ResponseFacts {
    /// Applies the verdict on a response. Returns how the response is blocked, if it is.
    pub fn settle(
        &mut self,
        exchange_inspection: &mut ExchangeInspection,
        at: &mut impl Edge,
        (server, terms): (&LocalServer, Terms),
        (inspection, verdict): (Inspection, Verdict),
    ) -> Option<Block> {
        let verdict = self.verdict(verdict);
        if let Some(look) = self.look.take()
            && Block::of(&verdict, terms.blocks_unjudged()).is_none()
        {
            let calling = GrpcCallCheck { inspection, terms, verdict, look };
            exchange_inspection.set(InspectionState::Calling(Box::new(calling)));
            return None;
        }
        conclude(at, server, &terms, inspection, verdict)
    }

    /// Whether nothing depends on the verdict on the response: neither the response nor the body of its request.
    pub fn need_no_verdict(&self, terms: &Terms) -> bool {
        terms.only_watch() && self.look.is_none()
    }
}

impl LongInspection {
    /// Sends the inspection elsewhere. The response is held until there is a verdict.
    pub fn hold_response<T>(
        mut self,
        exchange_inspection: &mut ExchangeInspection,
        at: &mut impl Edge,
        ends: &TransactionEnds,
    ) -> DeliveryDecision<T> {
        if let Err(Wait::Until(until_us)) = self.look(ends.key, at) {
            at.delay(ends, until_us);
        }
        exchange_inspection.set(InspectionState::Judging(Box::new(self)));
        DeliveryDecision::Hold(Begun::Judging)
    }
}

impl HeldResponse {
    /// There is a verdict.
    pub fn judged(
        mut self,
        exchange_inspection: &mut ExchangeInspection,
        at: &mut impl Edge,
        of: (&LocalServer, Terms),
        found: (Inspection, Verdict),
    ) -> DeliveryDecision<Self> {
        match self.facts.settle(exchange_inspection, at, of, found) {
            Some(block) => DeliveryDecision::Block(block),
            None => DeliveryDecision::Forward(self),
        }
    }

    /// The verdict needs another turn: the response waits for it, or is forwarded if nothing depends on it.
    pub fn judged_later(
        mut self,
        exchange_inspection: &mut ExchangeInspection,
        at: &mut impl Edge,
        ends: &TransactionEnds,
        (unfinished, terms): (UnfinishedInspection, Terms),
    ) -> DeliveryDecision<Self> {
        if !self.facts.need_no_verdict(&terms) {
            let of = InspectedPart::Response(Box::new(self));
            return LongInspection::new(unfinished, terms, of).hold_response(
                exchange_inspection,
                at,
                ends,
            );
        }
        let (limit, held) = (self.facts.limit(), vec![self.body.take_reservation()]);
        verdict_waits::continue_without_verdict(ends, at, (unfinished, terms), limit, held);
        DeliveryDecision::Forward(self)
    }

    /// There is no verdict: the response is blocked or forwarded, as its virtual server has it.
    pub fn unjudged(
        mut self,
        at: &mut impl Edge,
        ends: &TransactionEnds,
        terms: Terms,
        ticket: Option<Ticket>,
    ) -> DeliveryDecision<Self> {
        let held = vec![self.body.take_reservation()];
        match verdict_waits::give_up(ends, at, terms, ticket, (false, held)) {
            Some(block) => DeliveryDecision::Block(block),
            None => DeliveryDecision::Forward(self),
        }
    }
}
