//! Inspection of requests by the web application firewall: after limits and policies, before the member.
//!
//! A head is judged when it arrives. A body that rules inspect is held until it is complete and judged; then it is
//! forwarded to the member behind the head, unchanged. In mode `detect` it is forwarded at once, and judged when it is
//! complete. Bodies that rules do not inspect are not held. An inspection that takes more than a turn goes on elsewhere
//! ([`verdict_waits`]).

use std::rc::Rc;
use std::sync::Arc;

use weir_config::snapshot::{Record, Waf};
use weir_core::policy::{Decision, WafMode};
use weir_http::edits::RequestEdits;
use weir_http::fields::forwarded_values;
use weir_http::message::{Field, FieldId, Framing, RequestHead, Version};
use weir_waf::body::Call;
use weir_waf::inspection::{
    self, BodyLength, Inspection, Limit, Options, Question, TimeLimit, UnreadBody, Verdict,
    judge_unread,
};

use crate::edge::Edge;
use crate::local::cookies::UnsealedCookies;
use crate::local::forms::Forms;
use crate::local::table::LocalServer;
use crate::parts::arrival::Arrival;
use crate::parts::end::{End, OwnedEnd};
use crate::parts::held_response::after_request;
use crate::parts::inspection::{
    AnnouncedBody, Block, BodyInspection, ExchangeInspection, GrpcCallCheck, InspectedPart,
    InspectionState, LongInspection, PassedInspection, ResponseInspection, StreamedInspection,
    Terms,
};
use crate::parts::inspection_report::InspectionOutcome;
use crate::parts::pace::{Pace, Patience};
use crate::parts::pieces::Pieces;
use crate::parts::request::Request;
use crate::parts::request_context::RequestContext;
use crate::parts::stage_result::StageResult;
use crate::parts::stages::{Stage, Stages, Wait};
use crate::parts::transaction_ends::TransactionEnds;
use crate::parts::wait_state::WaitState;
use crate::parts::witness::Step;
use crate::transaction::inspection_results::{
    AfterHead, after_head, conclude, read, settle, settle_body, settle_head, tell,
};
use crate::transaction::request_id::name_inspected;
use crate::transaction::verdict_waits;

/// Inspects the head of a request as the member will receive it; and the whole request if its body is not inspected.
/// Gives the request a number if it has no id. Returns what is left of the inspection.
pub fn inspect_head(
    at: &mut impl Edge,
    arrival: &Arrival<'_>,
    decision: &mut Decision,
    (number, context): (&mut u64, Option<&RequestContext>),
    (opened, forms): (Option<&UnsealedCookies>, Forms),
) -> ExchangeInspection {
    let Some(waf) = &arrival.server.waf else { return ExchangeInspection::NONE };
    let mode = decision.inspection.unwrap_or(waf.mode);
    let engine_mode = match mode {
        WafMode::Off => return ExchangeInspection::NONE,
        WafMode::Detect => inspection::Mode::Detect,
        WafMode::Block => inspection::Mode::Block,
    };
    let Arrival { head, input, server, .. } = *arrival;
    let request_id = name_inspected(at.tools(), number, context);
    let terms = Terms { waf: waf.clone(), mode, request_id, client: arrival.client() };
    let options = options(at, waf, engine_mode);
    if waf.responses.is_some() && waf.common.view().looks_at_response_bodies() {
        // Rules cannot read encoded responses.
        decision.request.fields.remove(b"Accept-Encoding");
    }
    at.note(Step::Inspects(&terms));
    let inspection = begin(&terms, &options, arrival, (&decision.request, opened));
    let mut announced = AnnouncedBody {
        framing: head.framing,
        is_call: is_stream(head, input, forms),
        is_awaited: head.expect_continue && terms.holds_bodies(),
    };
    let turn = at.tools().offloaded.turn;
    let (inspection, verdict) = match inspection::judge(inspection, Question::Head, turn) {
        inspection::Step::Done(inspection, verdict) => (inspection, verdict),
        inspection::Step::More(unfinished) => {
            announced.is_awaited &= announced.has_body();
            if announced.is_awaited {
                // Whether the body is held is not known yet. The client is told to continue in any case.
                decision.request.fields.remove(b"Expect");
            }
            let judging = LongInspection::new(unfinished, terms, InspectedPart::Head(announced));
            return ExchangeInspection::of(Some(InspectionState::Judging(Box::new(judging))));
        }
    };
    let found = match after_head(at, announced, &terms, inspection, verdict) {
        AfterHead::Read(inspection) => {
            if terms.holds_bodies() {
                decision.request.fields.remove(b"Expect");
            }
            return ExchangeInspection::of(Some(read(at, announced, (inspection, terms))));
        }
        AfterHead::More(unfinished) => {
            // Its body is not held, so the member gets to know what its client awaits.
            announced.is_awaited = false;
            let judging = LongInspection::new(unfinished, terms, InspectedPart::Request(announced));
            return ExchangeInspection::of(Some(InspectionState::Judging(Box::new(judging))));
        }
        AfterHead::Judged(inspection, verdict) => (inspection, verdict),
    };
    ExchangeInspection::of(match settle_head(at, server, announced, found, terms) {
        Err(block) => Some(InspectionState::Blocked(block)),
        Ok(state) => state,
    })
}

fn options(at: &mut impl Edge, waf: &Waf, mode: inspection::Mode) -> Options {
    let time = TimeLimit { max_us: waf.time_max_ms * 1_000, now_us: at.tools().cpu_us };
    Options {
        mode,
        limits: waf.limits,
        inflated_bytes_max: waf.body_bytes_max,
        work_bytes_max: waf.work_bytes_max,
        time: Some(time),
        checks: waf.checks.clone(),
        keeps_body: waf.record != Record::Off,
    }
}

/// Passes a request to the rules.
fn begin(
    terms: &Terms,
    options: &Options,
    arrival: &Arrival<'_>,
    (edits, opened): (&RequestEdits, Option<&UnsealedCookies>),
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
    opened: Option<&'a UnsealedCookies>,
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

/// Logs a request that has no response to inspect.
fn report_passed_inspection(at: &mut impl Edge, server: &LocalServer, judged: PassedInspection) {
    let PassedInspection { inspection, terms, unjudged } = judged;
    conclude(at, server, &terms, inspection, after_request(Verdict::Pass, unjudged));
}

/// Ends the part of a body that rules inspect, and judges the request: all of it, or the part before a limit, or before it was
/// let go.
fn end_body(
    at: &mut impl Edge,
    mut inspection: Inspection,
    limit: Option<Limit>,
    is_whole: bool,
) -> inspection::Step {
    if !is_whole && limit.is_none() {
        inspection.leave_body_out();
    }
    inspection::judge(inspection, Question::Body(limit), at.tools().offloaded.turn)
}

impl ExchangeInspection {
    /// The exchange has ended, or has its response, before the whole body arrived: logs the findings so far.
    pub fn leave(&mut self, at: &mut impl Edge, server: &Rc<LocalServer>) {
        let Some(state) = self.take() else { return };
        match state {
            InspectionState::Judging(judging) => verdict_waits::leave(server, at, *judging),
            InspectionState::Reading(reading) => {
                let BodyInspection { mut inspection, terms, .. } = *reading;
                inspection.leave_body_out();
                tell(at, (server, &terms), inspection, InspectionOutcome::Unfinished, 0);
            }
            InspectionState::Following(following) => {
                let StreamedInspection { mut inspection, terms, .. } = *following;
                inspection.leave_body_out();
                tell(at, (server, &terms), inspection, InspectionOutcome::Unfinished, 0);
            }
            InspectionState::Calling(calling) => {
                let GrpcCallCheck { inspection, terms, verdict, .. } = *calling;
                conclude(at, server, &terms, inspection, verdict);
            }
            InspectionState::Passed(_, _, Some(judged))
            | InspectionState::Passing(_, Some(judged)) => {
                report_passed_inspection(at, server, *judged);
            }
            InspectionState::Answering(answering) => {
                let ResponseInspection { inspection, terms, response } = *answering;
                let unjudged = response.facts.unjudged;
                report_passed_inspection(
                    at,
                    server,
                    PassedInspection { inspection, terms, unjudged },
                );
            }
            InspectionState::Passed(_, _, None)
            | InspectionState::Passing(_, None)
            | InspectionState::Blocked(_) => {}
        }
    }

    /// Waits for the body, which is held until it is judged. A client that waits for 100 (Continue) gets it. `client_version`: that of
    /// the client.
    pub fn await_body(
        &mut self,
        at: &mut impl Edge,
        ends: &mut TransactionEnds,
        (patience, client_version): (Patience, Version),
    ) -> StageResult {
        debug_assert!(self.holds_request(), "otherwise nothing ends the wait");
        if let Some(InspectionState::Reading(reading)) = self.state_mut() {
            let is_awaited = std::mem::take(&mut reading.is_awaited);
            patience.await_request(at, ends, self);
            if is_awaited {
                ends.send_continue(at, client_version);
            }
        }
        StageResult::Wait(Wait::Body)
    }

    /// Holds pieces of the body. Judges the request when the body is complete or exceeds a limit. `None`: more is awaited. An
    /// inspection that needs another turn is added to the stages.
    pub fn hold_request(
        &mut self,
        at: &mut impl Edge,
        (ends, patience): (&mut TransactionEnds, Patience),
        (request, stages): (&mut Request, &mut Stages),
        (input, pieces): (&[u8], &Pieces),
        end: End<'_>,
    ) -> Option<StageResult> {
        let Some(InspectionState::Reading(reading)) = self.state_mut() else {
            return None;
        };
        let limit = reading.take(pieces.of(input), at.tools().offloaded.turn);
        let is_let_go = !reading.inspection.needs_body();
        request.receive(!matches!(end, End::No));
        if !request.is_whole() || ends.is_client_behind(at) {
            patience.await_request(at, ends, self);
        } else {
            ends.clear_client_deadline(at);
            patience.watch_leaving_client(at, ends);
        }
        if !request.is_whole() && limit.is_none() && !is_let_go {
            ends.give_window(at);
            return None;
        }
        Some(self.judge_request(at, ends, (request, stages), limit, end))
    }

    /// Judges a request with the body that has arrived.
    fn judge_request(
        &mut self,
        at: &mut impl Edge,
        ends: &mut TransactionEnds,
        (request, stages): (&mut Request, &mut Stages),
        limit: Option<Limit>,
        end: End<'_>,
    ) -> StageResult {
        let Some(InspectionState::Reading(reading)) = self.take() else {
            return StageResult::On;
        };
        ends.phase.park(WaitState::No);
        let unread = reading.unread(limit);
        let BodyInspection { inspection, terms, body, decoding, .. } = *reading;
        let step = match unread {
            Some(unread) => {
                debug_assert!(request.is_whole() || limit.is_some(), "it is not let go");
                judge_unread(inspection, unread, at.tools().offloaded.turn)
            }
            None => end_body(at, inspection, limit, request.is_whole()),
        };
        match step {
            inspection::Step::Done(inspection, verdict) => {
                drop(decoding);
                let found = (inspection, verdict);
                let held = (body, OwnedEnd::of(end));
                match settle_body(at, &ends.server, found, terms, held) {
                    Ok(passed) => {
                        passed.wait(self, request);
                        StageResult::On
                    }
                    Err(block) => StageResult::BlockBody(block),
                }
            }
            inspection::Step::More(unfinished) => {
                let of = InspectedPart::Body { body, decoding, end: OwnedEnd::of(end) };
                let judging = LongInspection::new(unfinished, terms, of);
                self.set(InspectionState::Judging(Box::new(judging)));
                stages.add_if(Stage::Judge, true);
                // It goes elsewhere first.
                self.await_verdict(at, ends, (request, stages))
            }
        }
    }

    /// Shows forwarded pieces of a body to the rules. Judges the request when the body is complete or exceeds a limit. Returns
    /// how the request is blocked, if it is: then nothing more of it is forwarded.
    pub fn follow(
        &mut self,
        at: &mut impl Edge,
        ends: &TransactionEnds,
        (input, pieces): (&[u8], &Pieces),
        is_whole: bool,
    ) -> Option<Block> {
        if let Some(InspectionState::Calling(_)) = self.state() {
            return self.follow_call(at, &ends.server, (input, pieces), is_whole);
        }
        let Some(InspectionState::Following(following)) = self.state_mut() else {
            return None;
        };
        let turn = at.tools().offloaded.turn;
        let limit = following.take(pieces.of(input), turn);
        if !is_whole && limit.is_none() && following.inspection.needs_body() {
            return None;
        }
        let Some(InspectionState::Following(following)) = self.take() else {
            return None;
        };
        let StreamedInspection { inspection, terms, unread, held, decoding, .. } = *following;
        let step = match unread.is_empty() {
            true => end_body(at, inspection, limit, is_whole),
            false => {
                debug_assert!(is_whole || limit.is_some(), "it is not let go");
                let unread = UnreadBody::Request { body: Arc::new(unread), from: 0, limit };
                judge_unread(inspection, unread, turn)
            }
        };
        match step {
            inspection::Step::Done(inspection, verdict) => {
                let block = conclude(at, &ends.server, &terms, inspection, verdict);
                debug_assert_eq!(
                    block, None,
                    "nothing is kept from members where rules only detect"
                );
            }
            inspection::Step::More(unfinished) => {
                let held = vec![held, decoding];
                verdict_waits::continue_without_verdict(ends, at, (unfinished, terms), None, held);
            }
        }
        None
    }

    /// Looks at the first bytes of a body that its type names a gRPC call. A body that is none was not judged.
    fn follow_call(
        &mut self,
        at: &mut impl Edge,
        server: &LocalServer,
        (input, pieces): (&[u8], &Pieces),
        is_whole: bool,
    ) -> Option<Block> {
        let Some(InspectionState::Calling(calling)) = self.state_mut() else {
            return None;
        };
        let answer = calling.take(pieces.of(input));
        let is_none = match answer {
            Call::Yes => false,
            Call::No => true,
            Call::Unknown if is_whole => !calling.look.is_empty(),
            Call::Unknown => return None,
        };
        let Some(InspectionState::Calling(calling)) = self.take() else {
            return None;
        };
        let GrpcCallCheck { inspection, terms, verdict, .. } = *calling;
        let verdict = if is_none { Verdict::Exceeded(Limit::Body) } else { verdict };
        match settle(at, server, (inspection, terms), verdict) {
            Ok(judged) => {
                let judged = judged.map(|judged| InspectionState::Passing(None, Some(judged)));
                *self = Self::of(judged);
                None
            }
            Err(block) => Some(block),
        }
    }

    /// Takes a held body that was judged, and is forwarded now. `None`: there is none.
    pub fn take_judged_body(&mut self, request: &mut Request) -> Option<(Arc<Vec<u8>>, OwnedEnd)> {
        let is_passed = |state: &InspectionState| matches!(state, InspectionState::Passed(..));
        let InspectionState::Passed(body, end, judged) = self.take_if(is_passed)? else {
            return None;
        };
        request.has_long_body_ahead = false;
        let (bytes, held) = body.into_parts();
        // The member may be slow: the room for the held body is released when the member has taken it.
        self.set(InspectionState::Passing(Some(held), judged));
        Some((bytes, end))
    }

    /// How a request was blocked at its head.
    pub fn take_block(&mut self) -> Option<Block> {
        match self.take()? {
            InspectionState::Blocked(block) => Some(block),
            _ => None,
        }
    }
}
