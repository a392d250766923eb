//! The named parts of a configuration, to compare two configurations.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher};
use std::sync::Arc;

use crate::document::{Node, NodeValue};

/// Sections with named entries.
pub const NAMED: [&str; 6] =
    ["virtual_servers", "pools", "policies", "data_sets", "persistence", "authentication"];

/// The section of the pools, and the key of a pool's members.
const POOLS: &str = "pools";
const MEMBERS: &str = "members";

/// The section with named entries by kind.
pub const PROFILES: &str = "profiles";

/// A hash of each part of a configuration, by its name: `pools.web`, `log`, `file /etc/weir/shop.pem`.
///
/// Copies share all names. So a copy with another member, and its comparison, cost a few nanoseconds for each pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// All parts but pools, by their names.
    others: Arc<BTreeMap<String, u64>>,
    /// The pools, ordered by their names.
    pools: Arc<Vec<PoolPart>>,
    /// The hashes of the pools with their members, in the same order.
    whole: Vec<u64>,
    /// A sum over all parts.
    fingerprint: u64,
}

/// A pool without its members.
#[derive(Debug, PartialEq, Eq)]
struct PoolPart {
    name: String,
    hash: u64,
}

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
        let (mut others, mut pools) = (BTreeMap::new(), BTreeMap::new());
        for (section, node) in entries(root) {
            let depth = match section {
                PROFILES => 2,
                _ => usize::from(NAMED.contains(&section)),
            };
            if section != POOLS || !matches!(node.value, NodeValue::Map(_)) {
                take(section, node, depth, &mut others);
                continue;
            }
            for (name, pool) in entries(node) {
                match pool.value {
                    NodeValue::Map(_) => _ = pools.insert(name, pool_hashes(pool)),
                    _ => take(&format!("{POOLS}.{name}"), pool, 0, &mut others),
                }
            }
        }
        let whole: Vec<u64> = pools.values().map(|(_, whole)| *whole).collect();
        let part = |(name, (hash, _)): (&str, (u64, u64))| PoolPart { name: name.to_owned(), hash };
        let pools: Vec<PoolPart> = pools.into_iter().map(part).collect();
        let mut parts =
            Self { others: Arc::new(others), pools: Arc::new(pools), whole, fingerprint: 0 };
        let others = parts.others.iter().map(|(name, hash)| fingerprint("", name, *hash));
        let pools = parts.pools().map(|(name, whole)| fingerprint(POOLS, name, whole));
        parts.fingerprint = others.chain(pools).fold(0, u64::wrapping_add);
        parts
    }

    /// The pools with their hashes, ordered by their names.
    fn pools(&self) -> impl Iterator<Item = (&str, u64)> {
        let names = self.pools.iter().map(|pool| pool.name.as_str());
        names.zip(self.whole.iter().copied())
    }

    /// A hash of all parts.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// A pool has `is` as a member in place of `was`.
    pub(crate) fn exchange_member(&mut self, pool: &str, was: Option<&Node>, is: Option<&Node>) {
        let Ok(index) = self.pools.binary_search_by(|part| part.name.as_str().cmp(pool)) else {
            return;
        };
        let before = self.whole[index];
        let now = before.wrapping_sub(was.map_or(0, hash_of)).wrapping_add(is.map_or(0, hash_of));
        self.whole[index] = now;
        self.fingerprint = self.fingerprint.wrapping_sub(fingerprint(POOLS, pool, before));
        self.fingerprint = self.fingerprint.wrapping_add(fingerprint(POOLS, pool, now));
    }

    /// These parts, and the files that the configuration names, with fingerprints of their contents.
    pub(crate) fn with_files(mut self, files: BTreeMap<String, u64>) -> Self {
        let named = files.into_iter().map(|(path, content)| (format!("file {path}"), content));
        for (name, content) in named {
            self.fingerprint = self.fingerprint.wrapping_add(fingerprint("", &name, content));
            Arc::make_mut(&mut self.others).insert(name, content);
        }
        self
    }

    /// The differences from the previous configuration, sorted by name.
    pub fn changes_from(&self, before: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        if !Arc::ptr_eq(&self.others, &before.others) {
            let [now, before] = [self, before].map(|parts| parts.others.iter());
            let of = |(name, hash): (&String, &u64)| (name.clone(), *hash);
            compare(now.map(of), before.map(of), &mut changes);
        }
        if Arc::ptr_eq(&self.pools, &before.pools) {
            let both = self.whole.iter().zip(&before.whole).zip(&*self.pools);
            let changed = both.filter(|((now, before), _)| now != before);
            changes.extend(changed.map(|(_, pool)| Change {
                kind: ChangeKind::Changed,
                part: format!("{POOLS}.{}", pool.name),
            }));
        } else {
            let of = |(name, hash): (&str, u64)| (format!("{POOLS}.{name}"), hash);
            compare(self.pools().map(of), before.pools().map(of), &mut changes);
        }
        changes.sort_by(|one, other| one.part.cmp(&other.part));
        changes
    }

    /// The names of the pools whose members differ from those of the previous configuration, if nothing else does.
    pub(crate) fn only_members_differ(&self, before: &Self) -> Option<Vec<String>> {
        let changes = self.changes_from(before);
        let without_members = |parts: &Self, name: &str| {
            let index = parts.pools.binary_search_by(|part| part.name.as_str().cmp(name)).ok()?;
            Some(parts.pools[index].hash)
        };
        let pool = |change: &Change| {
            let name = change.part.strip_prefix(POOLS)?.strip_prefix('.')?;
            let is_same = without_members(self, name) == without_members(before, name);
            (change.kind == ChangeKind::Changed && is_same).then(|| name.to_owned())
        };
        changes.iter().map(pool).collect()
    }
}

/// Adds the differences between two sets of parts.
fn compare(
    now: impl Iterator<Item = (String, u64)>,
    before: impl Iterator<Item = (String, u64)>,
    changes: &mut Vec<Change>,
) {
    let mut before: HashMap<String, u64> = before.collect();
    for (part, hash) in now {
        let kind = match before.remove(&part) {
            None => ChangeKind::Added,
            Some(known) if known != hash => ChangeKind::Changed,
            Some(_) => continue,
        };
        changes.push(Change { kind, part });
    }
    let gone = before.into_keys().map(|part| Change { kind: ChangeKind::Removed, part });
    changes.extend(gone);
}

/// The share of a part in the fingerprint of all.
fn fingerprint(section: &str, name: &str, hash: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (section, name, hash).hash(&mut hasher);
    hasher.finish()
}

/// The hashes of a pool: without its members, and with them.
fn pool_hashes(pool: &Node) -> (u64, u64) {
    let others = without_members(pool);
    let members = pool.get(MEMBERS).into_iter().flat_map(|members| match &members.value {
        NodeValue::List(members) => &members[..],
        _ => &[],
    });
    let whole = members.fold(others, |sum, member| sum.wrapping_add(hash_of(member)));
    (others, whole)
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

fn hash_of(node: &Node) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash(node, &mut hasher);
    hasher.finish()
}

/// The hash of a pool without its members, whose hashes are added to it: their order does not matter, and one can be exchanged.
fn without_members(pool: &Node) -> u64 {
    let is_list =
        |(key, node): &(&str, &Node)| *key == MEMBERS && matches!(node.value, NodeValue::List(_));
    let mut others: Vec<(&str, &Node)> = entries(pool).filter(|it| !is_list(it)).collect();
    others.sort_by_key(|(key, _)| *key);
    let mut hasher = DefaultHasher::new();
    entries(pool).any(|it| is_list(&it)).hash(&mut hasher);
    for (key, value) in others {
        key.hash(&mut hasher);
        hash(value, &mut hasher);
    }
    hasher.finish()
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

    #[test]
    fn one_member_can_be_exchanged() {
        let text =
            |members: &str| format!("pools: {{ a: {{ members: [ {members} ], retries: 1 }} }}\n");
        let member = |text: &str| parse(&Lines::new(&format!("m: {text}\n"))).0.expect("a tree");
        let check = |before: &str, was: Option<&str>, is: Option<&str>, after: &str| {
            let [was, is] = [was, is].map(|text| text.map(member));
            let [was, is] = [&was, &is].map(|tree| tree.as_ref().and_then(|tree| tree.get("m")));
            let (before, after) = (parts(&text(before)), parts(&text(after)));
            let mut changed = before.clone();
            changed.exchange_member("a", was, is);
            assert_eq!(changed, after);
            assert_eq!(after.changes_from(&before).len(), usize::from(before != after));
        };
        check("x, y", Some("x"), Some("{ address: x, weight: 3 }"), "{ address: x, weight: 3 }, y");
        check("x, y", Some("x"), None, "y");
        check("x", None, Some("y"), "x, y");
        check("x, y", Some("x"), Some("x"), "x, y");
    }

    #[test]
    fn changes_of_members_alone_are_told_apart() {
        let before = "log: { access: { format: json } }\n\
             pools: { a.b: { members: [ x, y ], balance: random_two }, c: { members: [ z ] } }\n";
        let check = |from: &str, to: &str, expected: Option<&[&str]>| {
            let changed = before.replace(from, to);
            assert!(changed != before || from == to, "{from}");
            let found = parts(&changed).only_members_differ(&parts(before));
            let expected = expected.map(|names| names.iter().map(ToString::to_string).collect());
            assert_eq!(found, expected, "{to}");
        };
        check("x", "x", Some(&[]));
        check("x, y", "y", Some(&["a.b"]));
        check("x, y", "{ address: x, weight: 3 }, y", Some(&["a.b"]));
        check("[ z ]", "[]", Some(&["c"]));
        check("x, y", "y, x", Some(&[]));
        check("random_two", "least_connections", None);
        check("members: [ z ]", "members: [ z ], retries: 2", None);
        check("json", "combined", None);
        check("c: ", "d: ", None);
    }
}
