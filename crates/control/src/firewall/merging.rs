//! Wider exclusions in place of many for single names.

use std::collections::HashMap;

use weir_waf::exclusion::{Place, is_pattern};

use super::evidence::Evidence;
use super::exclusions::ProposedExclusion;
use super::finding::{Subject, collection};
use super::group::Group;
use super::names::covers;

/// Maximum number of names that are excluded one by one at a place; with more, their pattern or all names are excluded.
const NAMES_MAX: usize = 4;

/// Replaces exclusions of single names by wider ones where there are many.
pub fn merged(
    mut names: Vec<ProposedExclusion>,
    mut wide: Vec<ProposedExclusion>,
    evidence: &Evidence,
) -> Vec<ProposedExclusion> {
    // Patterns first: they may leave few enough names.
    wide.sort_by_key(|it| (!is_pattern(&it.exclusion.variable), it.exclusion.clone()));
    for mut candidate in wide {
        let is_replaced = |it: &ProposedExclusion| {
            let (wide, one) = (&candidate.exclusion, &it.exclusion);
            wide.rule == one.rule
                && wide.place.has(&one.place)
                && (covers(&wide.variable, &one.variable)
                    || is_pattern_of(&wide.variable, &one.variable))
        };
        let count = match is_pattern(&candidate.exclusion.variable) {
            true => names_in(&candidate, evidence),
            false => names.iter().filter(|it| is_replaced(it)).count(),
        };
        if count > NAMES_MAX {
            let found = names_in(&candidate, evidence);
            names.retain(|it| !is_replaced(it));
            candidate.names = found;
            names.push(candidate);
        }
    }
    names
}

/// Whether `collection` contains the names of a pattern.
fn is_pattern_of(of: &str, pattern: &str) -> bool {
    is_pattern(pattern) && collection(pattern) == of
}

/// The number of different names with findings that an exclusion covers.
fn names_in(ProposedExclusion { exclusion, .. }: &ProposedExclusion, evidence: &Evidence) -> usize {
    let is_covered = |((rule, variable), places): &(&Subject, &HashMap<Place, Group>)| {
        *rule == exclusion.rule
            && covers(&exclusion.variable, variable)
            && places.keys().any(|place| exclusion.place.has(place))
    };
    evidence.groups.iter().filter(is_covered).count()
}
