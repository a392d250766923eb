//! Reusable buffers for bytes that one call writes: heads, ends of bodies, results of expressions.

use std::ops::{Deref, DerefMut};

/// Maximum number of empty buffers that are kept for reuse.
const SPARE_MAX: usize = 8;
/// A buffer with a larger capacity is freed instead of kept.
const SPARE_BYTES_MAX: usize = 256 * 1024;

/// Unused buffers.
#[derive(Default)]
pub struct Scratch {
    spare: Vec<Vec<u8>>,
}

impl Scratch {
    /// An empty buffer.
    #[inline]
    pub fn take(&mut self) -> Message {
        let mut bytes = self.spare.pop().unwrap_or_default();
        // Buffers are cleared when they return, and again here: a leak between requests would be severe.
        bytes.clear();
        Message { bytes }
    }

    /// Takes a buffer back and discards its content.
    #[inline]
    pub fn give(&mut self, mut message: Message) {
        let mut bytes = std::mem::take(&mut message.bytes);
        let is_worth_keeping = (1..=SPARE_BYTES_MAX).contains(&bytes.capacity());
        if is_worth_keeping && self.spare.len() < SPARE_MAX {
            bytes.clear();
            self.spare.push(bytes);
        }
    }
}

/// Bytes written for one call. They belong to the call that writes them, or move by value to the call that sends them:
/// no later call can find them. After writing, they must go back to [`Scratch::give`].
#[derive(Default)]
#[must_use]
pub struct Message {
    bytes: Vec<u8>,
}

impl Deref for Message {
    type Target = Vec<u8>;

    #[inline]
    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Message {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl Drop for Message {
    #[inline]
    fn drop(&mut self) {
        debug_assert!(
            self.bytes.is_empty() || std::thread::panicking(),
            "bytes were written, and neither sent nor given up"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_not_found_by_the_next() {
        let mut scratch = Scratch::default();
        let mut message = scratch.take();
        message.extend_from_slice(b"Authorization: secret");
        let address = message.as_ptr();
        scratch.give(message);
        let next = scratch.take();
        assert_eq!((next.as_ptr(), &next[..]), (address, &b""[..]), "the same buffer, empty");
        let other = scratch.take();
        assert_ne!(other.as_ptr(), next.as_ptr());
    }

    #[test]
    fn what_has_grown_large_is_not_kept() {
        let mut scratch = Scratch::default();
        let mut message = scratch.take();
        message.resize(SPARE_BYTES_MAX + 1, 0);
        scratch.give(message);
        assert_eq!(scratch.take().capacity(), 0);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "neither sent nor given up")]
    fn what_is_forgotten_is_noticed() {
        let mut message = Scratch::default().take();
        message.push(b'x');
    }
}
