//! The state of an inspection by the web application firewall, and bodies that are held for it.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use weir_config::snapshot::{UnjudgedAction, Waf};
use weir_core::policy::WafMode;
use weir_http::message::Framing;
use weir_waf::body::{Call, LOOK_BYTES, call};
use weir_waf::inspection::{
    Inspection, Limit, Turn, UnfinishedInspection, UnreadBody, Verdict, decoding_bytes_max,
    may_read_later, read_first,
};

use crate::parts::end::OwnedEnd;
use crate::parts::held_memory::{HeldBody, HeldBytes};
use crate::parts::held_response::HeldResponse;
use crate::parts::inspection_job::Ticket;

/// The state of an inspection.
pub enum InspectionState {
    /// The inspection takes more than a turn: the request waits at [`Stage::Judge`](crate::parts::stages::Stage::Judge), or its
    /// response waits.
    Judging(Box<LongInspection>),
    /// The body is arriving and is held.
    Reading(Box<BodyInspection>),
    /// The body is forwarded to the member while it is inspected.
    Following(Box<StreamedInspection>),
    /// The request is judged; its body is forwarded if it begins as a gRPC call.
    Calling(Box<GrpcCallCheck>),
    /// The request may continue; its held body waits for a member.
    Passed(HeldBody, OwnedEnd, Option<Box<PassedInspection>>),
    /// The request was sent to a member. The reservation for its held body lasts until the member answers.
    Passing(Option<HeldBytes>, Option<Box<PassedInspection>>),
    /// The response body is arriving and is held.
    Answering(Box<ResponseInspection>),
    /// The request is blocked.
    Blocked(Block),
}

impl InspectionState {
    /// The request or response whose inspection takes more than a turn.
    pub fn into_judging(self) -> Option<LongInspection> {
        match self {
            Self::Judging(judging) => Some(*judging),
            _ => None,
        }
    }

    /// The held response; `None`: none is held.
    pub fn response(&self) -> Option<&HeldResponse> {
        match self {
            Self::Answering(answering) => Some(&answering.response),
            Self::Judging(judging) => judging.of.response(),
            _ => None,
        }
    }

    /// As [`Self::response`], mutable.
    pub fn response_mut(&mut self) -> Option<&mut HeldResponse> {
        match self {
            Self::Answering(answering) => Some(&mut answering.response),
            Self::Judging(judging) => judging.of.response_mut(),
            _ => None,
        }
    }
}

/// The inspection of an exchange: of its request ([`crate::transaction::request_inspection`]), then of its response
/// ([`crate::transaction::response_inspection`]).
pub struct ExchangeInspection {
    /// Its state; `None`: there is nothing to inspect, or nothing more.
    state: Option<Box<InspectionState>>,
}

impl ExchangeInspection {
    /// There is nothing to inspect.
    pub const NONE: Self = Self { state: None };

    /// In this state.
    pub fn of(state: Option<InspectionState>) -> Self {
        Self { state: state.map(Box::new) }
    }

    /// Whether there is nothing to inspect, or nothing more.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.state.is_none()
    }

    /// Its state.
    #[inline]
    pub fn state(&self) -> Option<&InspectionState> {
        self.state.as_deref()
    }

    /// Its state, mutable.
    pub fn state_mut(&mut self) -> Option<&mut InspectionState> {
        self.state.as_deref_mut()
    }

    /// It is in this state from now on.
    pub fn set(&mut self, state: InspectionState) {
        self.state = Some(Box::new(state));
    }

    /// Takes its state: nothing more is inspected.
    #[inline]
    pub fn take(&mut self) -> Option<InspectionState> {
        self.state.take().map(|state| *state)
    }

    /// As [`Self::take`], if the state is such.
    pub fn take_if(
        &mut self,
        is_such: impl FnOnce(&InspectionState) -> bool,
    ) -> Option<InspectionState> {
        self.state.take_if(|state| is_such(state)).map(|state| *state)
    }

    /// Whether the body of the request is held until it is judged.
    pub fn holds_request(&self) -> bool {
        matches!(self.state(), Some(InspectionState::Reading(_)))
    }

    /// Whether the body of the request is held until it is judged, or will be if rules read it.
    pub fn may_hold_request(&self) -> bool {
        match self.state() {
            Some(InspectionState::Reading(_)) => true,
            Some(InspectionState::Judging(judging)) => {
                matches!(judging.of, InspectedPart::Head(announced) if announced.has_body())
                    && judging.terms.holds_bodies()
            }
            _ => false,
        }
    }

    /// The held response; `None`: none is held.
    #[inline]
    pub fn response(&self) -> Option<&HeldResponse> {
        self.state().and_then(InspectionState::response)
    }
}

/// A request or a response whose inspection takes more than a turn.
pub struct LongInspection {
    /// The inspection.
    pub work: InspectionPlace,
    /// The terms of the inspection.
    pub terms: Terms,
    /// What is judged, and what it needs afterwards.
    pub of: InspectedPart,
    /// Until when it waits for an inspection elsewhere, in microseconds of the clock.
    pub until_us: u64,
    /// When this time is looked at next.
    pub look_us: u64,
}

impl LongInspection {
    /// An inspection that needs another turn.
    pub fn new(unfinished: UnfinishedInspection, terms: Terms, of: InspectedPart) -> Self {
        Self { work: InspectionPlace::Here(unfinished), terms, of, until_us: 0, look_us: 0 }
    }
}

/// Where an inspection is.
pub enum InspectionPlace {
    /// Here: it goes elsewhere when it is first looked for.
    Here(UnfinishedInspection),
    /// Elsewhere.
    Away(Ticket),
    /// It has come back.
    Done(Inspection, Verdict),
    /// It does not come back.
    Lost,
}

/// What an inspection judges.
pub enum InspectedPart {
    /// The head.
    Head(AnnouncedBody),
    /// The whole request, whose body rules do not read.
    Request(AnnouncedBody),
    /// The whole request.
    Body {
        /// The body.
        body: HeldBody,
        /// Reserved memory for decoding an encoded body.
        decoding: HeldBytes,
        /// The end of the body.
        end: OwnedEnd,
    },
    /// The head of the response.
    ResponseHead(Box<HeldResponse>),
    /// The whole response.
    Response(Box<HeldResponse>),
}

impl InspectedPart {
    /// The response; `None`: a request is judged.
    pub fn response(&self) -> Option<&HeldResponse> {
        match self {
            Self::Head(_) | Self::Request(_) | Self::Body { .. } => None,
            Self::ResponseHead(response) | Self::Response(response) => Some(response),
        }
    }

    /// As [`Self::response`], mutable.
    pub fn response_mut(&mut self) -> Option<&mut HeldResponse> {
        match self {
            Self::Head(_) | Self::Request(_) | Self::Body { .. } => None,
            Self::ResponseHead(response) | Self::Response(response) => Some(response),
        }
    }

    /// Whether rules have not got the whole body of the request.
    pub fn is_cut(&self) -> bool {
        matches!(self, Self::Head(_) | Self::Request(_))
    }

    /// The reserved memory of what is held, which is dropped.
    pub fn into_held(self) -> Vec<HeldBytes> {
        match self {
            Self::Head(_) | Self::Request(_) => Vec::new(),
            Self::Body { body, decoding, .. } => vec![body.into_held(), decoding],
            Self::ResponseHead(response) | Self::Response(response) => {
                vec![response.body.into_held()]
            }
        }
    }
}

/// What a head says of the body.
#[derive(Debug, Clone, Copy)]
pub struct AnnouncedBody {
    /// The framing.
    pub framing: Framing,
    /// Client and member may alternate within their bodies.
    pub is_call: bool,
    /// The client waits for 100 (Continue), and the member does not get to know.
    pub is_awaited: bool,
}

impl AnnouncedBody {
    /// Whether the request has a body that may be held.
    pub fn has_body(&self) -> bool {
        !self.framing.is_empty() && !self.is_call
    }
}

/// A request without a blocking finding, whose response is inspected too.
pub struct PassedInspection {
    /// The inspection so far.
    pub inspection: Inspection,
    /// The terms of the inspection.
    pub terms: Terms,
    /// The limit that prevented a verdict on the request, which continues nevertheless.
    pub unjudged: Option<Limit>,
}

/// A response whose body is arriving, and which rules read.
pub struct ResponseInspection {
    /// The inspection of the request, and of the head of the response.
    pub inspection: Inspection,
    /// The terms of the inspection.
    pub terms: Terms,
    /// The response so far.
    pub response: HeldResponse,
}

/// A request whose body is arriving.
pub struct BodyInspection {
    /// The inspection so far.
    pub inspection: Inspection,
    /// The terms of the inspection.
    pub terms: Terms,
    /// The body so far.
    pub body: HeldBody,
    /// The number of its first bytes that rules have got. The rest of a long body is read elsewhere.
    pub read_bytes: usize,
    /// Reserved memory for decoding an encoded body.
    pub decoding: HeldBytes,
    /// The deadline for the whole body.
    pub until_ms: u64,
    /// The client waits for 100 (Continue).
    pub is_awaited: bool,
}

impl BodyInspection {
    /// Adds a piece of the body, which is held in any case. Returns the limit that prevents a verdict, if any.
    ///
    /// `turn`: the turn of an inspection here. A body that is too long for it, or is encoded, is not read here to its end.
    pub fn take<'a>(&mut self, data: impl Iterator<Item = &'a [u8]>, turn: Turn) -> Option<Limit> {
        let mut has_room = true;
        for piece in data {
            let is_read = self.read_bytes == self.body.bytes().len();
            has_room &= self.body.push(piece);
            if is_read {
                let bytes = self.body.bytes().len();
                self.read_bytes += read_here(&mut self.inspection, (piece, bytes), turn);
            }
            self.leave_unread();
            has_room &= self.decoding.raise_to(self.inspection.body_progress().decoding_bytes);
        }
        limit_of(&self.inspection, &self.terms, self.body.bytes().len() as u64, has_room)
    }

    /// Leaves the rest of the body for later, if there is room to decode it then. Otherwise it is read here after all.
    fn leave_unread(&mut self) {
        let bytes = self.body.bytes();
        let Some(unread) = bytes.get(self.read_bytes..).filter(|unread| !unread.is_empty()) else {
            return;
        };
        let bytes_max = decoding_bytes_max(&self.inspection, bytes.len() as u64);
        if !self.decoding.raise_if_room(bytes_max) {
            self.inspection.body(unread);
            self.read_bytes = bytes.len();
        }
    }

    /// The end of the body that rules have not got. `limit`: what ends the body.
    pub fn unread(&self, limit: Option<Limit>) -> Option<UnreadBody> {
        let is_read = self.read_bytes >= self.body.bytes().len();
        let unread =
            || UnreadBody::Request { body: self.body.shared(), from: self.read_bytes, limit };
        (!is_read).then(unread)
    }
}

/// Passes a piece of a body to rules, as far as they read it here: a body that is too long for this turn, or is encoded, is read
/// elsewhere. `bytes`: the length of the body so far. Returns the number of bytes that rules have got.
fn read_here(inspection: &mut Inspection, (piece, bytes): (&[u8], usize), turn: Turn) -> usize {
    if turn.input_bytes_max == usize::MAX {
        inspection.body(piece);
        return piece.len();
    }
    if bytes > turn.input_bytes_max && may_read_later(inspection) {
        return 0;
    }
    read_first(inspection, piece, turn.input_bytes_max)
}

/// The limit that prevents a verdict on a body of this size.
fn limit_of(inspection: &Inspection, terms: &Terms, bytes: u64, has_room: bool) -> Option<Limit> {
    // The first bytes have shown that rules need none of it.
    if !inspection.needs_body() {
        return None;
    }
    let progress = inspection.body_progress();
    let is_too_long = bytes.saturating_sub(progress.files_bytes) > terms.waf.body_bytes_max
        || progress.files_bytes > terms.waf.files_bytes_max;
    match (is_too_long, has_room) {
        (true, _) => Some(Limit::BodyLength),
        (false, false) => Some(Limit::Memory),
        (false, true) => progress.limit,
    }
}

/// A request that cannot be blocked any more: its body is forwarded while it is inspected.
pub struct StreamedInspection {
    /// The inspection so far.
    pub inspection: Inspection,
    /// The terms of the inspection.
    pub terms: Terms,
    /// The number of body bytes, which the rules keep too.
    pub bytes: u64,
    /// The last of them, which rules have not got. They are read elsewhere.
    pub unread: Vec<u8>,
    /// Reserved memory for these bytes.
    pub held: HeldBytes,
    /// Reserved memory for decoding an encoded body.
    pub decoding: HeldBytes,
}

impl StreamedInspection {
    /// Passes a piece of the body to the rules, or keeps it for later, as [`BodyInspection::take`] does. Returns the limit that prevents
    /// a verdict, if any.
    pub fn take<'a>(&mut self, data: impl Iterator<Item = &'a [u8]>, turn: Turn) -> Option<Limit> {
        let mut has_room = true;
        for piece in data {
            self.bytes += piece.len() as u64;
            has_room &= self.held.raise_to(self.bytes);
            let read = match self.unread.is_empty() {
                true => read_here(&mut self.inspection, (piece, self.bytes as usize), turn),
                false => 0,
            };
            self.unread.extend_from_slice(piece.get(read..).unwrap_or_default());
            self.leave_unread();
            has_room &= self.decoding.raise_to(self.inspection.body_progress().decoding_bytes);
        }
        limit_of(&self.inspection, &self.terms, self.bytes, has_room)
    }

    /// Leaves bytes for later, if there is room to decode the body then. Otherwise they are read here after all.
    fn leave_unread(&mut self) {
        if self.unread.is_empty() {
            return;
        }
        let bytes_max = decoding_bytes_max(&self.inspection, self.bytes);
        if !self.decoding.raise_if_room(bytes_max) {
            self.inspection.body(&std::mem::take(&mut self.unread));
        }
    }
}

/// A request that its type names a gRPC call. Client and member may alternate within their bodies, so nothing is held.
pub struct GrpcCallCheck {
    /// The inspection, which is complete.
    pub inspection: Inspection,
    /// The terms of the inspection.
    pub terms: Terms,
    /// The verdict on the head, if the body is that of a call.
    pub verdict: Verdict,
    /// The first bytes of the body.
    pub look: Vec<u8>,
}

impl GrpcCallCheck {
    /// Looks at a piece of the body. Returns whether the body is that of a call.
    pub fn take<'a>(&mut self, data: impl Iterator<Item = &'a [u8]>) -> Call {
        for piece in data {
            let left = LOOK_BYTES - self.look.len().min(LOOK_BYTES);
            self.look.extend_from_slice(piece.get(..left).unwrap_or(piece));
        }
        call(&self.look)
    }
}

/// The settings of a request's inspection.
pub struct Terms {
    /// The settings of the virtual server.
    pub waf: Arc<Waf>,
    /// The mode for findings.
    pub mode: WafMode,
    /// The request id.
    pub request_id: Rc<str>,
    /// The client.
    pub client: Option<SocketAddr>,
}

impl Terms {
    /// Whether a body that rules read is held until it is judged.
    pub fn holds_bodies(&self) -> bool {
        !self.only_watch() || self.waf.responses.is_some()
    }

    /// Whether rules only watch requests and responses: no verdict has an effect.
    pub fn only_watch(&self) -> bool {
        self.mode == WafMode::Detect
    }

    /// The number of bytes of a response's body that rules get at most.
    pub fn response_bytes_max(&self) -> usize {
        self.waf.responses.as_ref().map_or(0, |responses| responses.bytes_max)
    }

    /// Whether requests without a verdict are blocked.
    pub fn blocks_unjudged(&self) -> bool {
        self.mode == WafMode::Block && self.waf.unjudged == UnjudgedAction::Block
    }

    /// For a request whose response is inspected too: the limit that prevented a verdict on the request, which continues
    /// nevertheless. `None`: the verdict on the request is the last one.
    pub fn unjudged_of(&self, verdict: &Verdict) -> Option<Option<Limit>> {
        self.waf.responses.as_ref()?;
        match verdict {
            Verdict::Pass => Some(None),
            Verdict::Exceeded(limit) if !self.blocks_unjudged() => Some(Some(*limit)),
            _ => None,
        }
    }
}

/// The response to a blocked request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// An answer with this status.
    Answer(u16),
    /// A redirect.
    Redirect {
        /// The target.
        to: Vec<u8>,
        /// The status.
        status: u16,
    },
    /// The connection is closed.
    Close,
}

impl Block {
    /// The action of a verdict; `None`: the request continues.
    pub fn of(verdict: &Verdict, blocks_unjudged: bool) -> Option<Self> {
        match verdict {
            Verdict::Pass => None,
            Verdict::Deny { status, .. } | Verdict::Refused { status, .. } => {
                Some(Self::Answer(*status))
            }
            Verdict::Drop { .. } => Some(Self::Close),
            Verdict::Redirect { to, status, .. } if is_field_value(to) => {
                Some(Self::Redirect { to: to.clone(), status: *status })
            }
            // The target may contain text of the client, so the response is no redirect.
            Verdict::Redirect { .. } => Some(Self::Answer(403)),
            Verdict::Exceeded(limit) if blocks_unjudged => {
                Some(Self::Answer(status_of_unjudged(*limit)))
            }
            Verdict::Exceeded(_) => None,
        }
    }

    /// The status of the response; 0: no response.
    pub fn status(&self) -> u16 {
        match self {
            Self::Answer(status) | Self::Redirect { status, .. } => *status,
            Self::Close => 0,
        }
    }
}

/// The status of the answer to a request without a verdict.
fn status_of_unjudged(limit: Limit) -> u16 {
    match limit {
        Limit::Body => 400,
        Limit::BodyLength => 413,
        Limit::Memory => 503,
        Limit::Work | Limit::Time | Limit::Variables | Limit::Arguments | Limit::Pattern => 403,
    }
}

fn is_field_value(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use weir_testing::encode;
    use weir_waf::inspection::{BodyLength, Mode, Options, Request};

    use super::*;
    use crate::parts::held_memory::HeldRoom;
    use crate::parts::inspection_job::TURN;

    /// Settings with the built-in rules.
    fn settings() -> Arc<Waf> {
        let text = "virtual_servers: { a: { listen: \"127.0.0.1:0\", pool: p, waf: { mode: block } } }\n\
                    pools: { p: { members: [ 127.0.0.1:1 ] } }\n";
        let config = weir_config::parse("test.yaml", text).config.expect("a good configuration");
        let snapshot = config.snapshot(&weir_config::Resolutions::default());
        snapshot.virtual_servers[0].waf.clone().expect("a firewall")
    }

    /// A request with these headers whose body is about to arrive.
    fn reading(waf: &Arc<Waf>, room: &HeldRoom, headers: &[(&[u8], &[u8])]) -> BodyInspection {
        let address = (Ipv4Addr::LOCALHOST.into(), 80);
        let host = (&b"Host"[..], &b"shop.example"[..]);
        let agent = (&b"User-Agent"[..], &b"test"[..]);
        let headers: Vec<_> = [host, agent].into_iter().chain(headers.iter().copied()).collect();
        let request = Request {
            client: address,
            server: address,
            method: b"POST",
            received_target: b"/",
            target: b"/",
            protocol: b"HTTP/1.1",
            headers: &headers,
            body: BodyLength::Unknown,
            changed_cookies: &[],
            unique_id: b"1",
        };
        let mut inspection = waf.common.begin(&Options::new(Mode::Block), &request);
        assert_eq!(inspection.request_headers(), Verdict::Pass);
        let (mode, request_id) = (WafMode::Block, Rc::from("1"));
        let terms = Terms { waf: Arc::clone(waf), mode, request_id, client: None };
        let body = room.body(None);
        let (decoding, read_bytes) = (body.beside(), 0);
        BodyInspection {
            inspection,
            terms,
            body,
            read_bytes,
            decoding,
            until_ms: 0,
            is_awaited: false,
        }
    }

    #[test]
    fn a_body_is_read_here_as_far_as_a_turn_allows() {
        let waf = settings();
        let json = (&b"Content-Type"[..], &b"application/json"[..]);
        let gzip = (&b"Content-Encoding"[..], &b"gzip"[..]);
        let parts = (&b"Content-Type"[..], &b"multipart/form-data; boundary=b"[..]);
        let short = b"[1,2,3]".to_vec();
        let long = format!("[{}1]", "\"a text\",".repeat(8_000)).into_bytes();
        let whole = usize::MAX;
        for (headers, body, turn, read_bytes) in [
            (vec![json], short.clone(), TURN, 0..=whole),
            (vec![json], long.clone(), TURN, 8_000..=24 << 10),
            (vec![json], long.clone(), Turn::WHOLE, 0..=whole),
            (vec![json, gzip], encode("gzip", &short), TURN, 0..=0),
            (vec![json, gzip], encode("gzip", &short), Turn::WHOLE, 0..=whole),
            // Its files have a limit of their own, so they are counted as they arrive.
            (vec![parts, gzip], encode("gzip", b"--b\r\n"), TURN, 0..=whole),
        ] {
            let room = HeldRoom::default();
            let mut reading = reading(&waf, &room, &headers);
            for piece in body.chunks(10_000) {
                assert_eq!(reading.take([piece].into_iter(), turn), None);
            }
            let is_whole = *read_bytes.end() == whole;
            assert!(read_bytes.contains(&reading.read_bytes), "{}", reading.read_bytes);
            assert_eq!(reading.read_bytes == body.len(), is_whole, "{} bytes", body.len());
            let unread = match reading.unread(None) {
                Some(UnreadBody::Request { body, from, .. }) => Some((from, body.len())),
                Some(UnreadBody::Response { .. }) => panic!("a request was read"),
                None => None,
            };
            assert_eq!(unread, (!is_whole).then_some((reading.read_bytes, body.len())));
        }
    }

    #[test]
    fn a_body_that_is_only_watched_is_kept_for_later_too() {
        let (waf, room) = (settings(), HeldRoom::default());
        let json = (&b"Content-Type"[..], &b"application/json"[..]);
        let gzip = (&b"Content-Encoding"[..], &b"gzip"[..]);
        let long = format!("[{}1]", "\"a text\",".repeat(8_000)).into_bytes();
        let encoded = encode("gzip", b"[1]");
        for (headers, body, turn, is_kept) in [
            (vec![json], b"[1]".to_vec(), TURN, false),
            (vec![json], long.clone(), TURN, true),
            (vec![json], long.clone(), Turn::WHOLE, false),
            (vec![json, gzip], encoded.clone(), TURN, true),
            (vec![json, gzip], encoded, Turn::WHOLE, false),
        ] {
            let BodyInspection { inspection, terms, body: held, decoding, .. } =
                reading(&waf, &room, &headers);
            let (unread, held) = (Vec::new(), held.into_held());
            let mut following =
                StreamedInspection { inspection, terms, bytes: 0, unread, held, decoding };
            for piece in body.chunks(10_000) {
                assert_eq!(following.take([piece].into_iter(), turn), None);
            }
            assert_eq!(!following.unread.is_empty(), is_kept, "{} bytes", body.len());
            assert!(body.ends_with(&following.unread), "no byte is left out");
            assert_eq!(following.bytes, body.len() as u64);
        }
    }

    #[test]
    fn without_room_to_decode_it_later_a_body_is_read_as_it_arrives() {
        let (waf, room) = (settings(), HeldRoom::default());
        let headers = [
            (&b"Content-Type"[..], &b"application/json"[..]),
            (&b"Content-Encoding"[..], &b"gzip"[..]),
        ];
        let body = encode("gzip", b"[1,2,3]");
        let mut other = room.body(None);
        assert!(other.push(&vec![b'x'; (32 << 20) - (200 << 10)]));
        let mut reading = reading(&waf, &room, &headers);
        assert_eq!(reading.take([&body[..]].into_iter(), TURN), None, "there is room for that");
        assert_eq!(reading.read_bytes, body.len());
        drop(other);
        assert_eq!(reading.take([&b"more"[..]].into_iter(), TURN), None);
        assert_eq!(reading.read_bytes, body.len(), "now it can wait");
    }

    #[test]
    fn verdicts_become_answers() {
        let redirect = |to: &str| Verdict::Redirect { to: to.into(), status: 302, rule: 1 };
        for (verdict, blocks_unjudged, expected) in [
            (Verdict::Pass, true, None),
            (Verdict::Deny { status: 403, rule: 1 }, true, Some(Block::Answer(403))),
            (Verdict::Drop { rule: 1 }, true, Some(Block::Close)),
            (redirect("/x"), true, Some(Block::Redirect { to: b"/x".to_vec(), status: 302 })),
            (redirect("/x\r\nSet-Cookie: a=b"), true, Some(Block::Answer(403))),
            (redirect(""), true, Some(Block::Answer(403))),
            (Verdict::Exceeded(Limit::Work), true, Some(Block::Answer(403))),
            (Verdict::Exceeded(Limit::Time), true, Some(Block::Answer(403))),
            (Verdict::Exceeded(Limit::Time), false, None),
            (Verdict::Exceeded(Limit::Body), true, Some(Block::Answer(400))),
            (Verdict::Exceeded(Limit::BodyLength), true, Some(Block::Answer(413))),
            (Verdict::Exceeded(Limit::Memory), true, Some(Block::Answer(503))),
            (Verdict::Exceeded(Limit::BodyLength), false, None),
        ] {
            assert_eq!(Block::of(&verdict, blocks_unjudged), expected, "{verdict:?}");
        }
    }
}
