//! Evidence for exclusions from logs: rules, variables and paths with the numbers of requests and clients.

use std::collections::{BTreeSet, HashMap};

use weir_waf::exclusion::Place;

use super::exclusions::Exclusions;
use super::finding::{Subject, score, variables};
use super::group::Group;
use super::line::{Line, LoggedRule};
use super::names::{covers, wider};
use super::places::place_of;

/// Maximum number of stored combinations of path, variable and rule; further ones are only counted.
const GROUPS_MAX: usize = 50_000;
/// Maximum size of an example.
const EXAMPLE_BYTES_MAX: usize = 80;
/// The text that masks secrets in the log.
const MASK: &str = "***";
/// The number range of CRS rules that detect scanners.
const SCANNERS: u64 = 913;

/// The evidence from logs.
#[derive(Debug, Default)]
pub struct Evidence {
    /// By rule and variable, then by path.
    pub groups: HashMap<Subject, HashMap<Place, Group>>,
    /// The same for patterns of names and for all names of a collection, whatever the number of names in a request.
    pub wide: HashMap<Subject, HashMap<Place, Group>>,
    groups_count: usize,
    /// The number of findings that were not stored because the maximum was reached.
    pub left_out: u64,
    /// The number of findings in variables that an exclusion cannot name.
    pub unnamed: u64,
}

impl Evidence {
    /// Adds a line. Findings that exclusions remove do not count as attacks.
    pub fn add(&mut self, line: &Line, exclusions: &Exclusions) {
        let place = place_of(&line.target);
        let attacks: Vec<&LoggedRule> =
            line.rules.iter().filter(|it| is_attack(it, line, exclusions, &place)).collect();
        for found in line.rules.iter().filter(|found| is_excludable(found, line)) {
            let variables = variables(found);
            if variables.is_empty() {
                self.unnamed += 1;
            }
            let wider: BTreeSet<String> = variables.iter().flat_map(|it| wider(it)).collect();
            for wide in &wider {
                let is_suspicious = is_suspicious(&attacks, found, wide);
                self.note(line, found, (wide, &place, true), is_suspicious);
            }
            for variable in variables {
                let is_suspicious = is_suspicious(&attacks, found, variable);
                self.note(line, found, (variable, &place, false), is_suspicious);
            }
        }
    }

    fn note(
        &mut self,
        line: &Line,
        found: &LoggedRule,
        (variable, place, is_wide): (&str, &Place, bool),
        is_suspicious: bool,
    ) {
        let groups = if is_wide { &mut self.wide } else { &mut self.groups };
        let places = groups.get(&(found.id, variable.to_owned()));
        let is_known = places.is_some_and(|places| places.contains_key(place));
        if !is_known && self.groups_count >= GROUPS_MAX {
            self.left_out += 1;
            return;
        }
        self.groups_count += usize::from(!is_known);
        let places = groups.entry((found.id, variable.to_owned())).or_default();
        let group = places.entry(place.clone()).or_default();
        group.requests += 1;
        group.clients.add(&line.client);
        group.suspicious += u64::from(is_suspicious);
        group.score = score(&found.severity);
        if group.message.is_empty() && !found.message.contains(MASK) {
            group.message = clipped(&found.message);
        }
        if group.example.is_none() {
            let values = found.values.iter().filter(|value| covers(variable, &value.variable));
            let shown = values.map(|it| &it.value).find(|value| !value.contains(MASK));
            group.example = shown.map(|value| clipped(value));
        }
    }
}

/// Whether a rule affects the verdict itself: it adds to the score, or has blocked the request.
fn is_excludable(found: &LoggedRule, line: &Line) -> bool {
    let sums_up = found.values.first().is_some_and(|value| value.variable.starts_with("TX:"));
    !sums_up && (!found.severity.is_empty() || found.id == line.rule)
}

/// Whether a finding indicates an attack. Requests of scanners always do.
fn is_attack(found: &LoggedRule, line: &Line, exclusions: &Exclusions, place: &Place) -> bool {
    found.severity == "CRITICAL"
        && !found.tags.iter().any(|tag| tag == "attack-protocol")
        && is_excludable(found, line)
        && (family(found) == SCANNERS || !exclusions.take_away(found, place))
}

/// Whether a rule found an attack in a request.
pub fn has_attack(line: &Line) -> bool {
    let (exclusions, place) = (Exclusions::default(), place_of(&line.target));
    line.rules.iter().any(|found| is_attack(found, line, &exclusions, &place))
}

/// A text from the log, shortened and in one line; `None`: a secret is masked in it, or it is empty.
pub fn unmasked(text: &str) -> Option<String> {
    (!text.is_empty() && !text.contains(MASK)).then(|| clipped(text))
}

/// Whether a request also has an attack of another kind in another place, or comes from a scanner.
fn is_suspicious(attacks: &[&LoggedRule], found: &LoggedRule, variable: &str) -> bool {
    attacks.iter().filter(|other| family(other) != family(found)).any(|other| {
        let is_elsewhere = other.values.iter().all(|value| !covers(variable, &value.variable));
        is_elsewhere || family(other) == SCANNERS
    })
}

fn family(found: &LoggedRule) -> u64 {
    found.id / 1000
}

/// A text from the log, shortened and in one line.
fn clipped(text: &str) -> String {
    let text: String = text.chars().take(EXAMPLE_BYTES_MAX).collect();
    super::line::bytes(&text).escape_ascii().to_string()
}
