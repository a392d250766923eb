//! The texts that a condition compares with `request.path`, for a check of the configuration.

use super::Condition;
use super::facts::TextFact;
use super::plan::{Test, Text, Trait};

/// A text that a condition looks for in `request.path`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathText<'c> {
    /// The compared place.
    pub place: PathPlace,
    /// The text.
    pub text: &'c [u8],
    /// Whether the path is converted to lower case first.
    pub is_lowered: bool,
}

/// The place in the path that is compared with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathPlace {
    /// The whole path is the text.
    Whole,
    /// The path begins with the text.
    Start,
    /// The path ends with the text.
    End,
    /// The path contains the text.
    Within,
}

impl Condition {
    /// The literal texts that the condition compares with `request.path`, without regular expressions, texts of
    /// `containsAny`, and texts that another one in the same list makes redundant.
    pub fn path_texts(&self) -> Vec<PathText<'_>> {
        let mut texts = Vec::new();
        collect(&self.test, &mut texts);
        texts
    }
}

fn collect<'c>(test: &'c Test, texts: &mut Vec<PathText<'c>>) {
    match test {
        Test::Not(of) => collect(of, texts),
        Test::All(tests) | Test::Any(tests) => {
            tests.iter().for_each(|test| collect(test, texts));
        }
        Test::Same(sides) => sides.iter().for_each(|side| collect(side, texts)),
        Test::Choice(choice) => {
            let parts = [&choice.condition, &choice.yes, &choice.no];
            parts.into_iter().for_each(|part| collect(part, texts));
        }
        Test::Text(text, quality) => {
            if let Some(is_lowered) = lowered_path(text) {
                collect_of_trait(quality, is_lowered, texts);
            }
        }
        Test::HasKey(text, map) => {
            if let Some(is_lowered) = lowered_path(text) {
                let key = |text| PathText { place: PathPlace::Whole, text, is_lowered };
                texts.extend(map.keys().map(key));
            }
        }
        Test::Constant(_)
        | Test::Matches(..)
        | Test::Texts(..)
        | Test::Numbers(..)
        | Test::NumberIn(..)
        | Test::AddressIn(..)
        | Test::SameAddress(_)
        | Test::Present(_)
        | Test::AmongValues(..)
        | Test::TokenValid(_)
        | Test::ClaimHas(_) => {}
    }
}

/// Whether a text that is the path is in lower case; `None`: the text is not the path.
fn lowered_path(text: &Text) -> Option<bool> {
    match text {
        Text::Fact(TextFact::Path) => Some(false),
        Text::Lower(of) => lowered_path(of).map(|_| true),
        _ => None,
    }
}

fn collect_of_trait<'c>(quality: &'c Trait, is_lowered: bool, texts: &mut Vec<PathText<'c>>) {
    let at = |place| move |text| PathText { place, text, is_lowered };
    match quality {
        Trait::Equals(text) => texts.push(at(PathPlace::Whole)(text)),
        Trait::StartsWith(text) => texts.push(at(PathPlace::Start)(text)),
        Trait::EndsWith(text) => texts.push(at(PathPlace::End)(text)),
        Trait::Contains(finder) => texts.push(at(PathPlace::Within)(finder.needle())),
        Trait::In(set) => texts.extend(set.iter().map(at(PathPlace::Whole))),
        Trait::StartsWithAny(prefixes) => {
            texts.extend(prefixes.iter().map(at(PathPlace::Start)));
        }
        Trait::EndsWithAny(suffixes) => texts.extend(suffixes.iter().map(at(PathPlace::End))),
        Trait::ContainsAny(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::testing::Sample;

    #[test]
    fn path_texts_of_conditions() {
        use PathPlace::{End, Start, Whole, Within};
        for (condition, expected) in [
            ("request.path == '/a'", &[(Whole, "/a", false)][..]),
            ("'/a' != request.path", &[(Whole, "/a", false)]),
            ("!request.path.startsWith('/a')", &[(Start, "/a", false)]),
            (
                "request.path.endsWith('a') && request.path.contains('b')",
                &[(End, "a", false), (Within, "b", false)],
            ),
            ("request.path in ['/a', '/b']", &[(Whole, "/a", false), (Whole, "/b", false)]),
            (
                "request.path.startsWithAny(['/a', '/ab']) || request.path.endsWithAny(['x', 'y'])",
                &[(Start, "/a", false), (End, "x", false), (End, "y", false)],
            ),
            ("request.path.lowerAscii() == '/a'", &[(Whole, "/a", true)]),
            (
                "request.path == '/a' ? request.path == '/b' : request.path == '/c'",
                &[(Whole, "/a", false), (Whole, "/b", false), (Whole, "/c", false)],
            ),
            (
                "(request.path == '/a') == (request.path == '/b')",
                &[(Whole, "/a", false), (Whole, "/b", false)],
            ),
            ("request.path.matches('/a') || request.path.containsAny(['/a'])", &[]),
            ("request.raw_path == '/a' || request.target == '/a'", &[]),
            ("'/a'.startsWith(request.path) || request.path < '/a'", &[]),
        ] {
            let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            let compiled = Condition::compile(condition, &mut sample.scope()).unwrap();
            let found: Vec<_> = compiled
                .path_texts()
                .iter()
                .map(|it| (it.place, std::str::from_utf8(it.text).unwrap(), it.is_lowered))
                .collect();
            assert_eq!(found, expected, "{condition}");
        }
    }
}
