//! One direction of a connection.

/// A queue of bytes.
#[derive(Debug, Default)]
pub struct Bytes {
    bytes: Vec<u8>,
    start: usize,
}

impl Bytes {
    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 && self.start == self.bytes.len() {
            self.clear();
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Removes this many bytes from the front.
    pub fn take(&mut self, count: usize) {
        self.start += count;
        if self.start > 64 * 1024 || self.start == self.bytes.len() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }

    /// Keeps only this many bytes at the front.
    pub fn truncate(&mut self, count: usize) {
        self.bytes.truncate(self.start + count);
    }

    /// Removes all bytes.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
    }
}

/// The state of the end of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectionEnd {
    /// The direction is open.
    None,
    /// FIN is in flight after the bytes.
    Fin,
    /// FIN has arrived.
    FinArrived,
    /// A reset is in flight.
    Reset,
    /// A reset has arrived.
    ResetArrived,
}

/// One direction of a connection.
#[derive(Debug)]
pub struct Pipe {
    /// Bytes that were sent and not acknowledged.
    pub flight: Bytes,
    /// Bytes that arrived and were not received.
    pub arrived: Bytes,
    /// The state of its end.
    pub ending: DirectionEnd,
    /// Whether FIN has arrived, even if a reset followed.
    pub had_fin: bool,
    /// Maximum number of arrived bytes.
    pub window: usize,
    /// Maximum number of bytes in flight.
    pub room: usize,
    /// Whether the receiver permits no more sends.
    pub takes_nothing: bool,
    /// Whether the direction is in the list of those whose data may travel.
    pub is_moving: bool,
}

impl Pipe {
    /// An empty direction, with its window and room.
    pub fn new((window, room): (usize, usize)) -> Self {
        Self {
            flight: Bytes::default(),
            arrived: Bytes::default(),
            ending: DirectionEnd::None,
            had_fin: false,
            window,
            room,
            takes_nothing: false,
            is_moving: false,
        }
    }

    /// The number of bytes that can be sent.
    pub fn free(&self) -> usize {
        if self.takes_nothing { 0 } else { self.room.saturating_sub(self.flight.len()) }
    }

    /// The number of bytes in flight for which the receiver has room.
    pub fn fitting(&self) -> usize {
        self.window.saturating_sub(self.arrived.len()).min(self.flight.len())
    }

    /// Whether a reset was sent. The receiver receives nothing more.
    pub fn is_broken(&self) -> bool {
        matches!(self.ending, DirectionEnd::Reset | DirectionEnd::ResetArrived)
    }

    /// Whether data or an end can travel.
    pub fn can_move(&self) -> bool {
        self.fitting() > 0
            || self.ending == DirectionEnd::Reset
            || (self.ending == DirectionEnd::Fin && self.flight.is_empty())
    }
}
