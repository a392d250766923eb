//! Sets and maps of texts, and searches for any text of a set at the start or the end of another.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

/// Sets up to this size are searched one by one: comparing lengths is cheaper than hashing.
const SMALL_TEXTS_MAX: usize = 8;

/// A set of texts.
///
/// The hash is not keyed: the texts come from the configuration, and a client that finds collisions causes only one
/// more comparison per colliding text.
#[derive(Debug, Clone)]
pub(super) enum TextSet {
    Small(Box<[Box<[u8]>]>),
    Large(HashSet<Box<[u8]>, FixedState>),
}

impl TextSet {
    pub fn new(texts: impl IntoIterator<Item = Box<[u8]>>) -> Self {
        let set: HashSet<Box<[u8]>, FixedState> = texts.into_iter().collect();
        if set.len() > SMALL_TEXTS_MAX {
            return Self::Large(set);
        }
        let mut texts: Vec<Box<[u8]>> = set.into_iter().collect();
        texts.sort_unstable();
        Self::Small(texts.into())
    }

    pub fn contains(&self, text: &[u8]) -> bool {
        match self {
            Self::Small(texts) => texts.iter().any(|member| **member == *text),
            Self::Large(texts) => texts.contains(text),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Small(texts) => texts.len(),
            Self::Large(texts) => texts.len(),
        }
    }

    /// The texts in arbitrary order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let (small, large) = match self {
            Self::Small(texts) => (Some(texts), None),
            Self::Large(texts) => (None, Some(texts)),
        };
        let small = small.into_iter().flat_map(|texts| texts.iter());
        let large = large.into_iter().flat_map(|texts| texts.iter());
        small.chain(large).map(|text| &**text)
    }
}

/// A map from texts to texts.
#[derive(Debug, Clone, Default)]
pub(super) struct TextMap(HashMap<Box<[u8]>, Box<[u8]>, FixedState>);

impl TextMap {
    /// Creates a map. Of duplicate keys, the last one is used.
    pub fn new(entries: impl IntoIterator<Item = (Box<[u8]>, Box<[u8]>)>) -> Self {
        Self(entries.into_iter().collect())
    }

    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.0.get(key).map(|value| &**value)
    }

    /// The keys in arbitrary order.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.0.keys().map(|key| &**key)
    }
}

/// A set of prefixes: one binary search finds whether a text starts with any of them.
#[derive(Debug, Clone)]
pub(super) struct Prefixes(Box<[Box<[u8]>]>);

impl Prefixes {
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut texts: Vec<Box<[u8]>> = texts.into_iter().map(Box::from).collect();
        texts.sort_unstable();
        // Sorted, all texts that start with another follow it at once. Without them, only the
        // greatest that is not beyond a text can be its prefix.
        texts.dedup_by(|text, before| text.starts_with(before));
        Self(texts.into())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The texts that have no other one as a prefix, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|text| &**text)
    }

    pub fn any_starts(&self, text: &[u8]) -> bool {
        let after = self.0.partition_point(|prefix| **prefix <= *text);
        after > 0 && text.starts_with(&self.0[after - 1])
    }
}

/// Whether a text ends with any of these: [`Prefixes`] read backwards.
#[derive(Debug, Clone)]
pub(super) struct Suffixes(Box<[Box<[u8]>]>);

impl Suffixes {
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut texts: Vec<Box<[u8]>> = texts.into_iter().map(Box::from).collect();
        texts.sort_unstable_by(|one, other| one.iter().rev().cmp(other.iter().rev()));
        texts.dedup_by(|text, before| text.ends_with(before));
        Self(texts.into())
    }

    /// The texts that have no other one as a suffix.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|text| &**text)
    }

    pub fn any_ends(&self, text: &[u8]) -> bool {
        let after = self.0.partition_point(|suffix| suffix.iter().rev().le(text.iter().rev()));
        after > 0 && text.ends_with(&self.0[after - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_testing::Random;

    #[test]
    fn sets_of_any_size_know_their_members() {
        for size in [0, 1, SMALL_TEXTS_MAX, SMALL_TEXTS_MAX + 1, 1000] {
            let texts = (0..size).map(|number| Box::from(number.to_string().as_bytes()));
            let set = TextSet::new(texts.clone().chain(texts));
            assert_eq!(set.len(), size);
            assert_eq!(set.iter().count(), size);
            for number in 0..2 * size {
                assert_eq!(set.contains(number.to_string().as_bytes()), number < size);
            }
        }
    }

    #[test]
    fn prefixes_and_suffixes_agree_with_trying_each() {
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let mut text = |length_max: usize| -> Vec<u8> {
                (0..random.below(length_max + 1)).map(|_| b'a' + random.below(2) as u8).collect()
            };
            let texts: Vec<Vec<u8>> = (0..seed % 12).map(|_| text(6)).collect();
            let prefixes = Prefixes::new(texts.iter().map(Vec::as_slice));
            let suffixes = Suffixes::new(texts.iter().map(Vec::as_slice));
            for _ in 0..50 {
                let subject = text(8);
                let starts = texts.iter().any(|prefix| subject.starts_with(prefix));
                let ends = texts.iter().any(|suffix| subject.ends_with(suffix));
                assert_eq!(prefixes.any_starts(&subject), starts, "seed {seed}: {subject:?}");
                assert_eq!(suffixes.any_ends(&subject), ends, "seed {seed}: {subject:?}");
            }
        }
    }
}
