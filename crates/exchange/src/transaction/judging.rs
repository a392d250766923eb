//! Inspections of requests that take more than a turn: they go on on another thread, while the worker serves others.
//!
//! A request whose verdict is needed waits at [`Stage::Judge`]. It waits as long as its virtual server waits for a body, at least
//! 10 seconds; then it counts as not judged, and an answer is 503: others kept it waiting. A request that rules only watch does not
//! wait: its findings are logged when they are back.

use std::rc::Rc;

use weir_core::policy::WafMode;
use weir_waf::inspection::{Inspection, Limit, Unfinished, Verdict};

use crate::edge::Edge;
use crate::local::table::LocalServer;
use crate::parts::considered::Ending;
use crate::parts::elsewhere::{Left, LeftEnd};
use crate::parts::errand::Errand;
use crate::parts::held::HeldBytes;
use crate::parts::inspected::Outcome;
use crate::parts::inspecting::{Block, Judging, Of, Scrutiny, Terms, Work};
use crate::parts::job::{Back, Job, Ticket};
use crate::parts::stages::{Next, Stage, Wait};
use crate::transaction::concluding::{self, AfterHead};
use crate::transaction::exchange::{Exchange, is_judged_whole};
use crate::transaction::stages::authorisation::forget_services;
use crate::transaction::waiting::wait;

/// The time that a request waits for its verdict, if a body has less. Many long inspections may take so long on a busy host.
const WAIT_MS_MIN: u64 = 10_000;
/// The status of an answer to a request that has waited too long.
const TOO_LATE: u16 = 503;
/// The interval at which the time of a waiting request is looked at.
const LOOK_US: u64 = 1_000_000;

/// Waits for the verdict on a request whose body has arrived.
pub fn begin(exchange: &mut Exchange, at: &mut impl Edge, judging: Judging) {
    exchange.scrutiny = Some(Box::new(Scrutiny::Judging(Box::new(judging))));
    exchange.stages.add_if(Stage::Judge, true);
    // It goes elsewhere first.
    if let Next::Wait(what) = pass(exchange, at) {
        wait(exchange, at, what);
    }
}

/// Goes on without the verdict, because rules only watch the request.
pub fn go_on_without(
    exchange: &Exchange,
    at: &mut impl Edge,
    unfinished: Unfinished,
    terms: Terms,
    held: Vec<HeldBytes>,
) {
    debug_assert!(!terms.holds_bodies(), "the verdict has no effect");
    let server = Rc::clone(&exchange.ends.server);
    let tools = at.tools();
    let (ticket, job) = tools.elsewhere.begin(exchange.ends.key, unfinished);
    tools.elsewhere.leave_for_the_log(ticket, |ends| Left {
        server,
        terms,
        is_cut: false,
        ends,
        held,
    });
    tools.errands.push(Errand::Inspect(job));
}

/// Sends the inspection elsewhere, and waits for its verdict.
pub fn pass(exchange: &mut Exchange, at: &mut impl Edge) -> Next {
    let Some(Scrutiny::Judging(judging)) = exchange.scrutiny.as_deref_mut() else {
        return Next::On;
    };
    let now_us = at.turn().now_us();
    let work = std::mem::replace(&mut judging.work, Work::Lost);
    let found = match work {
        Work::Here(unfinished) => {
            let (ticket, job) = at.tools().elsewhere.begin(exchange.ends.key, unfinished);
            at.tools().errands.push(Errand::Inspect(job));
            judging.work = Work::Away(ticket);
            let wait_ms = judging.terms.waf.body_timeout_ms.max(WAIT_MS_MIN);
            judging.until_us = now_us + wait_ms * 1_000;
            judging.look_us = judging.until_us.min(now_us + LOOK_US);
            return Next::Wait(Wait::Until(judging.look_us));
        }
        Work::Away(ticket) if now_us < judging.until_us => {
            judging.work = Work::Away(ticket);
            if now_us < judging.look_us {
                return Next::Wait(Wait::Event);
            }
            judging.look_us = judging.until_us.min(now_us + LOOK_US);
            return Next::Wait(Wait::Until(judging.look_us));
        }
        Work::Away(ticket) => Found::TooLate(ticket),
        Work::Done(inspection, verdict) => Found::Verdict(inspection, verdict),
        Work::Lost => Found::Nothing,
    };
    let scrutiny = exchange.scrutiny.take().map(|scrutiny| *scrutiny);
    let Some(Scrutiny::Judging(judging)) = scrutiny else { return Next::On };
    match found {
        Found::Verdict(inspection, verdict) => judged(exchange, at, *judging, inspection, verdict),
        Found::TooLate(ticket) => unjudged(exchange, at, *judging, Some(ticket)),
        Found::Nothing => unjudged(exchange, at, *judging, None),
    }
}

/// What was found of a request that waits.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
enum Found {
    Verdict(Inspection, Verdict),
    /// It has waited long enough.
    TooLate(Ticket),
    /// The inspection was lost.
    Nothing,
}

/// Applies the verdict.
fn judged(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    judging: Judging,
    inspection: Inspection,
    verdict: Verdict,
) -> Next {
    let Judging { terms, of, .. } = judging;
    let server = Rc::clone(&exchange.ends.server);
    let (announced, found) = match of {
        Of::Body { body, decoding, end } => {
            drop(decoding);
            let found = (inspection, verdict);
            return match concluding::settle_body(exchange, at, found, terms, (body, end)) {
                Ok(()) => Next::On,
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
    };
    match concluding::settle_head(at, &server, announced, found, terms) {
        Err(block) => blocked_at_head(exchange, at, block),
        Ok(scrutiny) => {
            exchange.scrutiny = scrutiny.map(Box::new);
            passed_at_head(exchange, at, announced.is_awaited)
        }
    }
}

/// The request goes on, and its body is not held. A client that waits for 100 (Continue) gets it.
fn passed_at_head(exchange: &mut Exchange, at: &mut impl Edge, is_awaited: bool) -> Next {
    if is_awaited {
        concluding::tell_to_continue(exchange, at);
    }
    Next::On
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
    judging: Judging,
    ticket: Option<Ticket>,
) -> Next {
    let Judging { terms, of, .. } = judging;
    let verdict = Verdict::Exceeded(Limit::Time);
    let is_blocked = terms.blocks_unjudged();
    let block = Block::of(&verdict, is_blocked);
    let block = block.map(|block| if ticket.is_some() { Block::Answer(TOO_LATE) } else { block });
    let outcome = Outcome::Unjudged { limit: Limit::Time, is_blocked };
    let status = block.as_ref().map_or(0, Block::status);
    let is_cut = !matches!(of, Of::Body { .. });
    let (awaited, held, reserved) = match of {
        Of::Head(announced) | Of::Request(announced) => (announced.is_awaited, None, Vec::new()),
        Of::Body { body, decoding, end } => {
            // The inspection has the body, too, until it is back.
            let reserved = vec![body.again(), decoding];
            (false, Some((body, end)), reserved)
        }
    };
    let server = Rc::clone(&exchange.ends.server);
    match ticket {
        Some(ticket) => {
            let ends = LeftEnd::Outcome(outcome, status);
            let held = reserved;
            at.tools().elsewhere.leave(ticket, Left { server, terms, is_cut, ends, held });
        }
        None => concluding::tell_lost(at, (&server, &terms), outcome, status),
    }
    match (block, held) {
        (Some(block), None) => blocked_at_head(exchange, at, block),
        (Some(block), Some(_)) => {
            concluding::answer_blocked(exchange, at, &block);
            Next::Over
        }
        (None, None) => passed_at_head(exchange, at, awaited),
        (None, Some(held)) => {
            concluding::pass_on(exchange, held, None);
            Next::On
        }
    }
}

/// The request has ended while it was judged.
pub fn leave(server: &Rc<LocalServer>, at: &mut impl Edge, judging: Judging) {
    let Judging { work, terms, of, .. } = judging;
    let is_cut = !matches!(of, Of::Body { .. });
    match work {
        Work::Away(ticket) => {
            let held = match of {
                Of::Body { body, decoding, .. } => vec![body.into_held(), decoding],
                Of::Head(_) | Of::Request(_) => Vec::new(),
            };
            let ends = LeftEnd::Outcome(Outcome::Unfinished, 0);
            let server = Rc::clone(server);
            at.tools().elsewhere.leave(ticket, Left { server, terms, is_cut, ends, held });
        }
        Work::Here(unfinished) => unfinished_is_told(server, at, &terms, unfinished, is_cut),
        Work::Done(inspection, _) => {
            concluding::tell(at, (server, &terms), inspection, Outcome::Unfinished, 0);
        }
        Work::Lost => concluding::tell_lost(at, (server, &terms), Outcome::Unfinished, 0),
    }
}

fn unfinished_is_told(
    server: &LocalServer,
    at: &mut impl Edge,
    terms: &Terms,
    unfinished: Unfinished,
    is_cut: bool,
) {
    let mut inspection = unfinished.give_up();
    if is_cut {
        inspection.leave_body_out();
    }
    concluding::tell(at, (server, terms), inspection, Outcome::Unfinished, 0);
}

/// An inspection is back, and its request waits for it.
pub fn came_back(exchange: &mut Exchange, at: &mut impl Edge, job: Job) {
    let Some(Scrutiny::Judging(judging)) = exchange.scrutiny.as_deref_mut() else { return };
    if !matches!(&judging.work, Work::Away(ticket) if job.is_of(ticket)) {
        return;
    }
    judging.work = match job.into_back() {
        Back::Inspected(inspection, Some(verdict)) => Work::Done(inspection, verdict),
        // It stops only after its ticket was dropped.
        Back::Inspected(_, None) | Back::Lost => Work::Lost,
    };
    exchange.go_on(at);
}

/// An inspection is back for which no request waits: logs what was found.
pub fn came_back_late(at: &mut impl Edge, left: Left, job: Job) {
    let Left { server, terms, is_cut, ends, held: _held } = left;
    let Back::Inspected(mut inspection, verdict) = job.into_back() else {
        let (outcome, status) = match ends {
            LeftEnd::Outcome(outcome, status) => (outcome, status),
            LeftEnd::Verdict(_) => (Outcome::Unjudged { limit: Limit::Time, is_blocked: false }, 0),
        };
        return concluding::tell_lost(at, (&server, &terms), outcome, status);
    };
    if is_cut {
        inspection.leave_body_out();
    }
    match (ends, verdict) {
        (LeftEnd::Outcome(outcome, status), _) => {
            concluding::tell(at, (&server, &terms), inspection, outcome, status);
        }
        (LeftEnd::Verdict(_), Some(verdict)) => {
            debug_assert_eq!(terms.mode, WafMode::Detect, "others wait for their verdict");
            concluding::conclude(at, &server, &terms, inspection, verdict);
        }
        (LeftEnd::Verdict(_), None) => {
            concluding::tell(at, (&server, &terms), inspection, Outcome::Unfinished, 0);
        }
    }
}
