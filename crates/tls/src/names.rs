//! A map by server name. Exact names take precedence over wildcards.
//!
//! | operation | cost |
//! |---|---|
//! | `entry` | O(1) |
//! | `find` | two lookups: exact name, wildcard (RFC 6125 section 6.4.3: `*` stands for one label) |

use std::collections::HashMap;

/// A map with the names of certificates as keys: `shop.example`, `*.example`.
#[derive(Debug, Clone, Default)]
pub struct Names<T> {
    exact: HashMap<Box<str>, T>,
    /// The key is the text after `*.`.
    wildcards: HashMap<Box<str>, T>,
}

impl<T> Names<T> {
    /// An empty map.
    pub fn new() -> Self {
        Self { exact: HashMap::new(), wildcards: HashMap::new() }
    }

    /// The entry of a name, which is in lower case. If there is none, it is inserted.
    pub fn entry(&mut self, name: &str, new: impl FnOnce() -> T) -> &mut T {
        match name.strip_prefix("*.") {
            Some(parent) => self.wildcards.entry(parent.into()).or_insert_with(new),
            None => self.exact.entry(name.into()).or_insert_with(new),
        }
    }

    /// The entry for the name that a client requests, in lower case.
    pub fn find(&self, name: &str) -> Option<&T> {
        self.exact.get(name).or_else(|| {
            let (_, parent) = name.split_once('.')?;
            self.wildcards.get(parent)
        })
    }

    /// All entries, without order.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.exact.values().chain(self.wildcards.values())
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.exact.len() + self.wildcards.len()
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_names_before_wildcards() {
        let mut names = Names::new();
        for name in ["shop.example", "*.example", "*.shop.example", "*"] {
            *names.entry(name, String::new) = name.to_owned();
        }
        let check = |name, expected: Option<&str>| {
            assert_eq!(names.find(name).map(String::as_str), expected, "{name}");
        };
        check("shop.example", Some("shop.example"));
        check("other.example", Some("*.example"));
        check("a.shop.example", Some("*.shop.example"));
        check("a.b.example", None);
        check("example", None);
        check(".example", Some("*.example"));
        check("", None);
        check("a.other", None);
        assert_eq!(names.len(), 4);
    }
}
