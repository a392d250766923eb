//! Rules without effect: their conditions never match, or earlier rules always take their requests.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use weir_core::expression::{Condition, Key, PathKey};
use weir_core::policy::{Action, Policy, Strategy};

use crate::decode::{Context, Spanned};
use crate::document::Span;
use crate::quote::clip;
use crate::raw;
use crate::scalar::Text;

/// A condition with more hosts and paths is not compared with others.
const KEYS_MAX: usize = 64;

/// Maximum length of a prefix that is looked for in the paths of later rules.
const PREFIX_BYTES_MAX: usize = 256;

/// Facts about a rule for this check.
pub(super) struct Outline {
    span: Span,
    /// The rule as text: "rule 2".
    name: String,
    when: RuleCondition,
    /// Whether the rule ends the processing of the request.
    ends_request: bool,
    /// Whether the rule changes responses of any source.
    changes_response: bool,
    /// The condition as written in the file; `None`: it depends on chance, so that another rule with the same condition may
    /// differ.
    text: Option<String>,
    /// Whether its condition can never hold.
    never_holds: bool,
    /// Every request that matches the rule is in one of these places.
    required: Option<Vec<Place>>,
    /// Every request in one of these places matches the rule.
    taken: Option<Vec<Place>>,
}

/// Hosts and paths of requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    /// The host; `None`: any host.
    host: Option<Box<[u8]>>,
    path: PathOf,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum PathOf {
    Any,
    Exact(Box<[u8]>),
    Prefix(Box<[u8]>),
}

/// When a rule matches.
#[derive(PartialEq, Eq)]
enum RuleCondition {
    /// Always: it has no `when`.
    Always,
    /// Every request, because of a `when` that is always true: malformed requests skip rules with a `when`.
    EveryRequest,
    /// This depends on the request.
    Sometimes,
    /// This depends on the response.
    OfResponse,
}

impl Outline {
    pub fn new(
        span: Span,
        name: &str,
        has_name: bool,
        (text, condition): (Option<&Spanned<Text>>, Option<&Condition>),
        actions: &[Action],
    ) -> Self {
        let name = in_words(name, has_name);
        let when = match condition {
            None => RuleCondition::Always,
            Some(condition) if condition.reads_response() => RuleCondition::OfResponse,
            Some(condition) if condition.constant() == Some(true) => RuleCondition::EveryRequest,
            Some(_) => RuleCondition::Sometimes,
        };
        let is_random = condition.is_some_and(|condition| condition.reads().random);
        Self {
            span,
            name,
            when,
            ends_request: actions.iter().any(Action::ends_request),
            changes_response: actions.iter().any(|it| it.edits_response() || it.needs_response()),
            text: text.filter(|_| !is_random).map(|text| text.value.0.trim().to_owned()),
            never_holds: condition.is_some_and(Condition::never_holds),
            required: condition.and_then(Condition::requirements).and_then(places),
            taken: condition.and_then(Condition::exact_keys).and_then(places),
        }
    }

    fn is_of_response(&self) -> bool {
        self.when == RuleCondition::OfResponse
    }

    /// Whether a later rule is never evaluated where this rule matches.
    fn hides(&self, later: &Self, strategy: Strategy) -> bool {
        if later.when == RuleCondition::OfResponse {
            return false;
        }
        match (&self.when, strategy) {
            (RuleCondition::Sometimes | RuleCondition::OfResponse, _) => false,
            // Malformed requests skip a `when`, and then responses are changed.
            (RuleCondition::EveryRequest, _)
                if later.when == RuleCondition::Always && later.changes_response =>
            {
                false
            }
            (_, Strategy::FirstMatch) => true,
            // A response action also applies to the response of the earlier rule.
            (_, Strategy::AllMatch) => self.ends_request && !later.changes_response,
        }
    }
}

/// A rule by its name, or by its number, as text.
pub(super) fn in_words(name: &str, has_name: bool) -> String {
    if has_name { format!("rule `{}`", clip(name)) } else { format!("rule {name}") }
}

/// Warns of the rules of a policy that are never followed.
pub(super) fn warn(strategy: Strategy, rules: &[Outline], context: &mut Context) {
    let mut taken = EndedRequests::default();
    for (index, rule) in rules.iter().enumerate() {
        let Some(first) = rules[..index].iter().find(|first| first.hides(rule, strategy)) else {
            if !warn_of_condition(rule, strategy, (rules, &taken), context)
                && (strategy == Strategy::FirstMatch || rule.ends_request)
            {
                taken.add(index, rule);
            }
            continue;
        };
        let (name, place) = (&first.name, context.place(first.span, rule.span));
        let (reason, mend) = if first.ends_request {
            ("ends the request", "give that one a `when`")
        } else {
            ("with `first_match` no rule comes after it", "set `strategy: all_match`")
        };
        let message =
            format!("{} is never followed: {name} in {place} always holds and {reason}", rule.name);
        let help = format!("move it before {name}, or {mend}");
        context.warning_help(rule.span, message, help);
    }
}

/// Warns of a rule whose condition never matches, or only where earlier rules do. Returns whether it warned.
fn warn_of_condition(
    rule: &Outline,
    strategy: Strategy,
    (rules, taken): (&[Outline], &EndedRequests),
    context: &mut Context,
) -> bool {
    let name = &rule.name;
    if rule.never_holds {
        let message = format!("{name} is never followed: its `when` is false for every request");
        context.warning_help(rule.span, message, "mend its `when`, or remove it");
        return true;
    }
    // A response action also applies to the response of another rule.
    if strategy == Strategy::AllMatch && rule.changes_response {
        return false;
    }
    let Some(first) = taken.before(rule).map(|first| &rules[first]) else { return false };
    let reason = match strategy {
        Strategy::FirstMatch => "with `first_match` no rule comes after it",
        Strategy::AllMatch => "ends the request",
    };
    let (first, place) = (&first.name, context.place(first.span, rule.span));
    let message = format!(
        "{name} is never followed: {first} in {place} holds whenever it would, and {reason}"
    );
    context.warning_help(rule.span, message, format!("move it before {first}, or remove it"));
    true
}

/// The requests that earlier rules end, so that later rules do not see them.
#[derive(Default)]
struct EndedRequests {
    /// Rules by their conditions; separately for rules that read the response.
    texts: HashMap<(bool, String), usize>,
    places: HashMap<Place, usize>,
    /// Lengths of the prefixes in `places`.
    prefixes: BTreeSet<usize>,
}

impl EndedRequests {
    fn add(&mut self, index: usize, rule: &Outline) {
        if let Some(text) = &rule.text {
            self.texts.entry((rule.is_of_response(), text.clone())).or_insert(index);
        }
        for place in rule.taken.iter().flatten() {
            if let PathOf::Prefix(path) = &place.path {
                if path.len() > PREFIX_BYTES_MAX {
                    continue;
                }
                self.prefixes.insert(path.len());
            }
            self.places.entry(place.clone()).or_insert(index);
        }
    }

    /// The rule that takes all requests of this rule.
    fn before(&self, rule: &Outline) -> Option<usize> {
        let text = rule.text.clone().map(|text| (rule.is_of_response(), text));
        if let Some(same) = text.and_then(|text| self.texts.get(&text)) {
            return Some(*same);
        }
        let places = rule.required.as_ref().filter(|_| !rule.is_of_response())?;
        let mut rules = places.iter().map(|place| self.at(place));
        let first = rules.next()??;
        rules.all(|rule| rule == Some(first)).then_some(first)
    }

    /// The first rule that takes all requests of a place.
    fn at(&self, place: &Place) -> Option<usize> {
        let mut paths = vec![PathOf::Any];
        if let PathOf::Exact(path) | PathOf::Prefix(path) = &place.path {
            let lengths = self.prefixes.range(..=path.len());
            paths.extend(lengths.map(|length| PathOf::Prefix(path[..*length].into())));
            paths.push(place.path.clone());
        }
        let hosts = [None, place.host.clone()];
        let found = paths.into_iter().flat_map(|path| {
            hosts.iter().filter_map(move |host| {
                self.places.get(&Place { host: host.clone(), path: path.clone() })
            })
        });
        found.min().copied()
    }
}

fn places(keys: Vec<Key<'_>>) -> Option<Vec<Place>> {
    let place = |key: &Key<'_>| Place {
        host: key.host.map(Into::into),
        path: match key.path {
            None => PathOf::Any,
            Some(PathKey::Exact(path)) => PathOf::Exact(path.into()),
            Some(PathKey::Prefix(path)) => PathOf::Prefix(path.into()),
        },
    };
    (keys.len() <= KEYS_MAX).then(|| keys.iter().map(place).collect())
}

/// Warns of policies of a virtual server after a policy that ends every request.
pub(super) fn warn_of_policies(
    raw: &raw::VirtualServer,
    followed: &[Arc<Policy>],
    context: &mut Context,
) {
    let Some(first) = followed.iter().position(always_ends) else { return };
    // The first policy may be the one of `https_redirect`.
    let names = raw.policies.iter().flat_map(|names| names.iter());
    let is_named = names.clone().any(|name| *followed[first].name == *name.value.0);
    let ending = if is_named { clip(&followed[first].name) } else { "https_redirect".into() };
    for name in names {
        let is_behind = |policy: &Arc<Policy>| *policy.name == *name.value.0;
        let mut behind = followed[first + 1..].iter().filter(|policy| is_behind(policy));
        if followed[..=first].iter().any(is_behind) || behind.any(changes_response) {
            continue;
        }
        let message = format!(
            "the policy `{}` is never followed here: `{ending}` before it ends every request",
            clip(&name.value.0)
        );
        context.warning_help(name.span, message, "move it before, or remove it");
    }
}

fn changes_response(policy: &Arc<Policy>) -> bool {
    policy.request.edits_response() || !policy.response.is_empty()
}

/// Whether a policy ends every request.
fn always_ends(policy: &Arc<Policy>) -> bool {
    let rules = policy.request.all();
    let Some(always) = rules.iter().position(|rule| rule.condition.is_none()) else { return false };
    let ends = |rule: &weir_core::policy::Rule| rule.actions.iter().any(Action::ends_request);
    match policy.request.strategy() {
        Strategy::FirstMatch => rules[..=always].iter().all(ends),
        Strategy::AllMatch => rules.iter().any(|rule| rule.condition.is_none() && ends(rule)),
    }
}
