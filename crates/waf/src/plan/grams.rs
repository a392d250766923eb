//! Which of many literals a text has in it, whatever the case.
//!
//! Each literal is known by a gram of it that is rare in texts, and by the bytes around: eight in all. Literals of up to four bytes have grams of two or three,
//! which are looked for at each byte of the text. Those of longer literals have four and are looked for at every other byte: each such literal has two, one
//! byte apart. Unlike the steps of an automaton these looks do not wait for one another, and what texts need of the tables fits into the nearest cache.

use std::collections::BTreeMap;

use super::literals::commonness;

/// Longest literal with a short gram.
const SHORT_BYTES_MAX: usize = 4;
/// Bytes of a long gram.
const LONG_GRAM_BYTES: usize = 4;
/// Bits of the hash of a long gram.
const LONG_BITS: u32 = 18;
/// Bits of two bytes that tell short grams apart: eight of the first byte, and six of the other.
const PAIR_BITS: u32 = 14;
/// Bits of the number of a bucket of literals.
const BUCKET_BITS: u32 = 14;
/// Bytes of a literal that are compared.
const WINDOW_BYTES: usize = 8;
/// How many bytes of any value stand behind a text that is looked at.
pub const PADDING_BYTES: usize = WINDOW_BYTES - 1;
/// Shortest literal.
pub const LITERAL_BYTES_MIN: usize = 2;

/// A literal, or what is compared of it.
#[derive(Debug)]
struct Entry {
    mask: u64,
    value: u64,
    /// How many of its bytes stand before its gram.
    before: u8,
    /// Where its operators are among all.
    operators: (u32, u32),
}

/// Literals of operators.
#[derive(Debug, Default)]
pub struct Grams {
    /// For the first two bytes of a short gram, a bit for each class of the third.
    shorts: Box<[u32]>,
    /// A bit for each hash of a long gram.
    longs: Box<[u32]>,
    /// Where the entries of each bucket begin, and of the last where they end.
    buckets: Box<[u32]>,
    entries: Box<[Entry]>,
    operators: Box<[u16]>,
}

type Shorts = [u32; 1 << PAIR_BITS];
type Longs = [u32; 1 << (LONG_BITS - 5)];

/// A literal's part that is compared.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
struct Window {
    bucket: usize,
    mask: u64,
    value: u64,
    before: u8,
}

/// The class of each byte as the third of a gram, as a bit.
static CLASSES: [u32; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = 1 << (byte % 32);
        byte += 1;
    }
    classes
};

impl Grams {
    /// Of literals in lower case, each with the operator that needs it.
    pub fn new(literals: &[(&[u8], u16)]) -> Self {
        let mut grams = Self {
            shorts: vec![0; size_of::<Shorts>() / 4].into(),
            longs: vec![0; size_of::<Longs>() / 4].into(),
            ..Self::default()
        };
        let mut by_window: BTreeMap<Window, Vec<u16>> = BTreeMap::new();
        for (literal, operator) in literals {
            for window in grams.windows(literal) {
                let operators = by_window.entry(window).or_default();
                if operators.last() != Some(operator) {
                    operators.push(*operator);
                }
            }
        }
        let (mut entries, mut all) = (Vec::new(), Vec::new());
        let mut buckets = vec![0u32; (1 << BUCKET_BITS) + 1];
        for (Window { bucket, mask, value, before }, operators) in by_window {
            buckets[bucket + 1] += 1;
            let from = all.len() as u32;
            all.extend(operators);
            entries.push(Entry { mask, value, before, operators: (from, all.len() as u32) });
        }
        for at in 1..buckets.len() {
            buckets[at] += buckets[at - 1];
        }
        (grams.buckets, grams.entries, grams.operators) =
            (buckets.into(), entries.into(), all.into());
        grams
    }

    /// Marks the grams that a literal is known by.
    fn windows(&mut self, literal: &[u8]) -> Vec<Window> {
        if literal.len() <= SHORT_BYTES_MAX {
            let at = rarest(literal, literal.len().min(3));
            let pair = little(&literal[at..at + 2]) as u32;
            let third = literal.get(at + 2).map_or(u32::MAX, |third| CLASSES[usize::from(*third)]);
            self.shorts[place_of_pair(pair)] |= third;
            return vec![window(literal, at, short_bucket(pair))];
        }
        let at = rarest(literal, LONG_GRAM_BYTES + 1);
        [at, at + 1]
            .map(|at| {
                let hash = hash(little(&literal[at..at + LONG_GRAM_BYTES]) as u32);
                let (place, bit) = place_of_long(hash);
                self.longs[place] |= 1 << bit;
                window(literal, at, long_bucket(hash))
            })
            .into()
    }

    /// Calls with each operator that needs a literal of this text, which is in lower case and has [`PADDING_BYTES`] more behind it; with some it
    /// may call where only the padding makes a literal whole.
    pub fn find(&self, padded: &[u8], mut found: impl FnMut(u16)) {
        let tables = (<&Shorts>::try_from(&*self.shorts), <&Longs>::try_from(&*self.longs));
        let (Ok(shorts), Ok(longs)) = tables else { return };
        // Eight bytes tell of six places: the last one's gram ends with the last byte.
        for at in (0..padded.len().saturating_sub(PADDING_BYTES)).step_by(6) {
            let Some(block) = padded.get(at..).and_then(|rest| rest.first_chunk()) else { return };
            let block = u64::from_le_bytes(*block);
            for step in [0, 2, 4] {
                let bytes = (block >> (8 * step)) as u32;
                let [_, _, third, fourth] = bytes.to_le_bytes();
                let even = shorts[place_of_pair(bytes)] & CLASSES[usize::from(third)];
                let odd = shorts[place_of_pair(bytes >> 8)] & CLASSES[usize::from(fourth)];
                let (place, bit) = place_of_long(hash(bytes));
                let long = longs[place] >> bit & 1;
                if even | odd | long != 0 {
                    self.hit(padded, at + step, bytes, [even, odd, long], &mut found);
                }
            }
        }
    }

    /// Looks closer at a place where grams of some lists may stand: short ones here, at the next byte, or a long one here.
    #[inline(never)]
    fn hit(
        &self,
        padded: &[u8],
        at: usize,
        bytes: u32,
        [even, odd, long]: [u32; 3],
        found: &mut impl FnMut(u16),
    ) {
        if even != 0 {
            self.compare(padded, at, short_bucket(bytes), found);
        }
        if odd != 0 {
            self.compare(padded, at + 1, short_bucket(bytes >> 8), found);
        }
        if long != 0 {
            self.compare(padded, at, long_bucket(hash(bytes)), found);
        }
    }

    #[inline]
    fn compare(&self, padded: &[u8], at: usize, bucket: usize, found: &mut impl FnMut(u16)) {
        let (Some(from), Some(to)) = (self.buckets.get(bucket), self.buckets.get(bucket + 1))
        else {
            return;
        };
        for entry in self.entries.get(*from as usize..*to as usize).unwrap_or_default() {
            let start = at.checked_sub(usize::from(entry.before));
            let window = start.and_then(|start| padded.get(start..)?.first_chunk());
            if window.is_some_and(|window| u64::from_le_bytes(*window) & entry.mask == entry.value)
            {
                let (from, to) = entry.operators;
                let operators = self.operators.get(from as usize..to as usize).unwrap_or_default();
                operators.iter().for_each(|operator| found(*operator));
            }
        }
    }
}

/// Where the part of a literal begins that is rarest in texts, of so many bytes.
fn rarest(literal: &[u8], bytes: usize) -> usize {
    let common =
        |part: &[u8]| -> u32 { part.iter().map(|byte| u32::from(commonness(*byte))).sum() };
    let parts = literal.windows(bytes).enumerate();
    parts.min_by_key(|(_, part)| common(part)).map_or(0, |(at, _)| at)
}

/// The part of a literal that is compared, with the gram that stands there.
fn window(literal: &[u8], at: usize, bucket: usize) -> Window {
    let start = at.saturating_sub(2).min(literal.len().saturating_sub(WINDOW_BYTES));
    let part = &literal[start..literal.len().min(start + WINDOW_BYTES)];
    let mask = if part.len() == WINDOW_BYTES { u64::MAX } else { (1 << (8 * part.len())) - 1 };
    Window { bucket, mask, value: little(part), before: (at - start) as u8 }
}

/// The place of two bytes among the short grams. Others with the same lower bits share it.
fn place_of_pair(bytes: u32) -> usize {
    (bytes & ((1 << PAIR_BITS) - 1)) as usize
}

/// The word of a long gram, and its bit in there.
fn place_of_long(hash: u32) -> (usize, u32) {
    let number = hash >> (32 - LONG_BITS);
    ((number >> 5) as usize, number & 31)
}

/// The upper bits of a product with a constant whose bits are spread evenly.
fn hash(bytes: u32) -> u32 {
    bytes.wrapping_mul(0x9e37_79b1)
}

/// The bucket of short grams that begin with these two bytes.
fn short_bucket(bytes: u32) -> usize {
    (hash(bytes << 16) >> (32 - BUCKET_BITS)) as usize
}

fn long_bucket(hash: u32) -> usize {
    (hash >> (32 - BUCKET_BITS)) as usize
}

fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
