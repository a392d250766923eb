//! The connections of a worker to members.
//!
//! What concerns one connection, or one stream of it, is decided here and in `member` by the state of the connection. What else the
//! worker has is not reached from here.

use weir_connection::frames::Frames;
use weir_connection::member::streams::MemberStream;
use weir_event_loop::Token;
use weir_exchange::arena::{Arena, ConnectionKey, OfConnection};
use weir_exchange::parts::attempt::Link;
use weir_exchange::parts::transaction_ends::TransactionEnds;

use crate::worker::agenda::{Agenda, Task};
use crate::worker::state::member::MemberConnection;

/// The connections of a worker to members.
#[derive(Default)]
pub struct Members {
    /// All connections.
    pub all: Arena<OfConnection, MemberConnection>,
}

/// A stream of a member connection, with everything needed to send on it.
pub struct StreamOf<'a> {
    pub key: ConnectionKey,
    pub token: Token,
    pub frames: &'a mut Frames,
    pub stream: &'a mut MemberStream,
}

impl Members {
    /// The stream of an exchange on its member connection.
    pub fn stream(&self, ends: &TransactionEnds) -> Option<&MemberStream> {
        let link = ends.phase.link()?;
        let http2 = self.all.get(link.connection)?.http2.as_ref()?;
        http2.streams.get(link.stream?)
    }

    /// The stream of an exchange on its member connection, with everything needed to send on it.
    pub fn stream_mut(&mut self, ends: &TransactionEnds) -> Option<StreamOf<'_>> {
        let Link { connection: key, stream } = ends.phase.link()?;
        let connection = self.all.get_mut(key)?;
        let http2 = connection.http2.as_mut()?;
        let stream = http2.streams.get_mut(stream?)?;
        Some(StreamOf { key, token: connection.token, frames: &mut http2.frames, stream })
    }

    /// Has the frames of a connection sent at the end of the turn.
    pub fn list_for_flush(&mut self, agenda: &mut Agenda, key: ConnectionKey) {
        if let Some(http2) = self.all.get_mut(key).and_then(|it| it.http2.as_mut())
            && !std::mem::replace(&mut http2.is_listed, true)
        {
            agenda.add(Task::FlushMember(key));
        }
    }
}
