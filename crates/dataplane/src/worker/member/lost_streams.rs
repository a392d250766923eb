//! Exchanges that have lost their streams to members. Each is retried elsewhere or ends.

use weir_connection::member::http2::LostStream;
use weir_event_loop::EventLoop;
use weir_exchange::arena::ConnectionKey;
use weir_exchange::parts::failure::{Loss, MemberFailure};
use weir_exchange::transaction::Transaction;

use crate::worker::router::Router;

impl Router {
    /// Handles a lost connection: each exchange on it is retried elsewhere or ends.
    pub fn member_http2_lost(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        why: MemberFailure,
    ) {
        let Some(connection) = self.world.members.all.get_mut(key) else { return };
        let is_connecting = connection.connecting;
        let Some(http2) = &mut connection.http2 else { return };
        let streams = http2.lose_all();
        let mut lost = Vec::with_capacity(streams.len());
        for LostStream { exchange, was_opened, is_whole } in streams {
            let ends = self.exchanges.get_mut(exchange).map(Transaction::ends_mut);
            let Some(ends) = ends else { continue };
            ends.phase.take_link();
            lost.push((exchange, was_opened && !is_connecting, is_whole));
        }
        self.world.members.close(io, key);
        for (place, (exchange_key, was_opened, is_whole)) in lost.into_iter().enumerate() {
            // A failed connection attempt counts as one failure, however many requests waited for it.
            let is_counted = is_connecting && place > 0;
            let nothing_sent = !was_opened;
            let loss = Loss { nothing_sent, is_counted, is_whole, ..Loss::of(why) };
            self.with_any(io, exchange_key, |it, at| it.member_lost(at, loss));
        }
    }
}
