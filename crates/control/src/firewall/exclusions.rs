//! Exclusions, and the findings that remain with them.

use std::collections::HashMap;

use weir_waf::exclusion::{Exclusion, Place};

use super::finding::{Subject, variables};
use super::group::Group;
use super::line::{LoggedRule, Value};
use super::names::wider;

/// An exclusion and its reason.
#[derive(Debug)]
pub struct ProposedExclusion {
    /// The exclusion.
    pub exclusion: Exclusion,
    /// The requests with the finding.
    pub group: Group,
    /// The number of names that it stands for.
    pub names: usize,
}

/// All exclusions.
#[derive(Debug, Default)]
pub struct Exclusions {
    /// Ordered by rule, variable and path.
    pub all: Vec<ProposedExclusion>,
    by_subject: HashMap<Subject, Vec<Place>>,
    /// Groups without an exclusion, because most of their requests contain other attacks too.
    pub suspicious: u64,
}

impl Exclusions {
    /// Sorts these exclusions. `suspicious`: the number of groups without an exclusion.
    pub fn new(mut all: Vec<ProposedExclusion>, suspicious: u64) -> Self {
        all.sort_by(|one, other| one.exclusion.cmp(&other.exclusion));
        let mut by_subject: HashMap<Subject, Vec<Place>> = HashMap::new();
        for ProposedExclusion { exclusion: Exclusion { rule, variable, place }, .. } in &all {
            by_subject.entry((*rule, variable.clone())).or_default().push(place.clone());
        }
        Self { all, by_subject, suspicious }
    }

    /// Whether the exclusions remove a finding completely.
    pub fn take_away(&self, found: &LoggedRule, place: &Place) -> bool {
        let variables = variables(found);
        let has = |variable: &&str| self.has(found.id, variable, place);
        !variables.is_empty() && variables.iter().all(has)
    }

    /// The values that a rule still matches, of those in the line.
    pub fn left<'a>(&self, found: &'a LoggedRule, place: &Place) -> Vec<&'a Value> {
        if self.take_away(found, place) {
            return Vec::new();
        }
        let is_left = |value: &&Value| !self.has(found.id, &value.variable, place);
        found.values.iter().filter(is_left).collect()
    }

    /// Whether they remove a rule's finding in this variable.
    pub fn has(&self, rule: u64, variable: &str, place: &Place) -> bool {
        let has = |variable: String| {
            let places = self.by_subject.get(&(rule, variable));
            places.is_some_and(|places| places.iter().any(|it| it.has(place)))
        };
        has(variable.to_owned()) || wider(variable).any(has)
    }
}
