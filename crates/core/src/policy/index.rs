//! An index that finds the rules of a policy that may match a request.
//!
//! Most rules of large policies compare the host or the path with constants. Those rules are in tables by host and by path.
//! For each request, the tables are searched once, and only the rules found, and the rules without such a comparison, are
//! evaluated.
//!
//! A table of paths is a sorted list of all its paths and prefixes. Each entry is linked to the longest other entry that it
//! starts with. Take the greatest entry that is not greater than a request's path: it starts with every listed prefix of
//! that path. So one binary search, and then the links, find all matching entries.
//!
//! | operation | cost, for n rules of which c are candidates |
//! |---|---|
//! | `new` | O(n log n) |
//! | `candidates` | O(log n + c log c), and the length of the path for each step of the search |

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::expression::{Condition, Key, PathKey};

/// An index over the rules of one policy; rules are identified by their position.
#[derive(Debug, Clone)]
pub struct RuleIndex {
    /// Rules without a host and a path.
    always: Box<[u32]>,
    /// Rules with a path only.
    any_host: PathTable,
    /// The hash is not keyed: hosts come from the configuration, and a collision with a host in a request costs one
    /// comparison.
    hosts: HashMap<Box<[u8]>, HostRules, FixedState>,
}

#[derive(Debug, Clone, Default)]
struct HostRules {
    /// Rules with this host and without a path.
    any_path: Box<[u32]>,
    paths: PathTable,
}

impl RuleIndex {
    /// An index over rules with these conditions; a rule without a condition always applies.
    ///
    /// # Panics
    /// If there are more than `u32::MAX` rules.
    pub fn new(conditions: &[Option<&Condition>]) -> Self {
        let mut always = Vec::new();
        let mut any_host = Builder::default();
        let mut hosts: HashMap<&[u8], (Vec<u32>, Builder<'_>), FixedState> = HashMap::default();
        for (rule, condition) in conditions.iter().enumerate() {
            let rule = u32::try_from(rule).expect("fewer rules than u32::MAX");
            let Some(keys) = condition.and_then(Condition::requirements) else {
                always.push(rule);
                continue;
            };
            for Key { host, path } in keys {
                match (host, path) {
                    (None, None) => always.push(rule),
                    (None, Some(path)) => any_host.add(path, rule),
                    (Some(host), None) => hosts.entry(host).or_default().0.push(rule),
                    (Some(host), Some(path)) => hosts.entry(host).or_default().1.add(path, rule),
                }
            }
        }
        let hosts = hosts.into_iter().map(|(host, (any_path, paths))| {
            (host.into(), HostRules { any_path: any_path.into(), paths: paths.finish() })
        });
        Self { always: always.into(), any_host: any_host.finish(), hosts: hosts.collect() }
    }

    /// Whether any rule names a host. If not, the result is the same for every host.
    pub fn names_hosts(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// Writes the rules that may match a request with this host and path (`request.host` and `request.path`) to `out`, in
    /// order and without duplicates. No other rule matches.
    pub fn candidates(&self, host: &[u8], path: &[u8], out: &mut Vec<u32>) {
        out.clear();
        out.extend_from_slice(&self.always);
        self.any_host.find(path, out);
        if let Some(rules) = self.hosts.get(host) {
            out.extend_from_slice(&rules.any_path);
            rules.paths.find(path, out);
        }
        if out.len() > self.always.len() {
            out.sort_unstable();
        }
        out.dedup();
    }
}

/// Rules by paths and prefixes of paths.
#[derive(Debug, Clone, Default)]
struct PathTable(Box<[Entry]>);

#[derive(Debug, Clone)]
struct Entry {
    text: Box<[u8]>,
    /// The longest other entry that this one starts with.
    parent: Option<u32>,
    /// Rules for exactly this path.
    exact: Box<[u32]>,
    /// Rules for paths that start with this text.
    prefix: Box<[u32]>,
}

impl PathTable {
    /// Appends the rules for a path.
    fn find(&self, path: &[u8], out: &mut Vec<u32>) {
        let after = self.0.partition_point(|entry| *entry.text <= *path);
        let Some(greatest) = after.checked_sub(1) else {
            return;
        };
        let common = common_length(&self.0[greatest].text, path);
        let mut next = Some(greatest as u32);
        while let Some(index) = next {
            let entry = &self.0[index as usize];
            // An ancestor is a prefix of the greatest entry. So it is a prefix of the path if it is not longer than the
            // common part of both.
            if entry.text.len() <= common {
                out.extend_from_slice(&entry.prefix);
                if entry.text.len() == path.len() {
                    out.extend_from_slice(&entry.exact);
                }
            }
            next = entry.parent;
        }
    }
}

fn common_length(one: &[u8], other: &[u8]) -> usize {
    std::iter::zip(one, other).take_while(|(one, other)| one == other).count()
}

/// A [`PathTable`] under construction.
#[derive(Debug, Default)]
struct Builder<'c> {
    /// Each rule with its path, and whether the path must match completely.
    rules: Vec<(&'c [u8], bool, u32)>,
}

impl<'c> Builder<'c> {
    fn add(&mut self, path: PathKey<'c>, rule: u32) {
        self.rules.push(match path {
            PathKey::Exact(path) => (path, true, rule),
            PathKey::Prefix(path) => (path, false, rule),
        });
    }

    fn finish(mut self) -> PathTable {
        self.rules.sort_unstable();
        self.rules.dedup();
        let mut entries: Vec<Entry> = Vec::new();
        for group in self.rules.chunk_by(|one, other| one.0 == other.0) {
            let text = group[0].0;
            let rules = |exact: bool| {
                group.iter().filter(|rule| rule.1 == exact).map(|rule| rule.2).collect()
            };
            // The list is sorted, so the parent is the previous entry or one of its ancestors.
            let mut parent = entries.len().checked_sub(1).map(|index| index as u32);
            while let Some(index) = parent
                && !text.starts_with(&entries[index as usize].text)
            {
                parent = entries[index as usize].parent;
            }
            entries.push(Entry {
                text: text.into(),
                parent,
                exact: rules(true),
                prefix: rules(false),
            });
        }
        PathTable(entries.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::testing::Sample;
    use weir_testing::Random;

    fn index(sample: &mut Sample, rules: &[String]) -> (RuleIndex, Vec<Option<Condition>>) {
        let conditions: Vec<Option<Condition>> = rules
            .iter()
            .map(|rule| {
                (!rule.is_empty()).then(|| Condition::compile(rule, &mut sample.scope()).unwrap())
            })
            .collect();
        let borrowed: Vec<_> = conditions.iter().map(Option::as_ref).collect();
        (RuleIndex::new(&borrowed), conditions)
    }

    fn candidates(index: &RuleIndex, host: &str, path: &str) -> Vec<u32> {
        let mut out = vec![7; 3];
        index.candidates(host.as_bytes(), path.as_bytes(), &mut out);
        out
    }

    #[test]
    fn rules_are_found_by_host_and_path() {
        let rules = [
            "request.host == 'a'",
            "request.path.startsWith('/x')",
            "request.path.endsWith('.png')",
            "request.host == 'a' && request.path.startsWith('/x/y')",
            "",
            "request.path == '/x/y'",
            "request.host in ['a', 'b'] || request.path == '/z'",
            "false",
        ];
        let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let (index, _) = index(&mut sample, &rules.map(str::to_owned));
        for (host, path, expected) in [
            ("c", "/", &[2, 4][..]),
            ("a", "/", &[0, 2, 4, 6]),
            ("a", "/x/y", &[0, 1, 2, 3, 4, 5, 6]),
            ("a", "/x/yz", &[0, 1, 2, 3, 4, 6]),
            ("b", "/x/y", &[1, 2, 4, 5, 6]),
            ("a", "/z", &[0, 2, 4, 6]),
            ("c", "/z", &[2, 4, 6]),
            ("", "", &[2, 4]),
        ] {
            assert_eq!(candidates(&index, host, path), expected, "{host} {path}");
        }
    }

    #[test]
    fn only_the_rules_concerned_are_candidates_among_many() {
        let rules: Vec<String> = (0..10_000)
            .map(|number| match number % 3 {
                0 => format!("request.host == 'h{number}.example'"),
                1 => format!("request.path.startsWith('/p{number}/')"),
                _ => format!("request.host == 'x' && request.path.startsWith('/q{number}/')"),
            })
            .collect();
        let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let (index, _) = index(&mut sample, &rules);
        for (host, path, expected) in [
            ("h9.example", "/p7/a", &[7, 9][..]),
            ("x", "/q9998/", &[9998]),
            ("y", "/q9998/", &[]),
            ("none", "/p", &[]),
        ] {
            assert_eq!(candidates(&index, host, path), expected, "{host} {path}");
        }
    }

    /// A condition with few hosts and paths, so that many conditions overlap.
    fn random_rule(random: &mut Random, depth: usize) -> String {
        let path = |random: &mut Random| {
            let length = random.below(5);
            (0..length).fold("/".to_owned(), |path, _| path + ["a", "b", "/"][random.below(3)])
        };
        match random.below(if depth == 0 { 6 } else { 9 }) {
            0 => format!("request.host == '{}'", ["h", "i", "j"][random.below(3)]),
            1 => format!("request.path == '{}'", path(random)),
            2 => format!("request.path.startsWith('{}')", path(random)),
            3 => format!("request.host in ['{}', 'i']", ["h", "k"][random.below(2)]),
            4 => format!("request.path.startsWithAny(['{}', '{}'])", path(random), path(random)),
            5 => format!("request.path.endsWith('{}')", path(random)),
            6 => format!("!({})", random_rule(random, depth - 1)),
            operator => {
                let operator = if operator == 7 { "&&" } else { "||" };
                let (left, right) =
                    (random_rule(random, depth - 1), random_rule(random, depth - 1));
                format!("({left} {operator} {right})")
            }
        }
    }

    #[test]
    fn every_rule_that_holds_is_a_candidate() {
        let mut tested = 0;
        for seed in 0..150 {
            let mut random = Random::new(seed);
            let rules: Vec<String> = (0..1 + random.below(40))
                .map(|_| match random.percent(5) {
                    true => String::new(),
                    false => random_rule(&mut random, 3),
                })
                .collect();
            let mut compiled = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            let (index, conditions) = index(&mut compiled, &rules);
            for _ in 0..20 {
                let host = ["h", "i", "j", "k", "l"][random.below(5)];
                let path: String =
                    (0..random.below(6)).map(|_| ["a", "b", "/"][random.below(3)]).collect();
                let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
                // The host is the only field of these rules, so it has the same slot in all of them.
                let sample = Sample::new(&request);
                let facts = sample.facts();
                let path = String::from_utf8_lossy(facts.request.path(facts.request_input));
                let found = candidates(&index, host, &path);
                assert!(found.is_sorted_by(|one, other| one < other), "seed {seed}: {found:?}");
                for (number, condition) in conditions.iter().enumerate() {
                    let holds = condition.as_ref().is_none_or(|condition| {
                        sample.evaluate(|evaluation| evaluation.holds(condition))
                    });
                    let is_candidate = found.contains(&(number as u32));
                    assert!(is_candidate || !holds, "seed {seed}: {} of {request}", rules[number]);
                    tested += usize::from(holds);
                }
            }
        }
        assert!(tested > 1000, "the rules hold too seldom: {tested}");
    }

    #[test]
    fn a_reused_list_does_not_grow() {
        let rules: Vec<String> =
            (0..100).map(|number| format!("request.path.startsWith('/{number}')")).collect();
        let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let (index, _) = index(&mut sample, &rules);
        let mut out = Vec::with_capacity(2);
        for number in 0..100 {
            index.candidates(b"", format!("/{number}").as_bytes(), &mut out);
            assert_eq!(out.capacity(), 2);
        }
    }
}
