//! Proposals: paths on which a rule matched often enough, or a folder with several of them.

use std::collections::BTreeMap;

use super::Wanted;
use super::evidence::Evidence;
use super::exclusions::{Exclusion, Exclusions};
use super::finding::score;
use super::group::Group;
use super::places::Place;
use crate::waf::log::{Found, Line};

/// Maximum number of paths in one folder that are excluded one by one; with more, the folder is excluded.
const PATHS_MAX: usize = 4;
/// All paths are excluded only if a rule matched on more paths than this.
const PATHS_OF_ALL_MAX: usize = 16;

/// Variables that are the path or contain it: only single paths are excluded for these, because scanners request many
/// paths that do not exist.
const PATHS: [&str; 5] =
    ["REQUEST_FILENAME", "REQUEST_BASENAME", "REQUEST_URI", "REQUEST_URI_RAW", "REQUEST_LINE"];

/// The exclusions that the logs justify.
pub fn exclusions(evidence: &Evidence, wanted: Wanted) -> Exclusions {
    let (mut all, mut suspicious) = (Vec::new(), 0);
    for ((rule, variable), places) in &evidence.groups {
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
            all.push(Exclusion { rule, variable, place, group });
        }
    }
    Exclusions::new(all, suspicious)
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
    wanted: Wanted,
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
        let place = Place::of_target(&line.target);
        let is_removed = |found: &&Found| exclusions.take_away(found, &place);
        let removed: Vec<_> = line.rules.iter().filter(is_removed).collect();
        let score: i64 = removed.iter().map(|found| score(&found.severity)).sum();
        let is_decided = removed.iter().any(|found| found.id == line.rule);
        let is_below = line.threshold > 0 && score > 0 && line.score - score < line.threshold;
        self.pass += u64::from(is_decided || is_below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(paths: &[(&str, u64)], expected: &[&str]) {
        let wanted = Wanted { requests: 10, clients: 0 };
        let place = |path: &str| Place { is_prefix: path.ends_with('/'), path: path.into() };
        let group = |requests| Group { requests, ..Group::default() };
        let places = paths.iter().map(|(path, requests)| (place(path), group(*requests)));
        let chosen = chosen(places.collect(), wanted, true);
        let mut made: Vec<String> = chosen.into_iter().map(|(place, _)| place.path).collect();
        made.sort();
        assert_eq!(made, expected, "{paths:?}");
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
