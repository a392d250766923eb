//! The streams with exchanges of a client's HTTP/2 connection.

use weir_exchange::arena::{Arena, ArenaMemory, ExchangeKey, OfStream, StreamKey};
use weir_http::h2::Priority;

use crate::backlog::Backlog;
use crate::frames::OutgoingStream;
use crate::wire::Buffers;

/// A stream of a client connection.
#[derive(Default)]
pub struct Stream {
    /// The exchange of the stream; `None`: the memory is stored for reuse.
    pub exchange: Option<ExchangeKey>,
    /// The outgoing response data.
    pub out: OutgoingStream,
    /// The priority set by the client.
    pub priority: Priority,
    /// The deadline of the client; `None`: no deadline.
    pub deadline_ms: Option<u64>,
    /// The size of the request's head and trailers that counts for its connection; see [`ConnectionMemory`](crate::client::memory::ConnectionMemory).
    pub head_bytes: u32,
    /// The number of received request bytes whose window was not returned yet.
    pub unreleased: u32,
    /// Request data that cannot be forwarded yet. Its window was not returned yet.
    pub held: Backlog,
    /// Joined data of small frames from the current read. It follows the held data.
    pub joined: Backlog,
    /// Whether END_STREAM was sent to the client of a tunnel, because the member has ended its sending direction.
    pub is_end_told: bool,
}

impl Stream {
    /// Drops all data that waits.
    pub fn clear(&mut self, buffers: &mut impl Buffers) {
        self.out.clear(buffers);
        self.held.clear(buffers);
        self.joined.clear(buffers);
    }
}

/// Memory for the streams of a client connection. An idle connection has none.
pub type StreamRoom = ArenaMemory<Box<Stream>>;

/// The streams of one client connection with exchanges, in no order.
#[derive(Default)]
pub struct ClientStreams {
    streams: Arena<OfStream, Box<Stream>>,
}

impl ClientStreams {
    /// Whether there are no streams.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Adds a stream.
    pub fn insert(&mut self, stream: Box<Stream>) -> StreamKey {
        self.streams.insert(stream)
    }

    /// The stream with this key.
    pub fn get(&self, key: StreamKey) -> Option<&Stream> {
        self.streams.get(key).map(|stream| &**stream)
    }

    /// The stream with this key.
    pub fn get_mut(&mut self, key: StreamKey) -> Option<&mut Stream> {
        self.streams.get_mut(key).map(|stream| &mut **stream)
    }

    /// Removes the stream with this key.
    pub fn remove(&mut self, key: StreamKey) -> Option<Box<Stream>> {
        self.streams.remove(key)
    }

    /// Releases the memory if there are no streams; see [`Arena::give_room`].
    pub fn give_room(&mut self) -> Option<StreamRoom> {
        self.streams.give_room()
    }

    /// Whether there is memory for streams.
    pub fn has_room(&self) -> bool {
        self.streams.has_room()
    }

    /// Uses this memory for streams.
    pub fn take_room(&mut self, room: StreamRoom) {
        self.streams.take_room(room);
    }

    /// The streams.
    pub fn all(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter().map(|(_, stream)| &**stream)
    }

    /// The stream of an exchange.
    pub fn of_exchange_mut(&mut self, exchange: ExchangeKey) -> Option<&mut Stream> {
        let found = self.streams.values_mut().find(|stream| stream.exchange == Some(exchange));
        found.map(|stream| &mut **stream)
    }

    /// The streams with exchanges.
    pub fn keys(&self) -> Vec<(StreamKey, ExchangeKey)> {
        let keys = self.streams.iter();
        keys.filter_map(|(key, stream)| Some((key, stream.exchange?))).collect()
    }

    /// The exchanges of the streams.
    pub fn exchanges(&self) -> Vec<ExchangeKey> {
        self.streams.iter().filter_map(|(_, stream)| stream.exchange).collect()
    }
}
