//! Which of many literals a text has in it, whatever the case.
//!
//! Each literal is known by a gram of it that few others have, of six bytes, or three or two if it has no more, and by the bytes around: eight in
//! all. At each byte of the text a table of bits for each length of grams says whether one may begin there. Unlike the steps of an automaton these looks
//! do not wait for one another, and the tables fit into the caches that are nearest.

use std::collections::{BTreeMap, HashMap};

use super::literals::commonness;

/// Bits of the hash of a gram of three bytes.
const TRIPLE_BITS: u32 = 16;
/// Bits of the number of a word of the table for grams of six bytes. Each gram has two bits in its word, for there are many.
const SIX_BITS: u32 = 11;
/// Bits of the number of a bucket of literals.
const BUCKET_BITS: u32 = 13;
/// How common a byte would have to be to weigh as much as one more literal of the same gram.
const LOAD_WEIGHT: u32 = 6;
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
    pairs: Box<[u64]>,
    triples: Box<[u64]>,
    sixes: Box<[u64]>,
    /// Where the entries of each bucket begin, and of the last where they end.
    buckets: Box<[u32]>,
    entries: Box<[Entry]>,
    operators: Box<[u16]>,
}

/// A literal's part that is compared.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy, Hash)]
struct Window {
    mask: u64,
    value: u64,
    before: u8,
    gram: Gram,
}

/// Bytes that a literal is known by.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy, Hash)]
enum Gram {
    Two(u64),
    Three(u64),
    Six(u64),
}

impl Gram {
    /// How many bytes a gram of a literal of this length has.
    fn length_in(literal: usize) -> usize {
        match literal {
            0..=2 => 2,
            3..=5 => 3,
            _ => 6,
        }
    }

    fn new(bytes: &[u8]) -> Self {
        let number = little(bytes);
        match bytes.len() {
            0..=2 => Self::Two(number),
            3..=5 => Self::Three(number),
            _ => Self::Six(number),
        }
    }

    /// Its bucket: that of its hash.
    fn bucket(self) -> usize {
        let hash = match self {
            Self::Two(number) => hash(number ^ PAIR_MARK, BUCKET_BITS),
            Self::Three(number) | Self::Six(number) => hash(number, BUCKET_BITS),
        };
        hash as usize
    }
}

/// It keeps pairs apart from longer grams.
const PAIR_MARK: u64 = 0x5a_0000;
const PAIR: u64 = 0xffff;
const TRIPLE: u64 = 0xff_ffff;
const SIX: u64 = 0xffff_ffff_ffff;

impl Grams {
    /// Of literals in lower case, each with the operator that needs it.
    pub fn new(literals: &[(&[u8], u16)]) -> Self {
        let mut load = HashMap::new();
        let mut by_window: BTreeMap<Window, Vec<u16>> = Default::default();
        let mut known = HashMap::new();
        for (literal, operator) in literals {
            let window = *known.entry(*literal).or_insert_with(|| {
                let window = window(literal, &load);
                *load.entry(window.gram).or_insert(0u32) += 1;
                window
            });
            let operators = by_window.entry(window).or_default();
            if operators.last() != Some(operator) {
                operators.push(*operator);
            }
        }
        let mut sorted: Vec<(Window, Vec<u16>)> = by_window.into_iter().collect();
        sorted.sort_by_key(|(window, _)| window.gram.bucket());
        let mut grams = Self {
            pairs: vec![0; 1 << (16 - 6)].into(),
            triples: vec![0; 1 << (TRIPLE_BITS - 6)].into(),
            sixes: vec![0; 1 << SIX_BITS].into(),
            ..Self::default()
        };
        let (mut entries, mut all) = (Vec::new(), Vec::new());
        let mut buckets = vec![0u32; (1 << BUCKET_BITS) + 1];
        for (window, operators) in sorted {
            match window.gram {
                Gram::Two(number) => mark(&mut grams.pairs, number),
                Gram::Three(number) => mark(&mut grams.triples, hash_of_three(number)),
                Gram::Six(number) => {
                    let (place, one, other) = place_of_six(number);
                    grams.sixes[place] |= 1 << one | 1 << other;
                }
            }
            buckets[window.gram.bucket() + 1] += 1;
            let from = all.len() as u32;
            all.extend(operators);
            let Window { mask, value, before, .. } = window;
            entries.push(Entry { mask, value, before, operators: (from, all.len() as u32) });
        }
        for at in 1..buckets.len() {
            buckets[at] += buckets[at - 1];
        }
        (grams.buckets, grams.entries, grams.operators) =
            (buckets.into(), entries.into(), all.into());
        grams
    }

    /// Calls with each operator that needs a literal of this text, which is in lower case and has [`PADDING_BYTES`] more behind it; with some it
    /// may call where only the padding makes a literal whole.
    pub fn find(&self, padded: &[u8], mut found: impl FnMut(u16)) {
        let (Ok(pairs), Ok(triples), Ok(sixes)) = (
            <&[u64; 1 << 10]>::try_from(&*self.pairs),
            <&[u64; 1 << (TRIPLE_BITS - 6)]>::try_from(&*self.triples),
            <&[u64; 1 << SIX_BITS]>::try_from(&*self.sixes),
        ) else {
            return;
        };
        for (at, window) in padded.windows(WINDOW_BYTES).enumerate() {
            let Some(window) = window.first_chunk() else { return };
            let window = u64::from_le_bytes(*window);
            let is_pair = bit(pairs, window & PAIR);
            let is_triple = bit(triples, hash_of_three(window));
            let (place, one, other) = place_of_six(window);
            let word = sixes[place];
            let is_six = word >> one & word >> other & 1;
            if is_pair | is_triple | is_six != 0 {
                let grams = [
                    (is_pair, Gram::Two(window & PAIR)),
                    (is_triple, Gram::Three(window & TRIPLE)),
                    (is_six, Gram::Six(window & SIX)),
                ];
                for (_, gram) in grams.iter().filter(|(is_one, _)| *is_one != 0) {
                    self.compare(padded, at, gram.bucket(), &mut found);
                }
            }
        }
    }

    #[inline(never)]
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

fn mark(bits: &mut [u64], number: u64) {
    if let Some(word) = bits.get_mut((number >> 6) as usize) {
        *word |= 1 << (number & 63);
    }
}

/// A bit of a table that has one for each such number.
fn bit<const WORDS: usize>(bits: &[u64; WORDS], number: u64) -> u64 {
    bits[(number >> 6) as usize & (WORDS - 1)] >> (number & 63) & 1
}

/// The number of the bit of the first three bytes.
fn hash_of_three(window: u64) -> u64 {
    hash(window << 24, TRIPLE_BITS)
}

/// The word of the first six bytes, and their bits in there.
fn place_of_six(window: u64) -> (usize, u64, u64) {
    let hash = hash(window, SIX_BITS + 12);
    ((hash >> 12) as usize & ((1 << SIX_BITS) - 1), hash >> 6 & 63, hash & 63)
}

/// The upper bits of a product of the lower six bytes with a constant whose bits are spread evenly.
fn hash(gram: u64, bits: u32) -> u64 {
    (gram << 16).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)
}

/// The part of a literal that is compared: with the gram that is rare in texts, and that few literals so far are known by.
fn window(literal: &[u8], load: &HashMap<Gram, u32>) -> Window {
    let length = Gram::length_in(literal.len());
    let grams = literal.windows(length).enumerate();
    let rank = |(_, bytes): &(usize, &[u8])| {
        let common: u32 = bytes.iter().map(|byte| u32::from(commonness(*byte))).sum();
        common + LOAD_WEIGHT * load.get(&Gram::new(bytes)).copied().unwrap_or(0)
    };
    let (at, gram) = grams.min_by_key(rank).unwrap_or((0, literal));
    let start = at.saturating_sub(2).min(literal.len().saturating_sub(WINDOW_BYTES));
    let part = &literal[start..literal.len().min(start + WINDOW_BYTES)];
    let mask = if part.len() == WINDOW_BYTES { u64::MAX } else { (1 << (8 * part.len())) - 1 };
    Window { mask, value: little(part), before: (at - start) as u8, gram: Gram::new(gram) }
}

fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
