//! The values and regular expressions in the expressions and templates of a configuration, without duplicates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::pattern::Pattern;
use crate::jwt::TokenReader;

/// The slots of a set of expressions: values that must be found or computed, numbered so that all expressions share
/// them, and the regular expressions that they search with.
///
/// The set grows while expressions are compiled; afterwards, the evaluation state ([`super::Fields`]) is created from it.
#[derive(Debug, Clone)]
pub struct Slots {
    sources: Vec<Source>,
    source_numbers: BTreeMap<Source, u32>,
    patterns: Vec<Pattern>,
    pattern_numbers: BTreeMap<String, u32>,
    reads_server: bool,
    random_calls: u32,
    pools: BTreeSet<usize>,
    token_readers: Vec<Tokens>,
}

/// A reader of tokens.
#[derive(Debug, Clone)]
struct Tokens {
    name: Arc<str>,
    reader: Arc<TokenReader>,
    /// Whether an expression reads the token.
    is_read: bool,
}

/// The source of a slot's value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// The host in lower case, without port and trailing dot.
    Host,
    /// The canonical path and query.
    Target,
    /// The first query parameter with this name, decoded.
    Query(Arc<str>),
    /// The fields with this name, joined.
    Header(Arc<str>),
    /// The first cookie with this name.
    Cookie(Arc<str>),
    /// The response's fields with this name, joined.
    ResponseHeader(Arc<str>),
    /// The last cookie with this name that the response sets.
    ResponseCookie(Arc<str>),
    /// Bytes of the datagram, by offset and length, in hexadecimal digits.
    DatagramBytes(u16, u16),
    /// The first header field with this name in a SIP message.
    SipHeader(Arc<str>),
    /// The first attribute with this number in a RADIUS packet.
    RadiusAttribute(u8),
    /// A vendor's first attribute with this number.
    RadiusVendorAttribute(u32, u8),
    /// The destination connection id of QUIC, in hexadecimal digits.
    QuicConnectionId,
    /// The date: `2026-11-21`.
    Date,
    /// The time of day: `03:55:33`.
    Clock,
    /// The claim with this name in the token of a reader.
    Claim(u32, Arc<str>),
}

/// The slot of [`Source::Host`], in every set.
pub(super) const HOST: u32 = 0;

impl Slots {
    /// Creates slots without any expression.
    pub fn new() -> Self {
        let mut slots = Self {
            sources: Vec::new(),
            source_numbers: BTreeMap::new(),
            patterns: Vec::new(),
            pattern_numbers: BTreeMap::new(),
            reads_server: false,
            random_calls: 0,
            pools: BTreeSet::new(),
            token_readers: Vec::new(),
        };
        let host = slots.of(Source::Host);
        debug_assert_eq!(host, HOST);
        slots
    }

    /// The slot of a source.
    pub(super) fn of(&mut self, source: Source) -> u32 {
        let next = self.sources.len() as u32;
        *self.source_numbers.entry(source).or_insert_with_key(|source| {
            self.sources.push(source.clone());
            next
        })
    }

    /// The number of a regular expression.
    ///
    /// # Errors
    /// The reason why it is invalid, in one line.
    pub(super) fn pattern(&mut self, pattern: &str) -> Result<u32, String> {
        if let Some(number) = self.pattern_numbers.get(pattern) {
            return Ok(*number);
        }
        let number = self.patterns.len() as u32;
        self.patterns.push(Pattern::new(pattern)?);
        self.pattern_numbers.insert(pattern.to_owned(), number);
        Ok(number)
    }

    /// Whether an expression reads the destination address of the connection (`server.ip`, `server.port`).
    pub fn read_server(&self) -> bool {
        self.reads_server
    }

    /// Adds a token reader under a name; returns its number.
    pub fn add_token_reader(&mut self, name: &str, reader: Arc<TokenReader>) -> u32 {
        self.token_readers.push(Tokens { name: name.into(), reader, is_read: false });
        self.token_readers.len() as u32 - 1
    }

    /// The token readers, by number.
    pub fn token_readers(&self) -> impl Iterator<Item = &Arc<TokenReader>> {
        self.token_readers.iter().map(|tokens| &tokens.reader)
    }

    /// The number of the token reader with this name.
    pub(super) fn token_reader(&mut self, name: &str) -> Option<u32> {
        let number = self.token_readers.iter().position(|tokens| *tokens.name == *name)?;
        self.token_readers[number].is_read = true;
        Some(number as u32)
    }

    pub(super) fn token_names(&self) -> impl Iterator<Item = &str> {
        self.token_readers.iter().map(|tokens| &*tokens.name)
    }

    /// The names of token readers that expressions use.
    pub fn token_names_read(&self) -> impl Iterator<Item = &str> {
        self.token_readers.iter().filter(|tokens| tokens.is_read).map(|tokens| &*tokens.name)
    }

    /// Whether a token may be read, so that expressions need the time.
    pub fn read_tokens(&self) -> bool {
        !self.token_readers.is_empty()
    }

    /// Records that the destination address of the connection is needed.
    pub fn note_server(&mut self) {
        self.reads_server = true;
    }

    /// The number of a new random call: each call has its own.
    pub(super) fn random_call(&mut self) -> u32 {
        self.random_calls = self.random_calls.wrapping_add(1);
        self.random_calls
    }

    /// The pools that expressions read.
    pub fn pools(&self) -> impl Iterator<Item = usize> {
        self.pools.iter().copied()
    }

    pub(super) fn note_pool(&mut self, number: usize) {
        self.pools.insert(number);
    }

    pub(super) fn sources(&self) -> &[Source] {
        &self.sources
    }

    pub(super) fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }
}

impl Default for Slots {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_twice_has_one_slot() {
        let mut slots = Slots::new();
        assert_eq!(slots.of(Source::Host), HOST);
        let header = slots.of(Source::Header("a".into()));
        let cookie = slots.of(Source::Cookie("a".into()));
        assert_eq!((header, cookie), (1, 2));
        assert_eq!(slots.of(Source::Header("a".into())), header);
        assert_eq!(slots.sources().len(), 3);
        assert_eq!(
            (slots.pattern("a+"), slots.pattern("b"), slots.pattern("a+")),
            (Ok(0), Ok(1), Ok(0))
        );
        assert!(slots.pattern("(").is_err());
        assert_eq!(slots.patterns().len(), 2);
    }
}
