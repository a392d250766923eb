//! What rules change.

use std::sync::Arc;

use super::report::Limit;
use super::state::{Hit, Inspection};
use crate::plan::{Bits, Effect, Link, Sign, Symbol, VariableName};
use crate::seclang::{Control, Target, Toggle, Variable};
use crate::value::{Value, number_of};

impl Inspection {
    /// What a link does for each value that it holds for.
    pub(super) fn take_effects(&mut self, place: u32, link: &Link) {
        for effect in &link.effects {
            match effect {
                Effect::Set(collection, name, to) => {
                    // What a virtual server sets holds against what is set for all requests.
                    if link.targets.is_empty() && self.is_fixed(place, *collection, name) {
                        continue;
                    }
                    let value = match to.as_bytes() {
                        Some(bytes) => Value::from_bytes(bytes),
                        None => Value::from_bytes(&self.expanded(place, to)),
                    };
                    self.write(place, *collection, name, Some(value));
                }
                Effect::Add(collection, name, by, sign) => {
                    let by = match by.as_bytes() {
                        Some(bytes) => number_of(bytes),
                        None => number_of(&self.expanded(place, by)),
                    };
                    let before = self.read(place, *collection, name);
                    let value = match sign {
                        Sign::More => before.saturating_add(by),
                        Sign::Less => before.saturating_sub(by),
                    };
                    self.write(place, *collection, name, Some(Value::Number(value)));
                }
                Effect::Remove(collection, name) => self.write(place, *collection, name, None),
                Effect::Control(control) => self.control(control),
                Effect::Mask(target) => self.masked.push(target.clone()),
                // Stored collections begin empty, and go with the request: the view has warned of that.
                Effect::Open(_) | Effect::Expire => {}
            }
        }
    }

    fn is_fixed(&mut self, place: u32, collection: Variable, name: &VariableName) -> bool {
        let view = Arc::clone(&self.view);
        let is_known = |symbol: &Symbol| view.fixed.has(symbol.0 as usize);
        collection == Variable::Tx
            && match name {
                VariableName::Known(symbol) => is_known(symbol),
                VariableName::Made(name) => {
                    let name = self.expanded(place, name).to_ascii_lowercase();
                    match view.rules.symbols.get(&name) {
                        Some(symbol) => is_known(&symbol),
                        None => view.unnamed.iter().any(|(it, _)| **it == *name),
                    }
                }
            }
    }

    fn read(&mut self, place: u32, collection: Variable, name: &VariableName) -> i64 {
        let view = Arc::clone(&self.view);
        let symbols = &view.rules.symbols;
        let value = match name {
            VariableName::Known(symbol) => self.written.get(collection, *symbol, symbols),
            VariableName::Made(name) => {
                let name = self.expanded(place, name);
                self.written.get_named(collection, &name, symbols)
            }
        };
        value.map_or(0, Value::number)
    }

    fn write(
        &mut self,
        place: u32,
        collection: Variable,
        name: &VariableName,
        value: Option<Value>,
    ) {
        let view = Arc::clone(&self.view);
        let symbols = &view.rules.symbols;
        match name {
            VariableName::Known(symbol) => self.written.set(collection, *symbol, value, symbols),
            VariableName::Made(name) => {
                let name = self.expanded(place, name);
                if !self.written.set_named(collection, &name, value, symbols) {
                    self.exceeded.get_or_insert(Limit::Variables);
                }
            }
        }
    }

    fn control(&mut self, control: &Control) {
        match control {
            Control::RemoveById(ids) => self.remove_rules(|rule| ids.has(rule.id)),
            Control::RemoveByTag(tag) => self.remove_rules(|rule| rule.tags.contains(tag)),
            Control::RemoveByMessage(message) => {
                self.remove_rules(|rule| rule.message_text().as_deref() == Some(message));
            }
            Control::RemoveTargetById(ids, target) => {
                self.remove_target(target, |rule| ids.has(rule.id))
            }
            Control::RemoveTargetByTag(tag, target) => {
                self.remove_target(target, |rule| rule.tags.contains(tag));
            }
            Control::RemoveTargetByMessage(message, target) => {
                self.remove_target(target, |rule| rule.message_text().as_deref() == Some(message));
            }
            Control::ForceRequestBodyVariable(is_on) => self.body.is_kept = *is_on,
            Control::RequestBodyAccess(is_on) => self.body.is_read = *is_on,
            Control::ResponseBodyAccess(is_on) => self.body.is_response_read = *is_on,
            Control::RequestBodyProcessor(name) => self.choose_processor(name),
            Control::RequestBodyLimit(bytes) => self.body.bytes_max = Some(*bytes),
            Control::AuditEngine(toggle) => self.is_audited = *toggle != Toggle::Off,
            // Weir's audit log has one form.
            Control::AuditLogParts => {}
            // It never blocks more than its settings say.
            Control::RuleEngine(toggle) => {
                self.is_on = *toggle != Toggle::Off;
                self.only_detects = *toggle == Toggle::DetectionOnly;
            }
        }
    }

    fn rules_where(&self, is_it: impl Fn(&crate::plan::CompiledRule) -> bool) -> Bits {
        let rules = &self.view.rules.rules;
        let mut found = Bits::none(rules.len());
        let all = rules.iter().enumerate().filter(|(_, rule)| is_it(rule));
        all.for_each(|(place, _)| found.set(place));
        found
    }

    fn remove_rules(&mut self, is_it: impl Fn(&crate::plan::CompiledRule) -> bool) {
        let found = self.rules_where(is_it);
        self.removed.add(&found);
    }

    fn remove_target(
        &mut self,
        target: &Target,
        is_it: impl Fn(&crate::plan::CompiledRule) -> bool,
    ) {
        let is_known = |(_, known): &(Bits, Target)| known == target;
        let found = self.rules_where(is_it);
        match self.removed_targets.iter_mut().find(|entry| is_known(entry)) {
            Some((rules, _)) => rules.add(&found),
            None => self.removed_targets.push((found, target.clone())),
        }
    }

    /// Whether a value is masked in logs.
    pub(super) fn is_masked(&self, hit: &Hit) -> bool {
        let is_same = |target: &Target| {
            target.variable == hit.variable
                || target.variable == Variable::Args
                    && matches!(hit.variable, Variable::ArgsGet | Variable::ArgsPost)
        };
        self.masked
            .iter()
            .any(|target| is_same(target) && target.selector.takes(self.texts.get(hit.name)))
    }
}
