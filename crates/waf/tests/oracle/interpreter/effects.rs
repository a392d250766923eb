//! The effects of a rule, which are applied once for each matching value.

use weir_waf::body::Processor;
use weir_waf::seclang::{Action, Control, Rule, SetVariable, Toggle, Variable, VariableChange};

use super::machine::Machine;
use super::number;
use super::program::Whole;

impl Machine<'_> {
    pub fn take_effects(&mut self, whole: &Whole, link: &Rule) {
        for action in &link.actions {
            match action {
                Action::SetVariable(set) => self.set_variable(whole, link, set),
                Action::Control(control) => self.control(control),
                _ => {}
            }
        }
    }

    fn set_variable(&mut self, whole: &Whole, link: &Rule, set: &SetVariable) {
        let name = self.expand(whole, &set.name).to_ascii_lowercase();
        // Settings of the virtual server override assignments by `SecAction`, but not its additions.
        let is_set = matches!(set.change, VariableChange::Set(_)) && link.targets.is_empty();
        if is_set && set.collection == Variable::Tx && self.fixed.contains(&name) {
            return;
        }
        let value = match &set.change {
            VariableChange::Remove => None,
            VariableChange::Set(text) => Some(self.expand(whole, text)),
            VariableChange::Add(text) => {
                let more = number(&self.expand(whole, text));
                Some(self.number(set.collection, &name).saturating_add(more).to_string().into())
            }
            VariableChange::Subtract(text) => {
                let less = number(&self.expand(whole, text));
                Some(self.number(set.collection, &name).saturating_sub(less).to_string().into())
            }
        };
        self.write(set.collection, name, value);
    }

    pub fn write(&mut self, collection: Variable, name: Vec<u8>, value: Option<Vec<u8>>) {
        let kept = self.written.entry(collection).or_default();
        match value {
            Some(value) => kept.insert(name, value),
            None => kept.remove(&name),
        };
    }

    /// The number in a written variable; 0: the variable has no value.
    pub fn number(&self, collection: Variable, name: &[u8]) -> i64 {
        let kept = self.written.get(&collection).and_then(|kept| kept.get(name));
        kept.map_or(0, |value| number(value))
    }

    fn control(&mut self, control: &Control) {
        match control {
            Control::ForceRequestBodyVariable(it) => self.message.is_body_forced = *it,
            Control::RequestBodyAccess(it) => self.reads_body = *it,
            Control::ResponseBodyAccess(it) => self.reads_response = *it,
            Control::RequestBodyProcessor(name) => {
                let processor = Processor::named(name.as_bytes()).expect("a processor");
                self.message.choose(processor);
            }
            Control::AuditEngine(toggle) => self.is_audited = *toggle != Toggle::Off,
            Control::RuleEngine(toggle) => {
                self.engine = *toggle;
                self.is_ended |= *toggle == Toggle::Off;
            }
            removal => self.controls.push(removal.clone()),
        }
    }
}
