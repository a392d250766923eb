//! Values by the targets of rules.

use super::state::{Hit, Inspection};
use super::texts::{TextId, Texts};
use super::values::{Entry, sources};
use crate::plan::Link;
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
            found
                .retain(|hit| !self.is_excluded(&link.targets, hit) && !self.is_removed(rule, hit));
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

    pub(super) fn collect_of_message(&self, target: &Target, found: &mut Vec<Hit>) {
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
        // A member may have no name.
        if hit.name != Texts::EMPTY || (hit.variable.is_collection() && !hit.is_count) {
            name.push(b':');
            name.extend_from_slice(self.texts.get(hit.name));
        }
        name
    }

    /// Whether one of these targets leaves a value out.
    pub(super) fn is_excluded(&self, targets: &[Target], hit: &Hit) -> bool {
        let mut excluded = targets.iter().filter(|target| target.kind == TargetKind::Excluded);
        excluded.any(|target| self.is_of(target, hit))
    }

    /// Whether `ctl` has left a value out of a rule.
    pub(super) fn is_removed(&self, rule: u32, hit: &Hit) -> bool {
        let mut removed = self.removed_targets.iter();
        removed.any(|(rules, target)| rules.has(rule as usize) && self.is_of(target, hit))
    }

    fn is_of(&self, target: &Target, hit: &Hit) -> bool {
        target.variable == hit.variable && target.selector.takes(self.texts.get(hit.name))
    }

    /// How many values a target takes.
    pub(super) fn count(&mut self, rule: u32, link: &Link, target: &Target) -> usize {
        let mut found = Vec::new();
        self.collect(rule, link, target, &mut found);
        found.len()
    }
}

fn single(variable: Variable, text: TextId) -> Hit {
    Hit { variable, name: Texts::EMPTY, text, is_count: false }
}
