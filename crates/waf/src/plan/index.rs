//! Sets of small numbers.

/// A set of numbers below a fixed bound.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bits(Box<[u64]>);

impl Bits {
    /// An empty set, for numbers below `count`.
    pub fn none(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)].into())
    }

    /// Adds a number.
    pub fn set(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word |= 1 << (number % 64);
        }
    }

    /// Whether the set contains a number.
    pub fn has(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Adds all numbers of another set.
    pub fn add(&mut self, other: &Self) {
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}
