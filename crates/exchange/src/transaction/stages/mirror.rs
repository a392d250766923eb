//! Copies of requests for other pools. weir never waits for them: each is a request of weir's own whose response is
//! discarded. A copy that cannot be sent at once is dropped.

use std::rc::Rc;

use weir_core::clock::Clock;
use weir_core::expression::{Evaluation, Facts};
use weir_core::policy::Decision;
use weir_http::h1::{BodyDecoder, BodyStep};
use weir_http::h2::message::Lines;
use weir_http::message::Framing;

use crate::edge::Edge;
use crate::local::copies::is_copy;
use crate::local::forms::Forms;
use crate::local::traffic::Traffic;
use crate::parts::deferred_work::{DeferredWork, Mirrors, SubrequestOrder};
use crate::parts::request::Request;
use crate::parts::request_trace::Kind;
use crate::parts::stages::StageResult;
use crate::parts::tools::Tools;
use crate::transaction::exchange::Exchange;
use crate::transaction::tracing::child;

/// Maximum number of open copies per worker.
pub const UNDER_WAY_MAX: u32 = 256;

/// Selects the destinations of copies of a request, by their shares.
pub fn choose(
    tools: &mut Tools,
    (traffic, copy_mark): (&Traffic, &[u8]),
    (facts, evaluation): (&Facts<'_>, &mut Evaluation<'_>),
    decision: &Decision,
    now: Clock,
    scratch: &mut Vec<u8>,
) -> Mirrors {
    let taken = decision.mirrors.iter().filter(|mirror| mirror.takes(tools.draw()));
    let pools = taken.map(|it| traffic.beside(it.pool as usize, (facts, evaluation), now, scratch));
    // Tunnels are not copied; nor are copies, which could loop forever if they come back to weir.
    let (head, input) = (facts.request, facts.request_input);
    let is_copied =
        head.upgrade.is_none() && !is_connect(facts) && !is_copy((head, input), copy_mark);
    Mirrors(if is_copied { pools.collect() } else { Vec::new() })
}

fn is_connect(facts: &Facts<'_>) -> bool {
    facts.request.method_text.of(facts.request_input) == b"CONNECT"
}

/// Sends the copies of a request that is complete. Those of others are sent when it is.
pub fn pass(exchange: &mut Exchange, at: &mut impl Edge) -> StageResult {
    if exchange.request.is_whole() {
        send(exchange, at);
    }
    StageResult::On
}

/// Sends the copies of a complete request: the head as the member gets it, and the stored body.
pub fn send(exchange: &mut Exchange, at: &mut impl Edge) {
    let context = exchange.ends.context.as_deref_mut();
    let Some(Mirrors(pools)) = context.and_then(|it| it.mirrors.take()).map(|it| *it) else {
        return;
    };
    let is_on_stream = exchange.ends.phase.member_stream().is_some();
    let copy = copy_of(&exchange.request, exchange.ends.tries.pool.forms, is_on_stream);
    for (pool, preference) in pools {
        let tools = at.tools();
        let has_room = tools.mirrors_under_way < UNDER_WAY_MAX;
        let Some((text, body)) = copy.as_ref().filter(|_| has_room).cloned() else {
            exchange.ends.server.counters.mirrors_dropped.add(1);
            continue;
        };
        tools.mirrors_under_way += 1;
        let server = Rc::clone(&exchange.ends.server);
        let traced = child(&exchange.ends, at.tools(), Kind::Mirror);
        let parent = None;
        let order = SubrequestOrder { parent, server, pool, preference, text, body, traced };
        at.tools().deferred_work.push(DeferredWork::Begin(Box::new(order)));
    }
}

/// The head as a client would send it, and the unframed body; `None`: not all of the request is stored.
fn copy_of(
    request: &Request,
    forms: Forms,
    is_on_stream: bool,
) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let (head, kept) = request.bytes.split_at(request.head_bytes as usize);
    let text = match forms {
        Forms::Text | Forms::Both => head.to_vec(),
        Forms::Lines => text_of(request.lines()),
    };
    if request.framing.is_empty() {
        return Some((text, None));
    }
    if !request.is_sent() || !request.is_replayable() {
        return None;
    }
    let body = match request.framing {
        Framing::Chunked if !is_on_stream => joined(kept)?,
        _ => kept.to_vec(),
    };
    let is_all = !matches!(request.framing, Framing::Length(bytes) if bytes != body.len() as u64);
    is_all.then_some((text, Some(body)))
}

/// The data of chunks; all of them have arrived.
fn joined(chunks: &[u8]) -> Option<Vec<u8>> {
    let (mut decoder, mut at, mut data) = (BodyDecoder::new(Framing::Chunked, None), 0, Vec::new());
    loop {
        match decoder.decode(&chunks[at..]).ok()? {
            BodyStep::Data { start, end } => {
                data.extend_from_slice(&chunks[at + start..at + end]);
                at += end;
            }
            BodyStep::NeedMore { .. } => return None,
            BodyStep::Trailers { .. } | BodyStep::End { .. } => return Some(data),
        }
    }
}

/// An HTTP/1 head with these lines.
fn text_of(lines: Lines<'_>) -> Vec<u8> {
    let of = |wanted: &[u8]| {
        let mut values = lines.filter(|(name, ..)| *name == wanted).map(|(_, value, _)| value);
        values.next().unwrap_or_default()
    };
    let mut text = [of(b":method"), b" ", of(b":path"), b" HTTP/1.1\r\n"].concat();
    let fields =
        lines.filter(|(name, ..)| !name.starts_with(b":") && !name.eq_ignore_ascii_case(b"host"));
    let host = [(&b"Host"[..], of(b":authority"), false)];
    for (name, value, _) in host.into_iter().chain(fields) {
        [name, b": ", value, b"\r\n"].iter().for_each(|part| text.extend_from_slice(part));
    }
    text.extend_from_slice(b"\r\n");
    text
}

/// Counts a finished copy.
pub fn ended(tools: &mut Tools) {
    debug_assert!(tools.mirrors_under_way > 0, "each is counted once");
    tools.mirrors_under_way = tools.mirrors_under_way.saturating_sub(1);
}
