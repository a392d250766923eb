//! The client connections of a worker.
//!
//! What concerns one connection, or one stream of it, is decided here and in `client` by the state of the connection. What else the
//! worker has is not reached from here.

use weir_connection::client::http2::Http2;
use weir_connection::client::pending::PendingRequests;
use weir_connection::client::streams::{ClientStreams, Stream, StreamRoom};
use weir_event_loop::EventLoop;
use weir_exchange::arena::{Arena, ClientKey, ExchangeKey, OfClient, StreamKey};
use weir_exchange::parts::caller::Caller;
use weir_exchange::parts::transaction_ends::TransactionEnds;

use crate::worker::agenda::Agenda;
use crate::worker::state::client::Client;
use crate::worker::state::drain_deadlines::DrainDeadlines;
use crate::worker::state::http2_memory::Http2Memory;
use crate::worker::state::stage::Stage;

/// The client connections of a worker.
pub struct Clients {
    /// All connections.
    pub all: Arena<OfClient, Client>,
    /// The deadlines of the process while it drains. Then no connection, not even to a member, is kept for another request.
    pub draining: Option<DrainDeadlines>,
    /// What clients with HTTP/2 make the worker hold.
    pub http2_memory: Http2Memory,
    /// Memory stored for reuse.
    pub spare: SpareStreams,
}

/// Memory of streams and of requests that have not begun, stored for reuse.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "the boxes are used again, not what is in them")]
pub struct SpareStreams {
    streams: Vec<Box<Stream>>,
    rooms: Vec<StreamRoom>,
    pending: Vec<Box<PendingRequests>>,
}

/// Maximum number of streams, and of memory blocks for streams, that are stored for reuse.
const SPARE_STREAMS_MAX: usize = 128;

/// Maximum number of empty lists of requests that are stored for reuse.
const SPARE_PENDING_MAX: usize = 8;

impl SpareStreams {
    /// A stream, with room for it in `streams`.
    fn take_stream(&mut self, streams: &mut ClientStreams) -> Box<Stream> {
        if !streams.has_room()
            && let Some(room) = self.rooms.pop()
        {
            streams.take_room(room);
        }
        self.streams.pop().unwrap_or_default()
    }

    /// Stores a stream for reuse.
    pub fn give_stream(&mut self, mut stream: Box<Stream>) {
        if self.streams.len() < SPARE_STREAMS_MAX {
            *stream = Stream::default();
            self.streams.push(stream);
        }
    }

    /// Stores the room of a connection for reuse, if it has no streams.
    pub fn give_room(&mut self, streams: &mut ClientStreams) {
        if let Some(room) = streams.give_room()
            && room.capacity() <= SPARE_STREAMS_MAX
            && self.rooms.len() < SPARE_STREAMS_MAX
        {
            self.rooms.push(room);
        }
    }

    /// An empty list of requests.
    pub fn take_pending(&mut self) -> Box<PendingRequests> {
        self.pending.pop().unwrap_or_default()
    }

    /// Stores a list of requests for reuse.
    pub fn give_pending(&mut self, mut pending: Box<PendingRequests>) {
        if self.pending.len() < SPARE_PENDING_MAX {
            pending.clear();
            self.pending.push(pending);
        }
    }
}

impl Clients {
    /// No connections. `http2_memory`: the budget for clients with HTTP/2.
    pub fn new(http2_memory: Http2Memory) -> Self {
        let spare = SpareStreams::default();
        Self { all: Arena::default(), draining: None, http2_memory, spare }
    }

    /// Creates a stream for an exchange, from reused memory if possible.
    pub fn take_stream(
        &mut self,
        key: ClientKey,
        id: u32,
        exchange: ExchangeKey,
    ) -> Option<StreamKey> {
        let http2 = self.all.get_mut(key)?.http2.as_mut()?;
        let mut stream = self.spare.take_stream(&mut http2.streams);
        stream.exchange = Some(exchange);
        stream.out.id = id;
        Some(http2.streams.insert(stream))
    }

    /// The state of HTTP/2 of a connection.
    pub fn http2_mut(&mut self, key: ClientKey) -> Option<&mut Http2> {
        self.all.get_mut(key)?.http2.as_deref_mut()
    }

    /// The connection of an exchange that has a stream, with the key of the stream.
    pub fn with_stream_mut(
        &mut self,
        ends: &TransactionEnds,
    ) -> Option<(ClientKey, &mut Client, StreamKey)> {
        let Caller::Client(key, Some(stream)) = ends.caller else { return None };
        Some((key, self.all.get_mut(key)?, stream))
    }

    /// Sends the frames of an HTTP/2 connection at the end of a turn. Returns whether the connection is over instead.
    pub fn flush_at_end_of_turn(
        &mut self,
        (io, agenda): (&mut EventLoop, &mut Agenda),
        key: ClientKey,
    ) -> bool {
        let Some(client) = self.all.get_mut(key) else { return false };
        let Some(http2) = &mut client.http2 else { return false };
        http2.is_listed = false;
        if client.stage != Stage::Streams {
            return false;
        }
        let is_over = http2.is_over();
        if !is_over {
            client.flush((io, agenda), &mut self.http2_memory);
        }
        is_over
    }

    /// The stream of an exchange on its client connection.
    pub fn stream(&self, ends: &TransactionEnds) -> Option<&Stream> {
        let Caller::Client(client, Some(stream)) = ends.caller else { return None };
        self.all.get(client)?.http2.as_ref()?.streams.get(stream)
    }

    /// The stream of an exchange on its client connection, mutable.
    pub fn stream_mut(&mut self, ends: &TransactionEnds) -> Option<&mut Stream> {
        let Caller::Client(client, Some(stream)) = ends.caller else { return None };
        self.all.get_mut(client)?.http2.as_mut()?.streams.get_mut(stream)
    }
}
