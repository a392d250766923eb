//! Requests whose inspection takes more than a turn: they wait for it at [`Stage::Judge`]. See [`verdict_waits`].

use std::rc::Rc;

use weir_waf::inspection::{Inspection, Verdict};

use crate::edge::Edge;
use crate::parts::inspection::{Block, InspectedPart, InspectionState, LongInspection, Terms};
use crate::parts::inspection_job::Ticket;
use crate::parts::request_decisions::EndWithoutMember;
use crate::parts::stages::{Stage, StageResult};
use crate::transaction::exchange::{Exchange, is_judged_whole};
use crate::transaction::inspection_results::{self, AfterHead, PassedBody};
use crate::transaction::stage_wait::wait;
use crate::transaction::verdict_waits::{self, OffloadResult};

/// Waits for the verdict on a request whose body has arrived.
pub fn begin(exchange: &mut Exchange, at: &mut impl Edge, judging: LongInspection) {
    exchange.inspection_state = Some(Box::new(InspectionState::Judging(Box::new(judging))));
    exchange.stages.add_if(Stage::Judge, true);
    // It goes elsewhere first.
    if let StageResult::Wait(what) = pass(exchange, at) {
        wait(exchange, at, what);
    }
}

/// Sends the inspection elsewhere, and waits for its verdict.
pub fn pass(exchange: &mut Exchange, at: &mut impl Edge) -> StageResult {
    let key = exchange.ends.key;
    let Some(InspectionState::Judging(judging)) = exchange.inspection_state.as_deref_mut() else {
        return StageResult::On;
    };
    let found = match judging.look(key, at) {
        Ok(found) => found,
        Err(what) => return StageResult::Wait(what),
    };
    let Some(judging) = exchange.inspection_state.take().and_then(|it| it.into_judging()) else {
        return StageResult::On;
    };
    let LongInspection { terms, of, .. } = judging;
    match found {
        OffloadResult::Verdict(inspection, verdict) => {
            judged(exchange, at, (terms, of), inspection, verdict)
        }
        OffloadResult::TooLate(ticket) => unjudged(exchange, at, (terms, of), Some(ticket)),
        OffloadResult::Nothing => unjudged(exchange, at, (terms, of), None),
    }
}

/// Applies the verdict.
fn judged(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    (terms, of): (Terms, InspectedPart),
    inspection: Inspection,
    verdict: Verdict,
) -> StageResult {
    let server = Rc::clone(&exchange.ends.server);
    let (announced, found) = match of {
        InspectedPart::Body { body, decoding, end } => {
            drop(decoding);
            let found = (inspection, verdict);
            return match inspection_results::settle_body(at, &server, found, terms, (body, end)) {
                Ok(passed) => {
                    passed.wait(&mut exchange.inspection_state, &mut exchange.request);
                    StageResult::On
                }
                Err(block) => {
                    inspection_results::answer_blocked(exchange, at, &block);
                    StageResult::Over
                }
            };
        }
        InspectedPart::Request(announced) => (announced, (inspection, verdict)),
        InspectedPart::Head(announced) => {
            match inspection_results::after_head(at, announced, &terms, inspection, verdict) {
                AfterHead::Read(inspection) => {
                    let inspection_state =
                        inspection_results::read(at, announced, (inspection, terms));
                    exchange.inspection_state = Some(Box::new(inspection_state));
                    exchange.stages.add_if(Stage::Body, is_judged_whole(exchange));
                    return StageResult::On;
                }
                AfterHead::More(unfinished) => {
                    let again =
                        LongInspection::new(unfinished, terms, InspectedPart::Request(announced));
                    exchange.inspection_state =
                        Some(Box::new(InspectionState::Judging(Box::new(again))));
                    return pass(exchange, at);
                }
                AfterHead::Judged(inspection, verdict) => (announced, (inspection, verdict)),
            }
        }
        InspectedPart::ResponseHead(_) | InspectedPart::Response(_) => {
            debug_assert!(false, "a response does not wait at a stage");
            return StageResult::On;
        }
    };
    match inspection_results::settle_head(at, &server, announced, found, terms) {
        Err(block) => blocked_at_head(exchange, at, block),
        Ok(inspection_state) => {
            exchange.inspection_state = inspection_state.map(Box::new);
            if announced.is_awaited {
                inspection_results::send_continue(exchange, at);
            }
            StageResult::On
        }
    }
}

/// Ends a request that is blocked at its head, as one that was blocked at once.
fn blocked_at_head(exchange: &mut Exchange, at: &mut impl Edge, block: Block) -> StageResult {
    if let Some(context) = exchange.ends.context.as_deref_mut() {
        context.leave_out_later_stages();
    }
    exchange.inspection_state = Some(Box::new(InspectionState::Blocked(block)));
    let mut decision = at.tools().decision.take().unwrap_or_default();
    exchange.end_early(at, EndWithoutMember::Blocked, &mut decision);
    decision.clear();
    at.tools().decision = Some(decision);
    StageResult::Over
}

/// There is no verdict: the request is blocked or goes on, as its virtual server has it. Its response is not inspected.
fn unjudged(
    exchange: &mut Exchange,
    at: &mut impl Edge,
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
    let block = verdict_waits::give_up(&exchange.ends, at, terms, ticket, (is_cut, held));
    match (block, held_body) {
        (Some(block), None) => blocked_at_head(exchange, at, block),
        (Some(block), Some(_)) => {
            inspection_results::answer_blocked(exchange, at, &block);
            StageResult::Over
        }
        (None, held_body) => {
            if is_awaited {
                inspection_results::send_continue(exchange, at);
            }
            if let Some(held_body) = held_body {
                PassedBody::unjudged(held_body)
                    .wait(&mut exchange.inspection_state, &mut exchange.request);
            }
            StageResult::On
        }
    }
}
