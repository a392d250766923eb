//! An output buffer, which is filled from the front, sent, emptied and reused.

/// A buffer that is not zeroed again for each record.
#[derive(Debug, Default)]
pub struct RecordBuffer {
    bytes: Vec<u8>,
    length: usize,
}

impl RecordBuffer {
    /// An empty buffer without capacity.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), length: 0 }
    }

    /// The contents.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Removes the contents. The capacity stays.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// Space for this many more bytes. [`Self::filled`] adds them to the contents.
    pub fn room(&mut self, bytes: usize) -> &mut [u8] {
        let end = self.length + bytes;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        &mut self.bytes[self.length..end]
    }

    /// Adds the first `bytes` bytes of the space after the contents, which were filled, to the contents.
    pub fn filled(&mut self, bytes: usize) {
        debug_assert!(self.length + bytes <= self.bytes.len());
        self.length += bytes;
    }

    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.filled(bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out_and_room_is_used_again() {
        let mut sealed = RecordBuffer::new();
        assert!(sealed.is_empty());
        sealed.append(b"ab");
        sealed.room(3)[..2].copy_from_slice(b"cd");
        sealed.filled(2);
        assert_eq!(sealed.as_slice(), b"abcd");
        sealed.clear();
        sealed.append(b"x");
        assert_eq!(sealed.as_slice(), b"x");
    }
}
