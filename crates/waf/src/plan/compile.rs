//! Compiles directives to rules.

mod drafts;
mod numbering;
mod operators;
mod order;
mod removals;
mod rules;
mod shared;

#[cfg(test)]
pub(super) use operators::needs_of;

use std::collections::HashMap;

use drafts::{Defaults, Draft, has_message, has_tag};
use order::Order;
use shared::SharedParts;

use super::rule::CompiledRule;
use super::rule_set::{FileSettings, RuleSet};
use super::scopes::Scopes;
use super::sources::{self, Files};
use super::symbols::Symbols;
use super::view;
use crate::seclang::{
    Directive, DirectiveKind, IdRange, Phase, Place, Problem, Selector, Setting, Variable,
};

impl RuleSet {
    /// Compiles these files in this order.
    pub fn compile(paths: &[String], files: &mut dyn Files) -> Result<Self, Vec<Problem>> {
        let directives = sources::directives(paths, files)?;
        let mut compiler = Compiler::new(files);
        for directive in directives {
            compiler.take(directive);
        }
        compiler.finish()
    }
}

struct Compiler<'a> {
    files: &'a mut dyn Files,
    defaults: HashMap<Phase, Defaults>,
    /// The rules so far, including removed rules.
    drafts: Vec<Draft>,
    /// The places of each marker: the number of rules before it.
    markers: HashMap<Box<str>, Vec<usize>>,
    settings: FileSettings,
    signatures: Vec<Box<str>>,
    symbols: Symbols,
    problems: Vec<Problem>,
}

impl<'a> Compiler<'a> {
    fn new(files: &'a mut dyn Files) -> Self {
        Self {
            files,
            defaults: HashMap::new(),
            drafts: Vec::new(),
            markers: HashMap::new(),
            settings: FileSettings::default(),
            signatures: Vec::new(),
            symbols: Symbols::default(),
            problems: Vec::new(),
        }
    }

    fn problem(&mut self, place: &Place, message: impl Into<String>, help: &str) {
        let help = (!help.is_empty()).then(|| help.to_owned());
        self.problems.push(Problem { place: place.clone(), message: message.into(), help });
    }

    fn take(&mut self, directive: Directive) {
        let Directive { place, kind } = directive;
        match kind {
            DirectiveKind::Rule(rule) => self.rule(place, rule),
            DirectiveKind::Marker(label) => {
                self.markers.entry(label).or_default().push(self.drafts.len());
            }
            DirectiveKind::DefaultAction(actions) => self.default_action(&actions),
            DirectiveKind::ComponentSignature(text) => self.signatures.push(text),
            DirectiveKind::UpdateTargetById(ids, targets) => {
                self.update_targets(&targets, |draft| ids.has(draft.id));
            }
            DirectiveKind::UpdateTargetByTag(tag, targets) => {
                self.update_targets(&targets, |draft| has_tag(&draft.rule, &tag));
            }
            DirectiveKind::UpdateTargetByMessage(message, targets) => {
                self.update_targets(&targets, |draft| has_message(&draft.rule, &message));
            }
            DirectiveKind::UpdateActionById(id, actions) => {
                self.update_actions(&place, id, &actions)
            }
            DirectiveKind::RemoveById(ranges) => {
                self.remove(|draft| ranges.iter().any(|range: &IdRange| range.has(draft.id)));
            }
            DirectiveKind::RemoveByTag(tag) => self.remove(|draft| has_tag(&draft.rule, &tag)),
            DirectiveKind::RemoveByMessage(message) => {
                self.remove(|draft| has_message(&draft.rule, &message));
            }
            DirectiveKind::Setting(setting) => self.set(&setting),
            // Included files were read before.
            DirectiveKind::Include(..) => {}
        }
    }

    fn set(&mut self, setting: &Setting) {
        match *setting {
            Setting::ArgumentSeparator(byte) => self.settings.argument_separator = byte,
            Setting::CollectionTimeout(seconds) => self.settings.collection_timeout_s = seconds,
            Setting::ArgumentsLimit(count) => self.settings.arguments_max = Some(count),
            Setting::JsonDepthLimit(depth) => self.settings.json_depth_max = Some(depth),
        }
    }

    fn finish(mut self) -> Result<RuleSet, Vec<Problem>> {
        let drafts = std::mem::take(&mut self.drafts);
        let mut shared = SharedParts::default();
        let mut rules = Vec::with_capacity(drafts.len());
        // Markers count all rules, including removed rules, which have no place of their own.
        let mut places = Vec::with_capacity(drafts.len() + 1);
        for draft in &drafts {
            places.push(rules.len());
            if draft.is_removed {
                continue;
            }
            match self.compiled(draft, &mut shared) {
                Ok(rule) => rules.push((rule, draft)),
                Err(message) => self.problem(&draft.place, message, ""),
            }
        }
        places.push(rules.len());
        let by_id = rules.iter().enumerate().map(|(index, (rule, _))| (rule.id, index)).collect();
        let phases = rules.iter().map(|(rule, _)| rule.phase).collect();
        let order = Order { places, by_id, phases };
        let mut compiled = Vec::with_capacity(rules.len());
        for (own, (mut rule, draft)) in rules.into_iter().enumerate() {
            match self.skip(draft, own, &order) {
                Ok(skip) => rule.skip = skip,
                Err(message) => {
                    self.problem(&draft.place, message, "add the marker, or remove `skipAfter`")
                }
            }
            compiled.push(rule);
        }
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        removals::resolve(&mut compiled);
        select(&mut self.symbols, &compiled);
        let SharedParts { pipelines, needs, groups, targets, sets_count } = shared;
        let mut rules = RuleSet {
            rules: compiled,
            settings: self.settings,
            signatures: self.signatures,
            pipelines,
            symbols: self.symbols,
            operators_count: needs.len(),
            operators: Vec::new(),
            scopes: Scopes::default(),
            groups,
            targets,
            sets_count: sets_count.into(),
            by_id: order.by_id,
        };
        let needs = numbering::usual_first(&mut rules, needs);
        let RuleSet { rules: compiled, groups, targets, pipelines, .. } = &rules;
        rules.scopes = Scopes::new(compiled, groups, targets, pipelines, needs.len());
        rules.operators = view::indexes(&rules, &needs);
        Ok(rules)
    }
}

/// Looks up the variables that the targets of these rules select by a pattern.
fn select(symbols: &mut Symbols, rules: &[CompiledRule]) {
    let targets = rules.iter().flat_map(|rule| &rule.links).flat_map(|link| &link.targets);
    for target in targets.filter(|target| target.variable == Variable::Tx) {
        if let Selector::Pattern(pattern) = &target.selector {
            symbols.select(pattern);
        }
    }
}
