//! A tunnel: after 101, or of a relayed connection. Bytes pass both ways, and each direction ends separately. Either end
//! may be an HTTP/2 stream.
//!
//! | | client | member |
//! |---|---|---|
//! | bytes | `client_sent` | `member_sent` |
//! | bytes that went straight to the other | `client_passed` | `member_passed` |
//! | took what was queued for it | `client_took` | `member_took` |
//! | sends nothing more | `client_ended` | `member_ended` |
//! | is gone | `abandon` | `member_lost`; of a stream `member_left` |
//! | nothing came for long | `timer` | `timer` |

use crate::edge::{Edge, Flow, Lag, Passing, Release, Side};
use crate::parts::end::{End, OwnedEnd};
use crate::parts::ends::{After, Ends, LetOut};
use crate::parts::failure::MemberFailure;
use crate::parts::stream_end::StreamEnd;
use crate::termination::Termination;
use crate::transaction::exchange::Exchange;
use crate::transaction::relay::{Relay, count_relay};

/// The kind of transaction that it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A connection that is relayed as a whole.
    Relay,
    /// A request to change the protocol.
    Request,
}

/// Bytes both ways.
pub struct Tunnel {
    /// The two connections.
    pub ends: Ends,
    origin: Origin,
    /// Its member's protocol distinguishes a break from an end.
    tells_breaks: bool,
    /// Why its member is gone, if that is no end.
    failure: Option<MemberFailure>,
    has_client_ended: bool,
    has_member_ended: bool,
}

impl Tunnel {
    /// The tunnel of an exchange whose member has agreed.
    pub fn of(exchange: Exchange) -> Self {
        let tells_breaks = exchange.ends.tells_breaks();
        let has_client_ended = exchange.client_ended;
        Self { tells_breaks, has_client_ended, ..Self::between(exchange.ends, Origin::Request) }
    }

    /// The tunnel of a relayed connection whose member is connected.
    pub fn of_relay(relay: Relay) -> Self {
        Self::between(relay.ends, Origin::Relay)
    }

    fn between(ends: Ends, origin: Origin) -> Self {
        Self {
            ends,
            origin,
            tells_breaks: false,
            failure: None,
            has_client_ended: false,
            has_member_ended: false,
        }
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.ends.over.is_some()
    }

    /// Both ends are connected: data that the client has sent ahead goes first. `has_client_ended`, `has_member_ended`:
    /// that end sends nothing more.
    pub fn start(
        &mut self,
        at: &mut impl Edge,
        (has_client_ended, has_member_ended): (bool, bool),
    ) {
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
        self.client_passed(at, Passing::Bytes(bytes));
    }

    /// Bytes from the client, wherever they are.
    pub fn client_passed(&mut self, at: &mut impl Edge, bytes: Passing<'_>) {
        if self.ends.attempt.connection.is_none() {
            return;
        }
        self.ends.account.bytes_received += bytes.count() as u64;
        if bytes.count() > 0 {
            at.pass(&mut self.ends, Side::Member, bytes);
            if at.lag(&self.ends, Side::Member) != Lag::None {
                at.flow(&mut self.ends, Side::Client, Flow::Stop);
            }
        }
        self.is_alive(at);
    }

    /// Data of the client's stream, and its end.
    pub fn client_data(&mut self, at: &mut impl Edge, data: &[u8], end: End<'_>) {
        self.client_sent(at, data);
        if !matches!(end, End::No) {
            self.client_ended(at);
        }
        if !self.is_over() && at.lag(&self.ends, Side::Member) == Lag::None {
            self.ends.give_window(at);
        }
    }

    /// Bytes from the member.
    pub fn member_sent(&mut self, at: &mut impl Edge, bytes: &[u8]) {
        self.member_passed(at, Passing::Bytes(bytes));
    }

    /// Bytes from the member, wherever they are.
    pub fn member_passed(&mut self, at: &mut impl Edge, bytes: Passing<'_>) {
        self.ends.attempt.note_first_byte(at.turn().now_us());
        if bytes.count() > 0 {
            at.pass(&mut self.ends, Side::Client, bytes);
            if self.ends.is_client_behind(at) {
                self.ends.pause_member(at);
            }
        }
        self.is_alive(at);
    }

    /// Data of the member's stream, and its end.
    pub fn member_data(&mut self, at: &mut impl Edge, data: &[u8], end: End<'_>) {
        self.member_sent(at, data);
        if !self.ends.is_client_behind(at) {
            self.ends.give_member_window(at);
        }
        if !matches!(end, End::No) {
            self.member_ended(at);
        }
    }

    /// Something has passed, or was taken.
    fn is_alive(&mut self, at: &mut impl Edge) {
        let timeout_ms = self.ends.server.tunnel_timeout_ms();
        self.ends.set_client_deadline(at, at.turn().now_ms() + timeout_ms);
    }

    /// No byte has come from either end for a while. An end that still takes data is not idle.
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

    /// Some of the data that waited for the client's windows was sent. Returns whether more may be sent.
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

    /// The member takes more: the client may send it.
    fn let_client_send(&mut self, at: &mut impl Edge) {
        match at.let_on(&mut self.ends) {
            Some((held, OwnedEnd::No)) if held.is_empty() => self.ends.give_window(at),
            Some((held, end)) => {
                // It is counted anew.
                self.ends.account.bytes_received -= held.len() as u64;
                self.client_data(at, &held, end.get());
                at.recycle(held);
            }
            None => {}
        }
    }

    /// All that its client has sent was looked at, and its end has come behind that.
    pub fn heed_end(&mut self, at: &mut impl Edge) {
        if !self.has_client_ended {
            self.client_ended(at);
        }
    }

    /// The client has ended its sending side: the member is told, once it has taken everything.
    pub fn client_ended(&mut self, at: &mut impl Edge) {
        self.has_client_ended = true;
        // A socket that is closed now needs no half-close.
        let is_closed = self.origin == Origin::Relay
            && self.has_member_ended
            && at.lag(&self.ends, Side::Member) != Lag::Behind
            && !self.ends.is_client_behind(at);
        if !is_closed {
            at.half_close(&mut self.ends, Side::Member);
        }
        self.may_end(at);
    }

    /// The member has ended its sending side: the client is told, once it has taken everything.
    pub fn member_ended(&mut self, at: &mut impl Edge) {
        self.has_member_ended = true;
        if !self.ends.is_client_behind(at) {
            at.half_close(&mut self.ends, Side::Client);
        }
        self.may_end(at);
    }

    /// The member resets its stream after its end: it does not want more data of the client. The client gets the data on
    /// its way. False: the member has not sent its end.
    pub fn member_left(&mut self, at: &mut impl Edge) -> bool {
        if !self.has_member_ended {
            return false;
        }
        self.has_client_ended = true;
        self.ends.drop_member(at);
        self.may_end(at);
        true
    }

    /// The member connection has failed and was closed. A broken tunnel counts as a failure of neither side.
    pub fn member_lost(&mut self, at: &mut impl Edge, reason: MemberFailure) {
        self.ends.attempt.connection = None;
        self.failure = Some(reason);
        self.ends.leave_member(at, None);
        if self.has_member_ended && self.origin == Origin::Request {
            // The member's data is complete; it gets nothing more.
            self.has_client_ended = true;
            return self.may_end(at);
        }
        self.truncate(at, reason.termination());
    }

    /// Both directions have ended and everything is delivered: the tunnel ends. A member's stream is released before that,
    /// when it has ended: the fate of its connection does not matter for the data that the client has yet to take.
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
        self.end(at, why, After::Whole);
    }

    /// Ends so that the client notices that something is missing.
    pub fn truncate(&mut self, at: &mut impl Edge, termination: Termination) {
        self.drop_member(at);
        // An end would make the part look like the whole.
        let is_broken = self.tells_breaks && self.failure.is_some();
        let must_reset = self.origin == Origin::Relay || is_broken;
        // Its stream is reset with it.
        self.end(at, termination, After::Broken { must_reset });
    }

    /// Ends because its client is gone; the client connection is the caller's to close.
    pub fn abandon(&mut self, at: &mut impl Edge, termination: Termination) {
        if self.origin == Origin::Relay && self.has_client_ended {
            at.release(&mut self.ends, Release::ResetWhenTaken);
        }
        self.drop_member(at);
        self.end(at, termination, After::Nothing);
    }

    fn drop_member(&mut self, at: &mut impl Edge) {
        let how = match self.origin {
            Origin::Relay => Release::Reset { is_told: self.has_client_ended },
            Origin::Request => Release::Drop,
        };
        at.release(&mut self.ends, how);
        self.ends.leave_member(at, None);
    }

    fn end(&mut self, at: &mut impl Edge, termination: Termination, after: After) {
        if self.is_over() {
            return;
        }
        let counters = &self.ends.server.counters;
        match self.origin {
            Origin::Relay => count_relay(counters, termination),
            Origin::Request => self.ends.count_request(at),
        }
        self.ends.end(at, termination, StreamEnd::of_tunnel(termination));
        self.ends.over = Some(after);
    }
}
