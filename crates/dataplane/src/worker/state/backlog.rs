//! Data of a body that waits: for the rest of a read, for a member, for a window.

use weir_event_loop::EventLoop;
use weir_exchange::parts::end::{End, OwnedEnd};

/// Data of a body that waits, and what follows it. Its memory is one of the loop's spare buffers while there is any.
#[derive(Default)]
pub struct Backlog {
    bytes: Vec<u8>,
    /// So many bytes at the front have passed on.
    passed: usize,
    end: OwnedEnd,
}

impl Backlog {
    /// Whether no data waits.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes.len() - self.passed
    }

    /// More data waits.
    pub fn push(&mut self, io: &mut EventLoop, data: &[u8]) {
        if self.bytes.capacity() == 0 && !data.is_empty() {
            self.bytes = io.take_buffer();
        }
        self.bytes.extend_from_slice(data);
    }

    /// This follows what waits.
    pub fn set_end(&mut self, end: End<'_>) {
        self.end = OwnedEnd::of(end);
    }

    /// So many bytes at most from the front, and what follows them.
    pub fn front(&self, bytes_max: usize) -> (&[u8], End<'_>) {
        let rest = &self.bytes[self.passed..];
        let (front, left) = rest.split_at(rest.len().min(bytes_max));
        (front, if left.is_empty() { self.end.get() } else { End::No })
    }

    /// So many bytes from the front have passed on; with the last of them what follows has.
    pub fn pass(&mut self, io: &mut EventLoop, count: usize) {
        self.passed += count;
        if self.bytes() == 0 {
            self.clear(io);
        }
    }

    /// Takes all of it out: the data, which [`EventLoop::give_buffer`] takes then, and what follows.
    pub fn take(&mut self) -> (Vec<u8>, OwnedEnd) {
        debug_assert_eq!(self.passed, 0, "what has passed on does not pass again");
        let Self { bytes, end, .. } = std::mem::take(self);
        (bytes, end)
    }

    /// Drops what waits.
    pub fn clear(&mut self, io: &mut EventLoop) {
        let Self { bytes, .. } = std::mem::take(self);
        io.give_buffer(bytes);
    }
}
