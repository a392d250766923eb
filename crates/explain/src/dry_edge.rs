//! The environment of a dry run: without connections, logs and queues. It records the calls of the transaction.

use weir_api::explanation::Field;
use weir_core::clock::Clock;
use weir_exchange::arena::Key;
use weir_exchange::edge::{ConnectionState, Edge, Flow, Lag, Release, Side, TunnelBytes, Turn};
use weir_exchange::local::pool::Preference;
use weir_exchange::parts::attempt::Link;
use weir_exchange::parts::end::{End, OwnedEnd};
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::messages::{ClientBodyPart, HeadKind, Message, OutHead, OwnAnswer};
use weir_exchange::parts::notice::Notice;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::request::{ConnectionNeed, Request};
use weir_exchange::parts::stream_end::StreamEnd;
use weir_exchange::parts::tools::Tools;
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::parts::witness::{Step, Witness};
use weir_exchange::termination::Termination;

use crate::masks::Masks;

/// Maximum number of characters shown of an answer's body.
const BODY_BYTES_MAX: usize = 300;

/// The environment of a dry run, with its records.
pub struct DryEdge<'a, W> {
    tools: Tools,
    clock: Clock,
    masks: &'a Masks,
    /// Observes the decisions.
    pub witness: W,
    /// The records.
    pub notes: Notes,
}

/// The records of a dry run.
#[derive(Default)]
pub struct Notes {
    /// The search for a member.
    pub sought: Option<MemberSearch>,
    /// The request as the member receives it.
    pub sent: Option<SentRequest>,
    /// The answer of weir itself.
    pub answer: Option<OwnTold>,
    /// The termination reason.
    pub ended: Option<Termination>,
    /// The numbers of the rules that were followed, as the access log has them at the end.
    pub followed: Vec<u32>,
    /// Whether the request waits in the queue of its pool.
    pub is_queued: bool,
    /// Whether the client gets 100 (Continue).
    pub is_told_to_continue: bool,
    /// Log lines written by rules.
    pub lines: Vec<String>,
}

/// A search for a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberSearch {
    /// The pool.
    pub pool: String,
    /// The selected member; `None`: none.
    pub member: Option<u32>,
    /// The preference of the search.
    pub preference: Preference,
}

/// A request as a member receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentRequest {
    /// The request line.
    pub request_line: String,
    /// The fields.
    pub headers: Vec<Field>,
    /// The size of the body.
    pub body_bytes: usize,
}

/// An answer of weir itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTold {
    /// The status.
    pub status: u16,
    /// The fields.
    pub headers: Vec<Field>,
    /// The beginning of the body.
    pub body: Option<String>,
}

impl<'a, W> DryEdge<'a, W> {
    /// A dry run without records.
    pub fn new(tools: Tools, clock: Clock, masks: &'a Masks, witness: W) -> Self {
        Self { tools, clock, masks, witness, notes: Notes::default() }
    }

    /// Ends the dry run. Returns its parts: tools, observer and records.
    pub fn into_parts(self) -> (Tools, W, Notes) {
        (self.tools, self.witness, self.notes)
    }

    fn sent(&self, ends: &TransactionEnds, request: &Request) -> SentRequest {
        match ends.tries.pool.settings().http2 {
            true => self.sent_lines(request),
            false => self.sent_text(&request.bytes[..request.head_bytes as usize]),
        }
    }

    fn sent_text(&self, head: &[u8]) -> SentRequest {
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let first = lines.next().unwrap_or_default();
        let fields = lines.filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some(self.field(&line[..colon], line[colon + 1..].trim_ascii()))
        });
        let headers = fields.collect();
        let parts = first.split(|byte| *byte == b' ').map(|part| self.masks.target(part));
        let request_line = parts.collect::<Vec<String>>().join(" ");
        SentRequest { request_line, headers, body_bytes: 0 }
    }

    fn sent_lines(&self, request: &Request) -> SentRequest {
        let (mut method, mut path) = (String::new(), String::new());
        let mut headers = Vec::new();
        for (name, value, ..) in request.lines() {
            match name {
                b":method" => method = self.masks.text(value),
                b":path" => path = self.masks.target(value),
                _ => headers.push(self.field(name, value)),
            }
        }
        SentRequest { request_line: format!("{method} {path} HTTP/2"), headers, body_bytes: 0 }
    }

    fn field(&self, name: &[u8], value: &[u8]) -> Field {
        Field { name: self.masks.text(name), value: self.masks.field(name, value) }
    }
}

impl<W: Witness> Witness for DryEdge<'_, W> {
    fn note(&mut self, step: Step<'_, '_>) {
        self.witness.note(step);
    }
}

impl<W: Witness> Edge for DryEdge<'_, W> {
    fn head(
        &mut self,
        _: &mut TransactionEnds,
        _: &OutHead<'_>,
        kind: HeadKind,
        _: bool,
    ) -> Message {
        // No member answers here, so an interim response comes from weir itself.
        self.notes.is_told_to_continue |= kind == HeadKind::Interim;
        self.tools.scratch.take()
    }

    fn send(&mut self, _: &mut TransactionEnds, head: Message, _: &ClientBodyPart<'_>) {
        self.tools.scratch.give(head);
    }

    fn answer(&mut self, _: &mut TransactionEnds, answer: &OwnAnswer<'_>) {
        let added = answer.edits.added();
        let headers = added.map(|(name, value)| self.field(name, value)).collect();
        let body = answer.body.filter(|body| !body.is_empty()).map(|body| {
            let shown = &body[..body.len().min(BODY_BYTES_MAX)];
            self.masks.value(shown).trim_end().to_owned()
        });
        self.notes.answer = Some(OwnTold { status: answer.status, headers, body });
    }

    fn hold(&mut self, _: &mut TransactionEnds, _: (&[u8], &Pieces), _: End<'_>) {}

    fn resume_client(&mut self, _: &mut TransactionEnds) -> Option<(Vec<u8>, OwnedEnd)> {
        None
    }

    fn connect(
        &mut self,
        ends: &mut TransactionEnds,
        member: u32,
        _: ConnectionNeed,
        _: bool,
    ) -> Result<(), MemberFailure> {
        let pool = ends.tries.pool.settings().name.to_string();
        let preference = ends.tries.preference;
        self.notes.sought = Some(MemberSearch { pool, member: Some(member), preference });
        if let Some(attempt) = ends.phase.attempt_mut() {
            attempt.link = Key::from_bits(1 << 32).map(Link::to);
        }
        Ok(())
    }

    fn ask(
        &mut self,
        ends: &mut TransactionEnds,
        request: &mut Request,
        (_, pieces): (&[u8], &Pieces),
        _: End<'_>,
    ) {
        if request.send() || self.notes.sent.is_none() {
            self.notes.sent = Some(self.sent(ends, request));
        }
        if let Some(sent) = &mut self.notes.sent {
            sent.body_bytes += pieces.data_bytes;
        }
    }

    fn ask_again(&mut self, ends: &mut TransactionEnds, request: &mut Request, _: &[u8]) {
        let kept = request.bytes.len() - request.head_bytes as usize;
        self.notes.sent = Some(SentRequest { body_bytes: kept, ..self.sent(ends, request) });
    }

    fn reach(&mut self, ends: &TransactionEnds, _: &Request) -> Option<ConnectionState> {
        ends.phase.connection()?;
        let timeout_ms = ends.tries.pool.settings().response_timeout_ms;
        Some(ConnectionState { awaits_settings: false, is_connecting: false, timeout_ms })
    }

    fn release(&mut self, ends: &mut TransactionEnds, _: Release) -> bool {
        ends.phase.take_link();
        false
    }

    fn is_dry(&mut self, _: &TransactionEnds) -> bool {
        true
    }

    fn pass(&mut self, _: &mut TransactionEnds, _: Side, _: TunnelBytes<'_>) {}

    fn half_close(&mut self, _: &mut TransactionEnds, _: Side) {}

    fn lag(&mut self, _: &TransactionEnds, _: Side) -> Lag {
        Lag::None
    }

    fn flow(&mut self, _: &mut TransactionEnds, _: Side, _: Flow) {}

    fn due(&mut self, _: &mut TransactionEnds, _: Side, _: Option<u64>) {}

    fn patience_until_ms(&mut self, _: &TransactionEnds, _: Side, _: u64) -> u64 {
        0
    }

    fn enqueue(&mut self, ends: &mut TransactionEnds, _: bool) -> bool {
        let pool = &ends.tries.pool;
        let queue = pool.settings().queue;
        let waiting = pool.live.waiting.load(std::sync::atomic::Ordering::Relaxed);
        let has_room = queue.is_some_and(|queue| waiting < queue.length_max);
        self.notes.is_queued = has_room && !pool.is_down(self.clock);
        self.notes.is_queued
    }

    fn delay(&mut self, _: &TransactionEnds, _: u64) {}

    fn finish(&mut self, ends: &mut TransactionEnds, why: Termination, _: StreamEnd) {
        self.notes.ended = Some(why);
        if let Some(context) = &ends.context {
            self.notes.followed.clone_from(&context.followed);
        }
        ends.caller.take_stream();
    }

    fn tell(&mut self, notice: Notice<'_>) {
        if let Notice::PolicyLine(line) = notice {
            self.notes.lines.push(self.masks.value(line));
        }
    }

    fn turn(&self) -> Turn {
        Turn { worker: 0, clock: self.clock, is_draining: false }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }

    fn recycle(&mut self, _: Vec<u8>) {}
}
