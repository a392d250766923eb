//! gzip's fast class: weir's own DEFLATE encoder (RFC 1951).
//!
//! The encoder searches for a match at one position only, and uses it (level 1 searches at fewer positions than level 2). It
//! writes blocks with their own codes. Input is stored in a buffer of two windows; matches may refer to the first half. A
//! block is at most as long as a window.
//!
//! | step | module |
//! |---|---|
//! | bytes → literals and matches | [`matches`] |
//! | frequencies of symbols → codes | [`codes`] |
//! | symbols and codes → bits | [`block`] |

mod bits;
mod block;
mod codes;
mod matches;

use bits::BitWriter;
use libdeflater::Crc;
use matches::{Matcher, Patience};

use super::Flush;
use crate::coding::Level;

/// The highest level for this encoder; at level 2, no other encoder is better for its time.
pub(crate) const LEVEL_MAX: Level = match Level::new(2) {
    Some(level) => level,
    None => Level::MIN,
};

/// Maximum distance of a match (RFC 1951 section 2).
const WINDOW_BYTES: usize = 32 * 1024;

/// One window for earlier data, and one for new input.
const BUFFER_BYTES: usize = 2 * WINDOW_BYTES;

/// Number of bytes after the end that are read (eight at a time) but not used.
const PADDING_BYTES: usize = 8;

type Buffer = [u8; BUFFER_BYTES + PADDING_BYTES];

/// No optional fields, no time, fastest algorithm, Unix (RFC 1952 section 2.3).
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 3];

pub(super) struct Quick {
    buffer: Box<Buffer>,
    /// The unwritten part is `start..end` of the buffer.
    start: usize,
    end: usize,
    matcher: Matcher,
    writer: BitWriter,
    checksum: Crc,
    /// Number of input bytes so far, modulo 2^32.
    taken_bytes: u32,
    has_begun: bool,
    /// Whether there was no input since the last sync flush.
    is_flushed: bool,
}

impl Quick {
    pub(super) fn new(level: Level) -> Self {
        let patience = if level == Level::MIN { Patience::Short } else { Patience::Long };
        Self {
            buffer: Box::new([0; BUFFER_BYTES + PADDING_BYTES]),
            start: 0,
            end: 0,
            matcher: Matcher::new(patience),
            writer: BitWriter::default(),
            checksum: Crc::new(),
            taken_bytes: 0,
            has_begun: false,
            is_flushed: false,
        }
    }

    pub(super) fn reset(&mut self) {
        self.start = 0;
        self.end = 0;
        self.matcher.reset();
        self.writer = BitWriter::default();
        self.checksum = Crc::new();
        self.taken_bytes = 0;
        self.has_begun = false;
        self.is_flushed = false;
    }

    pub(super) fn encode(&mut self, input: &[u8], flush: Flush, out: &mut Vec<u8>) {
        if !self.has_begun {
            self.has_begun = true;
            out.extend_from_slice(&HEADER);
        }
        self.checksum.update(input);
        self.taken_bytes = self.taken_bytes.wrapping_add(input.len() as u32);
        self.is_flushed &= input.is_empty();
        let mut rest = input;
        while !rest.is_empty() {
            let room = BUFFER_BYTES.min(self.start + WINDOW_BYTES) - self.end;
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.buffer[self.end..self.end + now.len()].copy_from_slice(now);
            self.end += now.len();
            rest = later;
            if now.len() == room && (!rest.is_empty() || flush != Flush::Finish) {
                self.write_block(false, out);
            }
        }
        match flush {
            Flush::None => {}
            Flush::Sync => self.write_sync(out),
            Flush::Finish => {
                self.write_block(true, out);
                self.writer.align(out);
                out.extend_from_slice(&self.checksum.sum().to_le_bytes());
                out.extend_from_slice(&self.taken_bytes.to_le_bytes());
            }
        }
    }

    /// Writes the input so far as a block. Makes room if the buffer is full.
    fn write_block(&mut self, is_last: bool, out: &mut Vec<u8>) {
        let range = self.start..self.end;
        let found = self.matcher.find(&self.buffer, range.clone());
        block::write(&self.buffer[range], found, is_last, &mut self.writer, out);
        if self.end == BUFFER_BYTES {
            self.buffer.copy_within(WINDOW_BYTES..BUFFER_BYTES, 0);
            self.matcher.slide();
            self.end = WINDOW_BYTES;
        }
        self.start = self.end;
    }

    /// Makes all input so far available to the decoder: an empty stored block ends at a byte boundary.
    fn write_sync(&mut self, out: &mut Vec<u8>) {
        if self.is_flushed {
            return;
        }
        self.is_flushed = true;
        if self.start < self.end {
            self.write_block(false, out);
        }
        block::write_stored(&[], false, &mut self.writer, out);
    }
}
