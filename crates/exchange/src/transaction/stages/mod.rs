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
//! | web application firewall ([`inspect_head`](request_inspection::inspect_head)) | a response; the body is held until it is judged |
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
//! | [`Stage::Body`] ([`request_inspection`]) | for the body | – |
//!
//! At last, balance and member ([`Exchange::dispatch`]): a member and a connection; a queue; 502, 503, 504.

mod admission;
pub mod authorisation;
pub mod login;
pub mod mirror;
pub mod preparation;
mod refusal;

pub use admission::AdmissionVerdict;

use weir_http::message::{Framing, RequestHead};

use crate::arena::ExchangeKey;
use crate::edge::Edge;
use crate::parts::end::End;
use crate::parts::inspection::InspectionState;
use crate::parts::phase::{Begun, Phase};
use crate::parts::pieces::Pieces;
use crate::parts::reply::Reply;
use crate::parts::request_decisions::DelayedDecision;
use crate::parts::stage_work::{AuthorisationQuery, Progress, StageWork};
use crate::parts::stages::{Stage, StageResult, Stages, Wait};
use crate::parts::wait_state::WaitState;
use crate::parts::witness::Step;
use crate::termination::Termination;
use crate::transaction::exchange::{Exchange, is_judged_whole};
use crate::transaction::stage_wait::wait;
use crate::transaction::{long_inspection, request_inspection, response_inspection, unusual};

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
                    pass_stages(self, at);
                    return;
                }
                self.end_early(at, ending, &mut decision);
            }
            decision.clear();
            at.tools().decision = Some(decision);
            if ending.is_some() {
                return;
            }
        }
        if let (Framing::Length(length), Some(max)) =
            (head.framing, self.ends.server.http.body_size_max)
            && length > max
        {
            return self.respond(at, 413, Termination::ClientLimit);
        }
        if head.unusual.is_any && unusual::is_answered(self, at, head) {
            return;
        }
        let has_body = !head.framing.is_empty();
        if has_body {
            self.await_client(at);
        } else {
            self.ends.clear_client_deadline(at);
        }
        if !self.stages.is_empty() && !pass_stages(self, at) {
            return;
        }
        // The head of a request with a body is sent with the first bytes of the body, which often have arrived already.
        if self.dispatch(at) && !has_body {
            self.send_request_head(at);
        }
    }

    /// What the request has waited for is there: continues.
    pub fn resume(&mut self, at: &mut impl Edge) {
        let wait_state = match &self.ends.phase {
            Phase::Before(wait_state) => wait_state,
            Phase::Asked(_, Some(Begun::Judging)) | Phase::Judge(_) => {
                return response_inspection::resume(self, at);
            }
            // The request has a member, or was answered while it waited; the client may not have taken all of the response. Or a
            // time has come for which nothing waits any more.
            Phase::Asked(..) | Phase::Left(_) | Phase::Deliver(_) => return,
        };
        match wait_state {
            WaitState::AtStage => {
                if !pass_stages(self, at) {
                    return;
                }
            }
            WaitState::Called(_) => {}
            // A timer for answers that have arrived since.
            WaitState::No | WaitState::ForBody | WaitState::InLine(_) | WaitState::Beside => return,
        }
        debug_assert!(!self.is_over(), "nothing waits for one that is over");
        at.note(Step::Seeks(&self.ends));
        if !self.dispatch(at) {
            return;
        }
        if self.is_over() || request_inspection::pass_judged_body(self, at) {
            return;
        }
        if self.request.is_sent() {
            // Another member has failed: the stored request is sent to this one.
            return self.resend(at, &[]);
        }
        if self.request.is_whole() {
            return self.send_request_head(at);
        }
        if self.ends.sends_head_first() {
            at.ask(&mut self.ends, &mut self.request, (b"", &Pieces::part(0)), End::No);
        }
        self.request_goes_on(at);
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
        matches!(exchange.inspection_state.as_deref(), Some(InspectionState::Judging(_))),
    );
    stages.add_if(Stage::Body, is_judged_whole(exchange));
    stages
}

/// Passes the stages that are left. False: the request waits at one, or is over.
fn pass_stages(exchange: &mut Exchange, at: &mut impl Edge) -> bool {
    while let Some(stage) = exchange.stages.next() {
        let passing = match stage {
            Stage::Delay => delay(exchange.delayed_decision.as_deref_mut(), at),
            Stage::Login => login::pass(exchange, at),
            Stage::Judge => long_inspection::pass(exchange, at),
            Stage::Ask => authorisation::pass(exchange, at),
            Stage::End => end(exchange, at),
            Stage::Copy => mirror::pass(exchange, at),
            Stage::Body => request_inspection::pass(exchange, at),
        };
        match passing {
            StageResult::On => exchange.stages.remove(stage),
            StageResult::Wait(what) => {
                wait(exchange, at, what);
                return false;
            }
            StageResult::Over => {
                exchange.stages = Stages::NONE;
                exchange.ends.phase.leave_stages();
                return false;
            }
        }
    }
    exchange.ends.phase.leave_stages();
    true
}

/// Whether a request of weir's own for this one is to begin.
pub fn awaits_child(exchange: &Exchange) -> bool {
    let context = exchange.ends.context.as_deref();
    let asking = context.and_then(|it| it.stage_work.as_ref()?.asks.last());
    asking.is_some_and(AuthorisationQuery::awaits_beginning)
}

/// The question to a service for which the request waits.
fn asking(exchange: &mut Exchange) -> Option<&mut AuthorisationQuery> {
    exchange.ends.context.as_deref_mut()?.stage_work.as_mut()?.asks.last_mut()
}

/// The request of weir's own has begun.
pub fn child_began(exchange: &mut Exchange, child: ExchangeKey) {
    if let Some(asking) = asking(exchange) {
        asking.progress = Progress::Asked(Some(child));
    }
}

/// The request of weir's own has ended, with or without a reply. `None` for `child`: it could not begin.
pub fn child_ended(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    child: Option<ExchangeKey>,
    reply: Option<Box<Reply>>,
) {
    if asking(exchange).is_some_and(|asking| asking.ended(child, reply)) {
        exchange.resume(at);
    }
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
fn end(exchange: &mut Exchange, at: &mut impl Edge) -> StageResult {
    let decided =
        exchange.delayed_decision.take().and_then(|delayed_decision| delayed_decision.end);
    let Some((ending, mut decision)) = decided else { return StageResult::On };
    exchange.end_early(at, ending, &mut decision);
    decision.clear();
    at.tools().decision = Some(decision);
    StageResult::Over
}
