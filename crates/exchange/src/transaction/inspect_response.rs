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
use crate::parts::ends::Ends;
use crate::parts::held_response::{HeldResponse, ResponseFacts};
use crate::parts::inspecting::{Answering, Calling, Judged, Judging, Of, Scrutiny, Terms};
use crate::parts::pace::Pace;
use crate::parts::phase::{Begun, Phase, Rest};
use crate::parts::stages::Wait;
use crate::transaction::awaiting::{self, Found};
use crate::transaction::concluding::AfterHead;
use crate::transaction::delivering::{Fate, deliver};
use crate::transaction::exchange::{Exchange, is_held_up};
use crate::transaction::sending::Passed;

/// Judges the head of a response.
pub fn begin(
    scrutiny: &mut Option<Box<Scrutiny>>,
    at: &mut impl Edge,
    (ends, method): (&Ends, Method),
    (head, input): (&ResponseHead, &[u8]),
) -> Fate<()> {
    let Some((judged, look)) = take_judged(scrutiny) else { return Fate::Forward(()) };
    let Judged { mut inspection, terms, unjudged } = judged;
    let Some(responses) = &terms.waf.responses else { return Fate::Forward(()) };
    let is_read = terms.waf.common.view().looks_at_response_bodies()
        && is_looked_at(method, responses, (head, input));
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
            return Judging::new(unfinished, terms, of).hold_response(scrutiny, at, ends);
        }
    };
    match after_head(at, &terms, &mut facts, found) {
        AfterHead::Read(inspection) => {
            let response = held(at, &terms, facts, (head, input));
            Answering { inspection, terms, response }.begin(scrutiny)
        }
        AfterHead::More(unfinished) if facts.need_no_verdict(&terms) => {
            let limit = facts.limit();
            awaiting::go_on_without(ends, at, (unfinished, terms), limit, Vec::new());
            Fate::Forward(())
        }
        AfterHead::More(unfinished) => {
            let of = Of::Response(Box::new(held(at, &terms, facts, (head, input))));
            Judging::new(unfinished, terms, of).hold_response(scrutiny, at, ends)
        }
        AfterHead::Judged(inspection, verdict) => {
            let of = (&*ends.server, terms);
            match facts.settle(scrutiny, at, of, (inspection, verdict)) {
                Some(block) => Fate::Block(block),
                None => Fate::Forward(()),
            }
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
    method: Method,
    responses: &Responses,
    (head, input): (&ResponseHead, &[u8]),
) -> bool {
    // The request's type says nothing about its response.
    if head.framing.is_empty()
        || method == Method::Head
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
    fn begin<T>(self, scrutiny: &mut Option<Box<Scrutiny>>) -> Fate<T> {
        *scrutiny = Some(Box::new(Scrutiny::Answering(Box::new(self))));
        Fate::Hold(Begun::Held)
    }

    /// Whether rules get no more than the data so far.
    fn is_enough(&self) -> bool {
        self.response.is_enough(self.terms.response_bytes_max())
    }

    /// Judges the response by its data so far.
    fn judge(
        self,
        scrutiny: &mut Option<Box<Scrutiny>>,
        at: &mut impl Edge,
        ends: &Ends,
    ) -> Fate<HeldResponse> {
        let Self { inspection, terms, mut response } = self;
        let (body, bytes_max) = (response.body.shared(), terms.response_bytes_max());
        response.facts.is_read = false;
        let turn = at.tools().elsewhere.turn;
        match judge_unread(inspection, Unread::Response { body, bytes_max }, turn) {
            Step::Done(inspection, verdict) => {
                response.judged(scrutiny, at, (&ends.server, terms), (inspection, verdict))
            }
            Step::More(unfinished) => {
                response.judged_later(scrutiny, at, ends, (unfinished, terms))
            }
        }
    }
}

/// Holds pieces of a response's body. Judges it when it is complete, or has reached the inspected size. `None`: nothing is held.
pub fn hold<'a>(
    scrutiny: &mut Option<Box<Scrutiny>>,
    at: &mut impl Edge,
    ends: &Ends,
    data: impl Iterator<Item = &'a [u8]>,
    end: End<'_>,
) -> Option<Fate<HeldResponse>> {
    scrutiny.as_deref_mut()?.response_mut()?.take(data, end);
    let is_enough =
        |it: &mut Box<Scrutiny>| matches!(&**it, Scrutiny::Answering(it) if it.is_enough());
    match scrutiny.take_if(is_enough).map(|it| *it) {
        Some(Scrutiny::Answering(answering)) => Some(answering.judge(scrutiny, at, ends)),
        _ => ends.phase.begun().map(Fate::Hold),
    }
}

/// Something has happened for which the response may wait: goes on if there is a verdict, or if it has waited long enough. What was
/// held has gone on then, so do member and client.
pub fn go_on(exchange: &mut Exchange, at: &mut impl Edge) {
    let (ends_as, was_held_up) = (exchange.ends.phase.whole(), is_held_up(exchange));
    let Some(fate) = look(&mut exchange.scrutiny, at, &exchange.ends) else { return };
    let passed = deliver(exchange, at, fate);
    if passed == Passed::Over {
        return;
    }
    if exchange.ends.phase.begun() != Some(Begun::Judging) {
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
    }
    if was_held_up && !is_held_up(exchange) && !exchange.request.is_whole() {
        // The body of the request has waited, too. What has arrived of it comes before what arrives next, also while the body of
        // the response is judged.
        exchange.request_goes_on(at);
    }
}

/// Looks for the verdict on a response. `None`: it waits.
fn look(
    scrutiny: &mut Option<Box<Scrutiny>>,
    at: &mut impl Edge,
    ends: &Ends,
) -> Option<Fate<HeldResponse>> {
    let Some(Scrutiny::Judging(judging)) = scrutiny.as_deref_mut() else { return None };
    let found = match judging.look(ends.key, at) {
        Ok(found) => found,
        Err(Wait::Until(until_us)) => {
            at.delay(ends, until_us);
            return None;
        }
        Err(Wait::Event | Wait::Body) => return None,
    };
    let Judging { terms, of, .. } = scrutiny.take()?.into_judging()?;
    let (response, is_head) = match of {
        Of::ResponseHead(response) => (*response, true),
        Of::Response(response) => (*response, false),
        Of::Head(_) | Of::Request(_) | Of::Body { .. } => {
            debug_assert!(false, "a request waits at its stage");
            return None;
        }
    };
    Some(match found {
        Found::Verdict(inspection, verdict) if is_head => {
            head_judged(response, scrutiny, at, (ends, terms), (inspection, verdict))
        }
        Found::Verdict(inspection, verdict) => {
            response.judged(scrutiny, at, (&ends.server, terms), (inspection, verdict))
        }
        Found::TooLate(ticket) => response.unjudged(at, ends, terms, Some(ticket)),
        Found::Nothing => response.unjudged(at, ends, terms, None),
    })
}

/// Goes on with a response whose head has waited for its verdict.
fn head_judged(
    mut response: HeldResponse,
    scrutiny: &mut Option<Box<Scrutiny>>,
    at: &mut impl Edge,
    (ends, terms): (&Ends, Terms),
    found: (Inspection, Verdict),
) -> Fate<HeldResponse> {
    match after_head(at, &terms, &mut response.facts, found) {
        AfterHead::Read(inspection) => {
            let answering = Answering { inspection, terms, response };
            match answering.is_enough() {
                true => answering.judge(scrutiny, at, ends),
                false => answering.begin(scrutiny),
            }
        }
        AfterHead::More(unfinished) => {
            response.judged_later(scrutiny, at, ends, (unfinished, terms))
        }
        AfterHead::Judged(inspection, verdict) => {
            response.judged(scrutiny, at, (&ends.server, terms), (inspection, verdict))
        }
    }
}
