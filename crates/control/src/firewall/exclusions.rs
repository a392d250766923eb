//! Exclusions that logs give reason for: the part that each removes from a rule, and the rest of a finding.

use std::collections::HashMap;

use weir_waf::exclusion::{Exclusion, Place};

use super::finding::{Subject, variables};
use super::group::Group;
use super::line::Found;

/// An exclusion, and its reason.
#[derive(Debug)]
pub struct Proposed {
    /// It.
    pub exclusion: Exclusion,
    /// The requests.
    pub group: Group,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Exclusions {
    /// In the order of rules, variables and places.
    pub all: Vec<Proposed>,
    by_subject: HashMap<Subject, Vec<Place>>,
    /// Groups that were left alone, since most of their requests have other attacks too.
    pub suspicious: u64,
}

impl Exclusions {
    /// All these, in any order, and the number of groups that were left alone.
    pub fn new(mut all: Vec<Proposed>, suspicious: u64) -> Self {
        all.sort_by(|one, other| one.exclusion.cmp(&other.exclusion));
        let mut by_subject: HashMap<Subject, Vec<Place>> = HashMap::new();
        for Proposed { exclusion: Exclusion { rule, variable, place }, .. } in &all {
            by_subject.entry((*rule, variable.clone())).or_default().push(place.clone());
        }
        Self { all, by_subject, suspicious }
    }

    /// Whether nothing of a finding is left.
    pub fn take_away(&self, found: &Found, place: &Place) -> bool {
        let variables = variables(found);
        let has = |variable: &&str| self.has(found.id, variable, place);
        !variables.is_empty() && variables.iter().all(has)
    }

    /// Whether they remove a rule's finding in this variable.
    pub fn has(&self, rule: u64, variable: &str, place: &Place) -> bool {
        let places = self.by_subject.get(&(rule, variable.to_owned()));
        places.is_some_and(|places| places.iter().any(|it| it.has(place)))
    }
}
