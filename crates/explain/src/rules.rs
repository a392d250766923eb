//! Policies of a virtual server, rule by rule: the condition, its values, and the result.
//!
//! The decision says which rules were followed. Conditions are evaluated a second time, by the same evaluator with the
//! same facts.

use std::collections::HashMap;
use std::sync::Arc;

use weir_api::explanation::{PolicyTold, RuleTold, RuleVerdict, ValueTold};
use weir_config::snapshot::{RulePlace, Snapshot};
use weir_core::expression::{Condition, Evaluation};
use weir_core::policy::{Action, Policy, Rule, Rules, Strategy};

use crate::actions;
use crate::masks::Masks;

/// The data for descriptions of rules.
pub struct RuleTexts<'a> {
    /// The snapshot that contains the rules.
    pub snapshot: &'a Snapshot,
    /// The secrets to mask.
    pub masks: &'a Masks,
    /// The numbers of the rules that were followed.
    pub followed: &'a [u32],
}

/// The policies of a request.
pub fn for_request(
    policies: &[Arc<Policy>],
    evaluation: &mut Evaluation<'_>,
    telling: &RuleTexts<'_>,
) -> Vec<PolicyTold> {
    // Rules may refer to the user, who was unknown to the rules before authentication.
    let user = evaluation.user().to_vec();
    evaluation.set_user(b"");
    let told = policies.iter().map(|policy| {
        let rules = policy.request.all().iter();
        let rules = rules.map(|rule| request_rule(rule, &user, evaluation, telling)).collect();
        of_policy(policy, &policy.request, rules)
    });
    let told = told.filter(|policy| !policy.rules.is_empty()).collect();
    evaluation.set_user(&user);
    told
}

/// The policies of a response that has not arrived.
pub fn for_response(
    policies: &[Arc<Policy>],
    evaluation: &mut Evaluation<'_>,
    telling: &RuleTexts<'_>,
) -> Vec<PolicyTold> {
    let mut told = Vec::new();
    let places = Places::of(policies, telling.snapshot);
    for policy in policies {
        for rules in &policy.response {
            let of_rules = rules.all().iter().filter(|rule| !rule.actions.is_empty());
            let of_rules: Vec<RuleTold> = of_rules
                .map(|rule| response_rule(rule, places.of_rule(rule, policy), evaluation, telling))
                .collect();
            if !of_rules.is_empty() {
                told.push(of_policy(policy, rules, of_rules));
            }
        }
    }
    told
}

/// The policies of a connection. Only their results are known.
pub fn for_connection(policies: &[Arc<Policy>], telling: &RuleTexts<'_>) -> Vec<PolicyTold> {
    let of = |policy: &Arc<Policy>| {
        let rules = policy.request.all().iter().map(|rule| {
            let is_followed = rule.id.is_some_and(|id| telling.followed.contains(&id));
            let place = place(rule, telling);
            RuleTold {
                name: rule.name.to_string(),
                place: place.map(ToString::to_string).unwrap_or_default(),
                when: place.and_then(|place| when(place, telling)),
                holds: is_followed.then_some(true),
                verdict: match is_followed {
                    true => RuleVerdict::Followed,
                    false => RuleVerdict::False,
                },
                values: Vec::new(),
                actions: Vec::new(),
            }
        });
        of_policy(policy, &policy.request, rules.collect())
    };
    policies.iter().map(of).collect()
}

fn of_policy(policy: &Policy, rules: &Rules, told: Vec<RuleTold>) -> PolicyTold {
    let strategy = match rules.strategy() {
        Strategy::FirstMatch => "first_match",
        Strategy::AllMatch => "all_match",
    };
    PolicyTold { name: policy.name.to_string(), strategy: strategy.into(), rules: told }
}

fn request_rule(
    rule: &Rule,
    user: &[u8],
    evaluation: &mut Evaluation<'_>,
    telling: &RuleTexts<'_>,
) -> RuleTold {
    let is_followed = rule.id.is_some_and(|id| telling.followed.contains(&id));
    let holds = rule.condition.as_ref().is_none_or(|condition| evaluation.holds(condition));
    let verdict = match (is_followed, holds) {
        (true, _) => RuleVerdict::Followed,
        (false, true) => RuleVerdict::NotReached,
        (false, false) => RuleVerdict::False,
    };
    let values = values(rule.condition.as_ref(), evaluation, telling);
    let authenticates = rule.actions.iter().any(Action::authenticates);
    if is_followed && authenticates {
        evaluation.set_user(user);
    }
    let place = place(rule, telling);
    RuleTold {
        name: rule.name.to_string(),
        place: place.map(ToString::to_string).unwrap_or_default(),
        when: place.and_then(|place| when(place, telling)),
        holds: Some(holds),
        verdict,
        values,
        actions: actions_of(rule, evaluation, telling),
    }
}

fn response_rule(
    rule: &Rule,
    place: Option<&RulePlace>,
    evaluation: &mut Evaluation<'_>,
    telling: &RuleTexts<'_>,
) -> RuleTold {
    let waits = rule.condition.as_ref().is_some_and(Condition::reads_response);
    let holds = match waits {
        true => None,
        false => Some(rule.condition.as_ref().is_none_or(|it| evaluation.holds(it))),
    };
    let verdict = match holds {
        None => RuleVerdict::AwaitsResponse,
        Some(true) => RuleVerdict::WithResponse,
        Some(false) => RuleVerdict::False,
    };
    RuleTold {
        name: rule.name.to_string(),
        place: place.map(ToString::to_string).unwrap_or_default(),
        when: place.and_then(|place| when(place, telling)),
        holds,
        verdict,
        values: if waits {
            Vec::new()
        } else {
            values(rule.condition.as_ref(), evaluation, telling)
        },
        actions: actions_of(rule, evaluation, telling),
    }
}

fn place<'a>(rule: &Rule, telling: &RuleTexts<'a>) -> Option<&'a RulePlace> {
    telling.snapshot.rule_places.get(rule.id? as usize)
}

/// The places of rules. The response part of a rule that was counted with the request has no number, so it is found by
/// name.
struct Places<'a> {
    snapshot: &'a Snapshot,
    by_name: HashMap<(&'a str, &'a str), usize>,
}

impl<'a> Places<'a> {
    fn of(policies: &[Arc<Policy>], snapshot: &'a Snapshot) -> Self {
        let mut rules = policies.iter().flat_map(|it| &it.response).flat_map(Rules::all);
        let names = snapshot.rules.iter().zip(0..);
        let by_name = match rules.any(|rule| rule.id.is_none()) {
            true => names.map(|(name, index)| ((&*name.policy, &*name.rule), index)).collect(),
            false => HashMap::new(),
        };
        Self { snapshot, by_name }
    }

    fn of_rule(&self, rule: &Rule, policy: &Policy) -> Option<&'a RulePlace> {
        let named = || self.by_name.get(&(&*policy.name, &*rule.name)).copied();
        let index = rule.id.map(|id| id as usize).or_else(named)?;
        self.snapshot.rule_places.get(index)
    }
}

/// The condition as written in the file.
fn when(place: &RulePlace, telling: &RuleTexts<'_>) -> Option<String> {
    place.when.as_ref().map(|when| telling.masks.text(when.as_bytes()))
}

fn values(
    condition: Option<&Condition>,
    evaluation: &mut Evaluation<'_>,
    telling: &RuleTexts<'_>,
) -> Vec<ValueTold> {
    let Some(condition) = condition else { return Vec::new() };
    let pools = &telling.snapshot.pools;
    let pool =
        |number: u32| pools.get(number as usize).map_or(String::new(), |it| it.name.to_string());
    let read = evaluation.values_read(condition, &pool);
    let told = read
        .iter()
        .map(|it| ValueTold { name: it.name.clone(), value: telling.masks.value_read(it) });
    told.collect()
}

fn actions_of(
    rule: &Rule,
    evaluation: &mut Evaluation<'_>,
    telling: &RuleTexts<'_>,
) -> Vec<String> {
    let told = rule.actions.iter();
    told.map(|it| actions::told(it, telling.snapshot, evaluation, telling.masks)).collect()
}
