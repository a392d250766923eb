//! An index that finds, in one pass over a text, the operators that may match it.

use super::few_literals::FewLiterals;
use super::grams::{Grams, LITERAL_BYTES_MIN, PADDING_BYTES};
use super::literals::{ByteSet, PatternNeeds};

/// Bytes that most texts lack: control characters except line breaks, and characters of languages used in attacks. For texts
/// without these bytes, the needs of patterns are stricter, and patterns that need one of the bytes cannot match.
const KINDS: [&[u8]; 3] = [
    b"!\"#$&'()*;<>?[\\]^`{|}~\0\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x7f",
    // Some of these bytes occur in prose.
    b"#$*<>[\\]^`{|}~\0\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x7f",
    b"",
];

/// The needs of operators for texts of one kind, by operator number.
#[derive(Debug)]
struct Kind {
    /// The bytes that texts of this kind lack.
    absent: ByteSet,
    /// The operators that need no literal and no byte, one bit each.
    always: Box<[u64]>,
    /// The operators that need no literal, but a byte of a set.
    by_byte: ByByte,
    /// A quick test for the literals of request operators; `None`: they do not qualify for it.
    few: Option<FewLiterals>,
    /// The literals of request operators (`grams`) and of response operators (`late_grams`).
    grams: Grams,
    late_grams: Grams,
    needs: Box<[OtherNeeds]>,
}

/// Number of words of a row that are combined at a time.
const ROW_BLOCK_WORDS: usize = 4;

/// The operators that need a byte of a set.
#[derive(Debug, Default)]
struct ByByte {
    operators: Vec<u16>,
    /// The bytes that at least one of the operators needs.
    needed: ByteSet,
    /// For each byte, the operators that need it, one bit each.
    rows: Box<[u64]>,
}

/// The needs of an operator, except literals.
#[derive(Debug, Clone, Default)]
struct OtherNeeds {
    length_min: usize,
    /// The smallest set of bytes, one of which must be in the text. It stands here because most texts fail on it.
    set: Option<ByteSet>,
    /// Further sets.
    sets: Box<[ByteSet]>,
}

/// The needs of an operator for texts of each kind; `None`: it matches no text of this kind.
pub type NeedsByKind = Vec<Option<PatternNeeds>>;

/// The needs of an operator.
#[derive(Debug, Clone)]
pub struct OperatorNeeds {
    pub by_kind: NeedsByKind,
    /// Whether only response rules use the operator.
    pub is_late: bool,
}

/// The operators in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Operators of request rules.
    Request,
    /// All operators.
    Response,
}

/// An index of operators by their needs.
#[derive(Debug, Default)]
pub struct OperatorIndex {
    /// The operators in the index, one bit each.
    known: Box<[u64]>,
    kinds: Vec<Kind>,
    /// The length of the shortest text that an operator of the index may match.
    length_min: usize,
}

/// The bytes that texts of each kind lack. The needs of operators have the same order.
pub fn kinds() -> impl Iterator<Item = ByteSet> {
    KINDS.iter().map(|bytes| {
        let mut set = [0; 4];
        bytes.iter().for_each(|byte| set[usize::from(byte >> 6)] |= 1 << (byte & 63));
        set
    })
}

impl OperatorIndex {
    /// An index of the operators in `known`. The number of an operator is its position in `operators`.
    pub fn new(operators: &[OperatorNeeds], known: Box<[u64]>) -> Self {
        let of_kind =
            |(number, absent): (usize, ByteSet)| Kind::new(absent, number, operators, &known);
        let kinds = kinds().enumerate().map(of_kind).collect();
        let lengths = (0u16..).zip(operators).filter(|(number, _)| has_bit(&known, *number));
        let needs = lengths.flat_map(|(_, operator)| operator.by_kind.iter().flatten());
        let length_min = needs.map(|needs| needs.length_min).min().unwrap_or(usize::MAX);
        Self { known, kinds, length_min }
    }

    /// The length of the shortest text that an operator of the index may match.
    pub fn length_min(&self) -> usize {
        self.length_min
    }

    /// Whether the index contains all of these operators. One bit for each operator.
    pub fn has(&self, operators: &[u64]) -> bool {
        operators.iter().zip(&self.known).all(|(word, known)| word & !known == 0)
    }

    /// Sets in `operators` the bits of the wanted operators that may match a text. The text is in lower case, and
    /// [`PADDING_BYTES`] bytes follow it. Its original case does not affect the result. Both rows may end before the last
    /// operator of the index.
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
                rests.push(OtherNeeds::default());
                continue;
            };
            let sets: Box<[ByteSet]> = needs.sets.iter().map(lower).collect();
            let shortest = needs.literals.iter().map(|literal| literal.len()).min();
            if shortest.is_some_and(|length| length >= LITERAL_BYTES_MIN) {
                let literals = &mut literals[usize::from(operator.is_late)];
                literals.extend(needs.literals.iter().map(|literal| (&**literal, number)));
            } else if let Some(set) = sets.first() {
                // The first set is the smallest.
                by_set.push((number, *set));
            } else {
                set_bit(&mut always, number);
            }
            let (set, sets) = match sets.split_first() {
                Some((set, rest)) => (Some(*set), rest.into()),
                None => (None, sets),
            };
            rests.push(OtherNeeds { length_min: needs.length_min, set, sets });
        }
        Self {
            absent,
            always: always.into(),
            by_byte: ByByte::new(&by_set),
            few: FewLiterals::new(&literals[0]),
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
        operators.iter_mut().zip(&self.always).for_each(|(word, always)| *word = *always);
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

    /// Sets the bits of the operators that need a byte of the text.
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

impl OtherNeeds {
    fn is_met(&self, length: usize, present: &ByteSet) -> bool {
        let has = |set: &ByteSet| set.iter().zip(present).any(|(set, there)| set & there != 0);
        length >= self.length_min && self.set.as_ref().is_none_or(has) && self.sets.iter().all(has)
    }
}

/// The bytes in a set.
fn bytes_of(set: &ByteSet) -> impl Iterator<Item = u8> {
    (0u8..4)
        .zip(*set)
        .flat_map(|(index, word)| bits_of(word).map(move |bit| index << 6 | bit as u8))
}

/// The positions of the set bits in a word.
fn bits_of(mut word: u64) -> impl Iterator<Item = u16> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as u16)?;
        word &= word - 1;
        Some(bit)
    })
}

/// The numbers of the set bits in a row.
pub fn bits_of_row(row: &[u64]) -> impl Iterator<Item = u16> {
    (0u16..).zip(row).flat_map(|(index, word)| bits_of(*word).map(move |bit| index * 64 + bit))
}

/// The set of bytes in a text.
fn present(text: &[u8]) -> ByteSet {
    // Flags are bytes instead of bits, so that a store does not wait for the previous store.
    let mut seen = [0u8; 256];
    text.iter().for_each(|byte| seen[usize::from(*byte)] = 1);
    let mut set = [0; 4];
    for (word, seen) in set.iter_mut().zip(seen.as_chunks::<64>().0) {
        for (at, seen) in seen.as_chunks::<8>().0.iter().enumerate() {
            // The multiplication collects the lowest bits of eight bytes in the highest byte.
            let gathered = u64::from_le_bytes(*seen).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            *word |= gathered << (8 * at);
        }
    }
    set
}

/// The set with all letters converted to lower case.
fn lower(set: &ByteSet) -> ByteSet {
    let mut lower = [0; 4];
    for byte in bytes_of(set).map(|byte| byte.to_ascii_lowercase()) {
        lower[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    lower
}

/// Number of words in a row for this number of operators, rounded up to a multiple of [`ROW_BLOCK_WORDS`].
pub fn row_words(operators: usize) -> usize {
    operators.div_ceil(64).next_multiple_of(ROW_BLOCK_WORDS)
}

/// Adds the operators in another row of the same length.
pub fn add_row(row: &mut [u64], more: &[u64]) {
    let blocks = row.as_chunks_mut::<ROW_BLOCK_WORDS>().0.iter_mut();
    for (row, more) in blocks.zip(more.as_chunks::<ROW_BLOCK_WORDS>().0) {
        row.iter_mut().zip(more).for_each(|(word, more)| *word |= more);
    }
}

/// Whether an operator's bit is set in a row.
pub fn has_bit(row: &[u64], operator: u16) -> bool {
    row.get(usize::from(operator / 64)).is_some_and(|word| word >> (operator % 64) & 1 == 1)
}

/// Sets an operator's bit in a row.
pub fn set_bit(row: &mut [u64], operator: u16) {
    if let Some(word) = row.get_mut(usize::from(operator / 64)) {
        *word |= 1 << (operator % 64);
    }
}

/// Clears an operator's bit in a row.
pub fn clear_bit(row: &mut [u64], operator: u16) {
    if let Some(word) = row.get_mut(usize::from(operator / 64)) {
        *word &= !(1 << (operator % 64));
    }
}

#[cfg(test)]
mod tests;
