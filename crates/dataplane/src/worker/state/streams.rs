//! The state of streams with exchanges, on client and member connections.

use weir_exchange::arena::{
    Arena, ArenaMemory, ExchangeKey, MemberStreamKey, OfMemberStream, OfStream, StreamKey,
};
use weir_http::h2::Priority;

use crate::worker::state::backlog::Backlog;
use crate::worker::state::frames::OutgoingStream;

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
    /// The size of the request's head and trailers that counts for its connection; see [`ConnectionMemory`](crate::worker::state::http2_memory::ConnectionMemory).
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

    /// The exchanges of the streams.
    pub fn exchanges(&self) -> Vec<ExchangeKey> {
        self.streams.iter().filter_map(|(_, stream)| stream.exchange).collect()
    }
}

/// A stream of a member connection.
pub struct MemberStream {
    /// The exchange whose request the stream carries.
    pub exchange: ExchangeKey,
    /// Whether the whole request has arrived.
    pub is_whole: bool,
    /// The outgoing request data. The stream id is 0 until the head is written.
    pub out: OutgoingStream,
    /// The number of received response bytes whose window was not returned yet.
    pub unreleased: u32,
    /// The deadline of the member; `None`: no deadline.
    pub deadline_ms: Option<u64>,
    /// Whether the client is paused until the member has received the request data sent so far.
    pub was_backed_up: bool,
    /// Whether END_STREAM was sent to the member of a tunnel, because the client has ended its sending direction.
    pub is_end_told: bool,
    /// Joined data of small response frames from the current read.
    pub joined: Backlog,
    /// Whether the request waits for the connection's window, and nothing of it was sent.
    pub awaits_window: bool,
}

impl MemberStream {
    /// Creates a stream that is not open yet.
    pub fn new(exchange: ExchangeKey, is_whole: bool) -> Self {
        Self {
            exchange,
            is_whole,
            out: OutgoingStream::default(),
            unreleased: 0,
            deadline_ms: None,
            was_backed_up: false,
            is_end_told: false,
            joined: Backlog::default(),
            awaits_window: false,
        }
    }

    /// Whether the request head was written.
    pub fn is_opened(&self) -> bool {
        self.out.id != 0
    }

    /// Whether request data waits.
    pub fn is_behind(&self) -> bool {
        self.out.is_behind() || self.awaits_window
    }
}

/// The streams of one member connection, in the order in which they were added.
#[derive(Default)]
pub struct MemberStreams {
    streams: Arena<OfMemberStream, MemberStream>,
    order: Vec<MemberStreamKey>,
}

impl MemberStreams {
    /// The number of streams.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are no streams.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Adds a stream.
    pub fn insert(&mut self, stream: MemberStream) -> MemberStreamKey {
        let key = self.streams.insert(stream);
        self.order.push(key);
        key
    }

    /// The stream with this key.
    pub fn get(&self, key: MemberStreamKey) -> Option<&MemberStream> {
        self.streams.get(key)
    }

    /// The stream with this key.
    pub fn get_mut(&mut self, key: MemberStreamKey) -> Option<&mut MemberStream> {
        self.streams.get_mut(key)
    }

    /// Removes the stream with this key.
    pub fn remove(&mut self, key: MemberStreamKey) -> Option<MemberStream> {
        let stream = self.streams.remove(key)?;
        self.order.retain(|other| *other != key);
        Some(stream)
    }

    /// All streams.
    pub fn iter(&self) -> impl Iterator<Item = &MemberStream> {
        self.order.iter().filter_map(|key| self.streams.get(*key))
    }

    /// The exchanges of the streams.
    pub fn exchanges(&self) -> Vec<ExchangeKey> {
        self.iter().map(|stream| stream.exchange).collect()
    }

    /// Removes and returns all streams.
    pub fn take_all(&mut self) -> Vec<MemberStream> {
        let order = std::mem::take(&mut self.order);
        order.into_iter().filter_map(|key| self.streams.remove(key)).collect()
    }
}

/// The exchange in the tag of a stream; `None`: the stream has no exchange yet.
pub fn exchange_of(tag: u64) -> Option<ExchangeKey> {
    ExchangeKey::from_bits(tag)
}
