//! One direction of a connection.

/// Bytes in order, added behind and taken from the front.
#[derive(Debug, Default)]
pub struct Bytes {
    bytes: Vec<u8>,
    start: usize,
}

impl Bytes {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Whether the pipe is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Adds some.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 && self.start == self.bytes.len() {
            self.clear();
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Removes this many from the front.
    pub fn take(&mut self, count: usize) {
        self.start += count;
        if self.start > 64 * 1024 || self.start == self.bytes.len() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }

    /// Keeps this many bytes at the front.
    pub fn truncate(&mut self, count: usize) {
        self.bytes.truncate(self.start + count);
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
    }
}

/// How a direction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The direction is open.
    None,
    /// A FIN is on its way behind the bytes.
    Fin,
    /// The FIN has arrived.
    FinArrived,
    /// A reset is on its way.
    Reset,
    /// The reset has arrived.
    ResetArrived,
}

/// One direction of a connection.
#[derive(Debug)]
pub struct Pipe {
    /// Sent, not acknowledged.
    pub flight: Bytes,
    /// Arrived, not received.
    pub arrived: Bytes,
    /// How it ends.
    pub ending: Ending,
    /// Whether a FIN has arrived, even if a reset followed.
    pub had_fin: bool,
    /// Bytes that may have arrived at a time.
    pub window: usize,
    /// Bytes that may be in flight at a time.
    pub room: usize,
    /// The receiver lets nothing more be sent.
    pub takes_nothing: bool,
    /// Whether data is in flight.
    pub is_moving: bool,
}

impl Pipe {
    /// Empty.
    pub fn new((window, room): (usize, usize)) -> Self {
        Self {
            flight: Bytes::default(),
            arrived: Bytes::default(),
            ending: Ending::None,
            had_fin: false,
            window,
            room,
            takes_nothing: false,
            is_moving: false,
        }
    }

    /// Bytes that may still be sent.
    pub fn free(&self) -> usize {
        if self.takes_nothing { 0 } else { self.room.saturating_sub(self.flight.len()) }
    }

    /// Bytes in flight that the receiver has room for.
    pub fn fitting(&self) -> usize {
        self.window.saturating_sub(self.arrived.len()).min(self.flight.len())
    }

    /// The receiver gets nothing more, at once or when the reset is there.
    pub fn is_broken(&self) -> bool {
        matches!(self.ending, Ending::Reset | Ending::ResetArrived)
    }

    /// Whether there is something that can travel.
    pub fn can_move(&self) -> bool {
        self.fitting() > 0
            || self.ending == Ending::Reset
            || (self.ending == Ending::Fin && self.flight.is_empty())
    }
}
