//! The values that links inspect. They are collected and transformed once for all links with the same targets and
//! transformations.
//!
//! The values of the same targets form a list. A transformation derives another list, unless it changes no value. Links
//! whose transformations change nothing in this request share one list.

use std::ops::Range;

use super::hit::Hit;
use super::message::Message;
use super::texts::{FactsId, Texts};
use crate::plan::{Group, GroupTarget, PipelineId, RuleSet, ScopeId, View, add_row, has_bit};
use crate::transformation::{Steps, Transformation};

/// The values of the same targets after the same transformations.
#[derive(Debug, Clone, Copy)]
struct List {
    from: u32,
    to: u32,
    /// The transformations that may change one of the values.
    may_change: Steps,
    /// `made`: one plus the index of the last list that was derived from this one. `before`: one plus the index of the list
    /// that was previously derived from the same source. 0: no list.
    made: u32,
    before: u32,
    maker: Option<Maker>,
    /// The position of the row of operators that may match one of the values; `None`: not computed yet. The row may include
    /// operators that match only values of the source list.
    row: Option<u32>,
    /// One plus the index of the source list, if it has the same number of values; 0: otherwise.
    of: u32,
    /// The scope of the target: the operators that links apply to its values, after any transformations.
    scope: ScopeId,
}

/// Number of places for bundles of target lists.
const BASES: usize = 64;

/// The derivation of a list from another list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    /// One transformation.
    Step(Transformation),
    /// A pipeline: each value after each transformation of the pipeline.
    Each(PipelineId),
}

/// The lists of a group. Groups with the same targets share lists as long as their transformations have the same results.
#[derive(Debug, Clone, Copy)]
struct Bundle {
    /// The range of the group's non-empty lists in `parts`.
    from: u32,
    to: u32,
    /// The transformations that may change a value of the lists.
    may_change: Steps,
    /// The position of the row of operators that may match a value of the lists; `None`: not computed yet.
    row: Option<u32>,
    /// `made`: one plus the index of the last bundle that was derived from this one. `before`: one plus the index of the
    /// bundle that was previously derived from the same source. 0: no bundle.
    made: u32,
    before: u32,
    /// The transformation that derived this bundle from another.
    step: Option<Transformation>,
}

/// The values of groups. They are collected when they are first needed.
#[derive(Debug)]
pub(super) struct Groups {
    /// The generation of the message's values that were collected.
    generation: u32,
    /// One plus the index of the bundle of each group, and of each target list; 0: no bundle.
    of_groups: Vec<u32>,
    of_sets: Vec<u32>,
    bundles: Vec<Bundle>,
    /// One plus the indices of the bundles of target lists, without transformations, by a hash of their lists; 0: none.
    bases: [u32; BASES],
    parts: Vec<u32>,
    /// One plus the index of the list of each target; 0: no list.
    of_targets: Vec<u32>,
    lists: Vec<List>,
    hits: Vec<Hit>,
    /// The rows of operators, one bit for each operator.
    operators: Vec<u64>,
    /// A buffer for collected values.
    found: Vec<Hit>,
    /// A buffer for a row.
    row: Vec<u64>,
}

impl Groups {
    pub fn none_of(rules: &RuleSet) -> Self {
        Self {
            generation: 0,
            of_groups: vec![0; rules.groups.len()],
            of_sets: vec![0; rules.sets_count],
            bundles: Vec::with_capacity(64),
            bases: [0; BASES],
            parts: Vec::with_capacity(256),
            of_targets: vec![0; rules.targets.len()],
            lists: Vec::with_capacity(64),
            hits: Vec::with_capacity(256),
            operators: Vec::with_capacity(512),
            found: Vec::new(),
            row: Vec::new(),
        }
    }

    #[inline(never)]
    pub fn forget(&mut self) {
        self.of_groups.fill(0);
        self.of_sets.fill(0);
        self.bundles.clear();
        self.bases.fill(0);
        self.parts.clear();
        self.of_targets.fill(0);
        self.lists.clear();
        self.hits.clear();
        self.operators.clear();
    }

    /// The list that this derivation of the list has already produced, if any.
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

    /// Completes the list whose values begin at `from`.
    fn end(&mut self, from: usize, may_change: Steps, scope: ScopeId) -> u32 {
        let (from, to) = (from as u32, self.hits.len() as u32);
        let (made, before, maker, row, of) = (0, 0, None, None, 0);
        self.lists.push(List { from, to, may_change, made, before, maker, row, of, scope });
        self.lists.len() as u32 - 1
    }

    /// Completes a list that is derived from the list `of`.
    fn end_made(&mut self, from: usize, may_change: Steps, of: u32, maker: Maker) -> u32 {
        let place = self.end(from, may_change, ScopeId::ALL);
        let (mut before, mut scope) = (0, ScopeId::ALL);
        if let Some(list) = self.lists.get_mut(of as usize) {
            before = std::mem::replace(&mut list.made, place + 1);
            scope = list.scope;
        }
        if let Some(list) = self.lists.get_mut(place as usize) {
            (list.before, list.maker, list.scope) = (before, Some(maker), scope);
            list.of = if matches!(maker, Maker::Step(_)) { of + 1 } else { 0 };
        }
        place
    }
}

impl Groups {
    /// The range of the lists of a group; empty: the operator matches none of their values. An operator without a number is
    /// applied to all values.
    // Each rule asks for its group, and most groups are known. So what derives a group is not part of this function.
    #[inline]
    pub fn group(
        &mut self,
        message: &mut Message,
        view: &View,
        number: u16,
        operator: Option<u16>,
    ) -> Range<usize> {
        let generation = message.variables.values.generation();
        if self.generation != generation {
            self.generation = generation;
            self.forget();
        }
        let known = self.of_groups.get(usize::from(number)).and_then(|it| it.checked_sub(1));
        let place = known.unwrap_or_else(|| self.bundle_of(message, view, number));
        let Some(bundle) = self.bundles.get(place as usize).copied() else { return 0..0 };
        let parts = bundle.from as usize..bundle.to as usize;
        let Some(operator) = operator.filter(|_| !parts.is_empty()) else { return parts };
        let row = bundle.row.unwrap_or_else(|| self.look_at_bundle(message, view, place, bundle));
        if self.has(view, row, operator) { parts } else { 0..0 }
    }

    /// Whether an operator may match a value of a group.
    #[inline]
    pub fn may_match(
        &mut self,
        message: &mut Message,
        view: &View,
        group: u16,
        operator: u16,
    ) -> bool {
        !self.group(message, view, group, Some(operator)).is_empty()
    }

    /// Whether a row contains an operator.
    fn has(&self, view: &View, row: u32, operator: u16) -> bool {
        let from = row as usize;
        has_bit(self.operators.get(from..from + view.row_words()).unwrap_or_default(), operator)
    }

    /// Computes the operators that may match a value of the lists of a bundle.
    #[inline(never)]
    fn look_at_bundle(
        &mut self,
        message: &mut Message,
        view: &View,
        place: u32,
        bundle: Bundle,
    ) -> u32 {
        let mut all = std::mem::take(&mut self.row);
        all.clear();
        let (mut first, mut is_one) = (None, true);
        for part in bundle.from as usize..bundle.to as usize {
            let Some(own) = self.row_of(message, view, part) else { continue };
            let from = own as usize;
            let row = self.operators.get(from..from + view.row_words()).unwrap_or_default();
            if first.is_none() {
                first = Some(own);
                all.extend_from_slice(row);
            } else if first != Some(own) {
                is_one = false;
                add_row(&mut all, row);
            }
        }
        // The rows of lists must not change, so the union of several rows is another row.
        let row = if is_one {
            first.unwrap_or(0)
        } else {
            self.operators.extend_from_slice(&all);
            (self.operators.len() - all.len()) as u32
        };
        self.row = all;
        if let Some(kept) = self.bundles.get_mut(place as usize) {
            kept.row = Some(row);
        }
        row
    }

    /// The position of the row of a list. The row is computed on first use.
    fn row_of(&mut self, message: &mut Message, view: &View, part: usize) -> Option<u32> {
        let place = self.parts.get(part).copied()?;
        let list = self.lists.get(place as usize).copied()?;
        match list.row {
            Some(row) => Some(row),
            None => self.look_at(message, view, place, list).row,
        }
    }

    /// The range of the values of a list; empty: the operator matches none of them. An operator without a number is applied
    /// to all values.
    pub fn list(&self, view: &View, part: usize, operator: Option<u16>) -> Range<usize> {
        let Some(place) = self.parts.get(part) else { return 0..0 };
        let Some(list) = self.lists.get(*place as usize) else { return 0..0 };
        let may_match = |operator| list.row.is_none_or(|row| self.has(view, row, operator));
        match operator {
            Some(operator) if !may_match(operator) => 0..0,
            _ => list.from as usize..list.to as usize,
        }
    }

    /// The next value in `places` that the operator may match. An operator without a number is applied to all values. Moves
    /// the start of `places` past this value.
    pub fn next(
        &self,
        texts: &Texts,
        view: &View,
        operator: Option<u16>,
        places: &mut Range<usize>,
    ) -> Option<Hit> {
        let hits = self.hits.get(places.clone())?;
        let may_match = |hit: &Hit| match operator {
            Some(operator) => texts.may_match(hit.text, operator, view.row_words()),
            None => true,
        };
        let at = hits.iter().position(may_match)?;
        places.start += at + 1;
        hits.get(at).copied()
    }

    /// The bundle of a group. It is derived on first use.
    #[inline(never)]
    fn bundle_of(&mut self, message: &mut Message, view: &View, number: u16) -> u32 {
        let Some(group) = view.rules.groups.get(usize::from(number)) else { return u32::MAX };
        let pipeline = view.rules.pipelines.get(usize::from(group.pipeline.0));
        let place = if group.is_multi_match {
            let from = self.parts.len();
            for target in &group.targets {
                let list = self.behind_each(message, view, group, *target);
                self.put(list);
            }
            self.end_bundle(from, None)
        } else {
            let mut place = self.bundle_of_set(message, view, group);
            for step in pipeline.iter().flat_map(|pipeline| &pipeline.steps) {
                place = self.bundle_behind(message, place, *step);
            }
            place
        };
        if let Some(kept) = self.of_groups.get_mut(usize::from(number)) {
            *kept = place + 1;
        }
        place
    }

    /// The values of a group's targets, without transformations.
    fn bundle_of_set(&mut self, message: &mut Message, view: &View, group: &Group) -> u32 {
        let known = self.of_sets.get(usize::from(group.set)).and_then(|it| it.checked_sub(1));
        if let Some(known) = known {
            return known;
        }
        let from = self.parts.len();
        for target in &group.targets {
            let list = self.collected(message, view, *target);
            self.put(list);
        }
        let place = self.base(from);
        if let Some(kept) = self.of_sets.get_mut(usize::from(group.set)) {
            *kept = place + 1;
        }
        place
    }

    /// The bundle of the parts from `from` on. Many targets have no values in a request, so that different target lists are
    /// often the same lists.
    fn base(&mut self, from: usize) -> u32 {
        let parts = self.parts.get(from..).unwrap_or_default();
        // A place for each hash: a collision only means that two bundles are the same.
        let hash =
            parts.iter().fold(0, |hash: u32, part| hash.wrapping_mul(31).wrapping_add(part + 1));
        let slot = hash as usize % BASES;
        if let Some(known) = self.bases[slot].checked_sub(1)
            && let Some(bundle) = self.bundles.get(known as usize)
            && let Some(before) = self.parts.get(bundle.from as usize..bundle.to as usize)
            && before.len() == parts.len()
            && before.iter().zip(parts).all(|(one, other)| one == other)
        {
            self.parts.truncate(from);
            return known;
        }
        let place = self.end_bundle(from, None);
        self.bases[slot] = place + 1;
        place
    }

    /// Applies a transformation to a bundle.
    #[inline]
    fn bundle_behind(&mut self, message: &mut Message, place: u32, step: Transformation) -> u32 {
        match self.bundles.get(place as usize) {
            Some(bundle) if bundle.may_change.has(step) => {
                self.changed_bundle(message, place, *bundle, step)
            }
            _ => place,
        }
    }

    #[inline(never)]
    fn changed_bundle(
        &mut self,
        message: &mut Message,
        place: u32,
        bundle: Bundle,
        step: Transformation,
    ) -> u32 {
        let mut at = bundle.made;
        while let Some(made) = at.checked_sub(1) {
            let Some(known) = self.bundles.get(made as usize) else { break };
            if known.step == Some(step) {
                return made;
            }
            at = known.before;
        }
        let (from, mut is_changed) = (self.parts.len(), false);
        for at in bundle.from as usize..bundle.to as usize {
            let Some(list) = self.parts.get(at).copied() else { break };
            let made = self.behind_one(message, list, step);
            is_changed |= made != list;
            self.parts.push(made);
        }
        if !is_changed {
            self.parts.truncate(from);
            if let Some(bundle) = self.bundles.get_mut(place as usize) {
                bundle.may_change = bundle.may_change.without(step);
            }
            return place;
        }
        let made = self.end_bundle(from, Some(step));
        if let Some(new) = self.bundles.get_mut(made as usize) {
            new.before = bundle.made;
        }
        if let Some(bundle) = self.bundles.get_mut(place as usize) {
            bundle.made = made + 1;
        }
        made
    }

    /// Adds a list to the current bundle, unless it is empty.
    fn put(&mut self, list: u32) {
        if self.list_at(list).is_some_and(|list| list.from < list.to) {
            self.parts.push(list);
        }
    }

    /// Completes the bundle whose parts begin at `from`.
    fn end_bundle(&mut self, from: usize, step: Option<Transformation>) -> u32 {
        let lists = self.parts.get(from..).unwrap_or_default().iter();
        let may_change = lists
            .filter_map(|list| self.list_at(*list))
            .fold(Steps::default(), |all, list| all.or(list.may_change));
        let (from, to) = (from as u32, self.parts.len() as u32);
        self.bundles.push(Bundle { from, to, may_change, row: None, made: 0, before: 0, step });
        self.bundles.len() as u32 - 1
    }

    fn list_at(&self, place: u32) -> Option<&List> {
        self.lists.get(place as usize)
    }

    /// The values of a target, without transformations.
    #[inline]
    fn collected(&mut self, message: &mut Message, view: &View, number: u16) -> u32 {
        let known = self.of_targets.get(usize::from(number)).copied().unwrap_or(0);
        match known.checked_sub(1) {
            Some(known) => known,
            None => self.collect(message, view, number),
        }
    }

    #[inline(never)]
    fn collect(&mut self, message: &mut Message, view: &View, number: u16) -> u32 {
        let from = self.hits.len();
        let mut may_change = Steps::default();
        if let Some(GroupTarget { target, excluded }) = view.rules.targets.get(usize::from(number))
        {
            let mut found = std::mem::take(&mut self.found);
            found.clear();
            message.variables.collect(target, &mut found);
            for hit in &found {
                if excluded.is_empty() || !message.variables.is_excluded(excluded, hit) {
                    may_change = may_change.or(message.variables.texts.may_change(hit.text));
                    self.hits.push(*hit);
                }
            }
            self.found = found;
        }
        let place = self.end(from, may_change, view.rules.scopes.of_target(number));
        if let Some(kept) = self.of_targets.get_mut(usize::from(number)) {
            *kept = place + 1;
        }
        place
    }

    /// Applies a transformation to a list.
    fn behind_one(&mut self, message: &mut Message, place: u32, step: Transformation) -> u32 {
        let Some(list) = self.lists.get(place as usize).copied() else { return place };
        if !list.may_change.has(step) {
            return place;
        }
        if let Some(known) = self.known(place, Maker::Step(step)) {
            return known;
        }
        let from = self.hits.len();
        let (mut may_change, mut is_changed) = (Steps::default(), false);
        self.hits.extend_from_within(list.from as usize..list.to as usize);
        for hit in self.hits.iter_mut().skip(from) {
            let mut steps = message.variables.texts.may_change(hit.text);
            if steps.has(step) {
                let text = message.variables.texts.transformed_once(hit.text, step);
                steps = message.variables.texts.may_change(text);
                is_changed |= text != hit.text;
                hit.text = text;
            }
            may_change = may_change.or(steps);
        }
        if !is_changed {
            self.hits.truncate(from);
            if let Some(list) = self.lists.get_mut(place as usize) {
                list.may_change = list.may_change.without(step);
            }
            return place;
        }
        self.end_made(from, may_change, place, Maker::Step(step))
    }

    /// Derives a list with each text once: the original values, and the result of each step that changes them.
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
            let (mut text, mut steps) = (hit.text, message.variables.texts.may_change(hit.text));
            if steps.is_disjoint(pipeline.set) {
                continue;
            }
            for step in &pipeline.steps {
                if !steps.has(*step) {
                    continue;
                }
                let next = message.variables.texts.transformed_once(text, *step);
                if next != text {
                    (text, steps) = (next, message.variables.texts.may_change(next));
                    self.hits.push(Hit { text, ..hit });
                }
            }
        }
        self.end_made(from, Steps::default(), place, maker)
    }

    /// Computes the operators that may match the values of a list. If a source list has a row, it starts with this row, and
    /// the values that both lists have in common are not analysed again.
    fn look_at(&mut self, message: &mut Message, view: &View, place: u32, mut list: List) -> List {
        let (row, words) = (self.operators.len(), view.row_words());
        let like = self.looked_at_before(&list);
        match like.and_then(|like| like.row) {
            Some(known) => {
                self.operators.extend_from_within(known as usize..known as usize + words)
            }
            None => self.operators.resize(row + words, 0),
        }
        let Self { hits, lists, operators, .. } = self;
        let is_narrow = is_narrow(view, lists, &list);
        let row_of_list = operators.get_mut(row..).unwrap_or_default();
        let values = hits.get(list.from as usize..list.to as usize).unwrap_or_default();
        let mut before = like.and_then(|like| hits.get(like.from as usize..)).into_iter().flatten();
        for (at, hit) in values.iter().enumerate() {
            if before.next().is_some_and(|before| before.text == hit.text) {
                continue;
            }
            let scope = if is_narrow {
                scope_of(view, &message.variables.texts, lists, hits, list, at)
            } else {
                list.scope
            };
            let facts = message.variables.texts.facts(hit.text, scope, view);
            if facts == FactsId::NOTHING {
                continue;
            }
            let more = message.variables.texts.operators(facts, view);
            add_row(row_of_list, more);
        }
        list.row = u32::try_from(row).ok();
        if let Some(kept) = self.lists.get_mut(place as usize) {
            *kept = list;
        }
        list
    }

    /// The nearest source list that has a row.
    fn looked_at_before(&self, list: &List) -> Option<List> {
        let mut list = *list;
        while let Some(of) = list.of.checked_sub(1) {
            list = *self.lists.get(of as usize)?;
            if list.row.is_some() {
                return Some(list);
            }
        }
        None
    }
}

/// Whether a derivation of a list has a narrower scope than the target.
fn is_narrow(view: &View, lists: &[List], list: &List) -> bool {
    let mut at = Some(list);
    while let Some(list) = at {
        if list.maker.is_some_and(|maker| scope_behind(view, list.scope, maker) != list.scope) {
            return true;
        }
        at = list.of.checked_sub(1).and_then(|of| lists.get(of as usize));
    }
    false
}

/// The scope for a value of a list: the scope of the last derivation that changed the value.
fn scope_of(
    view: &View,
    texts: &Texts,
    lists: &[List],
    hits: &[Hit],
    mut list: List,
    at: usize,
) -> ScopeId {
    let text_of = |list: &List| hits.get(list.from as usize + at).map(|hit| hit.text);
    let text = text_of(&list);
    while let Some(before) = list.of.checked_sub(1).and_then(|of| lists.get(of as usize))
        && text_of(before) == text
    {
        list = *before;
    }
    let Some(maker) = list.maker else { return list.scope };
    let narrow = scope_behind(view, list.scope, maker);
    let is_known = || text.is_some_and(|text| texts.known(text, narrow).is_some());
    match maker {
        // The list also contains the original values, which need the scope of the target.
        Maker::Each(_) if !is_known() => list.scope,
        _ => narrow,
    }
}

/// The scope of values that are derived from values of a target with this scope.
fn scope_behind(view: &View, target: ScopeId, maker: Maker) -> ScopeId {
    let scopes = &view.rules.scopes;
    match maker {
        Maker::Step(step) => scopes.of_steps(target, &[step]),
        Maker::Each(PipelineId(pipeline)) => {
            let pipeline = view.rules.pipelines.get(usize::from(pipeline));
            pipeline.map_or(target, |pipeline| scopes.of_steps(target, &pipeline.steps))
        }
    }
}
