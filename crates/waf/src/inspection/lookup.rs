//! Values by the targets of rules.

use super::state::{Hit, Inspection};
use super::texts::{TextId, Texts};
use super::values::{Entry, sources};
use crate::plan::{Bits, Link};
use crate::seclang::{Selector, Target, TargetKind, Variable};

impl Inspection {
    /// The values that a target takes, with the variable that they are told as.
    pub(super) fn collect(
        &mut self,
        rule: u32,
        link: &Link,
        target: &Target,
        found: &mut Vec<Hit>,
    ) {
        self.collect_unfiltered(target, found);
        if !found.is_empty() {
            found.retain(|hit| !self.is_excluded(rule, link, hit));
        }
    }

    /// The same, whatever rules leave out.
    pub(super) fn collect_unfiltered(&mut self, target: &Target, found: &mut Vec<Hit>) {
        found.clear();
        match target.variable {
            Variable::MatchedVars | Variable::MatchedVarsNames => {
                self.collect_matched(target, found)
            }
            Variable::MatchedVar => {
                found.extend(self.hits.last().map(|hit| single(target.variable, hit.text)));
            }
            Variable::MatchedVarName => {
                if let Some(name) = self.hits.last().copied().map(|hit| self.full_name(&hit)) {
                    found.push(single(target.variable, self.texts.add(&name)));
                }
            }
            Variable::HighestSeverity => {
                let text = self.texts.add(self.highest_severity.to_string().as_bytes());
                found.push(single(target.variable, text));
            }
            variable if variable == Variable::Tx || variable.is_stored() => {
                self.collect_written(target, found);
            }
            _ => self.collect_of_message(target, found),
        }
    }

    fn collect_of_message(&self, target: &Target, found: &mut Vec<Hit>) {
        let variable = target.variable;
        let (kept_under, names_are_values) = sources(variable);
        if kept_under.is_empty() {
            let all = self.values.of(variable).iter();
            return found.extend(all.map(|entry| single(variable, entry.text)));
        }
        for source in kept_under {
            for entry in self.values.of(*source) {
                if self.takes(&target.selector, entry) {
                    let text = if names_are_values { entry.name } else { entry.text };
                    found.push(Hit { variable, name: entry.name, text, is_count: false });
                }
            }
        }
    }

    fn takes(&self, selector: &Selector, entry: &Entry) -> bool {
        matches!(selector, Selector::All) || selector.takes(self.texts.get(entry.name))
    }

    fn collect_written(&mut self, target: &Target, found: &mut Vec<Hit>) {
        let symbols = &self.view.rules.symbols;
        if let Selector::Name(name) = &target.selector {
            let value = self.written.get_named(target.variable, name.as_bytes(), symbols);
            if let Some(value) = value {
                let (name, text) =
                    (self.texts.add(name.as_bytes()), self.texts.add(&value.bytes()));
                found.push(Hit { variable: target.variable, name, text, is_count: false });
            }
            return;
        }
        for (name, value) in self.written.all(target.variable, symbols) {
            if target.selector.takes(name) {
                let (name, text) = (self.texts.add(name), self.texts.add(&value.bytes()));
                found.push(Hit { variable: target.variable, name, text, is_count: false });
            }
        }
    }

    fn collect_matched(&mut self, target: &Target, found: &mut Vec<Hit>) {
        for index in 0..self.hits.len() {
            let hit = self.hits[index];
            let full = self.full_name(&hit);
            if !target.selector.takes(&full) {
                continue;
            }
            let name = self.texts.add(&full);
            let is_name = target.variable == Variable::MatchedVarsNames;
            let text = if is_name { name } else { hit.text };
            found.push(Hit { variable: target.variable, name, text, is_count: false });
        }
    }

    /// The name that a value is told by: `ARGS:id`.
    pub(super) fn full_name(&self, hit: &Hit) -> Vec<u8> {
        let mut name = Vec::new();
        if hit.is_count {
            name.push(b'&');
        }
        name.extend_from_slice(hit.variable.name().as_bytes());
        if hit.name != Texts::EMPTY {
            name.push(b':');
            name.extend_from_slice(self.texts.get(hit.name));
        }
        name
    }

    /// Whether the rule, or `ctl`, leaves a value out.
    fn is_excluded(&self, rule: u32, link: &Link, hit: &Hit) -> bool {
        let is_it = |target: &Target| {
            target.variable == hit.variable && target.selector.takes(self.texts.get(hit.name))
        };
        let excluded = link.targets.iter().filter(|target| target.kind == TargetKind::Excluded);
        let by_ctl = self.removed_targets.iter().filter(|(rules, _)| rules.has(rule as usize));
        excluded.into_iter().any(is_it) || by_ctl.into_iter().any(|(_, target)| is_it(target))
    }

    /// How many values a target takes.
    pub(super) fn count(&mut self, rule: u32, link: &Link, target: &Target) -> usize {
        let mut found = Vec::new();
        self.collect(rule, link, target, &mut found);
        found.len()
    }

    /// Operators that may match a value of the group's targets, whichever links have it.
    pub(super) fn may_match(&mut self, group: u16, operator: u16) -> bool {
        let generation = self.values.generation();
        let place = usize::from(group);
        match self.groups.get(place) {
            Some(Some((of, operators))) if *of == generation => {
                operators.has(usize::from(operator))
            }
            _ => {
                let operators = self.operators_of(place);
                let may = operators.has(usize::from(operator));
                if let Some(kept) = self.groups.get_mut(place) {
                    *kept = Some((generation, operators));
                }
                may
            }
        }
    }

    fn operators_of(&mut self, group: usize) -> Bits {
        let view = std::sync::Arc::clone(&self.view);
        let rules = &view.rules;
        let mut operators = Bits::none(rules.operators.len());
        let Some((targets, pipeline)) = rules.groups.get(group) else { return operators };
        let steps = &rules.pipelines[usize::from(pipeline.0)];
        let mut found = Vec::new();
        for target in targets.iter().filter(|target| target.kind == TargetKind::Values) {
            found.clear();
            self.collect_of_message(target, &mut found);
            for hit in &found {
                let text = self.texts.transformed(hit.text, steps);
                operators.add(&self.texts.facts(text, &rules.operators).candidates);
            }
        }
        operators
    }
}

fn single(variable: Variable, text: TextId) -> Hit {
    Hit { variable, name: Texts::EMPTY, text, is_count: false }
}
