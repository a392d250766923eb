//! Data sets: named tables for lookups in conditions and templates, like F5 data groups and NetScaler pattern sets.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use aho_corasick::AhoCorasick;

use super::addresses::{AddressSet, Network, NetworkError};
use super::text_set::{Prefixes, Suffixes, TextMap, TextSet};

/// Maximum size of all texts in a set for `containsAny`; the automaton needs a multiple of it.
pub const SEARCHED_TEXTS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The data sets of a configuration, by name.
#[derive(Debug, Clone, Default)]
pub struct DataSets(BTreeMap<String, DataSet>);

impl DataSets {
    /// Creates an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a data set, or replaces the one with this name. Expressions that were compiled before keep the old one.
    pub fn insert(&mut self, name: impl Into<String>, set: DataSet) {
        self.0.insert(name.into(), set);
    }

    pub(super) fn get(&self, name: &str) -> Option<&DataSet> {
        self.0.get(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// A data set; clones share the data.
#[derive(Debug, Clone)]
pub struct DataSet(Kind);

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Texts(Arc<Texts>),
    Addresses(Arc<AddressSet>),
    Map(Arc<TextMap>),
}

impl DataSet {
    /// A set of texts, for comparison with a whole text (`in`), its start, its end, or any part.
    pub fn strings<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Self {
        let texts = texts.into_iter().map(|text| Box::from(text.as_ref()));
        Self(Kind::Texts(Arc::new(Texts::new(texts))))
    }

    /// Addresses and networks (`10.0.0.1`, `10.0.0.0/8`, `2001:db8::/32`).
    ///
    /// # Errors
    /// The index of the first invalid item, and the reason.
    pub fn addresses<T: AsRef<str>>(
        networks: impl IntoIterator<Item = T>,
    ) -> Result<Self, (usize, NetworkError)> {
        let networks = networks
            .into_iter()
            .enumerate()
            .map(|(index, text)| Network::parse(text.as_ref()).map_err(|error| (index, error)))
            .collect::<Result<Vec<Network>, _>>()?;
        Ok(Self(Kind::Addresses(Arc::new(AddressSet::new(networks)))))
    }

    /// Texts by key; of a repeated key, the last value counts.
    pub fn map<K: AsRef<[u8]>, V: AsRef<[u8]>>(entries: impl IntoIterator<Item = (K, V)>) -> Self {
        let entries = entries
            .into_iter()
            .map(|(key, value)| (Box::from(key.as_ref()), Box::from(value.as_ref())));
        Self(Kind::Map(Arc::new(TextMap::new(entries))))
    }

    pub(super) fn kind(&self) -> &Kind {
        &self.0
    }
}

/// A set of texts with the search structures of expressions, each built when the first expression needs it.
#[derive(Debug)]
pub(super) struct Texts {
    pub set: Arc<TextSet>,
    prefixes: OnceLock<Arc<Prefixes>>,
    suffixes: OnceLock<Arc<Suffixes>>,
    search: OnceLock<Option<AhoCorasick>>,
}

impl Texts {
    pub fn new(texts: impl IntoIterator<Item = Box<[u8]>>) -> Self {
        Self {
            set: Arc::new(TextSet::new(texts)),
            prefixes: OnceLock::new(),
            suffixes: OnceLock::new(),
            search: OnceLock::new(),
        }
    }

    pub fn prefixes(&self) -> Arc<Prefixes> {
        self.prefixes.get_or_init(|| Arc::new(Prefixes::new(self.set.iter()))).clone()
    }

    pub fn suffixes(&self) -> Arc<Suffixes> {
        self.suffixes.get_or_init(|| Arc::new(Suffixes::new(self.set.iter()))).clone()
    }

    /// The search automaton; `None`: the texts are larger than [`SEARCHED_TEXTS_BYTES_MAX`].
    pub fn search(&self) -> Option<AhoCorasick> {
        self.search
            .get_or_init(|| {
                let size: usize = self.set.iter().map(<[u8]>::len).sum();
                (size <= SEARCHED_TEXTS_BYTES_MAX)
                    .then(|| AhoCorasick::new(self.set.iter()).ok())
                    .flatten()
            })
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bad_network_is_named() {
        let networks = ["10.0.0.0/8", "10.0.0.0/99", "x"];
        assert_eq!(DataSet::addresses(networks).unwrap_err(), (1, NetworkError::Syntax));
        assert!(DataSet::addresses(&networks[..1]).is_ok());
    }

    #[test]
    fn searches_are_bounded() {
        let small = Texts::new(["a", "b"].map(|text| Box::from(text.as_bytes())));
        assert!(small.search().unwrap().is_match("xxb"));
        let large = Texts::new([vec![b'a'; SEARCHED_TEXTS_BYTES_MAX + 1].into()]);
        assert!(large.search().is_none());
    }
}
