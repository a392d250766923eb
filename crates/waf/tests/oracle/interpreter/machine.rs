//! The evaluation of all rules for one request.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use weir_waf::inspection::{Limit, Mode, Request, Response, Verdict};
use weir_waf::seclang::{Action, Allow, Control, Disruption, Phase, Rule, Toggle, Variable as V};

use super::message::Message;
use super::program::{Item, Program, Whole};

/// Maximum number of bytes of a value in a report.
const TOLD_BYTES_MAX: usize = 512;
const TOLD_VALUES_MAX: usize = 32;
/// The severity of a request without findings.
const NO_SEVERITY: u8 = 255;

/// An inspected value.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub variable: V,
    pub name: Vec<u8>,
    pub value: Vec<u8>,
    pub is_count: bool,
}

impl Found {
    /// The name in logs: `ARGS:id`, `&ARGS`.
    pub fn full_name(&self) -> Vec<u8> {
        let mut full = if self.is_count { b"&".to_vec() } else { Vec::new() };
        full.extend_from_slice(self.variable.name().as_bytes());
        if !self.name.is_empty() {
            full.push(b':');
            full.extend_from_slice(&self.name);
        }
        full
    }
}

/// A rule that matched.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    pub id: u64,
    pub message: String,
    pub log_data: String,
    pub values: Vec<(String, String)>,
    pub is_logged: bool,
    pub is_audited: bool,
}

pub struct Machine<'a> {
    pub(super) program: &'a Program,
    pub(super) message: Message,
    pub(super) written: HashMap<V, BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Names of variables that `SecAction` must not set.
    pub(super) fixed: BTreeSet<Vec<u8>>,
    /// The values that the current rule has matched.
    pub(super) matched: Vec<Found>,
    /// Removals by `ctl`.
    pub(super) controls: Vec<Control>,
    pub(super) highest_severity: u8,
    pub(super) reads_body: bool,
    pub(super) reads_response: bool,
    pub(super) engine: Toggle,
    /// Whether a pattern that was built for this request is invalid, or took too many steps.
    pub(super) is_unreadable: bool,
    pub is_audited: bool,
    /// Whether a rule has ended evaluation.
    pub is_ended: bool,
    mode: Mode,
    allowed: Option<Allow>,
    pub held: Vec<Held>,
    pub would_be: Option<Verdict>,
}

impl<'a> Machine<'a> {
    pub fn new(
        program: &'a Program,
        settings: &[(String, String)],
        mode: Mode,
        request: &Request<'_>,
    ) -> Self {
        let initial: BTreeMap<Vec<u8>, Vec<u8>> = settings
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase().into(), value.as_str().into()))
            .collect();
        Self {
            program,
            message: Message::new(request, program.separator),
            written: HashMap::from([(V::Tx, initial.clone())]),
            fixed: initial.into_keys().collect(),
            matched: Vec::new(),
            controls: Vec::new(),
            highest_severity: NO_SEVERITY,
            reads_body: true,
            reads_response: true,
            engine: Toggle::On,
            is_unreadable: false,
            is_audited: true,
            is_ended: false,
            mode,
            allowed: None,
            held: Vec::new(),
            would_be: None,
        }
    }

    pub fn tx(&self, name: &str) -> i64 {
        self.number(V::Tx, name.as_bytes())
    }

    pub fn body(&mut self, bytes: &[u8]) {
        if self.reads_body && self.engine != Toggle::Off && self.allowed.is_none() {
            self.message.body(bytes);
        }
    }

    pub fn response(&mut self, response: &Response<'_>) {
        self.message.response(response);
    }

    pub fn response_content(&mut self, bytes: &[u8]) {
        if self.reads_response {
            self.message.set(V::ResponseBody, bytes);
        }
    }

    /// Evaluates the rules of a phase.
    pub fn phase(&mut self, phase: Phase) -> Verdict {
        let program = self.program;
        // The inspection ended in an earlier phase.
        if self.is_unreadable {
            return Verdict::Exceeded(Limit::Pattern);
        }
        let mut at = 0;
        let mut rules_to_skip = 0;
        while let Some(item) = program.items.get(at) {
            at += 1;
            let Item::Rule(whole) = item else { continue };
            if whole.phase != phase {
                continue;
            }
            if self.is_over(phase) {
                return Verdict::Pass;
            }
            if rules_to_skip > 0 {
                rules_to_skip -= 1;
                continue;
            }
            if self.is_removed(whole) {
                continue;
            }
            if !self.holds(whole) {
                if self.is_unreadable {
                    return Verdict::Exceeded(Limit::Pattern);
                }
                continue;
            }
            self.tell(whole);
            match self.disrupt(whole) {
                Disrupted::No => {}
                Disrupted::EndOfPhase => return Verdict::Pass,
                Disrupted::With(verdict) => return verdict,
            }
            match whole.skip() {
                Some(Action::Skip(count)) => rules_to_skip = *count,
                Some(Action::SkipAfter(label)) => at = behind(program, label, at),
                _ => {}
            }
            if self.is_unreadable {
                return Verdict::Exceeded(Limit::Pattern);
            }
        }
        Verdict::Pass
    }

    fn is_over(&self, phase: Phase) -> bool {
        let is_allowed = match self.allowed {
            Some(Allow::Everything) => phase != Phase::Logging,
            Some(Allow::Request) => phase <= Phase::RequestBody,
            _ => false,
        };
        is_allowed || self.engine == Toggle::Off
    }

    /// Whether a rule and all of its chained rules match.
    fn holds(&mut self, whole: &Whole) -> bool {
        self.matched.clear();
        whole.links.iter().all(|link| self.link_holds(whole, link))
    }

    fn link_holds(&mut self, whole: &Whole, link: &Rule) -> bool {
        if link.targets.is_empty() {
            self.take_effects(whole, link);
            return true;
        }
        let mut holds = false;
        for target in &link.targets {
            for found in self.values(whole, link, target) {
                holds |= self.value_holds(whole, link, found);
            }
        }
        holds
    }

    fn value_holds(&mut self, whole: &Whole, link: &Rule, found: Found) -> bool {
        let mut holds = false;
        for value in forms(whole, link, found.value.clone()) {
            let outcome = self.compare(whole, &link.operator, &value);
            if outcome.is_some() == link.operator.is_negated {
                continue;
            }
            holds = true;
            self.capture(whole, link, outcome);
            self.matched.push(Found { value, ..found.clone() });
            self.take_effects(whole, link);
        }
        holds
    }

    /// Stores the groups of a match in `TX:0` to `TX:9`.
    fn capture(&mut self, whole: &Whole, link: &Rule, texts: Option<Vec<Vec<u8>>>) {
        let is_wanted = |action: &Action| matches!(action, Action::Capture);
        let texts = texts.filter(|texts| !texts.is_empty());
        let Some(texts) = texts else { return };
        if !link.actions.iter().chain(&whole.defaults).any(is_wanted) {
            return;
        }
        let mut texts = texts.into_iter();
        for index in 0..10 {
            self.write(V::Tx, index.to_string().into(), texts.next());
        }
    }

    fn tell(&mut self, whole: &Whole) {
        if let Some(severity) = whole.severity() {
            self.highest_severity = self.highest_severity.min(severity as u8);
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let expanded = |machine: &mut Self, template: Option<&_>| {
            template.map(|template| text(&machine.expand(whole, template))).unwrap_or_default()
        };
        let (is_logged, is_audited) = whole.logging();
        let message = expanded(self, whole.message());
        let log_data = expanded(self, whole.log_data());
        let told = self.matched.iter().take(TOLD_VALUES_MAX).map(|found| {
            let value = &found.value[..found.value.len().min(TOLD_BYTES_MAX)];
            (text(&found.full_name()), text(value))
        });
        let values = told.collect();
        self.held.push(Held { id: whole.id, message, log_data, values, is_logged, is_audited });
    }

    fn disrupt(&mut self, whole: &Whole) -> Disrupted {
        let (rule, status) = (whole.id, whole.status());
        let verdict = match whole.disruption() {
            Disruption::Pass | Disruption::Block => return Disrupted::No,
            // Every `allow` ends the current phase.
            Disruption::Allow(allow) => {
                if allow != Allow::Phase {
                    self.allowed = Some(allow);
                }
                self.is_ended = true;
                return Disrupted::EndOfPhase;
            }
            Disruption::Deny => Verdict::Deny { status, rule },
            Disruption::Drop => Verdict::Drop { rule },
            Disruption::Redirect(to) => {
                let is_redirection = matches!(status, 301 | 302 | 303 | 307 | 308);
                let status = if is_redirection { status } else { 302 };
                Verdict::Redirect { to: self.expand(whole, &to), status, rule }
            }
        };
        match self.engine {
            // The response has been sent completely.
            _ if whole.phase == Phase::Logging => return Disrupted::No,
            Toggle::Off => return Disrupted::No,
            Toggle::On if self.mode == Mode::Block => return Disrupted::With(verdict),
            _ => {}
        }
        self.would_be.get_or_insert(verdict);
        Disrupted::No
    }
}

enum Disrupted {
    No,
    EndOfPhase,
    With(Verdict),
}

/// The index after a later marker or rule with this label; after all rules if there is none.
fn behind(program: &Program, label: &str, from: usize) -> usize {
    let is_it = |item: &Item| match item {
        Item::Marker(name) => **name == *label,
        Item::Rule(rule) => rule.id.to_string() == label,
    };
    let found = program.items.iter().skip(from).position(is_it);
    found.map_or(program.items.len(), |index| from + index + 1)
}

/// A value after all transformations. With `multiMatch`, also the original value, and the result of each transformation that
/// changes it.
fn forms(whole: &Whole, link: &Rule, value: Vec<u8>) -> Vec<Vec<u8>> {
    let mut steps = Vec::new();
    for action in whole.defaults.iter().chain(&link.actions) {
        match action {
            Action::Transform(None) => steps.clear(),
            Action::Transform(Some(step)) => steps.push(*step),
            _ => {}
        }
    }
    let mut forms = vec![value];
    for step in steps {
        let last = forms.last().expect("the value itself");
        let mut out = Vec::new();
        let changed = if step.apply(last, &mut out) { out } else { last.clone() };
        if changed != *last {
            forms.push(changed);
        }
    }
    let is_multi_match = link.actions.iter().any(|action| matches!(action, Action::MultiMatch));
    if is_multi_match { forms } else { forms.split_off(forms.len() - 1) }
}
