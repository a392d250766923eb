//! The results of inspections: what follows a verdict, what is counted and logged, and the ends of blocked requests.

use std::sync::Arc;

use weir_config::snapshot::{Record, Waf};
use weir_http::edits::FieldEdits;
use weir_http::message::Framing;
use weir_waf::inspection::{self, Inspection, Limit, Question, UnfinishedInspection, Verdict};

use crate::edge::Edge;
use crate::local::table::LocalServer;
use crate::parts::end::OwnedEnd;
use crate::parts::held_memory::HeldBody;
use crate::parts::inspection::{
    AnnouncedBody, Block, BodyInspection, ExchangeInspection, GrpcCallCheck, InspectionState,
    PassedInspection, StreamedInspection, Terms,
};
use crate::parts::inspection_report::{InspectionOutcome, InspectionReport};
use crate::parts::notice::Notice;
use crate::parts::request::{KEPT_PIECE_BYTES_MAX, Request};
use crate::parts::tools::Tools;
use crate::parts::transaction_ends::TransactionEnds;
use crate::parts::weir_response::{ExchangeEnd, WeirResponse, add_content_type};
use crate::parts::witness::Step;
use crate::termination::Termination;
use crate::transaction::request_id::id_of;

/// The placeholder for the request's id in the block page.
const REQUEST_ID_MARK: &[u8] = b"${request_id}";

/// What follows the verdict on a head.
pub enum AfterHead {
    /// Rules read the body.
    Read(Inspection),
    /// The verdict on the whole request needs another turn.
    More(UnfinishedInspection),
    /// The verdict on the whole request.
    Judged(Inspection, Verdict),
}

/// Judges a request behind its head, if rules read none of its body.
pub fn after_head(
    at: &mut impl Edge,
    announced: AnnouncedBody,
    terms: &Terms,
    mut inspection: Inspection,
    verdict: Verdict,
) -> AfterHead {
    let is_read = verdict == Verdict::Pass && announced.has_body() && inspection.needs_body();
    if is_read && !is_too_long(&inspection, &terms.waf, announced.framing) {
        return AfterHead::Read(inspection);
    }
    if !announced.framing.is_empty() {
        inspection.leave_body_out();
    }
    let question = match verdict {
        Verdict::Pass if is_read => Question::Body(Some(Limit::BodyLength)),
        Verdict::Pass => Question::Request,
        verdict => return AfterHead::Judged(inspection, verdict),
    };
    match inspection::judge(inspection, question, at.tools().offloaded.turn) {
        inspection::Step::Done(inspection, verdict) => AfterHead::Judged(inspection, verdict),
        inspection::Step::More(unfinished) => AfterHead::More(unfinished),
    }
}

/// Applies the verdict on a request whose body is not read. Returns the state that is left, if any.
pub fn settle_head(
    at: &mut impl Edge,
    server: &LocalServer,
    announced: AnnouncedBody,
    (inspection, verdict): (Inspection, Verdict),
    terms: Terms,
) -> Result<Option<InspectionState>, Block> {
    let is_unknown_call = announced.is_call && inspection.needs_body();
    if is_unknown_call && Block::of(&verdict, terms.blocks_unjudged()).is_none() {
        let calling = GrpcCallCheck { inspection, terms, verdict, look: Vec::new() };
        return Ok(Some(InspectionState::Calling(Box::new(calling))));
    }
    let judged = settle(at, server, (inspection, terms), verdict)?;
    Ok(judged.map(|judged| InspectionState::Passing(None, Some(judged))))
}

/// Whether the head announces more body than is inspected.
fn is_too_long(inspection: &Inspection, waf: &Waf, framing: Framing) -> bool {
    let Framing::Length(bytes) = framing else { return false };
    let progress = inspection.body_progress();
    let files_bytes_max = if progress.may_have_files { waf.files_bytes_max } else { 0 };
    // A body in a binary format may be longer. Its first bytes tell.
    bytes > waf.body_bytes_max.saturating_add(files_bytes_max) && !progress.is_open
}

/// Inspects a body as it arrives. The body is held if a finding may block the request, or if responses are inspected
/// too.
pub fn read(
    at: &mut impl Edge,
    announced: AnnouncedBody,
    (inspection, terms): (Inspection, Terms),
) -> InspectionState {
    let body = at.tools().held_room.body(terms.client.map(|client| client.ip()));
    let decoding = body.beside();
    if !terms.holds_bodies() {
        let held = body.into_held();
        let unread = Vec::new();
        let following = StreamedInspection { inspection, terms, bytes: 0, unread, held, decoding };
        return InspectionState::Following(Box::new(following));
    }
    let until_ms = at.turn().now_ms() + terms.waf.body_timeout_ms;
    let is_awaited = announced.is_awaited;
    let read_bytes = 0;
    let reading =
        BodyInspection { inspection, terms, body, read_bytes, decoding, until_ms, is_awaited };
    InspectionState::Reading(Box::new(reading))
}

/// Counts and logs the result of a request's inspection. If the response is inspected too, returns the inspection for
/// that instead. `Err`: the request is blocked.
pub fn settle(
    at: &mut impl Edge,
    server: &LocalServer,
    (inspection, terms): (Inspection, Terms),
    verdict: Verdict,
) -> Result<Option<Box<PassedInspection>>, Block> {
    if let Some(unjudged) = terms.unjudged_of(&verdict) {
        return Ok(Some(Box::new(PassedInspection { inspection, terms, unjudged })));
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
    let outcome = InspectionOutcome::of(&verdict, &inspection, blocks_unjudged);
    let block = Block::of(&verdict, blocks_unjudged);
    let status = block.as_ref().map_or(0, Block::status);
    tell(at, (server, terms), inspection, outcome, status);
    block
}

/// Counts an inspection, and logs it if needed.
pub fn tell(
    at: &mut impl Edge,
    (server, terms): (&LocalServer, &Terms),
    mut inspection: Inspection,
    outcome: InspectionOutcome,
    status: u16,
) {
    at.note(Step::Inspected { terms, inspection: &inspection, outcome, status });
    let counters = &server.counters;
    counters.waf_inspected.add(1);
    match outcome {
        InspectionOutcome::Passed | InspectionOutcome::Unfinished => {}
        InspectionOutcome::Detected(_) => counters.waf_detected.add(1),
        InspectionOutcome::Blocked(_) => counters.waf_blocked.add(1),
        InspectionOutcome::Unjudged { .. } => counters.waf_unjudged.add(1),
    }
    let is_logged = inspection.matches().iter().any(|found| found.is_logged);
    let has_findings = is_logged || !inspection.findings().is_empty();
    let is_of_note = !matches!(outcome, InspectionOutcome::Passed | InspectionOutcome::Unfinished);
    if is_of_note || has_findings || terms.waf.record == Record::All {
        inspection.logging();
        report(at, (server, terms), Some(inspection), outcome, status);
    }
}

/// Counts and logs a request whose inspection was lost.
pub fn tell_lost(
    at: &mut impl Edge,
    (server, terms): (&LocalServer, &Terms),
    outcome: InspectionOutcome,
    status: u16,
) {
    server.counters.waf_inspected.add(1);
    if matches!(outcome, InspectionOutcome::Unjudged { .. }) {
        server.counters.waf_unjudged.add(1);
    }
    report(at, (server, terms), None, outcome, status);
}

/// Hands the inspection over to the log.
fn report(
    at: &mut impl Edge,
    (server, terms): (&LocalServer, &Terms),
    inspection: Option<Inspection>,
    outcome: InspectionOutcome,
    status: u16,
) {
    let report = InspectionReport {
        request_id: Box::from(&*terms.request_id),
        virtual_server: Arc::clone(&server.live.name),
        credential_fields: server.snapshot.authenticating.credential_fields.clone(),
        client: terms.client,
        mode: terms.mode,
        outcome,
        status,
        inspection,
    };
    at.tell(Notice::Inspected(Box::new(report)));
}

/// A held body that may be forwarded.
pub struct PassedBody {
    body: HeldBody,
    end: OwnedEnd,
    judged: Option<Box<PassedInspection>>,
}

impl PassedBody {
    /// A body without a verdict that would be of use for the response.
    pub fn unjudged((body, end): (HeldBody, OwnedEnd)) -> Self {
        Self { body, end, judged: None }
    }

    /// The body waits for a member.
    pub fn wait(self, exchange_inspection: &mut ExchangeInspection, request: &mut Request) {
        let Self { body, end, judged } = self;
        request.has_long_body_ahead = body.bytes().len() > KEPT_PIECE_BYTES_MAX;
        exchange_inspection.set(InspectionState::Passed(body, end, judged));
    }
}

/// Judges a request whose body is held by this verdict. `Err`: it is blocked.
pub fn settle_body(
    at: &mut impl Edge,
    server: &LocalServer,
    (inspection, verdict): (Inspection, Verdict),
    terms: Terms,
    (body, end): (HeldBody, OwnedEnd),
) -> Result<PassedBody, Block> {
    let judged = settle(at, server, (inspection, terms), verdict)?;
    Ok(PassedBody { body, end, judged })
}

/// The end of a request that is blocked, or whose response is.
pub fn end_of_blocked(
    block: &Block,
    ends: &TransactionEnds,
    tools: &Tools,
) -> ExchangeEnd<'static> {
    let (server, termination) = (&ends.server, Termination::Waf);
    let response = match block {
        Block::Close => return ExchangeEnd::Cut { termination, must_reset: false },
        Block::Redirect { to, status } => {
            let mut fields = FieldEdits::default();
            fields.add(b"Location", |out| out.extend_from_slice(to));
            WeirResponse::with_fields(server, *status, termination, fields)
        }
        Block::Answer(status) => {
            let id = id_of(tools, ends.account.request_number, ends.context.as_deref());
            let mut fields = FieldEdits::default();
            let body = match server.error_page(*status) {
                Some(page) => {
                    add_content_type(&mut fields, &page);
                    with_request_id(&page.body, id.as_bytes())
                }
                None => format!("The request was blocked. Its number is {id}.\n").into_bytes(),
            };
            WeirResponse::with_text(*status, termination, fields, body)
        }
    };
    ExchangeEnd::Response(response)
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
