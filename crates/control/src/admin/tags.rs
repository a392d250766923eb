//! Entity tags (RFC 9110 section 8.8.3): `If-Match` and `If-None-Match`.

use axum::http::{HeaderMap, HeaderName};

/// A strong entity tag, including its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag(String);

impl Tag {
    /// A tag with this content.
    pub(super) fn new(opaque: &str) -> Self {
        Self(format!("\"{opaque}\""))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The tags in a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tags {
    /// `*`: any existing resource.
    Any,
    /// These tags.
    Some(Vec<String>),
}

impl Tags {
    /// The tags of a field; `None`: the field is absent. Invalid tags match nothing.
    pub(super) fn of(headers: &HeaderMap, field: &HeaderName) -> Option<Self> {
        let mut fields = headers.get_all(field).iter().peekable();
        fields.peek()?;
        let texts: Vec<String> =
            fields.map(|field| String::from_utf8_lossy(field.as_bytes()).into_owned()).collect();
        if texts.iter().any(|text| text.trim() == "*") {
            return Some(Self::Any);
        }
        // weir's own tags contain no comma.
        let tags = texts.iter().flat_map(|text| text.split(','));
        Some(Self::Some(tags.map(|tag| tag.trim().to_owned()).collect()))
    }

    /// Whether a strong tag is listed. Weak tags (`W/"…"`) never match: weir makes none.
    pub(super) fn have(&self, tag: &Tag) -> bool {
        match self {
            Self::Any => true,
            Self::Some(tags) => tags.iter().any(|known| known == tag.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header::IF_MATCH;

    use super::*;

    #[test]
    fn tags_are_compared() {
        let check = |fields: &[&'static str], expected: Option<bool>| {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append(IF_MATCH, field.parse().expect("a value"));
            }
            let found = Tags::of(&headers, &IF_MATCH).map(|tags| tags.have(&Tag::new("ab12")));
            assert_eq!(found, expected, "{fields:?}");
        };
        check(&[], None);
        check(&["*"], Some(true));
        check(&["\"ab12\""], Some(true));
        check(&["\"x\", \"ab12\""], Some(true));
        check(&["\"x\"", "\"ab12\""], Some(true));
        for other in ["\"x\"", "ab12", "W/\"ab12\"", "\"AB12\"", "", "\"ab12"] {
            check(&[other], Some(false));
        }
    }
}
