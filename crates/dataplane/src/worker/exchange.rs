//! One transaction: a request, the member that serves it, the response. It belongs to a stream of a
//! client connection, never to the connection itself, and speaks of messages, not of a version of
//! HTTP.

use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;

use weir_config::snapshot::AccessFormat;
use weir_core::retry::{FailedAttempt, Sent, may_retry};
use weir_event_loop::EventLoop;
use weir_event_loop::clock::Clock;
use weir_http::edits::FieldEdits;
use weir_http::message::{Framing, Method, Version};

use super::Worker;
use super::account::Account;
use super::attempt::Attempt;
use super::encoding::{Codings, Encoding};
use super::ends::Ends;
use super::extras::Extras;
use super::pace::Pace;
use super::parked::Parked;
use super::transaction::Transaction;
use super::tries::{Lease, Tries};
use super::upload::Upload;
use super::websocket::Handshake;
use super::world::Desk;
use crate::access_log::Termination;
use crate::arena::{ClientKey, ExchangeKey, StreamKey};
use crate::counters::count_status;
use crate::pool::{LocalPool, NoMember, Wish};
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
}

/// One transaction.
pub struct Exchange {
    /// The two connections that it is between.
    pub ends: Ends,
    /// Where it may go, and what came of trying.
    pub tries: Tries,
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
    /// How far it has come.
    pub phase: Phase,
    /// How steadily its bodies come.
    pub pace: Pace,
    /// The request on its way.
    pub upload: Upload,
    /// How the response body is framed towards the client.
    pub response_framing: Framing,
    /// The client of a stream has ended its half, which counts if this becomes a tunnel.
    pub client_ended: bool,
    /// What the client takes, where responses are compressed.
    pub codings: Option<Codings>,
    /// What compresses the response, or drops it.
    pub encoding: Option<Box<Encoding>>,
    /// What it waits for.
    pub parked: Parked,
    /// The place that was taken for it when its turn came.
    pub reserved: Option<Lease>,
}

impl Exchange {
    /// Where it waits for a place another table is in force: it goes by that from now on. What kept its
    /// client at a member was numbered by the table before, and is only known further if nothing changed.
    pub fn move_to(&mut self, pool: &Rc<LocalPool>) {
        let labels = |pool: &LocalPool| {
            pool.members.iter().map(|member| Arc::clone(&member.live.label)).collect::<Vec<_>>()
        };
        if !self.may_go_to(pool) {
            return;
        }
        let (old, new) = (labels(&self.tries.pool), labels(pool));
        self.tries.pool = Rc::clone(pool);
        if old == new {
            return;
        }
        let moved = |member: u32| pool.member(&old[member as usize]);
        self.tries.renumber(moved);
        if let Some(extras) = &mut self.ends.extras {
            extras.kept = None;
        }
    }

    /// What was sent of it is kept as the members of its pool are asked: it can go to others that are asked alike.
    fn may_go_to(&self, pool: &LocalPool) -> bool {
        !self.upload.is_sent() || self.tries.pool.settings().http2 == pool.settings().http2
    }

    /// Nobody in its pool is up: it goes to the pool behind that, if there is one.
    pub fn go_elsewhere(&mut self, now: Clock) {
        let traffic = self.ends.server.traffic.as_ref();
        let pool = traffic.and_then(|traffic| traffic.instead_of(&self.tries.pool, now));
        if let Some(pool) = pool.filter(|pool| self.may_go_to(pool)) {
            self.tries.pool = Rc::clone(pool);
            self.tries.wish = Wish::Any;
            if let Some(extras) = &mut self.ends.extras {
                extras.kept = None;
            }
        }
    }

    /// Whether it waits in line where that is not for those whose clients have ended their sending.
    pub fn gives_up_its_place(&self) -> bool {
        let queue = self.tries.pool.settings().queue;
        self.parked.is_in_queue() && queue.is_some_and(|queue| queue.is_left_by_half_closed)
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.ends.over.is_some()
    }

    /// Whether its member connection is gone, and what becomes of it is decided at the end of the turn.
    pub fn has_lost_its_member(&self) -> bool {
        self.ends.attempt.connection.is_none() && self.phase == Phase::AwaitHead
    }

    /// Whether it is a whole connection instead of a request.
    pub fn is_relay(&self) -> bool {
        self.ends.server.settings().relay.is_some()
    }

    /// When it got the member that it has now.
    pub fn try_us(&self) -> u64 {
        self.ends.attempt.try_us
    }

    /// The protocols that the client offers to change to.
    pub fn upgrade_offer(&self) -> &[u8] {
        let end = self.upload.bytes.len().saturating_sub(b"\r\n\r\n".len());
        &self.upload.bytes[end.saturating_sub(self.upgrade_bytes)..end]
    }

    /// Whether data of the client's stream belongs to a tunnel that the member has yet to agree to.
    pub fn awaits_tunnel(&self) -> bool {
        self.phase == Phase::AwaitHead && self.ends.stream.is_some() && self.upgrade_bytes > 0
    }

    /// Whether a response would be taken for a tunnel that the member has not agreed to: any 2xx means one to who
    /// asks by an extended CONNECT (RFC 8441 section 5).
    pub fn is_no_tunnel(&self, status: u16) -> bool {
        self.awaits_tunnel() && matches!(status, 200..=299)
    }

    /// How long it took until the response head, without the member's part, and that.
    pub fn times_us(&self) -> (u64, u64) {
        let member_us =
            self.ends.attempt.first_byte_us.saturating_sub(self.ends.attempt.connected_us);
        let all_us = self.ends.attempt.first_byte_us.saturating_sub(self.ends.account.begun_us);
        (all_us.saturating_sub(member_us), member_us)
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
            ends: Ends {
                key: self.exchanges.next_key(),
                over: None,
                client: begin.client,
                stream: begin.stream,
                attempt: Attempt::default(),
                server: begin.server,
                extras: begin.extras,
                account: Account::begin(io.clock().now_us(), begin.log_format, begin.log_request),
            },
            tries: Tries::new(begin.pool, begin.wish),
            codings: begin.codings,
            encoding: None,
            parked: Parked::No,
            reserved: None,
            method: begin.method,
            version: begin.version,
            keep_alive: begin.keep_alive,
            upgrade_bytes: begin.upgrade_bytes,
            websocket: begin.websocket,
            client_closes: begin.client_closes,
            phase: if is_relay { Phase::Connect } else { Phase::AwaitHead },
            pace: begin.pace,
            upload: Upload::new(begin.request, begin.framing),
            // A relayed connection that is cut must not look whole.
            response_framing: if is_relay { Framing::UntilClose } else { Framing::None },
            client_ended: false,
        };
        self.exchanges.insert(Transaction::Http(exchange))
    }
}

impl Exchange {
    /// Finds a member and a connection to it. When this returns false, the exchange waits for a member,
    /// or the client has been told that there is none and it is gone.
    pub fn dispatch(&mut self, at: &mut Desk<'_>) -> bool {
        let (mut is_full, mut has_failed) = (false, false);
        while self.tries.left() > 0 {
            let pool = Rc::clone(&self.tries.pool);
            let now = at.io.clock();
            let is_first = self.tries.count == 0;
            let is_behind = is_first
                && !matches!(self.parked, Parked::Called)
                && super::waiting::must_queue(&pool);
            let leased = |member| Lease::of(&pool, member);
            let occupied = match self.reserved.take() {
                Some(lease) => Ok(lease),
                // Nobody in line waits for a member that only takes its own clients.
                None if is_behind => {
                    pool.occupy_drained(self.tries.wish, now).ok_or(NoMember::Full).map(leased)
                }
                None => pool.occupy(self.tries.tried(), now, self.tries.wish).map(leased),
            };
            let lease = match occupied {
                Ok(lease) => lease,
                Err(reason) => {
                    is_full = reason == NoMember::Full;
                    // What has been sent of it must be here to be sent again.
                    let is_whole = self.upload.is_replayable() && self.upload.is_whole;
                    let may_wait = is_first || is_whole || !self.upload.is_sent();
                    if is_full && may_wait && self.join_line(at) {
                        return false;
                    }
                    break;
                }
            };
            if has_failed {
                if !pool.may_retry(at.io.now_ms()) {
                    break;
                }
                self.ends.account.retries += 1;
                pool.live.counters.of(at.world.id).retries.add(1);
            }
            let member = lease.member;
            self.note_member(member, at.io);
            if self.tries.count == 0 {
                self.ends.account.tried_us = now.now_us();
            }
            self.tries.note(member);
            self.ends.attempt.lease = Some(lease);
            self.ends.attempt.try_us = now.now_us();
            (self.ends.attempt.connected_us, self.ends.attempt.asked_us) = (0, 0);
            let local = &pool.members[member as usize];
            self.ends.account.last_member = Some(Rc::clone(local));
            let live = &local.live;
            live.counters.of(at.world.id).requests_active.add(1);
            match self.take_connection(at, member) {
                Ok(()) => return true,
                Err(reason) => {
                    self.ends.leave_member(at, Some(reason), at.io.now_ms());
                    self.tries.failure = Some(reason);
                    if reason == MemberFailure::NoSocket {
                        break;
                    }
                    has_failed = true;
                }
            }
        }
        let (status, termination) = match self.tries.failure {
            Some(reason) => (reason.status(), reason.termination()),
            None => {
                self.tries.pool.live.counters.of(at.world.id).no_member.add(1);
                (503, Termination::NoMember)
            }
        };
        let page = self.tries.pool.settings().maintenance.clone();
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
}

impl Ends {
    /// Ends the occupation of the member that an exchange has, if it has one.
    pub fn leave_member(&mut self, at: &mut Desk<'_>, failure: Option<MemberFailure>, now_ms: u64) {
        let Some(lease) = self.attempt.lease.take() else {
            return;
        };
        let (pool, member) = (Rc::clone(&lease.pool), lease.member);
        drop(lease);
        let live = &pool.members[member as usize].live;
        let counters = live.counters.of(at.world.id);
        counters.requests_active.subtract(1);
        let is_blamed = failure
            .is_some_and(|why| !matches!(why, MemberFailure::NoSocket | MemberFailure::Busy));
        if is_blamed && pool.is_timed() {
            // However quick it was: it must not attract requests.
            let elapsed_us =
                (now_ms * 1_000).saturating_sub(self.attempt.try_us).max(FAILED_US_MIN);
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
}

impl Exchange {
    /// The member connection of an exchange is of no use any more and has been closed. The request
    /// is sent elsewhere, or the client learns of the failure.
    pub fn member_lost(&mut self, at: &mut Desk<'_>, loss: Loss) {
        let Loss { reason, nothing_sent, unsent, is_counted } = loss;
        self.ends.attempt.connection = None;
        self.tries.failure = Some(reason);
        if !matches!(self.phase, Phase::AwaitHead | Phase::Connect) {
            self.ends.leave_member(at, Some(reason), at.io.now_ms());
            return self.truncate(at, reason.termination());
        }
        self.ends.attempt.first_byte_us = 0;
        let sent = match (nothing_sent, self.upload.is_replayable()) {
            (true, _) => Sent::Nothing,
            (false, true) => Sent::Replayable,
            (false, false) => Sent::Consumed,
        };
        let attempt = FailedAttempt {
            idempotent: self.method.is_idempotent(),
            sent,
            response_started: self.ends.attempt.response_seen,
            reused_connection: self.ends.attempt.is_reused,
            tries_left: self.tries.left(),
        };
        // A kept connection that ends says nothing about its member: a new one to the same member, which is
        // no try of another and no part of the budget for those.
        let stale = self.ends.attempt.is_reused && reason == MemberFailure::Abort;
        let repeat = reason != MemberFailure::Timeout
            && reason != MemberFailure::Malformed
            && (self.upload.is_replayable() || !unsent.is_empty())
            && may_retry(&attempt)
            && (stale || self.tries.pool.may_retry(at.io.now_ms()));
        if stale && repeat {
            return self.retry_stale(at, unsent);
        }
        let is_blamed = !stale && !is_counted;
        self.ends.leave_member(at, is_blamed.then_some(reason), at.io.now_ms());
        if !repeat {
            return self.respond(at, reason.status(), reason.termination());
        }
        if self.is_over() {
            return;
        }
        self.ends.account.retries += 1;
        self.tries.pool.live.counters.of(at.world.id).retries.add(1);
        if self.dispatch(at) {
            self.resend(at, &unsent);
        }
    }

    /// Sends the request once more, on a new connection to the member that it occupies already. Others that were on
    /// the old one share that.
    fn retry_stale(&mut self, at: &mut Desk<'_>, unsent: Vec<u8>) {
        let Some(member) = self.ends.attempt.member() else {
            return;
        };
        self.ends.account.retries += 1;
        self.tries.pool.live.counters.of(at.world.id).retries.add(1);
        let local = Rc::clone(&self.tries.pool.members[member as usize]);
        let has_one = self.tries.pool.settings().http2 && self.take_multiplexed(at, &local, true);
        let taken = if has_one { Ok(()) } else { self.open_connection(at, member) };
        match taken {
            Ok(()) => self.resend(at, &unsent),
            Err(reason) => {
                self.ends.leave_member(at, Some(reason), at.io.now_ms());
                if self.is_over() {
                    return;
                }
                self.tries.failure = Some(reason);
                if !self.tries.pool.may_retry(at.io.now_ms()) {
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
        if self.is_relay() {
            return; // Nothing has been taken from its client.
        }
        let Some(connection) = self.ends.attempt.connection else {
            return;
        };
        // Whether or not it was sent before: from here on it is.
        self.upload.send();
        if self.ends.attempt.member_stream.is_some() {
            self.resend_on_stream(at);
        } else {
            let bytes = if unsent.is_empty() { &self.upload.bytes[..] } else { unsent };
            if let Some(connection) = at.world.members.get(connection) {
                at.io.send(connection.token, &[IoSlice::new(bytes)]);
            }
            at.count_sent_to_member(connection);
        }
        self.request_handed_over(at);
        // The client may have been stopped because of what the old connection did not take.
        if self.upload.is_whole {
            self.give_window_unless_backed_up(at);
        } else if !self.is_member_backed_up(at) {
            self.request_goes_on(at);
        }
    }

    /// The response head has come: the timers of the log stand, the request is not needed any more.
    pub fn response_began(&mut self, at: &mut Desk<'_>, status: u16) {
        let now_us = at.io.clock().now_us();
        if self.ends.attempt.first_byte_us == 0 {
            self.ends.attempt.first_byte_us = now_us;
        }
        let first_byte_us = self.ends.attempt.first_byte_us;
        self.ends.account.status = status;
        at.io.give_buffer(std::mem::take(&mut self.upload.bytes));
        self.upload.let_go();
        count_status!(self.ends.server.live.counters.of(at.world.id), status);
        let Some(member) = self.ends.attempt.member() else {
            return;
        };
        let pool = Rc::clone(&self.tries.pool);
        let live = &pool.members[member as usize].live;
        let counters = live.counters.of(at.world.id);
        count_status!(counters, status);
        let duration_us = first_byte_us.saturating_sub(self.ends.attempt.connected_us);
        counters.response_duration.record(duration_us);
        // How long the client took to send its request says nothing of the member.
        if pool.is_timed() && self.ends.attempt.asked_us != 0 {
            let from_us = self.ends.attempt.asked_us.max(self.ends.attempt.connected_us);
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
