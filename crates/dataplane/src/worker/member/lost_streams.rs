//! Exchanges that have lost their streams to members. Each is retried elsewhere or ends.

use weir_event_loop::EventLoop;
use weir_exchange::arena::{ConnectionKey, ExchangeKey};
use weir_exchange::parts::failure::{Loss, MemberFailure, Progress};
use weir_exchange::parts::phase::Phase;
use weir_exchange::transaction::Transaction;

use crate::worker::router::Router;
use crate::worker::state::lost_stream::LostStream;

impl Router {
    /// Handles an exchange that got no stream on a connection: it is retried elsewhere, if possible.
    pub fn stream_missed(
        &mut self,
        io: &mut EventLoop,
        key: ExchangeKey,
        connection: Option<ConnectionKey>,
        why: LostStream,
    ) {
        // An exchange may be on the agenda twice, and the first task may have moved it to another connection, or have left it
        // without a member.
        let phase = self.exchanges.get(key).map(|it| &it.ends().phase);
        let attempt = phase.and_then(Phase::attempt);
        if attempt.is_none_or(|it| it.link.map(|link| link.connection) != connection) {
            return;
        }
        match why {
            LostStream::Full => self.with_any(io, key, |it, at| {
                it.stream_lost(at, MemberFailure::Abort, Progress::Unread)
            }),
            LostStream::NoTunnel => self.with(io, key, |it, at| it.refuse_tunnel(at)),
        }
    }

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
        let streams = http2.streams.take_all();
        let is_whole: Vec<bool> = streams.iter().map(|stream| http2.is_whole(stream)).collect();
        let mut lost = Vec::with_capacity(streams.len());
        for (stream, is_whole) in streams.into_iter().zip(is_whole) {
            let ends = self.exchanges.get_mut(stream.exchange).map(Transaction::ends_mut);
            let Some(ends) = ends else { continue };
            ends.phase.take_link();
            lost.push((stream.exchange, stream.is_opened() && !is_connecting, is_whole));
        }
        self.edge(io).close_member(key);
        for (place, (exchange_key, was_opened, is_whole)) in lost.into_iter().enumerate() {
            // A failed connection attempt counts as one failure, however many requests waited for it.
            let is_counted = is_connecting && place > 0;
            let nothing_sent = !was_opened;
            let loss = Loss { nothing_sent, is_counted, is_whole, ..Loss::of(why) };
            self.with_any(io, exchange_key, |it, at| it.member_lost(at, loss));
        }
    }
}
