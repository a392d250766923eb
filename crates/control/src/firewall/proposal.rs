//! Proposals: paths on which a rule matched often enough, or a folder with several of them.

use std::collections::{BTreeMap, HashMap};

use weir_waf::exclusion::{Exclusion, Place};

use super::ProposalThresholds;
use super::evidence::Evidence;
use super::exclusions::{Exclusions, ProposedExclusion};
use super::finding::{Subject, matches_one_collection, score};
use super::group::Group;
use super::line::{Line, LoggedRule};
use super::merging::merged;
use super::places::place_of;

/// Maximum number of paths in one folder that are excluded one by one; with more, the folder is excluded.
const PATHS_MAX: usize = 4;
/// All paths are excluded only if a rule matched on more paths than this.
const PATHS_OF_ALL_MAX: usize = 16;

/// Maximum number of rules in a line of the log.
const RULES_MAX: usize = 64;

/// Variables that are the path or contain it: only single paths are excluded for these, because scanners request many
/// paths that do not exist.
const PATHS: [&str; 5] =
    ["REQUEST_FILENAME", "REQUEST_BASENAME", "REQUEST_URI", "REQUEST_URI_RAW", "REQUEST_LINE"];

/// The exclusions that the logs justify.
pub fn exclusions(evidence: &Evidence, wanted: ProposalThresholds) -> Exclusions {
    let (names, suspicious) = proposed(&evidence.groups, wanted);
    let (wide, _) = proposed(&evidence.wide, wanted);
    Exclusions::new(merged(names, wide, evidence), suspicious)
}

/// The proposals for these groups, and the number of groups without one because of other attacks.
fn proposed(
    groups: &HashMap<Subject, HashMap<Place, Group>>,
    wanted: ProposalThresholds,
) -> (Vec<ProposedExclusion>, u64) {
    let (mut all, mut suspicious) = (Vec::new(), 0);
    for ((rule, variable), places) in groups {
        let mut sound = BTreeMap::new();
        for (place, group) in places {
            if group.suspicious * 2 > group.requests {
                suspicious += 1;
            } else {
                sound.insert(place.clone(), group.clone());
            }
        }
        for (place, group) in chosen(sound, wanted, !PATHS.contains(&variable.as_str())) {
            let (rule, variable) = (*rule, variable.clone());
            let exclusion = Exclusion { rule, variable, place };
            all.push(ProposedExclusion { exclusion, group, names: 1 });
        }
    }
    (all, suspicious)
}

/// The contents of one folder: selected paths, and those below the threshold.
#[derive(Debug, Default)]
struct Folder {
    chosen: Vec<(Place, Group)>,
    rest: Group,
    /// The number of paths in `rest`.
    rest_paths: usize,
}

/// The excluded paths of one rule and variable, from the deepest folder upwards.
fn chosen(
    places: BTreeMap<Place, Group>,
    wanted: ProposalThresholds,
    has_folders: bool,
) -> Vec<(Place, Group)> {
    let suffices =
        |it: &Group| it.requests >= wanted.requests && it.clients.count() >= wanted.clients;
    let mut folders: BTreeMap<Place, Folder> = BTreeMap::new();
    for (place, group) in places {
        let at = if place.is_prefix { Some(place.clone()) } else { place.folder() };
        let Some(at) = at else { continue };
        let folder = folders.entry(at).or_default();
        if !place.is_prefix && suffices(&group) {
            folder.chosen.push((place, group));
        } else {
            folder.rest.add_all(&group);
            folder.rest_paths += 1;
        }
    }
    let mut all = Vec::new();
    while let Some(deepest) = folders.keys().max_by_key(|place| place.depth()).cloned() {
        let Some(mut folder) = folders.remove(&deepest) else { break };
        let (least, most) = match deepest.path.as_str() {
            "/" => (PATHS_OF_ALL_MAX, PATHS_OF_ALL_MAX),
            _ => (0, PATHS_MAX),
        };
        let is_rest_excluded = suffices(&folder.rest) && folder.rest_paths > least;
        if has_folders && (is_rest_excluded || folder.chosen.len() > most) {
            for (_, group) in &folder.chosen {
                folder.rest.add_all(group);
            }
            folder.chosen = vec![(deepest.clone(), std::mem::take(&mut folder.rest))];
            folder.rest_paths = 0;
        }
        match deepest.folder() {
            Some(above) => {
                let above = folders.entry(above).or_default();
                above.rest.add_all(&folder.rest);
                above.rest_paths += folder.rest_paths;
                above.chosen.append(&mut folder.chosen);
            }
            None => all.append(&mut folder.chosen),
        }
    }
    all
}

/// The effect of exclusions, computed from scores.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Requests that rules block or would block.
    pub blocked: u64,
    /// The number of these that would pass.
    pub pass: u64,
}

impl Effect {
    /// Counts a line.
    pub fn add(&mut self, line: &Line, exclusions: &Exclusions) {
        let is_blocked = matches!(line.outcome.as_str(), "blocked" | "detected");
        if !is_blocked || line.rule == 0 {
            return;
        }
        self.blocked += 1;
        let place = place_of(&line.target);
        let is_removed = |found: &LoggedRule| exclusions.take_away(found, &place);
        let is_decided = line.rules.iter().any(|found| found.id == line.rule && is_removed(found));
        let removed = removed(line, exclusions, &place);
        let is_below = line.threshold > 0 && removed > 0 && line.score - removed < line.threshold;
        self.pass += u64::from(is_decided || is_below);
    }
}

/// The part of a line's score that the exclusions remove. A rule scores for each value that it matches. The values of a
/// chained rule are those of all its links, but it scores for the values of one. So what the values add up to decides how they
/// are counted.
fn removed(line: &Line, exclusions: &Exclusions, place: &Place) -> i64 {
    let each = line.rules.iter().filter(|found| found.id != line.rule);
    let scored: Vec<(i64, &LoggedRule)> =
        each.map(|found| (score(&found.severity), found)).collect();
    let by_values = |found: &LoggedRule| found.values.len() as i64;
    let once =
        |found: &LoggedRule| if matches_one_collection(found) { by_values(found) } else { 1 };
    let sum = |count: &dyn Fn(&LoggedRule) -> i64| -> i64 {
        scored.iter().map(|(score, found)| score * count(found)).sum()
    };
    let are_all_scored = sum(&by_values) == line.score;
    let of_one = |(score, found): &(i64, &LoggedRule)| {
        let left = exclusions.left(found, place).len() as i64;
        let count = if are_all_scored { by_values(found) } else { once(found) };
        score * if left == 0 { count } else { (count - left).max(0) }
    };
    let removed = scored.iter().map(of_one).sum();
    // A line has at most so many values of a rule. If no finding is left, nothing of the score is.
    let is_nothing_left = line.rules.len() < RULES_MAX
        && scored.iter().all(|(score, found)| *score > 0 && exclusions.take_away(found, place));
    if is_nothing_left && !scored.is_empty() { line.score } else { removed }
}

#[cfg(test)]
mod tests {
    use super::super::line::Value;
    use super::*;

    fn check(paths: &[(&str, u64)], expected: &[&str]) {
        let wanted = ProposalThresholds { requests: 10, clients: 0 };
        let place = |path: &str| Place { is_prefix: path.ends_with('/'), path: path.into() };
        let group = |requests| Group { requests, ..Group::default() };
        let places = paths.iter().map(|(path, requests)| (place(path), group(*requests)));
        let chosen = chosen(places.collect(), wanted, true);
        let mut made: Vec<String> = chosen.into_iter().map(|(place, _)| place.path).collect();
        made.sort();
        assert_eq!(made, expected, "{paths:?}");
    }

    /// A line in which rules of the severity CRITICAL matched these variables.
    fn line(rules: &[(u64, &[&str])], score: i64) -> Line {
        let value = |variable: &&str| Value { variable: (*variable).into(), value: "x".into() };
        let found = |(id, variables): &(u64, &[&str])| LoggedRule {
            id: *id,
            severity: "CRITICAL".into(),
            values: variables.iter().map(value).collect(),
            ..LoggedRule::default()
        };
        Line {
            outcome: "blocked".into(),
            target: "/a".into(),
            rule: 949_110,
            score,
            threshold: 5,
            rules: rules.iter().map(found).collect(),
            ..Line::default()
        }
    }

    #[test]
    fn a_rule_scores_for_each_value() {
        let place = Place { is_prefix: false, path: "/a".into() };
        let proposed = |(rule, variable): (u64, &str)| ProposedExclusion {
            exclusion: Exclusion { rule, variable: variable.into(), place: place.clone() },
            group: Group::default(),
            names: 1,
        };
        let excluded = [(1, "ARGS:x"), (2, "ARGS:x"), (2, "ARGS:y"), (4, "ARGS:x")];
        let exclusions = Exclusions::new(excluded.map(proposed).into(), 0);
        for (rules, score, passes) in [
            (&[(1, &["ARGS:x"][..])][..], 5, true),
            // Three values of one name score three times.
            (&[(1, &["ARGS:x"; 3])], 15, true),
            (&[(2, &["ARGS:x", "ARGS:y", "ARGS:y"])], 15, true),
            (&[(1, &["ARGS:x"; 3]), (3, &["ARGS:z"])], 20, false),
            (&[(1, &["ARGS:x", "ARGS:z"])], 10, false),
            (&[(1, &["ARGS:x", "ARGS:x", "ARGS:z"])], 15, false),
            // More values than a line has.
            (&[(1, &["ARGS:x"; 32])], 500, true),
            // A chain scores for one of its links.
            (&[(4, &["ARGS:x", "REQUEST_METHOD"])], 5, true),
            (&[(4, &["ARGS:x", "REQUEST_METHOD"]), (3, &["ARGS:z"])], 10, false),
            (&[(3, &["ARGS:x"])], 5, false),
        ] {
            let mut effect = Effect::default();
            effect.add(&line(rules, score), &exclusions);
            assert_eq!(effect, Effect { blocked: 1, pass: u64::from(passes) }, "{rules:?}");
        }
    }

    #[test]
    fn paths_and_folders_are_chosen() {
        check(&[("/a/b", 10)], &["/a/b"]);
        check(&[("/a/b", 9)], &[]);
        check(&[("/a/b", 5), ("/a/c", 5)], &["/a/"]);
        check(&[("/a/b", 5), ("/a/c", 4), ("/d", 1)], &[]);
        let many: Vec<String> = (0..17).map(|number| format!("/{number}/a")).collect();
        check(&many.iter().map(|path| (path.as_str(), 1)).collect::<Vec<_>>(), &["/"]);
        check(&[("/a/b", 50), ("/a/c", 4), ("/d/e", 12)], &["/a/b", "/d/e"]);
        check(&[("/a/b", 50), ("/a/c", 10), ("/a/d", 3), ("/a/e", 9)], &["/a/"]);
        let many: Vec<String> = (0..5).map(|number| format!("/a/{number}")).collect();
        let many: Vec<(&str, u64)> = many.iter().map(|path| (path.as_str(), 10)).collect();
        check(&many, &["/a/"]);
        check(&[("/a/b/", 12)], &["/a/b/"]);
        let apart: Vec<String> = (0..5).map(|number| format!("/{number}/a")).collect();
        let many: Vec<(&str, u64)> = apart.iter().map(|path| (path.as_str(), 10)).collect();
        check(&many, &apart.iter().map(String::as_str).collect::<Vec<_>>());
    }
}
