//! The stages of a request, from its head to its member, in order. The stages of a response:
//! [`Exchange::begin_response`].
//!
//! With the head, before there is an exchange ([`admission`]):
//!
//! | stage | possible results |
//! |---|---|
//! | challenges of certificate authorities ([`challenge`](super::challenge)) | a response |
//! | limits and policies ([`consider`](super::policy::consider)) | a response; a delay; another pool; edits; a persistent member; a hand-over |
//! | coding ([`note_codings`](super::filters::encode::note_codings)) | the compression that the client accepts |
//! | sealed cookies ([`CookieKeeper::open`](crate::local::cookies::CookieKeeper::open)) | the original values of the application |
//! | web application firewall ([`inspect_head`](super::request_inspection::inspect_head)) | a response; the body is held until it is judged |
//! | edits | the head for the member |
//!
//! Then [`Exchange::enter`]: size (413) and hops (`Max-Forwards`), unless the end of the request was decided. Then, for a request that
//! has them, those of [`Stage`]:
//!
//! | stage | waits | possible results |
//! |---|---|---|
//! | [`Stage::Delay`] | for the time of a rate limit | – |
//! | [`Stage::Login`] ([`login`]) | for the check of a password | 401 |
//! | [`Stage::Judge`] ([`long_inspection`](super::long_inspection)) | for an inspection elsewhere | a response; the body is held until it is judged |
//! | [`Stage::Ask`] ([`authorisation`]) | for a service's reply | a response, changes to the request |
//! | [`Stage::End`] | – | the response or end that was decided with the head |
//! | [`Stage::Copy`] ([`mirror`]) | – | copies for other pools |
//! | [`Stage::Body`] ([`request_inspection`](super::request_inspection)) | for the body | – |
//!
//! At last, balance and member ([`Exchange::dispatch`]): a member and a connection; a queue; 502, 503, 504.

mod admission;
pub mod authorisation;
pub mod login;
pub mod mirror;
pub mod preparation;

pub use admission::{AdmissionVerdict, begin};
pub use authorisation::{awaits_child, child_began};

use std::rc::Rc;

use weir_http::message::{Framing, RequestHead};

use crate::arena::ExchangeKey;
use crate::edge::Edge;
use crate::local::forms::Forms;
use crate::local::table::LocalServer;
use crate::parts::inspection::InspectionState;
use crate::parts::phase::{Begun, Phase};
use crate::parts::reply::Reply;
use crate::parts::request::Request;
use crate::parts::request_context::RequestContext;
use crate::parts::request_decisions::DelayedDecision;
use crate::parts::stage_result::StageResult;
use crate::parts::stage_work::StageWork;
use crate::parts::stages::{Stage, Stages, Wait};
use crate::parts::tools::Tools;
use crate::parts::transaction_ends::TransactionEnds;
use crate::parts::wait_state::WaitState;
use crate::parts::weir_response::ExchangeEnd;
use crate::parts::witness::Step;
use crate::termination::Termination;
use crate::transaction::exchange::Exchange;
use crate::transaction::inspection_results::end_of_blocked;
use crate::transaction::unusual;

impl Exchange {
    /// Runs the remaining stages: the exchange is registered under its key by then.
    pub fn enter(&mut self, at: &mut impl Edge, head: &RequestHead, verdict: AdmissionVerdict) {
        let AdmissionVerdict { decision, ending, not_before_us, .. } = verdict;
        if let Some(mut decision) = decision {
            let is_delayed = not_before_us > at.turn().now_us();
            self.stages = stages_with_head(self, is_delayed);
            if is_delayed {
                self.delayed_decision =
                    Some(Box::new(DelayedDecision { not_before_us, end: None }));
            }
            if let Some(ending) = ending {
                if self.stages.may_wait_before_the_end() {
                    self.stages.add_if(Stage::End, true);
                    let nothing = || Box::new(DelayedDecision { not_before_us: 0, end: None });
                    self.delayed_decision.get_or_insert_with(nothing).end =
                        Some((ending, decision));
                    self.pass_stages(at);
                } else {
                    self.carry_out(at, StageResult::End(ending, decision));
                }
                return;
            }
            decision.clear();
            at.tools().decision = Some(decision);
        }
        if let (Framing::Length(length), Some(max)) =
            (head.framing, self.ends.server.http.body_size_max)
            && length > max
        {
            return self.respond(at, 413, Termination::ClientLimit);
        }
        if head.unusual.is_any
            && let Some(response) =
                unusual::response_to((&mut self.ends, &mut self.request), at.tools(), head)
        {
            return self.end_with(at, ExchangeEnd::Response(response));
        }
        let has_body = !head.framing.is_empty();
        if has_body {
            self.patience.await_request(at, &mut self.ends, &self.inspection);
        } else {
            self.ends.clear_client_deadline(at);
        }
        if !self.stages.is_empty() && !self.pass_stages(at) {
            return;
        }
        // The head of a request with a body is sent with the first bytes of the body, which often have arrived already.
        if self.dispatch(at) && !has_body {
            self.request.send_head(at, &mut self.ends, self.patience);
        }
    }

    /// What the request has waited for is there: continues.
    pub fn resume(&mut self, at: &mut impl Edge) {
        let wait_state = match &self.ends.phase {
            Phase::Before(wait_state) => wait_state,
            Phase::Asked(_, Some(Begun::Judging)) | Phase::Judge(_) => {
                return self.resume_response(at);
            }
            // The request has a member, or was answered while it waited; the client may not have taken all of the response. Or a
            // time has come for which nothing waits any more.
            Phase::Asked(..) | Phase::Left(_) | Phase::Deliver(_) => return,
        };
        match wait_state {
            WaitState::AtStage => {
                if !self.pass_stages(at) {
                    return;
                }
            }
            WaitState::Called(_) => {}
            // A timer for answers that have arrived since.
            WaitState::No | WaitState::ForBody | WaitState::InLine(_) | WaitState::Beside => return,
        }
        debug_assert!(!self.ends.is_over(), "nothing waits for one that is over");
        at.note(Step::Seeks(&self.ends));
        self.seek_member(at);
    }

    /// Passes the stages that are left. False: the request waits at one, or is over.
    fn pass_stages(&mut self, at: &mut impl Edge) -> bool {
        while let Some(stage) = self.stages.next() {
            let Self { ends, request, inspection, stages, patience, .. } = self;
            let TransactionEnds { key, context, server, tries, .. } = &mut *ends;
            let (context, forms) = (context.as_deref_mut(), tries.pool.forms);
            let result = match stage {
                Stage::Delay => delay(self.delayed_decision.as_deref_mut(), at),
                Stage::Login => login::pass(context, server, at.turn()),
                Stage::Judge => inspection.await_verdict(at, ends, (request, stages)),
                Stage::Ask => authorisation::pass(context, at, (*key, server), (request, forms)),
                Stage::End => end(&mut self.delayed_decision),
                Stage::Copy => {
                    if request.is_whole() {
                        mirror::send(context, at, (server, forms, false), request);
                    }
                    StageResult::On
                }
                Stage::Body => {
                    let version = request.version;
                    inspection.await_body(at, ends, (*patience, version))
                }
            };
            if !self.carry_out(at, result) {
                return false;
            }
            self.stages.remove(stage);
        }
        self.ends.phase.leave_stages();
        true
    }

    /// Carries out what a stage says. Returns whether the request goes on. While it waits at stages, its client has no deadline.
    pub fn carry_out(&mut self, at: &mut impl Edge, result: StageResult) -> bool {
        let has_waited = matches!(self.ends.phase, Phase::Before(WaitState::AtStage));
        match result {
            StageResult::On => return true,
            StageResult::Wait(Wait::Body) => {
                self.stages.remove(Stage::Body);
                self.ends.phase.park(WaitState::ForBody);
                if has_waited {
                    self.request_goes_on(at);
                }
                return false;
            }
            StageResult::Wait(what) => {
                if !has_waited {
                    self.ends.phase.park(WaitState::AtStage);
                    self.ends.clear_client_deadline(at);
                    self.patience.watch_leaving_client(at, &mut self.ends);
                }
                if let Wait::Until(until_us) = what {
                    at.delay(&self.ends, until_us);
                }
                return false;
            }
            StageResult::Refuse { mark, response } => {
                forget_decided(self.delayed_decision.take(), at, &mut self.ends, &mark);
                self.end_with(at, ExchangeEnd::Response(response));
            }
            StageResult::End(ending, mut decision) => {
                let inspection = &mut self.inspection;
                let end = ending.exchange_end(at, &self.ends, inspection, &mut decision);
                end.into_iter().for_each(|end| self.end_with(at, end));
                decision.clear();
                at.tools().decision = Some(decision);
            }
            StageResult::BlockHead(block) => {
                if let Some(context) = self.ends.context.as_deref_mut() {
                    context.leave_out_later_stages();
                }
                let end = end_of_blocked(&block, &self.ends, at.tools());
                self.end_with(at, end.meant());
            }
            StageResult::BlockBody(block) => {
                let end = end_of_blocked(&block, &self.ends, at.tools());
                self.end_with(at, end);
            }
        }
        self.stages = Stages::NONE;
        self.ends.phase.leave_stages();
        false
    }
}

/// The stages for which something was decided with the head.
fn stages_with_head(exchange: &Exchange, is_delayed: bool) -> Stages {
    let context = exchange.ends.context.as_deref();
    let work = context.and_then(|context| context.stage_work.as_deref());
    let mut stages = work.map_or(Stages::NONE, StageWork::stages);
    stages.add_if(Stage::Delay, is_delayed);
    stages.add_if(
        Stage::Judge,
        matches!(exchange.inspection.state(), Some(InspectionState::Judging(_))),
    );
    stages.add_if(Stage::Body, exchange.inspection.holds_request());
    stages
}

/// The whole request was sent to its member: does what stages have put off until then. `forms`: those of its head. `is_on_stream`:
/// it was sent on a stream.
pub fn request_is_whole(
    context: Option<&mut RequestContext>,
    at: &mut impl Edge,
    (server, forms, is_on_stream): (&Rc<LocalServer>, Forms, bool),
    request: &Request,
) {
    mirror::send(context, at, (server, forms, is_on_stream), request);
}

/// The request of weir's own has ended, with or without a reply. `None` for `child`: it could not begin.
pub fn child_ended(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    child: Option<ExchangeKey>,
    reply: Option<Box<Reply>>,
) {
    if authorisation::child_replied(exchange.ends.context.as_deref_mut(), child, reply) {
        exchange.resume(at);
    }
}

/// A request of weir's own for which nobody waits has ended, or could not begin. `is_answered`: its member has answered.
pub fn unawaited_ended(tools: &mut Tools, server: &LocalServer, is_answered: bool) {
    mirror::copy_ended(tools, server, is_answered);
}

/// Waits until the time of a rate limit. It waits once: what continues the request ends its delay, whatever the time is.
fn delay(delayed_decision: Option<&mut DelayedDecision>, at: &impl Edge) -> StageResult {
    let until_us = delayed_decision.map_or(0, |it| std::mem::take(&mut it.not_before_us));
    match until_us > at.turn().now_us() {
        true => StageResult::Wait(Wait::Until(until_us)),
        false => StageResult::On,
    }
}

/// Ends a request as decided with its head.
fn end(delayed_decision: &mut Option<Box<DelayedDecision>>) -> StageResult {
    let decided = delayed_decision.take().and_then(|delayed_decision| delayed_decision.end);
    decided.map_or(StageResult::On, |(ending, decision)| StageResult::End(ending, decision))
}

/// Drops all decisions about a request that is not allowed, for this reason.
fn forget_decided(
    delayed_decision: Option<Box<DelayedDecision>>,
    at: &mut impl Edge,
    ends: &mut TransactionEnds,
    mark: &str,
) {
    let decided = delayed_decision.and_then(|delayed_decision| delayed_decision.end);
    if let Some((_, mut decision)) = decided {
        decision.clear();
        at.tools().decision = Some(decision);
    }
    if let Some(context) = ends.context.as_deref_mut() {
        context.leave_out_checks();
        context.later.marks.push(|out| out.extend_from_slice(mark.as_bytes()));
    }
    ends.server.counters.requests_unauthenticated.add(1);
}
