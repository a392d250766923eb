//! Media types, and lists of media type patterns.

use std::fmt;

/// A pattern of media types.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    /// `*/*`: every type.
    Any,
    /// `application/json`: exactly this type.
    Exact(Box<[u8]>),
    /// `text/*`: types with this prefix, including the slash.
    Prefix(Box<[u8]>),
    /// `+json` or `*+json`: types with this suffix (RFC 6839).
    Suffix(Box<[u8]>),
}

/// A list of media type patterns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MediaTypes(Vec<Pattern>);

/// The text is not a valid media type pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadPattern(pub String);

impl fmt::Display for BadPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(out, "`{text}` is no content type: write `text/html`, `text/*`, `*+json` or `*/*`")
    }
}

impl std::error::Error for BadPattern {}

impl MediaTypes {
    /// Parses patterns: `type/subtype`, `type/*`, `+suffix` (or `*+suffix`) and `*/*`, case-insensitively.
    pub fn parse<'t>(patterns: impl IntoIterator<Item = &'t str>) -> Result<Self, BadPattern> {
        patterns.into_iter().map(Pattern::parse).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a Content-Type value matches one of the patterns. Parameters are ignored.
    pub fn contain(&self, content_type: &[u8]) -> bool {
        let Some(media_type) = media_type(content_type) else {
            return false;
        };
        self.0.iter().any(|pattern| pattern.contains(media_type))
    }
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, BadPattern> {
        let bad = || BadPattern(text.to_owned());
        let is_token = |part: &str| crate::is_token(part.as_bytes()) && !part.contains('*');
        let suffix = text.strip_prefix('*').unwrap_or(text);
        if let Some(name) = suffix.strip_prefix('+') {
            return if is_token(name) {
                Ok(Self::Suffix(suffix.as_bytes().into()))
            } else {
                Err(bad())
            };
        }
        match text.split_once('/').ok_or_else(bad)? {
            ("*", "*") => Ok(Self::Any),
            (kind, "*") if is_token(kind) => {
                Ok(Self::Prefix(text.as_bytes()[..=kind.len()].into()))
            }
            (kind, subtype) if is_token(kind) && is_token(subtype) => {
                Ok(Self::Exact(text.as_bytes().into()))
            }
            _ => Err(bad()),
        }
    }

    fn contains(&self, media_type: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(text) => media_type.eq_ignore_ascii_case(text),
            Self::Prefix(text) => {
                media_type.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text))
            }
            Self::Suffix(text) => media_type
                .len()
                .checked_sub(text.len())
                .is_some_and(|at| media_type[at..].eq_ignore_ascii_case(text)),
        }
    }
}

/// The `type/subtype` of a Content-Type value, without parameters.
fn media_type(content_type: &[u8]) -> Option<&[u8]> {
    let end = content_type.iter().position(|byte| *byte == b';').unwrap_or(content_type.len());
    let media_type = crate::trim_ows(&content_type[..end]);
    let slash = media_type.iter().position(|byte| *byte == b'/')?;
    let is_sound =
        crate::is_token(&media_type[..slash]) && crate::is_token(&media_type[slash + 1..]);
    is_sound.then_some(media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_types() {
        for (pattern, content_type, expected) in [
            ("text/*", "text/html", true),
            ("text/*", "TEXT/Html; charset=utf-8", true),
            ("text/*", "text/html ;x=/", true),
            ("TEXT/*", "text/plain", true),
            ("text/*", "text/", false),
            ("text/*", "text", false),
            ("text/*", "textual/html", false),
            ("text/*", "application/text", false),
            ("text/*", "", false),
            ("text/*", "text/html, text/plain", false),
            ("application/json", "application/json", true),
            ("application/json", "Application/JSON;charset=utf-8", true),
            ("application/json", "application/json-seq", false),
            ("application/json", "application/problem+json", false),
            ("+json", "application/problem+json", true),
            ("*+json", "application/problem+JSON; a=b", true),
            ("+json", "application/json", false),
            ("+json", "+json", false),
            ("+xml", "image/svg+xml", true),
            ("*/*", "video/mp4", true),
            ("*/*", "nonsense", false),
        ] {
            let types = MediaTypes::parse([pattern]).unwrap();
            let found = types.contain(content_type.as_bytes());
            assert_eq!(found, expected, "{pattern} of {content_type}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "", "text", "text/", "/html", "*/html", "te*/x", "text/h*", "text/a b", "+", "*", "+*",
            "*+", "a/b/c", "a/b;c=d",
        ] {
            assert_eq!(
                MediaTypes::parse(["a/b", text]),
                Err(BadPattern(text.to_owned())),
                "{text}"
            );
        }
    }
}
