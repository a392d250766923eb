//! Which operators a text can match at all, found in one pass over it.

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
    /// Operators that need neither a literal nor a byte.
    always: Box<[u64]>,
    /// Bytes that operators need that need no literal, and for each byte a row of those.
    needed: ByteSet,
    by_byte: Box<[u64]>,
    /// Literals of operators, and of those that are asked for behind the request.
    grams: Grams,
    late_grams: Grams,
    needs: Box<[Rest]>,
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
    count: usize,
    kinds: Vec<Kind>,
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
    /// Of operators with these needs; their numbers are their places.
    pub fn new(operators: &[OperatorNeeds]) -> Self {
        let of_kind = |(number, absent): (usize, ByteSet)| Kind::new(absent, number, operators);
        Self { count: operators.len(), kinds: kinds().enumerate().map(of_kind).collect() }
    }

    /// How many words of bits the operators take.
    pub fn words(&self) -> usize {
        self.count.div_ceil(64)
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
    fn new(absent: ByteSet, kind: usize, operators: &[OperatorNeeds]) -> Self {
        let words = operators.len().div_ceil(64);
        let mut always = vec![0; words];
        let (mut needed, mut by_byte) = ([0; 4], vec![0; 256 * words]);
        let mut literals: [Vec<(&[u8], u16)>; 2] = Default::default();
        let mut rests = Vec::with_capacity(operators.len());
        for (number, operator) in (0u16..).zip(operators) {
            let Some(Some(needs)) = operator.by_kind.get(kind) else {
                rests.push(Rest::default());
                continue;
            };
            let sets: Box<[ByteSet]> = needs.sets.iter().map(lower).collect();
            let (word, bit) = (usize::from(number / 64), 1 << (number % 64));
            let shortest = needs.literals.iter().map(|literal| literal.len()).min();
            if shortest.is_some_and(|length| length >= LITERAL_BYTES_MIN) {
                let literals = &mut literals[usize::from(operator.is_late)];
                literals.extend(needs.literals.iter().map(|literal| (&**literal, number)));
            } else if let Some(set) = sets.first() {
                // The smallest of them.
                needed.iter_mut().zip(set).for_each(|(word, more)| *word |= more);
                bytes_of(set).for_each(|byte| by_byte[usize::from(byte) * words + word] |= bit);
            } else {
                always[word] |= bit;
            }
            rests.push(Rest { length_min: needs.length_min, sets });
        }
        Self {
            absent,
            always: always.into(),
            needed,
            by_byte: by_byte.into(),
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
        let needed = std::array::from_fn(|word| self.needed[word] & present[word]);
        for byte in bytes_of(&needed) {
            let row = self.by_byte.chunks_exact(operators.len()).nth(usize::from(byte));
            let row = row.unwrap_or_default();
            operators.iter_mut().zip(row).for_each(|(word, more)| *word |= more);
        }
        let mut found = |operator: u16| {
            if let Some(word) = operators.get_mut(usize::from(operator / 64)) {
                *word |= 1 << (operator % 64);
            }
        };
        self.grams.find(padded, &mut found);
        if stage == Stage::Response {
            self.late_grams.find(padded, &mut found);
        }
        for (index, (word, wanted)) in operators.iter_mut().zip(wanted).enumerate() {
            *word &= wanted;
            let mut left = *word;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let may = self.needs.get(index * 64 + bit as usize).is_some_and(|rest| {
                    let has = |set: &ByteSet| {
                        set.iter().zip(present).any(|(set, present)| set & present != 0)
                    };
                    length >= rest.length_min && rest.sets.iter().all(has)
                });
                if !may {
                    *word &= !(1 << bit);
                }
            }
        }
    }
}

/// The bytes of a set.
fn bytes_of(set: &ByteSet) -> impl Iterator<Item = u8> {
    (0u8..4).zip(*set).flat_map(|(index, mut word)| {
        std::iter::from_fn(move || {
            let bit = (word != 0).then(|| word.trailing_zeros() as u8)?;
            word &= word - 1;
            Some(index << 6 | bit)
        })
    })
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

/// The operators of a row of bits.
pub fn has(row: &[u64], operator: u16) -> bool {
    row.get(usize::from(operator / 64)).is_some_and(|word| word >> (operator % 64) & 1 == 1)
}

#[cfg(test)]
mod tests;
