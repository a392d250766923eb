//! Regular expressions.

use regex::bytes::{Regex, RegexBuilder};

use super::dialect::translated;
use super::{SecLangProblem, wrong_help};

/// Maximum size of a compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 4 << 20;
/// Maximum memory of a pattern's lazy automaton for each thread, in bytes.
const PATTERN_CACHE_BYTES_MAX: usize = 1 << 20;
/// Maximum number of steps of a backtracking pattern.
const STEPS_MAX: usize = 100_000;
/// Maximum number of steps of the quick variant of a backtracking pattern.
const FEW_STEPS_MAX: usize = 1_000;

/// A compiled regular expression on bytes.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// Matches in time linear in the text.
    Linear(Regex),
    /// A pattern with look-around or backreferences, as in some old rules. It backtracks, up to a maximum number of steps.
    Backtracking(Box<GoingBack>),
}

/// A backtracking pattern.
#[derive(Debug, Clone)]
pub struct GoingBack {
    regex: fancy_regex::Regex,
    /// The pattern with a low maximum number of steps. It detects texts that need many steps.
    quick: fancy_regex::Regex,
}

/// The groups of a match, as ranges. The first group is the whole match.
pub type Groups = Vec<Option<std::ops::Range<usize>>>;

impl Pattern {
    /// Compiles a pattern. Unicode is disabled, because otherwise one invalid byte would evade a rule.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let plain = translated(pattern);
        match linear(&plain, false) {
            Ok(regex) => Ok(Self::Linear(regex)),
            Err(reason) if needs_going_back(pattern) => backtracking(&plain).map_err(|_| reason),
            Err(reason) => Err(reason),
        }
    }

    /// The pattern in the syntax of the engine.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Linear(regex) => regex.as_str(),
            Self::Backtracking(pattern) => pattern.regex.as_str(),
        }
    }

    /// Whether the pattern has groups.
    pub fn has_groups(&self) -> bool {
        match self {
            Self::Linear(regex) => regex.captures_len() > 1,
            Self::Backtracking(pattern) => pattern.regex.captures_len() > 1,
        }
    }

    /// Maximum number of backtracking steps on a text; 0 for a linear pattern.
    pub fn steps_max(&self, text: &[u8]) -> usize {
        match self {
            Self::Linear(_) => 0,
            Self::Backtracking(pattern) if pattern.quick.is_match(text).is_ok() => FEW_STEPS_MAX,
            Self::Backtracking(_) => STEPS_MAX,
        }
    }

    /// Whether the pattern matches; `None`: too many steps.
    pub fn is_match(&self, text: &[u8]) -> Option<bool> {
        match self {
            Self::Linear(regex) => Some(regex.is_match(text)),
            Self::Backtracking(pattern) => pattern.regex.is_match(text).ok(),
        }
    }

    /// The first match, with at most `groups_max` groups; `None`: too many steps.
    pub fn groups(&self, text: &[u8], groups_max: usize) -> Option<Option<Groups>> {
        match self {
            Self::Linear(regex) => Some(regex.captures(text).map(|groups| {
                groups.iter().take(groups_max).map(|group| group.map(|it| it.range())).collect()
            })),
            Self::Backtracking(pattern) => {
                let groups = pattern.regex.captures_input(text.into()).ok()?;
                Some(groups.map(|groups| {
                    let range = |index| groups.get(index).map(|it| it.start()..it.end());
                    (0..groups.len().min(groups_max)).map(range).collect()
                }))
            }
        }
    }

    /// The range of the first match; `None`: too many steps.
    pub fn find(&self, text: &[u8]) -> Option<Option<std::ops::Range<usize>>> {
        match self {
            Self::Linear(regex) => Some(regex.find(text).map(|found| found.range())),
            Self::Backtracking(_) => {
                Some(self.groups(text, 1)?.and_then(|groups| groups.into_iter().next().flatten()))
            }
        }
    }
}

fn needs_going_back(pattern: &str) -> bool {
    let has_look = ["(?=", "(?!", "(?<=", "(?<!", "(?>"].iter().any(|look| pattern.contains(look));
    let is_reference = |pair: &[u8]| pair[0] == b'\\' && matches!(pair[1], b'1'..=b'9');
    has_look || pattern.as_bytes().windows(2).any(is_reference)
}

fn linear(plain: &str, ignores_case: bool) -> Result<Regex, String> {
    RegexBuilder::new(plain)
        .unicode(false)
        .case_insensitive(ignores_case)
        // ModSecurity compiles with PCRE_DOTALL and PCRE_DOLLAR_ENDONLY.
        .dot_matches_new_line(true)
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(PATTERN_CACHE_BYTES_MAX)
        .build()
        .map_err(|error| {
            let text = error.to_string();
            // The last line contains the error. The previous lines repeat the pattern.
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("the regular expression cannot be used: {reason}")
        })
}

fn backtracking(plain: &str) -> Result<Pattern, fancy_regex::Error> {
    let with_steps = |steps_max| {
        fancy_regex::RegexBuilder::new(plain)
            .bytes_mode(fancy_regex::BytesMode::Ascii)
            .dot_matches_new_line(true)
            .backtrack_limit(steps_max)
            .delegate_size_limit(PATTERN_BYTES_MAX)
            .delegate_dfa_size_limit(PATTERN_CACHE_BYTES_MAX)
            .build()
    };
    let (regex, quick) = (with_steps(STEPS_MAX)?, with_steps(FEW_STEPS_MAX)?);
    Ok(Pattern::Backtracking(Box::new(GoingBack { regex, quick })))
}

/// Compiles a pattern of names for the linear engine, ignoring case.
pub(super) fn of_names(pattern: &str) -> Result<Regex, SecLangProblem> {
    linear(&translated(pattern), true).map_err(no_pattern)
}

/// The problem of an invalid pattern.
pub(super) fn no_pattern(reason: String) -> SecLangProblem {
    wrong_help(reason, "patterns have PCRE syntax, without conditionals and recursion")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_bytes() {
        for (pattern, text, expected) in [
            ("(?is)<[^>]*script", &b"<\xffscript"[..], true),
            ("a.b", b"a\nb", true),
            ("a$", b"a\n", false),
            ("^b", b"a\nb", false),
            ("\\x{ff}", b"\xff", true),
            ("<\\?(?!xml)", b"<?xml", false),
            ("<\\?(?!xml)", b"<?php \xff", true),
            ("(\\w+)=(?:\\b\\1\\b)", b"\xff 12=12", true),
            ("(\\w+)=(?:\\b\\1\\b)", b"12=3", false),
            ("(?<!&amp);", b"a&amp;", false),
            ("^\\Qa.b(\\E$", b"a.b(", true),
            ("^\\Qa.b\\E$", b"axb", false),
            ("^[\\Q]-a\\E]{3}$", b"-]a", true),
            ("a(?#what follows)b", b"ab", true),
            ("^\\cJ\\c?$", b"\n\x7f", true),
            ("a\\Nb", b"a\nb", false),
            ("a\\Nb", b"a\xffb", true),
        ] {
            let compiled = Pattern::new(pattern).expect(pattern);
            assert_eq!(compiled.is_match(text), Some(expected), "{pattern}");
            let groups = compiled.groups(text, 10).expect("few steps");
            assert_eq!(groups.is_some(), expected, "{pattern}");
            assert_eq!(compiled.find(text).expect("few steps").is_some(), expected, "{pattern}");
        }
    }

    #[test]
    fn what_readers_differ_in_is_refused() {
        for pattern in [
            "a(?#b)+",
            "a\\Q\\E+",
            "a\\E*",
            "[a-\\Qz\\E]",
            "[a-\\E]",
            "[\\N]",
            "\\N{name}",
            "\\c",
            "(?#a",
        ] {
            assert!(Pattern::new(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn going_back_has_an_end() {
        let pattern = Pattern::new("(a*)*(?=b)\\1c").expect("a pattern");
        assert_eq!(pattern.is_match(&[b'a'; 200]), None);
        assert_eq!(pattern.steps_max(&[b'a'; 200]), STEPS_MAX);
        assert_eq!(pattern.steps_max(b"ab"), FEW_STEPS_MAX);
    }
}
