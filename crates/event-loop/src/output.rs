//! Bytes that a socket has not accepted yet.

use crate::pipes::Filled;

/// Maximum number of spare buffers, which save a busy worker allocations.
const SPARES_MAX: usize = 64;
/// A spare buffer with a larger capacity is freed. A buffered response, with a body of at most 128 KiB, fits.
const SPARE_CAPACITY_MAX: usize = 160 * 1024;

/// A queue of bytes, which are sent in order. A pipe at its front holds bytes that were never in this process's memory; they
/// are discarded with the queue.
#[derive(Debug, Default)]
pub struct Output {
    pub pipe: Option<Filled>,
    bytes: Vec<u8>,
    sent: usize,
}

impl Output {
    /// The unsent bytes after those of the pipe.
    pub fn pending(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// The number of unsent bytes, including those of the pipe.
    pub fn len(&self) -> usize {
        self.pipe.as_ref().map_or(0, Filled::bytes) + self.pending().len()
    }

    /// Appends the concatenation of `parts`, without its first `skip` bytes.
    pub fn append(&mut self, parts: &[std::io::IoSlice<'_>], mut skip: usize) {
        if self.sent == self.bytes.len() {
            self.bytes.clear();
            self.sent = 0;
        }
        for part in parts {
            let from = skip.min(part.len());
            self.bytes.extend_from_slice(&part[from..]);
            skip -= from;
        }
    }

    /// The unsent bytes of a queue without a pipe.
    pub fn into_pending(mut self) -> Vec<u8> {
        debug_assert!(self.pipe.is_none(), "bytes of a tunnel go nowhere else");
        self.bytes.drain(..self.sent);
        self.bytes
    }

    /// Removes the first `count` pending bytes, which were sent.
    pub fn advance(&mut self, count: usize) {
        self.sent += count;
        debug_assert!(self.sent <= self.bytes.len());
    }
}

/// A queue that begins with the bytes of a pipe.
impl From<Filled> for Output {
    fn from(pipe: Filled) -> Self {
        Self { pipe: Some(pipe), bytes: Vec::new(), sent: 0 }
    }
}

/// Empty buffers for reuse.
#[derive(Debug, Default)]
pub struct SpareBuffers(Vec<Vec<u8>>);

impl SpareBuffers {
    /// A spare buffer, or an empty one without capacity.
    pub fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    /// Returns a buffer to the spares. It is freed if it is too large or not needed.
    pub fn give(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if capacity > 0 && capacity <= SPARE_CAPACITY_MAX && self.0.len() < SPARES_MAX {
            buffer.clear();
            self.0.push(buffer);
        }
    }

    /// A queue that uses a spare buffer.
    pub(crate) fn take_output(&mut self) -> Box<Output> {
        Box::new(Output { pipe: None, bytes: self.take(), sent: 0 })
    }

    /// Returns the buffer of a queue to the spares. A pipe with bytes is closed.
    pub(crate) fn give_output(&mut self, output: Output) {
        self.give(output.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::IoSlice;

    #[test]
    fn appends_what_was_not_sent() {
        let mut output = Output::default();
        output.append(&[IoSlice::new(b"abc"), IoSlice::new(b"defg")], 4);
        assert_eq!(output.pending(), b"efg");
        output.advance(2);
        output.append(&[IoSlice::new(b"hi")], 0);
        assert_eq!(output.pending(), b"ghi");
        output.advance(3);
        output.append(&[IoSlice::new(b"new")], 1);
        assert_eq!((output.pending(), output.len()), (&b"ew"[..], 2));
    }
}
