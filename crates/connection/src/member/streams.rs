//! The streams with exchanges of an HTTP/2 connection to a member.

use weir_exchange::arena::{Arena, ExchangeKey, MemberStreamKey, OfMemberStream};

use crate::backlog::Backlog;
use crate::frames::OutgoingStream;

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
