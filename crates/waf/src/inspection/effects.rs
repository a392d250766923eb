//! The effects of rules.

use super::report::Limit;
use super::state::State;
use crate::plan::{Bits, Effect, Link, Sign, Symbol, VariableName, View};
use crate::seclang::{Control, Toggle, Variable};
use crate::value::Value;

impl State {
    /// Applies the effects of a link for a matched value.
    pub(super) fn take_effects(&mut self, view: &View, place: u32, link: &Link) {
        for effect in &link.effects {
            match effect {
                Effect::Set(collection, name, to) => {
                    // Values set by a virtual server override unconditional rules.
                    if link.targets.is_empty() && self.is_fixed(view, place, *collection, name) {
                        continue;
                    }
                    let value = match to.as_bytes() {
                        Some(bytes) => Value::from_bytes(bytes),
                        None => Value::from_bytes(&self.expanded(view, place, to)),
                    };
                    self.write(view, place, *collection, name, Some(value));
                }
                Effect::Add(collection, name, by, sign) => {
                    let by = self.number(view, place, by);
                    let before = self.read(view, place, *collection, name);
                    let value = match sign {
                        Sign::More => before.saturating_add(by),
                        Sign::Less => before.saturating_sub(by),
                    };
                    self.write(view, place, *collection, name, Some(Value::Number(value)));
                }
                Effect::Remove(collection, name) => {
                    self.write(view, place, *collection, name, None);
                }
                Effect::Control(control, rules) => self.control(control, rules),
                Effect::Mask(target) => self.removals.mask(target),
                // Stored collections start empty and end with the request. The view has a warning about this.
                Effect::Open(_) | Effect::Expire => {}
            }
        }
    }

    fn is_fixed(
        &mut self,
        view: &View,
        place: u32,
        collection: Variable,
        name: &VariableName,
    ) -> bool {
        let is_known = |symbol: &Symbol| view.fixed.has(symbol.0 as usize);
        collection == Variable::Tx
            && match name {
                VariableName::Known(symbol) => is_known(symbol),
                VariableName::Made(name) => {
                    let name = self.expanded(view, place, name).to_ascii_lowercase();
                    match view.rules.symbols.get_lower(&name) {
                        Some(symbol) => is_known(&symbol),
                        None => view.unnamed.iter().any(|(it, _)| **it == *name),
                    }
                }
            }
    }

    fn read(&mut self, view: &View, place: u32, collection: Variable, name: &VariableName) -> i64 {
        let value = match name {
            VariableName::Known(symbol) => self.written.get(collection, *symbol, view),
            VariableName::Made(name) => {
                let name = self.expanded(view, place, name);
                self.written.get_named(collection, &name, view)
            }
        };
        value.map_or(0, Value::number)
    }

    fn write(
        &mut self,
        view: &View,
        place: u32,
        collection: Variable,
        name: &VariableName,
        value: Option<Value>,
    ) {
        match name {
            VariableName::Known(symbol) => self.written.set(collection, *symbol, value, view),
            VariableName::Made(name) => {
                let name = self.expanded(view, place, name);
                if !self.written.set_named(collection, &name, value, view) {
                    self.bounds.exceed(Limit::Variables);
                }
            }
        }
    }

    fn control(&mut self, control: &Control, rules: &Bits) {
        match control {
            Control::RemoveById(_)
            | Control::RemoveByTag(_)
            | Control::RemoveByMessage(_)
            | Control::RemoveTargetById(..)
            | Control::RemoveTargetByTag(..)
            | Control::RemoveTargetByMessage(..) => {
                self.removals.take(control, rules);
            }
            Control::ForceRequestBodyVariable(is_on) => self.message.body.is_kept = *is_on,
            Control::RequestBodyAccess(is_on) => self.message.body.is_read = *is_on,
            Control::ResponseBodyAccess(is_on) => self.message.body.is_response_read = *is_on,
            Control::RequestBodyProcessor(name) => self.message.choose_processor(name),
            Control::RequestBodyLimit(bytes) => self.message.body.bytes_max = Some(*bytes),
            Control::AuditEngine(toggle) => self.engine.is_audited = *toggle != Toggle::Off,
            // Weir's audit log has one format.
            Control::AuditLogParts => {}
            // Rules cannot block if the settings only allow detection.
            Control::RuleEngine(toggle) => {
                self.engine.is_on = *toggle != Toggle::Off;
                self.engine.only_detects = *toggle == Toggle::DetectionOnly;
            }
        }
    }
}
