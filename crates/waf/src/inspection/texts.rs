//! The texts of a request, and what transformations make of them.
//!
//! Each text has a number. What a transformation makes of one is looked up before it is computed, so rules that begin with the same transformations
//! share them; one that leaves a text as it is costs a look.

use crate::plan::{Facts, OperatorIndex};
use crate::transformation::Transformation;

/// The number of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(u32);

#[derive(Debug, Clone)]
struct Text {
    start: usize,
    length: usize,
    /// What each transformation makes of it; 0: it has not been asked. One more than the text's number.
    made: [u32; Transformation::COUNT],
    /// One more than the place of its facts; 0: it has not been looked at.
    facts: u32,
}

/// All of them.
#[derive(Debug)]
pub struct Texts {
    bytes: Vec<u8>,
    texts: Vec<Text>,
    facts: Vec<Facts>,
    /// What a transformation writes to.
    output: Vec<u8>,
    /// Bytes that were looked at, for whatever reason.
    work_bytes: u64,
}

impl Texts {
    /// None but the empty one.
    pub fn new() -> Self {
        let mut texts = Self {
            bytes: Vec::with_capacity(2_048),
            texts: Vec::with_capacity(64),
            facts: Vec::new(),
            output: Vec::new(),
            work_bytes: 0,
        };
        texts.add(b"");
        texts
    }

    /// The empty one.
    pub const EMPTY: TextId = TextId(0);

    /// A new one.
    pub fn add(&mut self, bytes: &[u8]) -> TextId {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.push(start)
    }

    fn push(&mut self, start: usize) -> TextId {
        let id = TextId(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        let length = self.bytes.len() - start;
        self.texts.push(Text { start, length, made: [0; Transformation::COUNT], facts: 0 });
        id
    }

    /// Its bytes.
    pub fn get(&self, id: TextId) -> &[u8] {
        self.texts
            .get(id.0 as usize)
            .map_or(&[], |text| &self.bytes[text.start..text.start + text.length])
    }

    /// What a list of transformations makes of it.
    pub fn transformed(&mut self, id: TextId, steps: &[Transformation]) -> TextId {
        steps.iter().fold(id, |id, step| self.transformed_once(id, *step))
    }

    /// What one transformation makes of it.
    pub fn transformed_once(&mut self, id: TextId, step: Transformation) -> TextId {
        let Some(text) = self.texts.get(id.0 as usize) else { return id };
        let known = text.made[step as usize];
        if known > 0 {
            return TextId(known - 1);
        }
        let range = text.start..text.start + text.length;
        self.work_bytes += text.length as u64;
        self.output.clear();
        // Some write what was there before, as `length` of `1`: that changes nothing.
        let before = &self.bytes[range];
        let made = if step.apply(before, &mut self.output) && self.output != before {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(&self.output);
            self.push(start)
        } else {
            id
        };
        if let Some(text) = self.texts.get_mut(id.0 as usize) {
            text.made[step as usize] = made.0 + 1;
        }
        made
    }

    /// Which operators may match it.
    pub fn facts(&mut self, id: TextId, operators: &OperatorIndex) -> &Facts {
        let place = self.texts.get(id.0 as usize).map_or(0, |text| text.facts);
        if place == 0 {
            let facts = operators.look(self.get(id));
            self.facts.push(facts);
            let place = self.facts.len();
            if let Some(text) = self.texts.get_mut(id.0 as usize) {
                self.work_bytes += text.length as u64;
                text.facts = u32::try_from(place).unwrap_or(u32::MAX);
            }
            return &self.facts[place - 1];
        }
        &self.facts[place as usize - 1]
    }

    /// Counts bytes that an operator looks at.
    pub fn count_work(&mut self, bytes: usize) {
        self.work_bytes += bytes as u64;
    }

    /// Bytes that were looked at so far.
    pub fn work_bytes(&self) -> u64 {
        self.work_bytes
    }
}
