//! The claims of a token, for conditions and templates.

use serde_json::{Map, Value};

/// Claims that are lists of words in one text (RFC 8693 section 4.2, and a common other name).
const LISTS_OF_WORDS: [&str; 2] = ["scope", "scp"];

/// The claims of a token.
#[derive(Debug)]
pub struct Claims {
    members: Map<String, Value>,
    /// The expiry of the token, in seconds since 1970.
    pub(super) expires_s: Option<u64>,
    /// The beginning of the token's validity, in seconds since 1970.
    pub(super) not_before_s: Option<u64>,
}

impl Claims {
    /// Creates the claims; `None`: a time is invalid.
    pub(super) fn new(members: Map<String, Value>) -> Option<Self> {
        let expires_s = time(members.get("exp"))?;
        let not_before_s = time(members.get("nbf"))?;
        Some(Self { members, expires_s, not_before_s })
    }

    /// The claim with exactly this name.
    pub(super) fn whole(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    /// Appends the text of a claim; for a list, its items joined by `, `. Returns false if it has no text: an object,
    /// or null.
    pub fn write(&self, name: &str, out: &mut Vec<u8>) -> bool {
        find(&self.members, name).is_some_and(|value| write(value, out))
    }

    /// Whether a claim equals this text, or is a list that contains it. A `scope` is a list of words.
    pub fn has(&self, name: &str, text: &[u8]) -> bool {
        let is_it = |value: &Value| value.as_str().is_some_and(|it| it.as_bytes() == text);
        match find(&self.members, name) {
            Some(Value::Array(items)) => items.iter().any(is_it),
            Some(Value::String(words)) if LISTS_OF_WORDS.contains(&name) => {
                words.split(' ').any(|word| !word.is_empty() && word.as_bytes() == text)
            }
            Some(value) => is_it(value),
            None => false,
        }
    }
}

/// The member with this name; otherwise, for `a.b`, the member `b` of the object `a`.
fn find<'m>(members: &'m Map<String, Value>, name: &str) -> Option<&'m Value> {
    if let Some(value) = members.get(name) {
        return Some(value);
    }
    let mut dots = name.match_indices('.');
    dots.find_map(|(at, _)| match members.get(&name[..at]) {
        Some(Value::Object(inner)) => find(inner, &name[at + 1..]),
        _ => None,
    })
}

fn write(value: &Value, out: &mut Vec<u8>) -> bool {
    match value {
        Value::String(text) => out.extend_from_slice(text.as_bytes()),
        Value::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Array(items) => {
            let mut is_first = true;
            for item in items.iter().filter(|item| !item.is_array()) {
                let start = out.len();
                if !is_first {
                    out.extend_from_slice(b", ");
                }
                match write(item, out) {
                    true => is_first = false,
                    false => out.truncate(start),
                }
            }
        }
        Value::Object(_) | Value::Null => return false,
    }
    true
}

/// A NumericDate (RFC 7519 section 2), in whole seconds. The outer `None`: it is invalid.
fn time(value: Option<&Value>) -> Option<Option<u64>> {
    let Some(value) = value else { return Some(None) };
    if let Some(whole) = value.as_u64() {
        return Some(Some(whole));
    }
    let seconds = value.as_f64().filter(|it| it.is_finite())?;
    // A time before 1970 is long past; the cast saturates at the type's maximum.
    Some(Some(seconds.max(0.0) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(text: &str) -> Option<Claims> {
        Claims::new(super::super::json::object(text.as_bytes()).expect("an object"))
    }

    #[test]
    fn texts() {
        let claims = claims(
            r#"{"sub":"a b","n":12,"f":1.5,"t":true,"list":["a",1,{"x":1},null,["z"],"b"],"o":{"roles":["r"],"p.q":"7"},
               "null":null,"https://x.example/roles":"y","":"empty","scope":"read  write","a.b":"dotted"}"#,
        )
        .unwrap();
        for (name, expected) in [
            ("sub", Some("a b")),
            ("n", Some("12")),
            ("f", Some("1.5")),
            ("t", Some("true")),
            ("list", Some("a, 1, b")),
            ("o", None),
            ("o.roles", Some("r")),
            ("o.p.q", Some("7")),
            ("o.x", None),
            ("null", None),
            ("https://x.example/roles", Some("y")),
            ("", Some("empty")),
            ("a.b", Some("dotted")),
            ("Sub", None),
            (".", None),
        ] {
            let mut out = Vec::new();
            let found = claims.write(name, &mut out).then(|| String::from_utf8(out).unwrap());
            assert_eq!(found.as_deref(), expected, "{name}");
        }
        for (name, text, expected) in [
            ("sub", "a b", true),
            ("sub", "a", false),
            ("list", "b", true),
            ("list", "z", false),
            ("list", "a, 1", false),
            ("scope", "read", true),
            ("scope", "", false),
            ("scope", "rea", false),
            ("o.roles", "r", true),
            ("none", "", false),
            ("n", "12", false),
        ] {
            assert_eq!(claims.has(name, text.as_bytes()), expected, "{text} in {name}");
        }
    }

    #[test]
    fn times() {
        for (text, expected) in [
            ("{}", Some(None)),
            (r#"{"exp":17}"#, Some(Some(17))),
            (r#"{"exp":17.9}"#, Some(Some(17))),
            (r#"{"exp":1e99}"#, Some(Some(u64::MAX))),
            (r#"{"exp":-1}"#, Some(Some(0))),
            (r#"{"exp":"17"}"#, None),
            (r#"{"exp":null}"#, None),
            (r#"{"exp":[17]}"#, None),
            (r#"{"nbf":"x"}"#, None),
        ] {
            assert_eq!(claims(text).map(|it| it.expires_s), expected, "{text}");
        }
    }
}
