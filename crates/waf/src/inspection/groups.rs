//! The values that links look at, collected and transformed once for all links that look at the same.
//!
//! Values of the same targets are a list. A transformation makes a list of a list, unless it changes none of its values: links whose transformations
//! do nothing to this request share a list whatever they are called.

use std::ops::Range;

use super::hit::Hit;
use super::message::Message;
use crate::plan::{Group, GroupTarget, PipelineId, View, bits_of};
use crate::transformation::{Steps, Transformation};

/// Values of the same targets behind the same transformations.
#[derive(Debug, Clone, Copy)]
struct List {
    from: u32,
    to: u32,
    /// The number of the target.
    target: u16,
    /// Transformations that may change one of them.
    may_change: Steps,
    /// One more than the place of the list that was made of this one last, and of the one that was made before of the same.
    made: u32,
    before: u32,
    maker: Option<Maker>,
    /// Where the candidates among them are, if these were asked for.
    candidates: Option<(u32, u32)>,
}

/// Values that an operator is tried on.
pub(super) enum Found {
    /// Those at these places.
    All(Range<usize>),
    /// Those of the candidates at these places.
    Candidates(Range<usize>),
}

impl Found {
    /// The places.
    pub fn places(&self) -> Range<usize> {
        let (Self::All(places) | Self::Candidates(places)) = self;
        places.clone()
    }
}

/// What makes a list of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    /// A transformation.
    Step(Transformation),
    /// Those of a pipeline, each value behind each of them.
    Each(PipelineId),
}

/// The values of groups, as far as they were asked for.
#[derive(Debug)]
pub(super) struct Groups {
    /// The generation of values that they are of.
    generation: u32,
    /// Where the lists of each group are, one for each target.
    of_groups: Vec<Option<(u32, u32)>>,
    parts: Vec<u32>,
    /// One more than the list of each target.
    of_targets: Vec<u32>,
    lists: Vec<List>,
    hits: Vec<Hit>,
    /// Operators and the places of values that they may match, of each list in order.
    candidates: Vec<(u16, u32)>,
    /// Room for values that are collected.
    found: Vec<Hit>,
}

impl Groups {
    pub fn none_of(count: usize, targets: usize) -> Self {
        Self {
            generation: 0,
            of_groups: vec![None; count],
            parts: Vec::with_capacity(256),
            of_targets: vec![0; targets],
            lists: Vec::with_capacity(64),
            hits: Vec::with_capacity(256),
            candidates: Vec::with_capacity(256),
            found: Vec::new(),
        }
    }

    /// A value to be compared.
    pub fn get(&self, found: &Found, at: usize) -> Option<Hit> {
        match found {
            Found::All(_) => self.hits.get(at).copied(),
            Found::Candidates(_) => {
                let (_, at) = self.candidates.get(at)?;
                self.hits.get(*at as usize).copied()
            }
        }
    }

    pub fn forget(&mut self) {
        self.of_groups.fill(None);
        self.parts.clear();
        self.of_targets.fill(0);
        self.lists.clear();
        self.hits.clear();
        self.candidates.clear();
    }

    /// What was made of a list.
    fn known(&self, place: u32, maker: Maker) -> Option<u32> {
        let mut at = self.lists.get(place as usize)?.made;
        while let Some(place) = at.checked_sub(1) {
            let list = self.lists.get(place as usize)?;
            if list.maker == Some(maker) {
                return Some(place);
            }
            at = list.before;
        }
        None
    }

    /// Ends a list that began there.
    fn end(&mut self, from: usize, target: u16, may_change: Steps) -> u32 {
        let (from, to) = (from as u32, self.hits.len() as u32);
        let list = List {
            from,
            to,
            target,
            may_change,
            made: 0,
            before: 0,
            maker: None,
            candidates: None,
        };
        self.lists.push(list);
        self.lists.len() as u32 - 1
    }

    /// The same for one that was made of another.
    fn end_made(&mut self, from: usize, may_change: Steps, of: u32, maker: Maker) -> u32 {
        let target = self.lists.get(of as usize).map_or(0, |list| list.target);
        let place = self.end(from, target, may_change);
        let mut before = 0;
        if let Some(list) = self.lists.get_mut(of as usize) {
            before = std::mem::replace(&mut list.made, place + 1);
        }
        if let Some(list) = self.lists.get_mut(place as usize) {
            (list.before, list.maker) = (before, Some(maker));
        }
        place
    }
}

impl Groups {
    /// Where the lists of a group are.
    pub fn group(&mut self, message: &mut Message, view: &View, number: u16) -> Range<usize> {
        let generation = message.values.generation();
        if self.generation != generation {
            self.generation = generation;
            self.forget();
        }
        let known = self.of_groups.get(usize::from(number)).copied().flatten();
        let (from, to) = known.unwrap_or_else(|| self.lists_of(message, view, number));
        from as usize..to as usize
    }

    /// The values of a list that an operator is tried on; one of no number is tried on all.
    pub fn list(
        &mut self,
        message: &mut Message,
        view: &View,
        part: usize,
        operator: Option<u16>,
    ) -> Found {
        let Some(place) = self.parts.get(part).copied() else { return Found::All(0..0) };
        let Some(list) = self.lists.get(place as usize).copied() else { return Found::All(0..0) };
        let Some(operator) = operator else {
            return Found::All(list.from as usize..list.to as usize);
        };
        let (from, to) = match list.candidates {
            Some(known) => known,
            None => self.look_at(message, view, place, list),
        };
        let (from, to) = (from as usize, to as usize);
        let candidates = self.candidates.get(from..to).unwrap_or_default();
        let start = candidates.partition_point(|(other, _)| *other < operator);
        let of_it = candidates.iter().skip(start).take_while(|(other, _)| *other == operator);
        Found::Candidates(from + start..from + start + of_it.count())
    }

    fn lists_of(&mut self, message: &mut Message, view: &View, number: u16) -> (u32, u32) {
        let Some(group) = view.rules.groups.get(usize::from(number)) else { return (0, 0) };
        let from = self.parts.len() as u32;
        for target in &group.targets {
            let list = if group.is_multi_match {
                self.behind_each(message, view, group, *target)
            } else {
                self.behind_all(message, view, group, *target)
            };
            self.parts.push(list);
        }
        let range = (from, self.parts.len() as u32);
        if let Some(kept) = self.of_groups.get_mut(usize::from(number)) {
            *kept = Some(range);
        }
        range
    }

    fn behind_all(
        &mut self,
        message: &mut Message,
        view: &View,
        group: &Group,
        target: u16,
    ) -> u32 {
        let mut place = self.collected(message, view, target);
        let pipeline = view.rules.pipelines.get(usize::from(group.pipeline.0));
        for step in pipeline.iter().flat_map(|pipeline| &pipeline.steps) {
            place = self.behind_one(message, place, *step);
        }
        place
    }

    /// The values of a target, as they come.
    fn collected(&mut self, message: &mut Message, view: &View, number: u16) -> u32 {
        let known = self.of_targets.get(usize::from(number)).copied().unwrap_or(0);
        if let Some(known) = known.checked_sub(1) {
            return known;
        }
        let from = self.hits.len();
        let mut may_change = Steps::default();
        if let Some(GroupTarget { target, excluded, .. }) =
            view.rules.targets.get(usize::from(number))
        {
            let mut found = std::mem::take(&mut self.found);
            found.clear();
            message.collect(target, &mut found);
            for hit in &found {
                if excluded.is_empty() || !message.is_excluded(excluded, hit) {
                    may_change = may_change.or(message.texts.may_change(hit.text));
                    self.hits.push(*hit);
                }
            }
            self.found = found;
        }
        let place = self.end(from, number, may_change);
        if let Some(kept) = self.of_targets.get_mut(usize::from(number)) {
            *kept = place + 1;
        }
        place
    }

    /// What a transformation makes of a list.
    fn behind_one(&mut self, message: &mut Message, place: u32, step: Transformation) -> u32 {
        let Some(list) = self.lists.get(place as usize).copied() else { return place };
        if !list.may_change.has(step) {
            return place;
        }
        if let Some(known) = self.known(place, Maker::Step(step)) {
            return known;
        }
        let from = self.hits.len();
        let mut may_change = Steps::default();
        for at in list.from as usize..list.to as usize {
            let Some(hit) = self.hits.get(at).copied() else { break };
            let text = message.texts.transformed_once(hit.text, step);
            may_change = may_change.or(message.texts.may_change(text));
            self.hits.push(Hit { text, ..hit });
        }
        self.end_made(from, may_change, place, Maker::Step(step))
    }

    /// Each text once, as it comes and behind each step that changes it.
    fn behind_each(
        &mut self,
        message: &mut Message,
        view: &View,
        group: &Group,
        target: u16,
    ) -> u32 {
        let place = self.collected(message, view, target);
        let pipeline = view.rules.pipelines.get(usize::from(group.pipeline.0));
        let list = self.lists.get(place as usize).copied();
        let (Some(pipeline), Some(list)) = (pipeline, list) else { return place };
        if list.may_change.is_disjoint(pipeline.set) {
            return place;
        }
        let maker = Maker::Each(group.pipeline);
        if let Some(known) = self.known(place, maker) {
            return known;
        }
        let from = self.hits.len();
        for at in list.from as usize..list.to as usize {
            let Some(hit) = self.hits.get(at).copied() else { break };
            self.hits.push(hit);
            let mut text = hit.text;
            for step in &pipeline.steps {
                let next = message.texts.transformed_once(text, *step);
                if next != text {
                    text = next;
                    self.hits.push(Hit { text, ..hit });
                }
            }
        }
        self.end_made(from, Steps::default(), place, maker)
    }

    /// Finds which operators that are asked for may match which values of a list.
    fn look_at(
        &mut self,
        message: &mut Message,
        view: &View,
        place: u32,
        list: List,
    ) -> (u32, u32) {
        let from = self.candidates.len();
        let target = view.rules.targets.get(usize::from(list.target));
        let asked = target.map_or(&[][..], |target| &target.operators);
        for at in list.from..list.to {
            let Some(hit) = self.hits.get(at as usize) else { break };
            let facts = message.texts.facts(hit.text, view);
            let row = message.texts.operators(facts, view).iter().zip(asked);
            for (index, (word, asked)) in (0u16..).zip(row) {
                let operators = bits_of(word & asked).map(|bit| index * 64 + bit);
                self.candidates.extend(operators.map(|operator| (operator, at)));
            }
        }
        self.candidates.get_mut(from..).unwrap_or_default().sort_unstable();
        let range = (from as u32, self.candidates.len() as u32);
        if let Some(kept) = self.lists.get_mut(place as usize) {
            kept.candidates = Some(range);
        }
        range
    }
}
