//! WebSockets on streams of HTTP/2 members, opened by extended CONNECT (RFC 8441), whichever HTTP version the client uses.
//!
//! The stream is opened only after the member's SETTINGS have announced support. Until then, the request waits on its own
//! connection, because data that a member does not read could exhaust a shared window. After the member's 2xx, the stream is
//! a tunnel like any other ([`weir_exchange::transaction::tunnel`]).

use weir_event_loop::EventLoop;
use weir_exchange::arena::{ConnectionKey, ExchangeKey};
use weir_exchange::parts::request::Request;
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::transaction::Transaction;

use crate::worker::agenda::{Agenda, Task};
use crate::worker::router::Router;
use crate::worker::state::lost_stream::LostStream;
use crate::worker::state::members::Members;

impl Members {
    /// Whether the exchange waits for the member's SETTINGS before it opens the stream of a WebSocket.
    pub fn awaits_settings(&self, ends: &TransactionEnds, request: &Request) -> bool {
        let has_none = self.stream(ends).is_some_and(|stream| !stream.is_opened());
        has_none && request.websocket.is_some()
    }

    /// Opens the stream of a WebSocket, if the member supports extended CONNECT. Before the SETTINGS have arrived, the
    /// request waits.
    pub fn ask_for_tunnel(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        ends: &mut TransactionEnds,
        request: &mut Request,
    ) {
        let Some(connection) = ends.phase.connection() else { return };
        let http2 = self.all.get(connection).and_then(|it| it.http2.as_ref());
        match http2.and_then(|http2| http2.takes_tunnels()) {
            // The request moves to another connection at most once, like a request that the member has not processed.
            _ if http2.is_some_and(|http2| !http2.may_open()) => {
                agenda.add(Task::lose_stream(ends, LostStream::Full));
            }
            // A member may send its SETTINGS only after it has received the connection preface.
            None => self.list_for_flush(agenda, connection),
            Some(true) => self.open_stream((io, agenda), ends, request, false),
            Some(false) => agenda.add(Task::lose_stream(ends, LostStream::NoTunnel)),
        }
    }
}

impl Router {
    /// Handles the member's SETTINGS: requests that wait for them continue.
    pub fn ask_for_tunnels(&mut self, io: &mut EventLoop, connection: ConnectionKey) {
        let Some(http2) = self.world.members.all.get(connection).and_then(|it| it.http2.as_ref())
        else {
            return;
        };
        let awaits = |key: &ExchangeKey| {
            self.exchanges
                .get(*key)
                .and_then(Transaction::http)
                .is_some_and(|it| self.world.members.awaits_settings(&it.ends, &it.request))
        };
        let waiting: Vec<ExchangeKey> =
            http2.streams.exchanges().into_iter().filter(awaits).collect();
        for key in waiting {
            self.with(io, key, |it, at| {
                at.world.members.ask_for_tunnel(
                    (at.io, &mut at.world.agenda),
                    &mut it.ends,
                    &mut it.request,
                );
                it.ends.clear_member_deadline(at);
                it.patience.request_handed_over(at, &mut it.ends, &it.request);
            });
        }
    }
}
