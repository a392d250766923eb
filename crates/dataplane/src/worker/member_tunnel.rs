//! WebSockets on streams of members that speak HTTP/2: an extended CONNECT (RFC 8441), whatever the client has asked by.
//!
//! Such a stream is only opened when the member's SETTINGS have said that it takes such; until they are there, the
//! request waits on its connection, which is its own: what its member does not take could use up the window of all.
//! From the member's 2xx on it is a tunnel like any other ([`super::tunnel`]).

use weir_event_loop::EventLoop;
use weir_http::message::ResponseHead;

use super::Worker;
use super::body::Pieces;
use super::end::End;
use super::exchange::{Exchange, Loss, MemberFailure, Phase};
use super::lost_streams::LostStream;
use super::world::World;
use super::{SOCKET_EVENT_INTERVAL_MS, websocket};
use crate::access_log::Termination;
use crate::arena::{ConnectionKey, ExchangeKey};
use crate::reports::Event;

impl Exchange {
    /// Whether it has a stream to come that is not opened before its member's SETTINGS are known.
    pub fn awaits_settings(&self, world: &World) -> bool {
        let has_none = world.member_stream(self).is_some_and(|stream| !stream.is_opened());
        has_none && self.websocket.is_some() && self.phase == Phase::AwaitHead
    }

    /// Whether its member has broken off a tunnel that was a stream, which such members tell from an end.
    pub fn is_broken_tunnel(&self) -> bool {
        let is_to_stream = self.websocket.is_some() && self.pool.settings().http2;
        self.phase == Phase::Tunnel && self.failure.is_some() && is_to_stream
    }

    /// The protocol that its stream asks for, if that becomes a tunnel.
    pub fn tunnel_protocol(&self) -> Option<&'static [u8]> {
        self.websocket.map(|_| websocket::PROTOCOL)
    }
}

impl Worker {
    /// Asks a member for a WebSocket, as soon as it is known whether it takes that.
    pub fn ask_for_tunnel(&mut self, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get(key) else { return };
        let Some(connection) = exchange.connection else { return };
        let http2 = self.world.members.get(connection).and_then(|it| it.http2.as_ref());
        match http2.and_then(|http2| http2.takes_tunnels()) {
            // It goes to another connection once, as what a member leaves unread does.
            _ if http2.is_some_and(|http2| !http2.may_open()) => {
                self.lose_stream(key, LostStream::Full);
            }
            // It may only say so when it has been greeted.
            None => self.world.list_member_for_flush(connection),
            Some(true) => self.open_member_stream(key, false),
            Some(false) => self.lose_stream(key, LostStream::NoTunnel),
        }
    }

    /// A member has said what it takes: those that have waited for that go on.
    pub fn ask_for_tunnels(&mut self, io: &mut EventLoop, connection: ConnectionKey) {
        let Some(http2) = self.world.members.get(connection).and_then(|it| it.http2.as_ref())
        else {
            return;
        };
        let awaits = |key: &ExchangeKey| {
            self.exchanges.get(*key).is_some_and(|exchange| exchange.awaits_settings(&self.world))
        };
        let waiting: Vec<ExchangeKey> =
            http2.streams.exchanges().into_iter().filter(awaits).collect();
        for key in waiting {
            self.ask_for_tunnel(key);
            self.clear_member_deadline(io, key);
            self.request_handed_over(io, key);
        }
    }

    /// No SETTINGS in time: the connection is none that can be used, and takes no further request.
    pub fn settings_timed_out(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get(key) else { return };
        let connection = exchange.connection;
        let connection = connection.and_then(|connection| self.world.members.get_mut(connection));
        let http2 = connection.and_then(|connection| connection.http2.as_mut());
        if let Some(http2) = http2 {
            http2.leave();
        }
        // It was none that had gone stale, even if it was there before.
        if let Some(exchange) = self.exchanges.get_mut(key) {
            exchange.reused_connection = false;
        }
        self.leave_stream(io, key);
        let reason = MemberFailure::ConnectTimeout;
        let loss = Loss { reason, nothing_sent: true, unsent: Vec::new(), is_counted: false };
        self.member_lost(io, key, loss);
    }

    /// The member does not take extended CONNECT. That is no failure of it, and others are not tried: members of a
    /// pool are alike, and each try would be taken from the budget for those that fail.
    pub fn refuse_tunnel(&mut self, io: &mut EventLoop, key: ExchangeKey) {
        let now_ms = io.now_ms();
        if let Some(member) = self.exchanges.get(key).and_then(|it| it.last_member.as_ref())
            && now_ms >= self.world.tunnel_event_ms
        {
            self.world.tunnel_event_ms = now_ms + SOCKET_EVENT_INTERVAL_MS;
            // A full channel loses the notice; the access log has each request.
            let _ = self.world.events.try_send(Event::MemberTakesNoTunnel {
                pool: member.live.pool.name.clone(),
                member: member.live.label.clone(),
            });
        }
        self.respond(io, key, 502, Termination::MemberConnect);
    }

    /// The member has agreed, on this stream of this connection.
    pub fn begin_tunnel_on_stream(
        &mut self,
        io: &mut EventLoop,
        (connection, key, stream): (ConnectionKey, ExchangeKey, u32),
        (head, input): (&ResponseHead, &[u8]),
        is_end: bool,
    ) {
        self.begin_tunnel(io, key, head, input);
        if is_end && self.exchange_on(connection, stream, key.to_bits()).is_some() {
            self.tunnel_member_ended(io, key);
        }
    }

    /// Bytes of a tunnel from the member, and its end.
    pub fn tunnel_data(&mut self, io: &mut EventLoop, key: ExchangeKey, data: &[u8], is_end: bool) {
        self.tunnel_from_member(io, key, data);
        if !self.is_client_behind(io, key) {
            self.give_member_window(key);
        }
        if is_end {
            self.tunnel_member_ended(io, key);
        }
    }

    /// Sends bytes of a tunnel to the member, and its end.
    pub fn tunnel_to_stream(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        data: &[u8],
        end: End<'_>,
    ) {
        let Some(exchange) = self.exchanges.get_mut(key) else { return };
        let Some(stream) = self.world.member_stream_mut(exchange) else { return };
        let is_last = !matches!(end, End::No);
        if stream.is_end_told {
            return;
        }
        stream.is_end_told = is_last;
        self.send_on_stream(io, key, data, &Pieces::whole(data.len()), end);
    }

    /// The member resets the stream of a tunnel, whose end it has sent: it does not want what the client may yet send.
    /// The client gets what is under way to it. False: it is not so.
    pub fn tunnel_member_left(&mut self, io: &mut EventLoop, key: ExchangeKey) -> bool {
        let Some(exchange) = self.exchanges.get_mut(key) else { return false };
        if exchange.phase != Phase::Tunnel || !exchange.member_ended {
            return false;
        }
        exchange.client_ended = true;
        self.leave_stream(io, key);
        self.leave_member(key, None, io.now_ms());
        self.tunnel_may_end(io, key);
        true
    }
}
