//! The evaluation of rules whose result does not depend on the request.
//!
//! Many rules test values that the settings fix: the paranoia level, or whether a default is missing. These rules are
//! evaluated when a view is created, and the rules that they skip are removed from the view. A rule can be decided before
//! any request if all of its inputs are known: variables of `TX` that only decided rules write. All rules are evaluated
//! repeatedly, each time with fewer known variables, until nothing changes.
//!
//! The results must be the same as if every rule were evaluated for every request. So a variable is not known
//! - if it is written by a rule that depends on the request, or by a rule that one of these may skip,
//! - if a remaining rule reads it before its last known value is set,
//! - if an earlier rule ends evaluation for some requests, and the variable is read in a later phase in which these
//!   requests continue,
//! - if a remaining rule can remove the rule that writes it.

mod stays;

use std::collections::HashMap;

use super::index::Bits;
use super::operators::Comparison;
use super::rule::{CompiledRule, Effect, Link, Sign, VariableName};
use super::rule_set::RuleSet;
use super::symbols::Symbol;
use super::template::{CompiledPiece, CompiledTemplate};
use crate::seclang::{Control, Disruption, Pattern, Phase, Selector, TargetKind, Variable};
use crate::value::{Value, number_of};

/// The result of the evaluation before any request.
pub(super) struct Statics {
    /// The rules that are evaluated for each request, by phase.
    pub phases: [Box<[u32]>; 5],
    /// The values at the start of each request.
    pub initial: Vec<(Symbol, Value)>,
}

/// Evaluates the rules that do not depend on the request. `given`: values of the virtual server, which override `SecAction`.
pub(super) fn decide(rules: &RuleSet, given: &[(Symbol, Value)]) -> Statics {
    let mut changing = Bits::none(rules.symbols.len());
    // The groups of a match depend on the request.
    for digit in b'0'..=b'9' {
        if let Some(symbol) = rules.symbols.get(&[digit]) {
            changing.set(symbol.0 as usize);
        }
    }
    loop {
        let mut walk = Walk::new(rules, given, &changing);
        let phases = walk.all();
        let grown = walk.grown;
        if grown.count() == changing.count() {
            let initial = walk.known.into_iter().collect();
            return Statics { phases, initial };
        }
        changing = grown;
    }
}

const PHASES: usize = Phase::ALL.len();

/// One pass over all rules.
struct Walk<'a> {
    rules: &'a RuleSet,
    given: HashMap<Symbol, Value>,
    /// The symbols whose values depend on the request, as known before this pass.
    changing: &'a Bits,
    grown: Bits,
    known: HashMap<Symbol, Value>,
    /// The symbols that remaining rules read.
    read: Bits,
    /// The removals by remaining rules.
    removals: Vec<Control>,
    /// The places to which remaining rules of this phase skip.
    conditional: Vec<u32>,
    /// The phases in which requests continue after a rule ended an earlier phase for them.
    resumes: [bool; PHASES],
    /// The symbols that were set in phases that these requests skip, by the phase in which they continue.
    missed: [Bits; PHASES],
    /// The missed symbols of all phases up to this one.
    uncertain: Bits,
}

impl<'a> Walk<'a> {
    fn new(rules: &'a RuleSet, given: &[(Symbol, Value)], changing: &'a Bits) -> Self {
        let given: HashMap<Symbol, Value> = given.iter().cloned().collect();
        Self {
            rules,
            known: given.clone(),
            given,
            changing,
            grown: changing.clone(),
            read: Bits::none(rules.symbols.len()),
            removals: Vec::new(),
            conditional: Vec::new(),
            resumes: [false; PHASES],
            missed: std::array::from_fn(|_| Bits::none(rules.symbols.len())),
            uncertain: Bits::none(rules.symbols.len()),
        }
    }

    fn all(&mut self) -> [Box<[u32]>; 5] {
        Phase::ALL.map(|phase| self.phase(phase))
    }

    fn phase(&mut self, phase: Phase) -> Box<[u32]> {
        let mut stays = Vec::new();
        // A skip ends with its phase.
        self.conditional.clear();
        self.uncertain.add(&self.missed[phase as usize - 1]);
        let mut skipped_before = 0;
        for (place, rule) in (0u32..).zip(&self.rules.rules) {
            if rule.phase != phase || place < skipped_before {
                continue;
            }
            match self.decided(place, rule) {
                Some(false) => {}
                Some(true) => {
                    self.apply(rule);
                    skipped_before = rule.skip.unwrap_or(skipped_before);
                }
                None => {
                    self.keep(rule);
                    stays.push(place);
                }
            }
        }
        stays.into()
    }

    /// Whether a rule matches; `None`: this depends on the request, or the rule must remain for another reason.
    fn decided(&mut self, place: u32, rule: &CompiledRule) -> Option<bool> {
        for (index, link) in rule.links.iter().enumerate() {
            if !self.is_known(link) {
                return None;
            }
            if !self.holds(link) {
                // The effects of previous links are applied even if this link does not match.
                let has_none = rule.links[..index]
                    .iter()
                    .all(|link| link.effects.is_empty() && !link.captures);
                return has_none.then_some(false);
            }
        }
        // `HIGHEST_SEVERITY` also depends on rules that are not logged.
        let is_silent = !rule.is_logged && !rule.is_audited && rule.severity.is_none();
        let passes = matches!(rule.disruption, Disruption::Pass);
        let is_sure = self.comes_to_the_same(place, rule) && !self.may_be_removed(place, rule);
        let has_known_effects =
            rule.links.iter().all(|link| !link.captures && self.has_known_effects(link));
        (is_silent && passes && is_sure && has_known_effects).then_some(true)
    }

    /// Whether the result is the same for requests in which a remaining rule skips this rule: it has no effects, and the
    /// remaining rule also skips all rules that this rule skips.
    fn comes_to_the_same(&self, place: u32, rule: &CompiledRule) -> bool {
        let has_effects = rule.links.iter().any(|link| !link.effects.is_empty());
        let mut skips = self.conditional.iter().filter(|to| place < **to);
        skips.all(|to| !has_effects && rule.skip.is_none_or(|own| own <= *to))
    }

    fn is_known(&self, link: &Link) -> bool {
        let targets = link.targets.iter().all(|target| {
            target.variable == Variable::Tx
                && target.kind != TargetKind::Excluded
                && match &target.selector {
                    Selector::Name(name) => match self.rules.symbols.get(name.as_bytes()) {
                        Some(symbol) => self.is_certain(symbol),
                        // The name is not in any rule, but a rule may build it at run time.
                        None => false,
                    },
                    _ => false,
                }
        });
        let argument = match &link.operator.kind {
            Comparison::Number(_, template) | Comparison::Text(_, template) => {
                self.is_template_known(template)
            }
            Comparison::Rx(Pattern::Linear(_)) | Comparison::Pm(_) => true,
            Comparison::Always | Comparison::Never => link.targets.is_empty(),
            _ => false,
        };
        targets && argument && !link.is_multi_match
    }

    fn is_template_known(&self, template: &CompiledTemplate) -> bool {
        template.0.iter().all(|piece| match piece {
            CompiledPiece::Text(_) => true,
            CompiledPiece::Written(Variable::Tx, symbol) => self.is_certain(*symbol),
            _ => false,
        })
    }

    /// Whether a variable's value is known here, and the same for all requests that reach this place.
    fn is_certain(&self, symbol: Symbol) -> bool {
        !self.changing.has(symbol.0 as usize) && !self.uncertain.has(symbol.0 as usize)
    }

    fn has_known_effects(&self, link: &Link) -> bool {
        // The effects are applied once for each matching target.
        if link.targets.len() > 1 && !link.effects.is_empty() {
            return false;
        }
        link.effects.iter().all(|effect| match effect {
            Effect::Set(Variable::Tx, VariableName::Known(symbol), value) => {
                self.may_write(*symbol) && self.is_template_known(value)
            }
            Effect::Add(Variable::Tx, VariableName::Known(symbol), by, _) => {
                self.may_write(*symbol) && self.is_certain(*symbol) && self.is_template_known(by)
            }
            Effect::Remove(Variable::Tx, VariableName::Known(symbol)) => self.may_write(*symbol),
            _ => false,
        })
    }

    /// Whether this rule may write a variable before any request: its value does not depend on requests, and no previous
    /// remaining rule reads it.
    fn may_write(&self, symbol: Symbol) -> bool {
        !self.changing.has(symbol.0 as usize) && !self.read.has(symbol.0 as usize)
    }

    /// Whether a remaining rule may remove this rule and so change the result of a request.
    fn may_be_removed(&self, place: u32, rule: &CompiledRule) -> bool {
        self.removals.iter().any(|removal| {
            if !removes(removal, rule) {
                return false;
            }
            // If the rule has no effects, and the rules that it skips are also removed, the removal changes nothing.
            let has_effects = rule.links.iter().any(|link| !link.effects.is_empty());
            let passed_over = rule.skip.map_or(0..0, |to| place as usize + 1..to as usize);
            let rules = self.rules.rules.get(passed_over).unwrap_or_default();
            has_effects || !rules.iter().all(|rule| removes(removal, rule))
        })
    }

    fn holds(&self, link: &Link) -> bool {
        if link.targets.is_empty() {
            return true;
        }
        link.targets.iter().any(|target| {
            let Selector::Name(name) = &target.selector else { return false };
            let symbol = self.rules.symbols.get(name.as_bytes());
            let value = symbol.and_then(|symbol| self.known.get(&symbol));
            let text = match target.kind {
                TargetKind::Count => usize::from(value.is_some()).to_string().into_bytes(),
                _ => match value {
                    Some(value) => value.bytes().into_owned(),
                    None => return false,
                },
            };
            self.compares(link, text) != link.is_negated
        })
    }

    fn compares(&self, link: &Link, mut text: Vec<u8>) -> bool {
        let steps = &self.rules.pipelines[usize::from(link.pipeline.0)].steps;
        for step in steps {
            let mut output = Vec::new();
            if step.apply(&text, &mut output) {
                text = output;
            }
        }
        match &link.operator.kind {
            Comparison::Number(relation, template) => {
                relation.holds(number_of(&text), number_of(&self.expanded(template)))
            }
            Comparison::Text(how, template) => how.holds(&text, &self.expanded(template)),
            Comparison::Rx(pattern) => pattern.is_match(&text).unwrap_or(false),
            Comparison::Pm(words) => words.is_match(&text),
            Comparison::Always => true,
            _ => false,
        }
    }

    fn expanded(&self, template: &CompiledTemplate) -> Vec<u8> {
        let mut text = Vec::new();
        for piece in &template.0 {
            match piece {
                CompiledPiece::Text(bytes) => text.extend_from_slice(bytes),
                CompiledPiece::Written(_, symbol) => {
                    let value = self.known.get(symbol).map(|value| value.bytes().into_owned());
                    text.extend(value.unwrap_or_default());
                }
                _ => {}
            }
        }
        text
    }

    /// Applies the effects of a matched rule.
    fn apply(&mut self, rule: &CompiledRule) {
        for link in &rule.links {
            for effect in &link.effects {
                self.miss(rule.phase, effect);
                match effect {
                    Effect::Set(_, VariableName::Known(symbol), value) => {
                        let is_fixed = link.targets.is_empty() && self.given.contains_key(symbol);
                        if !is_fixed {
                            let value = Value::from_bytes(&self.expanded(value));
                            self.known.insert(*symbol, value);
                        }
                    }
                    Effect::Add(_, VariableName::Known(symbol), by, sign) => {
                        let by = number_of(&self.expanded(by));
                        let before = self.known.get(symbol).map_or(0, Value::number);
                        let value = match sign {
                            Sign::More => before.saturating_add(by),
                            Sign::Less => before.saturating_sub(by),
                        };
                        self.known.insert(*symbol, Value::Number(value));
                    }
                    Effect::Remove(_, VariableName::Known(symbol)) => {
                        self.known.remove(symbol);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Records a write in a phase that some requests skip, because a previous rule ended their evaluation.
    fn miss(&mut self, phase: Phase, effect: &Effect) {
        let (Effect::Set(_, VariableName::Known(symbol), _)
        | Effect::Add(_, VariableName::Known(symbol), ..)
        | Effect::Remove(_, VariableName::Known(symbol))) = effect
        else {
            return;
        };
        for later in phase as usize..PHASES {
            if self.resumes[later] {
                self.missed[later].set(symbol.0 as usize);
            }
        }
    }
}

/// Whether a removal selects this rule.
fn removes(removal: &Control, rule: &CompiledRule) -> bool {
    match removal {
        Control::RemoveById(ids) => ids.has(rule.id),
        Control::RemoveByTag(tag) => rule.tags.contains(tag),
        Control::RemoveByMessage(text) => rule.message_text().as_deref() == Some(text),
        _ => false,
    }
}
