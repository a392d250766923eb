//! Distributed tracing: the trace context of a request, the fields sent to members, and the record of attempts.
//!
//! | event | action |
//! |---|---|
//! | policies have decided | [`begin`]: the trace of a trusted client is continued, or a new one begins; `traceparent` for the member |
//! | an attempt has failed, or is repeated by its status | [`note_failed`], [`note_repeated`]; [`begin_attempt_span`] gives the next attempt a span of its own |
//! | weir makes a request itself | [`child`] |
//! | a transaction ends | [`report`] |
//!
//! A request that is not sampled has trace and span ids, but no record.
//! The head for the member is written before the number of attempts is known, so a retry replaces the span's id in that head.

use std::rc::Rc;

use weir_config::snapshot::Tracing;
use weir_core::policy::Decision;
use weir_http::edits::FieldEdits;
use weir_http::message::{RequestHead, Version};
use weir_http::trace_context::{NAME, SAMPLED, STATE_NAME, TraceParent};

use crate::edge::Edge;
use crate::local::client_address::named;
use crate::parts::arrival::Arrival;
use crate::parts::failure::MemberFailure;
use crate::parts::notice::Notice;
use crate::parts::request::Request;
use crate::parts::request_context::RequestContext;
use crate::parts::request_trace::{FinishedAttempt, Kind, Record, RequestTrace, TEXT_BYTES_MAX};
use crate::parts::tools::Tools;
use crate::parts::transaction_ends::TransactionEnds;
use crate::termination::Termination;

/// Begins or continues the trace of a request, and sets the fields for its member.
pub fn begin(
    settings: &Tracing,
    arrival: &Arrival<'_>,
    decision: &mut Decision,
    tools: &Tools,
) -> RequestTrace {
    let is_trusted = arrival.peer().is_some_and(|peer| settings.trust.contains(peer.ip()));
    let (fields, input) = (&arrival.head.fields, arrival.input);
    let parent = is_trusted.then(|| TraceParent::among(fields, input)).flatten();
    let trace_id = parent.map_or_else(|| new_trace_id(tools), |parent| parent.trace_id);
    let is_sampled =
        parent.map_or_else(|| settings.samples(trace_id), |parent| parent.is_sampled());
    let span_id = new_span_id(tools);
    let traced = RequestTrace {
        trace_id,
        span_id,
        parent_id: parent.map_or(0, |parent| parent.span_id),
        flags: parent.map_or(0, |parent| parent.flags & !SAMPLED) | u8::from(is_sampled),
        told_id: if is_sampled { new_span_id(tools) } else { span_id },
        keeps_state: parent.is_some(),
        record: is_sampled.then(|| record_of(arrival, parent.is_some())),
    };
    traced.tell_member(&mut decision.request.fields);
    traced
}

impl RequestTrace {
    /// Sets the trace fields of the request head for a member.
    pub fn tell_member(&self, fields: &mut FieldEdits) {
        fields.set(NAME, |out| out.extend_from_slice(&self.told().value()));
        if !self.keeps_state {
            fields.remove(STATE_NAME);
        }
    }
}

/// Creates the record of a client's request.
fn record_of(arrival: &Arrival<'_>, keeps_state: bool) -> Box<Record> {
    let (head, input) = (arrival.head, arrival.input);
    let first = |name| named(&head.fields, input, name).next().unwrap_or_default();
    let mut state = Vec::new();
    for value in named(&head.fields, input, STATE_NAME).filter(|_| keeps_state) {
        if !state.is_empty() {
            state.push(b',');
        }
        state.extend_from_slice(value);
    }
    let mut record = of_head(Kind::Client, head, input);
    record.user_agent = clipped(first(b"user-agent"));
    // A truncated value would have another meaning.
    record.state = if state.len() > TEXT_BYTES_MAX { Box::default() } else { state.into() };
    record.is_secure = arrival.tls().is_some();
    record.client = arrival.client();
    record.peer = arrival.peer();
    record.listen = arrival.from.as_ref().and_then(|from| from.listen);
    record
}

fn of_head(kind: Kind, head: &RequestHead, input: &[u8]) -> Box<Record> {
    Box::new(Record {
        kind,
        method: clipped(head.method_text.of(input)),
        target: clipped(head.target.of(input)),
        host: clipped(head.authority(input)),
        user_agent: Box::default(),
        state: Box::default(),
        version: head.version,
        is_secure: false,
        client: None,
        peer: None,
        listen: None,
        attempts: Vec::new(),
        member_status: 0,
        closed: (0, 0),
    })
}

fn clipped(text: &[u8]) -> Box<[u8]> {
    text[..text.len().min(TEXT_BYTES_MAX)].into()
}

fn new_trace_id(tools: &Tools) -> u128 {
    let mut bytes = [0; 16];
    (tools.sources.fill_randomly)(&mut bytes);
    u128::from_le_bytes(bytes).max(1)
}

fn new_span_id(tools: &Tools) -> u64 {
    let mut bytes = [0; 8];
    (tools.sources.fill_randomly)(&mut bytes);
    u64::from_le_bytes(bytes).max(1)
}

/// The trace context of a request that weir makes because of another one; `None`: that one is not traced.
pub fn child(
    context: Option<&RequestContext>,
    tools: &Tools,
    kind: Kind,
) -> Option<Box<RequestTrace>> {
    let parent = context?.traced.as_deref()?;
    let record = parent.record.is_some().then(|| of_head(kind, &RequestHead::new(), b""));
    Some(Box::new(RequestTrace {
        told_id: if record.is_some() { new_span_id(tools) } else { parent.span_id },
        record,
        ..*parent
    }))
}

/// Completes the trace context with the head of a request that weir makes itself.
pub fn remember(
    tools: &mut Tools,
    traced: Option<Box<RequestTrace>>,
    (head, input): (&RequestHead, &[u8]),
) -> Option<Box<RequestContext>> {
    let mut traced = traced?;
    if let Some(record) = &mut traced.record {
        *record = of_head(record.kind, head, input);
        record.version = Version::Http11;
    }
    let mut context = tools.take_remembered();
    context.traced = Some(traced);
    Some(context)
}

fn record_mut(ends: &mut TransactionEnds) -> Option<&mut Record> {
    ends.context.as_deref_mut()?.traced.as_deref_mut()?.record.as_deref_mut()
}

/// Records the status from the member of the current attempt.
pub fn note_member_status(ends: &mut TransactionEnds, status: u16) {
    if let Some(record) = record_mut(ends) {
        record.member_status = status;
    }
}

/// Records that the current attempt failed. `is_sent`: part of the request may have reached the member.
#[cold]
pub fn note_failed(
    ends: &mut TransactionEnds,
    at: &mut impl Edge,
    failure: MemberFailure,
    is_sent: bool,
) {
    close_attempt(ends, at, Some(failure), is_sent);
}

/// Records that the member's response is dropped because the request is repeated.
#[cold]
pub fn note_repeated(ends: &mut TransactionEnds, at: &mut impl Edge, status: u16) {
    note_member_status(ends, status);
    close_attempt(ends, at, None, true);
}

fn close_attempt(
    ends: &mut TransactionEnds,
    at: &mut impl Edge,
    failure: Option<MemberFailure>,
    is_sent: bool,
) {
    let traced = ends.context.as_deref().and_then(|it| it.traced.as_deref());
    let now_us = at.turn().now_us();
    let Some(attempted) = traced.and_then(|traced| attempted(ends, traced, now_us, failure)) else {
        return;
    };
    // A member that received nothing does not know this span, so the next member may get it.
    let span_id = if is_sent { attempted.span_id } else { new_span_id(at.tools()) };
    let closed = (ends.account.times.try_us, ends.tries.count);
    if let Some(record) = record_mut(ends) {
        record.attempts.push(FinishedAttempt { span_id, ..attempted });
        (record.member_status, record.closed) = (0, closed);
    }
}

/// The current attempt, as if it ended now; `None`: there is none, or it is not recorded.
pub fn attempted(
    ends: &TransactionEnds,
    traced: &RequestTrace,
    now_us: u64,
    failure: Option<MemberFailure>,
) -> Option<FinishedAttempt> {
    let record = traced.record.as_deref()?;
    let times = &ends.account.times;
    if times.try_us == 0 || record.closed == (times.try_us, ends.tries.count) {
        return None;
    }
    Some(FinishedAttempt {
        span_id: traced.told_id,
        pool: Rc::clone(&ends.tries.pool),
        member: Rc::clone(ends.account.last_member.as_ref()?),
        begun_us: times.try_us,
        connected_us: times.connected_us,
        first_byte_us: times.first_byte_us,
        ended_us: now_us,
        status: record.member_status,
        failure,
    })
}

/// Gives the next attempt a span of its own, and updates `traceparent` in the request head.
#[cold]
pub fn begin_attempt_span(
    context: Option<&mut RequestContext>,
    at: &mut impl Edge,
    request: &mut Request,
) {
    let traced = context.and_then(|it| it.traced.as_deref_mut());
    let Some(traced) = traced.filter(|traced| traced.record.is_some()) else { return };
    let before = traced.told().value();
    traced.told_id = new_span_id(at.tools());
    request.replace_in_head(&before, &traced.told().value());
}

/// Reports the spans of a finished transaction.
pub fn report(
    ends: &TransactionEnds,
    at: &mut impl Edge,
    context: &RequestContext,
    why: Termination,
) {
    let traced = context.traced.as_deref();
    if let Some(record) = traced.and_then(|traced| traced.record.as_deref())
        && let Some(traced) = traced
    {
        at.tell(Notice::Traced { ends, context, traced, record, why });
    }
}
