//! Body data that waits: for the rest of a read, for a member, or for a window.

use weir_exchange::parts::end::{End, OwnedEnd};

use crate::wire::Buffers;

/// Waiting body data and its end. While there is data, it occupies a spare buffer.
#[derive(Default)]
pub struct Backlog {
    bytes: Vec<u8>,
    /// The number of bytes at the front that were sent.
    passed: usize,
    end: OwnedEnd,
}

impl Backlog {
    /// Whether no data waits.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The number of waiting bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len() - self.passed
    }

    /// The memory that it occupies.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// Adds data.
    pub fn push(&mut self, buffers: &mut impl Buffers, data: &[u8]) {
        if self.bytes.capacity() == 0 && !data.is_empty() {
            self.bytes = buffers.take();
        }
        self.bytes.extend_from_slice(data);
    }

    /// Sets the end that follows the waiting data.
    pub fn set_end(&mut self, end: End<'_>) {
        self.end = OwnedEnd::of(end);
    }

    /// The first bytes, at most `bytes_max`, and the end if no more bytes follow.
    pub fn front(&self, bytes_max: usize) -> (&[u8], End<'_>) {
        let rest = &self.bytes[self.passed..];
        let (front, left) = rest.split_at(rest.len().min(bytes_max));
        (front, if left.is_empty() { self.end.get() } else { End::No })
    }

    /// Removes the first `count` bytes, which were sent. If no bytes remain, the end was also sent.
    pub fn pass(&mut self, buffers: &mut impl Buffers, count: usize) {
        self.passed += count;
        if self.bytes() == 0 {
            self.clear(buffers);
        }
    }

    /// Removes and returns the data and the end. The buffer must be returned to the [`Buffers`].
    pub fn take(&mut self) -> (Vec<u8>, OwnedEnd) {
        debug_assert_eq!(self.passed, 0, "what has passed on does not pass again");
        let Self { bytes, end, .. } = std::mem::take(self);
        (bytes, end)
    }

    /// Drops the waiting data and the end.
    pub fn clear(&mut self, buffers: &mut impl Buffers) {
        let Self { bytes, .. } = std::mem::take(self);
        buffers.give(bytes);
    }
}
