//! Patterns that select members of a collection by name.

use regex::bytes::Regex;
use regex_syntax::hir::{Hir, HirKind, Look};

use super::SecLangProblem;
use super::pattern::of_names;

/// A pattern of names, ignoring case.
///
/// Collections have dozens of names, and targets select a few of them. So a literal that every match contains rejects most
/// names before the pattern is evaluated.
#[derive(Debug, Clone)]
pub struct NamePattern {
    regex: Regex,
    /// The literal, in lower case.
    literal: Box<[u8]>,
    /// Whether a name must begin with the literal. Otherwise it may contain the literal anywhere.
    is_at_start: bool,
    /// Whether every name with the literal matches, so that the pattern is not evaluated.
    is_enough: bool,
}

impl NamePattern {
    /// Compiles a pattern.
    pub(super) fn new(pattern: &str) -> Result<Self, SecLangProblem> {
        let regex = of_names(pattern)?;
        let hir = regex_syntax::ParserBuilder::new()
            .unicode(false)
            .utf8(false)
            .dot_matches_new_line(true)
            .build()
            .parse(regex.as_str());
        let (is_at_start, literal, is_enough) = hir.map(|hir| beginning(&hir)).unwrap_or_default();
        Ok(Self { regex, literal: literal.to_ascii_lowercase().into(), is_at_start, is_enough })
    }

    /// Whether the pattern matches a name.
    pub fn is_match(&self, name: &[u8]) -> bool {
        self.has_literal(name) && (self.is_enough || self.regex.is_match(name))
    }

    /// The pattern in the syntax of the engine.
    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }

    fn has_literal(&self, name: &[u8]) -> bool {
        let Some(first) = self.literal.first() else { return true };
        let is_here = |part: &[u8]| part.eq_ignore_ascii_case(&self.literal);
        if self.is_at_start {
            return name.get(..self.literal.len()).is_some_and(is_here);
        }
        let places = name.len().checked_sub(self.literal.len()).map_or(0, |last| last + 1);
        (0..places).any(|at| {
            name[at].to_ascii_lowercase() == *first && is_here(&name[at..at + self.literal.len()])
        })
    }
}

/// Whether a pattern is anchored at the start, its leading literal, and whether the rest may match the empty text.
fn beginning(hir: &Hir) -> (bool, Vec<u8>, bool) {
    let parts = match hir.kind() {
        HirKind::Concat(parts) => parts.as_slice(),
        _ => std::slice::from_ref(hir),
    };
    let (is_at_start, parts) = match parts.split_first() {
        Some((first, rest)) if *first.kind() == HirKind::Look(Look::Start) => (true, rest),
        _ => (false, parts),
    };
    let Some((HirKind::Literal(literal), rest)) =
        parts.split_first().map(|(first, rest)| (first.kind(), rest))
    else {
        return (false, Vec::new(), false);
    };
    let may_be_empty = |part: &Hir| {
        part.properties().minimum_len() == Some(0) && part.properties().look_set().is_empty()
    };
    (is_at_start, literal.0.to_vec(), rest.iter().all(may_be_empty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_the_pattern_alone_says() {
        let names = [
            "",
            "a",
            "header_name_920450_host",
            "HEADER_NAME_920450_",
            "x_header_name_920450_host",
            "header_name_92045",
            "paramcounter_q",
            "TX_ParamCounter_",
            "multipart_headers_content_types",
            "multipart_headers_content_types_1",
            "rfi_parameter_args:x",
            "aab",
            "\u{e4}",
        ];
        for pattern in [
            "^header_name_920450_",
            "paramcounter_.*",
            "MULTIPART_HEADERS_CONTENT_TYPES_*",
            "rfi_parameter_.*",
            "^a",
            "a$",
            "a+b",
            "a|^b",
            "(?:a)(b)",
            "^",
            ".*",
            "_host\\b",
            "a(?:|b)$",
        ] {
            let own = NamePattern::new(pattern).expect(pattern);
            for name in names {
                let expected = own.regex.is_match(name.as_bytes());
                assert_eq!(own.is_match(name.as_bytes()), expected, "{pattern} {name}");
            }
        }
    }

    #[test]
    fn patterns_of_known_rules_need_no_engine() {
        for (pattern, literal, is_at_start) in [
            ("^header_name_920450_", "header_name_920450_", true),
            ("paramcounter_.*", "paramcounter_", false),
            ("MULTIPART_HEADERS_CONTENT_TYPES_*", "multipart_headers_content_types", false),
        ] {
            let own = NamePattern::new(pattern).expect(pattern);
            let literal = literal.as_bytes();
            assert_eq!((&*own.literal, own.is_at_start), (literal, is_at_start), "{pattern}");
            assert!(own.is_enough, "{pattern}");
        }
    }
}
