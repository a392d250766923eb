//! After 101, or of a connection that is relayed: bytes pass both ways, each direction with its own end. Either end may
//! be a stream of HTTP/2.
//!
//! | | client | member |
//! |---|---|---|
//! | bytes | `client_sent` | `member_sent` |
//! | took what was queued for it | `client_took` | `member_took` |
//! | sends nothing more | `client_ended` | `member_ended` |
//! | is gone | `abandon` | `member_lost`; of a stream `member_left` |
//! | nothing came for long | `timer` | `timer` |

use std::io::IoSlice;
use std::rc::Rc;

use weir_event_loop::{EventLoop, Token};

use super::body::Pieces;
use super::end::{End, OwnedEnd};
use super::ends::{After, Ends};
use super::exchange::{Exchange, MemberFailure};
use super::relay::count_relay;
use super::stream::StreamEnd;
use super::world::Desk;
use crate::access_log::Termination;
use crate::pool::LocalPool;

/// What it was before it became one.
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
    pool: Rc<LocalPool>,
    /// Its member tells a break from an end.
    tells_breaks: bool,
    /// Why its member is gone, if that is no end.
    failure: Option<MemberFailure>,
    has_client_ended: bool,
    has_member_ended: bool,
}

impl Tunnel {
    /// What becomes of an exchange whose member has agreed.
    pub fn of(exchange: Exchange) -> Self {
        let is_relay = exchange.is_relay();
        let tells_breaks = exchange.websocket.is_some() && exchange.tries.pool.settings().http2;
        let mut ends = exchange.ends;
        ends.over = None;
        Self {
            ends,
            origin: if is_relay { Origin::Relay } else { Origin::Request },
            pool: exchange.tries.pool,
            tells_breaks,
            failure: None,
            has_client_ended: exchange.client_ended,
            has_member_ended: false,
        }
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.ends.over.is_some()
    }

    /// Both ends are there: what the client has sent ahead goes first. `has_member_ended`: nothing more comes of the member.
    pub fn start(&mut self, at: &mut Desk<'_>, has_member_ended: bool) {
        self.ends.clear_member_deadline(at);
        self.is_alive(at);
        self.let_client_send(at);
        if self.ends.stream.is_none() {
            self.heed_end(at);
        } else if self.has_client_ended && !self.is_over() {
            self.client_ended(at);
        }
        if has_member_ended && !self.is_over() {
            self.member_ended(at);
        }
    }

    /// Bytes from the client.
    pub fn client_sent(&mut self, at: &mut Desk<'_>, bytes: &[u8]) {
        let Some(connection) = self.ends.attempt.connection else { return };
        self.ends.account.bytes_received += bytes.len() as u64;
        let is_on_stream = self.ends.stream.is_some();
        let is_to_stream = self.ends.attempt.member_stream.is_some();
        let Some((client, member)) = self.tokens(at) else { return };
        if is_to_stream {
            self.send_on_member_stream(at, bytes, End::No);
            if !is_on_stream && self.is_member_behind(at) {
                at.io.pause(client);
            }
        } else if is_on_stream {
            // Its window stays shut while the member does not take it.
            at.io.send(member, &[IoSlice::new(bytes)]);
        } else {
            pass(at.io, client, member, bytes);
        }
        at.count_sent_to_member(connection);
        self.is_alive(at);
    }

    /// Data of the client's stream, and its end.
    pub fn client_data(&mut self, at: &mut Desk<'_>, data: &[u8], end: End<'_>) {
        let Some(stream) = at.world.stream_mut(&self.ends) else { return };
        stream.unreleased += data.len() as u32;
        self.client_sent(at, data);
        if !matches!(end, End::No) {
            self.client_ended(at);
        }
        if !self.is_over() && !self.is_member_behind(at) {
            self.ends.give_window(at);
        }
    }

    /// Bytes from the member.
    pub fn member_sent(&mut self, at: &mut Desk<'_>, bytes: &[u8]) {
        self.ends.attempt.note_first_byte(at.io.clock().now_us());
        let Some((client, member)) = self.tokens(at) else { return };
        if self.ends.stream.is_some() {
            self.ends.deliver(at, bytes, &Pieces::whole(bytes.len()), End::No);
            if self.ends.is_client_behind(at) {
                self.ends.pause_member(at);
            }
        } else {
            self.ends.count_sent(at.world.id, bytes.len());
            if self.ends.attempt.member_stream.is_some() {
                // Its window stays shut while the client does not take it.
                at.io.send(client, &[IoSlice::new(bytes)]);
            } else {
                pass(at.io, member, client, bytes);
            }
        }
        self.is_alive(at);
    }

    /// Data of the member's stream, and its end.
    pub fn member_data(&mut self, at: &mut Desk<'_>, data: &[u8], end: End<'_>) {
        self.member_sent(at, data);
        if !self.ends.is_client_behind(at) {
            self.ends.give_member_window(at);
        }
        if !matches!(end, End::No) {
            self.member_ended(at);
        }
    }

    /// Something has passed, or was taken.
    fn is_alive(&mut self, at: &mut Desk<'_>) {
        let timeout_ms = self.ends.server.tunnel_timeout_ms();
        self.ends.set_client_deadline(at, at.io.now_ms() + timeout_ms);
    }

    /// No byte has come from either end for a while. One that still takes what it was sent is not idle.
    pub fn timer(&mut self, at: &mut Desk<'_>) {
        let timeout_ms = self.ends.server.tunnel_timeout_ms();
        let of_client_ms = self.client_patience_until_ms(at, timeout_ms);
        let until_ms = of_client_ms.max(self.member_patience_until_ms(at, timeout_ms));
        if until_ms > at.io.now_ms() {
            return self.ends.set_client_deadline(at, until_ms);
        }
        let why = match self.origin {
            Origin::Relay => Termination::IdleTimeout,
            Origin::Request => Termination::TunnelTimeout,
        };
        self.truncate(at, why);
    }

    /// Until when the client has time to take more of what it was sent. What it takes of other streams says nothing,
    /// unless this one waits for their turn.
    fn client_patience_until_ms(&self, at: &mut Desk<'_>, timeout_ms: u64) -> u64 {
        let Some(client) = at.world.clients.get(self.ends.client) else { return 0 };
        match (at.world.stream(&self.ends), &client.http2) {
            (Some(stream), Some(http2))
                if stream.out.is_behind()
                    && http2.frames.connection.data_allowance(stream.out.id) == 0 =>
            {
                self.ends.stalled_since_ms(at).map_or(0, |since_ms| since_ms + timeout_ms)
            }
            (Some(stream), _) if !stream.holds_up_member => 0,
            _ => at.io.patience_until_ms(client.token, timeout_ms),
        }
    }

    /// Until when the member has time to take more of what it was sent. What it takes on a connection that others
    /// share says something only of a tunnel that waits for it.
    fn member_patience_until_ms(&self, at: &mut Desk<'_>, timeout_ms: u64) -> u64 {
        let Some(connection) = self.ends.attempt.connection else { return 0 };
        let Some(connection) = at.world.members.get(connection) else { return 0 };
        match (at.world.member_stream(&self.ends), &connection.http2) {
            (Some(stream), Some(http2)) if stream.out.is_behind() => {
                let since_ms = http2.frames.connection.stalled_since_ms(stream.out.id);
                since_ms.map_or(0, |since_ms| since_ms + timeout_ms)
            }
            (Some(stream), _) if !stream.was_backed_up => 0,
            _ => at.io.patience_until_ms(connection.token, timeout_ms),
        }
    }

    /// Whether the member does not take what the client sends as fast as it comes: that is a matter of `tunnel_timeout`.
    pub fn is_member_behind(&self, at: &mut Desk<'_>) -> bool {
        let is_behind = self.ends.is_member_behind(at);
        if is_behind && let Some(stream) = at.world.member_stream_mut(&self.ends) {
            stream.was_backed_up = true;
        }
        is_behind
    }

    /// The client took everything that was queued for it.
    pub fn client_took(&mut self, at: &mut Desk<'_>) {
        // A connection that many streams share says nothing of those that had nothing on it.
        let stream = at.world.stream(&self.ends);
        if stream.is_none_or(|stream| stream.holds_up_member) {
            self.is_alive(at);
        }
        self.ends.resume_member(at);
        if self.has_member_ended {
            self.tell_client_of_end(at);
        }
        self.may_end(at);
    }

    /// The windows of the client may let out more: so many bytes at most. Whether more of it may go.
    pub fn let_out(&mut self, at: &mut Desk<'_>, bytes_max: usize) -> bool {
        let Some(sent) = self.ends.let_out(at, bytes_max) else { return false };
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
    pub fn member_took(&mut self, at: &mut Desk<'_>) {
        self.is_alive(at);
        self.let_client_send(at);
        if self.is_over() {
            return;
        }
        if self.has_client_ended {
            self.tell_member_of_end(at);
        }
        self.may_end(at);
    }

    /// The member takes more: the client may send it.
    fn let_client_send(&mut self, at: &mut Desk<'_>) {
        if self.ends.stream.is_none() {
            return self.ends.let_client_send(at);
        }
        let Some(stream) = at.world.stream_mut(&self.ends) else { return };
        let (held, end) = (std::mem::take(&mut stream.held), std::mem::take(&mut stream.held_end));
        if held.is_empty() && matches!(end, OwnedEnd::No) {
            return self.ends.give_window(at);
        }
        // It is counted anew on its way.
        stream.unreleased -= held.len() as u32;
        self.ends.account.bytes_received -= held.len() as u64;
        self.client_data(at, &held, end.get());
    }

    /// All that its client has sent was looked at, and its end may have come behind that.
    pub fn heed_end(&mut self, at: &mut Desk<'_>) {
        let client = at.world.clients.get(self.ends.client);
        let has_ended = client.is_some_and(|client| client.ended && !client.has_input());
        if has_ended && !self.has_client_ended {
            self.client_ended(at);
        }
    }

    /// The client sends nothing more: the member is told so, once it has taken everything.
    pub fn client_ended(&mut self, at: &mut Desk<'_>) {
        self.has_client_ended = true;
        self.tell_member_of_end(at);
        self.may_end(at);
    }

    /// The client has ended: the member learns it behind what it was sent, of a socket when it has taken that.
    fn tell_member_of_end(&mut self, at: &mut Desk<'_>) {
        if self.ends.attempt.member_stream.is_some() {
            self.send_on_member_stream(at, b"", End::Data);
        } else if let Some((_, member)) = self.tokens(at)
            && at.io.queued(member) == 0
        {
            at.io.shut_write(member);
        }
    }

    /// The member sends nothing more: the client is told so, once it has taken everything.
    pub fn member_ended(&mut self, at: &mut Desk<'_>) {
        self.has_member_ended = true;
        if !self.ends.is_client_behind(at) {
            self.tell_client_of_end(at);
        }
        self.may_end(at);
    }

    /// The client has taken everything: now it learns that nothing follows.
    fn tell_client_of_end(&mut self, at: &mut Desk<'_>) {
        if let Some(stream) = at.world.stream_mut(&self.ends) {
            if !std::mem::replace(&mut stream.is_end_told, true) {
                self.ends.deliver(at, b"", &Pieces::whole(0), End::Data);
            }
        } else if let Some(client) = at.world.clients.get(self.ends.client) {
            at.io.shut_write(client.token);
        }
    }

    /// Sends bytes to the stream of the member, and its end.
    fn send_on_member_stream(&mut self, at: &mut Desk<'_>, data: &[u8], end: End<'_>) {
        let Some(stream) = at.world.member_stream_mut(&self.ends) else { return };
        if stream.is_end_told {
            return;
        }
        stream.is_end_told = !matches!(end, End::No);
        self.ends.send_on_stream(at, data, &Pieces::whole(data.len()), end);
    }

    /// The member resets its stream, whose end it has sent: it does not want what the client may yet send. The client gets
    /// what is under way to it. False: it has not sent the end.
    pub fn member_left(&mut self, at: &mut Desk<'_>) -> bool {
        if !self.has_member_ended {
            return false;
        }
        self.has_client_ended = true;
        self.ends.leave_stream(at);
        self.ends.leave_member(at, None, at.io.now_ms());
        self.may_end(at);
        true
    }

    /// The member connection is of no use any more and has been closed. How a tunnel ends is a matter between its ends: that
    /// is held against nobody.
    pub fn member_lost(&mut self, at: &mut Desk<'_>, reason: MemberFailure) {
        self.ends.attempt.connection = None;
        self.failure = Some(reason);
        self.ends.leave_member(at, None, at.io.now_ms());
        if self.has_member_ended && self.origin == Origin::Request {
            // What the member has said is whole; it hears nothing more.
            self.has_client_ended = true;
            return self.may_end(at);
        }
        self.truncate(at, reason.termination());
    }

    /// Both directions have ended and everything is delivered: so has the tunnel. A stream of the member is left before
    /// that, when it is over: what becomes of its connection does not matter to what the client has yet to take.
    fn may_end(&mut self, at: &mut Desk<'_>) {
        if !self.has_client_ended || !self.has_member_ended || self.is_member_undelivered(at) {
            return;
        }
        if self.ends.is_client_behind(at) {
            if self.ends.attempt.member_stream.is_some() {
                self.ends.leave_stream(at);
                self.ends.leave_member(at, None, at.io.now_ms());
            }
            return;
        }
        let (client, is_on_stream) = (self.ends.client, self.ends.stream.is_some());
        let why = self.failure.map_or(Termination::Complete, MemberFailure::termination);
        self.abandon(at, why);
        if !is_on_stream {
            at.leave(client, true);
        }
    }

    /// Whether the member has yet to take something that it was sent. One that has left takes nothing more.
    fn is_member_undelivered(&self, at: &mut Desk<'_>) -> bool {
        match (self.ends.attempt.connection, at.world.member_stream(&self.ends)) {
            (_, Some(stream)) => stream.out.is_behind(),
            (Some(connection), None) => {
                let connection = at.world.members.get(connection);
                connection.is_some_and(|connection| at.io.queued(connection.token) > 0)
            }
            (None, None) => false,
        }
    }

    /// Ends so that the client notices that something is missing.
    pub fn truncate(&mut self, at: &mut Desk<'_>, termination: Termination) {
        self.drop_member(at);
        let had_connection = self.ends.stream.is_none();
        // An end would make the part look like the whole.
        let is_broken = self.tells_breaks && self.failure.is_some();
        let must_reset = self.origin == Origin::Relay || is_broken;
        // Its stream is reset with it.
        self.end(at, termination);
        if had_connection {
            at.cut_client(self.ends.client, must_reset);
        }
    }

    /// Ends because its client is gone; the client connection is the caller's to close.
    pub fn abandon(&mut self, at: &mut Desk<'_>, termination: Termination) {
        self.drop_member(at);
        self.end(at, termination);
    }

    fn drop_member(&mut self, at: &mut Desk<'_>) {
        if self.origin == Origin::Relay
            && let Some(connection) = self.ends.attempt.connection
            && let Some(token) = at.world.members.get(connection).map(|it| it.token)
            && !(self.has_client_ended && at.io.queued(token) == 0)
        {
            // It would take an end for that of the client.
            at.io.reset_on_close(token);
        }
        self.ends.drop_member(at);
    }

    fn end(&mut self, at: &mut Desk<'_>, termination: Termination) {
        if self.is_over() {
            return;
        }
        let counters = self.ends.server.live.counters.of(at.world.id);
        match self.origin {
            Origin::Relay => count_relay(counters, termination),
            Origin::Request => self.ends.count_request(at),
        }
        self.ends.end(at, &self.pool, termination, StreamEnd::of_tunnel(termination));
        self.ends.over = Some(After::Nothing);
    }

    fn tokens(&self, at: &Desk<'_>) -> Option<(Token, Token)> {
        let client = at.world.clients.get(self.ends.client)?;
        let connection = at.world.members.get(self.ends.attempt.connection?)?;
        Some((client.token, connection.token))
    }
}

/// Sends bytes across; a side that does not take them stops the other from being read.
fn pass(io: &mut EventLoop, from: Token, to: Token, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    io.send(to, &[IoSlice::new(bytes)]);
    if io.queued(to) > 0 {
        io.pause(from);
    }
}
