//! The source of choices.

use weir_testing::Random;

/// A source of choices, such as the next event.
pub trait Choices {
    /// A number in `0..end`.
    fn below(&mut self, end: usize) -> usize;

    /// Whether there are no more choices.
    fn is_over(&self) -> bool {
        false
    }
}

impl Choices for Random {
    fn below(&mut self, end: usize) -> usize {
        Random::below(self, end)
    }
}

/// A fuzzer's input: a byte for each choice.
pub struct Bytes<'a>(pub &'a [u8]);

impl Choices for Bytes<'_> {
    fn below(&mut self, end: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first) % end
    }

    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

/// All sequences of a number of choices, one after another.
pub struct Sequences {
    /// The choices of the current sequence, each with its number of options.
    chosen: Vec<(usize, usize)>,
    /// The number of choices made in this run.
    made: usize,
    length_max: usize,
}

impl Sequences {
    /// Starts with the first sequence.
    pub fn new(length_max: usize) -> Self {
        Self { chosen: Vec::new(), made: 0, length_max }
    }

    /// Advances to the next sequence. False: there are no more.
    pub fn advance(&mut self) -> bool {
        self.made = 0;
        while let Some((choice, end)) = self.chosen.pop() {
            if choice + 1 < end {
                self.chosen.push((choice + 1, end));
                return true;
            }
        }
        false
    }
}

impl Choices for Sequences {
    fn below(&mut self, end: usize) -> usize {
        if self.made == self.chosen.len() {
            self.chosen.push((0, end));
        }
        let (choice, end_then) = self.chosen[self.made];
        assert_eq!(end, end_then, "the same beginning goes on alike");
        self.made += 1;
        choice
    }

    fn is_over(&self) -> bool {
        self.made == self.length_max
    }
}
