//! Inspection of responses by the web application firewall.
//!
//! The head is judged when it arrives. A body of an inspected type is held until it is complete or has reached the
//! inspected size, and judged; then it is forwarded. Event streams, gRPC calls and encoded bodies are not held. An inspection that
//! takes more than a turn goes on elsewhere ([`awaiting`]): meanwhile the response is held, and its member is not read.

use weir_config::snapshot::Responses;
use weir_http::fields::values;
use weir_http::message::{Method, ResponseHead, Version};
use weir_waf::inspection::{
    self, Inspection, Limit, Question, Step, Unread, Verdict, judge_unread,
};

use crate::edge::Edge;
use crate::parts::end::End;
use crate::parts::held_response::{HeldResponse, ResponseFacts};
use crate::parts::inspecting::{Answering, Calling, Judged, Judging, Of, Scrutiny, Terms};
use crate::parts::messages::Message;
use crate::parts::pace::Pace;
use crate::parts::phase::{Begun, Phase, Rest};
use crate::parts::pieces::Pieces;
use crate::parts::stages::Wait;
use crate::termination::Termination;
use crate::transaction::awaiting::{self, Found};
use crate::transaction::concluding::AfterHead;
use crate::transaction::exchange::Exchange;
use crate::transaction::sending::Passed;

/// Judges the head of a response. Returns true if nothing more is to do now: the response is held, or was replaced by an answer.
pub fn begin(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    (head, input): (&ResponseHead, &[u8]),
) -> bool {
    let Some((judged, look)) = take_judged(&mut exchange.scrutiny) else { return false };
    let Judged { mut inspection, terms, unjudged } = judged;
    let Some(responses) = &terms.waf.responses else { return false };
    let is_read = terms.waf.common.view().looks_at_response_bodies()
        && is_looked_at(exchange, responses, (head, input));
    inspection.response(&inspection::Response {
        status: head.status,
        protocol: match head.version {
            Version::Http10 => b"HTTP/1.0",
            Version::Http11 => b"HTTP/1.1",
            Version::Http2 => b"HTTP/2.0",
        },
        headers: &fields(head, input),
    });
    let mut facts = ResponseFacts { is_read, has_room: true, unjudged, look };
    let turn = at.tools().elsewhere.turn;
    let found = match inspection::judge(inspection, Question::ResponseHead, turn) {
        Step::Done(inspection, verdict) => (inspection, verdict),
        Step::More(unfinished) => {
            let of = Of::ResponseHead(Box::new(held(at, &terms, facts, (head, input))));
            Judging::new(unfinished, terms, of).hold_response(exchange, at);
            return true;
        }
    };
    match after_head(at, &terms, &mut facts, found) {
        AfterHead::Read(inspection) => {
            let response = held(at, &terms, facts, (head, input));
            Answering { inspection, terms, response }.begin(exchange);
            true
        }
        AfterHead::More(unfinished) if facts.need_no_verdict(&terms) => {
            let limit = facts.limit();
            awaiting::go_on_without(exchange, at, (unfinished, terms), limit, Vec::new());
            false
        }
        AfterHead::More(unfinished) => {
            let of = Of::Response(Box::new(held(at, &terms, facts, (head, input))));
            Judging::new(unfinished, terms, of).hold_response(exchange, at);
            true
        }
        AfterHead::Judged(inspection, verdict) => {
            facts.is_replaced(exchange, at, terms, (inspection, verdict))
        }
    }
}

/// The request's inspection, if its response is inspected, and the first bytes of a body that is not known yet to be that of
/// a call. A member may answer while the body still comes; one that rules follow is judged without its response.
fn take_judged(scrutiny: &mut Option<Box<Scrutiny>>) -> Option<(Judged, Option<Vec<u8>>)> {
    let is_of_request = |scrutiny: &Scrutiny| match scrutiny {
        Scrutiny::Following(_) => true,
        Scrutiny::Calling(calling) => calling.terms.unjudged_of(&calling.verdict).is_none(),
        _ => false,
    };
    match *scrutiny.take_if(|it| !is_of_request(it))? {
        Scrutiny::Passing(_, Some(judged)) => Some((*judged, None)),
        Scrutiny::Calling(calling) => {
            let Calling { inspection, terms, verdict, look } = *calling;
            let unjudged = terms.unjudged_of(&verdict)?;
            Some((Judged { inspection, terms, unjudged }, Some(look)))
        }
        _ => None,
    }
}

fn fields<'a>(head: &'a ResponseHead, input: &'a [u8]) -> Vec<(&'a [u8], &'a [u8])> {
    head.fields.iter().map(|field| (field.name.of(input), field.value.of(input))).collect()
}

/// Whether rules read the body of a response.
fn is_looked_at(
    exchange: &Exchange,
    responses: &Responses,
    (head, input): (&ResponseHead, &[u8]),
) -> bool {
    // The request's type says nothing about its response.
    if head.framing.is_empty()
        || exchange.request.method == Method::Head
        || Pace::Steady.with_response(head, input) == Pace::Sparse
    {
        return false;
    }
    let is_plain = values(&head.fields, input, "Content-Encoding")
        .all(|coding| coding.eq_ignore_ascii_case(b"identity"));
    let mut types = values(&head.fields, input, "Content-Type").peekable();
    // Browsers guess the type of a response without one.
    is_plain && (types.peek().is_none() || types.any(|it| responses.look_at(it)))
}

/// A response that is held from its head on.
fn held(
    at: &mut impl Edge,
    terms: &Terms,
    facts: ResponseFacts,
    head: (&ResponseHead, &[u8]),
) -> HeldResponse {
    let body = at.tools().held_room.body(terms.client.map(|client| client.ip()));
    HeldResponse::new(facts, head, body)
}

/// Judges a response behind its head, if rules read none of its body.
fn after_head(
    at: &mut impl Edge,
    terms: &Terms,
    facts: &mut ResponseFacts,
    (inspection, verdict): (Inspection, Verdict),
) -> AfterHead {
    if verdict != Verdict::Pass {
        return AfterHead::Judged(inspection, verdict);
    }
    if facts.is_read {
        // A call has no response whose body is held, so this was none, and its body was not judged.
        if facts.look.take().is_some() {
            if terms.blocks_unjudged() {
                return AfterHead::Judged(inspection, Verdict::Exceeded(Limit::Body));
            }
            facts.unjudged = Some(Limit::Body);
        }
        return AfterHead::Read(inspection);
    }
    match inspection::judge(inspection, Question::ResponseBody, at.tools().elsewhere.turn) {
        Step::Done(inspection, verdict) => AfterHead::Judged(inspection, verdict),
        Step::More(unfinished) => AfterHead::More(unfinished),
    }
}

impl Answering {
    /// Holds the body that arrives.
    fn begin(self, exchange: &mut Exchange) {
        exchange.scrutiny = Some(Box::new(Scrutiny::Answering(Box::new(self))));
        exchange.ends.phase.begin(Begun::Held);
    }

    /// Whether rules get no more than the data so far.
    fn is_enough(&self) -> bool {
        self.response.is_enough(self.terms.response_bytes_max())
    }

    /// Judges the response by its data so far, and forwards it.
    fn judge(self, exchange: &mut Exchange, at: &mut impl Edge) -> Passed {
        let Self { inspection, terms, mut response } = self;
        let (body, bytes_max) = (response.body.shared(), terms.response_bytes_max());
        response.facts.is_read = false;
        let turn = at.tools().elsewhere.turn;
        match judge_unread(inspection, Unread::Response { body, bytes_max }, turn) {
            Step::Done(inspection, verdict) => {
                response.deliver(exchange, at, terms, (inspection, verdict))
            }
            Step::More(unfinished) => response.deliver_later(exchange, at, (unfinished, terms)),
        }
    }
}

/// Holds pieces of a response's body. Judges it when it is complete, or has reached the inspected size.
pub fn hold(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    head: Message,
    (input, pieces): (&[u8], &Pieces),
    end: End<'_>,
) -> Passed {
    // Nothing was written to the buffer.
    at.tools().scratch.give(head);
    let response = exchange.scrutiny.as_deref_mut().and_then(Scrutiny::response_mut);
    let Some(response) = response else { return Passed::Over };
    response.take(pieces.of(input), end);
    let is_enough =
        |it: &mut Box<Scrutiny>| matches!(&**it, Scrutiny::Answering(it) if it.is_enough());
    match exchange.scrutiny.take_if(is_enough).map(|scrutiny| *scrutiny) {
        Some(Scrutiny::Answering(answering)) => answering.judge(exchange, at),
        _ => Passed::On,
    }
}

/// Something has happened for which the response may wait: goes on if there is a verdict, or if it has waited long enough.
pub fn go_on(exchange: &mut Exchange, at: &mut impl Edge) {
    let key = exchange.ends.key;
    let Some(Scrutiny::Judging(judging)) = exchange.scrutiny.as_deref_mut() else { return };
    let found = match judging.look(key, at) {
        Ok(found) => found,
        Err(Wait::Until(until_us)) => return at.delay(&exchange.ends, until_us),
        Err(Wait::Event | Wait::Body) => return,
    };
    let Some(judging) = exchange.scrutiny.take().and_then(|it| it.into_judging()) else { return };
    let Judging { terms, of, .. } = judging;
    let (response, is_head) = match of {
        Of::ResponseHead(response) => (*response, true),
        Of::Response(response) => (*response, false),
        Of::Head(_) | Of::Request(_) | Of::Body { .. } => {
            debug_assert!(false, "a request waits at its stage");
            return;
        }
    };
    let (ends_as, was_held_up) = (exchange.ends.phase.whole(), response.facts.look.is_some());
    let passed = match found {
        Found::Verdict(inspection, verdict) if is_head => {
            head_judged(response, exchange, at, terms, (inspection, verdict))
        }
        Found::Verdict(inspection, verdict) => {
            response.deliver(exchange, at, terms, (inspection, verdict))
        }
        Found::TooLate(ticket) => response.deliver_unjudged(exchange, at, terms, Some(ticket)),
        Found::Nothing => response.deliver_unjudged(exchange, at, terms, None),
    };
    if passed != Passed::Over && exchange.ends.phase.begun() != Some(Begun::Judging) {
        go_on_behind(exchange, at, passed, (ends_as, was_held_up));
    }
}

/// Goes on with a response whose head has waited for its verdict.
fn head_judged(
    mut response: HeldResponse,
    exchange: &mut Exchange,
    at: &mut impl Edge,
    terms: Terms,
    found: (Inspection, Verdict),
) -> Passed {
    match after_head(at, &terms, &mut response.facts, found) {
        AfterHead::Read(inspection) => {
            let answering = Answering { inspection, terms, response };
            if answering.is_enough() {
                return answering.judge(exchange, at);
            }
            answering.begin(exchange);
            Passed::On
        }
        AfterHead::More(unfinished) => response.deliver_later(exchange, at, (unfinished, terms)),
        AfterHead::Judged(inspection, verdict) => {
            response.deliver(exchange, at, terms, (inspection, verdict))
        }
    }
}

/// What was held has gone on: so do member and client. `ends_as`: the whole response has arrived. `was_held_up`: the body of the
/// request has waited, too.
fn go_on_behind(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    passed: Passed,
    (ends_as, was_held_up): (Option<Termination>, bool),
) {
    if let Some(ends_as) = ends_as {
        exchange.ends.phase = Phase::Deliver(Rest { ends_as, unwanted_bytes: 0 });
        return exchange.complete(at, ends_as);
    }
    if passed == Passed::Enough {
        let is_stream = exchange.ends.phase.member_stream().is_some();
        return exchange.response_done(at, is_stream);
    }
    if exchange.pace_response(at) {
        exchange.ends.resume_member(at);
    }
    if was_held_up && !exchange.request.is_whole {
        exchange.request_goes_on(at);
    }
}
