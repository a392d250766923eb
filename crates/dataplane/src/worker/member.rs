//! The server side of HTTP/1: connections to members, kept per worker and used by one exchange at
//! a time.

use std::rc::Rc;

use rustix::io::Errno;
use weir_event_loop::{EventLoop, Token};
use weir_http::flaws::Flaws;
use weir_http::h1::{
    BodyDecoder, HeadScan, Parsed, parse_response_of_member, parse_trailers_of_member,
    upgrade_was_offered,
};

use super::Worker;
use super::body::{self, Next, Pieces};
use super::end::End;
use super::exchange::{Exchange, Loss, MemberFailure, Phase};
use super::member_http2::MemberHttp2;
use super::response::Passed;
use super::scratch::Message;
use super::transaction::Transaction;
use super::world::{Desk, World};
use crate::access_log::Termination;
use crate::arena::{ConnectionKey, ExchangeKey};
use crate::pool::{LocalMember, LocalPool};
use crate::reports::Event;

/// A member that announces how long it keeps idle connections is not trusted to the last second.
const KEEP_ALIVE_MARGIN_MS: u64 = 1_000;

/// A connection to a member.
pub struct MemberConnection {
    /// Its socket.
    pub token: Token,
    /// The member, as this worker knows it.
    pub member: Rc<LocalMember>,
    /// The pool that opened it.
    pub pool: Rc<LocalPool>,
    /// How many the member takes, if it has a limit.
    pub connections_max: Option<u32>,
    /// The exchange that uses it; none: it is idle.
    pub exchange: Option<ExchangeKey>,
    pub connecting: bool,
    /// What there is of HTTP/2, where it speaks that: it carries many exchanges then.
    pub http2: Option<Box<MemberHttp2>>,
    /// Part of a head or trailer section.
    pub input: Vec<u8>,
    pub scan: HeadScan,
    /// Bytes of `input` that make the response under way whole, where it is collected; 0: it is not.
    pub whole_bytes: usize,
    /// The body of the response under way.
    pub body: BodyDecoder,
    /// Bytes before the first request that would be taken back with it: a header of the PROXY protocol.
    pub preface_bytes: usize,
    /// The member was told, by the PROXY protocol, for which client it speaks.
    pub is_of_one_client: bool,
    /// It can carry another request after this response.
    pub keep: bool,
    /// How long the member keeps it, when it said so.
    pub keep_ms: Option<u64>,
    pub requests: u32,
    /// Bytes sent on it that are counted already.
    pub counted_bytes: u64,
    /// Since when it has been idle.
    pub idle_since_ms: u64,
}

impl MemberConnection {
    /// Counts what was overlooked in a response.
    fn count_flaws(&self, worker: usize, flaws: Flaws) {
        if !flaws.is_empty() {
            self.member.live.counters.of(worker).count_flaws(flaws);
        }
    }

    /// Whether it carries an exchange.
    #[cfg(feature = "simulation")]
    pub fn is_busy(&self) -> bool {
        let carries = |http2: &MemberHttp2| !http2.streams.is_empty();
        self.exchange.is_some() || self.http2.as_deref().is_some_and(carries)
    }

    /// Idle connections to the member that this worker keeps. Those of all workers together must
    /// not take the places that `connections_max` leaves the others.
    fn idle_max(&self, workers: usize) -> usize {
        let limit = self.connections_max;
        let share = limit.map_or(usize::MAX, |limit| limit as usize / workers);
        share.min(self.pool.settings().reuse.idle_per_worker as usize)
    }
}

impl Desk<'_> {
    /// Whose fault it is that a connection cannot even be begun.
    pub fn no_connection(&mut self, error: Errno) -> MemberFailure {
        let ours = [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOBUFS,
            Errno::NOMEM,
            Errno::ADDRNOTAVAIL,
            Errno::ACCESS,
            Errno::PERM,
        ];
        if error == Errno::AGAIN {
            return MemberFailure::Busy;
        }
        if !ours.contains(&error) {
            return MemberFailure::Connect;
        }
        self.report_socket_failure(&format!("connection to a member: {error}"));
        MemberFailure::NoSocket
    }
}

impl Worker {
    /// A connection is open, or cannot be opened.
    pub fn member_connected(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        result: Result<(), Errno>,
    ) {
        if result.is_err() {
            return self.connection_lost(io, key, MemberFailure::Connect);
        }
        let Some(connection) = self.world.members.get(key) else { return };
        if io.is_secure(connection.token) {
            return; // The handshake has what is left of `connect_timeout`.
        }
        self.member_ready(io, key);
    }

    /// A connection can be spoken on: it is open and, where it has to be, secure.
    pub fn member_ready(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let Some(connection) = self.world.members.get_mut(key) else { return };
        connection.connecting = false;
        if connection.http2.is_some() {
            return self.member_http2_ready(io, key);
        }
        let Some(exchange_key) = connection.exchange else {
            return;
        };
        let exchange = match self.exchanges.get_mut(exchange_key) {
            Some(Transaction::Http(exchange)) => exchange,
            Some(Transaction::Relay(_)) => {
                return self.with_relay(io, exchange_key, |it, at| it.connected(at));
            }
            Some(Transaction::Tunnel(_)) | None => return,
        };
        exchange.ends.attempt.connected_us = io.clock().now_us();
        if exchange.request.is_whole {
            let timeout_ms = connection.pool.settings().response_timeout_ms;
            io.set_deadline(connection.token, io.now_ms() + timeout_ms);
        } else {
            io.clear_deadline(connection.token);
        }
    }

    /// The member took everything: the client may go on.
    pub fn member_drained(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        self.desk(io).count_sent_to_member(key);
        let Some(connection) = self.world.members.get(key) else { return };
        if connection.http2.is_some() {
            return self.member_http2_drained(io, key);
        }
        let Some(exchange_key) = connection.exchange else {
            return;
        };
        let exchange = match self.exchanges.get(exchange_key) {
            Some(Transaction::Http(exchange)) => exchange,
            Some(Transaction::Tunnel(_)) => {
                return self.with_tunnel(io, exchange_key, |it, at| it.member_took(at));
            }
            Some(Transaction::Relay(_)) | None => return,
        };
        if exchange.request.is_whole {
            return self.with(io, exchange_key, |it, at| {
                it.ends.give_window(at);
                it.request_handed_over(at);
            });
        }
        if exchange.phase == Phase::AwaitHead {
            io.clear_deadline(connection.token);
        }
        self.with(io, exchange_key, |it, at| it.request_goes_on(at));
    }

    /// Bytes came from a member.
    pub fn member_received(&mut self, io: &mut EventLoop, key: ConnectionKey, bytes: &mut [u8]) {
        let Some(connection) = self.world.members.get_mut(key) else { return };
        connection.member.live.counters.of(self.world.id).bytes_received.add(bytes.len() as u64);
        if connection.http2.is_some() {
            return self.member_http2_received(io, key, bytes);
        }
        let Some(exchange) = connection.exchange else {
            // Nothing was asked: whatever it says is not the answer to the next request.
            return self.desk(io).close_member(key);
        };
        let state = match self.exchanges.get(exchange) {
            Some(Transaction::Http(state)) => state,
            Some(Transaction::Tunnel(_)) => {
                return self.with_tunnel(io, exchange, |it, at| it.member_sent(at, bytes));
            }
            Some(Transaction::Relay(_)) => {
                debug_assert!(false, "nothing is read before the connection is open");
                return self.connection_lost(io, key, MemberFailure::Malformed);
            }
            None => return,
        };
        if state.phase == Phase::AwaitHead
            && io.sent_bytes(connection.token) == state.ends.attempt.sent_before
        {
            // It answers what was not asked (RFC 9112 section 9.2): on a kept connection more than it was asked before.
            let is_kept = state.ends.attempt.is_reused;
            let why = if is_kept { MemberFailure::Abort } else { MemberFailure::Malformed };
            return self.connection_lost(io, key, why);
        }
        if connection.input.is_empty() {
            let consumed = self.member_input(io, key, exchange, bytes);
            self.keep_member_input(io, key, &bytes[consumed..]);
            return;
        }
        connection.input.extend_from_slice(bytes);
        let (server, whole_bytes) = (&state.ends.server, connection.whole_bytes);
        if connection.input.len() < whole_bytes {
            let until_ms = io.now_ms() + state.response_body_timeout_ms();
            return io.set_deadline(connection.token, until_ms);
        }
        if whole_bytes == 0 && !connection.scan.scan(&connection.input, &server.limits) {
            return;
        }
        let mut input = std::mem::take(&mut connection.input);
        let consumed = self.member_input(io, key, exchange, &input);
        input.drain(..consumed);
        self.keep_member_input(io, key, &input);
        io.give_buffer(input);
    }

    fn keep_member_input(&mut self, io: &mut EventLoop, key: ConnectionKey, rest: &[u8]) {
        if rest.is_empty() {
            return;
        }
        if let Some(connection) = self.world.members.get_mut(key) {
            let Some(exchange) = connection.exchange else {
                return;
            };
            let Some(exchange) = self.exchanges.get(exchange).and_then(Transaction::http) else {
                return;
            };
            let (limits, lenient) =
                (exchange.ends.server.limits, exchange.ends.tries.pool.settings().lenient);
            if connection.input.capacity() == 0 {
                connection.input = io.take_buffer();
            }
            connection.input.reserve(connection.whole_bytes);
            connection.input.extend_from_slice(rest);
            connection.scan = HeadScan::section_of_member(lenient);
            connection.scan.scan(&connection.input, &limits);
        }
    }

    /// Uses what it can of `input`; returns how many bytes.
    fn member_input(
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
            state.ends.attempt.response_seen = true;
            let step = match state.phase {
                // The response has ended, and the connection has nothing to do with it any more.
                Phase::Deliver { .. } => return input.len(),
                Phase::AwaitHead => self.response_head(io, key, exchange, rest),
                Phase::Respond => {
                    // Its head is out.
                    let nothing = self.world.scratch.take();
                    self.response_body(io, key, exchange, nothing, rest)
                }
            };
            match step {
                Step::More(consumed) => return at + consumed,
                Step::Again(consumed) => at += consumed,
                Step::Over => return input.len(),
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
        // What the head's spans are of.
        let text = |length| if repaired.is_empty() { &input[..length] } else { &repaired };
        let step = match parsed {
            Ok(Parsed::Partial) => Step::More(0),
            Ok(Parsed::Complete { length }) if head.is_interim() => {
                if let Some(connection) = self.world.members.get(key) {
                    connection.count_flaws(self.world.id, head.flaws);
                }
                self.with(io, exchange_key, |it, at| it.forward_interim(at, &head, text(length)));
                Step::Again(length)
            }
            Ok(Parsed::Complete { length }) if head.status == 101 => {
                let chosen = head.upgrade.map_or(&b""[..], |protocol| protocol.of(text(length)));
                let offered = exchange.request.upgrade_bytes > 0
                    && upgrade_was_offered(exchange.request.upgrade_offer(), chosen);
                if offered {
                    self.with(io, exchange_key, |it, at| it.lift_read_limit(at));
                    if let Some(connection) = self.world.members.get(key) {
                        connection.count_flaws(self.world.id, head.flaws);
                    }
                    self.with(io, exchange_key, |it, at| {
                        it.begin_tunnel(at, (&head, text(length)), false)
                    });
                    Step::Again(length)
                } else {
                    self.connection_lost(io, key, MemberFailure::Malformed);
                    Step::Over
                }
            }
            Ok(Parsed::Complete { .. }) if exchange.is_no_tunnel(head.status) => {
                self.with(io, exchange_key, |it, at| {
                    it.respond(at, 502, Termination::MemberMalformed)
                });
                Step::Over
            }
            Ok(Parsed::Complete { length })
                if self.with(io, exchange_key, |it, at| {
                    it.awaits_body(at, key, (&head, text(length)), (length, input.len()))
                }) =>
            {
                Step::More(0)
            }
            Ok(Parsed::Complete { length }) => {
                let Some(connection) = self.world.members.get_mut(key) else { return Step::Over };
                connection.body = BodyDecoder::of_member(head.framing, taken);
                connection.body.note_flaws(head.flaws);
                connection.keep = head.keep_alive;
                let keep_ms = |seconds: u32| u64::from(seconds) * 1_000;
                connection.keep_ms = head.keep_alive_timeout_s.map(keep_ms);
                let body = &input[length..];
                let out = self.with(io, exchange_key, |it, at| {
                    it.begin_response(at, &mut head, (text(length), body))
                });
                match self.response_body(io, key, exchange_key, out, body) {
                    Step::More(consumed) => Step::More(length + consumed),
                    Step::Again(consumed) => Step::Again(length + consumed),
                    Step::Over => Step::Over,
                }
            }
            Err(_) => {
                self.connection_lost(io, key, MemberFailure::Malformed);
                Step::Over
            }
        };
        self.inbox.response_head = Some(head);
        step
    }

    /// Passes on what `input` has of a response body, behind its head where that has not gone out yet.
    fn response_body(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        exchange_key: ExchangeKey,
        head: Message,
        input: &[u8],
    ) -> Step {
        let (Some(connection), Some(exchange)) = (
            self.world.members.get_mut(key),
            self.exchanges.get(exchange_key).and_then(Transaction::http),
        ) else {
            self.world.scratch.give(head);
            return Step::Over;
        };
        let mut pieces = Pieces::none();
        if body::gather(&mut connection.body, input, &mut pieces).is_err() {
            self.with(io, exchange_key, |it, at| it.ends.send_head_alone(at, head));
            self.connection_lost(io, key, MemberFailure::Malformed);
            return Step::Over;
        };
        let mut consumed = pieces.consumed;
        let mut fields = std::mem::take(&mut self.inbox.trailers);
        let mut end = if pieces.next == Next::Done { End::Data } else { End::No };
        let mut is_sound = true;
        let mut repaired = Vec::new();
        if pieces.next == Next::Trailers {
            let section = &input[consumed..];
            let (limits, edits) = (&exchange.ends.server.limits, exchange.response_trailers());
            let mut flaws = Flaws::NONE;
            let by_member = (exchange.ends.tries.pool.settings().lenient, &mut flaws);
            let trailers = (&mut repaired, &mut fields);
            match parse_trailers_of_member(section, limits, edits, by_member, trailers) {
                Ok(Parsed::Complete { length }) => {
                    let text = if repaired.is_empty() { section } else { &repaired };
                    end = End::Trailers(&fields, text);
                    connection.body.note_flaws(flaws);
                    connection.body.trailers_done();
                    consumed += length;
                }
                Ok(Parsed::Partial) => {}
                Err(_) => is_sound = false,
            }
        }
        let flaws = connection.body.new_flaws();
        connection.count_flaws(self.world.id, flaws);
        let mut done = !matches!(end, End::No);
        let mut is_left = consumed < input.len();
        let passed = if is_sound {
            self.with(io, exchange_key, |it, at| it.send_response(at, head, (input, &pieces), end))
        } else {
            self.with(io, exchange_key, |it, at| it.ends.send_head_alone(at, head));
            self.connection_lost(io, key, MemberFailure::Malformed);
            Passed::Over
        };
        self.inbox.trailers = fields;
        match passed {
            Passed::On => {}
            Passed::Enough => (done, is_left) = (true, true),
            Passed::Over => return Step::Over,
        }
        if done {
            self.with(io, exchange_key, |it, at| it.response_done(at, key, is_left));
            return Step::Over;
        }
        self.with(io, exchange_key, |it, at| it.pace_response(at));
        if pieces.next == Next::Again { Step::Again(consumed) } else { Step::More(consumed) }
    }
}

impl Exchange {
    /// The response is whole: the member connection is kept or closed, the exchange completed.
    fn response_done(&mut self, at: &mut Desk<'_>, key: ConnectionKey, surplus: bool) {
        self.ends.attempt.connection = None;
        let request_done = self.request.is_whole;
        self.ends.leave_member(at, None, at.io.now_ms());
        if request_done && !surplus {
            at.keep_connection(key);
        } else {
            at.close_member(key);
        }
        self.complete(at);
    }
}

impl Desk<'_> {
    /// Keeps a connection for another request, if it can be.
    fn keep_connection(&mut self, key: ConnectionKey) {
        let now_ms = self.io.now_ms();
        let Some(connection) = self.world.members.get_mut(key) else { return };
        // What comes behind a response, be it part of a record, is no answer to the next request.
        if self.io.has_more(connection.token) {
            return self.close_member(key);
        }
        let reuse = connection.pool.settings().reuse;
        let said_ms = connection.keep_ms.map(|ms| ms.saturating_sub(KEEP_ALIVE_MARGIN_MS));
        let idle_ms = said_ms.map_or(reuse.idle_timeout_ms, |ms| ms.min(reuse.idle_timeout_ms));
        let mut idle = connection.member.idle.borrow_mut();
        if !connection.keep
            || connection.member.retired.get()
            || connection.is_of_one_client
            || connection.requests >= reuse.requests_max
            || idle.len() >= connection.idle_max(self.world.counters.workers())
            || idle_ms == 0
            || self.world.drain_until_ms.is_some()
        {
            drop(idle);
            return self.close_member(key);
        }
        idle.push(key);
        // The client may have been slow to the end.
        self.io.resume(connection.token);
        connection.member.live.counters.of(self.world.id).connections_idle.add(1);
        connection.exchange = None;
        connection.idle_since_ms = now_ms;
        self.io.set_deadline(connection.token, now_ms + idle_ms);
    }
}

impl Worker {
    /// The member's FIN.
    pub fn member_ended(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let Some(connection) = self.world.members.get(key) else { return };
        if connection.http2.is_some() {
            return self.connection_lost(io, key, MemberFailure::Abort);
        }
        let Some(exchange_key) = connection.exchange else {
            return self.desk(io).close_member(key);
        };
        let exchange = match self.exchanges.get(exchange_key) {
            Some(Transaction::Http(exchange)) => exchange,
            Some(Transaction::Tunnel(_)) => {
                return self.with_tunnel(io, exchange_key, |it, at| it.member_ended(at));
            }
            Some(Transaction::Relay(_)) => {
                return self.connection_lost(io, key, MemberFailure::Abort);
            }
            None => return,
        };
        match exchange.phase {
            Phase::Respond if connection.body.may_end_at_eof() => {
                let (sent_before, nothing) =
                    (self.world.scratch.take(), (&b""[..], &Pieces::whole(0)));
                let passed = self.with(io, exchange_key, |it, at| {
                    it.send_response(at, sent_before, nothing, End::Data)
                });
                if passed == Passed::Over {
                    return;
                }
                if let Some(connection) = self.world.members.get_mut(key) {
                    connection.keep = false;
                }
                self.with(io, exchange_key, |it, at| it.response_done(at, key, false));
            }
            _ => self.connection_lost(io, key, MemberFailure::Abort),
        }
    }

    /// The connection to a member broke.
    pub fn member_failed(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        self.connection_lost(io, key, MemberFailure::Abort);
    }

    /// The deadline of a member connection passed.
    pub fn member_timer(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let Some(connection) = self.world.members.get(key) else { return };
        if connection.http2.is_some() {
            return self.member_http2_timer(io, key);
        }
        let Some(exchange_key) = connection.exchange else {
            return self.desk(io).close_member(key);
        };
        if connection.connecting {
            return self.connection_lost(io, key, MemberFailure::ConnectTimeout);
        }
        // It cannot answer what it has not taken yet.
        let Some(exchange) = self.exchanges.get(exchange_key).and_then(Transaction::http) else {
            return;
        };
        let timeout_ms = exchange.client_timeout_ms();
        let until_ms = io.patience_until_ms(connection.token, timeout_ms);
        if until_ms > io.now_ms() {
            return io.set_deadline(connection.token, until_ms);
        }
        self.connection_lost(io, key, MemberFailure::Timeout);
    }

    /// A connection is of no use any more; its exchange goes on elsewhere or ends.
    pub fn connection_lost(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        reason: MemberFailure,
    ) {
        let Some(connection) = self.world.members.get(key) else { return };
        if connection.http2.is_some() {
            return self.member_http2_lost(io, key, reason);
        }
        let Some(exchange_key) = connection.exchange else {
            return self.desk(io).close_member(key);
        };
        let Some(transaction) = self.exchanges.get(exchange_key) else { return };
        let sent_before = transaction.ends().attempt.sent_before;
        // Before the handshake is done, what was sent is not the request.
        let nothing_sent = connection.connecting || io.sent_bytes(connection.token) == sent_before;
        let mut unsent =
            if connection.connecting { io.take_queued(connection.token) } else { Vec::new() };
        // The next connection has a preface of its own.
        unsent.drain(..connection.preface_bytes.min(unsent.len()));
        self.desk(io).close_member(key);
        let loss = Loss { reason, nothing_sent, unsent, is_counted: false };
        self.with_any(io, exchange_key, |it, at| it.member_lost(at, loss));
    }
}

impl Desk<'_> {
    /// Closes a member connection and takes it off the books; its exchange is the caller's.
    pub fn close_member(&mut self, key: ConnectionKey) {
        if let Some(token) = self.forget_member(key) {
            self.io.close(token);
        }
    }

    /// Takes a member connection off the books; its socket is the caller's.
    pub fn forget_member(&mut self, key: ConnectionKey) -> Option<Token> {
        self.count_sent_to_member(key);
        let connection = self.world.members.remove(key)?;
        self.world.encoders.let_go(connection.whole_bytes);
        let counters = connection.member.live.counters.of(self.world.id);
        counters.connections_open.subtract(1);
        if let Some(http2) = &connection.http2 {
            connection.member.multiplexed.borrow_mut().retain(|other| *other != key);
            counters.connections_idle.subtract(u64::from(http2.is_resting));
        } else if connection.exchange.is_none() {
            let mut idle = connection.member.idle.borrow_mut();
            if let Some(place) = idle.iter().rposition(|&idle_key| idle_key == key) {
                idle.remove(place);
                counters.connections_idle.subtract(1);
            }
        }
        self.io.give_buffer(connection.input);
        Some(connection.token)
    }

    /// Closes this worker's idle connections to a member.
    pub fn close_idle(&mut self, member: &LocalMember) {
        let idle = member.idle.borrow().clone();
        for key in idle {
            self.close_member(key);
        }
        let multiplexed = member.multiplexed.borrow().clone();
        for key in multiplexed {
            let http2 = self.world.members.get(key).and_then(|it| it.http2.as_ref());
            if http2.is_some_and(|http2| http2.is_resting) {
                self.end_member_http2(key);
            }
        }
    }
}

impl World {
    /// Passive marking: the member failed a request.
    pub fn mark_failure(&self, pool: &LocalPool, member: u32, now_ms: u64) {
        let Some(settings) = &pool.settings().passive else {
            return;
        };
        let live = &pool.members[member as usize].live;
        let bounds = pool.ejection_bounds(member, now_ms);
        if let Some(until_ms) = live.mark_failure(now_ms, &settings.counting, bounds) {
            live.counters.of(self.id).ejections.add(1);
            // A full event channel loses the notice, not the ejection.
            let _ = self.events.try_send(Event::MemberEjected {
                pool: pool.live.name.clone(),
                member: live.label.clone(),
                eject_ms: until_ms.saturating_sub(now_ms) as u32,
            });
        }
    }
}

/// What came of looking at some input.
enum Step {
    /// So many bytes were used; the rest needs more to come.
    More(usize),
    /// So many bytes were used; there is more to do.
    Again(usize),
    /// The exchange is done with this connection.
    Over,
}
