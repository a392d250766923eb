//! Members with HTTP/1. Their bytes are parsed as a response; data after the response is an error.

use weir_connection::member::http1::{
    BodyRead, HeadRead, Malformed, ResponseRules, SectionMemory, read_head,
};
use weir_event_loop::{EventLoop, ReadMode};
use weir_exchange::arena::{ConnectionKey, ExchangeKey};
use weir_exchange::edge::{Edge, Flow, Side};
use weir_exchange::parts::end::End;
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::messages::Message;
use weir_exchange::parts::phase::Phase;
use weir_exchange::parts::pieces::{AfterData, Pieces};
use weir_exchange::termination::Termination;
use weir_exchange::transaction::exchange::Exchange;
use weir_exchange::transaction::response_data::ForwardResult;
use weir_exchange::transaction::{Transaction, trailers};
use weir_http::h1::upgrade_was_offered;
use weir_http::message::ResponseHead;

use crate::worker::edge::WorkerEdge;
use crate::worker::router::Router;
use crate::worker::wire::Spares;
use crate::worker::world::Inbox;

impl Router {
    /// Processes as much of `input` as possible. The connection stores the rest.
    pub fn member_input(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        exchange: ExchangeKey,
        input: &[u8],
    ) {
        let mut reader = ResponseReader::new(key, &mut self.inbox);
        let mut at = 0;
        let last = loop {
            let step = self.with_any(io, exchange, |it, edge| match it {
                Transaction::Http(it) => reader.read(it, edge, &input[at..]),
                Transaction::Tunnel(it) => {
                    it.member_sent(edge, &input[at..]);
                    Step::Over
                }
                Transaction::Relay(_) => Step::Over,
            });
            match step {
                Step::Again(consumed) => at += consumed,
                Step::More(_) | Step::Over | Step::Malformed => break step,
            }
        };
        reader.give_back(&mut self.inbox);
        if matches!(last, Step::Malformed) {
            self.connection_lost(io, key, MemberFailure::Malformed);
        }
    }
}

/// Reads a response for its exchange: the connection, and memory for what is being read.
struct ResponseReader {
    key: ConnectionKey,
    head: Box<ResponseHead>,
    memory: SectionMemory,
}

impl ResponseReader {
    /// A reader for the response on a connection.
    fn new(key: ConnectionKey, inbox: &mut Inbox) -> Self {
        let head = inbox.response_head.take().unwrap_or_default();
        Self { key, head, memory: SectionMemory::with(std::mem::take(&mut inbox.trailers)) }
    }

    /// Gives the memory back.
    fn give_back(self, inbox: &mut Inbox) {
        inbox.response_head = Some(self.head);
        inbox.trailers = self.memory.fields;
    }

    /// Reads the next part of the response, and hands it to the exchange. If more input is needed, the connection stores what
    /// is left.
    fn read(&mut self, it: &mut Exchange, at: &mut WorkerEdge<'_>, input: &[u8]) -> Step {
        if let Some(attempt) = it.ends.phase.attempt_mut() {
            attempt.response_seen = true;
        }
        let step = match it.ends.phase {
            // The response is complete, and the exchange has released the connection.
            Phase::Deliver(_) | Phase::Judge(_) => return Step::Over,
            Phase::Before(_) | Phase::Asked(_, None) => self.read_head(it, at, input),
            Phase::Asked(_, Some(_)) | Phase::Left(_) => {
                // The head was already sent.
                let nothing = at.world.tools.scratch.take();
                self.pass_body(it, at, nothing, input)
            }
        };
        if let Step::More(consumed) = step
            && consumed < input.len()
            && let Some(connection) = at.world.members.all.get_mut(self.key)
            && connection.exchange.is_some()
        {
            connection.http1.store(&input[consumed..], rules(it), &mut Spares(at.io));
        }
        step
    }

    fn read_head(&mut self, it: &mut Exchange, at: &mut WorkerEdge<'_>, input: &[u8]) -> Step {
        match read_head(input, rules(it), &mut self.memory, &mut self.head) {
            HeadRead::More => Step::More(0),
            HeadRead::Interim(length) => {
                if let Some(connection) = at.world.members.all.get(self.key) {
                    connection.count_flaws(self.head.flaws);
                }
                it.forward_interim(at, &self.head, self.memory.text(&input[..length]));
                Step::Again(length)
            }
            HeadRead::ProtocolChanged(length) => self.change_protocol(it, at, &input[..length]),
            HeadRead::Final(_) if it.request.is_no_tunnel(&it.ends.phase, self.head.status) => {
                it.respond(at, 502, Termination::MemberMalformed);
                Step::Over
            }
            HeadRead::Final(length)
                if it.filters.codings.is_some() && self.awaits_body(it, at, input, length) =>
            {
                Step::More(0)
            }
            HeadRead::Final(length) => {
                self.begin_response(it, at, input.split_at(length)).behind(length)
            }
            HeadRead::Malformed => Step::Malformed,
        }
    }

    /// Handles a response with status 101. It is malformed if the member chose a protocol that was not offered.
    fn change_protocol(
        &mut self,
        it: &mut Exchange,
        at: &mut WorkerEdge<'_>,
        received: &[u8],
    ) -> Step {
        let text = self.memory.text(received);
        let chosen = self.head.upgrade.map_or(&b""[..], |protocol| protocol.of(text));
        // A protocol that begins within the request's body would take the rest of the body for its own data.
        let is_offered = it.request.upgrade_bytes > 0
            && it.request.is_whole()
            && upgrade_was_offered(it.request.upgrade_offer(), chosen);
        if !is_offered {
            return Step::Malformed;
        }
        if let Some(connection) = at.world.members.all.get(self.key) {
            connection.count_flaws(self.head.flaws);
        }
        at.flow(&mut it.ends, Side::Member, Flow::Bulk);
        it.begin_tunnel(at, (&self.head, text), false);
        Step::Again(received.len())
    }

    /// Whether the response waits until its whole body has arrived; see [`Filters::collects`](weir_exchange::parts::encoding::Filters::collects).
    fn awaits_body(
        &mut self,
        it: &mut Exchange,
        at: &mut WorkerEdge<'_>,
        input: &[u8],
        length: usize,
    ) -> bool {
        let Some(connection) = at.world.members.all.get_mut(self.key) else { return false };
        if connection.http1.was_collected() || !it.request.is_whole() {
            return false;
        }
        let head = (&*self.head, self.memory.text(&input[..length]));
        let whole_bytes = it.filters.collects(&it.ends.server, head, (length, input.len()));
        let encoders = &mut at.world.tools.encoders;
        let whole = whole_bytes.and_then(|whole_bytes| encoders.hold(whole_bytes));
        let Some(whole) = whole else { return false };
        connection.http1.collect(whole);
        it.ends.account.times.note_first_byte(at.io.clock().now_us());
        connection.is_sliced = false;
        at.io.sockets.read_as(connection.token, ReadMode::Usual);
        let timeout_ms = it.patience.pace.response_body_timeout_ms(&it.ends.server);
        at.io.set_deadline(connection.token, at.io.now_ms() + timeout_ms);
        true
    }

    /// Begins a response, and forwards the part of its body that has arrived.
    fn begin_response(
        &mut self,
        it: &mut Exchange,
        at: &mut WorkerEdge<'_>,
        (head, body): (&[u8], &[u8]),
    ) -> Step {
        let Some(connection) = at.world.members.all.get_mut(self.key) else { return Step::Over };
        connection.http1.begin_body(&self.head, it.ends.tries.pool.settings().lenient);
        if self.head.binds_connection {
            it.ends.account.is_bound = connection.bind();
        }
        let message = it.begin_response(at, &mut self.head, (self.memory.text(head), body));
        self.pass_body(it, at, message, body)
    }

    /// Forwards body data of a response, after `head` if that was not sent yet.
    fn pass_body(
        &mut self,
        it: &mut Exchange,
        at: &mut WorkerEdge<'_>,
        head: Message,
        input: &[u8],
    ) -> Step {
        let Some(connection) = at.world.members.all.get_mut(self.key) else {
            at.world.tools.scratch.give(head);
            return Step::Over;
        };
        let mut pieces = Pieces::none();
        let how = (rules(it), trailers::of_response(&it.ends));
        let read = connection.http1.read_body(input, &mut pieces, how, &mut self.memory);
        let (Ok(BodyRead { flaws, .. }) | Err(Malformed(flaws))) = read;
        connection.count_flaws(flaws);
        let Ok(BodyRead { end, consumed, .. }) = read else {
            it.ends.send_head_alone(at, head);
            return Step::Malformed;
        };
        let mut done = !matches!(end, End::No);
        let mut is_left = consumed < input.len();
        match it.send_response(at, head, (input, &pieces), end) {
            ForwardResult::On => {}
            ForwardResult::Enough => (done, is_left) = (true, true),
            ForwardResult::Over => return Step::Over,
        }
        if done {
            it.response_done(at, !is_left);
            return Step::Over;
        }
        it.patience.pace_response(at, &mut it.ends, &it.request);
        if pieces.next == AfterData::Again { Step::Again(consumed) } else { Step::More(consumed) }
    }
}

/// How to read the response to an exchange's request.
fn rules(it: &Exchange) -> ResponseRules<'_> {
    let taken = it.ends.tries.pool.settings().lenient;
    ResponseRules { limits: &it.ends.server.limits, method: it.request.method, taken }
}

/// The result of processing input.
#[derive(Default)]
enum Step {
    /// This number of bytes was used, and more input is needed.
    More(usize),
    /// This number of bytes was used, and the rest must be processed by another call.
    Again(usize),
    /// The exchange does not use this connection any more.
    #[default]
    Over,
    /// The input is not valid HTTP.
    Malformed,
}

impl Step {
    /// The same result, with `before` added to the number of bytes used.
    fn behind(self, before: usize) -> Self {
        match self {
            Self::More(consumed) => Self::More(before + consumed),
            Self::Again(consumed) => Self::Again(before + consumed),
            Self::Over | Self::Malformed => self,
        }
    }
}
