//! From directives to rules.

use std::collections::HashMap;

use regex::bytes::Regex;

use super::facts::{self, NeedsByKind, OperatorNeeds};
use super::literals::{self, Needs};
use super::operators::{self, Comparison, CompiledOperator, Relation, TextComparison};
use super::rule::{
    CompiledRule, Effect, FileSettings, Group, GroupTarget, Link, Pipeline, PipelineId, RuleSet,
    Sign, VariableName,
};
use super::sources::{self, Files};
use super::symbols::Symbols;
use super::template::{CompiledTemplate, template};
use super::view;
use crate::seclang::{
    Action, Directive, DirectiveKind, Disruption, IdRange, Operator, OperatorKind, Pattern, Phase,
    Place, Problem, Rule, Selector, Setting, Target, TargetKind, Template, Variable,
    VariableChange,
};
use crate::transformation::{Steps, Transformation};

/// Status of a rule that denies and names none.
const STATUS_DEFAULT: u16 = 403;
/// Largest file of words or networks.
const FILE_BYTES_MAX: usize = 16 << 20;
/// Most rules.
const RULES_MAX: usize = 20_000;

impl RuleSet {
    /// Compiles these files, in this order.
    pub fn compile(paths: &[String], files: &mut dyn Files) -> Result<Self, Vec<Problem>> {
        let directives = sources::directives(paths, files)?;
        let mut compiler = Compiler::new(files);
        for directive in directives {
            compiler.take(directive);
        }
        compiler.finish()
    }
}

/// What `SecDefaultAction` has said for a phase.
#[derive(Debug, Clone)]
struct Defaults {
    disruption: Disruption,
    status: u16,
    is_logged: bool,
    is_audited: bool,
    transformations: Vec<Transformation>,
    captures: bool,
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

struct Compiler<'a> {
    files: &'a mut dyn Files,
    defaults: HashMap<Phase, Defaults>,
    /// Rules so far, `None` for one that was removed, with the texts by which others find them.
    drafts: Vec<Draft>,
    /// Of each marker, how many rules stand before each place that it has.
    markers: HashMap<Box<str>, Vec<usize>>,
    settings: FileSettings,
    signatures: Vec<Box<str>>,
    symbols: Symbols,
    problems: Vec<Problem>,
}

/// A rule that others may still change.
struct Draft {
    place: Place,
    id: u64,
    rule: Rule,
    defaults: Defaults,
    is_removed: bool,
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
            // Taken apart when files are read.
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

    fn default_action(&mut self, actions: &[Action]) {
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

    fn rule(&mut self, place: Place, rule: Rule) {
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

    fn remove(&mut self, is_it: impl Fn(&Draft) -> bool) {
        for draft in &mut self.drafts {
            draft.is_removed |= is_it(draft);
        }
    }

    /// Rules that are there by now get more targets, or leave some out.
    fn update_targets(&mut self, targets: &[Target], is_it: impl Fn(&Draft) -> bool) {
        // What has no targets is no rule but an action: it always holds.
        let has_targets = |draft: &Draft| !draft.rule.targets.is_empty();
        for draft in self.drafts.iter_mut().filter(|draft| has_targets(draft) && is_it(draft)) {
            draft.rule.targets.extend_from_slice(targets);
        }
    }

    fn update_actions(&mut self, place: &Place, id: u64, actions: &[Action]) {
        let Some(draft) = self.drafts.iter_mut().find(|draft| draft.id == id && !draft.is_removed)
        else {
            let help = "the directive stands behind the rule that it changes";
            return self.problem(place, format!("there is no rule {id}"), help);
        };
        // What there may be once takes the place of what was there.
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

    fn finish(mut self) -> Result<RuleSet, Vec<Problem>> {
        let drafts = std::mem::take(&mut self.drafts);
        let mut shared = Shared::default();
        let mut rules = Vec::with_capacity(drafts.len());
        // Places of markers count all rules; those that were removed have no place.
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
        let mut rules = RuleSet {
            rules: compiled,
            settings: self.settings,
            signatures: self.signatures,
            pipelines: shared.pipelines,
            symbols: self.symbols,
            operators_count: shared.needs.len(),
            operators: Vec::new(),
            groups: shared.groups,
            targets: shared.targets,
            by_id: order.by_id,
        };
        rules.operators = view::indexes(&rules, &shared.needs);
        Ok(rules)
    }

    /// Where a rule that holds goes on, if not with the next one. Rules are passed over that stand behind it alone.
    fn skip(&self, draft: &Draft, own: usize, order: &Order) -> Result<Option<u32>, String> {
        for action in &draft.rule.actions {
            match action {
                Action::Skip(0) => {}
                Action::Skip(count) => {
                    let phase = phase_of(&draft.rule);
                    let later = order.phases.iter().enumerate().skip(own + 1);
                    let mut of_phase = later.filter(|(_, it)| **it == phase);
                    let last = of_phase.nth(*count as usize - 1).map(|(index, _)| index + 1);
                    return Ok(Some(place_of(last.unwrap_or(order.phases.len()))));
                }
                Action::SkipAfter(label) => {
                    let markers = self.markers.get(label).into_iter().flatten();
                    let marker = markers
                        .filter_map(|at| order.places.get(*at).copied())
                        .find(|place| *place > own);
                    let rule = || order.by_id.get(&label.parse().ok()?).map(|index| index + 1);
                    let place = marker.or_else(|| rule().filter(|place| *place > own + 1));
                    let message = || format!("no marker and no rule behind it is `{label}`");
                    return place.map(|place| Some(place_of(place))).ok_or_else(message);
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn compiled(&mut self, draft: &Draft, shared: &mut Shared) -> Result<CompiledRule, String> {
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
        // Messages of the last rule of a chain stand for it where the first has none.
        let mut links = Vec::new();
        let mut at = Some(rule);
        while let Some(rule) = at {
            self.describe(&mut compiled, rule, links.is_empty());
            compiled.absent = compiled.absent.take().or_else(|| what_is_absent(rule));
            links.push(self.link(draft, rule, shared)?);
            at = rule.chained.as_deref();
        }
        // What blocks does what the default of the phase says.
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

    fn template(&mut self, text: &Template, draft: &Draft) -> CompiledTemplate {
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

    fn link(&mut self, draft: &Draft, rule: &Rule, shared: &mut Shared) -> Result<Link, String> {
        // Chained rules are rules as well: they have the defaults of the phase.
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
        let pipeline = shared.pipeline(pipeline);
        for target in rule.targets.iter().filter(|target| target.variable == Variable::Tx) {
            if let Selector::Name(name) = &target.selector {
                self.symbols.intern(name.as_bytes());
            }
        }
        let (kind, needs) = self.operator(&rule.operator, draft)?;
        // A negated operator holds for what has nothing of that.
        let is_chosen = !rule.operator.is_negated;
        let is_late = phase_of(&draft.rule) > Phase::RequestBody;
        let number =
            needs.filter(|_| is_chosen).map(|needs| shared.operator(needs, is_late)).transpose()?;
        let targets: Box<[Target]> = rule.targets.clone().into();
        // What `ctl` changes may be what this link itself has still to look at.
        let is_steady = !effects.iter().any(|effect| matches!(effect, Effect::Control(_)));
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
            Action::Control(control) => Effect::Control(control.clone()),
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

    /// An operator as it is evaluated, and what texts need for it to match.
    fn operator(
        &mut self,
        operator: &Operator,
        draft: &Draft,
    ) -> Result<(Comparison, Option<NeedsByKind>), String> {
        use OperatorKind as Kind;
        let mut number =
            |relation, text: &Template| Comparison::Number(relation, self.template(text, draft));
        let kind = match &operator.kind {
            Kind::Rx(pattern) => {
                let needs = needs_of(pattern);
                return Ok((Comparison::Rx(pattern.clone()), Some(needs)));
            }
            Kind::Pm(words) => return pm(words),
            Kind::PmFromFile(names) => return pm(&self.words_of(names, draft)?),
            Kind::RxTemplate(text) => Comparison::RxTemplate(self.template(text, draft)),
            Kind::Eq(text) => number(Relation::Equal, text),
            Kind::Ge(text) => number(Relation::AtLeast, text),
            Kind::Gt(text) => number(Relation::Above, text),
            Kind::Le(text) => number(Relation::AtMost, text),
            Kind::Lt(text) => number(Relation::Below, text),
            Kind::Streq(text) => self.text(TextComparison::Equal, text, draft),
            Kind::Within(text) => self.text(TextComparison::Within, text, draft),
            Kind::Contains(text) => self.text(TextComparison::Contains, text, draft),
            Kind::ContainsWord(text) => self.text(TextComparison::ContainsWord, text, draft),
            Kind::BeginsWith(text) => self.text(TextComparison::BeginsWith, text, draft),
            Kind::EndsWith(text) => self.text(TextComparison::EndsWith, text, draft),
            Kind::ValidateByteRange(allowed) => Comparison::ByteRange(*allowed),
            Kind::ValidateUrlEncoding => Comparison::UrlEncoding,
            Kind::ValidateUtf8Encoding => Comparison::Utf8Encoding,
            Kind::IpMatch(networks) => Comparison::Addresses(networks.clone().into()),
            Kind::IpMatchFromFile(names) => {
                let mut networks = Vec::new();
                for line in self.words_of(names, draft)? {
                    let text = String::from_utf8_lossy(&line).into_owned();
                    networks.push(crate::seclang::network(&text)?);
                }
                Comparison::Addresses(networks.into())
            }
            Kind::DetectSqli => Comparison::Sqli,
            Kind::DetectXss => Comparison::Xss,
            Kind::UnconditionalMatch => Comparison::Always,
            Kind::NoMatch => Comparison::Never,
            Kind::Elsewhere(_) => Comparison::Never,
        };
        let needs = operators::bytes_needed(&kind).map(|bytes| {
            let needs = Needs { sets: vec![bytes], ..Needs::default() };
            facts::kinds().map(|_| Some(needs.clone())).collect()
        });
        Ok((kind, needs))
    }

    fn text(&mut self, how: TextComparison, text: &Template, draft: &Draft) -> Comparison {
        Comparison::Text(how, self.template(text, draft))
    }

    /// The lines of files that stand beside the rule's, without comments.
    fn words_of(&mut self, names: &[Box<str>], draft: &Draft) -> Result<Vec<Box<[u8]>>, String> {
        let mut words = Vec::new();
        for name in names {
            let found = self.files.find(&draft.place.file, name);
            let [path] = found.as_slice() else {
                return Err(format!("there is no file `{name}` beside `{}`", draft.place.file));
            };
            let bytes =
                self.files.read(path).map_err(|it| format!("`{path}` cannot be read: {it}"))?;
            if bytes.len() > FILE_BYTES_MAX {
                return Err(format!("`{path}` is larger than {FILE_BYTES_MAX} bytes"));
            }
            for line in bytes.split(|byte| *byte == b'\n') {
                let line = line.trim_ascii();
                if !line.is_empty() && !line.starts_with(b"#") {
                    words.push(line.into());
                }
            }
        }
        Ok(words)
    }
}

/// Where rules stand once all are known.
struct Order {
    /// Of each rule that was read, its place, or that of the next one if it was removed.
    places: Vec<usize>,
    by_id: HashMap<u64, usize>,
    phases: Vec<Phase>,
}

fn place_of(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// What rules share, while they are compiled.
#[derive(Default)]
struct Shared {
    pipelines: Vec<Pipeline>,
    needs: Vec<OperatorNeeds>,
    groups: Vec<Group>,
    targets: Vec<GroupTarget>,
}

impl Shared {
    fn pipeline(&mut self, steps: Vec<Transformation>) -> PipelineId {
        let known = self.pipelines.iter().position(|known| *known.steps == steps[..]);
        let index = known.unwrap_or_else(|| {
            self.pipelines.push(Pipeline { set: Steps::of(&steps), steps: steps.into() });
            self.pipelines.len() - 1
        });
        PipelineId(u16::try_from(index).unwrap_or(u16::MAX))
    }

    fn operator(&mut self, needs: NeedsByKind, is_late: bool) -> Result<u16, String> {
        self.needs.push(OperatorNeeds { by_kind: needs, is_late });
        u16::try_from(self.needs.len() - 1).map_err(|_| "there are too many operators".to_owned())
    }

    /// The place of a target, without what is left out of it.
    fn target(&mut self, target: &Target, all: &[Target]) -> Option<u16> {
        let is_left_out = |other: &&Target| {
            other.kind == TargetKind::Excluded && other.variable == target.variable
        };
        let excluded: Box<[Target]> = all.iter().filter(is_left_out).cloned().collect();
        let is_it = |known: &GroupTarget| known.target == *target && known.excluded == excluded;
        let known = self.targets.iter().position(is_it);
        let place = known.unwrap_or_else(|| {
            self.targets.push(GroupTarget { target: target.clone(), excluded });
            self.targets.len() - 1
        });
        u16::try_from(place).ok()
    }

    /// The group of links that look at these values, if all of them are values of the message at hand.
    fn group(
        &mut self,
        targets: &[Target],
        pipeline: PipelineId,
        is_multi_match: bool,
        is_indexed: bool,
    ) -> Option<u16> {
        let is_of_message =
            |target: &Target| target.kind != TargetKind::Count && is_of_message(target.variable);
        if targets.is_empty() || !targets.iter().all(is_of_message) {
            return None;
        }
        let taken = targets.iter().filter(|target| target.kind == TargetKind::Values);
        let targets: Option<Box<[u16]>> = taken.map(|taken| self.target(taken, targets)).collect();
        let targets = targets?;
        let known = self.groups.iter().position(|known| {
            (&known.targets, known.pipeline, known.is_multi_match)
                == (&targets, pipeline, is_multi_match)
        });
        let index = known.unwrap_or_else(|| {
            self.groups.push(Group { targets, pipeline, is_multi_match, is_indexed: false });
            self.groups.len() - 1
        });
        self.groups[index].is_indexed |= is_indexed;
        u16::try_from(index).ok()
    }
}

/// Whether rules cannot change it.
pub(super) fn is_of_message(variable: Variable) -> bool {
    !matches!(
        variable,
        Variable::Tx
            | Variable::MatchedVar
            | Variable::MatchedVarName
            | Variable::MatchedVars
            | Variable::MatchedVarsNames
            | Variable::HighestSeverity
            | Variable::ReqbodyProcessor
    ) && !variable.is_stored()
}

fn pm(words: &[Box<[u8]>]) -> Result<(Comparison, Option<NeedsByKind>), String> {
    let needs = Needs {
        length_min: words.iter().map(|word| word.len()).min().unwrap_or(0),
        literals: words.iter().map(|word| word.to_ascii_lowercase().into()).collect(),
        sets: Vec::new(),
    };
    let needs = facts::kinds().map(|_| Some(needs.clone())).collect();
    Ok((Comparison::Pm(operators::words(words)?), Some(needs)))
}

/// What texts need for a pattern to match, by their kinds.
pub(super) fn needs_of(pattern: &Pattern) -> NeedsByKind {
    let anything = || facts::kinds().map(|_| Some(Needs::default())).collect();
    let Pattern::Linear(regex) = pattern else { return anything() };
    let hir = regex_syntax::ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .dot_matches_new_line(true)
        .build()
        .parse(regex.as_str());
    // It was compiled with these settings; a pattern of which nothing is known is always tried.
    match hir {
        Ok(hir) => facts::kinds().map(|absent| literals::needs(&hir, &absent)).collect(),
        Err(_) => anything(),
    }
}

fn phase_of(rule: &Rule) -> Phase {
    let given = rule.actions.iter().find_map(|action| match action {
        Action::Phase(phase) => Some(*phase),
        _ => None,
    });
    given.unwrap_or(Phase::RequestBody)
}

fn severity_of(rule: &Rule) -> Option<u8> {
    let of = |action: &Action| match action {
        Action::Severity(severity) => Some(*severity as u8),
        _ => None,
    };
    rule.actions.iter().filter_map(of).next_back()
}

/// What a rule asks for that is not here, and why.
fn what_is_absent(rule: &Rule) -> Option<(String, &'static str)> {
    if let OperatorKind::Elsewhere(name) = &rule.operator.kind {
        let why = "weir asks nobody else while it judges a request";
        return Some((format!("the operator `@{name}` is not supported"), why));
    }
    rule.targets.iter().find_map(|target| {
        let why = target.variable.why_absent()?;
        Some((format!("the variable `{}` is not supported", target.variable.name()), why))
    })
}

fn tag(action: &Action) -> Option<Box<str>> {
    match action {
        Action::Tag(tag) => Some(tag.clone()),
        _ => None,
    }
}

fn has_tag(rule: &Rule, wanted: &Regex) -> bool {
    rule.actions.iter().filter_map(tag).any(|tag| wanted.is_match(tag.as_bytes()))
}

fn has_message(rule: &Rule, wanted: &Regex) -> bool {
    rule.actions.iter().any(|action| match action {
        Action::Message(text) => {
            let text: String = text.0.iter().filter_map(plain).collect();
            wanted.is_match(text.as_bytes())
        }
        _ => false,
    })
}

fn plain(piece: &crate::seclang::Piece) -> Option<&str> {
    match piece {
        crate::seclang::Piece::Text(text) => Some(text),
        _ => None,
    }
}
