//! The evaluation of rules in order.

use std::ops::Range;
use std::sync::Arc;

use super::bounds::AfterRule;
use super::compare::OpResult;
use super::hit::Hit;
use super::options::Mode;
use super::report::{Match, MatchedValue, Verdict};
use super::state::{Place, SkippedRules, State};
use super::texts::{TextId, Texts};
use crate::plan::{CompiledRule, Link, ScopeId, Stage, View};
use crate::seclang::{Allow, Disruption, Phase, Selector, Target, TargetKind};
use crate::value::Value;

/// Maximum size of a value in a report, in bytes.
const TOLD_BYTES_MAX: usize = 512;
/// The replacement of a masked value in reports.
const MASK: &[u8] = b"***";
/// Maximum number of reported values of one rule.
const TOLD_VALUES_MAX: usize = 32;
/// Maximum number of reported matches.
const MATCHES_MAX: usize = 1_024;

/// Begins a phase. Returns a verdict if a limit that was exceeded in an earlier phase still applies.
pub(super) fn begin_phase(state: &mut State, phase: Phase) -> Option<Verdict> {
    let is_request = phase <= Phase::RequestBody;
    if state.message.variables.texts.enter(if is_request {
        Stage::Request
    } else {
        Stage::Response
    }) {
        state.groups.forget();
    }
    state.bounds.begin_phase(state.message.variables.texts.work_bytes()).map(Verdict::Exceeded)
}

/// The place where evaluation continues after a rule.
enum AfterActions {
    On,
    /// The first rule at or after this place in the order of all rules.
    At(u32),
    /// The phase ends.
    EndPhase,
    Stop(Verdict),
}

impl State {
    /// Evaluates the rules of a phase from a place on. `Err`: the turn is over before the rules are; the place where the next one
    /// goes on. Except in a first turn, at least one rule is evaluated.
    pub(super) fn rules(&mut self, place: Place) -> Result<Verdict, Place> {
        let view = Arc::clone(&self.view);
        let Place { phase, mut at } = place;
        let rules = &view.phases[phase as usize - 1];
        let firsts = &view.firsts[phase as usize - 1];
        while let (Some(&place), Some(first)) = (rules.get(at), firsts.get(at)) {
            at += 1;
            if !self.engine.is_on || self.passing.passes_over(phase) {
                break;
            }
            if self.removals.rules.has(place as usize) {
                continue;
            }
            let may_hold = first.is_none_or(|first| {
                self.groups.may_match(&mut self.message, &view, first.group, first.operator)
            });
            let rule = &view.rules.rules[place as usize];
            let holds = may_hold && self.holds(&view, place, rule);
            if let Some((counts, compared_bytes)) = self.bounds.end_rule() {
                self.counts = counts;
                self.message.variables.texts.uncount_compared(compared_bytes);
                // A pattern that was built counts as work anew.
                self.made_pattern = None;
                return Err(Place { phase, at: at - 1 });
            }
            if holds {
                match self.act(&view, place, rule) {
                    AfterActions::On => {}
                    AfterActions::At(to) => at = rules.partition_point(|place| *place < to).max(at),
                    AfterActions::EndPhase => break,
                    AfterActions::Stop(verdict) => return Ok(verdict),
                }
            }
            match self.bounds.after(rule, self.message.variables.texts.work_bytes()) {
                AfterRule::On => {}
                AfterRule::Stop(verdict) => return Ok(verdict),
                AfterRule::Turn => return Err(Place { phase, at }),
            }
        }
        Ok(Verdict::Pass)
    }

    /// Whether all links of a rule match.
    fn holds(&mut self, view: &View, place: u32, rule: &CompiledRule) -> bool {
        self.hits.clear();
        self.bounds.begin_rule((self.counts, self.message.variables.texts.compared_bytes()));
        let mut links = rule.links.iter();
        let holds = links.next().is_none_or(|first| self.link_holds(view, place, first));
        // What a first link without targets does is an act, too.
        self.bounds.keep_rule();
        holds && links.all(|link| self.link_holds(view, place, link))
    }

    fn link_holds(&mut self, view: &View, place: u32, link: &Link) -> bool {
        if link.targets.is_empty() {
            self.take_effects(view, place, link);
            return true;
        }
        if let Some(group) = link.group {
            return self.group_holds(view, place, link, group);
        }
        let mut holds = false;
        let mut found = std::mem::take(&mut self.found);
        for target in &link.targets {
            match target.kind {
                TargetKind::Excluded => continue,
                _ if self.bounds.leaves_rule() => break,
                TargetKind::Count => {
                    found.clear();
                    found.push(self.counted(place, link, target));
                }
                TargetKind::Values => self.collect(place, link, target, &mut found),
            }
            for hit in &found {
                if self.rule_ends() {
                    break;
                }
                holds |= self.value_holds(view, place, link, *hit);
            }
        }
        self.found = found;
        holds
    }

    /// Whether further values of the current rule are not inspected.
    #[inline]
    fn rule_ends(&mut self) -> bool {
        self.bounds.ends_rule(self.message.variables.texts.work_bytes(), !self.hits.is_empty())
    }

    /// The number of a target's values, in the form of a value.
    fn counted(&mut self, place: u32, link: &Link, target: &Target) -> Hit {
        let count = self.count(place, link, target);
        let name = match &target.selector {
            Selector::Name(name) => self.message.variables.texts.add(name.as_bytes()),
            _ => Texts::EMPTY,
        };
        let text = self.message.variables.texts.add(count.to_string().as_bytes());
        Hit { variable: target.variable, name, text, is_count: true }
    }

    /// Whether a link matches a value of its group.
    fn group_holds(&mut self, view: &View, place: u32, link: &Link, group: u16) -> bool {
        let operator = link.operator.number;
        let has_removed = self.removals.has_targets_of(place);
        let mut holds = false;
        for part in self.groups.group(&mut self.message, view, group, operator) {
            let mut places = self.groups.list(view, part, operator);
            while let Some(hit) =
                self.groups.next(&self.message.variables.texts, view, operator, &mut places)
            {
                if self.rule_ends() {
                    return holds;
                }
                if !(has_removed && self.removals.takes_out(place, &hit, &self.message)) {
                    holds |= self.compared(view, place, link, hit);
                }
            }
        }
        holds
    }

    /// Whether a link matches a value. If so, its effects are applied.
    fn value_holds(&mut self, view: &View, place: u32, link: &Link, hit: Hit) -> bool {
        let Some(pipeline) = view.rules.pipelines.get(usize::from(link.pipeline.0)) else {
            return false;
        };
        if !link.is_multi_match {
            let text = self.message.variables.texts.transformed(hit.text, pipeline);
            return self.text_holds(view, place, link, Hit { text, ..hit });
        }
        // Each text once: the original value, and the result of each step that changes it.
        let mut holds = self.text_holds(view, place, link, hit);
        let mut text = hit.text;
        for step in &pipeline.steps {
            let next = self.message.variables.texts.transformed_once(text, *step);
            if next != text {
                text = next;
                holds |= self.text_holds(view, place, link, Hit { text, ..hit });
            }
        }
        holds
    }

    fn text_holds(&mut self, view: &View, place: u32, link: &Link, hit: Hit) -> bool {
        if let Some(operator) = link.operator.number {
            self.message.variables.texts.facts(hit.text, ScopeId::ALL, view);
            if !self.message.variables.texts.may_match(hit.text, operator, view.row_words()) {
                return false;
            }
        }
        self.compared(view, place, link, hit)
    }

    fn compared(&mut self, view: &View, place: u32, link: &Link, hit: Hit) -> bool {
        let outcome = self.compare(view, place, link, hit.text);
        if outcome.holds() == link.is_negated {
            return false;
        }
        self.hits.push(hit);
        if link.captures {
            self.capture(hit.text, outcome);
        }
        self.take_effects(view, place, link);
        true
    }

    /// Stores the groups of a pattern in `TX:0` to `TX:9`.
    fn capture(&mut self, text: TextId, outcome: OpResult) {
        let bytes = self.message.variables.texts.get(text);
        let value = |range: Range<usize>| Value::from_bytes(bytes.get(range).unwrap_or_default());
        match outcome {
            OpResult::No => {}
            OpResult::Groups(found) => {
                // A group that is not part of the match is empty.
                let found = found
                    .into_iter()
                    .map(|group| group.map_or_else(|| Value::Text(Arc::default()), value));
                self.written.set_groups(found);
            }
            OpResult::Part(range) => self.written.set_groups([value(range)].into_iter()),
            OpResult::Found(found) => {
                self.written.set_groups([Value::from_bytes(&found)].into_iter());
            }
            OpResult::Yes => self.written.set_groups([Value::from_bytes(bytes)].into_iter()),
        }
    }

    /// Applies the actions of a matched rule.
    fn act(&mut self, view: &View, place: u32, rule: &CompiledRule) -> AfterActions {
        self.note(view, place, rule);
        let stop = |verdict| AfterActions::Stop(verdict);
        let next = match &rule.disruption {
            Disruption::Pass | Disruption::Block => AfterActions::On,
            Disruption::Allow(how) => {
                match how {
                    Allow::Phase => return AfterActions::EndPhase,
                    Allow::Request => self.passing = SkippedRules::Request,
                    Allow::Everything => self.passing = SkippedRules::Everything,
                }
                return AfterActions::EndPhase;
            }
            Disruption::Deny => stop(Verdict::Deny { status: rule.status, rule: rule.id }),
            Disruption::Drop => stop(Verdict::Drop { rule: rule.id }),
            Disruption::Redirect(_) => {
                let to = rule
                    .redirect
                    .as_ref()
                    .map(|to| self.expanded(view, place, to))
                    .unwrap_or_default();
                let status = if (300..400).contains(&rule.status) { rule.status } else { 302 };
                stop(Verdict::Redirect { to, status, rule: rule.id })
            }
        };
        // A rule that turns the engine off does not block. In the logging phase, the response was already sent.
        if let AfterActions::Stop(verdict) = next
            && self.engine.is_on
            && rule.phase != Phase::Logging
        {
            if self.mode == Mode::Block && !self.engine.only_detects {
                return AfterActions::Stop(verdict);
            }
            self.would_be.get_or_insert(verdict);
        }
        rule.skip.map_or(AfterActions::On, AfterActions::At)
    }

    /// Records a match.
    fn note(&mut self, view: &View, place: u32, rule: &CompiledRule) {
        if let Some(severity) = rule.severity {
            self.highest_severity = self.highest_severity.min(severity as u8);
        }
        if self.matches.len() >= MATCHES_MAX || !(rule.is_logged || rule.is_audited) {
            return;
        }
        let message =
            rule.message.as_ref().map(|it| self.expanded(view, place, it)).unwrap_or_default();
        let log_data =
            rule.log_data.as_ref().map(|it| self.expanded(view, place, it)).unwrap_or_default();
        let values = self.hits.iter().take(TOLD_VALUES_MAX).map(|hit| {
            let value = self.message.variables.texts.get(hit.text);
            let is_masked = self.removals.masks(hit, &self.message);
            let told = if is_masked { MASK } else { &value[..value.len().min(TOLD_BYTES_MAX)] };
            MatchedValue { variable: self.message.variables.full_name(hit), value: told.to_vec() }
        });
        let values = values.collect();
        self.matches.push(Match {
            rule: place,
            id: rule.id,
            message,
            log_data,
            values,
            is_logged: rule.is_logged,
            is_audited: rule.is_audited,
        });
    }
}
