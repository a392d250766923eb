//! One transaction: a request, the member that serves it, the response. It belongs to a stream of a
//! client connection, never to the connection itself, and speaks of messages, not of a version of
//! HTTP.

use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;

use weir_config::snapshot::AccessFormat;
use weir_core::policy::Decision;
use weir_core::queue::Ticket;
use weir_core::retry::{FailedAttempt, Sent, may_retry};
use weir_event_loop::EventLoop;
use weir_event_loop::clock::Clock;
use weir_http::edits::FieldEdits;
use weir_http::message::{Framing, Method, Version};

use super::Worker;
use super::considered::Ending;
use super::encoding::{Codings, Encoding};
use super::extras::Extras;
use super::pace::Pace;
use super::websocket::Handshake;
use super::world::Desk;
use crate::access_log::Termination;
use crate::arena::{ClientKey, ConnectionKey, ExchangeKey, MemberStreamKey, StreamKey};
use crate::counters::count_status;
use crate::pool::{LocalMember, LocalPool, NoMember, TRIES_MAX, Wish};
use crate::table::LocalServer;

/// A request is kept for sending it again as long as it is not larger than this.
pub const REPLAY_BYTES_MAX: usize = 16 * 1024;

/// What a failure counts as at least, where members are compared by the time they take.
const FAILED_US_MIN: u64 = 100_000;

/// How far a transaction has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A connection that is relayed has no member connection yet.
    Connect,
    /// No response head has come yet.
    AwaitHead,
    /// The response head went to the client, its body follows.
    Respond,
    /// The response has come to its end, and the client has yet to let the rest of it out (HTTP/2).
    Deliver,
    /// Bytes pass both ways.
    Tunnel,
}

/// Where a request waits for a member.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// In line.
    InLine(Ticket),
    /// Beside it: a member has failed it already.
    Again,
}

/// One transaction.
pub struct Exchange {
    /// What it is called.
    pub key: ExchangeKey,
    /// It has ended, and this is what becomes of its client connection.
    pub over: Option<After>,
    /// The client connection that it belongs to.
    pub client: ClientKey,
    /// The stream of that; `None`: it has the connection for itself (HTTP/1).
    pub stream: Option<StreamKey>,
    /// The member connection that serves it now.
    pub connection: Option<ConnectionKey>,
    /// The stream of that; `None`: it has the connection for itself (HTTP/1).
    pub member_stream: Option<MemberStreamKey>,
    /// The member that it occupies now.
    pub member: Option<u32>,
    /// Where it may go.
    pub pool: Rc<LocalPool>,
    /// Where it came in.
    pub server: Rc<LocalServer>,
    /// The client's method.
    pub method: Method,
    /// The client's version.
    pub version: Version,
    /// The client allows another request, and so do we so far.
    pub keep_alive: bool,
    /// Length of the protocols offered for a change, which end the request's head; 0: none.
    pub upgrade_bytes: usize,
    /// It asks for a WebSocket, which a member of HTTP/2 can be asked for, too.
    pub websocket: Option<Handshake>,
    /// The client said that this is its last request.
    pub client_closes: bool,
    /// Why the last member that was tried did not serve it.
    pub failure: Option<MemberFailure>,
    /// How far it has come.
    pub phase: Phase,
    /// How steadily its bodies come.
    pub pace: Pace,
    /// The request as HTTP/1 sends it to a member; whole as long as `replayable`. On a stream the body behind
    /// the head is bare.
    pub request: Vec<u8>,
    /// Length of its head.
    pub head_bytes: usize,
    /// `request` has been handed to the member connection.
    pub request_sent: bool,
    /// Everything that was sent so far is in `request`.
    pub replayable: bool,
    /// How the request body is framed towards the member.
    pub request_framing: Framing,
    /// The whole request has been passed on.
    pub request_done: bool,
    /// How the response body is framed towards the client.
    pub response_framing: Framing,
    /// Status sent to the client; 0: none yet.
    pub status: u16,
    /// A byte of a response has come from a member, an interim one included.
    pub response_seen: bool,
    /// The client ended its half of the tunnel.
    pub client_ended: bool,
    /// The member ended its half of the tunnel.
    pub member_ended: bool,
    /// Which member it shall get.
    pub wish: Wish,
    /// What is remembered of it, where policies or persistence want that.
    pub extras: Option<Box<Extras>>,
    /// What the client takes, where responses are compressed.
    pub codings: Option<Codings>,
    /// What compresses the response, or drops it.
    pub encoding: Option<Box<Encoding>>,
    /// It has no member yet: it waits for one, or for its time.
    pub waits: bool,
    /// How it ends when its time has come, where that was decided before it had to wait.
    pub ending: Option<(Ending, Box<Decision>)>,
    /// Its place in the line of its pool.
    pub place: Option<Place>,
    /// It has waited in line, and its turn has come.
    pub had_its_turn: bool,
    /// The member that was occupied for it then.
    pub reserved: Option<u32>,
    /// Members that did not serve it.
    tried: [u32; TRIES_MAX],
    tried_count: u8,
    /// The member that it had last, for the log.
    pub last_member: Option<Rc<LocalMember>>,
    /// How often it got a member.
    tries: u8,
    pub retries: u32,
    /// `sent_bytes` of the member connection when it was taken.
    pub sent_before: u64,
    /// The connection had served a request before.
    pub reused_connection: bool,
    /// A member has said of its stream that it did not read it.
    pub was_unread: bool,
    /// Body bytes of the request.
    pub bytes_received: u64,
    /// Bytes of the response.
    pub bytes_sent: u64,
    /// Those of its heads, interim ones included.
    pub head_bytes_sent: u64,
    /// When it began.
    pub begun_us: u64,
    /// When it got its first member; 0: not yet.
    pub tried_us: u64,
    /// When it got the member that it has now.
    try_us: u64,
    /// When the member connection was there; 0: not yet.
    pub connected_us: u64,
    /// When the whole request was handed over on it; 0: not yet.
    pub asked_us: u64,
    /// When the first byte of a response came; 0: not yet.
    pub first_byte_us: u64,
    /// The form of its access log line.
    pub log_format: AccessFormat,
    /// The request's part of that line.
    pub log_request: Vec<u8>,
}

impl Exchange {
    /// The members tried so far.
    pub fn tried(&self) -> &[u32] {
        &self.tried[..self.tried_count as usize]
    }

    /// Where it waits for a place another table is in force: it goes by that from now on. What kept its
    /// client at a member was numbered by the table before, and is only known further if nothing changed.
    pub fn move_to(&mut self, pool: &Rc<LocalPool>) {
        let labels = |pool: &LocalPool| {
            pool.members.iter().map(|member| Arc::clone(&member.live.label)).collect::<Vec<_>>()
        };
        if !self.may_go_to(pool) {
            return;
        }
        let (old, new) = (labels(&self.pool), labels(pool));
        self.pool = Rc::clone(pool);
        if old == new {
            return;
        }
        let moved = |member: u32| pool.member(&old[member as usize]);
        if let Wish::Member(member) = self.wish {
            self.wish = moved(member).map_or(Wish::Any, Wish::Member);
        }
        let tried: Vec<u32> = self.tried().iter().filter_map(|member| moved(*member)).collect();
        self.tried[..tried.len()].copy_from_slice(&tried);
        self.tried_count = tried.len() as u8;
        if let Some(extras) = &mut self.extras {
            extras.kept = None;
        }
    }

    /// What was sent of it is kept as the members of its pool are asked: it can go to others that are asked alike.
    fn may_go_to(&self, pool: &LocalPool) -> bool {
        !self.request_sent || self.pool.settings().http2 == pool.settings().http2
    }

    /// Nobody in its pool is up: it goes to the pool behind that, if there is one.
    pub fn go_elsewhere(&mut self, now: Clock) {
        let traffic = self.server.traffic.as_ref();
        let pool = traffic.and_then(|traffic| traffic.instead_of(&self.pool, now));
        if let Some(pool) = pool.filter(|pool| self.may_go_to(pool)) {
            self.pool = Rc::clone(pool);
            self.wish = Wish::Any;
            if let Some(extras) = &mut self.extras {
                extras.kept = None;
            }
        }
    }

    /// Whether it waits in line where that is not for those whose clients have ended their sending.
    pub fn gives_up_its_place(&self) -> bool {
        let queue = self.pool.settings().queue;
        self.place.is_some() && queue.is_some_and(|queue| queue.is_left_by_half_closed)
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Whether its member connection is gone, and what becomes of it is decided at the end of the turn.
    pub fn has_lost_its_member(&self) -> bool {
        self.connection.is_none() && self.phase == Phase::AwaitHead
    }

    /// Whether it is a whole connection instead of a request.
    pub fn is_relay(&self) -> bool {
        self.server.settings().relay.is_some()
    }

    /// When it got the member that it has now.
    pub fn try_us(&self) -> u64 {
        self.try_us
    }

    /// A byte has come from the member; its response may begin later.
    pub fn note_first_byte(&mut self, now_us: u64) {
        if self.first_byte_us == 0 {
            self.first_byte_us = now_us;
        }
    }

    /// The protocols that the client offers to change to.
    pub fn upgrade_offer(&self) -> &[u8] {
        let end = self.request.len().saturating_sub(b"\r\n\r\n".len());
        &self.request[end.saturating_sub(self.upgrade_bytes)..end]
    }

    /// Whether data of the client's stream belongs to a tunnel that the member has yet to agree to.
    pub fn awaits_tunnel(&self) -> bool {
        self.phase == Phase::AwaitHead && self.stream.is_some() && self.upgrade_bytes > 0
    }

    /// Whether a response would be taken for a tunnel that the member has not agreed to: any 2xx means one to who
    /// asks by an extended CONNECT (RFC 8441 section 5).
    pub fn is_no_tunnel(&self, status: u16) -> bool {
        self.awaits_tunnel() && matches!(status, 200..=299)
    }

    /// Counts bytes of the response that were handed to the client connection.
    pub fn count_sent(&mut self, worker: usize, bytes: usize) {
        self.bytes_sent += bytes as u64;
        let counters = self.server.live.counters.of(worker);
        counters.bytes_sent.add(bytes as u64);
    }

    /// How long it took until the response head, without the member's part, and that.
    pub fn times_us(&self) -> (u64, u64) {
        let member_us = self.first_byte_us.saturating_sub(self.connected_us);
        let all_us = self.first_byte_us.saturating_sub(self.begun_us);
        (all_us.saturating_sub(member_us), member_us)
    }

    fn tries_left(&self) -> u8 {
        let allowed = (self.pool.settings().retries as usize + 1).min(TRIES_MAX);
        (allowed as u8).saturating_sub(self.tries)
    }
}

/// What a new exchange is made of.
pub struct Begin {
    /// The client connection.
    pub client: ClientKey,
    /// The stream of that, with HTTP/2.
    pub stream: Option<StreamKey>,
    /// Its virtual server.
    pub server: Rc<LocalServer>,
    /// Where it goes.
    pub pool: Rc<LocalPool>,
    /// Which member it shall get.
    pub wish: Wish,
    /// What is remembered of it.
    pub extras: Option<Box<Extras>>,
    /// What the client takes, where responses are compressed.
    pub codings: Option<Codings>,
    /// Method.
    pub method: Method,
    /// Version.
    pub version: Version,
    /// Whether the connection may serve another request.
    pub keep_alive: bool,
    /// Whether the client said that this is its last request.
    pub client_closes: bool,
    /// Length of the protocols offered for a change, which end the request's head; 0: none.
    pub upgrade_bytes: usize,
    /// It asks for a WebSocket.
    pub websocket: Option<Handshake>,
    /// Framing of the request body.
    pub framing: Framing,
    /// How steadily bodies come.
    pub pace: Pace,
    /// Serialised head.
    pub request: Vec<u8>,
    /// Form of the log line.
    pub log_format: AccessFormat,
    /// Part of the log line.
    pub log_request: Vec<u8>,
}

/// What becomes of the client connection of an exchange that has ended.
pub enum After {
    /// Somebody else sees to that.
    Nothing,
    /// The response is whole.
    Response(Outcome),
    /// It ends, with all that is on it.
    Cut {
        /// Why.
        termination: Termination,
        /// With a reset.
        must_reset: bool,
    },
}

/// How an exchange left its client connection.
pub struct Outcome {
    /// Both sides allow another request.
    pub keep_alive: bool,
    /// The whole request was read.
    pub request_done: bool,
    /// The client said that this was its last request.
    pub client_closes: bool,
}

/// Why a member did not serve a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberFailure {
    /// This host has no descriptor, port or memory for a connection; no fault of the member's.
    NoSocket,
    /// It has no room for another connection at the moment (a unix socket's queue).
    Busy,
    /// No connection.
    Connect,
    /// No connection in time.
    ConnectTimeout,
    /// No response head in time, or a body that stopped.
    Timeout,
    /// The connection ended or broke.
    Abort,
    /// What it sent is no HTTP.
    Malformed,
}

impl MemberFailure {
    fn status(self) -> u16 {
        match self {
            Self::NoSocket | Self::Busy => 503,
            Self::ConnectTimeout | Self::Timeout => 504,
            Self::Connect | Self::Abort | Self::Malformed => 502,
        }
    }

    /// How an exchange ends for it.
    pub fn termination(self) -> Termination {
        match self {
            Self::NoSocket | Self::Busy | Self::Connect | Self::ConnectTimeout => {
                Termination::MemberConnect
            }
            Self::Timeout => Termination::MemberTimeout,
            Self::Abort => Termination::MemberAbort,
            Self::Malformed => Termination::MemberMalformed,
        }
    }
}

/// What became of the member connection of an exchange.
pub struct Loss {
    /// What happened.
    pub reason: MemberFailure,
    /// Nothing of the request can have reached the member.
    pub nothing_sent: bool,
    /// What was queued for it.
    pub unsent: Vec<u8>,
    /// It is held against the member already, with another exchange that shared the connection.
    pub is_counted: bool,
}

impl Worker {
    /// Starts a transaction. No member is chosen yet.
    pub fn begin(&mut self, io: &EventLoop, begin: Begin) -> ExchangeKey {
        let is_relay = begin.server.settings().relay.is_some();
        if !is_relay {
            let counters = begin.server.live.counters.of(self.world.id);
            counters.requests.add(1);
            counters.requests_active.add(1);
        }
        begin.pool.note_request(io.now_ms());
        let exchange = Exchange {
            key: self.exchanges.next_key(),
            over: None,
            client: begin.client,
            stream: begin.stream,
            connection: None,
            member_stream: None,
            member: None,
            pool: begin.pool,
            wish: begin.wish,
            extras: begin.extras,
            codings: begin.codings,
            encoding: None,
            waits: false,
            ending: None,
            place: None,
            had_its_turn: false,
            reserved: None,
            server: begin.server,
            method: begin.method,
            version: begin.version,
            keep_alive: begin.keep_alive,
            upgrade_bytes: begin.upgrade_bytes,
            websocket: begin.websocket,
            client_closes: begin.client_closes,
            failure: None,
            phase: if is_relay { Phase::Connect } else { Phase::AwaitHead },
            pace: begin.pace,
            head_bytes: begin.request.len(),
            request: begin.request,
            request_sent: false,
            replayable: true,
            request_framing: begin.framing,
            request_done: begin.framing.is_empty(),
            // A relayed connection that is cut must not look whole.
            response_framing: if is_relay { Framing::UntilClose } else { Framing::None },
            status: 0,
            response_seen: false,
            client_ended: false,
            member_ended: false,
            tried: [0; TRIES_MAX],
            tried_count: 0,
            last_member: None,
            tries: 0,
            retries: 0,
            sent_before: 0,
            reused_connection: false,
            was_unread: false,
            bytes_received: 0,
            bytes_sent: 0,
            head_bytes_sent: 0,
            begun_us: io.clock().now_us(),
            tried_us: 0,
            try_us: 0,
            connected_us: 0,
            asked_us: 0,
            first_byte_us: 0,
            log_format: begin.log_format,
            log_request: begin.log_request,
        };
        self.exchanges.insert(exchange)
    }
}

impl Exchange {
    /// Finds a member and a connection to it. When this returns false, the exchange waits for a member,
    /// or the client has been told that there is none and it is gone.
    pub fn dispatch(&mut self, at: &mut Desk<'_>) -> bool {
        let (mut is_full, mut has_failed) = (false, false);
        while self.tries_left() > 0 {
            let pool = Rc::clone(&self.pool);
            let now = at.io.clock();
            let is_first = self.tries == 0;
            let is_behind = is_first && !self.had_its_turn && super::waiting::must_queue(&pool);
            let occupied = match self.reserved.take() {
                Some(member) => Ok(member),
                // Nobody in line waits for a member that only takes its own clients.
                None if is_behind => pool.occupy_drained(self.wish, now).ok_or(NoMember::Full),
                None => pool.occupy(self.tried(), now, self.wish),
            };
            let member = match occupied {
                Ok(member) => member,
                Err(reason) => {
                    is_full = reason == NoMember::Full;
                    // What has been sent of it must be here to be sent again.
                    if self.is_over() {
                        return false;
                    }
                    let is_whole = self.replayable && self.request_done;
                    let may_wait = is_first || is_whole || !self.request_sent;
                    if is_full && may_wait && self.join_line(at) {
                        return false;
                    }
                    break;
                }
            };
            if self.is_over() {
                return false;
            }
            if has_failed {
                if !pool.may_retry(at.io.now_ms()) {
                    pool.release(member);
                    break;
                }
                self.retries += 1;
                pool.live.counters.of(at.world.id).retries.add(1);
            }
            self.note_member(member, at.io);
            if self.tries == 0 {
                self.tried_us = now.now_us();
            }
            self.tried[self.tried_count as usize] = member;
            self.tried_count += 1;
            self.tries += 1;
            self.member = Some(member);
            self.try_us = now.now_us();
            (self.connected_us, self.asked_us) = (0, 0);
            let local = &pool.members[member as usize];
            self.last_member = Some(Rc::clone(local));
            let live = &local.live;
            live.counters.of(at.world.id).requests_active.add(1);
            match self.take_connection(at, member) {
                Ok(()) => return true,
                Err(reason) => {
                    self.leave_member(at, Some(reason), at.io.now_ms());
                    if self.is_over() {
                        return false;
                    }
                    self.failure = Some(reason);
                    if reason == MemberFailure::NoSocket {
                        break;
                    }
                    has_failed = true;
                }
            }
        }
        if self.is_over() {
            return false;
        }
        let (status, termination) = match self.failure {
            Some(reason) => (reason.status(), reason.termination()),
            None => {
                self.pool.live.counters.of(at.world.id).no_member.add(1);
                (503, Termination::NoMember)
            }
        };
        let page = self.pool.settings().maintenance.clone();
        match page.filter(|_| termination == Termination::NoMember && !is_full) {
            Some(page) => {
                let mut fields = FieldEdits::default();
                let content_type = page.content_type.as_bytes();
                fields.add(b"Content-Type", |out| out.extend_from_slice(content_type));
                self.respond_with(at, status, termination, &fields, Some(&page.body));
            }
            None => self.respond(at, status, termination),
        }
        false
    }

    /// Ends the occupation of the member that an exchange has, if it has one.
    pub fn leave_member(&mut self, at: &mut Desk<'_>, failure: Option<MemberFailure>, now_ms: u64) {
        if self.is_over() {
            return;
        }
        let Some(member) = self.member.take() else {
            return;
        };
        let pool = Rc::clone(&self.pool);
        pool.release(member);
        let live = &pool.members[member as usize].live;
        let counters = live.counters.of(at.world.id);
        counters.requests_active.subtract(1);
        let is_blamed = failure
            .is_some_and(|why| !matches!(why, MemberFailure::NoSocket | MemberFailure::Busy));
        if is_blamed && pool.is_timed() {
            // However quick it was: it must not attract requests.
            let elapsed_us = (now_ms * 1_000).saturating_sub(self.try_us).max(FAILED_US_MIN);
            live.note_response_time(now_ms, elapsed_us, true);
        }
        match failure {
            Some(MemberFailure::Connect | MemberFailure::ConnectTimeout) => {
                counters.connect_failures.add(1);
            }
            Some(MemberFailure::NoSocket | MemberFailure::Busy) | None => return,
            Some(_) => counters.response_failures.add(1),
        }
        at.world.mark_failure(&pool, member, now_ms);
    }

    /// The member connection of an exchange is of no use any more and has been closed. The request
    /// is sent elsewhere, or the client learns of the failure.
    pub fn member_lost(&mut self, at: &mut Desk<'_>, loss: Loss) {
        let Loss { reason, nothing_sent, unsent, is_counted } = loss;
        if self.is_over() {
            return;
        }
        self.connection = None;
        self.failure = Some(reason);
        if !matches!(self.phase, Phase::AwaitHead | Phase::Connect) {
            // How a tunnel ends is a matter between its ends.
            let is_tunnel = self.phase == Phase::Tunnel;
            let has_ended = is_tunnel && self.member_ended && !self.is_relay();
            // What the member has said is whole then; it hears nothing more.
            self.client_ended |= has_ended;
            self.leave_member(at, (!is_tunnel).then_some(reason), at.io.now_ms());
            if has_ended {
                return self.tunnel_may_end(at);
            }
            return self.truncate(at, reason.termination());
        }
        self.first_byte_us = 0;
        let sent = match (nothing_sent, self.replayable) {
            (true, _) => Sent::Nothing,
            (false, true) => Sent::Replayable,
            (false, false) => Sent::Consumed,
        };
        let attempt = FailedAttempt {
            idempotent: self.method.is_idempotent(),
            sent,
            response_started: self.response_seen,
            reused_connection: self.reused_connection,
            tries_left: self.tries_left(),
        };
        // A kept connection that ends says nothing about its member: a new one to the same member, which is
        // no try of another and no part of the budget for those.
        let stale = self.reused_connection && reason == MemberFailure::Abort;
        let repeat = reason != MemberFailure::Timeout
            && reason != MemberFailure::Malformed
            && (self.replayable || !unsent.is_empty())
            && may_retry(&attempt)
            && (stale || self.pool.may_retry(at.io.now_ms()));
        if stale && repeat {
            return self.retry_stale(at, unsent);
        }
        let is_blamed = !stale && !is_counted;
        self.leave_member(at, is_blamed.then_some(reason), at.io.now_ms());
        if !repeat {
            return self.respond(at, reason.status(), reason.termination());
        }
        if self.is_over() {
            return;
        }
        self.retries += 1;
        self.pool.live.counters.of(at.world.id).retries.add(1);
        if self.dispatch(at) {
            self.resend(at, &unsent);
        }
    }

    /// Sends the request once more, on a new connection to the member that it occupies already. Others that were on
    /// the old one share that.
    fn retry_stale(&mut self, at: &mut Desk<'_>, unsent: Vec<u8>) {
        if self.is_over() {
            return;
        }
        let Some(member) = self.member else {
            return;
        };
        self.retries += 1;
        self.pool.live.counters.of(at.world.id).retries.add(1);
        let local = Rc::clone(&self.pool.members[member as usize]);
        let has_one = self.pool.settings().http2 && self.take_multiplexed(at, &local, true);
        let taken = if has_one { Ok(()) } else { self.open_connection(at, member) };
        match taken {
            Ok(()) => self.resend(at, &unsent),
            Err(reason) => {
                self.leave_member(at, Some(reason), at.io.now_ms());
                if self.is_over() {
                    return;
                }
                self.failure = Some(reason);
                if !self.pool.may_retry(at.io.now_ms()) {
                    return self.respond(at, reason.status(), reason.termination());
                }
                if self.dispatch(at) {
                    self.resend(at, &unsent);
                }
            }
        }
    }

    /// Hands the request to the new connection: what was queued for the old one, or all of it.
    pub fn resend(&mut self, at: &mut Desk<'_>, unsent: &[u8]) {
        if self.is_over() {
            return;
        }
        if self.is_relay() {
            return; // Nothing has been taken from its client.
        }
        let Some(connection) = self.connection else {
            return;
        };
        // Whether or not it was sent before: from here on it is.
        if !self.is_over() {
            self.request_sent = true;
        }
        if self.is_over() {
            return;
        }
        if self.member_stream.is_some() {
            self.resend_on_stream(at);
        } else {
            let bytes = if unsent.is_empty() { &self.request[..] } else { unsent };
            if let Some(connection) = at.world.members.get(connection) {
                at.io.send(connection.token, &[IoSlice::new(bytes)]);
            }
            at.count_sent_to_member(connection);
        }
        self.request_handed_over(at);
        // The client may have been stopped because of what the old connection did not take.
        if self.is_over() {
            return;
        }
        if self.request_done {
            self.give_window_unless_backed_up(at);
        } else if !self.is_member_backed_up(at) {
            self.request_goes_on(at);
        }
    }

    /// The response head has come: the timers of the log stand, the request is not needed any more.
    pub fn response_began(&mut self, at: &mut Desk<'_>, status: u16) {
        let now_us = at.io.clock().now_us();
        if self.is_over() {
            return;
        }
        if self.first_byte_us == 0 {
            self.first_byte_us = now_us;
        }
        let first_byte_us = self.first_byte_us;
        self.status = status;
        at.io.give_buffer(std::mem::take(&mut self.request));
        self.replayable = false;
        count_status!(self.server.live.counters.of(at.world.id), status);
        let Some(member) = self.member else {
            return;
        };
        let pool = Rc::clone(&self.pool);
        let live = &pool.members[member as usize].live;
        let counters = live.counters.of(at.world.id);
        count_status!(counters, status);
        let duration_us = first_byte_us.saturating_sub(self.connected_us);
        counters.response_duration.record(duration_us);
        // How long the client took to send its request says nothing of the member.
        if pool.is_timed() && self.asked_us != 0 {
            let from_us = self.asked_us.max(self.connected_us);
            let own_us = first_byte_us.saturating_sub(from_us);
            live.note_response_time(now_us / 1_000, own_us, status >= 500);
        }
        if status >= 500 {
            at.world.mark_failure(&pool, member, now_us / 1_000);
        } else {
            live.mark_success(now_us / 1_000);
        }
    }
}
