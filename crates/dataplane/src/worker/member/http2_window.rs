//! The send window of a connection to a member, shared by all requests with a body on the connection.
//!
//! If a member does not read the whole body of a request, for example after an early response, the window may stay
//! exhausted. The connection is then useless for bodies. Therefore a request with a body waits with its head while the
//! window is exhausted. It continues when the window opens, or moves to another connection after a while.

use weir_connection::member::http2::SHUT_MS_MAX;
use weir_event_loop::EventLoop;
use weir_exchange::arena::{ConnectionKey, ExchangeKey};
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::transaction::Transaction;

use crate::worker::router::Router;
use crate::worker::state::members::{Members, StreamOf};

impl Members {
    /// Updates the state of the window after data was sent or the window has opened.
    pub fn note_window(&mut self, key: ConnectionKey, now_ms: u64) {
        let Some(connection) = self.all.get_mut(key) else { return };
        // Before the connection is open, the member cannot open the window.
        if let Some(http2) = connection.http2.as_mut().filter(|_| !connection.connecting) {
            let is_shut = http2.frames.connection.is_send_window_shut();
            let since_ms = http2.shut_since_ms.unwrap_or(now_ms);
            http2.shut_since_ms = is_shut.then_some(since_ms);
        }
    }

    /// Sets the timer of a connection whose window is exhausted, if requests wait for the window.
    pub fn watch_exhausted_window(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        self.note_window(key, io.now_ms());
        let http2 = self.all.get(key).and_then(|it| it.http2.as_ref());
        if let Some(http2) = http2
            && let Some(since_ms) = http2.shut_since_ms
            && http2.streams.iter().any(|stream| stream.awaits_window)
        {
            let at_ms = match http2.takes_body(io.now_ms()) {
                true => since_ms + SHUT_MS_MAX,
                false => io.now_ms(),
            };
            self.arm(io, key, at_ms);
        }
    }

    pub fn awaiting_window(&self, key: ConnectionKey) -> Vec<ExchangeKey> {
        let http2 = self.all.get(key).and_then(|it| it.http2.as_ref());
        let streams = http2.into_iter().flat_map(|http2| http2.streams.iter());
        streams.filter(|stream| stream.awaits_window).map(|stream| stream.exchange).collect()
    }

    /// Whether a request with a body, of which nothing was sent, must wait for the window of its connection.
    pub fn wait_for_window(&mut self, io: &mut EventLoop, ends: &mut TransactionEnds) -> bool {
        let Some(connection) = ends.phase.connection() else { return false };
        let http2 = self.all.get(connection).and_then(|it| it.http2.as_ref());
        let is_shut = http2.is_some_and(|http2| http2.frames.connection.is_send_window_shut());
        let Some(StreamOf { stream, .. }) = self.stream_mut(ends) else {
            return false;
        };
        stream.awaits_window = is_shut;
        if is_shut {
            self.watch_exhausted_window(io, connection);
        }
        is_shut
    }
}

impl Router {
    /// Sends requests that wait for the window, if it has opened. They precede further data of the requests that exhausted
    /// it.
    pub fn window_opened(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        self.world.members.note_window(key, io.now_ms());
        let http2 = self.world.members.all.get(key).and_then(|it| it.http2.as_ref());
        if http2.is_none_or(|http2| http2.frames.connection.is_send_window_shut()) {
            return;
        }
        for exchange in self.world.members.awaiting_window(key) {
            self.with(io, exchange, |it, at| it.resend(at, &[]));
        }
    }

    /// Moves requests that wait for a window that stays exhausted to another connection to the same member.
    pub fn move_off_exhausted_window(&mut self, io: &mut EventLoop, key: ConnectionKey) {
        let http2 = self.world.members.all.get(key).and_then(|it| it.http2.as_ref());
        if http2.is_none_or(|http2| http2.takes_body(io.now_ms())) {
            return self.world.members.watch_exhausted_window(io, key);
        }
        for exchange_key in self.world.members.awaiting_window(key) {
            let Some(exchange) =
                self.exchanges.get_mut(exchange_key).and_then(Transaction::http_mut)
            else {
                continue;
            };
            let Some(member) = exchange.ends.phase.member() else { continue };
            if !self.with(io, exchange_key, |it, at| {
                at.move_to_another(&mut it.ends, &mut it.request, member)
            }) {
                continue;
            }
            self.with(io, exchange_key, |it, at| it.resend(at, &[]));
        }
    }
}
