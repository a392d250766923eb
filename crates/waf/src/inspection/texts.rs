//! The texts of a request, and the results of their transformations.
//!
//! Each text has a number. The result of a transformation is looked up before it is computed, so rules with the same first
//! transformations share it. A transformation that leaves a text unchanged only takes a lookup.

use super::report::Counts;
use crate::hash::hash;
use crate::plan::{PADDING_BYTES, Pipeline, ScopeId, Stage, View};
use crate::transformation::{Steps, Transformation};

/// The number of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(u32);

impl TextId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of the facts about a text: the operators that may match it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactsId(u32);

impl FactsId {
    /// The facts about a text that no operator may match.
    pub const NOTHING: Self = Self(0);
}

#[derive(Debug, Clone, Copy)]
struct Text {
    start: usize,
    length: usize,
    /// The lower half of the hash of its bytes.
    hash: u32,
    /// The transformations that may change the text.
    may_change: Steps,
    /// One plus the index of the last result derived from the text; 0: no result.
    made: u32,
    /// One plus the number of the text's facts; 0: not analysed.
    facts: u32,
    /// The scope of the operators that the facts cover.
    scope: ScopeId,
    /// A text that differs only in case, or the text itself.
    like: TextId,
    /// Whether the facts are valid only for texts with the same case.
    is_exact: bool,
}

/// The result of a transformation of a text.
#[derive(Debug, Clone, Copy)]
struct TransformedText {
    step: Transformation,
    text: TextId,
    /// One plus the index of the result that was previously derived from the same text; 0: no result.
    before: u32,
}

/// Maximum number of slots in the hash table that are tried for a text.
const PLACES_MAX: usize = 8;

/// All texts of a request.
#[derive(Debug)]
pub struct Texts {
    bytes: Vec<u8>,
    texts: Vec<Text>,
    made: Vec<TransformedText>,
    /// The hash table of texts: one plus the number of each text. Equal bytes are one text; but if all tried slots are in
    /// use, equal bytes may become two texts.
    places: Vec<u32>,
    /// The rows of operators: one row without operators, then one row for each analysed text.
    facts: Vec<u64>,
    facts_count: u32,
    /// The number of analysed texts.
    looked_at: usize,
    /// The operators in use.
    stage: Stage,
    /// A buffer for the output of transformations, and for lower-case copies.
    output: Vec<u8>,
    /// The number of inspected bytes, for all purposes.
    work_bytes: u64,
    /// Those that operators have inspected.
    compared_bytes: u64,
    /// The number of bytes of the texts that were known before.
    known_bytes: usize,
}

impl Texts {
    /// A collection that contains only the empty text.
    pub fn new() -> Self {
        let mut texts = Self {
            bytes: Vec::with_capacity(8_192),
            texts: Vec::with_capacity(256),
            made: Vec::with_capacity(128),
            places: vec![0; 1_024],
            facts: Vec::with_capacity(1_024),
            facts_count: 0,
            looked_at: 0,
            stage: Stage::Request,
            output: Vec::new(),
            work_bytes: 0,
            compared_bytes: 0,
            known_bytes: 0,
        };
        texts.add(b"");
        texts
    }

    /// A copy of these texts, with capacity for the other texts of a request.
    pub fn copy(&self) -> Self {
        fn copied<T: Copy>(all: &[T], room: usize) -> Vec<T> {
            let mut copy = Vec::with_capacity(all.len() + room);
            copy.extend_from_slice(all);
            copy
        }
        Self {
            bytes: copied(&self.bytes, 8_192),
            texts: copied(&self.texts, 256),
            made: copied(&self.made, 128),
            places: self.places.clone(),
            facts: copied(&self.facts, 1_024),
            facts_count: self.facts_count,
            looked_at: 0,
            stage: self.stage,
            output: Vec::new(),
            work_bytes: 0,
            compared_bytes: 0,
            known_bytes: self.bytes.len(),
        }
    }

    /// The number of bytes of the texts that were not known before.
    pub fn own_bytes(&self) -> usize {
        self.bytes.len() - self.known_bytes
    }

    /// Whether a text with these bytes exists.
    pub fn has(&self, bytes: &[u8]) -> bool {
        let taken =
            self.places_of(hash(bytes) as u32).map_while(|at| self.places[at].checked_sub(1));
        taken.into_iter().any(|id| self.get(TextId(id)) == bytes)
    }

    /// The number of texts, and the number of their bytes.
    pub fn total(&self) -> (usize, usize) {
        (self.texts.len(), self.bytes.len())
    }

    /// Adds a common text, the results of all pipelines, and the operators that match these texts. Returns `false` if there
    /// are more than `made_max` results.
    pub fn learn(&mut self, bytes: &[u8], view: &View, made_max: usize) -> bool {
        let first = self.texts.len();
        let id = self.add(bytes);
        for pipeline in &view.rules.pipelines {
            self.transformed(id, pipeline);
        }
        if self.texts.len() > first + 1 + made_max {
            return false;
        }
        for new in first..self.texts.len() {
            self.look_closely(TextId(new as u32), view);
        }
        true
    }

    /// Determines the operators that match a text by evaluating those that may match it. Backtracking patterns may need much
    /// time, so they are not evaluated and remain in the result.
    fn look_closely(&mut self, id: TextId, view: &View) {
        let Some(text) = self.texts.get_mut(id.0 as usize) else { return };
        // The text needs a row of its own, because the evaluated operators distinguish case.
        (text.like, text.is_exact) = (id, true);
        let FactsId(facts) = self.look_at(id, ScopeId::ALL, view);
        let words = view.row_words();
        let from = facts as usize * words;
        let Some(text) = self.texts.get(id.0 as usize) else { return };
        let bytes = &self.bytes[text.start..text.start + text.length];
        let Some(row) = self.facts.get_mut(from..from + words) else { return };
        view.keep_matching(bytes, row);
    }

    /// The empty text.
    pub const EMPTY: TextId = TextId(0);

    /// The text with these bytes. It is added if it does not exist.
    pub fn add(&mut self, bytes: &[u8]) -> TextId {
        self.add_with(bytes, || Steps::that_may_change(bytes))
    }

    /// Like [`Self::add`], with the transformations that may change the text.
    fn add_with(&mut self, bytes: &[u8], may_change: impl FnOnce() -> Steps) -> TextId {
        let hash = hash(bytes) as u32;
        let mut free = None;
        for at in self.places_of(hash) {
            let Some(taken) = self.places[at].checked_sub(1) else {
                free = Some(at);
                break;
            };
            let text = self.texts.get(taken as usize);
            if text.is_some_and(|text| text.hash == hash) && self.get(TextId(taken)) == bytes {
                return TextId(taken);
            }
        }
        let id = TextId(u32::try_from(self.texts.len()).unwrap_or(u32::MAX - 1));
        if let Some(at) = free {
            self.places[at] = id.0 + 1;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.texts.push(Text {
            start,
            length: bytes.len(),
            hash,
            may_change: may_change(),
            made: 0,
            facts: 0,
            scope: ScopeId::ALL,
            like: id,
            is_exact: false,
        });
        if self.texts.len() * 2 > self.places.len() {
            self.grow();
        }
        id
    }

    /// Enlarges the hash table.
    fn grow(&mut self) {
        self.places = vec![0; self.places.len() * 4];
        for (number, text) in (1u32..).zip(&self.texts) {
            let mut tried = self.places_of(text.hash);
            if let Some(at) = tried.find(|at| self.places[*at] == 0) {
                self.places[at] = number;
            }
        }
    }

    /// The slots that are tried for texts with this hash.
    fn places_of(&self, hash: u32) -> impl Iterator<Item = usize> + use<> {
        let mask = self.places.len() - 1;
        (0..PLACES_MAX).map(move |offset| (hash as usize).wrapping_add(offset) & mask)
    }

    /// The bytes of a text.
    pub fn get(&self, id: TextId) -> &[u8] {
        self.texts
            .get(id.0 as usize)
            .map_or(&[], |text| &self.bytes[text.start..text.start + text.length])
    }

    /// The transformations that may change a text.
    pub fn may_change(&self, id: TextId) -> Steps {
        self.texts.get(id.0 as usize).map_or(Steps::default(), |text| text.may_change)
    }

    /// Applies a pipeline to a text.
    pub fn transformed(&mut self, id: TextId, pipeline: &Pipeline) -> TextId {
        match self.texts.get(id.0 as usize) {
            Some(text) if text.may_change.is_disjoint(pipeline.set) => id,
            _ => pipeline.steps.iter().fold(id, |id, step| self.transformed_once(id, *step)),
        }
    }

    /// Applies one transformation to a text.
    pub fn transformed_once(&mut self, id: TextId, step: Transformation) -> TextId {
        let Some(text) = self.texts.get(id.0 as usize) else { return id };
        if !text.may_change.has(step) {
            return id;
        }
        let mut at = text.made;
        while let Some(made) = (at as usize).checked_sub(1).and_then(|at| self.made.get(at)) {
            if made.step == step {
                return made.text;
            }
            at = made.before;
        }
        self.work_bytes += text.length as u64;
        let range = text.start..text.start + text.length;
        let (before, like, may_change) = (text.made, text.like, text.may_change);
        let mut output = std::mem::take(&mut self.output);
        output.clear();
        let own = &self.bytes[range];
        // The result of a transformation may equal the text, such as `length` of `1`. The text is then unchanged.
        let is_changed = step.apply(own, &mut output) && output != own;
        if !is_changed {
            self.output = output;
            if let Some(text) = self.texts.get_mut(id.0 as usize) {
                text.may_change = text.may_change.without(step);
            }
            return id;
        }
        let made = match step {
            // Only `uppercase` and transformations that may change the original text can change the result.
            Transformation::Lowercase => self.add_with(&output, || may_change.of_lowercase()),
            _ => self.add(&output),
        };
        self.output = output;
        self.made.push(TransformedText { step, text: made, before });
        let place = u32::try_from(self.made.len()).unwrap_or(u32::MAX);
        if let Some(text) = self.texts.get_mut(id.0 as usize) {
            text.made = place;
        }
        if matches!(step, Transformation::Lowercase | Transformation::Uppercase)
            && let Some(text) = self.texts.get_mut(made.0 as usize)
            && text.like == made
        {
            text.like = like;
        }
        made
    }

    /// The operators of a scope that may match a text.
    pub fn facts(&mut self, id: TextId, scope: ScopeId, view: &View) -> FactsId {
        match self.known(id, scope) {
            Some(facts) => facts,
            None => self.look_at_like(id, scope, view),
        }
    }

    /// The facts about a text; `None`: it was not analysed for this scope.
    pub fn known(&self, id: TextId, scope: ScopeId) -> Option<FactsId> {
        let text = self.texts.get(id.0 as usize)?;
        let facts = text.facts.checked_sub(1)?;
        text.scope.covers(scope).then_some(FactsId(facts))
    }

    /// Analyses a text, or a text that differs only in case, because the needs of operators ignore case. A text that was
    /// already analysed for another scope is analysed for all operators.
    #[inline(never)]
    fn look_at_like(&mut self, id: TextId, scope: ScopeId, view: &View) -> FactsId {
        let like = self.texts.get(id.0 as usize).map_or(id, |text| text.like);
        let is_exact = self.texts.get(like.0 as usize).is_some_and(|like| like.is_exact);
        let like = if is_exact { id } else { like };
        let was_looked_at = [id, like]
            .iter()
            .any(|id| self.texts.get(id.0 as usize).is_some_and(|it| it.facts > 0));
        let facts = match self.known(like, scope) {
            Some(facts) => facts,
            None if was_looked_at => self.look_at(like, ScopeId::ALL, view),
            None => self.look_at(like, scope, view),
        };
        let scope = self.texts.get(like.0 as usize).map_or(scope, |like| like.scope);
        if let Some(text) = self.texts.get_mut(id.0 as usize) {
            (text.facts, text.scope) = (facts.0 + 1, scope);
        }
        facts
    }

    fn look_at(&mut self, id: TextId, scope: ScopeId, view: &View) -> FactsId {
        let Some(text) = self.texts.get_mut(id.0 as usize) else { return FactsId::NOTHING };
        if self.facts.is_empty() {
            self.facts.resize(view.row_words(), 0);
            self.facts_count = 1;
        }
        if text.length < view.length_min(scope) {
            (text.facts, text.scope) = (FactsId::NOTHING.0 + 1, scope);
            return FactsId::NOTHING;
        }
        (text.facts, text.scope) = (self.facts_count + 1, scope);
        self.facts_count += 1;
        self.looked_at += 1;
        self.work_bytes += text.length as u64;
        self.output.clear();
        self.output.extend_from_slice(&self.bytes[text.start..text.start + text.length]);
        self.output.make_ascii_lowercase();
        self.output.extend_from_slice(&[0; PADDING_BYTES]);
        let from = self.facts.len();
        self.facts.resize(from + view.row_words(), 0);
        view.look(&self.output, self.stage, scope, &mut self.facts[from..]);
        FactsId(self.facts_count - 1)
    }

    /// Changes to a stage. Returns whether it is another stage; all facts are then dropped.
    pub fn enter(&mut self, stage: Stage) -> bool {
        let is_new = self.stage != stage;
        if is_new {
            self.stage = stage;
            self.facts.clear();
            self.facts_count = 0;
            self.texts.iter_mut().for_each(|text| text.facts = 0);
        }
        is_new
    }

    /// The operators that may match a text with these facts, one bit each.
    pub fn operators(&self, FactsId(facts): FactsId, view: &View) -> &[u64] {
        let (from, words) = (facts as usize * view.row_words(), view.row_words());
        self.facts.get(from..from + words).unwrap_or_default()
    }

    /// Whether an operator may match a text; true if the text was not analysed. If it was analysed, the scope must include
    /// the operator. `words`: the number of words in a row of operators.
    #[inline]
    pub fn may_match(&self, id: TextId, operator: u16, words: usize) -> bool {
        let facts = self.texts.get(id.0 as usize).and_then(|text| text.facts.checked_sub(1));
        let place = facts.map(|facts| facts as usize * words + usize::from(operator / 64));
        let word = place.and_then(|place| self.facts.get(place));
        word.is_none_or(|word| word >> (operator % 64) & 1 == 1)
    }

    /// Counts bytes that are inspected.
    pub fn count_work(&mut self, bytes: usize) {
        self.work_bytes += bytes as u64;
    }

    /// Counts bytes that an operator inspects.
    pub fn count_compared(&mut self, bytes: usize) {
        self.work_bytes += bytes as u64;
        self.compared_bytes += bytes as u64;
    }

    /// The number of bytes that operators have inspected so far.
    pub fn compared_bytes(&self) -> u64 {
        self.compared_bytes
    }

    /// Does not count what operators have inspected since this number: they will inspect it again.
    pub fn uncount_compared(&mut self, before: u64) {
        self.work_bytes -= self.compared_bytes - before;
        self.compared_bytes = before;
    }

    /// The number of texts, transformations and analyses.
    pub fn counts(&self) -> Counts {
        Counts {
            texts: self.texts.len(),
            text_bytes: self.own_bytes(),
            transformed: self.made.len(),
            looked_at: self.looked_at,
            ..Counts::default()
        }
    }

    /// The number of inspected bytes so far.
    pub fn work_bytes(&self) -> u64 {
        self.work_bytes
    }
}
