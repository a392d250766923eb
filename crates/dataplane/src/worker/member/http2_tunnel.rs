//! WebSockets on streams of HTTP/2 members, opened by extended CONNECT (RFC 8441) for any form of the client's
//! handshake.
//!
//! Such a stream is opened only after the member's SETTINGS have announced support. Until then, the request waits on
//! its own connection: data that its member does not take could use up a shared window. From the member's 2xx on it is
//! a tunnel like any other ([`weir_exchange::transaction::tunnel`]).

use weir_event_loop::EventLoop;
use weir_exchange::arena::{ConnectionKey, ExchangeKey};
use weir_exchange::parts::ends::Ends;
use weir_exchange::parts::request::Request;
use weir_exchange::transaction::Transaction;

use crate::worker::Worker;
use crate::worker::desk::Desk;
use crate::worker::state::lost_stream::LostStream;
use crate::worker::world::World;

impl World {
    /// Whether it has a stream to come that is not opened before its member's SETTINGS are known.
    pub fn awaits_settings(&self, ends: &Ends, request: &Request) -> bool {
        let has_none = self.member_stream(ends).is_some_and(|stream| !stream.is_opened());
        has_none && request.websocket.is_some()
    }
}

impl Desk<'_> {
    /// Asks a member for a WebSocket, as soon as it is known whether it takes that.
    pub fn ask_for_tunnel(&mut self, ends: &mut Ends, request: &mut Request) {
        let Some(connection) = ends.attempt.connection else { return };
        let http2 = self.world.members.get(connection).and_then(|it| it.http2.as_ref());
        match http2.and_then(|http2| http2.takes_tunnels()) {
            // It goes to another connection once, like a request that a member left unread.
            _ if http2.is_some_and(|http2| !http2.may_open()) => {
                self.lose_stream(ends, LostStream::Full);
            }
            // It may only say so when it has been greeted.
            None => self.world.list_member_for_flush(connection),
            Some(true) => self.open_member_stream(ends, request, false),
            Some(false) => self.lose_stream(ends, LostStream::NoTunnel),
        }
    }
}

impl Worker {
    /// A member has announced its settings: waiting requests continue.
    pub fn ask_for_tunnels(&mut self, io: &mut EventLoop, connection: ConnectionKey) {
        let Some(http2) = self.world.members.get(connection).and_then(|it| it.http2.as_ref())
        else {
            return;
        };
        let awaits = |key: &ExchangeKey| {
            self.exchanges
                .get(*key)
                .and_then(Transaction::http)
                .is_some_and(|it| self.world.awaits_settings(&it.ends, &it.request))
        };
        let waiting: Vec<ExchangeKey> =
            http2.streams.exchanges().into_iter().filter(awaits).collect();
        for key in waiting {
            self.with(io, key, |it, at| {
                at.ask_for_tunnel(&mut it.ends, &mut it.request);
                it.ends.clear_member_deadline(at);
                it.request_handed_over(at);
            });
        }
    }
}
