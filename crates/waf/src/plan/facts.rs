//! Which operators a text can match at all, found in one pass over it.

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};

use super::index::Bits;
use super::literals::{ByteSet, Needs};

/// What operators need of a text, by their numbers.
#[derive(Debug, Default)]
pub struct OperatorIndex {
    count: usize,
    /// Operators that need no literal.
    without_literal: Bits,
    /// All literals; of each, the operators that need it or one of its like.
    literals: Option<AhoCorasick>,
    of_literal: Vec<Box<[u16]>>,
    /// Each set of bytes, and the operators that need one of them.
    sets: Vec<(ByteSet, Bits)>,
    /// Operators that need more than so many bytes, by rising length.
    lengths: Vec<(usize, Bits)>,
}

/// What is known of a text.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Operators that may match.
    pub candidates: Bits,
}

impl OperatorIndex {
    /// Of operators with these needs; their numbers are their places.
    pub fn new(needs: &[Needs]) -> Result<Self, String> {
        let count = needs.len();
        let mut without_literal = Bits::none(count);
        let mut texts: Vec<&[u8]> = Vec::new();
        let mut of_literal: Vec<Vec<u16>> = Vec::new();
        let mut places = std::collections::HashMap::new();
        let mut sets: Vec<(ByteSet, Bits)> = Vec::new();
        let mut lengths: std::collections::BTreeMap<usize, Bits> = Default::default();
        for (number, need) in needs.iter().enumerate() {
            if need.literals.is_empty() {
                without_literal.set(number);
            }
            for literal in &need.literals {
                let place = *places.entry(&**literal).or_insert_with(|| {
                    texts.push(literal);
                    of_literal.push(Vec::new());
                    texts.len() - 1
                });
                of_literal[place].push(u16::try_from(number).map_err(|_| "too many operators")?);
            }
            for set in &need.sets {
                match sets.iter_mut().find(|(known, _)| known == set) {
                    Some((_, operators)) => operators.set(number),
                    None => {
                        let mut operators = Bits::none(count);
                        operators.set(number);
                        sets.push((*set, operators));
                    }
                }
            }
            if need.length_min > 0 {
                lengths.entry(need.length_min).or_insert_with(|| Bits::none(count)).set(number);
            }
        }
        let literals = if texts.is_empty() { None } else { Some(automaton(&texts)?) };
        Ok(Self {
            count,
            without_literal,
            literals,
            of_literal: of_literal.into_iter().map(Vec::into_boxed_slice).collect(),
            sets,
            lengths: lengths.into_iter().collect(),
        })
    }

    /// How many operators there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Looks at a text.
    pub fn look(&self, text: &[u8]) -> Facts {
        let mut candidates = self.without_literal.clone();
        if let Some(literals) = &self.literals {
            for found in literals.find_overlapping_iter(text) {
                for operator in &self.of_literal[found.pattern().as_usize()] {
                    candidates.set(usize::from(*operator));
                }
            }
        }
        for (length, operators) in self.lengths.iter().rev() {
            if *length <= text.len() {
                break;
            }
            candidates.remove(operators);
        }
        let mut present = [0u64; 4];
        for byte in text {
            present[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
        for (set, operators) in &self.sets {
            if set.iter().zip(&present).all(|(set, present)| set & present == 0) {
                candidates.remove(operators);
            }
        }
        Facts { candidates }
    }
}

fn automaton(texts: &[&[u8]]) -> Result<AhoCorasick, String> {
    AhoCorasickBuilder::new()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(texts)
        .map_err(|error| format!("the literals of the rules cannot be searched for: {error}"))
}
