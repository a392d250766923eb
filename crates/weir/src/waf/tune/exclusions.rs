//! Exclusions: what each removes from a rule, and what remains of a finding.

use std::collections::HashMap;

use super::finding::{Subject, variables};
use super::group::Group;
use super::places::Place;
use crate::waf::log::Found;

/// An exclusion.
#[derive(Debug)]
pub struct Exclusion {
    pub rule: u64,
    pub variable: String,
    pub place: Place,
    pub group: Group,
}

/// A set of exclusions.
#[derive(Debug, Default)]
pub struct Exclusions {
    /// The exclusions, sorted by rule, variable and place.
    pub all: Vec<Exclusion>,
    by_subject: HashMap<Subject, Vec<Place>>,
    /// Number of groups without an exclusion, because most of their requests also contain other attacks.
    pub suspicious: u64,
}

impl Exclusions {
    /// A set from unsorted exclusions, and the number of suspicious groups.
    pub fn new(mut all: Vec<Exclusion>, suspicious: u64) -> Self {
        all.sort_by_key(|it| (it.rule, it.variable.clone(), it.place.clone()));
        let mut by_subject: HashMap<Subject, Vec<Place>> = HashMap::new();
        for Exclusion { rule, variable, place, .. } in &all {
            by_subject.entry((*rule, variable.clone())).or_default().push(place.clone());
        }
        Self { all, by_subject, suspicious }
    }

    /// Whether the exclusions remove the whole finding.
    pub fn take_away(&self, found: &Found, place: &Place) -> bool {
        let variables = variables(found);
        let has = |variable: &&str| self.has(found.id, variable, place);
        !variables.is_empty() && variables.iter().all(has)
    }

    fn has(&self, rule: u64, variable: &str, place: &Place) -> bool {
        let places = self.by_subject.get(&(rule, variable.to_owned()));
        places.is_some_and(|places| places.iter().any(|it| it.has(place)))
    }
}
