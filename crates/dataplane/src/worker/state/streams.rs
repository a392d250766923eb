//! State of an exchange on a connection that it shares with others, on either side.

use weir_exchange::arena::{
    Arena, ExchangeKey, MemberStreamKey, OfMemberStream, OfStream, Room, StreamKey,
};
use weir_http::h2::Priority;

use crate::worker::state::backlog::Backlog;
use crate::worker::state::frames::Outgoing;

/// The stream of its client's connection.
#[derive(Default)]
pub struct Stream {
    /// The exchange that it is of; `None`: it is kept to be used again.
    pub exchange: Option<ExchangeKey>,
    /// The response on its way.
    pub out: Outgoing,
    /// The priority that the client has set.
    pub priority: Priority,
    /// When its client must have done something; `None`: it need not.
    pub deadline_ms: Option<u64>,
    /// Bytes of the request whose window is not given back yet.
    pub unreleased: u32,
    /// Bytes of the request that wait for a member; their window was not returned yet.
    pub held: Backlog,
    /// Data of small frames of the current read; behind the held data.
    pub joined: Backlog,
    /// The client of a tunnel knows that its member sends nothing more.
    pub is_end_told: bool,
}

/// Memory for the streams of a client connection. An idle connection has no memory for streams.
pub type StreamRoom = Room<Box<Stream>>;

/// The streams of one client connection that have exchanges, in no order.
#[derive(Default)]
pub struct ClientStreams {
    streams: Arena<OfStream, Box<Stream>>,
}

impl ClientStreams {
    /// Whether there are no streams.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// A further one.
    pub fn insert(&mut self, stream: Box<Stream>) -> StreamKey {
        self.streams.insert(stream)
    }

    /// The stream of the key.
    pub fn get(&self, key: StreamKey) -> Option<&Stream> {
        self.streams.get(key).map(|stream| &**stream)
    }

    /// The stream of the key.
    pub fn get_mut(&mut self, key: StreamKey) -> Option<&mut Stream> {
        self.streams.get_mut(key).map(|stream| &mut **stream)
    }

    /// Removes the stream of the key.
    pub fn remove(&mut self, key: StreamKey) -> Option<Box<Stream>> {
        self.streams.remove(key)
    }

    /// Memory for streams; see [`Arena::give_room`].
    pub fn give_room(&mut self) -> Option<StreamRoom> {
        self.streams.give_room()
    }

    /// Whether it has memory for streams.
    pub fn has_room(&self) -> bool {
        self.streams.has_room()
    }

    /// Takes memory for streams.
    pub fn take_room(&mut self, room: StreamRoom) {
        self.streams.take_room(room);
    }

    /// Their exchanges.
    pub fn exchanges(&self) -> Vec<ExchangeKey> {
        self.streams.iter().filter_map(|(_, stream)| stream.exchange).collect()
    }
}

/// The stream of its member's connection.
pub struct MemberStream {
    /// The exchange of the request that it carries.
    pub exchange: ExchangeKey,
    /// All of the request has come.
    pub is_whole: bool,
    /// The request on its way; its stream is 0 until the head is written.
    pub out: Outgoing,
    /// Bytes of the response whose window is not given back yet.
    pub unreleased: u32,
    /// When the member must have done something.
    pub deadline_ms: Option<u64>,
    /// The client is paused until the member takes the request so far.
    pub was_backed_up: bool,
    /// The member of a tunnel knows that its client sends nothing more.
    pub is_end_told: bool,
    /// Bytes of the response that came in small frames of the read that is under way.
    pub joined: Backlog,
    /// The request waits for the window of the connection, and nothing of it has been sent.
    pub awaits_window: bool,
}

impl MemberStream {
    /// One that is not open yet.
    pub fn new(exchange: ExchangeKey, is_whole: bool) -> Self {
        Self {
            exchange,
            is_whole,
            out: Outgoing::default(),
            unreleased: 0,
            deadline_ms: None,
            was_backed_up: false,
            is_end_told: false,
            joined: Backlog::default(),
            awaits_window: false,
        }
    }

    /// Whether its head is out.
    pub fn is_opened(&self) -> bool {
        self.out.id != 0
    }

    /// Whether something of the request waits.
    pub fn is_behind(&self) -> bool {
        self.out.is_behind() || self.awaits_window
    }
}

/// The streams of one member connection, in the order in which they came.
#[derive(Default)]
pub struct MemberStreams {
    streams: Arena<OfMemberStream, MemberStream>,
    order: Vec<MemberStreamKey>,
}

impl MemberStreams {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are no streams.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// A further one.
    pub fn insert(&mut self, stream: MemberStream) -> MemberStreamKey {
        let key = self.streams.insert(stream);
        self.order.push(key);
        key
    }

    /// The stream of the key.
    pub fn get(&self, key: MemberStreamKey) -> Option<&MemberStream> {
        self.streams.get(key)
    }

    /// The stream of the key.
    pub fn get_mut(&mut self, key: MemberStreamKey) -> Option<&mut MemberStream> {
        self.streams.get_mut(key)
    }

    /// Removes the stream of the key.
    pub fn remove(&mut self, key: MemberStreamKey) -> Option<MemberStream> {
        let stream = self.streams.remove(key)?;
        self.order.retain(|other| *other != key);
        Some(stream)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &MemberStream> {
        self.order.iter().filter_map(|key| self.streams.get(*key))
    }

    /// The exchanges of the streams.
    pub fn exchanges(&self) -> Vec<ExchangeKey> {
        self.iter().map(|stream| stream.exchange).collect()
    }

    /// Takes all of them out.
    pub fn take_all(&mut self) -> Vec<MemberStream> {
        let order = std::mem::take(&mut self.order);
        order.into_iter().filter_map(|key| self.streams.remove(key)).collect()
    }
}

/// The exchange that a stream's tag names; a stream is without one only until its head is read.
pub fn exchange_of(tag: u64) -> Option<ExchangeKey> {
    ExchangeKey::from_bits(tag)
}
