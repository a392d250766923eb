//! Exchanges whose streams at members came to nothing: each goes on elsewhere, or ends by itself.

use weir_event_loop::EventLoop;

use crate::access_log::Termination;
use crate::arena::ConnectionKey;
use crate::worker::Worker;
use crate::worker::transaction::Transaction;
use crate::worker::transaction::ends::Ends;
use crate::worker::transaction::exchange::{Exchange, Loss, MemberFailure};
use crate::worker::world::Desk;

/// Why an exchange has no stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostStream {
    /// The member takes no more of them on its connection.
    Full,
    /// The member takes no extended CONNECT.
    NoTunnel,
    /// The request cannot be sent at all.
    Unsendable,
}

impl Ends {
    /// At the end of the turn an exchange is taken to have lost its stream, unless it is on another connection by then.
    pub fn lose_stream(&mut self, at: &mut Desk<'_>, why: LostStream) {
        at.world.lost_streams.push((self.key, self.attempt.connection, why));
    }
}

impl Worker {
    /// Exchanges whose streams could not be opened go on elsewhere, where that is of use.
    pub fn fail_lost_streams(&mut self, io: &mut EventLoop) {
        if self.world.lost_streams.is_empty() {
            return;
        }
        for (key, connection, why) in std::mem::take(&mut self.world.lost_streams) {
            // It may stand there twice, and have gone elsewhere with the first.
            let ends = self.exchanges.get(key).map(Transaction::ends);
            if ends.is_none_or(|ends| ends.attempt.connection != connection) {
                continue;
            }
            match why {
                LostStream::Full => {
                    self.with_any(io, key, |it, at| it.stream_lost(at, MemberFailure::Abort, true))
                }
                LostStream::NoTunnel => self.with(io, key, |it, at| it.refuse_tunnel(at)),
                LostStream::Unsendable => {
                    self.with(io, key, |it, at| it.respond(at, 500, Termination::PolicyFailed))
                }
            }
        }
    }
}

impl Exchange {
    /// The stream of an exchange is of no use any more; the exchange goes on elsewhere or ends. What the member has
    /// not read, it has not failed: once such a request goes to another connection as if its own had been stale.
    pub fn stream_lost(&mut self, at: &mut Desk<'_>, why: MemberFailure, is_unread: bool) {
        if is_unread {
            self.ends.attempt.is_reused = !std::mem::replace(&mut self.ends.tries.was_unread, true);
        }
        let was_opened = self.ends.leave_stream(at);
        let nothing_sent = is_unread || !was_opened;
        let loss = Loss { reason: why, nothing_sent, unsent: Vec::new(), is_counted: false };
        self.member_lost(at, loss);
    }
}

impl Worker {
    /// A connection broke: each exchange on it goes on elsewhere or ends.
    pub fn member_http2_lost(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        why: MemberFailure,
    ) {
        let Some(connection) = self.world.members.get_mut(key) else { return };
        let is_connecting = connection.connecting;
        let streams = connection.http2.as_mut().map(|http2| http2.streams.take_all());
        let streams = streams.unwrap_or_default();
        let mut lost = Vec::with_capacity(streams.len());
        for stream in streams {
            let ends = self.exchanges.get_mut(stream.exchange).map(Transaction::ends_mut);
            let Some(ends) = ends else { continue };
            (ends.attempt.connection, ends.attempt.member_stream) = (None, None);
            lost.push((stream.exchange, stream.is_opened() && !is_connecting));
        }
        self.desk(io).close_member(key);
        for (place, (exchange_key, was_opened)) in lost.into_iter().enumerate() {
            // One connect has failed, however many have waited for it.
            let is_counted = is_connecting && place > 0;
            let loss =
                Loss { reason: why, nothing_sent: !was_opened, unsent: Vec::new(), is_counted };
            self.with_any(io, exchange_key, |it, at| it.member_lost(at, loss));
        }
    }
}
