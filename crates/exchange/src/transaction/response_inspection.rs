//! Inspection of responses by the web application firewall.
//!
//! The head is judged when it arrives. A body of an inspected type is held until it is complete or has reached the
//! inspected size, and judged; then it is forwarded. Event streams, gRPC calls and encoded bodies are not held. An inspection that
//! takes more than a turn goes on elsewhere ([`verdict_waits`]): meanwhile the response is held, and its member is not read.

use weir_config::snapshot::Responses;
use weir_http::fields::values;
use weir_http::message::{Method, ResponseHead, Version};
use weir_waf::inspection::{
    self, Inspection, Limit, Question, Step, UnreadBody, Verdict, judge_unread,
};

use crate::edge::Edge;
use crate::parts::end::End;
use crate::parts::held_response::{HeldResponse, ResponseFacts};
use crate::parts::inspection::{
    ExchangeInspection, GrpcCallCheck, InspectedPart, InspectionState, LongInspection,
    PassedInspection, ResponseInspection, Terms,
};
use crate::parts::pace::Pace;
use crate::parts::phase::Begun;
use crate::parts::stages::Wait;
use crate::parts::transaction_ends::TransactionEnds;
use crate::transaction::inspection_results::AfterHead;
use crate::transaction::response_verdict::DeliveryDecision;
use crate::transaction::verdict_waits::{self, OffloadResult};

impl ExchangeInspection {
    /// Judges the head of a response.
    pub fn begin_response(
        &mut self,
        at: &mut impl Edge,
        (ends, method): (&TransactionEnds, Method),
        (head, input): (&ResponseHead, &[u8]),
    ) -> DeliveryDecision<()> {
        let Some((judged, look)) = self.take_passed() else {
            return DeliveryDecision::Forward(());
        };
        let PassedInspection { mut inspection, terms, unjudged } = judged;
        let Some(responses) = &terms.waf.responses else { return DeliveryDecision::Forward(()) };
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
        let turn = at.tools().offloaded.turn;
        let found = match inspection::judge(inspection, Question::ResponseHead, turn) {
            Step::Done(inspection, verdict) => (inspection, verdict),
            Step::More(unfinished) => {
                let of =
                    InspectedPart::ResponseHead(Box::new(held(at, &terms, facts, (head, input))));
                return LongInspection::new(unfinished, terms, of).hold_response(self, at, ends);
            }
        };
        match after_head(at, &terms, &mut facts, found) {
            AfterHead::Read(inspection) => {
                let response = held(at, &terms, facts, (head, input));
                ResponseInspection { inspection, terms, response }.begin(self)
            }
            AfterHead::More(unfinished) if facts.need_no_verdict(&terms) => {
                let limit = facts.limit();
                verdict_waits::continue_without_verdict(
                    ends,
                    at,
                    (unfinished, terms),
                    limit,
                    Vec::new(),
                );
                DeliveryDecision::Forward(())
            }
            AfterHead::More(unfinished) => {
                let of = InspectedPart::Response(Box::new(held(at, &terms, facts, (head, input))));
                LongInspection::new(unfinished, terms, of).hold_response(self, at, ends)
            }
            AfterHead::Judged(inspection, verdict) => {
                let of = (&*ends.server, terms);
                match facts.settle(self, at, of, (inspection, verdict)) {
                    Some(block) => DeliveryDecision::Block(block),
                    None => DeliveryDecision::Forward(()),
                }
            }
        }
    }

    /// The request's inspection, if its response is inspected, and the first bytes of a body that is not known yet to be that of
    /// a call. A member may answer while the body still comes; one that rules follow is judged without its response.
    fn take_passed(&mut self) -> Option<(PassedInspection, Option<Vec<u8>>)> {
        let is_of_request = |state: &InspectionState| match state {
            InspectionState::Following(_) => true,
            InspectionState::Calling(calling) => {
                calling.terms.unjudged_of(&calling.verdict).is_none()
            }
            _ => false,
        };
        match self.take_if(|it| !is_of_request(it))? {
            InspectionState::Passing(_, Some(judged)) => Some((*judged, None)),
            InspectionState::Calling(calling) => {
                let GrpcCallCheck { inspection, terms, verdict, look } = *calling;
                let unjudged = terms.unjudged_of(&verdict)?;
                Some((PassedInspection { inspection, terms, unjudged }, Some(look)))
            }
            _ => None,
        }
    }

    /// Holds pieces of a response's body. Judges it when it is complete, or has reached the inspected size. `None`: nothing is held.
    pub fn hold_response<'a>(
        &mut self,
        at: &mut impl Edge,
        ends: &TransactionEnds,
        data: impl Iterator<Item = &'a [u8]>,
        end: End<'_>,
    ) -> Option<DeliveryDecision<HeldResponse>> {
        self.state_mut()?.response_mut()?.take(data, end);
        let is_enough =
            |it: &InspectionState| matches!(it, InspectionState::Answering(it) if it.is_enough());
        match self.take_if(is_enough) {
            Some(InspectionState::Answering(answering)) => Some(answering.judge(self, at, ends)),
            _ => ends.phase.begun().map(DeliveryDecision::Hold),
        }
    }

    /// Looks for the verdict on a response. `None`: it waits.
    pub fn look_for_response(
        &mut self,
        at: &mut impl Edge,
        ends: &TransactionEnds,
    ) -> Option<DeliveryDecision<HeldResponse>> {
        let Some(InspectionState::Judging(judging)) = self.state_mut() else {
            return None;
        };
        let found = match judging.look(ends.key, at) {
            Ok(found) => found,
            Err(Wait::Until(until_us)) => {
                at.delay(ends, until_us);
                return None;
            }
            Err(Wait::Event | Wait::Body) => return None,
        };
        let LongInspection { terms, of, .. } = self.take()?.into_judging()?;
        let (response, is_head) = match of {
            InspectedPart::ResponseHead(response) => (*response, true),
            InspectedPart::Response(response) => (*response, false),
            InspectedPart::Head(_) | InspectedPart::Request(_) | InspectedPart::Body { .. } => {
                debug_assert!(false, "a request waits at its stage");
                return None;
            }
        };
        Some(match found {
            OffloadResult::Verdict(inspection, verdict) if is_head => {
                self.apply_verdict_on_head(at, response, (ends, terms), (inspection, verdict))
            }
            OffloadResult::Verdict(inspection, verdict) => {
                response.judged(self, at, (&ends.server, terms), (inspection, verdict))
            }
            OffloadResult::TooLate(ticket) => response.unjudged(at, ends, terms, Some(ticket)),
            OffloadResult::Nothing => response.unjudged(at, ends, terms, None),
        })
    }

    /// Goes on with a response whose head has waited for its verdict.
    fn apply_verdict_on_head(
        &mut self,
        at: &mut impl Edge,
        mut response: HeldResponse,
        (ends, terms): (&TransactionEnds, Terms),
        found: (Inspection, Verdict),
    ) -> DeliveryDecision<HeldResponse> {
        match after_head(at, &terms, &mut response.facts, found) {
            AfterHead::Read(inspection) => {
                let answering = ResponseInspection { inspection, terms, response };
                match answering.is_enough() {
                    true => answering.judge(self, at, ends),
                    false => answering.begin(self),
                }
            }
            AfterHead::More(unfinished) => {
                response.judged_later(self, at, ends, (unfinished, terms))
            }
            AfterHead::Judged(inspection, verdict) => {
                response.judged(self, at, (&ends.server, terms), (inspection, verdict))
            }
        }
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
    match inspection::judge(inspection, Question::ResponseBody, at.tools().offloaded.turn) {
        Step::Done(inspection, verdict) => AfterHead::Judged(inspection, verdict),
        Step::More(unfinished) => AfterHead::More(unfinished),
    }
}

impl ResponseInspection {
    /// Holds the body that arrives.
    fn begin<T>(self, exchange_inspection: &mut ExchangeInspection) -> DeliveryDecision<T> {
        exchange_inspection.set(InspectionState::Answering(Box::new(self)));
        DeliveryDecision::Hold(Begun::Held)
    }

    /// Whether rules get no more than the data so far.
    fn is_enough(&self) -> bool {
        self.response.is_enough(self.terms.response_bytes_max())
    }

    /// Judges the response by its data so far.
    fn judge(
        self,
        exchange_inspection: &mut ExchangeInspection,
        at: &mut impl Edge,
        ends: &TransactionEnds,
    ) -> DeliveryDecision<HeldResponse> {
        let Self { inspection, terms, mut response } = self;
        let (body, bytes_max) = (response.body.shared(), terms.response_bytes_max());
        response.facts.is_read = false;
        let turn = at.tools().offloaded.turn;
        match judge_unread(inspection, UnreadBody::Response { body, bytes_max }, turn) {
            Step::Done(inspection, verdict) => response.judged(
                exchange_inspection,
                at,
                (&ends.server, terms),
                (inspection, verdict),
            ),
            Step::More(unfinished) => {
                response.judged_later(exchange_inspection, at, ends, (unfinished, terms))
            }
        }
    }
}
