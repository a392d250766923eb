//! Inspection of requests by the web application firewall: after limits and policies, before the member.
//!
//! A head is judged when it arrives. A body that rules inspect is held until it is complete and judged; then it is
//! forwarded to the member behind the head, unchanged. In mode `detect` it is forwarded at once, and judged when it is
//! complete. Bodies that rules do not inspect are not held.

use weir_config::snapshot::{Page, Record, Waf};
use weir_core::policy::{Decision, WafMode};
use weir_http::edits::{FieldEdits, RequestEdits};
use weir_http::fields::forwarded_values;
use weir_http::message::{Field, FieldId, Framing, RequestHead, Span, Version};
use weir_waf::body::Call;
use weir_waf::inspection::{self, BodyLength, Inspection, Limit, Options, TimeLimit, Verdict};

use crate::edge::Edge;
use crate::local::cookies::Opened;
use crate::local::pool::Forms;
use crate::local::table::LocalServer;
use crate::parts::arrival::Arrival;
use crate::parts::end::{End, OwnedEnd};
use crate::parts::inspected::{Inspected, Outcome};
use crate::parts::inspecting::{
    Block, Calling, Following, Judged, Reading, Scrutiny, Terms, after_request,
};
use crate::parts::notice::Notice;
use crate::parts::pace::Pace;
use crate::parts::parked::Parked;
use crate::parts::pieces::Pieces;
use crate::parts::remembered::Remembered;
use crate::parts::request::KEPT_PIECE_BYTES_MAX;
use crate::parts::stages::{Next, Wait};
use crate::parts::witness::Step;
use crate::termination::Termination;
use crate::transaction::asking::hand_on;
use crate::transaction::exchange::{Exchange, is_judged_whole};
use crate::transaction::losing::watch_leaving_client;
use crate::transaction::naming::{id_of, name_inspected};
use crate::transaction::sending::send_interim;

/// The placeholder for the request's id in the block page.
const REQUEST_ID_MARK: &[u8] = b"${request_id}";

/// The reason phrase of the interim response 100.
const CONTINUE: &[u8] = b"Continue";

/// Inspects the head of a request as the member will receive it; and the whole request if its body is not inspected.
/// Gives the request a number if it has no id. Returns the state of the inspection, if any is left.
pub fn inspect_head(
    at: &mut impl Edge,
    arrival: &Arrival<'_>,
    decision: &mut Decision,
    (number, remembered): (&mut u64, Option<&Remembered>),
    (opened, forms): (Option<&Opened>, Forms),
) -> Option<Box<Scrutiny>> {
    let waf = arrival.server.waf.as_ref()?;
    let mode = decision.inspection.unwrap_or(waf.mode);
    let engine_mode = match mode {
        WafMode::Off => return None,
        WafMode::Detect => inspection::Mode::Detect,
        WafMode::Block => inspection::Mode::Block,
    };
    let Arrival { head, input, server, .. } = *arrival;
    let request_id = name_inspected(at.tools(), number, remembered);
    let terms = Terms { waf: waf.clone(), mode, request_id, client: arrival.client() };
    let (limits, work_bytes_max, checks) = (waf.limits, waf.work_bytes_max, waf.checks.clone());
    let time = TimeLimit { max_us: waf.time_max_ms * 1_000, now_us: at.tools().cpu_us };
    let keeps_body = waf.record != Record::Off;
    let inflated_bytes_max = waf.body_bytes_max;
    let options = Options {
        mode: engine_mode,
        limits,
        inflated_bytes_max,
        work_bytes_max,
        time: Some(time),
        checks,
        keeps_body,
    };
    if waf.responses.is_some() && waf.common.view().looks_at_response_bodies() {
        // Rules cannot read encoded responses.
        decision.request.fields.remove(b"Accept-Encoding");
    }
    at.note(Step::Inspects(&terms));
    let mut inspection = begin(&terms, &options, arrival, (&decision.request, opened));
    let verdict = inspection.request_headers();
    let is_call = is_stream(head, input, forms);
    let has_body = !head.framing.is_empty() && !is_call;
    let is_read = verdict == Verdict::Pass && has_body && inspection.needs_body();
    if is_read && !is_too_long(&inspection, waf, head) {
        return Some(Box::new(read(at, arrival, decision, (inspection, terms))));
    }
    if !head.framing.is_empty() {
        inspection.leave_body_out();
    }
    let verdict = match verdict {
        Verdict::Pass if is_read => {
            inspection.cut_body(Limit::BodyLength);
            inspection.request_body()
        }
        Verdict::Pass => inspection.request_body(),
        verdict => verdict,
    };
    if is_call && inspection.needs_body() && Block::of(&verdict, terms.blocks_unjudged()).is_none()
    {
        let calling = Calling { inspection, terms, verdict, look: Vec::new() };
        return Some(Box::new(Scrutiny::Calling(Box::new(calling))));
    }
    let scrutiny = match settle(at, server, (inspection, terms), verdict) {
        Err(block) => Some(Scrutiny::Blocked(block)),
        Ok(judged) => judged.map(|judged| Scrutiny::Passing(None, Some(judged))),
    };
    scrutiny.map(Box::new)
}

/// Whether the head announces more body than is inspected.
fn is_too_long(inspection: &Inspection, waf: &Waf, head: &RequestHead) -> bool {
    let Framing::Length(bytes) = head.framing else { return false };
    let progress = inspection.body_progress();
    let files_bytes_max = if progress.may_have_files { waf.files_bytes_max } else { 0 };
    // A body in a binary format may be longer. Its first bytes tell.
    bytes > waf.body_bytes_max.saturating_add(files_bytes_max) && !progress.is_open
}

/// Inspects a body as it arrives. The body is held if a finding may block the request, or if responses are inspected
/// too.
fn read(
    at: &mut impl Edge,
    arrival: &Arrival<'_>,
    decision: &mut Decision,
    (inspection, terms): (Inspection, Terms),
) -> Scrutiny {
    let body = at.tools().held_room.body(terms.client.map(|client| client.ip()));
    let decoding = body.beside();
    if terms.mode == WafMode::Detect && terms.waf.responses.is_none() {
        let (_, held) = body.into_parts();
        let following = Following { inspection, terms, bytes: 0, held, decoding };
        return Scrutiny::Following(Box::new(following));
    }
    decision.request.fields.remove(b"Expect");
    let until_ms = at.turn().now_ms() + terms.waf.body_timeout_ms;
    let is_awaited = arrival.head.expect_continue;
    let reading = Reading { inspection, terms, body, decoding, until_ms, is_awaited };
    Scrutiny::Reading(Box::new(reading))
}

/// Passes a request to the rules.
fn begin(
    terms: &Terms,
    options: &Options,
    arrival: &Arrival<'_>,
    (edits, opened): (&RequestEdits, Option<&Opened>),
) -> Inspection {
    let Arrival { head, input, .. } = *arrival;
    let server = arrival.from.as_ref().and_then(|from| from.listen);
    let nowhere = (std::net::Ipv4Addr::UNSPECIFIED.into(), 0);
    let address = |it: Option<std::net::SocketAddr>| it.map_or(nowhere, |it| (it.ip(), it.port()));
    let mut target = edits.path().unwrap_or(head.member_path(input)).to_vec();
    let query = match edits.query() {
        Some(query) => Some(query).filter(|query| !query.is_empty()),
        None => head.query(input),
    };
    if let Some(query) = query {
        target.push(b'?');
        target.extend_from_slice(query);
    }
    let request = inspection::Request {
        client: address(terms.client),
        server: address(server),
        method: if head.extended_connect { b"GET" } else { head.method_text.of(input) },
        received_target: head.target.of(input),
        target: &target,
        protocol: match head.version {
            Version::Http10 => b"HTTP/1.0",
            Version::Http11 => b"HTTP/1.1",
            Version::Http2 => b"HTTP/2.0",
        },
        headers: &fields((head, input), edits, opened),
        body: match head.framing {
            Framing::None | Framing::Length(0) => BodyLength::None,
            Framing::Length(bytes) => BodyLength::Known(bytes),
            Framing::Chunked | Framing::UntilClose => BodyLength::Unknown,
        },
        changed_cookies: opened.map_or(&[], |opened| &opened.changed),
        unique_id: terms.request_id.as_bytes(),
    };
    terms.waf.common.begin(options, &request)
}

/// Whether client and member may alternate within their bodies (gRPC): such a body must not be held until its end.
fn is_stream(head: &RequestHead, input: &[u8], forms: Forms) -> bool {
    // The fields as the member receives them: a field named in Connection is not forwarded, so it does not count.
    let has_one_type = forwarded_values(&head.fields, input, b"Content-Type").count() == 1;
    has_one_type && Pace::of_request(head, input, forms) == Pace::Sparse
}

/// The fields for the rules: Host as the member receives it, and cookies without their seals.
fn fields<'a>(
    (head, input): (&'a RequestHead, &'a [u8]),
    edits: &'a RequestEdits,
    opened: Option<&'a Opened>,
) -> Vec<(&'a [u8], &'a [u8])> {
    let host = edits.authority().unwrap_or(head.authority(input));
    let host = (!host.is_empty()).then_some((&b"Host"[..], host));
    // Fields named in Connection are not forwarded.
    let is_seen = |field: &&Field| match field.id {
        FieldId::Host => false,
        id => !id.is_ordinary() || field.forward,
    };
    let received = head.fields.iter().filter(is_seen);
    let received = received.map(|field| (field.name.of(input), field.value.of(input)));
    let is_other = |(name, _): &(&[u8], &[u8])| opened.is_none() || !is_cookie(name);
    let cookies = opened.iter().flat_map(|opened| &opened.fields);
    let cookies = cookies.map(|value| (&b"Cookie"[..], &value[..]));
    host.into_iter().chain(received.filter(is_other)).chain(cookies).collect()
}

fn is_cookie(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"Cookie")
}

/// Counts and logs the result of a request's inspection. If the response is inspected too, returns the inspection for
/// that instead. `Err`: the request is blocked.
fn settle(
    at: &mut impl Edge,
    server: &LocalServer,
    (inspection, terms): (Inspection, Terms),
    verdict: Verdict,
) -> Result<Option<Box<Judged>>, Block> {
    if let Some(unjudged) = terms.unjudged_of(&verdict) {
        return Ok(Some(Box::new(Judged { inspection, terms, unjudged })));
    }
    match conclude(at, server, &terms, inspection, verdict) {
        Some(block) => Err(block),
        None => Ok(None),
    }
}

/// Counts and logs the result of an inspection. Returns how the request is blocked, if it is.
pub fn conclude(
    at: &mut impl Edge,
    server: &LocalServer,
    terms: &Terms,
    inspection: Inspection,
    verdict: Verdict,
) -> Option<Block> {
    let blocks_unjudged = terms.blocks_unjudged();
    let outcome = Outcome::of(&verdict, &inspection, blocks_unjudged);
    let block = Block::of(&verdict, blocks_unjudged);
    let status = block.as_ref().map_or(0, Block::status);
    tell(at, (server, terms), inspection, outcome, status);
    block
}

/// Counts an inspection, and logs it if needed.
fn tell(
    at: &mut impl Edge,
    (server, terms): (&LocalServer, &Terms),
    mut inspection: Inspection,
    outcome: Outcome,
    status: u16,
) {
    at.note(Step::Inspected { terms, inspection: &inspection, outcome, status });
    let counters = &server.counters;
    counters.waf_inspected.add(1);
    match outcome {
        Outcome::Passed | Outcome::Unfinished => {}
        Outcome::Detected(_) => counters.waf_detected.add(1),
        Outcome::Blocked(_) => counters.waf_blocked.add(1),
        Outcome::Unjudged { .. } => counters.waf_unjudged.add(1),
    }
    let is_logged = inspection.matches().iter().any(|found| found.is_logged);
    let has_findings = is_logged || !inspection.findings().is_empty();
    let is_of_note = !matches!(outcome, Outcome::Passed | Outcome::Unfinished);
    if is_of_note || has_findings || terms.waf.record == Record::All {
        inspection.logging();
        let Terms { mode, client, .. } = *terms;
        let request_id = &*terms.request_id;
        let inspection = &inspection;
        let inspected = Inspected { request_id, server, client, mode, outcome, status, inspection };
        at.tell(Notice::Inspected(&inspected));
    }
}

/// The exchange has ended, or has its response, before the whole body arrived: logs the findings so far.
pub fn leave(exchange: &mut Exchange, at: &mut impl Edge) {
    let Some(scrutiny) = exchange.scrutiny.take() else { return };
    let server = &exchange.ends.server;
    match *scrutiny {
        Scrutiny::Reading(reading) => {
            let Reading { mut inspection, terms, .. } = *reading;
            inspection.leave_body_out();
            tell(at, (server, &terms), inspection, Outcome::Unfinished, 0);
        }
        Scrutiny::Following(following) => {
            let Following { mut inspection, terms, .. } = *following;
            inspection.leave_body_out();
            tell(at, (server, &terms), inspection, Outcome::Unfinished, 0);
        }
        Scrutiny::Calling(calling) => {
            let Calling { inspection, terms, verdict, .. } = *calling;
            conclude(at, server, &terms, inspection, verdict);
        }
        Scrutiny::Passed(_, _, Some(judged)) | Scrutiny::Passing(_, Some(judged)) => {
            tell_judged(at, server, *judged);
        }
        Scrutiny::Answering(answering) => tell_judged(at, server, answering.judged),
        Scrutiny::Passed(_, _, None) | Scrutiny::Passing(_, None) | Scrutiny::Blocked(_) => {}
    }
}

/// Logs a request that has no response to inspect.
fn tell_judged(at: &mut impl Edge, server: &LocalServer, judged: Judged) {
    let Judged { inspection, terms, unjudged } = judged;
    conclude(at, server, &terms, inspection, after_request(Verdict::Pass, unjudged));
}

/// Waits for the body, which is held until it is judged.
pub fn pass(exchange: &mut Exchange, at: &mut impl Edge) -> Next {
    debug_assert!(is_judged_whole(exchange), "otherwise nothing ends the wait");
    begin_reading(exchange, at);
    Next::Wait(Wait::Body)
}

/// Begins to read a held body. A client that waits for 100 (Continue) gets it.
fn begin_reading(exchange: &mut Exchange, at: &mut impl Edge) {
    let Some(Scrutiny::Reading(reading)) = exchange.scrutiny.as_deref_mut() else { return };
    let is_awaited = std::mem::take(&mut reading.is_awaited);
    exchange.await_client(at);
    if is_awaited && exchange.request.version != Version::Http10 {
        tell_to_continue(exchange, at);
    }
}

/// Sends 100 (Continue).
fn tell_to_continue(exchange: &mut Exchange, at: &mut impl Edge) {
    let mut head = at.tools().own_head.take().unwrap_or_default();
    head.clear();
    head.status = 100;
    head.reason = Span { start: 0, end: CONTINUE.len() as u32 };
    send_interim(exchange, at, &head, CONTINUE);
    at.tools().own_head = Some(head);
}

/// Holds pieces of the body. Judges the request when the body is complete or exceeds a limit.
pub fn hold(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    (input, pieces): (&[u8], &Pieces),
    end: End<'_>,
) {
    let Some(Scrutiny::Reading(reading)) = exchange.scrutiny.as_deref_mut() else { return };
    let limit = reading.take(pieces.of(input));
    let is_let_go = !reading.inspection.needs_body();
    exchange.request.is_whole = !matches!(end, End::No);
    if !exchange.request.is_whole || exchange.ends.is_client_behind(at) {
        exchange.await_client(at);
    } else {
        exchange.ends.clear_client_deadline(at);
        watch_leaving_client(exchange, at);
    }
    if !exchange.request.is_whole && limit.is_none() && !is_let_go {
        return exchange.ends.give_window(at);
    }
    judge(exchange, at, limit, end);
}

/// Judges a request with the body that has arrived.
fn judge(exchange: &mut Exchange, at: &mut impl Edge, limit: Option<Limit>, end: End<'_>) {
    let scrutiny = exchange.scrutiny.take().map(|scrutiny| *scrutiny);
    let Some(Scrutiny::Reading(reading)) = scrutiny else { return };
    exchange.ends.parked = Parked::No;
    let Reading { mut inspection, terms, body, decoding, .. } = *reading;
    end_body(&mut inspection, limit, exchange.request.is_whole);
    let verdict = inspection.request_body();
    drop(decoding);
    let judged = match settle(at, &exchange.ends.server, (inspection, terms), verdict) {
        Ok(judged) => judged,
        Err(block) => return answer_blocked(exchange, at, &block),
    };
    exchange.request.has_long_body_ahead = body.bytes().len() > KEPT_PIECE_BYTES_MAX;
    exchange.scrutiny = Some(Box::new(Scrutiny::Passed(body, OwnedEnd::of(end), judged)));
    if exchange.dispatch(at) {
        pass_judged_body(exchange, at);
    }
}

/// Ends the part of a body that rules inspect: all of it, or the part before a limit, or before it was let go.
fn end_body(inspection: &mut Inspection, limit: Option<Limit>, is_whole: bool) {
    match limit {
        Some(limit) => inspection.cut_body(limit),
        None => {
            if !is_whole {
                inspection.leave_body_out();
            }
            inspection.end_body();
        }
    }
}

/// Shows forwarded pieces of a body to the rules. Judges the request when the body is complete or exceeds a limit. Returns
/// true if the request was blocked, so that nothing more of it is forwarded.
pub fn follow(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    (input, pieces): (&[u8], &Pieces),
    is_whole: bool,
) -> bool {
    if let Some(Scrutiny::Calling(_)) = exchange.scrutiny.as_deref() {
        return follow_call(exchange, at, (input, pieces), is_whole);
    }
    let Some(Scrutiny::Following(following)) = exchange.scrutiny.as_deref_mut() else {
        return false;
    };
    let limit = following.take(pieces.of(input));
    if !is_whole && limit.is_none() && following.inspection.needs_body() {
        return false;
    }
    let scrutiny = exchange.scrutiny.take().map(|scrutiny| *scrutiny);
    let Some(Scrutiny::Following(following)) = scrutiny else { return false };
    let Following { mut inspection, terms, .. } = *following;
    end_body(&mut inspection, limit, is_whole);
    let verdict = inspection.request_body();
    let block = conclude(at, &exchange.ends.server, &terms, inspection, verdict);
    debug_assert_eq!(block, None, "nothing is kept from members where rules only detect");
    false
}

/// Looks at the first bytes of a body that its type names a gRPC call. A body that is none was not judged.
fn follow_call(
    exchange: &mut Exchange,
    at: &mut impl Edge,
    (input, pieces): (&[u8], &Pieces),
    is_whole: bool,
) -> bool {
    let Some(Scrutiny::Calling(calling)) = exchange.scrutiny.as_deref_mut() else { return false };
    let answer = calling.take(pieces.of(input));
    let is_none = match answer {
        Call::Yes => false,
        Call::No => true,
        Call::Unknown if is_whole => !calling.look.is_empty(),
        Call::Unknown => return false,
    };
    let scrutiny = exchange.scrutiny.take().map(|scrutiny| *scrutiny);
    let Some(Scrutiny::Calling(calling)) = scrutiny else { return false };
    let Calling { inspection, terms, verdict, .. } = *calling;
    let verdict = if is_none { Verdict::Exceeded(Limit::Body) } else { verdict };
    match settle(at, &exchange.ends.server, (inspection, terms), verdict) {
        Ok(judged) => {
            let judged = judged.map(|judged| Scrutiny::Passing(None, Some(judged)));
            exchange.scrutiny = judged.map(Box::new);
            false
        }
        Err(block) => {
            answer_blocked(exchange, at, &block);
            true
        }
    }
}

/// Forwards a held body that was judged. Returns false if there is none.
pub fn pass_judged_body(exchange: &mut Exchange, at: &mut impl Edge) -> bool {
    let is_passed = matches!(exchange.scrutiny.as_deref(), Some(Scrutiny::Passed(..)));
    let Some(scrutiny) = exchange.scrutiny.take_if(|_| is_passed) else { return false };
    let Scrutiny::Passed(body, end, judged) = *scrutiny else { return false };
    exchange.request.has_long_body_ahead = false;
    let (bytes, held) = body.into_parts();
    // The member may be slow: the room for the held body is released when the member has taken it.
    exchange.scrutiny = Some(Box::new(Scrutiny::Passing(Some(held), judged)));
    hand_on(exchange, at, (&bytes, &Pieces::whole(bytes.len())), end.get());
    if !exchange.request.is_whole && !exchange.is_over() {
        exchange.request_goes_on(at);
    }
    true
}

/// Answers a request that was blocked at its head.
pub fn end_blocked(exchange: &mut Exchange, at: &mut impl Edge) {
    if let Some(Scrutiny::Blocked(block)) = exchange.scrutiny.take().map(|scrutiny| *scrutiny) {
        answer_blocked(exchange, at, &block);
    }
}

/// Sends the response of a blocked request.
pub fn answer_blocked(exchange: &mut Exchange, at: &mut impl Edge, block: &Block) {
    match block {
        Block::Close => exchange.end_unanswered(at, Termination::Waf, false),
        Block::Redirect { to, status } => {
            let mut fields = FieldEdits::default();
            fields.add(b"Location", |out| out.extend_from_slice(to));
            exchange.respond_adding(at, *status, Termination::Waf, fields);
        }
        Block::Answer(status) => {
            let (number, remembered) =
                (exchange.ends.account.request_number, exchange.ends.remembered.as_deref());
            let id = id_of(at.tools(), number, remembered);
            let mut fields = FieldEdits::default();
            let body = match exchange.error_page(*status) {
                Some(Page { content_type, body }) => {
                    fields.add(b"Content-Type", |out| {
                        out.extend_from_slice(content_type.as_bytes());
                    });
                    with_request_id(&body, id.as_bytes())
                }
                None => format!("The request was blocked. Its number is {id}.\n").into_bytes(),
            };
            exchange.respond_with(at, *status, Termination::Waf, &fields, Some(&body));
        }
    }
}

/// Replaces the placeholder in a block page with the request's id.
fn with_request_id(page: &[u8], id: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(page.len() + id.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(page, REQUEST_ID_MARK) {
        out.extend_from_slice(&page[from..at]);
        out.extend_from_slice(id);
        from = at + REQUEST_ID_MARK.len();
    }
    out.extend_from_slice(&page[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::with_request_id;

    #[test]
    fn pages_tell_the_number() {
        for (page, expected) in [
            ("", ""),
            ("sorry", "sorry"),
            ("${request_id}", "0a"),
            ("<p>${request_id}</p> ${request_id} ${other}", "<p>0a</p> 0a ${other}"),
        ] {
            let made = with_request_id(page.as_bytes(), b"0a");
            assert_eq!(String::from_utf8(made).expect("text"), expected);
        }
    }
}
