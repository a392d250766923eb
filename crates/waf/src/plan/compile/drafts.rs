//! Rules that later directives may change.

use regex::bytes::Regex;

use super::Compiler;
use crate::seclang::{Action, Disruption, Phase, Piece, Place, Rule, Target};
use crate::transformation::Transformation;

/// The status of a denying rule that sets no status.
const STATUS_DEFAULT: u16 = 403;
/// Maximum number of rules.
const RULES_MAX: usize = 20_000;

/// The defaults of a phase, set by `SecDefaultAction`.
#[derive(Debug, Clone)]
pub(super) struct Defaults {
    pub disruption: Disruption,
    pub status: u16,
    pub is_logged: bool,
    pub is_audited: bool,
    pub transformations: Vec<Transformation>,
    pub captures: bool,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            disruption: Disruption::Pass,
            status: STATUS_DEFAULT,
            is_logged: true,
            is_audited: true,
            transformations: Vec::new(),
            captures: false,
        }
    }
}

/// A rule that later directives may change.
pub(super) struct Draft {
    pub place: Place,
    pub id: u64,
    pub rule: Rule,
    pub defaults: Defaults,
    pub is_removed: bool,
}

impl Compiler<'_> {
    pub(super) fn default_action(&mut self, actions: &[Action]) {
        let mut defaults = Defaults::default();
        let mut phase = Phase::RequestBody;
        for action in actions {
            match action {
                Action::Phase(given) => phase = *given,
                Action::Disruption(disruption) => defaults.disruption = disruption.clone(),
                Action::Status(status) => defaults.status = *status,
                Action::Log(is_logged) => {
                    (defaults.is_logged, defaults.is_audited) = (*is_logged, *is_logged);
                }
                Action::AuditLog(is_audited) => defaults.is_audited = *is_audited,
                Action::Transform(Some(transformation)) => {
                    defaults.transformations.push(*transformation);
                }
                Action::Transform(None) => defaults.transformations.clear(),
                Action::Capture => defaults.captures = true,
                _ => {}
            }
        }
        self.defaults.insert(phase, defaults);
    }

    pub(super) fn rule(&mut self, place: Place, rule: Rule) {
        let id = rule.actions.iter().find_map(|action| match action {
            Action::Id(id) => Some(*id),
            _ => None,
        });
        let Some(id) = id else {
            return self.problem(&place, "the rule has no `id`", "give it a number of its own");
        };
        if let Some(other) = self.drafts.iter().find(|draft| draft.id == id && !draft.is_removed) {
            let message = format!("the number {id} is taken by the rule at {}", other.place);
            return self.problem(&place, message, "give each rule a number of its own");
        }
        if self.drafts.len() >= RULES_MAX {
            return self.problem(&place, format!("there are more than {RULES_MAX} rules"), "");
        }
        let defaults = self.defaults.get(&phase_of(&rule)).cloned().unwrap_or_default();
        self.drafts.push(Draft { place, id, rule, defaults, is_removed: false });
    }

    pub(super) fn remove(&mut self, is_it: impl Fn(&Draft) -> bool) {
        for draft in &mut self.drafts {
            draft.is_removed |= is_it(draft);
        }
    }

    /// Adds targets or exclusions to the selected rules among those so far.
    pub(super) fn update_targets(&mut self, targets: &[Target], is_it: impl Fn(&Draft) -> bool) {
        // A rule without targets is an unconditional action. A target would make it conditional.
        let has_targets = |draft: &Draft| !draft.rule.targets.is_empty();
        for draft in self.drafts.iter_mut().filter(|draft| has_targets(draft) && is_it(draft)) {
            draft.rule.targets.extend_from_slice(targets);
        }
    }

    pub(super) fn update_actions(&mut self, place: &Place, id: u64, actions: &[Action]) {
        let Some(draft) = self.drafts.iter_mut().find(|draft| draft.id == id && !draft.is_removed)
        else {
            let help = "put the directive after the rule that it changes";
            return self.problem(place, format!("there is no rule {id}"), help);
        };
        // An action that may occur only once replaces the previous one.
        for action in actions {
            let kind = std::mem::discriminant(action);
            let is_many = matches!(
                action,
                Action::Tag(_) | Action::Transform(_) | Action::SetVariable(_) | Action::Control(_)
            );
            if !is_many {
                draft.rule.actions.retain(|known| std::mem::discriminant(known) != kind);
            }
            draft.rule.actions.push(action.clone());
        }
    }
}

pub(super) fn phase_of(rule: &Rule) -> Phase {
    let given = rule.actions.iter().find_map(|action| match action {
        Action::Phase(phase) => Some(*phase),
        _ => None,
    });
    given.unwrap_or(Phase::RequestBody)
}

pub(super) fn severity_of(rule: &Rule) -> Option<u8> {
    let of = |action: &Action| match action {
        Action::Severity(severity) => Some(*severity as u8),
        _ => None,
    };
    rule.actions.iter().filter_map(of).next_back()
}

pub(super) fn tag(action: &Action) -> Option<Box<str>> {
    match action {
        Action::Tag(tag) => Some(tag.clone()),
        _ => None,
    }
}

pub(super) fn has_tag(rule: &Rule, wanted: &Regex) -> bool {
    rule.actions.iter().filter_map(tag).any(|tag| wanted.is_match(tag.as_bytes()))
}

pub(super) fn has_message(rule: &Rule, wanted: &Regex) -> bool {
    rule.actions.iter().any(|action| match action {
        Action::Message(text) => {
            let text: String = text.0.iter().filter_map(plain).collect();
            wanted.is_match(text.as_bytes())
        }
        _ => false,
    })
}

fn plain(piece: &Piece) -> Option<&str> {
    match piece {
        Piece::Text(text) => Some(text),
        _ => None,
    }
}
