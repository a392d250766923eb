//! Regular expressions over bytes (the syntax of the `regex` crate; search time is linear in the length of the text).
//!
//! Requests consist of bytes, so `.` matches any byte, and `\w`, `\d`, `\b` and `(?i)` refer to ASCII. A pattern that
//! needs Unicode, such as `\pL` or `[ä]`, is compiled as Unicode as a whole.

use std::ops::ControlFlow;

use regex_automata::meta::{BuildError, Cache, Config, Regex};
use regex_automata::util::captures::Captures;
use regex_automata::util::iter::Searcher;
use regex_automata::util::syntax;
use regex_automata::{Input, PatternID};

use super::{REGEX_CACHE_BYTES_MAX, REGEX_NESTING_MAX, REGEX_SIZE_BYTES_MAX};

/// A regular expression, shared by any number of workers.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    regex: Regex,
    /// Whether it is compiled as Unicode.
    is_unicode: bool,
}

/// The search state of one worker for one [`Pattern`]: workers share no locks, and a search allocates only until its
/// cache has grown.
#[derive(Debug)]
pub(super) struct Machine {
    cache: Cache,
    captures: Captures,
}

impl Pattern {
    /// # Errors
    /// The reason why it is invalid, in one line.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let of = |is_unicode| build(pattern, is_unicode).map(|regex| Self { regex, is_unicode });
        of(false).or_else(|_| of(true)).map_err(|error| describe(&error))
    }

    /// The compiled expression.
    pub fn regex(&self) -> &Regex {
        &self.regex
    }

    /// The syntax options of the expression.
    pub fn syntax(&self) -> syntax::Config {
        syntax_of(self.is_unicode)
    }

    pub(super) fn machine(&self) -> Machine {
        Machine { cache: self.regex.create_cache(), captures: self.regex.create_captures() }
    }

    /// Whether the expression matches anywhere.
    pub(super) fn matches(&self, machine: &mut Machine, text: &[u8]) -> bool {
        let input = Input::new(text).earliest(true);
        self.regex.search_half_with(&mut machine.cache, &input).is_some()
    }

    /// Calls `found` for each match with the text between the previous match and this one, and the groups, until
    /// `found` breaks off. Returns the text after the last match; `None`: no match.
    pub(super) fn for_each_match<'t>(
        &self,
        machine: &mut Machine,
        text: &'t [u8],
        mut found: impl FnMut(&'t [u8], &Captures) -> ControlFlow<()>,
    ) -> Option<&'t [u8]> {
        let Machine { cache, captures } = machine;
        let mut searcher = Searcher::new(Input::new(text));
        let mut rest = None;
        while let Some(matched) = searcher.advance(|input| {
            self.regex.search_captures_with(cache, input, captures);
            Ok(captures.get_match())
        }) {
            let flow = found(&text[rest.unwrap_or(0)..matched.start()], captures);
            rest = Some(matched.end());
            if flow.is_break() {
                break;
            }
        }
        rest.map(|start| &text[start..])
    }

    /// The number of groups, including the whole match.
    pub fn groups(&self) -> usize {
        self.regex.captures_len()
    }

    /// The number of the group with this name.
    pub fn group(&self, name: &str) -> Option<usize> {
        self.regex.group_info().to_index(PatternID::ZERO, name)
    }

    /// The names of the groups.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        self.regex.group_info().pattern_names(PatternID::ZERO).flatten()
    }
}

fn syntax_of(unicode: bool) -> syntax::Config {
    syntax::Config::new().unicode(unicode).utf8(false).nest_limit(REGEX_NESTING_MAX)
}

fn build(pattern: &str, unicode: bool) -> Result<Regex, Box<BuildError>> {
    Regex::builder()
        .syntax(syntax_of(unicode))
        .configure(
            Config::new()
                .utf8_empty(false)
                .nfa_size_limit(Some(REGEX_SIZE_BYTES_MAX))
                .hybrid_cache_capacity(REGEX_CACHE_BYTES_MAX),
        )
        .build(pattern)
        .map_err(Box::new)
}

/// The reason alone, without the library's extra lines for the pattern and the place.
fn describe(error: &BuildError) -> String {
    if error.size_limit().is_some() {
        return format!("it compiles to more than {REGEX_SIZE_BYTES_MAX} bytes");
    }
    match error.syntax_error() {
        Some(error) => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, text: &[u8], expected: bool) {
        let pattern = Pattern::new(pattern).unwrap();
        assert_eq!(pattern.matches(&mut pattern.machine(), text), expected, "{pattern:?}");
    }

    #[test]
    fn patterns_read_bytes_unless_only_unicode_will_do() {
        check("^a.c$", b"a\xffc", true);
        check("^.$", "é".as_bytes(), false);
        check("(?i)É", "é".as_bytes(), false);
        check("é", "é".as_bytes(), true);
        check("^\\w$", "é".as_bytes(), false);
        check("^\\pL$", "é".as_bytes(), true);
        check("^[é]$", "é".as_bytes(), true);
        check("^[é].$", b"\xc3\xa9\xff", false);
        check("", b"", true);
    }

    #[test]
    fn errors_are_one_line() {
        for (pattern, expected) in [
            ("(", "unclosed group"),
            ("a{2,1}", "invalid repetition count range, the start must be <= the end"),
            ("(?=a)", "look-around, including look-ahead and look-behind, is not supported"),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap_err(), expected, "{pattern}");
        }
        let error = Pattern::new("(?:a{1000}){1000}").unwrap_err();
        assert!(error.starts_with("it compiles to more than"), "{error}");
        let depth = REGEX_NESTING_MAX as usize + 1;
        let error = Pattern::new(&format!("{}{}", "(".repeat(depth), ")".repeat(depth)));
        assert!(error.is_err());
    }

    #[test]
    fn matches_come_with_what_is_between_them() {
        let pattern = Pattern::new("(?<first>a)|b*").unwrap();
        let mut machine = pattern.machine();
        let mut seen = Vec::new();
        let rest = pattern.for_each_match(&mut machine, b"xabbc", |between, captures| {
            seen.push((between.to_vec(), captures.get_match().unwrap().range()));
            ControlFlow::Continue(())
        });
        // As `regex::bytes::Regex::replace_all` finds them: an empty match not behind another.
        assert_eq!(
            seen,
            [
                (b"".to_vec(), 0..0),
                (b"x".to_vec(), 1..2),
                (b"".to_vec(), 2..4),
                (b"c".to_vec(), 5..5)
            ]
        );
        assert_eq!(rest, Some(&b""[..]));
        assert_eq!((pattern.groups(), pattern.group("first")), (2, Some(1)));
        assert_eq!(pattern.group_names().collect::<Vec<_>>(), ["first"]);
        let none = Pattern::new("z").unwrap();
        assert_eq!(none.for_each_match(&mut none.machine(), b"xabbc", |_, _| panic!()), None);
    }
}
