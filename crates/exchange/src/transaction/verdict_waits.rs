//! Inspections that take more than a turn: they go on on another thread, while the worker serves others.
//!
//! A request whose verdict is needed waits at [`Stage::Judge`](crate::parts::stages::Stage::Judge), a response in
//! [`Begun::Judging`](crate::parts::phase::Begun::Judging). They wait as long as their virtual server waits for a body, at
//! least 10 seconds; then they count as not judged, and an answer is 503: others kept them waiting. What rules only watch does not
//! wait: its findings are logged when they are back.

use std::rc::Rc;

use weir_waf::inspection::{Inspection, Limit, UnfinishedInspection, Verdict};

use crate::arena::ExchangeKey;
use crate::edge::Edge;
use crate::local::table::LocalServer;
use crate::parts::deferred_work::DeferredWork;
use crate::parts::held_memory::HeldBytes;
use crate::parts::held_response::after_request;
use crate::parts::inspection::{
    Block, ExchangeInspection, InspectionPlace, InspectionState, LongInspection, Terms,
};
use crate::parts::inspection_job::{InspectionJob, JobResult, Ticket};
use crate::parts::inspection_report::InspectionOutcome;
use crate::parts::offloaded_inspections::{UnawaitedInspection, UnawaitedResult};
use crate::parts::stages::Wait;
use crate::parts::transaction_ends::TransactionEnds;
use crate::transaction::inspection_results;

/// The time to wait for a verdict, if a body has less. Many long inspections may take so long on a busy host.
const WAIT_MS_MIN: u64 = 10_000;
/// The status of an answer where a request or response has waited too long.
const TOO_LATE: u16 = 503;
/// The interval at which the time of a wait is looked at.
const LOOK_US: u64 = 1_000_000;

/// What was found of a request or a response that waited.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub enum OffloadResult {
    /// The verdict.
    Verdict(Inspection, Verdict),
    /// It has waited long enough.
    TooLate(Ticket),
    /// The inspection was lost.
    Nothing,
}

impl LongInspection {
    /// Looks for the verdict. At first, sends the inspection elsewhere. `Err`: it waits.
    pub fn look(&mut self, key: ExchangeKey, at: &mut impl Edge) -> Result<OffloadResult, Wait> {
        let now_us = at.turn().now_us();
        match std::mem::replace(&mut self.work, InspectionPlace::Lost) {
            InspectionPlace::Here(unfinished) => {
                let (ticket, job) = at.tools().offloaded.begin(key, unfinished);
                at.tools().deferred_work.push(DeferredWork::Inspect(job));
                self.work = InspectionPlace::Away(ticket);
                let wait_ms = self.terms.waf.body_timeout_ms.max(WAIT_MS_MIN);
                self.until_us = now_us + wait_ms * 1_000;
            }
            InspectionPlace::Away(ticket) if now_us < self.until_us => {
                self.work = InspectionPlace::Away(ticket);
                if now_us < self.look_us {
                    return Err(Wait::Event);
                }
            }
            InspectionPlace::Away(ticket) => return Ok(OffloadResult::TooLate(ticket)),
            InspectionPlace::Done(inspection, verdict) => {
                return Ok(OffloadResult::Verdict(inspection, verdict));
            }
            InspectionPlace::Lost => return Ok(OffloadResult::Nothing),
        }
        self.look_us = self.until_us.min(now_us + LOOK_US);
        Err(Wait::Until(self.look_us))
    }
}

/// There is no verdict, and the exchange does not wait for it any longer. What was found is logged when it is back; `ticket`:
/// the claim to it, if it comes back. Returns how the request or its response is blocked, if it is.
///
/// `is_cut`: rules have not got the whole body of the request. `held`: memory that counts until the inspection is back.
pub fn give_up(
    ends: &TransactionEnds,
    at: &mut impl Edge,
    terms: Terms,
    ticket: Option<Ticket>,
    (is_cut, held): (bool, Vec<HeldBytes>),
) -> Option<Block> {
    let limit = Limit::Time;
    let is_blocked = terms.blocks_unjudged();
    let block = Block::of(&Verdict::Exceeded(limit), is_blocked);
    let block = block.map(|block| if ticket.is_some() { Block::Answer(TOO_LATE) } else { block });
    let outcome = InspectionOutcome::Unjudged { limit, is_blocked };
    let status = block.as_ref().map_or(0, Block::status);
    let server = Rc::clone(&ends.server);
    match ticket {
        Some(ticket) => {
            let ends = UnawaitedResult::Outcome(outcome, status);
            at.tools()
                .offloaded
                .leave(ticket, UnawaitedInspection { server, terms, is_cut, ends, held });
        }
        None => inspection_results::tell_lost(at, (&server, &terms), outcome, status),
    }
    block
}

/// Goes on without the verdict, because rules only watch. It is logged when it is back. `unjudged`: the limit that prevented a
/// verdict on the request. `held`: memory that counts until then.
pub fn continue_without_verdict(
    ends: &TransactionEnds,
    at: &mut impl Edge,
    (unfinished, terms): (UnfinishedInspection, Terms),
    unjudged: Option<Limit>,
    held: Vec<HeldBytes>,
) {
    debug_assert!(terms.only_watch(), "the verdict has no effect");
    let server = Rc::clone(&ends.server);
    let tools = at.tools();
    let (ticket, job) = tools.offloaded.begin(ends.key, unfinished);
    let left = |ends| UnawaitedInspection { server, terms, is_cut: false, ends, held };
    tools.offloaded.keep_for_log(ticket, unjudged, left);
    tools.deferred_work.push(DeferredWork::Inspect(job));
}

/// The exchange has ended while its request or response was judged.
pub fn leave(server: &Rc<LocalServer>, at: &mut impl Edge, judging: LongInspection) {
    let LongInspection { work, terms, of, .. } = judging;
    let ends = match of.response() {
        Some(response) => UnawaitedResult::OfRequest(response.facts.unjudged),
        None => UnawaitedResult::Outcome(InspectionOutcome::Unfinished, 0),
    };
    let (server, is_cut) = (Rc::clone(server), of.is_cut());
    let left = UnawaitedInspection { server, terms, is_cut, ends, held: of.into_held() };
    match work {
        InspectionPlace::Away(ticket) => at.tools().offloaded.leave(ticket, left),
        InspectionPlace::Here(unfinished) => tell_left(at, left, unfinished.give_up(), None),
        InspectionPlace::Done(inspection, _) => tell_left(at, left, inspection, None),
        InspectionPlace::Lost => tell_lost(at, left),
    }
}

impl ExchangeInspection {
    /// An inspection is back. Returns whether its exchange waits for it, and goes on.
    pub fn returned(&mut self, job: InspectionJob) -> bool {
        let Some(InspectionState::Judging(judging)) = self.state_mut() else {
            return false;
        };
        if !matches!(&judging.work, InspectionPlace::Away(ticket) if job.is_of(ticket)) {
            return false;
        }
        judging.work = match job.into_back() {
            JobResult::Inspected(inspection, Some(verdict)) => {
                InspectionPlace::Done(inspection, verdict)
            }
            // It stops only after its ticket was dropped.
            JobResult::Inspected(_, None) | JobResult::Lost => InspectionPlace::Lost,
        };
        true
    }
}

/// An inspection is back for which no exchange waits: logs what was found.
pub fn unawaited_inspection_returned(
    at: &mut impl Edge,
    left: UnawaitedInspection,
    job: InspectionJob,
) {
    match job.into_back() {
        JobResult::Inspected(inspection, verdict) => tell_left(at, left, inspection, verdict),
        JobResult::Lost => tell_lost(at, left),
    }
}

/// Logs that the inspection of an exchange that does not wait for it was lost.
fn tell_lost(at: &mut impl Edge, left: UnawaitedInspection) {
    let UnawaitedInspection { server, terms, ends, held: _held, .. } = left;
    let unjudged = |limit| (InspectionOutcome::Unjudged { limit, is_blocked: false }, 0);
    let (outcome, status) = match ends {
        UnawaitedResult::Outcome(outcome, status) => (outcome, status),
        UnawaitedResult::Verdict(_, limit) => unjudged(limit.unwrap_or(Limit::Time)),
        UnawaitedResult::OfRequest(Some(limit)) => unjudged(limit),
        UnawaitedResult::OfRequest(None) => (InspectionOutcome::Unfinished, 0),
    };
    inspection_results::tell_lost(at, (&server, &terms), outcome, status);
}

/// Logs what was found of an exchange that does not wait for it.
fn tell_left(
    at: &mut impl Edge,
    left: UnawaitedInspection,
    mut inspection: Inspection,
    verdict: Option<Verdict>,
) {
    let UnawaitedInspection { server, terms, is_cut, ends, held: _held } = left;
    if is_cut {
        inspection.leave_body_out();
    }
    let found = match (ends, verdict) {
        (UnawaitedResult::Outcome(outcome, status), _) => Err((outcome, status)),
        (UnawaitedResult::Verdict(..), None) => Err((InspectionOutcome::Unfinished, 0)),
        (UnawaitedResult::Verdict(_, unjudged), Some(verdict)) => {
            debug_assert!(terms.only_watch(), "others wait for their verdict");
            Ok(after_request(verdict, unjudged))
        }
        (UnawaitedResult::OfRequest(unjudged), _) => Ok(after_request(Verdict::Pass, unjudged)),
    };
    match found {
        // The exchange has gone on or has ended.
        Ok(verdict) => _ = inspection_results::conclude(at, &server, &terms, inspection, verdict),
        Err((outcome, status)) => {
            inspection_results::tell(at, (&server, &terms), inspection, outcome, status);
        }
    }
}
