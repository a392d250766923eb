//! Which operators a text can match at all, found in one pass over it.

use super::few::Few;
use super::grams::{Grams, LITERAL_BYTES_MIN, PADDING_BYTES};
use super::literals::{ByteSet, Needs};

/// Bytes that most texts have none of: control characters but those of lines, and signs of the languages that attacks are written in. For a text without
/// them the patterns are narrower; those that need one of them match nothing.
const KINDS: [&[u8]; 3] = [
    b"!\"#$&'()*;<>?[\\]^`{|}~\0\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x7f",
    // Prose has some of them.
    b"#$*<>[\\]^`{|}~\0\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x7f",
    b"",
];

/// What operators need of texts of one kind, by their numbers.
#[derive(Debug)]
struct Kind {
    /// Bytes that a text of this kind has none of.
    absent: ByteSet,
    /// Operators that need neither a literal nor a byte, a bit each.
    always: Box<[u64]>,
    /// Those that need a byte of a set and no literal.
    by_byte: ByByte,
    /// Literals of operators, and of those that are asked for behind the request.
    few: Option<Few>,
    grams: Grams,
    late_grams: Grams,
    needs: Box<[Rest]>,
}

/// Words of rows are put together so many at once.
const ROW_BLOCK_WORDS: usize = 4;

/// Operators that need a byte.
#[derive(Debug, Default)]
struct ByByte {
    operators: Vec<u16>,
    /// Bytes that one of them needs.
    needed: ByteSet,
    /// For each byte, a bit for each of them.
    rows: Box<[u64]>,
}

/// What an operator needs beside a literal.
#[derive(Debug, Clone, Default)]
struct Rest {
    length_min: usize,
    sets: Box<[ByteSet]>,
}

/// What an operator needs of texts of each kind. `None`: it matches none of that kind.
pub type NeedsByKind = Vec<Option<Needs>>;

/// What an operator needs of a text.
#[derive(Debug, Clone)]
pub struct OperatorNeeds {
    pub by_kind: NeedsByKind,
    /// Whether it is asked for behind the request only.
    pub is_late: bool,
}

/// Which operators are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Those of rules that look at the request.
    Request,
    /// All.
    Response,
}

/// What operators need of texts.
#[derive(Debug, Default)]
pub struct OperatorIndex {
    /// Which are in it, a bit each.
    known: Box<[u64]>,
    kinds: Vec<Kind>,
    /// Bytes of the shortest text that one of them may match.
    length_min: usize,
}

/// The bytes of which texts of each kind have none: what operators need is told for each.
pub fn kinds() -> impl Iterator<Item = ByteSet> {
    KINDS.iter().map(|bytes| {
        let mut set = [0; 4];
        bytes.iter().for_each(|byte| set[usize::from(byte >> 6)] |= 1 << (byte & 63));
        set
    })
}

impl OperatorIndex {
    /// Of those of all operators that are known, a bit each; their numbers are their places.
    pub fn new(operators: &[OperatorNeeds], known: Box<[u64]>) -> Self {
        let of_kind =
            |(number, absent): (usize, ByteSet)| Kind::new(absent, number, operators, &known);
        let kinds = kinds().enumerate().map(of_kind).collect();
        let lengths = (0u16..).zip(operators).filter(|(number, _)| has_bit(&known, *number));
        let needs = lengths.flat_map(|(_, operator)| operator.by_kind.iter().flatten());
        let length_min = needs.map(|needs| needs.length_min).min().unwrap_or(usize::MAX);
        Self { known, kinds, length_min }
    }

    /// Bytes of the shortest text that one of its operators may match.
    pub fn length_min(&self) -> usize {
        self.length_min
    }

    /// Whether all of these operators, a bit each, are in it.
    pub fn has(&self, operators: &[u64]) -> bool {
        operators.iter().zip(&self.known).all(|(word, known)| word & !known == 0)
    }

    /// Puts into `operators`, a bit each, those of the wanted ones that may match a text. It is given in lower case, with [`PADDING_BYTES`] more behind it: in whatever
    /// case it is, it comes to the same.
    pub fn look(&self, padded: &[u8], stage: Stage, wanted: &[u64], operators: &mut [u64]) {
        let text = &padded[..padded.len().saturating_sub(PADDING_BYTES)];
        let present = present(text);
        let is_of = |kind: &&Kind| {
            kind.absent.iter().zip(&present).all(|(set, present)| set & present == 0)
        };
        if let Some(kind) = self.kinds.iter().find(is_of) {
            kind.look(padded, &present, stage, wanted, operators);
        }
    }
}

impl Kind {
    fn new(absent: ByteSet, kind: usize, operators: &[OperatorNeeds], known: &[u64]) -> Self {
        let mut always = vec![0; known.len()];
        let mut by_set = Vec::new();
        let mut literals: [Vec<(&[u8], u16)>; 2] = Default::default();
        let mut rests = Vec::with_capacity(operators.len());
        for (number, operator) in (0u16..).zip(operators) {
            let needs = operator.by_kind.get(kind).and_then(Option::as_ref);
            let Some(needs) = needs.filter(|_| has_bit(known, number)) else {
                rests.push(Rest::default());
                continue;
            };
            let sets: Box<[ByteSet]> = needs.sets.iter().map(lower).collect();
            let shortest = needs.literals.iter().map(|literal| literal.len()).min();
            if shortest.is_some_and(|length| length >= LITERAL_BYTES_MIN) {
                let literals = &mut literals[usize::from(operator.is_late)];
                literals.extend(needs.literals.iter().map(|literal| (&**literal, number)));
            } else if let Some(set) = sets.first() {
                // The smallest of them.
                by_set.push((number, *set));
            } else {
                set_bit(&mut always, number);
            }
            rests.push(Rest { length_min: needs.length_min, sets });
        }
        Self {
            absent,
            always: always.into(),
            by_byte: ByByte::new(&by_set),
            few: Few::new(&literals[0]),
            grams: Grams::new(&literals[0]),
            late_grams: Grams::new(&literals[1]),
            needs: rests.into(),
        }
    }

    fn look(
        &self,
        padded: &[u8],
        present: &ByteSet,
        stage: Stage,
        wanted: &[u64],
        operators: &mut [u64],
    ) {
        let length = padded.len().saturating_sub(PADDING_BYTES);
        operators.copy_from_slice(&self.always);
        self.by_byte.find(present, operators);
        let text = padded.get(..length).unwrap_or_default();
        if self.few.as_ref().is_none_or(|few| few.may_be_in(text)) {
            self.grams.find(padded, |operator| set_bit(operators, operator));
        }
        if stage == Stage::Response {
            self.late_grams.find(padded, |operator| set_bit(operators, operator));
        }
        for (index, (word, wanted)) in operators.iter_mut().zip(wanted).enumerate() {
            *word &= wanted;
            for bit in bits_of(*word) {
                let rest = self.needs.get(index * 64 + usize::from(bit));
                if !rest.is_some_and(|rest| rest.is_met(length, present)) {
                    *word &= !(1 << bit);
                }
            }
        }
    }
}

impl ByByte {
    fn new(by_set: &[(u16, ByteSet)]) -> Self {
        let words = by_set.len().div_ceil(64);
        let (mut needed, mut rows) = ([0; 4], vec![0; 256 * words]);
        for (at, (_, set)) in by_set.iter().enumerate() {
            needed.iter_mut().zip(set).for_each(|(word, more)| *word |= more);
            for byte in bytes_of(set) {
                rows[usize::from(byte) * words + at / 64] |= 1 << (at % 64);
            }
        }
        let operators = by_set.iter().map(|(operator, _)| *operator).collect();
        Self { operators, needed, rows: rows.into() }
    }

    /// Marks those of which a byte is there.
    fn find(&self, present: &ByteSet, row: &mut [u64]) {
        let words = self.operators.len().div_ceil(64);
        let there: ByteSet = std::array::from_fn(|word| self.needed[word] & present[word]);
        for (word, operators) in self.operators.chunks(64).enumerate() {
            let masks =
                bytes_of(&there).map(|byte| self.rows.get(usize::from(byte) * words + word));
            let found = masks.flatten().fold(0, |found, mask| found | mask);
            for bit in bits_of(found) {
                operators.get(usize::from(bit)).into_iter().for_each(|it| set_bit(row, *it));
            }
        }
    }
}

impl Rest {
    fn is_met(&self, length: usize, present: &ByteSet) -> bool {
        let has = |set: &ByteSet| set.iter().zip(present).any(|(set, there)| set & there != 0);
        length >= self.length_min && self.sets.iter().all(has)
    }
}

/// The bytes of a set.
fn bytes_of(set: &ByteSet) -> impl Iterator<Item = u8> {
    (0u8..4)
        .zip(*set)
        .flat_map(|(index, word)| bits_of(word).map(move |bit| index << 6 | bit as u8))
}

/// The places of the bits of a word.
fn bits_of(mut word: u64) -> impl Iterator<Item = u16> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as u16)?;
        word &= word - 1;
        Some(bit)
    })
}

/// The numbers in a row of bits.
pub fn bits_of_row(row: &[u64]) -> impl Iterator<Item = u16> {
    (0u16..).zip(row).flat_map(|(index, word)| bits_of(*word).map(move |bit| index * 64 + bit))
}

/// The bytes that a text has in it.
fn present(text: &[u8]) -> ByteSet {
    // Marks, not bits: one store does not wait for the one before.
    let mut seen = [0u8; 256];
    text.iter().for_each(|byte| seen[usize::from(*byte)] = 1);
    let mut set = [0; 4];
    for (word, seen) in set.iter_mut().zip(seen.as_chunks::<64>().0) {
        for (at, seen) in seen.as_chunks::<8>().0.iter().enumerate() {
            // The product gathers the lowest bits of eight bytes in its highest byte.
            let gathered = u64::from_le_bytes(*seen).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            *word |= gathered << (8 * at);
        }
    }
    set
}

/// The set with letters in lower case.
fn lower(set: &ByteSet) -> ByteSet {
    let mut lower = [0; 4];
    for byte in bytes_of(set).map(|byte| byte.to_ascii_lowercase()) {
        lower[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    lower
}

/// How many words a row of so many operators has: whole [`ROW_BLOCK_WORDS`].
pub fn row_words(operators: usize) -> usize {
    operators.div_ceil(64).next_multiple_of(ROW_BLOCK_WORDS)
}

/// Puts operators of another row into a row as long.
pub fn add_row(row: &mut [u64], more: &[u64]) {
    let blocks = row.as_chunks_mut::<ROW_BLOCK_WORDS>().0.iter_mut();
    for (row, more) in blocks.zip(more.as_chunks::<ROW_BLOCK_WORDS>().0) {
        row.iter_mut().zip(more).for_each(|(word, more)| *word |= more);
    }
}

/// Whether an operator is in a row of bits.
pub fn has_bit(row: &[u64], operator: u16) -> bool {
    row.get(usize::from(operator / 64)).is_some_and(|word| word >> (operator % 64) & 1 == 1)
}

/// Puts an operator into a row of bits.
pub fn set_bit(row: &mut [u64], operator: u16) {
    if let Some(word) = row.get_mut(usize::from(operator / 64)) {
        *word |= 1 << (operator % 64);
    }
}

/// Takes an operator out of a row of bits.
pub fn clear_bit(row: &mut [u64], operator: u16) {
    if let Some(word) = row.get_mut(usize::from(operator / 64)) {
        *word &= !(1 << (operator % 64));
    }
}

#[cfg(test)]
mod tests;
