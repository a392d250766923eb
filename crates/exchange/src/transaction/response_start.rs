//! The begin of a response to the client.

use std::io::Write as _;

use weir_http::edits::FieldEdits;
use weir_http::message::ResponseHead;

use crate::edge::Edge;
use crate::parts::account::Account;
use crate::parts::messages::Message;
use crate::transaction::exchange::Exchange;
use crate::transaction::exchange_end::replace_response;
use crate::transaction::filters;
use crate::transaction::filters::contract::FilteredRequest;
use crate::transaction::policy::keep_cookies;
use crate::transaction::response_data::is_all;
use crate::transaction::tracing::note_member_status;

/// Begins a response that is not inspected, or whose inspection is finished.
pub fn begin_judged(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    head: &mut ResponseHead,
    (input, body): (&[u8], &[u8]),
) -> Message {
    let framing = head.framing.toward(exchange.request.version);
    if exchange.ends.context.is_none() && !exchange.ends.server.edits_responses {
        return exchange.begin_message(at, (head, input), &FieldEdits::NONE, framing);
    }
    begin_edited(exchange, at, head, (input, body))
}

/// Begins a response that rules, settings or a session may change.
#[inline(never)]
fn begin_edited(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    head: &mut ResponseHead,
    (input, body): (&[u8], &[u8]),
) -> Message {
    note_member_status(&mut exchange.ends, head.status);
    let mut edits = std::mem::take(&mut at.tools().response_edits);
    edits.clear();
    if exchange.ends.context.is_some()
        && let Some(answer) = exchange.edit_response(at, head, input, &mut edits)
    {
        // The held data may be only a part of the body.
        let is_whole = exchange.ends.phase.begun().is_none() && is_all(head.framing, body);
        replace_response(exchange, at, answer, is_whole, edits);
        return at.tools().scratch.take();
    }
    keep_cookies(exchange, at, (head, input), &mut edits);
    if exchange.ends.server.settings().server_timing {
        time_response(&exchange.ends.account, &mut edits);
    }
    let asked = FilteredRequest::of(&exchange.request);
    let Exchange { filters, ends, .. } = exchange;
    let framing = filters::begin(filters, at, (ends, asked), head, (input, body), &mut edits);
    let message = exchange.begin_message(at, (head, input), &edits, framing);
    at.tools().response_edits = edits;
    message
}

/// Adds the response time to a response.
fn time_response(account: &Account, edits: &mut FieldEdits) {
    let (own_us, member_us) = account.until_head_us();
    edits.add(b"Server-Timing", |out| {
        let ms = |us: u64| us as f64 / 1_000.0;
        let (own, member) = (ms(own_us), ms(member_us));
        write!(out, "weir;dur={own:.3}, member;dur={member:.3}")
            .expect("a vector takes what is written to it");
    });
}
