//! Inspection of responses by the web application firewall.
//!
//! The head is judged when it arrives. A body of an inspected type is held until it is complete or has reached the
//! inspected size, and judged; then it is forwarded. Event streams, gRPC calls and encoded bodies are not held.

use weir_config::snapshot::Responses;
use weir_http::fields::values;
use weir_http::message::{Field, Framing, Method, ResponseHead, Version};
use weir_waf::inspection::{self, Limit, Verdict};

use crate::edge::Edge;
use crate::parts::end::End;
use crate::parts::inspecting::{Answering, Block, Calling, Judged, Scrutiny, after_request};
use crate::parts::messages::Message;
use crate::parts::pace::Pace;
use crate::parts::pieces::Pieces;
use crate::transaction::beginning::begin_judged;
use crate::transaction::concluding::{answer_blocked, conclude};
use crate::transaction::exchange::{Exchange, Phase};
use crate::transaction::sending::{Passed, send_judged};

/// Judges the head of a response. Returns true if nothing more is to do now: the body is held, or the response was
/// replaced by an answer.
pub fn begin(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    (head, input): (&ResponseHead, &[u8]),
) -> bool {
    let Some((judged, look)) = take_judged(exchange) else { return false };
    let Judged { mut inspection, terms, mut unjudged } = judged;
    let Some(responses) = &terms.waf.responses else { return false };
    let is_held = terms.waf.common.view().looks_at_response_bodies()
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
    let mut verdict = inspection.response_headers();
    // A call has no response whose body is held, so this was none, and its body was not judged.
    if is_held && look.is_some() && verdict == Verdict::Pass {
        match terms.blocks_unjudged() {
            true => verdict = Verdict::Exceeded(Limit::Body),
            false => unjudged = Some(Limit::Body),
        }
    }
    if verdict == Verdict::Pass && is_held {
        let client = terms.client.map(|client| client.ip());
        let body = at.tools().held_room.body(client);
        let judged = Judged { inspection, terms, unjudged };
        let (head, text) = (head.clone(), input.to_vec());
        let answering = Answering { judged, head, text, body };
        exchange.scrutiny = Some(Box::new(Scrutiny::Answering(Box::new(answering))));
        exchange.phase = Phase::Collect;
        return true;
    }
    if verdict == Verdict::Pass {
        verdict = inspection.response_body();
    }
    let verdict = after_request(verdict, unjudged);
    if let Some(look) = look
        && Block::of(&verdict, terms.blocks_unjudged()).is_none()
    {
        let calling = Calling { inspection, terms, verdict, look };
        exchange.scrutiny = Some(Box::new(Scrutiny::Calling(Box::new(calling))));
        return false;
    }
    let block = conclude(at, &exchange.ends.server, &terms, inspection, verdict);
    if let Some(block) = &block {
        exchange.ends.drop_member(at);
        answer_blocked(exchange, at, block);
    }
    block.is_some()
}

/// The request's inspection, if its response is inspected, and the first bytes of a body that is not known yet to be that of
/// a call. A member may answer while the body still comes; one that rules follow is judged without its response.
fn take_judged(exchange: &mut Exchange) -> Option<(Judged, Option<Vec<u8>>)> {
    let is_of_request = |scrutiny: &Scrutiny| match scrutiny {
        Scrutiny::Following(_) => true,
        Scrutiny::Calling(calling) => calling.terms.unjudged_of(&calling.verdict).is_none(),
        _ => false,
    };
    match *exchange.scrutiny.take_if(|it| !is_of_request(it))? {
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

/// Whether the body of a response is held.
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
    let Some(Scrutiny::Answering(answering)) = exchange.scrutiny.as_deref_mut() else {
        return Passed::Over;
    };
    let mut has_room = true;
    for piece in pieces.of(input) {
        has_room &= answering.body.push(piece);
    }
    let bytes_max = answering.judged.terms.waf.responses.as_ref().map_or(0, |it| it.bytes_max);
    let is_whole = !matches!(end, End::No);
    if has_room && !is_whole && answering.body.bytes().len() < bytes_max {
        return Passed::On;
    }
    judge(exchange, at, has_room, end)
}

/// Judges a response by its data so far, and forwards it.
fn judge(exchange: &mut Exchange, at: &mut impl Edge, has_room: bool, end: End<'_>) -> Passed {
    let scrutiny = exchange.scrutiny.take().map(|scrutiny| *scrutiny);
    let Some(Scrutiny::Answering(answering)) = scrutiny else { return Passed::Over };
    let Answering { judged, mut head, text, body } = *answering;
    let Judged { mut inspection, terms, unjudged } = judged;
    let bytes_max = terms.waf.responses.as_ref().map_or(0, |it| it.bytes_max);
    let seen = body.bytes();
    inspection.response_content(&seen[..seen.len().min(bytes_max)]);
    let verdict = match inspection.response_body() {
        Verdict::Pass if !has_room => Verdict::Exceeded(Limit::Memory),
        verdict => verdict,
    };
    let verdict = after_request(verdict, unjudged);
    if let Some(block) = conclude(at, &exchange.ends.server, &terms, inspection, verdict) {
        exchange.ends.drop_member(at);
        answer_blocked(exchange, at, &block);
        return Passed::Over;
    }
    // A response of known length is compressed as a whole.
    let is_whole = !matches!(end, End::No);
    let begins_with = match head.framing {
        Framing::Length(_) if is_whole => seen,
        _ => &b""[..],
    };
    let message = begin_judged(exchange, at, &mut head, (&text, begins_with));
    if exchange.phase != Phase::Respond {
        // A rule has answered instead of the member.
        at.tools().scratch.give(message);
        return Passed::Over;
    }
    let pieces = if is_whole { Pieces::whole(seen.len()) } else { Pieces::part(seen.len()) };
    let End::Trailers(fields, text) = end else {
        return send_judged(exchange, at, message, (seen, &pieces), end);
    };
    // When the trailers came, the changes to the head were not known yet.
    let edits = exchange.response_trailers();
    let passing = fields.iter().filter(|field| edits.let_pass(field.name.of(text)));
    let fields: Vec<Field> = passing.cloned().collect();
    send_judged(exchange, at, message, (seen, &pieces), End::Trailers(&fields, text))
}
