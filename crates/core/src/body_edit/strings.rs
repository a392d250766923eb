//! Replacement of strings.

use std::collections::BTreeMap;
use std::fmt;

use aho_corasick::{AhoCorasick, Input, MatchKind};

use super::next_match::NextMatch;

/// Maximum number of strings in one action.
pub const STRINGS_MAX: usize = 256;
/// Maximum length of a string and of its replacement.
pub const STRING_BYTES_MAX: usize = 4096;

/// Strings and their replacements.
#[derive(Debug)]
pub struct StringEdit {
    search: AhoCorasick,
    to: Vec<Box<[u8]>>,
    beginnings: Beginnings,
    longest_bytes: usize,
}

/// The reason why strings cannot be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StringError {
    /// There are no strings, or more than [`STRINGS_MAX`].
    Count,
    /// This string is empty.
    Empty(usize),
    /// This string, or its replacement, is longer than [`STRING_BYTES_MAX`].
    Length(usize),
    /// The search cannot be built from the strings.
    Search,
}

impl fmt::Display for StringError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => write!(out, "one action replaces 1 to {STRINGS_MAX} strings"),
            Self::Empty(_) => write!(out, "the empty text cannot be replaced"),
            Self::Length(_) => write!(out, "a text here has at most {STRING_BYTES_MAX} bytes"),
            Self::Search => write!(out, "the strings are too long together"),
        }
    }
}

impl std::error::Error for StringError {}

impl StringEdit {
    /// Builds the search for strings and their replacements.
    ///
    /// # Errors
    /// The index of the invalid string, and the reason.
    pub fn new(strings: &[(&[u8], &[u8])]) -> Result<Self, StringError> {
        if strings.is_empty() || strings.len() > STRINGS_MAX {
            return Err(StringError::Count);
        }
        for (index, (from, to)) in strings.iter().enumerate() {
            if from.is_empty() {
                return Err(StringError::Empty(index));
            }
            if from.len().max(to.len()) > STRING_BYTES_MAX {
                return Err(StringError::Length(index));
            }
        }
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(strings.iter().map(|(from, _)| from))
            .map_err(|_| StringError::Search)?;
        Ok(Self {
            search,
            to: strings.iter().map(|(_, to)| (*to).into()).collect(),
            beginnings: Beginnings::of(strings.iter().map(|(from, _)| *from)),
            longest_bytes: strings.iter().map(|(from, _)| from.len()).max().unwrap_or(0),
        })
    }

    pub(super) fn to(&self, string: usize) -> &[u8] {
        self.to.get(string).map_or(&[], |to| to)
    }

    /// The next match in `text` from this position on. `tail` is state for all searches of one text, which must go forward;
    /// empty at first.
    pub(super) fn find(
        &self,
        tail: &mut Option<Tail>,
        (text, from): (&[u8], usize),
        is_end: bool,
    ) -> NextMatch {
        let open = if is_end { text.len() } else { self.open_from(tail, text, from) };
        let found = self.search.find(Input::new(text).span(from..text.len()));
        match found {
            // The open part may become a longer match, or one that begins earlier.
            Some(found) if found.start() < open => NextMatch::Match {
                start: found.start(),
                end: found.end(),
                string: found.pattern().as_usize(),
            },
            _ => NextMatch::Clear(open),
        }
    }

    /// The position from which the end of the text may be the beginning of a string.
    fn open_from(&self, tail: &mut Option<Tail>, text: &[u8], from: usize) -> usize {
        // The end is read only once for all searches of the text: later candidates are suffixes of this one.
        let Tail(longest) = tail.get_or_insert_with(|| {
            let start = text.len().saturating_sub(self.longest_bytes - 1).max(from);
            Tail(self.beginnings.longest(&text[start..]))
        });
        *longest = self.beginnings.open(*longest, text.len() - from);
        text.len() - self.beginnings.nodes[*longest as usize].bytes as usize
    }
}

/// The longest suffix of a text that is the beginning of a string, among those that were not replaced yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tail(u32);

/// The prefixes of the strings, as a tree; each node links to its longest proper suffix that is also a prefix (the automaton
/// of Aho and Corasick, 1975). It shows which part of a text's end may still become a string.
#[derive(Debug)]
struct Beginnings {
    nodes: Vec<Beginning>,
}

#[derive(Debug, Default)]
struct Beginning {
    /// The next states, by the next byte.
    next: BTreeMap<u8, u32>,
    /// The longest prefix that is a suffix of this one.
    shorter: u32,
    bytes: u32,
}

impl Beginnings {
    fn of<'s>(strings: impl Iterator<Item = &'s [u8]>) -> Self {
        let mut nodes = vec![Beginning::default()];
        for string in strings {
            let mut at = 0;
            for (byte, bytes) in string.iter().zip(1..) {
                at = match nodes[at].next.get(byte) {
                    Some(next) => *next as usize,
                    None => {
                        let next = nodes.len();
                        nodes[at].next.insert(*byte, next as u32);
                        nodes.push(Beginning { bytes, ..Beginning::default() });
                        next
                    }
                };
            }
        }
        let mut tree = Self { nodes };
        // Shorter prefixes first, because longer ones depend on them.
        let mut order: Vec<u32> = tree.nodes[0].next.values().copied().collect();
        let mut index = 0;
        while index < order.len() {
            let parent = order[index];
            index += 1;
            let next: Vec<(u8, u32)> = tree.nodes[parent as usize]
                .next
                .iter()
                .map(|(byte, next)| (*byte, *next))
                .collect();
            for (byte, child) in next {
                let shorter = tree.nodes[parent as usize].shorter;
                tree.nodes[child as usize].shorter = tree.step(shorter, byte);
                order.push(child);
            }
        }
        tree
    }

    /// The longest prefix that is a suffix of this one plus a byte.
    fn step(&self, mut at: u32, byte: u8) -> u32 {
        loop {
            #[cfg(test)]
            STEPS.with(|steps| steps.set(steps.get() + 1));
            let node = &self.nodes[at as usize];
            match node.next.get(&byte) {
                Some(next) => return *next,
                None if at == 0 => return 0,
                None => at = node.shorter,
            }
        }
    }

    /// The longest prefix that is a suffix of a text.
    fn longest(&self, text: &[u8]) -> u32 {
        text.iter().fold(0, |at, byte| self.step(at, *byte))
    }

    /// The longest incomplete prefix of at most this many bytes that is a suffix of this one.
    fn open(&self, mut at: u32, bytes_max: usize) -> u32 {
        loop {
            let node = &self.nodes[at as usize];
            // A state without a continuation is a whole string, or empty.
            if at == 0 || node.bytes as usize <= bytes_max && !node.next.is_empty() {
                return at;
            }
            at = node.shorter;
        }
    }
}

#[cfg(test)]
thread_local! {
    /// Counts steps in trees of prefixes, for tests.
    pub(super) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}
