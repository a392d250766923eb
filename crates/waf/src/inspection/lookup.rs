//! The lookup of the values of targets.

use super::hit::Hit;
use super::state::State;
use crate::plan::Link;
use crate::seclang::{Selector, Target, Variable};

impl State {
    /// Collects the values of a target, each with the name of its variable for reports.
    pub(super) fn collect(
        &mut self,
        rule: u32,
        link: &Link,
        target: &Target,
        found: &mut Vec<Hit>,
    ) {
        self.collect_unfiltered(target, found);
        if !found.is_empty() {
            let (message, removals) = (&self.message, &self.removals);
            found.retain(|hit| {
                !message.variables.is_excluded(&link.targets, hit)
                    && !removals.takes_out(rule, hit, message)
            });
        }
    }

    /// Collects the values of a target, including excluded values.
    pub(super) fn collect_unfiltered(&mut self, target: &Target, found: &mut Vec<Hit>) {
        found.clear();
        match target.variable {
            Variable::MatchedVars | Variable::MatchedVarsNames => {
                self.collect_matched(target, found)
            }
            Variable::MatchedVar => {
                found.extend(self.hits.last().map(|hit| Hit::alone(target.variable, hit.text)));
            }
            Variable::MatchedVarName => {
                if let Some(name) =
                    self.hits.last().copied().map(|hit| self.message.variables.full_name(&hit))
                {
                    let text = self.message.variables.texts.add(&name);
                    found.push(Hit::alone(target.variable, text));
                }
            }
            Variable::HighestSeverity => {
                let text =
                    self.message.variables.texts.add(self.highest_severity.to_string().as_bytes());
                found.push(Hit::alone(target.variable, text));
            }
            variable if variable == Variable::Tx || variable.is_stored() => {
                self.collect_written(target, found);
            }
            _ => self.message.variables.collect(target, found),
        }
    }

    fn collect_written(&mut self, target: &Target, found: &mut Vec<Hit>) {
        let Self { view, written, message, .. } = self;
        let texts = &mut message.variables.texts;
        if let Selector::Name(name) = &target.selector {
            let value = written.get_named(target.variable, name.as_bytes(), view);
            if let Some(value) = value {
                let (name, text) = (texts.add(name.as_bytes()), texts.add(&value.bytes()));
                found.push(Hit { variable: target.variable, name, text, is_count: false });
            }
            return;
        }
        written.select(target, view, |name, value| {
            let (name, text) = (texts.add(name), texts.add(&value.bytes()));
            found.push(Hit { variable: target.variable, name, text, is_count: false });
        });
    }

    fn collect_matched(&mut self, target: &Target, found: &mut Vec<Hit>) {
        for index in 0..self.hits.len() {
            let hit = self.hits[index];
            let full = self.message.variables.full_name(&hit);
            if !target.selector.takes(&full) {
                continue;
            }
            let name = self.message.variables.texts.add(&full);
            let is_name = target.variable == Variable::MatchedVarsNames;
            let text = if is_name { name } else { hit.text };
            found.push(Hit { variable: target.variable, name, text, is_count: false });
        }
    }

    /// The number of values that a target selects.
    pub(super) fn count(&mut self, rule: u32, link: &Link, target: &Target) -> usize {
        let mut found = Vec::new();
        self.collect(rule, link, target, &mut found);
        found.len()
    }
}
