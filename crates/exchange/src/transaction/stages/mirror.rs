//! Copies of requests for other pools. weir never waits for them: each is a request of weir's own whose response is
//! discarded. A copy that cannot be sent at once is dropped.

use std::rc::Rc;
use std::sync::Arc;

use weir_core::expression::{Evaluation, Facts};
use weir_core::policy::{Decision, Subrequest};
use weir_http::edits::RequestEdits;
use weir_http::h1::{BodyDecoder, BodyStep};
use weir_http::h2::message::Lines;
use weir_http::message::Framing;

use crate::edge::Edge;
use crate::local::forms::Forms;
use crate::local::table::LocalServer;
use crate::local::traffic::Traffic;
use crate::parts::arrival::Arrival;
use crate::parts::deferred_work::{DeferredWork, SubrequestOrder};
use crate::parts::request::Request;
use crate::parts::request_context::RequestContext;
use crate::parts::request_trace::Kind;
use crate::parts::stage_work::CopyDestination;
use crate::parts::tools::Tools;
use crate::transaction::tracing::child;

/// Maximum number of open copies per worker.
pub const UNDER_WAY_MAX: u32 = 256;

/// Selects the destinations of copies of a request, by their shares.
pub fn choose(
    at: &mut impl Edge,
    (traffic, arrival): (&Traffic, &Arrival<'_>),
    (facts, evaluation): (&Facts<'_>, &mut Evaluation<'_>),
    decision: &Decision,
) -> Vec<CopyDestination> {
    // Tunnels are not copied; nor are copies, which could loop forever if they come back to weir.
    let (head, input) = (facts.request, facts.request_input);
    let own_mark = &arrival.server.claims.own_mark;
    if head.upgrade.is_some() || is_connect(facts) || own_mark.is_on((head, input)) {
        return Vec::new();
    }
    let (now, tools) = (at.turn().clock, at.tools());
    let mut scratch = tools.scratch.take();
    let mut destinations = Vec::new();
    for subrequest in &decision.subrequests {
        let Subrequest::Mirror(mirror) = subrequest else { continue };
        if mirror.takes(tools.draw()) {
            let (pool, mirror) = (mirror.pool as usize, Arc::clone(mirror));
            let (pool, preference) =
                traffic.beside(pool, (facts, &mut *evaluation), now, &mut scratch);
            destinations.push(CopyDestination { mirror, pool, preference });
        }
    }
    tools.scratch.give(scratch);
    destinations
}

fn is_connect(facts: &Facts<'_>) -> bool {
    facts.request.method_text.of(facts.request_input) == b"CONNECT"
}

/// Sends the copies of a complete request: the head as the member gets it, and the stored body. `forms`: those of its head.
/// `is_on_stream`: it was sent on a stream.
pub fn send(
    context: Option<&mut RequestContext>,
    at: &mut impl Edge,
    (server, forms, is_on_stream): (&Rc<LocalServer>, Forms, bool),
    request: &Request,
) {
    let Some(context) = context else { return };
    let Some(work) = context.stage_work.as_mut() else { return };
    let copies = std::mem::take(&mut work.copies);
    if copies.is_empty() {
        return;
    }
    let copy = copy_of(request, forms, is_on_stream);
    for CopyDestination { mirror, pool, preference } in copies {
        let tools = at.tools();
        let has_room = tools.unawaited_under_way < UNDER_WAY_MAX;
        let Some((text, body)) = copy.as_ref().filter(|_| has_room).cloned() else {
            server.counters.mirrors_dropped.add(1);
            continue;
        };
        tools.unawaited_under_way += 1;
        let server = Rc::clone(server);
        let traced = child(Some(context), at.tools(), Kind::Own("mirror"));
        let mut edits = RequestEdits::default();
        server.claims.own_mark.set(&mut edits.fields);
        edits.fields.remove(b"Expect");
        let (action, parent) = (Subrequest::Mirror(mirror), None);
        let order =
            SubrequestOrder { action, parent, server, pool, preference, text, body, edits, traced };
        at.tools().deferred_work.push(DeferredWork::Begin(Box::new(order)));
    }
}

/// A copy has ended, or could not begin. `is_answered`: its member has answered.
pub fn copy_ended(tools: &mut Tools, server: &LocalServer, is_answered: bool) {
    match is_answered {
        true => server.counters.mirrors_answered.add(1),
        false => server.counters.mirrors_failed.add(1),
    }
    debug_assert!(tools.unawaited_under_way > 0, "each is counted once");
    tools.unawaited_under_way = tools.unawaited_under_way.saturating_sub(1);
}

/// The head as a client would send it, and the unframed body; `None`: not all of the request is stored.
fn copy_of(
    request: &Request,
    forms: Forms,
    is_on_stream: bool,
) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    // Nothing is stored any more of a request that was answered before it was whole.
    let (head, kept) = request.bytes.split_at_checked(request.head_bytes as usize)?;
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
