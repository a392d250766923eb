//! Authorisation services (`type: external`). The request waits for their answers; no decision about
//! it takes effect before it is allowed.

use std::rc::Rc;
use std::sync::Arc;

use weir_core::expression::{Evaluation, Facts};
use weir_core::policy::subrequest::external::{External, ServiceVerdict, named};
use weir_core::policy::{Decision, Subrequest};
use weir_http::edits::{FieldEdits, RequestEdits};

use crate::arena::ExchangeKey;
use crate::edge::{Edge, Turn};
use crate::local::client_address::scheme_of;
use crate::local::forms::Forms;
use crate::local::table::LocalServer;
use crate::local::traffic::Traffic;
use crate::parts::arrival::Arrival;
use crate::parts::deferred_work::{DeferredWork, SubrequestOrder};
use crate::parts::reply::Reply;
use crate::parts::request::Request;
use crate::parts::request_context::RequestContext;
use crate::parts::request_trace::Kind;
use crate::parts::stage_result::StageResult;
use crate::parts::stage_work::{AuthorisationQuery, Progress};
use crate::parts::stages::Wait;
use crate::parts::weir_response::WeirResponse;
use crate::termination::Termination;
use crate::transaction::exchange::Exchange;
use crate::transaction::tracing::child;

/// The interval at which a request that waits for a service checks the time. It also bounds the number of leftover
/// timers.
const LOOK_US: u64 = 1_000_000;

/// Lists the services to ask about a request, the last one first. Removes fields of the client that only services may
/// set.
pub fn prepare(
    at: &mut impl Edge,
    (traffic, arrival): (&Traffic, &Arrival<'_>),
    (facts, evaluation): (&Facts<'_>, &mut Evaluation<'_>),
    decision: &mut Decision,
) -> Vec<AuthorisationQuery> {
    let (now, mut scratch) = (at.turn().clock, at.tools().scratch.take());
    let scheme = scheme_of(arrival.client_address(), arrival.peer(), facts);
    let Decision { subrequests, request, .. } = decision;
    let asked = subrequests.iter().rev().filter_map(|subrequest| {
        let Subrequest::Authorise(service) = subrequest else { return None };
        service.added.iter().for_each(|name| request.fields.remove(name.as_bytes()));
        let (pool, preference) =
            traffic.beside(service.pool as usize, (facts, &mut *evaluation), now, &mut scratch);
        let mut text = Vec::new();
        service.write(facts, scheme, &mut text);
        Some(AuthorisationQuery {
            service: Arc::clone(service),
            pool,
            preference,
            begun_us: 0,
            look_us: 0,
            is_of_entry: false,
            progress: Progress::Unasked(text),
        })
    });
    let asked = asked.collect();
    at.tools().scratch.give(scratch);
    asked
}

/// Asks the services, one after another. Waits for the reply of each; the request is over if one refuses it. `forms`: those of the
/// head of the request.
pub fn pass(
    context: Option<&mut RequestContext>,
    at: &mut impl Edge,
    (key, server): (ExchangeKey, &Rc<LocalServer>),
    (request, forms): (&mut Request, Forms),
) -> StageResult {
    let Some(context) = context else { return StageResult::On };
    let now_us = at.turn().now_us();
    while let Some(asking) = query(context) {
        let timeout_us = asking.service.timeout_ms * 1_000;
        let by_us = asking.begun_us + timeout_us;
        let reply = match &mut asking.progress {
            Progress::Unasked(text) => {
                let (text, pool) = (std::mem::take(text), Rc::clone(&asking.pool));
                let preference = asking.preference;
                let action = Subrequest::Authorise(Arc::clone(&asking.service));
                let server = Rc::clone(server);
                asking.progress = Progress::Asked(None);
                asking.begun_us = now_us;
                let by_us = now_us + timeout_us;
                asking.look_us = by_us.min(now_us + LOOK_US);
                let look_us = asking.look_us;
                let traced = child(Some(context), at.tools(), Kind::Own("authorisation"));
                let (parent, body) = (Some(key), None);
                let edits = RequestEdits::default();
                let order = SubrequestOrder {
                    action,
                    parent,
                    server,
                    pool,
                    preference,
                    text,
                    body,
                    edits,
                    traced,
                };
                at.tools().deferred_work.push(DeferredWork::Begin(Box::new(order)));
                return StageResult::Wait(Wait::Until(look_us));
            }
            Progress::Asked(_) if now_us < by_us => {
                if now_us < asking.look_us {
                    return StageResult::Wait(Wait::Event);
                }
                asking.look_us = by_us.min(now_us + LOOK_US);
                return StageResult::Wait(Wait::Until(asking.look_us));
            }
            Progress::Asked(child) => {
                let child = child.take();
                at.tools()
                    .deferred_work
                    .extend(child.map(|child| DeferredWork::Leave { child, is_late: true }));
                None
            }
            Progress::Answered(reply) => reply.take(),
        };
        match settle(context, at.turn(), server, (&mut *request, forms), reply) {
            StageResult::On => {}
            refusal => return refusal,
        }
    }
    StageResult::On
}

/// Applies a service's response to a request.
fn settle(
    context: &mut RequestContext,
    turn: Turn,
    server: &LocalServer,
    (request, forms): (&mut Request, Forms),
    reply: Option<Box<Reply>>,
) -> StageResult {
    let Some(asking) = query(context) else { return StageResult::On };
    let (service, begun_us) = (Arc::clone(&asking.service), asking.begun_us);
    let counters = &server.counters;
    counters.authorisation_duration.record(turn.now_us() - begun_us);
    let judgement = reply.as_deref().map(|reply| service.judge(&reply.head, &reply.text));
    match (judgement, reply) {
        (Some(ServiceVerdict::LetIn), Some(reply)) => {
            counters.authorisations_allowed.add(1);
            let fields = service.added.iter().flat_map(|name| {
                let values = named(&reply.head, &reply.text, name);
                values.map(|value| (name.as_bytes(), value))
            });
            request.add_fields(forms, fields);
            let_in(context, service.user(&reply.head, &reply.text), None);
            StageResult::On
        }
        (Some(ServiceVerdict::Denied), Some(reply)) => {
            counters.authorisations_denied.add(1);
            let mark = format!("authenticate {}: denied with {}", service.name, reply.head.status);
            StageResult::Refuse { mark, response: denial(server, &service, *reply) }
        }
        (_, reply) => {
            counters.authorisations_failed.add(1);
            let why = match reply {
                Some(reply) => format!("the service answers {}", reply.head.status),
                None => "the service has not answered".to_owned(),
            };
            if service.lets_in_on_error {
                let mark = format!("authenticate {}: let in, {why}", service.name);
                let_in(context, b"", Some(&mark));
                return StageResult::On;
            }
            let mark = format!("authenticate {}: {why}", service.name);
            let response = WeirResponse::new(server, 503, Termination::Policy);
            StageResult::Refuse { mark, response }
        }
    }
}

/// A service has accepted the request.
fn let_in(context: &mut RequestContext, user: &[u8], mark: Option<&str>) {
    if let Some(mark) = mark {
        context.later.marks.push(|out| out.extend_from_slice(mark.as_bytes()));
    }
    let asking = context.stage_work.as_mut().and_then(|work| work.asks.pop());
    let is_of_entry = asking.is_some_and(|asking| asking.is_of_entry);
    if let Some(identity) = context.identity.as_deref_mut() {
        match user {
            [] => {}
            _ if is_of_entry => identity.entered_as = user.into(),
            _ => identity.user = user.into(),
        }
    }
}

/// The answer of a service for the client.
fn denial(server: &LocalServer, service: &External, reply: Reply) -> WeirResponse<'static> {
    let mut fields = FieldEdits::default();
    for name in &service.answered {
        for value in named(&reply.head, &reply.text, name) {
            fields.add(name.as_bytes(), |out| out.extend_from_slice(value));
        }
    }
    let (status, why) = (reply.head.status, Termination::Policy);
    match reply.body.filter(|body| !body.is_empty()) {
        Some(body) => WeirResponse::with_text(status, why, fields, body),
        None => {
            // The type of the service's body does not apply to the page that replaces it.
            fields.remove(b"Content-Type");
            WeirResponse::with_fields(server, status, why, fields)
        }
    }
}

/// The question for which the request waits.
fn query(context: &mut RequestContext) -> Option<&mut AuthorisationQuery> {
    context.stage_work.as_deref_mut()?.query()
}

/// Whether a request of weir's own for this one is to begin.
pub fn awaits_child(exchange: &Exchange) -> bool {
    let context = exchange.ends.context.as_deref();
    let query = context.and_then(|it| it.stage_work.as_ref()?.asks.last());
    query.is_some_and(AuthorisationQuery::awaits_beginning)
}

/// The request of weir's own has begun.
pub fn child_began(context: Option<&mut RequestContext>, child: ExchangeKey) {
    if let Some(query) = context.and_then(query) {
        query.progress = Progress::Asked(Some(child));
    }
}

/// The request of weir's own has ended, with or without a reply. Returns whether the request that it was made for waits for it.
pub fn child_replied(
    context: Option<&mut RequestContext>,
    child: Option<ExchangeKey>,
    reply: Option<Box<Reply>>,
) -> bool {
    let query = context.and_then(query);
    query.is_some_and(|query| query.ended(child, reply))
}
