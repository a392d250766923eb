//! A search for many literals in a text, ignoring case.
//!
//! Each literal is identified by one of its grams that is rare in texts, together with the bytes around it: eight bytes in
//! total. Literals of up to four bytes have grams of two or three bytes. These are searched for at every byte of the text.
//! One lookup covers two positions, because their grams have two bytes in common. Longer literals have grams of four bytes,
//! which are searched for at every second byte: each of these literals has two grams, one byte apart. Unlike the steps of an
//! automaton, the lookups do not depend on each other, and the parts of the tables that a text uses fit into the L1 cache.

use std::collections::BTreeMap;

use super::literals::commonness;

/// Maximum length of a literal with a short gram.
const SHORT_BYTES_MAX: usize = 4;
/// Length of a long gram.
const LONG_GRAM_BYTES: usize = 4;
/// Number of bits in the hash of a long gram.
const LONG_BITS: u32 = 18;
/// Number of bits of two bytes that index short grams: eight of the first byte, and six of the second.
const PAIR_BITS: u32 = 14;
/// Minimum and maximum number of bits in a bucket's number.
const BUCKET_BITS_MIN: u32 = 6;
const BUCKET_BITS_MAX: u32 = 14;
/// Number of bytes of a literal that are compared.
const WINDOW_BYTES: usize = 8;
/// Number of padding bytes after a searched text. The bytes may have any values.
pub const PADDING_BYTES: usize = WINDOW_BYTES - 1;
/// Minimum length of a literal.
pub const LITERAL_BYTES_MIN: usize = 2;

/// A literal, or its compared part.
#[derive(Debug)]
struct Entry {
    mask: u64,
    value: u64,
    /// Number of bytes before the gram.
    before: u8,
    /// The range of the literal's operators in `operators`.
    operators: (u32, u32),
}

/// An index of the literals of operators.
#[derive(Debug, Default)]
pub struct Grams {
    /// The table of short grams, indexed by the second and third of four bytes. In the first word, the bits are classes of
    /// the first byte, for grams that begin with this byte. In the second word, the bits are classes of the fourth byte, for
    /// grams that begin with the second byte. Empty: there are no short grams.
    shorts: Box<[[u32; 2]]>,
    /// Whether there are grams of two bytes.
    has_pairs: bool,
    /// The table of long grams: one bit for each hash. Empty: there are no literals.
    longs: Box<[u32]>,
    /// Number of low bits of a hash that do not belong to the bucket's number.
    bucket_shift: u32,
    /// The start of each bucket in `entries`, and the end of the last bucket.
    buckets: Box<[u32]>,
    entries: Box<[Entry]>,
    operators: Box<[u16]>,
}

type Shorts = [[u32; 2]; 1 << PAIR_BITS];
type Longs = [u32; 1 << (LONG_BITS - 5)];

/// The compared part of a literal.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
struct Window {
    /// The hash of the gram.
    hash: u32,
    before: u8,
    mask: u64,
    value: u64,
}

impl Grams {
    /// An index of literals in lower case. Each literal has the number of an operator that needs it.
    pub fn new(literals: &[(&[u8], u16)]) -> Self {
        if literals.is_empty() {
            return Self::default();
        }
        let mut grams = Self { longs: vec![0; size_of::<Longs>() / 4].into(), ..Self::default() };
        let mut windows: BTreeMap<Window, Vec<u16>> = BTreeMap::new();
        for (literal, operator) in literals {
            for window in grams.windows(literal) {
                let operators = windows.entry(window).or_default();
                if operators.last() != Some(operator) {
                    operators.push(*operator);
                }
            }
        }
        let bits = windows.len().next_power_of_two().ilog2() + 1;
        grams.bucket_shift = 32 - bits.clamp(BUCKET_BITS_MIN, BUCKET_BITS_MAX);
        grams.fill(windows);
        grams
    }

    /// Fills the buckets with the windows, which are sorted by hash.
    fn fill(&mut self, windows: BTreeMap<Window, Vec<u16>>) {
        let (mut entries, mut all) = (Vec::new(), Vec::new());
        let mut buckets = vec![0u32; (1 << (32 - self.bucket_shift)) + 1];
        for (Window { hash, mask, value, before }, operators) in windows {
            buckets[self.bucket(hash) + 1] += 1;
            let from = all.len() as u32;
            all.extend(operators);
            entries.push(Entry { mask, value, before, operators: (from, all.len() as u32) });
        }
        for at in 1..buckets.len() {
            buckets[at] += buckets[at - 1];
        }
        (self.buckets, self.entries, self.operators) = (buckets.into(), entries.into(), all.into());
    }

    /// Enters the grams of a literal into the tables. Returns their windows.
    fn windows(&mut self, literal: &[u8]) -> Vec<Window> {
        if literal.len() <= SHORT_BYTES_MAX {
            let at = rarest(literal, literal.len().min(3));
            let gram = &literal[at..literal.len().min(at + 3)];
            self.mark_short(gram);
            return vec![window(literal, at, hash(little(gram) as u32))];
        }
        let at = rarest(literal, LONG_GRAM_BYTES + 1);
        [at, at + 1]
            .map(|at| {
                let hash = hash(little(&literal[at..at + LONG_GRAM_BYTES]) as u32);
                let (place, bit) = place_of_long(hash);
                self.longs[place] |= 1 << bit;
                window(literal, at, hash)
            })
            .into()
    }

    fn mark_short(&mut self, gram: &[u8]) {
        if self.shorts.is_empty() {
            self.shorts = vec![[0; 2]; 1 << PAIR_BITS].into();
        }
        let [first, second] = [gram[0], gram[1]];
        let third = gram.get(2).copied();
        self.has_pairs |= third.is_none();
        // Any byte may follow a gram of two bytes.
        let of_four = |bytes: [u8; 4]| place_of_pair(u32::from_le_bytes(bytes));
        let class = |byte: u8| 1 << class_of(byte.into());
        self.shorts[of_four([0, first, second, 0])][1] |= third.map_or(u32::MAX, class);
        for third in third.map_or(0..=u8::MAX, |third| third..=third) {
            self.shorts[of_four([first, second, third, 0])][0] |= class(first);
        }
    }

    /// Calls `found` with each operator that needs a literal of this text. The text is in lower case, and [`PADDING_BYTES`]
    /// bytes follow it. `found` may also be called with operators whose literal is complete only with padding bytes.
    pub fn find(&self, padded: &[u8], found: impl FnMut(u16)) {
        let Ok(longs) = <&Longs>::try_from(&*self.longs) else { return };
        let is_long = |bytes: u32| {
            let (place, bit) = place_of_long(hash(bytes));
            longs[place] >> bit & 1 != 0
        };
        match <&Shorts>::try_from(&*self.shorts) {
            Ok(shorts) => {
                let may_stand = |bytes| {
                    let [here, behind] = &shorts[place_of_pair(bytes)];
                    here >> class_of(bytes) & 1 != 0
                        || behind >> class_of(bytes >> 24) & 1 != 0
                        || is_long(bytes)
                };
                self.find_at(padded, may_stand, found);
            }
            Err(_) => self.find_at(padded, is_long, found),
        }
    }

    /// Implements [`Self::find`]. `may_stand`: whether a gram may begin at the first of these four bytes, or a short gram at
    /// the second.
    #[inline(always)]
    fn find_at(&self, padded: &[u8], may_stand: impl Fn(u32) -> bool, mut found: impl FnMut(u16)) {
        // Eight bytes cover the grams of six positions.
        let mut at = 0;
        while let Some(block) = padded.get(at..).and_then(|rest| rest.first_chunk()) {
            let block = u64::from_le_bytes(*block);
            for step in [0, 2, 4] {
                let bytes = (block >> (8 * step)) as u32;
                if may_stand(bytes) {
                    self.hit(padded, at + step, bytes, &mut found);
                }
            }
            at += 6;
        }
    }

    /// Compares literals at a position where a gram may begin: a short gram at this byte or the next, or a long gram at this
    /// byte.
    #[inline(never)]
    fn hit(&self, padded: &[u8], at: usize, bytes: u32, found: &mut impl FnMut(u16)) {
        const PAIR: u32 = 0xffff;
        const THREE: u32 = 0xff_ffff;
        let [here, behind] = self.shorts.get(place_of_pair(bytes)).copied().unwrap_or_default();
        if here >> class_of(bytes) & 1 != 0 {
            self.compare(padded, at, hash(bytes & THREE), found);
            if self.has_pairs {
                self.compare(padded, at, hash(bytes & PAIR), found);
            }
        }
        if behind >> class_of(bytes >> 24) & 1 != 0 {
            self.compare(padded, at + 1, hash(bytes >> 8), found);
            if self.has_pairs {
                self.compare(padded, at + 1, hash(bytes >> 8 & PAIR), found);
            }
        }
        let (place, bit) = place_of_long(hash(bytes));
        if self.longs.get(place).is_some_and(|word| word >> bit & 1 != 0) {
            self.compare(padded, at, hash(bytes), found);
        }
    }

    #[inline]
    fn compare(&self, padded: &[u8], at: usize, hash: u32, found: &mut impl FnMut(u16)) {
        let bucket = self.bucket(hash);
        let Some([from, to]) = self.buckets.get(bucket..bucket + 2) else { return };
        // The entries of a gram are sorted by `before`.
        let (mut before, mut window) = (u8::MAX, None);
        for entry in self.entries.get(*from as usize..*to as usize).unwrap_or_default() {
            if entry.before != before {
                before = entry.before;
                let start = at.checked_sub(usize::from(before));
                let bytes = start.and_then(|start| padded.get(start..)?.first_chunk());
                window = bytes.map(|bytes| u64::from_le_bytes(*bytes));
            }
            if window.is_some_and(|window| window & entry.mask == entry.value) {
                let (from, to) = entry.operators;
                let operators = self.operators.get(from as usize..to as usize).unwrap_or_default();
                operators.iter().for_each(|operator| found(*operator));
            }
        }
    }

    fn bucket(&self, hash: u32) -> usize {
        (hash >> self.bucket_shift) as usize
    }
}

/// The start of the rarest part of a literal. `bytes`: the length of the part.
fn rarest(literal: &[u8], bytes: usize) -> usize {
    let common =
        |part: &[u8]| -> u32 { part.iter().map(|byte| u32::from(commonness(*byte))).sum() };
    let parts = literal.windows(bytes).enumerate();
    parts.min_by_key(|(_, part)| common(part)).map_or(0, |(at, _)| at)
}

/// The window of a literal around the gram at `at`.
fn window(literal: &[u8], at: usize, hash: u32) -> Window {
    let start = at.saturating_sub(2).min(literal.len().saturating_sub(WINDOW_BYTES));
    let part = &literal[start..literal.len().min(start + WINDOW_BYTES)];
    let mask = if part.len() == WINDOW_BYTES { u64::MAX } else { (1 << (8 * part.len())) - 1 };
    Window { hash, mask, value: little(part), before: (at - start) as u8 }
}

/// The index of short grams: the second and third of four bytes. Pairs with the same lower bits share an index.
fn place_of_pair(bytes: u32) -> usize {
    (bytes >> 8) as usize & ((1 << PAIR_BITS) - 1)
}

/// The class of the first of these bytes.
fn class_of(bytes: u32) -> u32 {
    bytes & 31
}

/// The word and bit of a long gram.
fn place_of_long(hash: u32) -> (usize, u32) {
    let number = hash >> (32 - LONG_BITS);
    ((number >> 5) as usize, number & 31)
}

/// A hash whose upper bits are used: the product with a constant whose bits are evenly spread.
fn hash(bytes: u32) -> u32 {
    bytes.wrapping_mul(0x9e37_79b1)
}

fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
