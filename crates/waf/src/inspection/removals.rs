//! The rules and targets that `ctl` removes for one request, and the targets that are masked in logs.

use super::hit::Hit;
use super::message::Message;
use crate::plan::Bits;
use crate::seclang::{Control, Target, Variable};

/// Removals by `ctl`, and masked targets.
#[derive(Debug)]
pub struct Removals {
    /// Removed rules.
    pub rules: Bits,
    /// Removed targets, each with the rules that do not inspect it.
    targets: Vec<(Bits, Target)>,
    masked: Vec<Target>,
}

impl Removals {
    /// No removals. `rules`: the number of rules.
    pub fn none(rules: usize) -> Self {
        Self { rules: Bits::none(rules), targets: Vec::new(), masked: Vec::new() }
    }

    /// Applies a removal to these rules. Other controls are ignored.
    pub fn take(&mut self, control: &Control, rules: &Bits) {
        match control {
            Control::RemoveById(_) | Control::RemoveByTag(_) | Control::RemoveByMessage(_) => {
                self.rules.add(rules);
            }
            Control::RemoveTargetById(_, target)
            | Control::RemoveTargetByTag(_, target)
            | Control::RemoveTargetByMessage(_, target) => self.target(rules, target),
            _ => {}
        }
    }

    fn target(&mut self, rules: &Bits, target: &Target) {
        match self.targets.iter_mut().find(|(_, known)| known == target) {
            Some((known, _)) => known.add(rules),
            None => self.targets.push((rules.clone(), target.clone())),
        }
    }

    /// Whether a rule lost a target by a removal.
    pub fn has_targets_of(&self, rule: u32) -> bool {
        self.targets.iter().any(|(rules, _)| rules.has(rule as usize))
    }

    /// Whether a value is excluded from a rule.
    pub fn takes_out(&self, rule: u32, hit: &Hit, message: &Message) -> bool {
        let mut targets = self.targets.iter();
        targets
            .any(|(rules, target)| rules.has(rule as usize) && message.variables.is_of(target, hit))
    }

    /// Masks later values of this target in logs.
    pub fn mask(&mut self, target: &Target) {
        if !self.masked.contains(target) {
            self.masked.push(target.clone());
        }
    }

    /// Whether a value is masked in logs.
    pub fn masks(&self, hit: &Hit, message: &Message) -> bool {
        let is_same = |target: &Target| {
            target.variable == hit.variable
                || target.variable == Variable::Args
                    && matches!(hit.variable, Variable::ArgsGet | Variable::ArgsPost)
        };
        self.masked
            .iter()
            .any(|target| is_same(target) && message.variables.takes(&target.selector, hit.name))
    }
}
