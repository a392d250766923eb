//! Requests whose inspection takes more than a turn: they wait for it at [`Stage::Judge`]. See [`awaiting`].

use std::rc::Rc;

use weir_waf::inspection::{Inspection, Verdict};

use crate::edge::Edge;
use crate::parts::considered::Ending;
use crate::parts::inspecting::{Block, Judging, Of, Scrutiny, Terms};
use crate::parts::job::Ticket;
use crate::parts::stages::{Next, Stage};
use crate::transaction::awaiting::{self, Found};
use crate::transaction::concluding::{self, AfterHead, PassedBody};
use crate::transaction::exchange::{Exchange, is_judged_whole};
use crate::transaction::stages::authorisation::forget_services;
use crate::transaction::waiting::wait;

/// Waits for the verdict on a request whose body has arrived.
pub fn begin(exchange: &mut Exchange, at: &mut impl Edge, judging: Judging) {
    exchange.scrutiny = Some(Box::new(Scrutiny::Judging(Box::new(judging))));
    exchange.stages.add_if(Stage::Judge, true);
    // It goes elsewhere first.
    if let Next::Wait(what) = pass(exchange, at) {
        wait(exchange, at, what);
    }
}

/// Sends the inspection elsewhere, and waits for its verdict.
pub fn pass(exchange: &mut Exchange, at: &mut impl Edge) -> Next {
    let key = exchange.ends.key;
    let Some(Scrutiny::Judging(judging)) = exchange.scrutiny.as_deref_mut() else {
        return Next::On;
    };
    let found = match judging.look(key, at) {
        Ok(found) => found,
        Err(what) => return Next::Wait(what),
    };
    let Some(judging) = exchange.scrutiny.take().and_then(|it| it.into_judging()) else {
        return Next::On;
    };
    let Judging { terms, of, .. } = judging;
    match found {
        Found::Verdict(inspection, verdict) => {
            judged(exchange, at, (terms, of), inspection, verdict)
        }
        Found::TooLate(ticket) => unjudged(exchange, at, (terms, of), Some(ticket)),
        Found::Nothing => unjudged(exchange, at, (terms, of), None),
    }
}

/// Applies the verdict.
fn judged(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    (terms, of): (Terms, Of),
    inspection: Inspection,
    verdict: Verdict,
) -> Next {
    let server = Rc::clone(&exchange.ends.server);
    let (announced, found) = match of {
        Of::Body { body, decoding, end } => {
            drop(decoding);
            let found = (inspection, verdict);
            return match concluding::settle_body(at, &server, found, terms, (body, end)) {
                Ok(passed) => {
                    passed.wait(&mut exchange.scrutiny, &mut exchange.request);
                    Next::On
                }
                Err(block) => {
                    concluding::answer_blocked(exchange, at, &block);
                    Next::Over
                }
            };
        }
        Of::Request(announced) => (announced, (inspection, verdict)),
        Of::Head(announced) => {
            match concluding::after_head(at, announced, &terms, inspection, verdict) {
                AfterHead::Read(inspection) => {
                    let scrutiny = concluding::read(at, announced, (inspection, terms));
                    exchange.scrutiny = Some(Box::new(scrutiny));
                    exchange.stages.add_if(Stage::Body, is_judged_whole(exchange));
                    return Next::On;
                }
                AfterHead::More(unfinished) => {
                    let again = Judging::new(unfinished, terms, Of::Request(announced));
                    exchange.scrutiny = Some(Box::new(Scrutiny::Judging(Box::new(again))));
                    return pass(exchange, at);
                }
                AfterHead::Judged(inspection, verdict) => (announced, (inspection, verdict)),
            }
        }
        Of::ResponseHead(_) | Of::Response(_) => {
            debug_assert!(false, "a response does not wait at a stage");
            return Next::On;
        }
    };
    match concluding::settle_head(at, &server, announced, found, terms) {
        Err(block) => blocked_at_head(exchange, at, block),
        Ok(scrutiny) => {
            exchange.scrutiny = scrutiny.map(Box::new);
            if announced.is_awaited {
                concluding::tell_to_continue(exchange, at);
            }
            Next::On
        }
    }
}

/// Ends a request that is blocked at its head, as one that was blocked at once.
fn blocked_at_head(exchange: &mut Exchange, at: &mut impl Edge, block: Block) -> Next {
    if let Some(remembered) = exchange.ends.remembered.as_deref_mut() {
        forget_services(remembered);
    }
    exchange.scrutiny = Some(Box::new(Scrutiny::Blocked(block)));
    let mut decision = at.tools().decision.take().unwrap_or_default();
    exchange.end_early(at, Ending::Blocked, &mut decision);
    decision.clear();
    at.tools().decision = Some(decision);
    Next::Over
}

/// There is no verdict: the request is blocked or goes on, as its virtual server has it. Its response is not inspected.
fn unjudged(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    (terms, of): (Terms, Of),
    ticket: Option<Ticket>,
) -> Next {
    let is_cut = of.is_cut();
    let (is_awaited, held_body, held) = match of {
        Of::Body { body, decoding, end } => {
            // The inspection has the body, too, until it is back.
            let held = vec![body.again(), decoding];
            (false, Some((body, end)), held)
        }
        Of::Head(announced) | Of::Request(announced) => (announced.is_awaited, None, Vec::new()),
        Of::ResponseHead(_) | Of::Response(_) => (false, None, Vec::new()),
    };
    let block = awaiting::give_up(&exchange.ends, at, terms, ticket, (is_cut, held));
    match (block, held_body) {
        (Some(block), None) => blocked_at_head(exchange, at, block),
        (Some(block), Some(_)) => {
            concluding::answer_blocked(exchange, at, &block);
            Next::Over
        }
        (None, held_body) => {
            if is_awaited {
                concluding::tell_to_continue(exchange, at);
            }
            if let Some(held_body) = held_body {
                PassedBody::unjudged(held_body).wait(&mut exchange.scrutiny, &mut exchange.request);
            }
            Next::On
        }
    }
}
