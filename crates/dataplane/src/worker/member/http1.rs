//! Members with HTTP/1. Their bytes are parsed as a response; data after the response is an error.

use weir_event_loop::{EventLoop, ReadMode};
use weir_exchange::arena::{ConnectionKey, ExchangeKey};
use weir_exchange::edge::{Edge, Flow, Side};
use weir_exchange::parts::end::End;
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::messages::Message;
use weir_exchange::parts::phase::Phase;
use weir_exchange::parts::pieces::{self, AfterData, Pieces};
use weir_exchange::termination::Termination;
use weir_exchange::transaction::exchange::Exchange;
use weir_exchange::transaction::response_data::ForwardResult;
use weir_exchange::transaction::{Transaction, trailers};
use weir_http::flaws::Flaws;
use weir_http::h1::{
    BodyDecoder, HeadScan, ParseProgress, parse_response_of_member, parse_trailers_of_member,
    upgrade_was_offered,
};
use weir_http::message::{Field, ResponseHead};

use crate::worker::edge::WorkerEdge;
use crate::worker::router::Router;

impl Router {
    pub fn keep_member_input(&mut self, io: &mut EventLoop, key: ConnectionKey, rest: &[u8]) {
        if rest.is_empty() {
            return;
        }
        if let Some(connection) = self.world.members.all.get_mut(key) {
            let Some(exchange) = connection.exchange else {
                return;
            };
            let Some(exchange) = self.exchanges.get(exchange).and_then(Transaction::http) else {
                return;
            };
            let (limits, lenient) =
                (exchange.ends.server.limits, exchange.ends.tries.pool.settings().lenient);
            if connection.input.capacity() == 0 {
                connection.input = io.spares.take();
            }
            connection.input.reserve(connection.whole_bytes);
            connection.input.extend_from_slice(rest);
            connection.scan = HeadScan::section_of_member(lenient);
            connection.scan.scan(&connection.input, &limits);
        }
    }

    /// Processes as much of `input` as possible; returns the number of bytes used.
    pub fn member_input(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        exchange: ExchangeKey,
        input: &[u8],
    ) -> usize {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            let state = match self.exchanges.get_mut(exchange) {
                Some(Transaction::Http(state)) => state,
                Some(Transaction::Tunnel(_)) => {
                    self.with_tunnel(io, exchange, |it, at| it.member_sent(at, rest));
                    return input.len();
                }
                Some(Transaction::Relay(_)) | None => return input.len(),
            };
            if let Some(attempt) = state.ends.phase.attempt_mut() {
                attempt.response_seen = true;
            }
            let step = match state.ends.phase {
                // The response is complete, and the exchange has released the connection.
                Phase::Deliver(_) | Phase::Judge(_) => return input.len(),
                Phase::Before(_) | Phase::Asked(_, None) => {
                    self.response_head(io, key, exchange, rest)
                }
                Phase::Asked(_, Some(_)) | Phase::Left(_) => {
                    let mut fields = std::mem::take(&mut self.inbox.trailers);
                    let step = self.with(io, exchange, |it, at| {
                        // The head was already sent.
                        let nothing = at.world.tools.scratch.take();
                        pass_body(at, it, key, nothing, rest, &mut fields)
                    });
                    self.inbox.trailers = fields;
                    step
                }
            };
            match step {
                Step::More(consumed) => return at + consumed,
                Step::Again(consumed) => at += consumed,
                Step::Over => return input.len(),
                Step::Malformed => {
                    self.connection_lost(io, key, MemberFailure::Malformed);
                    return input.len();
                }
            }
        }
    }

    fn response_head(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        exchange_key: ExchangeKey,
        input: &[u8],
    ) -> Step {
        let Some(exchange) = self.exchanges.get(exchange_key).and_then(Transaction::http) else {
            return Step::Over;
        };
        let mut head = self.inbox.response_head.take().unwrap_or_default();
        let (limits, method) = (&exchange.ends.server.limits, exchange.request.method);
        let taken = exchange.ends.tries.pool.settings().lenient;
        let mut repaired = Vec::new();
        let parsed =
            parse_response_of_member(input, limits, method, taken, &mut repaired, &mut head);
        // The text to which the ranges of the head refer.
        let text = |length| if repaired.is_empty() { &input[..length] } else { &repaired };
        let step = match parsed {
            Ok(ParseProgress::Partial) => Step::More(0),
            Ok(ParseProgress::Complete { length }) if head.is_interim() => {
                if let Some(connection) = self.world.members.all.get(key) {
                    connection.count_flaws(head.flaws);
                }
                self.with(io, exchange_key, |it, at| it.forward_interim(at, &head, text(length)));
                Step::Again(length)
            }
            Ok(ParseProgress::Complete { length }) if head.status == 101 => {
                match self.protocol_changed(io, key, exchange_key, (&head, text(length))) {
                    true => Step::Again(length),
                    false => Step::Over,
                }
            }
            Ok(ParseProgress::Complete { .. })
                if exchange.request.is_no_tunnel(&exchange.ends.phase, head.status) =>
            {
                self.with(io, exchange_key, |it, at| {
                    it.respond(at, 502, Termination::MemberMalformed)
                });
                Step::Over
            }
            Ok(ParseProgress::Complete { length })
                if exchange.filters.codings.is_some()
                    && self.awaits_body(
                        io,
                        key,
                        exchange_key,
                        (&head, text(length)),
                        (length, input.len()),
                    ) =>
            {
                Step::More(0)
            }
            Ok(ParseProgress::Complete { length }) => {
                let mut fields = std::mem::take(&mut self.inbox.trailers);
                let step = self.with(io, exchange_key, |it, at| {
                    let (text, body) = (text(length), &input[length..]);
                    begin_response(at, it, key, (&mut head, text), body, &mut fields)
                });
                self.inbox.trailers = fields;
                step.behind(length)
            }
            Err(_) => Step::Malformed,
        };
        self.inbox.response_head = Some(head);
        step
    }

    /// Handles a response with status 101. False: the member chose a protocol that was not offered, so the connection is
    /// lost.
    fn protocol_changed(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        exchange_key: ExchangeKey,
        (head, text): (&ResponseHead, &[u8]),
    ) -> bool {
        let Some(exchange) = self.exchanges.get(exchange_key).and_then(Transaction::http) else {
            return false;
        };
        let chosen = head.upgrade.map_or(&b""[..], |protocol| protocol.of(text));
        // A protocol that begins within the request's body would take the rest of the body for its own data.
        let is_offered = exchange.request.upgrade_bytes > 0
            && exchange.request.is_whole()
            && upgrade_was_offered(exchange.request.upgrade_offer(), chosen);
        if !is_offered {
            self.connection_lost(io, key, MemberFailure::Malformed);
            return false;
        }
        if let Some(connection) = self.world.members.all.get(key) {
            connection.count_flaws(head.flaws);
        }
        self.with(io, exchange_key, |it, at| {
            at.flow(&mut it.ends, Side::Member, Flow::Bulk);
            it.begin_tunnel(at, (head, text), false);
        });
        true
    }

    /// Whether the response waits until its whole body has arrived; see [`Filters::collects`](weir_exchange::parts::encoding::Filters::collects).
    fn awaits_body(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        exchange_key: ExchangeKey,
        head: (&ResponseHead, &[u8]),
        (length, received): (usize, usize),
    ) -> bool {
        let Some(connection) = self.world.members.all.get_mut(key) else { return false };
        let encoders = &mut self.world.tools.encoders;
        if connection.whole_bytes > 0 {
            debug_assert!(received >= connection.whole_bytes, "it was waited for");
            encoders.let_go(std::mem::take(&mut connection.whole_bytes));
            return false;
        }
        let exchange = self.exchanges.get_mut(exchange_key).and_then(Transaction::http_mut);
        let Some(exchange) = exchange else { return false };
        let server = &exchange.ends.server;
        let whole_bytes = match exchange.request.is_whole() {
            true => exchange.filters.collects(server, head, (length, received)),
            false => None,
        };
        let Some(whole_bytes) = whole_bytes else { return false };
        if !encoders.hold(whole_bytes) {
            return false;
        }
        connection.whole_bytes = whole_bytes;
        exchange.ends.account.times.note_first_byte(io.clock().now_us());
        connection.is_sliced = false;
        io.sockets.read_as(connection.token, ReadMode::Usual);
        io.set_deadline(
            connection.token,
            io.now_ms() + exchange.patience.pace.response_body_timeout_ms(&exchange.ends.server),
        );
        true
    }
}

/// Begins a response, and forwards the part of its body that has arrived.
fn begin_response(
    at: &mut WorkerEdge<'_>,
    it: &mut Exchange,
    key: ConnectionKey,
    (head, text): (&mut ResponseHead, &[u8]),
    body: &[u8],
    fields: &mut Vec<Field>,
) -> Step {
    let taken = it.ends.tries.pool.settings().lenient;
    let Some(connection) = at.world.members.all.get_mut(key) else { return Step::Over };
    connection.body = BodyDecoder::of_member(head.framing, taken);
    connection.body.note_flaws(head.flaws);
    connection.keep = head.keep_alive;
    if head.binds_connection {
        it.ends.account.is_bound = connection.bind();
    }
    let keep_ms = |seconds: u32| u64::from(seconds) * 1_000;
    connection.keep_ms = head.keep_alive_timeout_s.map(keep_ms);
    let message = it.begin_response(at, head, (text, body));
    pass_body(at, it, key, message, body, fields)
}

/// Forwards body data of a response, after `head` if that was not sent yet.
fn pass_body(
    at: &mut WorkerEdge<'_>,
    it: &mut Exchange,
    key: ConnectionKey,
    head: Message,
    input: &[u8],
    fields: &mut Vec<Field>,
) -> Step {
    let Some(connection) = at.world.members.all.get_mut(key) else {
        at.world.tools.scratch.give(head);
        return Step::Over;
    };
    let mut pieces = Pieces::none();
    if pieces::gather(&mut connection.body, input, &mut pieces).is_err() {
        it.ends.send_head_alone(at, head);
        return Step::Malformed;
    };
    let mut consumed = pieces.consumed;
    let mut end = if pieces.next == AfterData::Done { End::Data } else { End::No };
    let mut is_sound = true;
    let mut repaired = Vec::new();
    if pieces.next == AfterData::Trailers {
        let section = &input[consumed..];
        let (limits, edits) = (&it.ends.server.limits, trailers::of_response(&it.ends));
        let mut flaws = Flaws::NONE;
        let by_member = (it.ends.tries.pool.settings().lenient, &mut flaws);
        let trailers = (&mut repaired, &mut *fields);
        match parse_trailers_of_member(section, limits, edits, by_member, trailers) {
            Ok(ParseProgress::Complete { length }) => {
                let text = if repaired.is_empty() { section } else { &repaired };
                end = End::Trailers(fields, text);
                connection.body.note_flaws(flaws);
                connection.body.trailers_done();
                consumed += length;
            }
            Ok(ParseProgress::Partial) => {}
            Err(_) => is_sound = false,
        }
    }
    let flaws = connection.body.new_flaws();
    connection.count_flaws(flaws);
    if !is_sound {
        it.ends.send_head_alone(at, head);
        return Step::Malformed;
    }
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
