//! The connections of a worker to members.
//!
//! What concerns one connection, or one stream of it, is decided by the state of the connection. What else the worker has is not
//! reached from here.

use std::collections::BTreeMap;

use weir_connection::frames::Frames;
use weir_connection::member::http2::MemberHttp2;
use weir_connection::member::streams::MemberStream;
use weir_event_loop::Token;
use weir_exchange::arena::{
    Arena, ClientKey, ConnectionKey, ExchangeKey, MemberStreamKey, OfConnection,
};
use weir_exchange::parts::attempt::Link;
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::shared::counters::{Own, WorkerCounters};

use crate::worker::agenda::{Agenda, Task};
use crate::worker::state::bound_connections::BoundConnections;
use crate::worker::state::member::MemberConnection;

/// The connections of a worker to members: which are open, which of them the next request may take, and which belong to a
/// client.
pub struct Members {
    /// All connections.
    pub all: Arena<OfConnection, MemberConnection>,
    /// The idle connections that belong to clients, by their keys.
    pub bound: BTreeMap<u64, BoundConnections>,
    /// The number of workers, which share the places at a member.
    pub workers: usize,
    /// The counters of this worker.
    pub counted: Own<WorkerCounters>,
}

impl Members {
    /// No connections.
    pub fn new(counted: Own<WorkerCounters>, workers: usize) -> Self {
        Self { all: Arena::default(), bound: BTreeMap::new(), workers, counted }
    }

    /// The state of HTTP/2 of a connection.
    pub fn http2_mut(&mut self, key: ConnectionKey) -> Option<&mut MemberHttp2> {
        self.all.get_mut(key)?.http2.as_deref_mut()
    }

    /// The exchanges with streams on a connection.
    pub fn exchanges_of(&self, key: ConnectionKey) -> Vec<ExchangeKey> {
        self.all.get(key).map(MemberConnection::exchanges).unwrap_or_default()
    }

    /// The connection of a transaction, with its stream.
    #[inline]
    pub fn end_of(&mut self, ends: &TransactionEnds) -> Option<MemberEnd<'_>> {
        let Link { connection: key, stream } = ends.phase.link()?;
        let connection = self.all.get_mut(key)?;
        Some(MemberEnd { key, stream, connection })
    }

    /// The stream of an exchange on its member connection, with everything needed to send on it.
    pub fn stream_mut(&mut self, ends: &TransactionEnds) -> Option<StreamOf<'_>> {
        self.end_of(ends)?.into_stream()
    }

    /// Whether idle connections belong to a client.
    #[inline]
    pub fn has_bound(&self, client: ClientKey) -> bool {
        !self.bound.is_empty() && self.bound.contains_key(&client.to_bits())
    }
}

/// The end of a transaction at its member: with HTTP/1 the connection, with HTTP/2 a stream of it.
pub struct MemberEnd<'a> {
    pub key: ConnectionKey,
    /// The stream; `None`: the connection carries no other transaction.
    pub stream: Option<MemberStreamKey>,
    pub connection: &'a mut MemberConnection,
}

/// A stream of a member connection, with everything needed to send on it.
pub struct StreamOf<'a> {
    pub token: Token,
    pub frames: &'a mut Frames,
    pub stream: &'a mut MemberStream,
}

impl<'a> MemberEnd<'a> {
    /// The stream.
    pub fn stream(&self) -> Option<&MemberStream> {
        self.connection.http2.as_ref()?.streams.get(self.stream?)
    }

    /// The stream, with everything needed to send on it.
    pub fn stream_mut(&mut self) -> Option<StreamOf<'_>> {
        let Self { key, stream, ref mut connection } = *self;
        MemberEnd { key, stream, connection }.into_stream()
    }

    fn into_stream(self) -> Option<StreamOf<'a>> {
        let Self { stream, connection, .. } = self;
        let http2 = connection.http2.as_mut()?;
        let stream = http2.streams.get_mut(stream?)?;
        Some(StreamOf { token: connection.token, frames: &mut http2.frames, stream })
    }

    /// Has the frames of the connection sent at the end of the turn.
    pub fn list_for_flush(&mut self, agenda: &mut Agenda) {
        let http2 = self.connection.http2.as_mut();
        if http2.is_some_and(|http2| http2.must_be_listed()) {
            agenda.add(Task::FlushMember(self.key));
        }
    }
}
