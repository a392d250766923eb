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
//! | web application firewall ([`inspect_head`](inspect::inspect_head)) | a response; the body is held until it is judged |
//! | edits | the head for the member |
//!
//! Then [`Exchange::enter`]: size (413) and hops (`Max-Forwards`), unless the end of the request was decided. Then, for a request that
//! has them, those of [`Stage`]:
//!
//! | stage | waits | possible results |
//! |---|---|---|
//! | [`Stage::Delay`] | for the time of a rate limit | – |
//! | [`Stage::Login`] ([`login`]) | for the check of a password | 401 |
//! | [`Stage::Judge`] ([`judging`](super::judging)) | for an inspection elsewhere | a response; the body is held until it is judged |
//! | [`Stage::Ask`] ([`authorisation`]) | for a service's reply | a response, changes to the request |
//! | [`Stage::End`] | – | the response or end that was decided with the head |
//! | [`Stage::Copy`] ([`mirror`]) | – | copies for other pools |
//! | [`Stage::Body`] ([`inspect`]) | for the body | – |
//!
//! At last, balance and member ([`Exchange::dispatch`]): a member and a connection; a queue; 502, 503, 504.

mod admission;
pub mod authorisation;
pub mod login;
pub mod mirror;

pub use admission::Verdict;

use weir_http::message::{Framing, RequestHead};

use crate::arena::ExchangeKey;
use crate::edge::Edge;
use crate::parts::end::End;
use crate::parts::identity::{Asking, Progress};
use crate::parts::inspecting::Scrutiny;
use crate::parts::parked::Parked;
use crate::parts::phase::{Begun, Phase};
use crate::parts::pieces::Pieces;
use crate::parts::remembered::Remembered;
use crate::parts::reply::Reply;
use crate::parts::stages::{Foreseen, Next, Stage, Stages, Wait};
use crate::parts::witness::Step;
use crate::termination::Termination;
use crate::transaction::exchange::{Exchange, is_judged_whole};
use crate::transaction::waiting::wait;
use crate::transaction::{inspect, inspect_response, judging, unusual};

impl Exchange {
    /// Runs the remaining stages: the exchange is registered under its key by then.
    pub fn enter(&mut self, at: &mut impl Edge, head: &RequestHead, verdict: Verdict) {
        let Verdict { decision, ending, not_before_us, .. } = verdict;
        if let Some(mut decision) = decision {
            let is_delayed = not_before_us > at.turn().now_us();
            self.stages = stages_with_head(self, is_delayed);
            if is_delayed {
                self.foreseen = Some(Box::new(Foreseen { not_before_us, end: None }));
            }
            if let Some(ending) = ending {
                if self.stages.may_wait_before_the_end() {
                    self.stages.add_if(Stage::End, true);
                    let nothing = || Box::new(Foreseen { not_before_us: 0, end: None });
                    self.foreseen.get_or_insert_with(nothing).end = Some((ending, decision));
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
    pub fn go_on(&mut self, at: &mut impl Edge) {
        let parked = match &self.ends.phase {
            Phase::Before(parked) => parked,
            Phase::Asked(_, Some(Begun::Judging)) | Phase::Judge(_) => {
                return inspect_response::go_on(self, at);
            }
            // The request has a member, or was answered while it waited; the client may not have taken all of the response. Or a
            // time has come for which nothing waits any more.
            Phase::Asked(..) | Phase::Left(_) | Phase::Deliver(_) => return,
        };
        match parked {
            Parked::AtStage => {
                if !pass_stages(self, at) {
                    return;
                }
            }
            Parked::Called(_) => {}
            // A timer for answers that have arrived since.
            Parked::No | Parked::ForBody | Parked::InLine(_) | Parked::Beside => return,
        }
        debug_assert!(!self.is_over(), "nothing waits for one that is over");
        at.note(Step::Seeks(&self.ends));
        if !self.dispatch(at) {
            return;
        }
        if self.is_over() || inspect::pass_judged_body(self, at) {
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
    let mut stages = Stages::NONE;
    stages.add_if(Stage::Delay, is_delayed);
    if let Some(remembered) = exchange.ends.remembered.as_deref() {
        if let Some(identity) = remembered.identity.as_deref() {
            stages.add_if(Stage::Login, !identity.checks.is_empty());
            stages.add_if(Stage::Ask, !identity.asks.is_empty());
        }
        stages.add_if(Stage::Copy, remembered.mirrors.is_some());
    }
    stages.add_if(Stage::Judge, matches!(exchange.scrutiny.as_deref(), Some(Scrutiny::Judging(_))));
    stages.add_if(Stage::Body, is_judged_whole(exchange));
    stages
}

/// Passes the stages that are left. False: the request waits at one, or is over.
fn pass_stages(exchange: &mut Exchange, at: &mut impl Edge) -> bool {
    while let Some(stage) = exchange.stages.next() {
        let passing = match stage {
            Stage::Delay => delay(exchange.foreseen.as_deref_mut(), at),
            Stage::Login => login::pass(exchange, at),
            Stage::Judge => judging::pass(exchange, at),
            Stage::Ask => authorisation::pass(exchange, at),
            Stage::End => end(exchange, at),
            Stage::Copy => mirror::pass(exchange, at),
            Stage::Body => inspect::pass(exchange, at),
        };
        match passing {
            Next::On => exchange.stages.remove(stage),
            Next::Wait(what) => {
                wait(exchange, at, what);
                return false;
            }
            Next::Over => {
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
    let remembered = exchange.ends.remembered.as_deref();
    remembered.and_then(Remembered::asking).is_some_and(Asking::awaits_beginning)
}

/// The question to a service for which the request waits.
fn asking(exchange: &mut Exchange) -> Option<&mut Asking> {
    exchange.ends.remembered.as_deref_mut()?.asking_mut()
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
        exchange.go_on(at);
    }
}

/// Waits until the time of a rate limit. It waits once: what continues the request ends its delay, whatever the time is.
fn delay(foreseen: Option<&mut Foreseen>, at: &impl Edge) -> Next {
    let until_us = foreseen.map_or(0, |it| std::mem::take(&mut it.not_before_us));
    match until_us > at.turn().now_us() {
        true => Next::Wait(Wait::Until(until_us)),
        false => Next::On,
    }
}

/// Ends a request as decided with its head.
fn end(exchange: &mut Exchange, at: &mut impl Edge) -> Next {
    let decided = exchange.foreseen.take().and_then(|foreseen| foreseen.end);
    let Some((ending, mut decision)) = decided else { return Next::On };
    exchange.end_early(at, ending, &mut decision);
    decision.clear();
    at.tools().decision = Some(decision);
    Next::Over
}
