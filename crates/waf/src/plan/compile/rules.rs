//! Compilation of a rule and its chain.

use super::Compiler;
use super::drafts::{Draft, phase_of, severity_of, tag};
use super::shared::SharedParts;
use crate::plan::index::Bits;
use crate::plan::operators::CompiledOperator;
use crate::plan::rule::{CompiledRule, Effect, Link, Sign, VariableName};
use crate::plan::template::{CompiledTemplate, template};
use crate::seclang::{
    Action, Disruption, OperatorKind, Phase, Rule, Selector, Target, Template, Variable,
    VariableChange,
};

impl Compiler<'_> {
    pub(super) fn compiled(
        &mut self,
        draft: &Draft,
        shared: &mut SharedParts,
    ) -> Result<CompiledRule, String> {
        let Draft { place, id, rule, defaults, .. } = draft;
        let mut compiled = CompiledRule {
            id: *id,
            place: place.clone(),
            phase: phase_of(rule),
            message: None,
            log_data: None,
            tags: rule.actions.iter().filter_map(tag).collect(),
            severity: None,
            version: None,
            links: Box::default(),
            disruption: defaults.disruption.clone(),
            redirect: None,
            status: defaults.status,
            is_logged: defaults.is_logged,
            is_audited: defaults.is_audited,
            skip: None,
            absent: None,
        };
        // If the first rule of a chain has no message, the message of the last rule is used.
        let mut links = Vec::new();
        let mut at = Some(rule);
        while let Some(rule) = at {
            self.describe(&mut compiled, rule, links.is_empty());
            compiled.absent = compiled.absent.take().or_else(|| what_is_absent(rule));
            links.push(self.link(draft, rule, shared)?);
            at = rule.chained.as_deref();
        }
        // `block` means the disruptive action in the defaults of the phase.
        if compiled.disruption == Disruption::Block {
            compiled.disruption = match &defaults.disruption {
                Disruption::Block => Disruption::Pass,
                other => other.clone(),
            };
        }
        if let Disruption::Redirect(to) = &compiled.disruption {
            compiled.redirect = Some(self.template(to, draft));
        }
        compiled.links = links.into();
        Ok(compiled)
    }

    pub(super) fn template(&mut self, text: &Template, draft: &Draft) -> CompiledTemplate {
        template(text, &mut self.symbols, draft.id, severity_of(&draft.rule))
    }

    fn describe(&mut self, compiled: &mut CompiledRule, rule: &Rule, is_first: bool) {
        let own = (compiled.id, severity_of(rule));
        for action in &rule.actions {
            match action {
                Action::Message(text) if is_first || compiled.message.is_none() => {
                    compiled.message = Some(template(text, &mut self.symbols, own.0, own.1));
                }
                Action::LogData(text) if is_first || compiled.log_data.is_none() => {
                    compiled.log_data = Some(template(text, &mut self.symbols, own.0, own.1));
                }
                Action::Severity(severity) => compiled.severity = Some(*severity),
                Action::Version(version) => compiled.version = Some(version.clone()),
                Action::Disruption(disruption) => compiled.disruption = disruption.clone(),
                Action::Status(status) => compiled.status = *status,
                Action::Log(is_logged) => {
                    (compiled.is_logged, compiled.is_audited) = (*is_logged, *is_logged);
                }
                Action::AuditLog(is_audited) => compiled.is_audited = *is_audited,
                _ => {}
            }
        }
    }

    fn link(
        &mut self,
        draft: &Draft,
        rule: &Rule,
        shared: &mut SharedParts,
    ) -> Result<Link, String> {
        // Chained rules also use the defaults of the phase.
        let mut pipeline = draft.defaults.transformations.clone();
        let mut effects = Vec::new();
        let (mut captures, mut is_multi_match) = (draft.defaults.captures, false);
        for action in &rule.actions {
            match action {
                Action::Transform(None) => pipeline.clear(),
                Action::Transform(Some(transformation)) => pipeline.push(*transformation),
                Action::Capture => captures = true,
                Action::MultiMatch => is_multi_match = true,
                _ => effects.extend(self.effect(action, draft)),
            }
        }
        let pipeline = shared.pipeline(pipeline)?;
        for target in rule.targets.iter().filter(|target| target.variable == Variable::Tx) {
            if let Selector::Name(name) = &target.selector {
                self.symbols.intern(name.as_bytes());
            }
        }
        let (kind, needs) = self.operator(&rule.operator, draft)?;
        // A negated operator matches texts that lack the needed parts, so the index cannot be used.
        let is_chosen = !rule.operator.is_negated;
        let is_late = phase_of(&draft.rule) > Phase::RequestBody;
        let number =
            needs.filter(|_| is_chosen).map(|needs| shared.operator(needs, is_late)).transpose()?;
        let targets: Box<[Target]> = rule.targets.clone().into();
        // `ctl` may change values that this link has not yet inspected.
        let is_steady = !effects.iter().any(|effect| matches!(effect, Effect::Control(..)));
        let group = is_steady
            .then(|| shared.group(&targets, pipeline, is_multi_match, number.is_some()))
            .flatten();
        Ok(Link {
            targets,
            pipeline,
            is_multi_match,
            operator: CompiledOperator { kind, number },
            is_negated: rule.operator.is_negated,
            captures,
            effects: effects.into(),
            group,
        })
    }

    fn effect(&mut self, action: &Action, draft: &Draft) -> Option<Effect> {
        Some(match action {
            Action::SetVariable(set) => {
                let name = self.name(&set.name, draft);
                let collection = set.collection;
                match &set.change {
                    VariableChange::Set(to) => {
                        Effect::Set(collection, name, self.template(to, draft))
                    }
                    VariableChange::Add(by) => {
                        Effect::Add(collection, name, self.template(by, draft), Sign::More)
                    }
                    VariableChange::Subtract(by) => {
                        Effect::Add(collection, name, self.template(by, draft), Sign::Less)
                    }
                    VariableChange::Remove => Effect::Remove(collection, name),
                }
            }
            Action::ExpireVariable { .. } => Effect::Expire,
            Action::InitCollection(collection, _) => Effect::Open(*collection),
            // The selected rules are resolved after all rules are compiled.
            Action::Control(control) => Effect::Control(control.clone(), Bits::default()),
            Action::Sanitise(target) => Effect::Mask(target.clone()),
            _ => return None,
        })
    }

    fn name(&mut self, name: &Template, draft: &Draft) -> VariableName {
        match name.as_text() {
            Some(text) => VariableName::Known(self.symbols.intern(text.as_bytes())),
            None => VariableName::Made(self.template(name, draft)),
        }
    }
}

/// The unsupported feature that a rule needs, and the reason why it is unsupported.
fn what_is_absent(rule: &Rule) -> Option<(String, &'static str)> {
    if let OperatorKind::Elsewhere(name) = &rule.operator.kind {
        let why = "weir queries no external data for a request";
        return Some((format!("the operator `@{name}` is not supported"), why));
    }
    rule.targets.iter().find_map(|target| {
        let why = target.variable.why_absent()?;
        Some((format!("the variable `{}` is not supported", target.variable.name()), why))
    })
}
