//! The search for matches: one position is stored per hash of six bytes. So most matches have at least that length, and
//! matches of four or five bytes are found by chance: short matches cost more time than they save.

use std::ops::Range;

use super::{BUFFER_BYTES, Buffer, PADDING_BYTES, WINDOW_BYTES};

const HASH_BITS: u32 = 14;

/// Number of hashed bytes.
const HASHED_BYTES: usize = 6;

/// Minimum length of a match.
const LENGTH_MIN: usize = 4;

/// Maximum length of a match (RFC 1951 section 3.2.5).
pub(super) const LENGTH_MAX: usize = 258;

/// The effort of the search in incompressible data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// After four bytes without a match, the search skips one of two positions, after eight two of three, and so on.
    Short,
    /// The same after 16 bytes, after 32, and so on.
    Long,
}

impl Patience {
    fn bytes_log(self) -> u32 {
        match self {
            Self::Short => 2,
            Self::Long => 4,
        }
    }
}

/// Maximum number of successively skipped positions.
const LEFT_OUT_MAX: usize = 15;

/// Literals, and the match after them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sequence {
    /// Number of literals.
    pub(super) literals: u16,
    /// Length of the match, from [`LENGTH_MIN`] to [`LENGTH_MAX`].
    pub(super) length: u16,
    /// Distance to the earlier bytes, less one: 0 to [`WINDOW_BYTES`] - 1.
    pub(super) distance_less_one: u16,
}

pub(super) struct Matcher {
    /// The last position of bytes with this hash in the buffer. It is verified before use.
    places: Box<[u16; 1 << HASH_BITS]>,
    patience: Patience,
    found: Vec<Sequence>,
}

impl Matcher {
    pub(super) fn new(patience: Patience) -> Self {
        Self {
            places: Box::new([0; 1 << HASH_BITS]),
            patience,
            found: Vec::with_capacity(WINDOW_BYTES / LENGTH_MIN),
        }
    }

    pub(super) fn reset(&mut self) {
        self.places.fill(0);
    }

    /// The buffer's second half becomes its first.
    pub(super) fn slide(&mut self) {
        for place in self.places.iter_mut() {
            *place = place.saturating_sub(WINDOW_BYTES as u16);
        }
    }

    /// The matches in `range`; they may refer to data before it, but not to data of earlier contents. Bytes after the
    /// last match are literals.
    pub(super) fn find(&mut self, buffer: &Buffer, range: Range<usize>) -> &[Sequence] {
        self.found.clear();
        let end = range.end;
        let patience_bytes_log = self.patience.bytes_log();
        let mut literals_from = range.start;
        let mut at = range.start;
        while at + HASHED_BYTES <= end {
            let word = load(buffer, at);
            let place = &mut self.places[hash(word)];
            let before = usize::from(*place);
            *place = at as u16;
            let distance = at.wrapping_sub(before);
            let is_near = distance.wrapping_sub(1) < WINDOW_BYTES;
            if !is_near || load(buffer, before) as u32 != word as u32 {
                at += 1 + ((at - literals_from) >> patience_bytes_log).min(LEFT_OUT_MAX);
                continue;
            }
            let start = begin(buffer, at, before, literals_from);
            let length = length(buffer, start, distance, LENGTH_MAX.min(end - start));
            self.found.push(Sequence {
                literals: (start - literals_from) as u16,
                length: length as u16,
                distance_less_one: (distance - 1) as u16,
            });
            literals_from = start + length;
            let within = at + 1;
            at = literals_from;
            if at + HASHED_BYTES <= end {
                self.places[hash(load(buffer, within))] = within as u16;
                self.places[hash(load(buffer, at - 2))] = (at - 2) as u16;
            }
        }
        &self.found
    }
}

#[inline(always)]
fn hash(word: u64) -> usize {
    // Knuth's multiplier: 2^64 divided by the golden ratio.
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let hashed = word << (64 - 8 * HASHED_BYTES);
    (hashed.wrapping_mul(MULTIPLIER) >> (64 - HASH_BITS)) as usize
}

#[inline(always)]
fn load(buffer: &Buffer, at: usize) -> u64 {
    // `at` is always smaller; the remainder tells the compiler so.
    let at = at % BUFFER_BYTES;
    let bytes = buffer[at..at + PADDING_BYTES].first_chunk();
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The start of a match found at `at`: the bytes before it may match as well.
#[inline(always)]
fn begin(buffer: &Buffer, at: usize, before: usize, literals_from: usize) -> usize {
    let back_max = (at - literals_from).min(before);
    let mut back = 0;
    while back < back_max && buffer[at - back - 1] == buffer[before - back - 1] {
        back += 1;
    }
    at - back
}

/// The length of a match whose first four bytes are known to be equal.
#[inline(always)]
fn length(buffer: &Buffer, start: usize, distance: usize, length_max: usize) -> usize {
    let mut length = LENGTH_MIN;
    while length < length_max {
        let at = start + length;
        let difference = load(buffer, at) ^ load(buffer, at - distance);
        if difference != 0 {
            length += difference.trailing_zeros() as usize / 8;
            break;
        }
        length += 8;
    }
    length.min(length_max)
}
