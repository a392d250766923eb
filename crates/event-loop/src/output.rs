//! Bytes that a socket could not take yet.

use crate::pipes::Filled;

/// Spare buffers of closed or drained queues, so that a busy worker does not allocate for them.
const SPARES_MAX: usize = 64;
/// A spare above this capacity is given back to the allocator: a response that is collected has a body of at most 128 KiB.
const SPARE_CAPACITY_MAX: usize = 160 * 1024;

/// A queue of bytes: appended at the end, sent from the front. A pipe at its front has bytes that never came through
/// this program; dropped, it is closed with them.
#[derive(Debug, Default)]
pub struct Output {
    pub pipe: Option<Filled>,
    bytes: Vec<u8>,
    sent: usize,
}

impl Output {
    /// Bytes not yet sent, behind those of the pipe.
    pub fn pending(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// How many there are, those of the pipe among them.
    pub fn len(&self) -> usize {
        self.pipe.as_ref().map_or(0, Filled::bytes) + self.pending().len()
    }

    /// Appends the part of `parts` (taken as one string) that lies after its first `skip` bytes.
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

    /// Notes that the first `count` pending bytes went out.
    pub fn advance(&mut self, count: usize) {
        self.sent += count;
        debug_assert!(self.sent <= self.bytes.len());
    }
}

/// Empty buffers kept for reuse.
#[derive(Debug, Default)]
pub struct Spares(Vec<Vec<u8>>);

impl Spares {
    /// An empty buffer, with capacity if one is at hand.
    pub fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    /// Takes a buffer back.
    pub fn give(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if capacity > 0 && capacity <= SPARE_CAPACITY_MAX && self.0.len() < SPARES_MAX {
            buffer.clear();
            self.0.push(buffer);
        }
    }

    /// A queue over a spare buffer.
    pub fn take_output(&mut self) -> Box<Output> {
        Box::new(Output { pipe: None, bytes: self.take(), sent: 0 })
    }

    /// A queue that begins with the bytes of a pipe.
    pub fn take_output_of(&mut self, pipe: Filled) -> Box<Output> {
        Box::new(Output { pipe: Some(pipe), bytes: Vec::new(), sent: 0 })
    }

    /// Takes a queue's buffer back; a pipe that still has bytes is closed.
    pub fn give_output(&mut self, output: Output) {
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
