//! Policies: ordered rules, compiled, with an index that finds the rules that may match.

use std::sync::Arc;

use super::action::Action;
use super::index::RuleIndex;
use crate::expression::Condition;

/// The strategy of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Only the first matching rule is followed.
    FirstMatch,
    /// All matching rules are followed.
    AllMatch,
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The name; the rule's position if the file has no name.
    pub name: Arc<str>,
    /// The number of the rule among all rules of the snapshot, for counters; `None`: this is the second part of a rule that
    /// was counted with the request.
    pub id: Option<u32>,
    /// The condition; `None`: the rule always matches.
    pub condition: Option<Condition>,
    /// The actions, in order.
    pub actions: Vec<Action>,
}

impl Rule {
    /// Whether the rule changes the head of every response.
    pub fn edits_response(&self) -> bool {
        self.actions.iter().any(Action::edits_response)
    }
}

/// The rules of a policy that belong to one phase.
#[derive(Debug, Clone)]
pub struct Rules {
    strategy: Strategy,
    rules: Vec<Rule>,
    index: RuleIndex,
    edits_response: bool,
}

impl Rules {
    /// Rules with this strategy, in order.
    pub fn new(strategy: Strategy, rules: Vec<Rule>) -> Self {
        let conditions: Vec<Option<&Condition>> =
            rules.iter().map(|rule| rule.condition.as_ref()).collect();
        let index = RuleIndex::new(&conditions);
        let edits_response = rules.iter().any(Rule::edits_response);
        Self { strategy, rules, index, edits_response }
    }

    /// Whether a rule changes the head of every response.
    pub fn edits_response(&self) -> bool {
        self.edits_response
    }

    /// Whether a rule replaces text in bodies.
    pub fn edit_bodies(&self) -> bool {
        let is_edit = |action: &Action| matches!(action, Action::ReplaceBody(_));
        self.rules.iter().any(|rule| rule.actions.iter().any(is_edit))
    }

    /// The strategy.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// All rules.
    pub fn all(&self) -> &[Rule] {
        &self.rules
    }

    /// The index over the rules' conditions.
    pub fn index(&self) -> &RuleIndex {
        &self.index
    }
}

/// A policy of a virtual server.
///
/// A rule whose condition reads only the request can also change the response: such a rule has a second part that waits for
/// the response. With `first_match`, the second parts keep their positions among the other rules, so that the same rule
/// matches.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The name in the file.
    pub name: Arc<str>,
    /// Rules for requests.
    pub request: Rules,
    /// The rules for the response: waiting parts of rules for requests, then rules for responses.
    pub response: Vec<Rules>,
}

impl Policy {
    /// Whether a rule of the policy replaces text in bodies.
    pub fn edits_bodies(&self) -> bool {
        self.request.edit_bodies() || self.response.iter().any(Rules::edit_bodies)
    }
}
