//! Records the variables that remaining rules read or change, and the phases that they end.

use super::{PHASES, Walk};
use crate::plan::operators::Comparison;
use crate::plan::rule::{CompiledRule, Effect, Link, VariableName};
use crate::plan::symbols::Symbol;
use crate::plan::template::{CompiledPiece, CompiledTemplate};
use crate::seclang::{Allow, Control, Disruption, Variable};

impl Walk<'_> {
    /// Records the variables that a remaining rule reads or may change.
    pub(super) fn keep(&mut self, rule: &CompiledRule) {
        for template in rule.message.iter().chain(&rule.log_data).chain(&rule.redirect) {
            self.reads_template(template);
        }
        for link in &rule.links {
            self.reads(link);
            for effect in &link.effects {
                self.changes(effect);
            }
        }
        self.conditional.extend(rule.skip);
        // Phases are numbered from 1, so the number of a phase is the index of the next phase.
        let goes_on_in = match &rule.disruption {
            Disruption::Pass | Disruption::Block => return,
            Disruption::Allow(Allow::Phase) => rule.phase as usize,
            Disruption::Allow(Allow::Request) => (rule.phase as usize).max(2),
            _ => PHASES - 1,
        };
        if let Some(resumes) = self.resumes.get_mut(goes_on_in) {
            *resumes = true;
        }
    }

    fn reads(&mut self, link: &Link) {
        for target in link.targets.iter().filter(|target| target.variable == Variable::Tx) {
            for index in 0..self.rules.symbols.len() {
                let symbol = Symbol(index as u32);
                if target.selector.takes(self.rules.symbols.name(symbol)) {
                    self.reads_symbol(symbol);
                }
            }
        }
        match &link.operator.kind {
            Comparison::Number(_, template)
            | Comparison::Text(_, template)
            | Comparison::RxTemplate(template) => self.reads_template(template),
            _ => {}
        }
    }

    fn reads_template(&mut self, template: &CompiledTemplate) {
        for piece in &template.0 {
            if let CompiledPiece::Written(Variable::Tx, symbol) = piece {
                self.reads_symbol(*symbol);
            }
        }
    }

    fn reads_symbol(&mut self, symbol: Symbol) {
        let index = symbol.0 as usize;
        self.read.set(index);
        if self.uncertain.has(index) {
            self.grown.set(index);
        }
    }

    fn changes(&mut self, effect: &Effect) {
        match effect {
            Effect::Set(collection, name, value) | Effect::Add(collection, name, value, _) => {
                self.reads_template(value);
                self.changes_name(*collection, name);
            }
            Effect::Remove(collection, name) => self.changes_name(*collection, name),
            Effect::Expire | Effect::Open(_) => {}
            Effect::Control(control, _) => match control {
                Control::RemoveById(_) | Control::RemoveByTag(_) | Control::RemoveByMessage(_) => {
                    self.removals.push(control.clone());
                }
                Control::RemoveTargetById(ids, _) => self.removals.push(Control::RemoveById(*ids)),
                Control::RemoveTargetByTag(tag, target) if target.variable == Variable::Tx => {
                    self.removals.push(Control::RemoveByTag(tag.clone()));
                }
                Control::RemoveTargetByMessage(text, _) => {
                    self.removals.push(Control::RemoveByMessage(text.clone()));
                }
                _ => {}
            },
            Effect::Mask(_) => {}
        }
    }

    fn changes_name(&mut self, collection: Variable, name: &VariableName) {
        if collection != Variable::Tx {
            return;
        }
        match name {
            VariableName::Known(symbol) => self.grown.set(symbol.0 as usize),
            VariableName::Made(template) => {
                self.reads_template(template);
                // The rule may read or change any name with this prefix.
                let prefix: &[u8] = match template.0.first() {
                    Some(CompiledPiece::Text(text)) => text,
                    _ => b"",
                };
                let prefix = prefix.to_ascii_lowercase();
                for index in 0..self.rules.symbols.len() {
                    if self.rules.symbols.name(Symbol(index as u32)).starts_with(&prefix) {
                        self.grown.set(index);
                    }
                }
            }
        }
    }
}
