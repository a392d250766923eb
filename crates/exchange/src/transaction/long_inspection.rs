//! Requests whose inspection takes more than a turn: they wait for it at [`Stage::Judge`]. See [`verdict_waits`].

use weir_waf::inspection::{Inspection, Verdict};

use crate::edge::Edge;
use crate::parts::inspection::{InspectedPart, InspectionState, LongInspection, Terms};
use crate::parts::inspection_job::Ticket;
use crate::parts::request::Request;
use crate::parts::stage_result::StageResult;
use crate::parts::stages::{Stage, Stages};
use crate::parts::transaction_ends::TransactionEnds;
use crate::transaction::exchange::is_judged_whole;
use crate::transaction::inspection_results::{self, AfterHead, PassedBody};
use crate::transaction::verdict_waits::{self, OffloadResult};

/// Sends the inspection elsewhere, and waits for its verdict. `stages`: those that are left.
pub fn pass(
    inspection_state: &mut Option<Box<InspectionState>>,
    at: &mut impl Edge,
    ends: &mut TransactionEnds,
    (request, stages): (&mut Request, &mut Stages),
) -> StageResult {
    let Some(InspectionState::Judging(judging)) = inspection_state.as_deref_mut() else {
        return StageResult::On;
    };
    let found = match judging.look(ends.key, at) {
        Ok(found) => found,
        Err(what) => return StageResult::Wait(what),
    };
    let Some(judging) = inspection_state.take().and_then(|it| it.into_judging()) else {
        return StageResult::On;
    };
    let LongInspection { terms, of, .. } = judging;
    match found {
        OffloadResult::Verdict(inspection, verdict) => {
            let found = (inspection, verdict);
            judged(inspection_state, at, ends, (request, stages), (terms, of), found)
        }
        OffloadResult::TooLate(ticket) => {
            unjudged(inspection_state, at, ends, request, (terms, of), Some(ticket))
        }
        OffloadResult::Nothing => unjudged(inspection_state, at, ends, request, (terms, of), None),
    }
}

/// Applies the verdict.
fn judged(
    inspection_state: &mut Option<Box<InspectionState>>,
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
                    passed.wait(inspection_state, request);
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
                    stages.add_if(Stage::Body, is_judged_whole(Some(&state)));
                    *inspection_state = Some(Box::new(state));
                    return StageResult::On;
                }
                AfterHead::More(unfinished) => {
                    let again =
                        LongInspection::new(unfinished, terms, InspectedPart::Request(announced));
                    *inspection_state = Some(Box::new(InspectionState::Judging(Box::new(again))));
                    return pass(inspection_state, at, ends, (request, stages));
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
            *inspection_state = state.map(Box::new);
            if announced.is_awaited {
                ends.send_continue(at, request.version);
            }
            StageResult::On
        }
    }
}

/// There is no verdict: the request is blocked or goes on, as its virtual server has it. Its response is not inspected.
fn unjudged(
    inspection_state: &mut Option<Box<InspectionState>>,
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
        InspectedPart::ResponseHead(_) | InspectedPart::Response(_) => (false, None, Vec::new()),
    };
    match (verdict_waits::give_up(ends, at, terms, ticket, (is_cut, held)), held_body) {
        (Some(block), None) => StageResult::BlockHead(block),
        (Some(block), Some(_)) => StageResult::BlockBody(block),
        (None, held_body) => {
            if is_awaited {
                ends.send_continue(at, request.version);
            }
            if let Some(held_body) = held_body {
                PassedBody::unjudged(held_body).wait(inspection_state, request);
            }
            StageResult::On
        }
    }
}
