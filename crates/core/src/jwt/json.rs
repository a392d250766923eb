//! JSON objects without duplicate names, which parsers interpret differently.

use std::fmt;

use serde::Deserializer as _;
use serde::de::{Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::CLAIMS_MAX;

/// The object in a text; `None`: not an object, too many members, or a duplicate name. Values may be nested as deeply
/// as the parser permits: 128 levels.
pub(super) fn object(text: &[u8]) -> Option<Map<String, Value>> {
    let mut parser = serde_json::Deserializer::from_slice(text);
    let found = parser.deserialize_map(Object).ok()?;
    parser.end().ok()?;
    Some(found)
}

struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = Map<String, Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = Map::new();
        while let Some((name, value)) = members.next_entry::<String, Value>()? {
            if found.len() == CLAIMS_MAX {
                return Err(A::Error::custom("too many members"));
            }
            if found.insert(name, value).is_some() {
                return Err(A::Error::custom("a member is there twice"));
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects() {
        for (text, members) in [
            ("{}", Some(0)),
            (r#" {"a":1,"b":[{"a":1}]} "#, Some(2)),
            (r#"{"a":1,"a":1}"#, None),
            (r#"{"a":1,"\u0061":1}"#, None),
            ("[]", None),
            ("1", None),
            ("", None),
            ("{}{}", None),
            ("{} x", None),
            (r#"{"a":}"#, None),
            ("\u{feff}{}", None),
        ] {
            assert_eq!(object(text.as_bytes()).map(|it| it.len()), members, "{text}");
        }
        assert!(object(b"{\"a\":\"\xff\"}").is_none(), "UTF-8 alone");
        let nested =
            |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(object(nested(100).as_bytes()).is_some());
        assert!(object(nested(100_000).as_bytes()).is_none());
        let wide = |members: usize| {
            let members = (0..members).map(|it| format!("\"{it}\":0")).collect::<Vec<_>>();
            format!("{{{}}}", members.join(","))
        };
        assert!(object(wide(CLAIMS_MAX).as_bytes()).is_some());
        assert!(object(wide(CLAIMS_MAX + 1).as_bytes()).is_none());
    }
}
