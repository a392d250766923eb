//! The named parts of a configuration, to compare two configurations.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher};

use crate::document::{Node, NodeValue};

/// Sections with named entries.
pub const NAMED: [&str; 6] =
    ["virtual_servers", "pools", "policies", "data_sets", "persistence", "authentication"];

/// The section with named entries by kind.
pub const PROFILES: &str = "profiles";

/// A hash of each part of a configuration, by its name: `pools.web`, `log`, `file /etc/weir/shop.pem`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Parts(BTreeMap<String, u64>);

/// A changed part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The kind of change.
    pub kind: ChangeKind,
    /// The name of the part.
    pub part: String,
}

/// The kind of change of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The part was added.
    Added,
    /// The part was changed.
    Changed,
    /// The part was removed.
    Removed,
}

impl ChangeKind {
    /// The word for output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind.as_str(), self.part)
    }
}

impl Parts {
    /// The parts of a configuration.
    pub(crate) fn of(root: &Node) -> Self {
        let mut parts = BTreeMap::new();
        for (section, node) in entries(root) {
            let depth = match section {
                PROFILES => 2,
                _ => usize::from(NAMED.contains(&section)),
            };
            take(section, node, depth, &mut parts);
        }
        Self(parts)
    }

    /// These parts, and the files that the configuration names, with fingerprints of their contents.
    pub(crate) fn with_files(mut self, files: BTreeMap<String, u64>) -> Self {
        self.0.extend(files.into_iter().map(|(path, content)| (format!("file {path}"), content)));
        self
    }

    /// The differences from the previous configuration, sorted by name.
    pub fn changes_from(&self, before: &Self) -> Vec<Change> {
        let change = |kind, part: &String| Change { kind, part: part.clone() };
        let mut changes: Vec<Change> = self
            .0
            .iter()
            .filter_map(|(part, hash)| match before.0.get(part) {
                None => Some(change(ChangeKind::Added, part)),
                Some(known) if known != hash => Some(change(ChangeKind::Changed, part)),
                Some(_) => None,
            })
            .collect();
        let gone = before.0.keys().filter(|part| !self.0.contains_key(*part));
        changes.extend(gone.map(|part| change(ChangeKind::Removed, part)));
        changes.sort_by(|one, other| one.part.cmp(&other.part));
        changes
    }
}

fn entries(node: &Node) -> impl Iterator<Item = (&str, &Node)> {
    let entries = match &node.value {
        NodeValue::Map(entries) => &entries[..],
        _ => &[],
    };
    entries.iter().map(|entry| (&*entry.key, &entry.value))
}

/// Adds a part, or the parts below it.
fn take(name: &str, node: &Node, depth: usize, parts: &mut BTreeMap<String, u64>) {
    if depth > 0 && matches!(node.value, NodeValue::Map(_)) {
        for (key, below) in entries(node) {
            take(&format!("{name}.{key}"), below, depth - 1, parts);
        }
        return;
    }
    let mut hasher = DefaultHasher::new();
    hash(node, &mut hasher);
    parts.insert(name.to_owned(), hasher.finish());
}

/// Hashes a node, regardless of its place and of the order of a map's keys.
fn hash(node: &Node, hasher: &mut DefaultHasher) {
    std::mem::discriminant(&node.value).hash(hasher);
    match &node.value {
        NodeValue::Null => {}
        NodeValue::Scalar(scalar) => scalar.text.hash(hasher),
        NodeValue::List(items) => {
            items.len().hash(hasher);
            items.iter().for_each(|item| hash(item, hasher));
        }
        NodeValue::Map(map) => {
            map.len().hash(hasher);
            let mut sorted: Vec<(&str, &Node)> = entries(node).collect();
            sorted.sort_by_key(|(key, _)| *key);
            for (key, value) in sorted {
                key.hash(hasher);
                hash(value, hasher);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Lines, parse};

    fn parts(text: &str) -> Parts {
        Parts::of(&parse(&Lines::new(text)).0.expect("a tree"))
    }

    #[test]
    fn changes_have_names() {
        let before = parts(
            "log: { access: { format: json } }\npools: { a: { members: [ x ] }, b: { members: [ y ] } }\n\
             profiles: { http: { one: { head_size_max: 1KiB } } }\n",
        );
        let after = parts(
            "# another comment\npools:\n  b: { members: [ y, z ] }\n  a:\n    members:\n      - x\n  c: { members: [] }\n\
             profiles: { http: { two: { head_size_max: 1KiB } } }\n",
        );
        let told: Vec<String> = after.changes_from(&before).iter().map(Change::to_string).collect();
        assert_eq!(
            told,
            [
                "removed log",
                "changed pools.b",
                "added pools.c",
                "removed profiles.http.one",
                "added profiles.http.two"
            ]
        );
        assert_eq!(after.changes_from(&after), []);
    }
}
