//! Replacement of the matches of a regular expression.
//!
//! The length of a match is limited: the match at a position is the one that the expression, anchored there, finds
//! within that many bytes. Positions are tried from left to right. So the result does not depend on how the text is
//! divided into pieces, and it is known for a position when that many bytes behind it have arrived. Often it is known
//! earlier: when the search is in its initial state again, no match is open.

use std::fmt;

use regex_automata::hybrid::dfa::{Cache as DfaCache, DFA};
use regex_automata::meta::{Cache, Regex};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::captures::Captures;
use regex_automata::util::start;
use regex_automata::{Anchored, Input, MatchKind};

use super::next_match::NextMatch;
use crate::expression::parser::check_length;
use crate::expression::pattern::Pattern;
use crate::expression::replacement::{Part, parts};
use crate::expression::{
    ExpressionError, REGEX_CACHE_BYTES_MAX, REGEX_SIZE_BYTES_MAX, ReplacementError,
};

/// Default maximum length of a match.
pub const MATCH_BYTES_DEFAULT: usize = 1024;
/// Largest permitted maximum length of a match.
pub const MATCH_BYTES_MAX: usize = 64 * 1024;
/// Maximum size of a replacement; a match with a larger one stays unchanged.
pub const REPLACEMENT_BYTES_MAX: usize = 64 * 1024;
/// A search covers this many times the maximum match length: the repeated part is then small.
const WINDOW_MATCHES: usize = 4;

/// A pattern, and the replacement of its matches.
#[derive(Debug)]
pub struct PatternEdit {
    regex: Regex,
    dfa: DFA,
    to: Box<[Part]>,
    match_bytes_max: usize,
}

/// State for searching one text at a time.
#[derive(Debug)]
pub struct Searcher {
    cache: Cache,
    captures: Captures,
    dfa: DfaCache,
}

/// The reason why a pattern cannot be used for bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternError {
    /// The expression or the replacement is invalid.
    Text(ReplacementError),
    /// The pattern matches the empty text.
    Empty,
    /// The pattern contains look-around assertions.
    Around,
}

impl fmt::Display for PatternError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(error) => error.fmt(out),
            Self::Empty => write!(out, "the regular expression matches the empty text"),
            Self::Around => {
                write!(
                    out,
                    "the regular expression has `^`, `$` or `\\b`, which a stream cannot tell"
                )
            }
        }
    }
}

impl std::error::Error for PatternError {}

impl PatternEdit {
    /// Compiles a pattern for matches of at most this many bytes.
    ///
    /// # Errors
    /// The reason why the pattern is invalid.
    pub fn new(regex: &str, to: &str, match_bytes_max: usize) -> Result<Self, PatternError> {
        let of_regex = |error| PatternError::Text(ReplacementError::Regex(error));
        let of_to = |error| PatternError::Text(ReplacementError::To(error));
        let refused = |reason: String| {
            let message = format!("not a regular expression: {reason}");
            of_regex(ExpressionError::new(0..regex.len(), message))
        };
        check_length(regex).map_err(of_regex)?;
        check_length(to).map_err(of_to)?;
        let pattern = Pattern::new(regex).map_err(refused)?;
        let config = thompson::Config::new()
            .utf8(false)
            .nfa_size_limit(Some(REGEX_SIZE_BYTES_MAX))
            .which_captures(WhichCaptures::None);
        let nfa = thompson::Compiler::new()
            .syntax(pattern.syntax())
            .configure(config)
            .build(regex)
            .map_err(|error| refused(error.to_string()))?;
        if !nfa.look_set_any().is_empty() {
            return Err(PatternError::Around);
        }
        if nfa.has_empty() {
            return Err(PatternError::Empty);
        }
        let to = parts(to, &pattern).map_err(of_to)?;
        let dfa = dfa(nfa).map_err(refused)?;
        let match_bytes_max = match_bytes_max.clamp(1, MATCH_BYTES_MAX);
        Ok(Self { regex: pattern.regex().clone(), dfa, to: to.into(), match_bytes_max })
    }

    /// Maximum length of a match in bytes.
    pub fn match_bytes_max(&self) -> usize {
        self.match_bytes_max
    }

    pub(super) fn searcher(&self) -> Searcher {
        Searcher {
            cache: self.regex.create_cache(),
            captures: self.regex.create_captures(),
            dfa: self.dfa.create_cache(),
        }
    }

    pub(super) fn find(
        &self,
        searcher: &mut Searcher,
        text: &[u8],
        mut from: usize,
        is_end: bool,
    ) -> NextMatch {
        let window = self.match_bytes_max * WINDOW_MATCHES;
        loop {
            let to = text.len().min(from + window);
            let input = Input::new(text).span(from..to);
            let found = self.regex.search_with(&mut searcher.cache, &input);
            let settled = to - self.match_bytes_max.min(to - from);
            if to < text.len() && found.is_none_or(|found| found.start() > settled) {
                // All bytes of any match that begins before this position have arrived, and there is no match.
                from = settled + 1;
                continue;
            }
            let Some(found) = found else {
                let open = if is_end { to } else { self.open_from(searcher, text, (from, to)) };
                return NextMatch::Clear(open);
            };
            let start = found.start();
            let has_all = is_end || text.len() - start >= self.match_bytes_max;
            if !has_all {
                let open = self.open_from(searcher, text, (from, start));
                if open < start || !self.is_settled(searcher, &text[start..]) {
                    return NextMatch::Clear(open);
                }
            }
            if let Some(end) = self.match_at(searcher, text, start) {
                return NextMatch::Match { start, end, string: 0 };
            }
            // The match exceeds the maximum length.
            from = start + 1;
        }
    }

    /// The end of the match that begins here, if there is a match within the maximum length.
    fn match_at(&self, searcher: &mut Searcher, text: &[u8], start: usize) -> Option<usize> {
        let end = text.len().min(start + self.match_bytes_max);
        let input = Input::new(text).span(start..end).anchored(Anchored::Yes);
        let Searcher { cache, captures, .. } = searcher;
        self.regex.search_captures_with(cache, &input, captures);
        captures.get_match().map(|found| found.end())
    }

    /// A position before which no match can begin, whatever text follows: between `from` and `upto`. No complete match
    /// begins before `upto`.
    fn open_from(
        &self,
        searcher: &mut Searcher,
        text: &[u8],
        (from, upto): (usize, usize),
    ) -> usize {
        let least = from.max((text.len() + 1).saturating_sub(self.match_bytes_max)).min(upto);
        let cache = &mut searcher.dfa;
        let config = start::Config::new().anchored(Anchored::No);
        let Ok(mut state) = self.dfa.start_state(cache, &config) else { return least };
        let mut open = least;
        for (byte, place) in text[least..upto].iter().zip(least + 1..) {
            match self.dfa.next_state(cache, state, *byte) {
                Ok(next) if next.is_start() => (state, open) = (next, place),
                Ok(next) if !next.is_quit() && !next.is_dead() => state = next,
                Ok(_) | Err(_) => break,
            }
        }
        open
    }

    /// Whether the match at the beginning of a text is final, whatever text follows.
    fn is_settled(&self, searcher: &mut Searcher, text: &[u8]) -> bool {
        let cache = &mut searcher.dfa;
        let config = start::Config::new().anchored(Anchored::Yes);
        let Ok(mut state) = self.dfa.start_state(cache, &config) else { return false };
        for byte in text {
            match self.dfa.next_state(cache, state, *byte) {
                Ok(next) if next.is_dead() => return true,
                Ok(next) if !next.is_quit() => state = next,
                Ok(_) | Err(_) => break,
            }
        }
        false
    }

    pub(super) fn write(
        &self,
        searcher: &Searcher,
        text: &[u8],
        (start, end): (usize, usize),
        out: &mut Vec<u8>,
    ) {
        let before = out.len();
        for part in &self.to {
            match part {
                Part::Literal(literal) => out.extend_from_slice(literal),
                Part::Group(number) => {
                    let group = searcher.captures.get_group(*number);
                    out.extend_from_slice(&text[group.map_or(0..0, |span| span.range())]);
                }
            }
            if out.len() - before > REPLACEMENT_BYTES_MAX {
                out.truncate(before);
                return out.extend_from_slice(&text[start..end]);
            }
        }
    }
}

fn dfa(nfa: NFA) -> Result<DFA, String> {
    DFA::builder()
        .configure(
            DFA::config()
                .match_kind(MatchKind::LeftmostFirst)
                .specialize_start_states(true)
                .cache_capacity(REGEX_CACHE_BYTES_MAX)
                .skip_cache_capacity_check(true),
        )
        .build_from_nfa(nfa)
        .map_err(|error| error.to_string())
}
