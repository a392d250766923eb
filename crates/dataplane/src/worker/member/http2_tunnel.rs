//! WebSockets on streams of members that speak HTTP/2: an extended CONNECT (RFC 8441), whatever the client has asked by.
//!
//! Such a stream is only opened when the member's SETTINGS have said that it takes such; until they are there, the
//! request waits on its connection, which is its own: what its member does not take could use up the window of all.
//! From the member's 2xx on it is a tunnel like any other ([`crate::worker::transaction::tunnel`]).

use weir_event_loop::EventLoop;

use crate::access_log::Termination;
use crate::arena::{ConnectionKey, ExchangeKey};
use crate::reports::Event;
use crate::worker::SOCKET_EVENT_INTERVAL_MS;
use crate::worker::Worker;
use crate::worker::member::lost_streams::LostStream;
use crate::worker::transaction::Transaction;
use crate::worker::transaction::ends::Ends;
use crate::worker::transaction::exchange::{Exchange, Loss, MemberFailure};
use crate::worker::transaction::request::Request;
use crate::worker::world::{Desk, World};

impl Ends {
    /// Whether it has a stream to come that is not opened before its member's SETTINGS are known.
    pub fn awaits_settings(&self, world: &World, request: &Request) -> bool {
        let has_none = world.member_stream(self).is_some_and(|stream| !stream.is_opened());
        has_none && request.websocket.is_some()
    }
}

impl Ends {
    /// Asks a member for a WebSocket, as soon as it is known whether it takes that.
    pub fn ask_for_tunnel(&mut self, at: &mut Desk<'_>, request: &mut Request) {
        let Some(connection) = self.attempt.connection else { return };
        let http2 = at.world.members.get(connection).and_then(|it| it.http2.as_ref());
        match http2.and_then(|http2| http2.takes_tunnels()) {
            // It goes to another connection once, as what a member leaves unread does.
            _ if http2.is_some_and(|http2| !http2.may_open()) => {
                self.lose_stream(at, LostStream::Full);
            }
            // It may only say so when it has been greeted.
            None => at.world.list_member_for_flush(connection),
            Some(true) => self.open_member_stream(at, request, false),
            Some(false) => self.lose_stream(at, LostStream::NoTunnel),
        }
    }
}

impl Worker {
    /// A member has said what it takes: those that have waited for that go on.
    pub fn ask_for_tunnels(&mut self, io: &mut EventLoop, connection: ConnectionKey) {
        let Some(http2) = self.world.members.get(connection).and_then(|it| it.http2.as_ref())
        else {
            return;
        };
        let awaits = |key: &ExchangeKey| {
            self.exchanges
                .get(*key)
                .and_then(Transaction::http)
                .is_some_and(|it| it.ends.awaits_settings(&self.world, &it.request))
        };
        let waiting: Vec<ExchangeKey> =
            http2.streams.exchanges().into_iter().filter(awaits).collect();
        for key in waiting {
            self.with(io, key, |it, at| {
                it.ends.ask_for_tunnel(at, &mut it.request);
                it.ends.clear_member_deadline(at);
                it.request_handed_over(at);
            });
        }
    }
}

impl Exchange {
    /// No SETTINGS in time: the connection is none that can be used, and takes no further request.
    pub fn settings_timed_out(&mut self, at: &mut Desk<'_>) {
        let connection = self.ends.attempt.connection;
        let connection = connection.and_then(|connection| at.world.members.get_mut(connection));
        let http2 = connection.and_then(|connection| connection.http2.as_mut());
        if let Some(http2) = http2 {
            http2.leave();
        }
        // It was none that had gone stale, even if it was there before.
        self.ends.attempt.is_reused = false;
        self.ends.leave_stream(at);
        let reason = MemberFailure::ConnectTimeout;
        let loss = Loss { reason, nothing_sent: true, unsent: Vec::new(), is_counted: false };
        self.member_lost(at, loss);
    }

    /// The member does not take extended CONNECT. That is no failure of it, and others are not tried: members of a
    /// pool are alike, and each try would be taken from the budget for those that fail.
    pub fn refuse_tunnel(&mut self, at: &mut Desk<'_>) {
        let now_ms = at.io.now_ms();
        if let Some(member) = self.ends.account.last_member.as_ref()
            && now_ms >= at.world.tunnel_event_ms
        {
            at.world.tunnel_event_ms = now_ms + SOCKET_EVENT_INTERVAL_MS;
            // A full channel loses the notice; the access log has each request.
            let _ = at.world.events.try_send(Event::MemberTakesNoTunnel {
                pool: member.live.pool.name.clone(),
                member: member.live.label.clone(),
            });
        }
        self.respond(at, 502, Termination::MemberConnect);
    }
}
