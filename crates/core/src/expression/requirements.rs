//! Requirements of a condition on host and path, for an index over many conditions.

use std::collections::HashMap;

use super::Condition;
use super::facts::TextFact;
use super::plan::{Test, Text, Trait};
use super::slots::HOST;

/// Maximum number of alternatives of an indexed condition.
pub const KEYS_PER_CONDITION_MAX: usize = 4096;

/// One alternative of a condition: a request can match only with this host, if given, and this path, if given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key<'c> {
    /// The required value of `request.host`.
    pub host: Option<&'c [u8]>,
    /// The required value or prefix of `request.path`.
    pub path: Option<PathKey<'c>>,
}

/// A requirement on `request.path`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKey<'c> {
    /// The value equals this.
    Exact(&'c [u8]),
    /// The value starts with this.
    Prefix(&'c [u8]),
}

impl Condition {
    /// Keys such that each request that fulfils the condition matches at least one. `None`: such a list would have more
    /// than [`KEYS_PER_CONDITION_MAX`] keys or does not exist; an empty list: the condition never holds.
    pub fn requirements(&self) -> Option<Vec<Key<'_>>> {
        keys(&self.test)
    }

    /// Exact keys: the condition holds for exactly the requests that match one of them. `None`: the condition has
    /// further requirements.
    pub fn exact_keys(&self) -> Option<Vec<Key<'_>>> {
        exact(&self.test)
    }

    /// Whether the condition is known to be always false: it is constant, or contradicts itself.
    pub fn never_holds(&self) -> bool {
        never(&self.test) || self.requirements().is_some_and(|keys| keys.is_empty())
    }
}

fn exact(test: &Test) -> Option<Vec<Key<'_>>> {
    match test {
        Test::Constant(false) | Test::Text(..) => keys(test),
        Test::Any(tests) => {
            tests.iter().try_fold(Vec::new(), |all, test| either(all, exact(test)?))
        }
        Test::All(tests) => {
            let any = vec![Key { host: None, path: None }];
            tests.iter().try_fold(any, |so_far, test| {
                let next = exact(test)?;
                let is_small = so_far.len().saturating_mul(next.len()) <= KEYS_PER_CONDITION_MAX;
                is_small.then(|| both(Some(so_far), Some(next)))?
            })
        }
        _ => None,
    }
}

fn never(test: &Test) -> bool {
    match test {
        Test::Constant(value) => !value,
        Test::Any(tests) => tests.iter().all(never),
        Test::All(tests) => tests.iter().any(never) || contradict(tests),
        _ => false,
    }
}

/// Whether a text would have to equal two different texts.
fn contradict(tests: &[Test]) -> bool {
    let mut known = HashMap::new();
    tests.iter().any(|test| {
        let Test::Text(text @ (Text::Fact(_) | Text::Slot(_)), Trait::Equals(value)) = test else {
            return false;
        };
        known.insert(format!("{text:?}"), value).is_some_and(|before| before != value)
    })
}

fn keys(test: &Test) -> Option<Vec<Key<'_>>> {
    match test {
        Test::Constant(false) => Some(Vec::new()),
        Test::Text(Text::Slot(HOST), quality) => host_keys(quality),
        Test::Text(Text::Fact(TextFact::Path), quality) => path_keys(quality),
        Test::All(tests) => tests.iter().fold(None, |required, test| both(required, keys(test))),
        Test::Any(tests) => tests
            .iter()
            .try_fold(Vec::new(), |alternatives, test| either(alternatives, keys(test)?)),
        Test::Choice(choice) => {
            let yes = both(keys(&choice.condition), keys(&choice.yes))?;
            either(yes, keys(&choice.no)?)
        }
        _ => None,
    }
}

fn host_keys(quality: &Trait) -> Option<Vec<Key<'_>>> {
    let key = |host| Key { host: Some(host), path: None };
    match quality {
        Trait::Equals(host) => Some(vec![key(&**host)]),
        Trait::In(hosts) if hosts.len() <= KEYS_PER_CONDITION_MAX => {
            Some(hosts.iter().map(key).collect())
        }
        _ => None,
    }
}

fn path_keys(quality: &Trait) -> Option<Vec<Key<'_>>> {
    let key = |path| Key { host: None, path: Some(path) };
    match quality {
        Trait::Equals(path) => Some(vec![key(PathKey::Exact(path))]),
        Trait::StartsWith(path) => Some(vec![key(PathKey::Prefix(path))]),
        Trait::In(paths) if paths.len() <= KEYS_PER_CONDITION_MAX => {
            Some(paths.iter().map(PathKey::Exact).map(key).collect())
        }
        Trait::StartsWithAny(prefixes) if prefixes.len() <= KEYS_PER_CONDITION_MAX => {
            Some(prefixes.iter().map(PathKey::Prefix).map(key).collect())
        }
        _ => None,
    }
}

fn either<'c>(mut one: Vec<Key<'c>>, other: Vec<Key<'c>>) -> Option<Vec<Key<'c>>> {
    one.extend(other);
    (one.len() <= KEYS_PER_CONDITION_MAX).then_some(one)
}

/// The requirements of both, pair by pair, without contradictory pairs. If there are too many pairs, the requirements of one
/// side are also valid.
fn both<'c>(one: Option<Vec<Key<'c>>>, other: Option<Vec<Key<'c>>>) -> Option<Vec<Key<'c>>> {
    let (Some(one), Some(other)) = (&one, &other) else {
        return one.or(other);
    };
    if one.len().saturating_mul(other.len()) > KEYS_PER_CONDITION_MAX {
        // The longer list probably distinguishes more.
        return Some(if one.len() >= other.len() { one.clone() } else { other.clone() });
    }
    let pairs = one.iter().flat_map(|one| other.iter().map(move |other| (one, other)));
    Some(pairs.filter_map(|(one, other)| join(one, other)).collect())
}

fn join<'c>(one: &Key<'c>, other: &Key<'c>) -> Option<Key<'c>> {
    let host = match (one.host, other.host) {
        (Some(one), Some(other)) if one != other => return None,
        (one, other) => one.or(other),
    };
    let path = match (one.path, other.path) {
        (Some(one), Some(other)) => Some(join_paths(one, other)?),
        (one, other) => one.or(other),
    };
    Some(Key { host, path })
}

fn join_paths<'c>(one: PathKey<'c>, other: PathKey<'c>) -> Option<PathKey<'c>> {
    use PathKey::{Exact, Prefix};
    match (one, other) {
        (Exact(one), Exact(other)) => (one == other).then_some(Exact(one)),
        (Exact(path), Prefix(prefix)) | (Prefix(prefix), Exact(path)) => {
            path.starts_with(prefix).then_some(Exact(path))
        }
        (Prefix(one), Prefix(other)) => {
            let (shorter, longer) =
                if one.len() <= other.len() { (one, other) } else { (other, one) };
            longer.starts_with(shorter).then_some(Prefix(longer))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::testing::Sample;

    /// The keys, written `host path`, with `-` for no requirement and `*` behind a prefix.
    fn show(text: &str) -> Option<Vec<String>> {
        let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let condition = Condition::compile(text, &mut sample.scope()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let keys = condition.requirements()?.into_iter().map(|key| {
            let host = key.host.map_or("-".into(), text);
            let path = match key.path {
                None => "-".into(),
                Some(PathKey::Exact(path)) => text(path),
                Some(PathKey::Prefix(path)) => text(path) + "*",
            };
            format!("{host} {path}")
        });
        Some(keys.collect())
    }

    #[test]
    fn requirements_of_conditions() {
        for (text, expected) in [
            ("request.host == 'a'", Some(&["a -"][..])),
            ("'a' == request.host", Some(&["a -"])),
            ("request.host in ['a', 'b']", Some(&["a -", "b -"])),
            ("request.host == 'a' || request.host == 'b'", Some(&["a -", "b -"])),
            ("request.path == '/x'", Some(&["- /x"])),
            ("request.path in ['/x', '/y']", Some(&["- /x", "- /y"])),
            ("request.path.startsWith('/x')", Some(&["- /x*"])),
            ("request.path.startsWithAny(['/x', '/xy', '/z'])", Some(&["- /x*", "- /z*"])),
            ("request.host == 'a' && request.path.startsWith('/x')", Some(&["a /x*"])),
            (
                "request.host in ['a', 'b'] && request.path in ['/x', '/y']",
                Some(&["a /x", "a /y", "b /x", "b /y"]),
            ),
            (
                "request.host == 'a' && request.path == '/x' || request.host == 'b'",
                Some(&["a /x", "b -"]),
            ),
            ("request.host == 'a' && client.port == 1", Some(&["a -"])),
            ("request.host == 'a' && request.host == 'b'", Some(&[])),
            (
                "request.path.startsWith('/x') && request.path.startsWith('/x/y')",
                Some(&["- /x/y*"]),
            ),
            ("request.path.startsWith('/x') && request.path == '/y'", Some(&[])),
            (
                "request.method == 'GET' ? request.host == 'a' : request.host == 'b'",
                Some(&["a -", "b -"]),
            ),
            ("false", Some(&[])),
            ("true", None),
            ("request.host != 'a'", None),
            ("request.host == 'a' || client.port == 1", None),
            ("request.path.endsWith('.png')", None),
            ("request.host == request.path", None),
        ] {
            let expected =
                expected.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>());
            assert_eq!(show(text), expected, "{text}");
        }
    }

    #[test]
    fn keys_that_say_all() {
        let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        for (text, expected) in [
            ("request.host == 'a'", Some(1)),
            ("request.host in ['a', 'b'] && request.path.startsWith('/a')", Some(2)),
            (
                "request.path == '/' || request.path.startsWith('/a') || request.host == 'a'",
                Some(3),
            ),
            ("request.host == 'a' && request.method == 'GET'", None),
            ("request.host == 'a' || request.path.endsWith('a')", None),
            ("!(request.host == 'a')", None),
            ("true", None),
        ] {
            let condition = Condition::compile(text, &mut sample.scope()).unwrap();
            assert_eq!(condition.exact_keys().map(|keys| keys.len()), expected, "{text}");
        }
    }

    #[test]
    fn conditions_that_never_hold() {
        let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        for (text, expected) in [
            ("false", true),
            ("request.host == 'a' && request.host == 'b'", true),
            ("request.path == '/a' && request.path.startsWith('/b')", true),
            ("request.method == 'GET' && request.method == 'PUT'", true),
            (
                "request.headers['a'] == 'x' && client.ip == '::1' && request.headers['A'] == 'y'",
                true,
            ),
            ("(request.method == 'a' && request.method == 'b') || 1 > 2", true),
            ("request.method == 'GET' && request.method == 'GET'", false),
            ("request.method == 'GET' || request.method == 'PUT'", false),
            ("request.headers['a'] == 'x' && request.headers['b'] == 'y'", false),
            ("request.path.startsWith('/a') && request.path.startsWith('/a/b')", false),
            ("true", false),
        ] {
            let condition = Condition::compile(text, &mut sample.scope()).unwrap();
            assert_eq!(condition.never_holds(), expected, "{text}");
        }
    }

    #[test]
    fn keys_are_bounded() {
        let list = |prefix: &str, length: usize| {
            let texts = (0..length).map(|number| format!("'{prefix}{number}'"));
            texts.collect::<Vec<_>>().join(",")
        };
        let side = 65;
        assert!(side * side > KEYS_PER_CONDITION_MAX);
        let hosts = list("h", side);
        let paths = list("/", side + 1);
        let both = format!("request.host in [{hosts}] && request.path in [{paths}]");
        let keys = show(&both).unwrap();
        assert_eq!(keys.len(), side + 1);
        assert!(keys.iter().all(|key| key.starts_with("- ")), "the longer list alone");
        let many = format!("request.host in [{}]", list("h", KEYS_PER_CONDITION_MAX + 1));
        assert_eq!(show(&many), None);
    }
}
