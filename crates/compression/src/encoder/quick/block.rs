//! Blocks (RFC 1951 section 3.2.3): stored, with fixed codes, or with their own codes, whichever is shortest.

use std::sync::LazyLock;

use super::bits::BitWriter;
use super::codes::{Codes, PACKED_LENGTH_SHIFT};
use super::matches::{LENGTH_MAX, Sequence};

/// Number of symbols for literals, the end of a block, and lengths. Two of them never occur, but have fixed codes.
const LITERAL_SYMBOLS: usize = 288;

/// Number of symbols that can occur.
const LITERAL_SYMBOLS_USED: usize = 286;

const END_OF_BLOCK: usize = 256;

const DISTANCE_SYMBOLS: usize = 30;

/// Number of symbols for code lengths and for runs of them.
const RUN_SYMBOLS: usize = 19;

/// Maximum length of a literal's code: four of them, and an incomplete byte, fit into a word.
const LITERAL_LENGTH_MAX: usize = 14;
const DISTANCE_LENGTH_MAX: usize = 15;
const RUN_LENGTH_MAX: usize = 7;

/// Minimum size of a block with codes of its own: the description of its codes takes about as many bytes.
const OWN_CODES_BYTES_MIN: usize = 100;

/// First length of each length symbol, and the number of bits that select one.
const LENGTHS: [(u16, u8); 29] = [
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
    (8, 0),
    (9, 0),
    (10, 0),
    (11, 1),
    (13, 1),
    (15, 1),
    (17, 1),
    (19, 2),
    (23, 2),
    (27, 2),
    (31, 2),
    (35, 3),
    (43, 3),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 4),
    (115, 4),
    (131, 5),
    (163, 5),
    (195, 5),
    (227, 5),
    (258, 0),
];

/// Index into [`LENGTHS`] by length.
static LENGTH_INDEXES: [u8; LENGTH_MAX + 1] = {
    let mut table = [0; LENGTH_MAX + 1];
    let mut index = 0;
    while index < LENGTHS.len() {
        let mut length = LENGTHS[index].0 as usize;
        while length <= LENGTH_MAX {
            table[length] = index as u8;
            length += 1;
        }
        index += 1;
    }
    table
};

/// The order in which the lengths of the run symbols' codes are written.
const RUN_ORDER: [usize; RUN_SYMBOLS] =
    [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// The frequency of each symbol.
struct Frequencies {
    literals: [u32; LITERAL_SYMBOLS],
    distances: [u32; DISTANCE_SYMBOLS],
    /// Number of bits that belong to no symbol.
    extra_bits: u64,
}

/// The codes of a block.
struct BlockCodes {
    literals: Codes<LITERAL_SYMBOLS>,
    distances: Codes<DISTANCE_SYMBOLS>,
}

/// Writes a block of `bytes`; `found`: its matches.
pub(super) fn write(
    bytes: &[u8],
    found: &[Sequence],
    is_last: bool,
    writer: &mut BitWriter,
    out: &mut Vec<u8>,
) {
    let frequencies = count(bytes, found);
    let fixed = &*FIXED_CODES;
    let stored_bits = 8 * (bytes.len() as u64 + 5);
    let fixed_bits = fixed.cost_bits(&frequencies);
    if bytes.len() >= OWN_CODES_BYTES_MIN {
        let own = own_codes(&frequencies);
        let description = Description::of(&own);
        let own_bits = own.cost_bits(&frequencies);
        if description.bits() + own_bits < stored_bits.min(fixed_bits) {
            writer.write(u64::from(is_last) | 2 << 1, 3, out);
            description.write(writer, out);
            return write_symbols(bytes, found, &own, own_bits, writer, out);
        }
    }
    if stored_bits < fixed_bits {
        return write_stored(bytes, is_last, writer, out);
    }
    writer.write(u64::from(is_last) | 1 << 1, 3, out);
    write_symbols(bytes, found, fixed, fixed_bits, writer, out);
}

/// Writes a stored block of at most 65,535 bytes; it begins at a byte boundary.
pub(super) fn write_stored(bytes: &[u8], is_last: bool, writer: &mut BitWriter, out: &mut Vec<u8>) {
    writer.write(u64::from(is_last), 3, out);
    writer.align(out);
    let length = bytes.len() as u16;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn count(bytes: &[u8], found: &[Sequence]) -> Frequencies {
    let mut literals = [0; LITERAL_SYMBOLS];
    let mut distances = [0; DISTANCE_SYMBOLS];
    let mut extra_bits = 0;
    let mut rest = bytes;
    for sequence in found {
        let (before, behind) = rest.split_at(usize::from(sequence.literals));
        for byte in before {
            literals[usize::from(*byte)] += 1;
        }
        rest = &behind[usize::from(sequence.length)..];
        let index = usize::from(LENGTH_INDEXES[usize::from(sequence.length)]);
        literals[END_OF_BLOCK + 1 + index] += 1;
        let (symbol, bits) = distance_symbol(u32::from(sequence.distance_less_one));
        distances[symbol] += 1;
        extra_bits += u64::from(LENGTHS[index].1) + u64::from(bits);
    }
    for byte in rest {
        literals[usize::from(*byte)] += 1;
    }
    literals[END_OF_BLOCK] = 1;
    Frequencies { literals, distances, extra_bits }
}

/// The symbol of a distance, and the number of extra bits.
#[inline(always)]
fn distance_symbol(distance_less_one: u32) -> (usize, u32) {
    if distance_less_one < 2 {
        return (distance_less_one as usize, 0);
    }
    let log = distance_less_one.ilog2();
    let bits = log - 1;
    ((2 * log + (distance_less_one >> bits & 1)) as usize, bits)
}

impl BlockCodes {
    fn cost_bits(&self, frequencies: &Frequencies) -> u64 {
        self.literals.cost_bits(&frequencies.literals)
            + self.distances.cost_bits(&frequencies.distances)
            + frequencies.extra_bits
    }
}

fn own_codes(frequencies: &Frequencies) -> BlockCodes {
    BlockCodes {
        literals: Codes::for_frequencies(&frequencies.literals, LITERAL_LENGTH_MAX),
        distances: Codes::for_frequencies(&frequencies.distances, DISTANCE_LENGTH_MAX),
    }
}

/// The fixed codes, which need no description (RFC 1951 section 3.2.6).
static FIXED_CODES: LazyLock<BlockCodes> = LazyLock::new(|| {
    let mut lengths = [8; LITERAL_SYMBOLS];
    lengths[144..256].fill(9);
    lengths[256..280].fill(7);
    BlockCodes { literals: Codes::for_lengths(lengths), distances: Codes::for_lengths([5; 30]) }
});

/// The description of codes for the decoder (RFC 1951 section 3.2.7).
struct Description {
    literals: usize,
    distances: usize,
    /// Each symbol with the extra bits for the length of its run: value and number of bits.
    runs: Vec<(u8, u8, u8)>,
    codes: Codes<RUN_SYMBOLS>,
    /// Number of run symbols whose code length is written.
    told: usize,
}

impl Description {
    fn of(codes: &BlockCodes) -> Self {
        let used = |lengths: &[u8], least: usize| {
            lengths.iter().rposition(|length| *length > 0).map_or(least, |last| least.max(last + 1))
        };
        let literals = used(&codes.literals.lengths[..LITERAL_SYMBOLS_USED], END_OF_BLOCK + 1);
        let distances = used(&codes.distances.lengths, 1);
        let told = codes.literals.lengths[..literals].iter();
        let runs = runs(told.chain(&codes.distances.lengths[..distances]));
        let mut frequencies = [0; RUN_SYMBOLS];
        for (symbol, ..) in &runs {
            frequencies[usize::from(*symbol)] += 1;
        }
        let codes = Codes::for_frequencies(&frequencies, RUN_LENGTH_MAX);
        let told = RUN_ORDER.iter().rposition(|symbol| codes.lengths[*symbol] > 0);
        Self { literals, distances, runs, codes, told: told.map_or(4, |last| 4.max(last + 1)) }
    }

    fn bits(&self) -> u64 {
        let runs = self.runs.iter().map(|(symbol, _, bits)| {
            u64::from(self.codes.lengths[usize::from(*symbol)]) + u64::from(*bits)
        });
        17 + 3 * self.told as u64 + runs.sum::<u64>()
    }

    fn write(&self, writer: &mut BitWriter, out: &mut Vec<u8>) {
        writer.write(self.literals as u64 - 257, 5, out);
        writer.write(self.distances as u64 - 1, 5, out);
        writer.write(self.told as u64 - 4, 4, out);
        for symbol in &RUN_ORDER[..self.told] {
            writer.write(u64::from(self.codes.lengths[*symbol]), 3, out);
        }
        for (symbol, value, bits) in &self.runs {
            let (code, length) = unpack(self.codes.packed[usize::from(*symbol)]);
            writer.write(code | u64::from(*value) << length, length + u32::from(*bits), out);
        }
    }
}

/// Code lengths as run symbols: 16 repeats the previous length, 17 and 18 mean zeros.
fn runs<'l>(lengths: impl Iterator<Item = &'l u8>) -> Vec<(u8, u8, u8)> {
    let mut runs = Vec::with_capacity(LITERAL_SYMBOLS + DISTANCE_SYMBOLS);
    let mut lengths = lengths.peekable();
    while let Some(&length) = lengths.next() {
        let count_max = if length == 0 { 138 } else { 7 };
        let mut count = 1;
        while count < count_max && lengths.next_if(|next| **next == length).is_some() {
            count += 1;
        }
        match (length, count) {
            (0, 11..) => runs.push((18, count - 11, 7)),
            (0, 3..) => runs.push((17, count - 3, 3)),
            (_, 4..) => runs.extend([(length, 0, 0), (16, count - 4, 2)]),
            _ => runs.extend(std::iter::repeat_n((length, 0, 0), usize::from(count))),
        }
    }
    runs
}

/// The bits of a packed code and their number.
#[inline(always)]
fn unpack(packed: u32) -> (u64, u32) {
    (u64::from(packed & ((1 << PACKED_LENGTH_SHIFT) - 1)), packed >> PACKED_LENGTH_SHIFT)
}

/// Writes the symbols of a block; the number of bits is known.
fn write_symbols(
    bytes: &[u8],
    found: &[Sequence],
    codes: &BlockCodes,
    cost_bits: u64,
    writer: &mut BitWriter,
    out: &mut Vec<u8>,
) {
    let lengths = length_codes(codes);
    let literals = &codes.literals.packed;
    let mut at = out.len();
    // An incomplete byte, and a word after the end.
    out.resize(at + cost_bits as usize / 8 + 17, 0);
    let mut bits = *writer;
    let mut rest = bytes;
    for sequence in found {
        let (before, behind) = rest.split_at(usize::from(sequence.literals));
        at = write_literals(before, literals, &mut bits, out, at);
        rest = &behind[usize::from(sequence.length)..];
        let (code, length) = unpack(lengths[usize::from(sequence.length)]);
        bits.push(code, length);
        let distance = u32::from(sequence.distance_less_one);
        let (symbol, open) = distance_symbol(distance);
        let (code, length) = unpack(codes.distances.packed[symbol]);
        bits.push(code, length);
        bits.push(u64::from(distance & ((1 << open) - 1)), open);
        at = bits.carry(out, at);
    }
    at = write_literals(rest, literals, &mut bits, out, at);
    let (code, length) = unpack(literals[END_OF_BLOCK]);
    bits.push(code, length);
    at = bits.carry(out, at);
    out.truncate(at);
    *writer = bits;
}

#[inline(always)]
fn write_literals(
    bytes: &[u8],
    codes: &[u32; LITERAL_SYMBOLS],
    bits: &mut BitWriter,
    out: &mut [u8],
    mut at: usize,
) -> usize {
    let (fours, rest) = bytes.as_chunks::<4>();
    for four in fours {
        for byte in four {
            let (code, length) = unpack(codes[usize::from(*byte)]);
            bits.push(code, length);
        }
        at = bits.carry(out, at);
    }
    for byte in rest {
        let (code, length) = unpack(codes[usize::from(*byte)]);
        bits.push(code, length);
    }
    bits.carry(out, at)
}

/// The code and the extra bits of every length, packed.
fn length_codes(codes: &BlockCodes) -> [u32; LENGTH_MAX + 1] {
    let mut table = [0; LENGTH_MAX + 1];
    for (length, slot) in table.iter_mut().enumerate().skip(usize::from(LENGTHS[0].0)) {
        let index = usize::from(LENGTH_INDEXES[length]);
        let (first, open) = LENGTHS[index];
        let packed = codes.literals.packed[END_OF_BLOCK + 1 + index];
        let behind = (length as u32 - u32::from(first)) << (packed >> PACKED_LENGTH_SHIFT);
        *slot = packed + behind + (u32::from(open) << PACKED_LENGTH_SHIFT);
    }
    table
}
