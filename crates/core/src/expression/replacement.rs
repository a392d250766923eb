//! Replacement by regular expressions, for paths, queries and hosts.

use std::fmt;
use std::ops::ControlFlow;

use super::fields::Fields;
use super::parser::check_length;
use super::pattern::Pattern;
use super::slots::Slots;
use super::template::lone_dollar;
use super::{ExpressionError, REPLACED_LENGTH_BYTES_MAX};

/// Maximum number of matches in a text. Each search can take time in proportion to the text's length, so without this limit
/// the total time of some expressions would be quadratic.
pub const MATCHES_MAX: usize = 1_024;

/// A regular expression, and the replacement of its matches.
///
/// In the replacement, `$1` and `${name}` are the groups of the match (`$0` the whole match), empty if the group took
/// no part, and `$$` is a dollar sign. Matches are found from left to right and do not overlap; the text between them
/// stays. An expression that should match once needs anchors: `^…$`.
#[derive(Debug, Clone)]
pub struct Replacement {
    pattern: u32,
    to: Box<[Part]>,
}

/// A part of a replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Literal bytes.
    Literal(Box<[u8]>),
    /// The text of the group with this number.
    Group(usize),
}

/// The result of a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplaceResult {
    /// Nothing matched, and nothing was appended.
    No,
    /// The complete new text was appended.
    Yes,
    /// The new text would be longer than [`REPLACED_LENGTH_BYTES_MAX`], or there are more than [`MATCHES_MAX`] matches;
    /// nothing was appended.
    TooLong,
}

/// The invalid text of a replacement, and its error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplacementError {
    /// The regular expression.
    Regex(ExpressionError),
    /// The replacement text.
    To(ExpressionError),
}

impl fmt::Display for ReplacementError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Regex(error) | Self::To(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for ReplacementError {}

impl Replacement {
    /// Compiles a replacement; its regular expression is added to the slots.
    ///
    /// # Errors
    /// The error and its place, in bytes of the named text.
    pub fn compile(regex: &str, to: &str, slots: &mut Slots) -> Result<Self, ReplacementError> {
        check_length(regex).map_err(ReplacementError::Regex)?;
        check_length(to).map_err(ReplacementError::To)?;
        let pattern = slots.pattern(regex).map_err(|reason| {
            let message = format!("not a regular expression: {reason}");
            ReplacementError::Regex(ExpressionError::new(0..regex.len(), message))
        })?;
        check_controls(to).map_err(ReplacementError::To)?;
        let of = &slots.patterns()[pattern as usize];
        let to = parts(to, of).map_err(ReplacementError::To)?;
        Ok(Self { pattern, to: to.into() })
    }

    pub(super) fn apply(
        &self,
        fields: &mut Fields,
        text: &[u8],
        out: &mut Vec<u8>,
    ) -> ReplaceResult {
        let start = out.len();
        let end_max = start.saturating_add(REPLACED_LENGTH_BYTES_MAX);
        let (pattern, machine) = fields.searcher(self.pattern);
        let mut matches = 0;
        let rest = pattern.for_each_match(machine, text, |between, captures| {
            matches += 1;
            if matches > MATCHES_MAX {
                return ControlFlow::Break(());
            }
            if out.len() <= end_max {
                out.extend_from_slice(between);
            }
            for part in &self.to {
                if out.len() > end_max {
                    return ControlFlow::Break(());
                }
                match part {
                    Part::Literal(literal) => out.extend_from_slice(literal),
                    Part::Group(number) => {
                        let group = captures.get_group(*number).map_or(0..0, |span| span.range());
                        out.extend_from_slice(&text[group]);
                    }
                }
            }
            ControlFlow::Continue(())
        });
        let Some(rest) = rest else {
            return ReplaceResult::No;
        };
        out.extend_from_slice(rest);
        if out.len() > end_max || matches > MATCHES_MAX {
            out.truncate(start);
            return ReplaceResult::TooLong;
        }
        ReplaceResult::Yes
    }
}

fn check_controls(to: &str) -> Result<(), ExpressionError> {
    match to.find(|char: char| char.is_ascii_control() && char != '\t') {
        None => Ok(()),
        Some(place) => {
            let message =
                "a control character, which is not allowed in a path, query, host or header";
            Err(ExpressionError::new(place..place + 1, message))
        }
    }
}

/// Parses a replacement for matches of a pattern.
pub(crate) fn parts(to: &str, pattern: &Pattern) -> Result<Vec<Part>, ExpressionError> {
    let mut parts = Vec::new();
    let mut literal = Vec::new();
    let mut at = 0;
    while let Some(length) = to[at..].find('$') {
        let dollar = at + length;
        literal.extend_from_slice(&to.as_bytes()[at..dollar]);
        let (part, end) = parse_dollar(to, dollar, pattern)?;
        match part {
            Part::Literal(text) => literal.extend_from_slice(&text),
            group => {
                flush(&mut literal, &mut parts);
                parts.push(group);
            }
        }
        at = end;
    }
    literal.extend_from_slice(&to.as_bytes()[at..]);
    flush(&mut literal, &mut parts);
    Ok(parts)
}

fn flush(literal: &mut Vec<u8>, parts: &mut Vec<Part>) {
    if !literal.is_empty() {
        parts.push(Part::Literal(std::mem::take(literal).into()));
    }
}

/// The reference that begins at this dollar sign, and its end.
fn parse_dollar(
    to: &str,
    dollar: usize,
    pattern: &Pattern,
) -> Result<(Part, usize), ExpressionError> {
    let rest = &to[dollar + 1..];
    if rest.starts_with('$') {
        return Ok((Part::Literal(b"$"[..].into()), dollar + 2));
    }
    let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    let (name, end) = match rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
        Some((name, _)) => (name, dollar + 1 + name.len() + "{}".len()),
        None if digits > 0 => (&rest[..digits], dollar + 1 + digits),
        None => {
            let help = "`$1` and `${name}` are groups of the regular expression, `$$` is a dollar";
            return Err(lone_dollar(dollar, help));
        }
    };
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let group = if is_number {
        name.parse().ok().filter(|number| *number < pattern.groups())
    } else {
        pattern.group(name)
    };
    match group {
        Some(number) => Ok((Part::Group(number), end)),
        None => {
            let message = format!("the regular expression has no group `{}`", name.escape_debug());
            let error = ExpressionError::new(dollar..end, message);
            Err(if name.contains('.') {
                error.help("`${…}` is a group here; expressions work in other values")
            } else {
                error.suggest(name, pattern.group_names())
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn replace(regex: &str, to: &str, text: &str) -> (ReplaceResult, String) {
        let mut slots = Slots::new();
        let replacement = Replacement::compile(regex, to, &mut slots).unwrap();
        let mut fields = Fields::new(Arc::new(slots));
        let mut out = b">".to_vec();
        let outcome = replacement.apply(&mut fields, text.as_bytes(), &mut out);
        (outcome, String::from_utf8(out).unwrap())
    }

    #[test]
    fn matches_are_replaced() {
        for (regex, to, text, expected) in [
            ("^/old/(.*)", "/new/$1", "/old/a/b", Some("/new/a/b")),
            ("^/old/(.*)", "/new/$1", "/other", None),
            ("a", "b", "banana", Some("bbnbnb")),
            ("(?<year>\\d+)-(?<month>\\d+)", "${month}.${year}", "2026-11", Some("11.2026")),
            ("(a)(b)?", "[$2$1$0]", "ab a", Some("[baab] [aa]")),
            ("(a)", "$1b${1}2$$", "a", Some("aba2$")),
            ("x*", "-", "abc", Some("-a-b-c-")),
            ("b+", "", "abba", Some("aa")),
            (".", "ü", "é", Some("üü")),
        ] {
            let found = replace(regex, to, text);
            let expected = match expected {
                Some(text) => (ReplaceResult::Yes, format!(">{text}")),
                None => (ReplaceResult::No, ">".to_owned()),
            };
            assert_eq!(found, expected, "{regex} {to} {text}");
        }
    }

    #[test]
    fn the_result_is_bounded() {
        let text = "a".repeat(MATCHES_MAX);
        assert_eq!(replace("a", "bb", &text).0, ReplaceResult::Yes);
        let (outcome, out) = replace("a", "bb", &"a".repeat(MATCHES_MAX + 1));
        assert_eq!((outcome, out.as_str()), (ReplaceResult::TooLong, ">"));
        let text = "a".repeat(REPLACED_LENGTH_BYTES_MAX / 2);
        assert_eq!(replace("^.*", "$0$0$0", &text).0, ReplaceResult::TooLong);
        assert_eq!(replace("^", "bb", &text.repeat(2)).0, ReplaceResult::TooLong);
    }

    #[test]
    fn errors_have_places() {
        for (regex, to, range, message) in [
            ("a", "b$", 1..2, "this `$` has no meaning"),
            ("a", "$x", 0..1, "this `$` has no meaning"),
            ("a", "${0", 0..1, "this `$` has no meaning"),
            ("(a)", "b$2", 1..3, "the regular expression has no group `2`"),
            (
                "(a)",
                "$99999999999999999999",
                0..21,
                "the regular expression has no group `99999999999999999999`",
            ),
            ("(?<year>a)", "${yaer}b", 0..7, "the regular expression has no group `yaer`"),
            ("a", "${}", 0..3, "the regular expression has no group ``"),
            (
                "a",
                "b\nX: 1",
                1..2,
                "a control character, which is not allowed in a path, query, host or header",
            ),
        ] {
            match Replacement::compile(regex, to, &mut Slots::new()) {
                Err(ReplacementError::To(error)) => {
                    assert_eq!((error.range, error.message), (range, message.into()), "{to}");
                }
                other => panic!("{to}: {other:?}"),
            }
        }
        let error = Replacement::compile("(?<year>a)", "${yaer}", &mut Slots::new()).unwrap_err();
        assert!(error.to_string().ends_with("did you mean `year`?"), "{error}");
        let error = Replacement::compile("(", "", &mut Slots::new()).unwrap_err();
        assert!(matches!(error, ReplacementError::Regex(_)), "{error}");
        assert_eq!(error.to_string(), "not a regular expression: unclosed group");
    }
}
