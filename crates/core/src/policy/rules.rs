//! Policies: ordered rules, compiled, with the index that finds those which may hold.

use std::sync::Arc;

use super::action::Action;
use super::index::RuleIndex;
use crate::expression::Condition;

/// Which rules of a policy are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// The first whose condition holds.
    FirstMatch,
    /// All whose condition holds.
    AllMatch,
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The name; a number if the file names none.
    pub name: Arc<str>,
    /// Its number among all rules of the snapshot, for counting; `None`: it is the second part of one that
    /// was counted with the request.
    pub id: Option<u32>,
    /// When it holds; `None`: always.
    pub condition: Option<Condition>,
    /// The actions, in order.
    pub actions: Vec<Action>,
}

impl Rule {
    /// Whether it changes the head of every response.
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
    /// Rules in order.
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

    /// Whether one of them replaces text in bodies.
    pub fn edit_bodies(&self) -> bool {
        let is_edit = |action: &Action| matches!(action, Action::ReplaceBody(_));
        self.rules.iter().any(|rule| rule.actions.iter().any(is_edit))
    }

    /// Which of them are followed.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// All of them.
    pub fn all(&self) -> &[Rule] {
        &self.rules
    }

    /// The index over their conditions.
    pub fn index(&self) -> &RuleIndex {
        &self.index
    }
}

/// A policy of a virtual server.
///
/// A rule whose condition reads only the request can also change the response: such a rule has a part that waits for
/// the response. With `first_match`, the waiting parts keep their place among the rules before and behind them, so that
/// the same rule is found.
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
    /// Whether one of its rules replaces text in bodies.
    pub fn edits_bodies(&self) -> bool {
        self.request.edit_bodies() || self.response.iter().any(Rules::edit_bodies)
    }
}
