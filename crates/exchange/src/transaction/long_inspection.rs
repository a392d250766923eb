//! Requests whose inspection takes more than a turn: they wait for it at [`Stage::Judge`]. See [`verdict_waits`].

use weir_waf::inspection::{Inspection, Verdict};

use crate::edge::Edge;
use crate::parts::inspection::{
    ExchangeInspection, InspectedPart, InspectionState, LongInspection, Terms,
};
use crate::parts::inspection_job::Ticket;
use crate::parts::request::Request;
use crate::parts::stage_result::StageResult;
use crate::parts::stages::{Stage, Stages};
use crate::parts::transaction_ends::TransactionEnds;
use crate::transaction::inspection_results::{self, AfterHead, PassedBody};
use crate::transaction::verdict_waits::{self, OffloadResult};

impl ExchangeInspection {
    /// Sends the inspection elsewhere, and waits for its verdict. `stages`: those that are left.
    pub fn await_verdict(
        &mut self,
        at: &mut impl Edge,
        ends: &mut TransactionEnds,
        (request, stages): (&mut Request, &mut Stages),
    ) -> StageResult {
        let Some(InspectionState::Judging(judging)) = self.state_mut() else {
            return StageResult::On;
        };
        let found = match judging.look(ends.key, at) {
            Ok(found) => found,
            Err(what) => return StageResult::Wait(what),
        };
        let Some(judging) = self.take().and_then(InspectionState::into_judging) else {
            return StageResult::On;
        };
        let LongInspection { terms, of, .. } = judging;
        match found {
            OffloadResult::Verdict(inspection, verdict) => {
                let found = (inspection, verdict);
                self.apply_verdict(at, ends, (request, stages), (terms, of), found)
            }
            OffloadResult::TooLate(ticket) => {
                self.go_on_unjudged(at, ends, request, (terms, of), Some(ticket))
            }
            OffloadResult::Nothing => self.go_on_unjudged(at, ends, request, (terms, of), None),
        }
    }

    /// Applies the verdict.
    fn apply_verdict(
        &mut self,
        at: &mut impl Edge,
        ends: &mut TransactionEnds,
        (request, stages): (&mut Request, &mut Stages),
        (terms, of): (Terms, InspectedPart),
        (inspection, verdict): (Inspection, Verdict),
    ) -> StageResult {
        let (announced, found) = match of {
            InspectedPart::Body { body, decoding, end } => {
                drop(decoding);
                let (found, held) = ((inspection, verdict), (body, end));
                return match inspection_results::settle_body(at, &ends.server, found, terms, held) {
                    Ok(passed) => {
                        passed.wait(self, request);
                        StageResult::On
                    }
                    Err(block) => StageResult::BlockBody(block),
                };
            }
            InspectedPart::Request(announced) => (announced, (inspection, verdict)),
            InspectedPart::Head(announced) => {
                match inspection_results::after_head(at, announced, &terms, inspection, verdict) {
                    AfterHead::Read(inspection) => {
                        let state = inspection_results::read(at, announced, (inspection, terms));
                        self.set(state);
                        stages.add_if(Stage::Body, self.holds_request());
                        return StageResult::On;
                    }
                    AfterHead::More(unfinished) => {
                        let again = LongInspection::new(
                            unfinished,
                            terms,
                            InspectedPart::Request(announced),
                        );
                        self.set(InspectionState::Judging(Box::new(again)));
                        return self.await_verdict(at, ends, (request, stages));
                    }
                    AfterHead::Judged(inspection, verdict) => (announced, (inspection, verdict)),
                }
            }
            InspectedPart::ResponseHead(_) | InspectedPart::Response(_) => {
                debug_assert!(false, "a response does not wait at a stage");
                return StageResult::On;
            }
        };
        match inspection_results::settle_head(at, &ends.server, announced, found, terms) {
            Err(block) => StageResult::BlockHead(block),
            Ok(state) => {
                *self = Self::of(state);
                if announced.is_awaited {
                    ends.send_continue(at, request.version);
                }
                StageResult::On
            }
        }
    }

    /// There is no verdict: the request is blocked or goes on, as its virtual server has it. Its response is not inspected.
    fn go_on_unjudged(
        &mut self,
        at: &mut impl Edge,
        ends: &mut TransactionEnds,
        request: &mut Request,
        (terms, of): (Terms, InspectedPart),
        ticket: Option<Ticket>,
    ) -> StageResult {
        let is_cut = of.is_cut();
        let (is_awaited, held_body, held) = match of {
            InspectedPart::Body { body, decoding, end } => {
                // The inspection has the body, too, until it is back.
                let held = vec![body.again(), decoding];
                (false, Some((body, end)), held)
            }
            InspectedPart::Head(announced) | InspectedPart::Request(announced) => {
                (announced.is_awaited, None, Vec::new())
            }
            InspectedPart::ResponseHead(_) | InspectedPart::Response(_) => {
                (false, None, Vec::new())
            }
        };
        match (verdict_waits::give_up(ends, at, terms, ticket, (is_cut, held)), held_body) {
            (Some(block), None) => StageResult::BlockHead(block),
            (Some(block), Some(_)) => StageResult::BlockBody(block),
            (None, held_body) => {
                if is_awaited {
                    ends.send_continue(at, request.version);
                }
                if let Some(held_body) = held_body {
                    PassedBody::unjudged(held_body).wait(self, request);
                }
                StageResult::On
            }
        }
    }
}
