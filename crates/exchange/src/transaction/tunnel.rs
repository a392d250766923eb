//! A tunnel: the connection after status 101, or a relayed connection. Bytes pass in both directions, and each
//! direction ends separately. Either side may be an HTTP/2 stream.
//!
//! | | client | member |
//! |---|---|---|
//! | bytes arrived | `client_sent` | `member_sent` |
//! | bytes were moved directly to the other side | `client_passed` | `member_passed` |
//! | the queued data was taken | `client_took` | `member_took` |
//! | the sending side has ended | `client_ended` | `member_ended` |
//! | the connection is lost | `abandon` | `member_lost`; a stream: `member_left` |
//! | the idle timeout has passed | `timer` | `timer` |

use crate::edge::{Edge, Flow, Lag, Release, Side, TunnelBytes};
use crate::parts::attempt::Attempt;
use crate::parts::end::{End, OwnedEnd};
use crate::parts::failure::MemberFailure;
use crate::parts::stream_end::StreamEnd;
use crate::parts::transaction_ends::{LetOut, NextClientState, TransactionEnds};
use crate::termination::Termination;
use crate::transaction::exchange::Exchange;
use crate::transaction::relay::{Relay, count_relay};

/// A member that ends a tunnel this soon, without a byte of its own, has not served it. Later, it may be a protocol in
/// which only clients send.
const UNSERVED_MS_MAX: u64 = 10_000;

/// The same, if it ends in order and the client has sent nothing that it could answer: many servers end idle connections.
const UNSERVED_IDLE_MS_MAX: u64 = 1_000;

/// The kind of transaction before the tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A relayed connection.
    Relay,
    /// A request for a protocol change.
    Request,
}

/// A tunnel: bytes in both directions.
pub struct Tunnel {
    /// The client connection, the member connection, and facts about them.
    pub ends: TransactionEnds,
    origin: Origin,
    /// Why the member connection was lost, if it did not end in order.
    failure: Option<MemberFailure>,
    has_client_ended: bool,
    has_member_ended: bool,
    begun_ms: u64,
    has_client_sent: bool,
    has_member_sent: bool,
    /// The member ended the tunnel at once, without a byte.
    is_unserved: bool,
}

impl Tunnel {
    /// The tunnel of an exchange after the member has accepted it.
    pub fn of(exchange: Exchange) -> Self {
        let has_client_ended = exchange.client_ended;
        Self { has_client_ended, ..Self::between(exchange.ends, Origin::Request) }
    }

    /// The tunnel of a relayed connection whose member is connected.
    pub fn of_relay(relay: Relay) -> Self {
        Self::between(relay.ends, Origin::Relay)
    }

    fn between(ends: TransactionEnds, origin: Origin) -> Self {
        Self {
            ends,
            origin,
            failure: None,
            has_client_ended: false,
            has_member_ended: false,
            begun_ms: 0,
            has_client_sent: false,
            has_member_sent: false,
            is_unserved: false,
        }
    }

    /// Whether it is a relayed connection, not one after a request.
    pub fn is_relay(&self) -> bool {
        self.origin == Origin::Relay
    }

    /// Whether the tunnel has ended.
    pub fn is_over(&self) -> bool {
        self.ends.over.is_some()
    }

    /// Begins the tunnel: both sides are connected. Data that the client sent early is forwarded first.
    /// `has_client_ended`, `has_member_ended`: that sending side has ended already.
    pub fn start(
        &mut self,
        at: &mut impl Edge,
        (has_client_ended, has_member_ended): (bool, bool),
    ) {
        self.begun_ms = at.turn().now_ms();
        self.ends.clear_member_deadline(at);
        self.is_alive(at);
        at.flow(&mut self.ends, Side::Client, Flow::Straight);
        at.flow(&mut self.ends, Side::Member, Flow::Straight);
        self.let_client_send(at);
        self.has_client_ended |= has_client_ended;
        if self.has_client_ended && !self.is_over() {
            self.client_ended(at);
        }
        if has_member_ended && !self.is_over() {
            self.member_ended(at);
        }
    }

    /// Bytes from the client.
    pub fn client_sent(&mut self, at: &mut impl Edge, bytes: &[u8]) {
        self.client_passed(at, TunnelBytes::Bytes(bytes));
    }

    /// Bytes from the client: in memory, or already moved.
    pub fn client_passed(&mut self, at: &mut impl Edge, bytes: TunnelBytes<'_>) {
        if self.ends.phase.connection().is_none() {
            return;
        }
        self.ends.account.bytes_received += bytes.count() as u64;
        self.has_client_sent |= bytes.count() > 0;
        if bytes.count() > 0 {
            at.pass(&mut self.ends, Side::Member, bytes);
            if at.lag(&self.ends, Side::Member) != Lag::None {
                at.flow(&mut self.ends, Side::Client, Flow::Stop);
            }
        }
        self.is_alive(at);
    }

    /// Data arrived on the client's stream, possibly with its end.
    pub fn client_data(&mut self, at: &mut impl Edge, data: &[u8], end: End<'_>) {
        let is_end = !matches!(end, End::No);
        self.client_passed(
            at,
            if is_end { TunnelBytes::Last(data) } else { TunnelBytes::Bytes(data) },
        );
        if is_end {
            self.client_ended(at);
        }
        if !self.is_over() && at.lag(&self.ends, Side::Member) == Lag::None {
            self.ends.give_window(at);
        }
    }

    /// Bytes from the member.
    pub fn member_sent(&mut self, at: &mut impl Edge, bytes: &[u8]) {
        self.member_passed(at, TunnelBytes::Bytes(bytes));
    }

    /// Bytes from the member: in memory, or already moved.
    pub fn member_passed(&mut self, at: &mut impl Edge, bytes: TunnelBytes<'_>) {
        self.ends.account.times.note_first_byte(at.turn().now_us());
        self.has_member_sent |= bytes.count() > 0;
        if bytes.count() > 0 {
            at.pass(&mut self.ends, Side::Client, bytes);
            if self.ends.is_client_behind(at) {
                self.ends.pause_member(at);
            }
        }
        self.is_alive(at);
    }

    /// Data arrived on the member's stream, possibly with its end.
    pub fn member_data(&mut self, at: &mut impl Edge, data: &[u8], end: End<'_>) {
        let is_end = !matches!(end, End::No);
        self.member_passed(
            at,
            if is_end { TunnelBytes::Last(data) } else { TunnelBytes::Bytes(data) },
        );
        if !self.ends.is_client_behind(at) {
            self.ends.give_member_window(at);
        }
        if is_end {
            self.member_ended(at);
        }
    }

    /// Restarts the idle timeout: a byte has passed or was taken.
    fn is_alive(&mut self, at: &mut impl Edge) {
        let timeout_ms = self.ends.server.tunnel_timeout_ms();
        self.ends.set_client_deadline(at, at.turn().now_ms() + timeout_ms);
    }

    /// The idle timeout has passed. It is extended while a side still takes data.
    pub fn timer(&mut self, at: &mut impl Edge) {
        let timeout_ms = self.ends.server.tunnel_timeout_ms();
        let of_client_ms = at.patience_until_ms(&self.ends, Side::Client, timeout_ms);
        let until_ms = of_client_ms.max(at.patience_until_ms(&self.ends, Side::Member, timeout_ms));
        if until_ms > at.turn().now_ms() {
            return self.ends.set_client_deadline(at, until_ms);
        }
        let why = match self.origin {
            Origin::Relay => Termination::IdleTimeout,
            Origin::Request => Termination::TunnelTimeout,
        };
        self.truncate(at, why);
    }

    /// The client took everything that was queued for it.
    pub fn client_took(&mut self, at: &mut impl Edge) {
        if self.ends.has_client_taken_its_own() {
            self.is_alive(at);
        }
        self.ends.resume_member(at);
        if self.has_member_ended {
            at.half_close(&mut self.ends, Side::Client);
        }
        self.may_end(at);
    }

    /// The client's windows let out some queued data. Returns whether more may be sent.
    pub fn client_let_out(&mut self, at: &mut impl Edge, sent: &LetOut) -> bool {
        if sent.data_bytes > 0 {
            self.is_alive(at);
        }
        if sent.is_behind {
            return sent.data_bytes > 0;
        }
        if !self.ends.is_client_behind(at) {
            self.client_took(at);
        }
        false
    }

    /// The member took everything that was queued for it.
    pub fn member_took(&mut self, at: &mut impl Edge) {
        self.is_alive(at);
        self.let_client_send(at);
        if self.is_over() {
            return;
        }
        if self.has_client_ended {
            at.half_close(&mut self.ends, Side::Member);
        }
        self.may_end(at);
    }

    /// The member accepts more data: forwards what was held, and lets the client continue.
    fn let_client_send(&mut self, at: &mut impl Edge) {
        match at.resume_client(&mut self.ends) {
            Some((held, OwnedEnd::No)) if held.is_empty() => self.ends.give_window(at),
            Some((held, end)) => {
                // `client_data` counts it a second time.
                self.ends.account.bytes_received -= held.len() as u64;
                self.client_data(at, &held, end.get());
                at.recycle(held);
            }
            None => {}
        }
    }

    /// All data of the client was handled, and its sending side has ended behind that.
    pub fn handle_client_end(&mut self, at: &mut impl Edge) {
        if !self.has_client_ended {
            self.client_ended(at);
        }
    }

    /// The client has ended its sending side: the member gets the end after all queued data.
    pub fn client_ended(&mut self, at: &mut impl Edge) {
        self.has_client_ended = true;
        // Without a half-close, the socket is closed a moment later.
        let is_closed = self.origin == Origin::Relay
            && self.has_member_ended
            && at.lag(&self.ends, Side::Member) != Lag::Behind
            && !self.ends.is_client_behind(at);
        if !is_closed {
            at.half_close(&mut self.ends, Side::Member);
        }
        self.may_end(at);
    }

    /// The member has ended its sending side: the client gets the end after all queued data.
    pub fn member_ended(&mut self, at: &mut impl Edge) {
        self.note_member_end(at, false);
        self.has_member_ended = true;
        if !self.ends.is_client_behind(at) {
            at.half_close(&mut self.ends, Side::Client);
        }
        self.may_end(at);
    }

    /// The member resets its stream after its end: it wants no more data of the client. The client still gets queued
    /// data. Returns false if the member has not sent its end.
    pub fn member_left(&mut self, at: &mut impl Edge) -> bool {
        if !self.has_member_ended {
            return false;
        }
        self.has_client_ended = true;
        self.ends.drop_member(at);
        self.may_end(at);
        true
    }

    /// The member connection has failed and was closed. A broken tunnel does not count as a failure of the member.
    pub fn member_lost(&mut self, at: &mut impl Edge, reason: MemberFailure) {
        self.ends.phase.take_link();
        self.note_member_end(at, true);
        self.failure = Some(reason);
        self.ends.release_member(at, None);
        if self.has_member_ended && self.origin == Origin::Request {
            // All data of the member has arrived, and it can receive no more.
            self.has_client_ended = true;
            return self.may_end(at);
        }
        self.truncate(at, reason.termination());
    }

    /// Notes whether the member has served the tunnel that it ends.
    fn note_member_end(&mut self, at: &impl Edge, is_broken: bool) {
        if self.has_member_sent || self.has_member_ended {
            return;
        }
        let may_take_ms = match (self.has_client_ended, self.has_client_sent) {
            // The end of the client is answered by an end.
            (true, sent) if !is_broken || !sent => return,
            (false, false) if !is_broken => UNSERVED_IDLE_MS_MAX,
            _ => UNSERVED_MS_MAX,
        };
        self.is_unserved = at.turn().now_ms().saturating_sub(self.begun_ms) < may_take_ms;
        let attempt = self.ends.phase.attempt().filter(|_| self.is_unserved);
        if let Some(Attempt { lease, .. }) = attempt {
            let member = &lease.pool.members[lease.member as usize];
            member.counters.response_failures.add(1);
        }
    }

    /// Ends the tunnel when both directions have ended and all data is delivered. A member's stream is released as soon
    /// as it has ended, so a later failure of its connection does not affect the data that the client has not taken
    /// yet.
    fn may_end(&mut self, at: &mut impl Edge) {
        if !self.has_client_ended || !self.has_member_ended {
            return;
        }
        if at.lag(&self.ends, Side::Member) == Lag::Behind {
            return;
        }
        if self.ends.is_client_behind(at) {
            if self.ends.tells_breaks() {
                self.ends.drop_member(at);
            }
            return;
        }
        let why = self.failure.map_or(Termination::Complete, MemberFailure::termination);
        self.drop_member(at);
        self.end(at, why, NextClientState::Whole);
    }

    /// Ends in a way that shows the client that data is missing.
    pub fn truncate(&mut self, at: &mut impl Edge, termination: Termination) {
        self.drop_member(at);
        // An orderly end would make the part look like the whole. The client's stream is reset with it.
        self.end(at, termination, NextClientState::Broken { must_reset: true });
    }

    /// Ends because the client is gone. The caller closes the client connection.
    pub fn abandon(&mut self, at: &mut impl Edge, termination: Termination) {
        if self.has_client_ended {
            at.release(&mut self.ends, Release::ResetWhenTaken);
        }
        self.drop_member(at);
        self.end(at, termination, NextClientState::Nothing);
    }

    fn drop_member(&mut self, at: &mut impl Edge) {
        at.release(&mut self.ends, Release::Reset { is_told: self.has_client_ended });
        self.ends.release_member(at, None);
    }

    fn end(&mut self, at: &mut impl Edge, termination: Termination, after: NextClientState) {
        if self.is_over() {
            return;
        }
        let counters = &self.ends.server.counters;
        match self.origin {
            Origin::Relay => {
                count_relay(counters, termination);
                if self.is_unserved {
                    counters.relays_unserved.add(1);
                }
            }
            Origin::Request => {
                self.ends.count_request(at);
                if self.is_unserved {
                    counters.responses_cut.add(1);
                }
            }
        }
        self.ends.end(at, termination, StreamEnd::of_tunnel(termination));
        self.ends.over = Some(after);
    }
}
