//! Requests of weir's own: exchanges whose caller is another transaction, or nobody. They go to members like all others, with
//! retries, queues and timeouts. The response is stored for the transaction that waits for it. They do not appear in access logs,
//! and count for no virtual server.

use std::rc::Rc;

use weir_http::h1::{HeadLimits, ParseProgress, parse_request};
use weir_http::message::{Framing, RequestHead};
use weir_http::path::{PathForm, RawBytes, TargetForm};

use crate::arena::{Arena, ExchangeKey, OfExchange};
use crate::edge::{Edge, Release};
use crate::parts::account::{Account, LogOutput};
use crate::parts::caller::Caller;
use crate::parts::deferred_work::SubrequestOrder;
use crate::parts::encoding::Filters;
use crate::parts::failure::MemberFailure;
use crate::parts::inspection::ExchangeInspection;
use crate::parts::pace::{Pace, Patience};
use crate::parts::phase::Phase;
use crate::parts::request::{ConnectionChoice, Request};
use crate::parts::stages::Stages;
use crate::parts::tools::Tools;
use crate::parts::transaction_ends::{NextClientState, TransactionEnds};
use crate::parts::tries::Tries;
use crate::termination::Termination;
use crate::transaction::Transaction;
use crate::transaction::exchange::Exchange;
use crate::transaction::stages::unawaited_ended;
use crate::transaction::tracing::remember;

/// weir writes these heads itself, so they need no limits.
const LIMITS: HeadLimits = HeadLimits { head_size_max: u32::MAX, headers_max: u16::MAX };

/// Adds a request to `transactions`; `buffer`: an empty buffer for its head. `None`: the request cannot be sent.
pub fn begin(
    at: &mut impl Edge,
    transactions: &mut Arena<OfExchange, Transaction>,
    order: &mut SubrequestOrder,
    buffer: Vec<u8>,
) -> Option<ExchangeKey> {
    let mut head = RequestHead::new();
    let form = TargetForm { path: PathForm::Keep, raw_bytes: RawBytes::Encode };
    let parsed = parse_request(&order.text, &LIMITS, form, &mut head);
    if !matches!(parsed, Ok(ParseProgress::Complete { length }) if length == order.text.len()) {
        return None;
    }
    let body = order.body.as_deref();
    head.framing = body.map_or(Framing::None, |body| Framing::Length(body.len() as u64));
    let mut edits = std::mem::take(&mut order.edits);
    if let Some(traced) = &order.traced {
        traced.tell_member(&mut edits.fields);
    }
    let (message, forms) = ((&head, &*order.text), order.pool.forms);
    let mut request = Request::of(at.tools(), message, forms, &edits, buffer);
    if head.unusual.binds_connection {
        // No other request may follow on its connection.
        request.wanted = ConnectionChoice::Authenticating;
    }
    if let Some(body) = body {
        // The request is in the state after a failed member: all of it is stored.
        request.bytes.extend_from_slice(body);
        request.receive(true);
        request.send();
    }
    let context = remember(at.tools(), order.traced.take(), message);
    let turn = at.turn();
    order.pool.note_request(turn.now_ms());
    let key = transactions.next_key();
    let mut tries = Tries::new(Rc::clone(&order.pool), order.preference);
    // If nobody waits for it, it is dropped if it cannot be sent at once.
    tries.never_waits = order.parent.is_none();
    transactions.insert(Transaction::Http(Exchange {
        ends: TransactionEnds {
            key,
            over: None,
            caller: order.parent.map_or(Caller::Nobody, Caller::Parent),
            is_member_stopped: false,
            tries,
            phase: Phase::START,
            server: Rc::clone(&order.server),
            context,
            account: Account::begin(turn.now_us(), LogOutput::Nothing, Vec::new()),
        },
        filters: Filters::default(),
        keep_alive: false,
        client_closes: true,
        patience: Patience::new(Pace::Steady),
        request,
        response_framing: Framing::None,
        client_ended: false,
        inspection: ExchangeInspection::NONE,
        reply: Some(Box::default()),
        stages: Stages::NONE,
        delayed_decision: None,
    }));
    Some(key)
}

/// A request for which nobody waits could not begin.
pub fn not_begun(tools: &mut Tools, order: &SubrequestOrder) {
    unawaited_ended(tools, &order.server, false);
}

/// Ends the request before its response has arrived. `is_late`: counts as a failure of the member.
pub fn leave(exchange: &mut Exchange, at: &mut impl Edge, is_late: bool) {
    at.release(&mut exchange.ends, Release::Drop);
    exchange.ends.release_member(at, is_late.then_some(MemberFailure::Timeout));
    exchange.end(at, Termination::Stopped, NextClientState::Subrequest);
}
