//! The rules that one virtual server evaluates.

use std::sync::Arc;

use super::facts::{
    OperatorIndex, OperatorNeeds, Stage, bits_of_row, clear_bit, has_bit, row_words, set_bit,
};
use super::index::Bits;
use super::rule::{CompiledRule, Effect};
use super::rule_set::RuleSet;
use super::scopes::ScopeId;
use super::statics;
use super::symbols::Symbol;
use crate::seclang::{Phase, Problem, TargetKind};
use crate::value::Value;

/// The settings of a virtual server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Variables of `TX`, ignoring the case of names. They override `SecAction`.
    pub variables: Vec<(String, String)>,
}

/// The group and the operator of a rule's first link. If the operator matches no value of the group, the rule does not match.
/// Most rules are passed over by these few bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct First {
    pub group: u16,
    pub operator: u16,
}

/// The rules that one virtual server evaluates.
#[derive(Debug)]
pub struct View {
    pub(crate) rules: Arc<RuleSet>,
    /// The rules of each phase, in order.
    pub(crate) phases: [Box<[u32]>; 5],
    /// The first conditions of these rules, in the same order.
    pub(crate) firsts: [Box<[Option<First>]>; 5],
    /// The values of the variables of `TX` at the start of each request, by the numbers of their names.
    pub(crate) initial: Box<[Option<Value>]>,
    /// The variables that `SecAction` does not change.
    pub(crate) fixed: Bits,
    /// The operators of these rules, one bit each, up to the last of them.
    operators: Box<[u64]>,
    /// The position of the first index that contains all of these operators.
    index: usize,
    /// Variables of `TX` whose names no rule contains, in lower case. Rules may select them by a pattern, or build their
    /// names.
    pub(crate) unnamed: Box<[(Box<[u8]>, Value)]>,
    /// Whether rules for responses read values of the request that may be long.
    pub(crate) responses_need_requests: bool,
    /// Differences from the behaviour that the rules expect.
    pub warnings: Vec<Problem>,
}

impl View {
    /// The rules with these settings, after the evaluation of all rules that do not depend on the request. A remaining rule
    /// with an unsupported feature is a problem.
    pub fn new(rules: Arc<RuleSet>, settings: &Settings) -> Result<Self, Vec<Problem>> {
        let given = given(&rules, settings);
        let statics = statics::decide(&rules, &given);
        let fixed = fixed(&rules, &given);
        let unnamed = unnamed(&rules, settings);
        let stay = || statics.phases.iter().flatten().map(|place| &rules.rules[*place as usize]);
        let problems: Vec<Problem> = stay().filter_map(absent).collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let warnings = stay().filter_map(warning).collect();
        let operators = without_end(operators(&rules, &statics.phases));
        let index = index_of(&rules, &operators);
        let firsts = statics.phases.each_ref().map(|places| firsts(&rules, places));
        let (phases, initial) = (statics.phases, by_symbol(&rules, statics.initial));
        let responses_need_requests = responses_need_requests(&rules, &phases);
        Ok(Self {
            rules,
            phases,
            firsts,
            initial,
            fixed,
            operators,
            index,
            unnamed,
            responses_need_requests,
            warnings,
        })
    }

    /// A view that evaluates every rule for every request, for comparison with [`Self::new`].
    pub fn plain(rules: Arc<RuleSet>, settings: &Settings) -> Self {
        let of_phase = |phase: Phase| -> Box<[u32]> {
            let all = (0u32..).zip(&rules.rules);
            all.filter(|(_, rule)| rule.phase == phase).map(|(place, _)| place).collect()
        };
        let phases = Phase::ALL.map(of_phase);
        let given = given(&rules, settings);
        let fixed = fixed(&rules, &given);
        let operators = without_end(operators(&rules, &phases));
        let unnamed = unnamed(&rules, settings);
        let (initial, warnings) = (by_symbol(&rules, given), Vec::new());
        let index = index_of(&rules, &operators);
        let firsts = phases.each_ref().map(|places| firsts(&rules, places));
        let responses_need_requests = responses_need_requests(&rules, &phases);
        Self {
            rules,
            phases,
            firsts,
            initial,
            fixed,
            operators,
            index,
            unnamed,
            responses_need_requests,
            warnings,
        }
    }

    /// The rules.
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// Sets in `row` the bits of the view's operators in a scope that may match a text, as in [`OperatorIndex::look`].
    pub(crate) fn look(&self, padded: &[u8], stage: Stage, scope: ScopeId, row: &mut [u64]) {
        let indexes = self.rules.operators.get(self.index);
        if let Some(index) = indexes.and_then(|of_scopes| of_scopes.get(scope.place())) {
            index.look(padded, stage, &self.operators, row);
        }
    }

    /// Minimum length of a text that an operator in the scope may match.
    pub(crate) fn length_min(&self, scope: ScopeId) -> usize {
        let indexes = self.rules.operators.get(self.index);
        let index = indexes.and_then(|of_scopes| of_scopes.get(scope.place()));
        index.map_or(0, OperatorIndex::length_min)
    }

    /// Clears the bits of operators that do not match a text. The bits of operators remain if the result depends on more
    /// than the text, or may need much time.
    pub(crate) fn keep_matching(&self, text: &[u8], row: &mut [u64]) {
        let places = self.phases.iter().flatten();
        let links = places.flat_map(|place| &self.rules.rules[*place as usize].links);
        for operator in links.map(|link| &link.operator) {
            let number = operator.number.filter(|number| has_bit(row, *number));
            if let Some(number) = number
                && operator.kind.matches(text) == Some(false)
            {
                clear_bit(row, number);
            }
        }
    }

    /// The number of words in a row of operators.
    pub(crate) fn row_words(&self) -> usize {
        self.operators.len()
    }

    /// Whether rules inspect response bodies.
    pub fn looks_at_response_bodies(&self) -> bool {
        self.has_rules_of(Phase::ResponseBody)
    }

    /// Whether rules inspect responses.
    pub fn looks_at_responses(&self) -> bool {
        self.has_rules_of(Phase::ResponseHeaders) || self.looks_at_response_bodies()
    }

    /// Whether rules are evaluated in a phase.
    pub(crate) fn has_rules_of(&self, phase: Phase) -> bool {
        !self.phases[phase as usize - 1].is_empty()
    }

    /// Maximum number of rules that are evaluated for a request, in all phases.
    pub fn rules_count(&self) -> usize {
        self.phases.iter().map(|rules| rules.len()).sum()
    }
}

/// Whether rules for responses read values of the request that may be long.
fn responses_need_requests(rules: &RuleSet, phases: &[Box<[u32]>; 5]) -> bool {
    let of = |phase: Phase| phases[phase as usize - 1].iter();
    let places = of(Phase::ResponseHeaders).chain(of(Phase::ResponseBody));
    let links = places.flat_map(|place| &rules.rules[*place as usize].links);
    links
        .flat_map(|link| &link.targets)
        .any(|target| target.kind == TargetKind::Values && target.variable.is_long_with_requests())
}

/// The problem of a rule with an unsupported feature.
fn absent(rule: &CompiledRule) -> Option<Problem> {
    let (message, help) = rule.absent.as_ref()?;
    let (place, help) = (rule.place.clone(), Some((*help).to_owned()));
    Some(Problem { place, message: message.clone(), help })
}

/// The warning about a rule that opens a stored collection, whose values last for one request only.
fn warning(rule: &CompiledRule) -> Option<Problem> {
    let opened =
        rule.links.iter().flat_map(|link| &link.effects).find_map(|effect| match effect {
            Effect::Open(variable) => Some(variable.name()),
            _ => None,
        })?;
    Some(Problem {
        place: rule.place.clone(),
        message: format!("variables of `{opened}` are not kept from request to request"),
        help: Some("limit requests of a client by `limit` in a rule of weir's".into()),
    })
}

/// The values of variables whose names are in rules.
fn given(rules: &RuleSet, settings: &Settings) -> Vec<(Symbol, Value)> {
    let known = settings.variables.iter().filter_map(|(name, value)| {
        Some((rules.symbols.get(name.as_bytes())?, Value::from_bytes(value.as_bytes())))
    });
    known.collect()
}

/// The first conditions of these rules; `None`: the first link is always evaluated.
fn firsts(rules: &RuleSet, places: &[u32]) -> Box<[Option<First>]> {
    let first = |place: &u32| {
        let link = rules.rules[*place as usize].links.first()?;
        Some(First { group: link.group?, operator: link.operator.number? })
    };
    places.iter().map(first).collect()
}

/// These values, by the numbers of their names.
fn by_symbol(rules: &RuleSet, values: Vec<(Symbol, Value)>) -> Box<[Option<Value>]> {
    let mut all = vec![None; rules.symbols.len()];
    for (symbol, value) in values {
        if let Some(place) = all.get_mut(symbol.0 as usize) {
            *place = Some(value);
        }
    }
    all.into()
}

/// The indexed operators of the rules of these phases.
fn operators(rules: &RuleSet, phases: &[Box<[u32]>; 5]) -> Box<[u64]> {
    let mut operators = vec![0; row_words(rules.operators_count)];
    let places = phases.iter().flatten();
    let links = places.flat_map(|place| &rules.rules[*place as usize].links);
    for number in links.filter_map(|link| link.operator.number) {
        set_bit(&mut operators, number);
    }
    operators.into()
}

/// The indexes of operators: of the rules that remain with default settings, and of all rules. With default settings, texts
/// are not searched for the needs of other operators.
pub(super) fn indexes(rules: &RuleSet, needs: &[OperatorNeeds]) -> Vec<Vec<OperatorIndex>> {
    let usual = usual(rules);
    let mut all: Box<[u64]> = vec![0; usual.len()].into();
    (0u16..).zip(needs).for_each(|(number, _)| set_bit(&mut all, number));
    let sets = if usual == all { vec![all] } else { vec![usual, all] };
    sets.into_iter().map(|known| of_scopes(rules, needs, known)).collect()
}

/// The operators of the rules that remain with default settings, one bit each.
pub(super) fn usual(rules: &RuleSet) -> Box<[u64]> {
    operators(rules, &statics::decide(rules, &[]).phases)
}

/// The words of a row up to the last operator.
fn without_end(row: Box<[u64]>) -> Box<[u64]> {
    let last = bits_of_row(&row).last().map_or(0, usize::from);
    row[..row_words(last + 1).min(row.len())].into()
}

/// Creates one index of these operators for each scope.
fn of_scopes(rules: &RuleSet, needs: &[OperatorNeeds], known: Box<[u64]>) -> Vec<OperatorIndex> {
    let of_both =
        |scope: &[u64]| scope.iter().zip(&known).map(|(scope, known)| scope & known).collect();
    let narrow: Vec<OperatorIndex> =
        rules.scopes.narrow().map(|scope| OperatorIndex::new(needs, of_both(scope))).collect();
    [OperatorIndex::new(needs, known)].into_iter().chain(narrow).collect()
}

/// The first index that contains all of these operators.
fn index_of(rules: &RuleSet, operators: &[u64]) -> usize {
    rules
        .operators
        .iter()
        .position(|it| it.first().is_some_and(|index| index.has(operators)))
        .unwrap_or_default()
}

fn unnamed(rules: &RuleSet, settings: &Settings) -> Box<[(Box<[u8]>, Value)]> {
    let names = settings.variables.iter().map(|(name, value)| (name.as_bytes(), value));
    let others = names.filter(|(name, _)| rules.symbols.get(name).is_none());
    others
        .map(|(name, value)| {
            (name.to_ascii_lowercase().into(), Value::from_bytes(value.as_bytes()))
        })
        .collect()
}

fn fixed(rules: &RuleSet, given: &[(Symbol, Value)]) -> Bits {
    let mut fixed = Bits::none(rules.symbols.len());
    given.iter().for_each(|(symbol, _)| fixed.set(symbol.0 as usize));
    fixed
}
