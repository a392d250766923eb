//! Rules in their order.

use std::sync::Arc;

use super::compare::Outcome;
use super::report::{Limit, Match, MatchedValue, Verdict};
use super::state::{Hit, Inspection, Mode, Passing};
use super::texts::{TextId, Texts};
use crate::plan::{CompiledRule, Link};
use crate::seclang::{Allow, Disruption, Phase, TargetKind, Variable};
use crate::value::Value;

/// Bytes of a value that are told.
const TOLD_BYTES_MAX: usize = 512;
/// What is told in place of a value that is masked.
const MASK: &[u8] = b"***";
/// Values of one rule that are told.
const TOLD_VALUES_MAX: usize = 8;
/// Rules that held, of which is told.
const MATCHES_MAX: usize = 1_024;

/// How evaluation goes on behind a rule.
enum Next {
    On,
    /// With the first rule at or behind this place in the order of all rules.
    At(u32),
    /// Not in this phase.
    EndPhase,
    Stop(Verdict),
}

impl Inspection {
    /// Evaluates the rules of a phase.
    pub(super) fn phase(&mut self, phase: Phase) -> Verdict {
        let view = Arc::clone(&self.view);
        let rules = &view.phases[phase as usize - 1];
        // What was too much before is not gone on with.
        if let Some(limit) = self.limit() {
            return self.exceeds(limit);
        }
        let mut at = 0;
        while let Some(&place) = rules.get(at) {
            at += 1;
            if !self.is_on || self.is_passed_over(phase) {
                break;
            }
            if self.removed.has(place as usize) {
                continue;
            }
            let rule = &view.rules.rules[place as usize];
            if !self.holds(place, rule) {
                if let Some(limit) = self.limit() {
                    return self.exceeds(limit);
                }
                continue;
            }
            match self.act(place, rule) {
                Next::On => {}
                Next::At(to) => at = rules.partition_point(|place| *place < to).max(at),
                Next::EndPhase => break,
                Next::Stop(verdict) => return verdict,
            }
            if let Some(limit) = self.limit() {
                return self.exceeds(limit);
            }
        }
        Verdict::Pass
    }

    fn is_passed_over(&self, phase: Phase) -> bool {
        match self.passing {
            Passing::Nothing => false,
            Passing::Request => phase <= Phase::RequestBody,
            Passing::Everything => phase < Phase::Logging,
        }
    }

    fn limit(&self) -> Option<Limit> {
        let is_over = self.texts.work_bytes() > self.work_bytes_max;
        self.exceeded.or(is_over.then_some(Limit::Work))
    }

    fn exceeds(&mut self, limit: Limit) -> Verdict {
        self.exceeded = Some(limit);
        Verdict::Exceeded(limit)
    }

    /// Whether all links of a rule hold.
    fn holds(&mut self, place: u32, rule: &CompiledRule) -> bool {
        self.hits.clear();
        let mut captured = false;
        for link in &rule.links {
            if !self.link_holds(place, link, &mut captured) {
                return false;
            }
        }
        true
    }

    fn link_holds(&mut self, place: u32, link: &Link, captured: &mut bool) -> bool {
        if link.targets.is_empty() {
            self.take_effects(place, link);
            return true;
        }
        if let (Some(group), Some(operator)) = (link.group, link.operator.number)
            && !self.may_match(group, operator)
        {
            return false;
        }
        let mut holds = false;
        let mut found = Vec::new();
        for target in &link.targets {
            match target.kind {
                TargetKind::Excluded => continue,
                TargetKind::Count => {
                    let count = self.count(place, link, target);
                    let name = match &target.selector {
                        crate::seclang::Selector::Name(name) => self.texts.add(name.as_bytes()),
                        _ => Texts::EMPTY,
                    };
                    let text = self.texts.add(count.to_string().as_bytes());
                    found.clear();
                    found.push(Hit { variable: target.variable, name, text, is_count: true });
                }
                TargetKind::Values => self.collect(place, link, target, &mut found),
            }
            for hit in &found {
                holds |= self.value_holds(place, link, *hit, captured);
            }
        }
        holds
    }

    /// Whether a link holds for a value. Its effects come with each.
    fn value_holds(&mut self, place: u32, link: &Link, hit: Hit, captured: &mut bool) -> bool {
        let view = Arc::clone(&self.view);
        let steps = &view.rules.pipelines[usize::from(link.pipeline.0)];
        if !link.is_multi_match {
            let text = self.texts.transformed(hit.text, steps);
            return self.text_holds(place, link, Hit { text, ..hit }, captured);
        }
        // Each text once, as it comes and behind each step that changes it.
        let mut holds = self.text_holds(place, link, hit, captured);
        let mut text = hit.text;
        for step in steps {
            let next = self.texts.transformed_once(text, *step);
            if next != text {
                text = next;
                holds |= self.text_holds(place, link, Hit { text, ..hit }, captured);
            }
        }
        holds
    }

    fn text_holds(&mut self, place: u32, link: &Link, hit: Hit, captured: &mut bool) -> bool {
        if let Some(operator) = link.operator.number {
            let view = Arc::clone(&self.view);
            let facts = self.texts.facts(hit.text, &view.rules.operators);
            if !facts.candidates.has(usize::from(operator)) {
                return false;
            }
        }
        let outcome = self.compare(place, link, hit.text);
        if outcome.holds() == link.is_negated {
            return false;
        }
        self.hits.push(hit);
        if link.captures {
            self.capture(hit.text, outcome, captured);
        }
        self.take_effects(place, link);
        true
    }

    /// Keeps what a pattern has found in `TX:0` to `TX:9`.
    fn capture(&mut self, text: TextId, outcome: Outcome, captured: &mut bool) {
        let view = Arc::clone(&self.view);
        let symbols = &view.rules.symbols;
        let mut found: Vec<Option<Value>> = Vec::new();
        match outcome {
            Outcome::Groups(groups) => {
                let bytes = self.texts.get(text);
                let value = |range: std::ops::Range<usize>| {
                    Value::from_bytes(bytes.get(range).unwrap_or_default())
                };
                // A group that took no part is empty.
                found.extend(
                    groups
                        .into_iter()
                        .map(|group| Some(group.map_or(Value::Text(Box::default()), value))),
                );
            }
            Outcome::Found(bytes) => found.push(Some(Value::from_bytes(&bytes))),
            Outcome::Yes => found.push(Some(Value::from_bytes(self.texts.get(text)))),
            Outcome::No => return,
        }
        *captured = true;
        found.resize(10, None);
        for (number, value) in found.into_iter().enumerate() {
            let name = [b'0' + number as u8];
            self.written.set_named(Variable::Tx, &name, value, symbols);
        }
    }

    /// What a rule that holds does.
    fn act(&mut self, place: u32, rule: &CompiledRule) -> Next {
        self.note(place, rule);
        let stop = |verdict| Next::Stop(verdict);
        let next = match &rule.disruption {
            Disruption::Pass | Disruption::Block => Next::On,
            Disruption::Allow(how) => {
                match how {
                    Allow::Phase => return Next::EndPhase,
                    Allow::Request => self.passing = Passing::Request,
                    Allow::Everything => self.passing = Passing::Everything,
                }
                return Next::EndPhase;
            }
            Disruption::Deny => stop(Verdict::Deny { status: rule.status, rule: rule.id }),
            Disruption::Drop => stop(Verdict::Drop { rule: rule.id }),
            Disruption::Redirect(_) => {
                let to =
                    rule.redirect.as_ref().map(|to| self.expanded(place, to)).unwrap_or_default();
                let status = if (300..400).contains(&rule.status) { rule.status } else { 302 };
                stop(Verdict::Redirect { to, status, rule: rule.id })
            }
        };
        // A rule that turns the engine off blocks no more itself, and what is logged has been answered.
        if let Next::Stop(verdict) = next
            && self.is_on
            && rule.phase != Phase::Logging
        {
            if self.mode == Mode::Block && !self.only_detects {
                return Next::Stop(verdict);
            }
            self.would_be.get_or_insert(verdict);
        }
        rule.skip.map_or(Next::On, Next::At)
    }

    /// Writes down that a rule held.
    fn note(&mut self, place: u32, rule: &CompiledRule) {
        if let Some(severity) = rule.severity {
            self.highest_severity = self.highest_severity.min(severity as u8);
        }
        if self.matches.len() >= MATCHES_MAX || !(rule.is_logged || rule.is_audited) {
            return;
        }
        let message = rule.message.as_ref().map(|it| self.expanded(place, it)).unwrap_or_default();
        let log_data =
            rule.log_data.as_ref().map(|it| self.expanded(place, it)).unwrap_or_default();
        let values = self.hits.iter().take(TOLD_VALUES_MAX).map(|hit| {
            let value = self.texts.get(hit.text);
            let is_masked = self.is_masked(hit);
            let told = if is_masked { MASK } else { &value[..value.len().min(TOLD_BYTES_MAX)] };
            MatchedValue { variable: self.full_name(hit), value: told.to_vec() }
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
