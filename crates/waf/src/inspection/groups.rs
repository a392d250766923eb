//! The values that links of a group look at, collected and transformed once for all of them.

use super::state::{Hit, Inspection};
use super::texts::FactsId;
use crate::plan::{Group, RuleSet, has_operator};
use crate::seclang::TargetKind;

/// A value behind a group's transformations.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupHit {
    pub hit: Hit,
    /// Which operators may match it, if an operator of the group asks for that.
    pub facts: Option<FactsId>,
}

/// The values of groups, as far as they were asked for.
#[derive(Debug)]
pub(super) struct Groups {
    /// The generation of values that they are of.
    generation: u32,
    /// Where each group's values are among all, and its operators.
    kept: Vec<Option<Kept>>,
    hits: Vec<GroupHit>,
    /// Operators that may match any of a group's values, a row of bits for each group.
    operators: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    from: u32,
    to: u32,
    row: u32,
}

impl Groups {
    pub fn none_of(count: usize) -> Self {
        Self { generation: 0, kept: vec![None; count], hits: Vec::new(), operators: Vec::new() }
    }

    pub fn get(&self, at: usize) -> Option<GroupHit> {
        self.hits.get(at).copied()
    }
}

impl Inspection {
    /// Where the values of a group are, if the operator may match one of them; those of no number are not chosen beforehand.
    pub(super) fn group(
        &mut self,
        rules: &RuleSet,
        number: u16,
        operator: Option<u16>,
    ) -> std::ops::Range<usize> {
        let generation = self.values.generation();
        if self.groups.generation != generation {
            self.groups.generation = generation;
            self.groups.kept.fill(None);
            self.groups.hits.clear();
            self.groups.operators.clear();
        }
        let kept = match self.groups.kept.get(usize::from(number)) {
            Some(Some(kept)) => *kept,
            _ => self.fill(rules, number),
        };
        if let Some(operator) = operator {
            let words = rules.operators.words();
            let row = self.groups.operators.get(kept.row as usize..).unwrap_or_default();
            if !has_operator(&row[..words.min(row.len())], operator) {
                return 0..0;
            }
        }
        kept.from as usize..kept.to as usize
    }

    fn fill(&mut self, rules: &RuleSet, number: u16) -> Kept {
        let from = self.groups.hits.len() as u32;
        let row = self.groups.operators.len();
        if let Some(group) = rules.groups.get(usize::from(number)) {
            if group.is_indexed {
                self.groups.operators.resize(row + rules.operators.words(), 0);
            }
            self.collect_group(rules, group);
            if group.is_indexed {
                self.unite(rules, from as usize, row);
            }
        }
        let kept = Kept { from, to: self.groups.hits.len() as u32, row: row as u32 };
        if let Some(place) = self.groups.kept.get_mut(usize::from(number)) {
            *place = Some(kept);
        }
        kept
    }

    /// Puts what operators may match any of the values from there on into the row.
    fn unite(&mut self, rules: &RuleSet, from: usize, row: usize) {
        let Groups { hits, operators, .. } = &mut self.groups;
        let row = operators.get_mut(row..).unwrap_or_default();
        for facts in hits.get(from..).unwrap_or_default().iter().filter_map(|it| it.facts) {
            let more = self.texts.operators(facts, &rules.operators);
            row.iter_mut().zip(more).for_each(|(word, more)| *word |= more);
        }
    }

    fn collect_group(&mut self, rules: &RuleSet, group: &Group) {
        let Some(pipeline) = rules.pipelines.get(usize::from(group.pipeline.0)) else { return };
        let mut found = std::mem::take(&mut self.found);
        for target in group.targets.iter().filter(|target| target.kind == TargetKind::Values) {
            found.clear();
            self.collect_of_message(target, &mut found);
            found.retain(|hit| !self.is_excluded(&group.targets, hit));
            for hit in &found {
                if !group.is_multi_match {
                    let text = self.texts.transformed(hit.text, pipeline);
                    self.add_to_group(rules, group, Hit { text, ..*hit });
                    continue;
                }
                // Each text once, as it comes and behind each step that changes it.
                self.add_to_group(rules, group, *hit);
                let mut text = hit.text;
                for step in &pipeline.steps {
                    let next = self.texts.transformed_once(text, *step);
                    if next != text {
                        text = next;
                        self.add_to_group(rules, group, Hit { text, ..*hit });
                    }
                }
            }
        }
        self.found = found;
    }

    fn add_to_group(&mut self, rules: &RuleSet, group: &Group, hit: Hit) {
        let facts = group.is_indexed.then(|| self.texts.facts(hit.text, &rules.operators));
        self.groups.hits.push(GroupHit { hit, facts });
    }
}
