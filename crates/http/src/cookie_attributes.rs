//! Attributes of cookies that servers set, added on their way to clients (RFC 6265 section 4.1, and SameSite of its
//! successor).

/// Attributes that are added to cookies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CookieAttributes {
    /// Adds `Secure` if it is missing.
    pub secure: bool,
    /// Adds `HttpOnly` if it is missing.
    pub http_only: bool,
    /// Adds `SameSite` with this value if it is missing.
    pub same_site: Option<&'static str>,
    /// Replaces an existing `SameSite`.
    pub replaces_same_site: bool,
}

/// A name, or all names with a common prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern {
    name: Box<[u8]>,
    is_prefix: bool,
}

impl NamePattern {
    /// A pattern as in configurations: `session`, `cart_*`, `*`.
    pub fn new(text: &str) -> Self {
        let prefix = text.strip_suffix('*');
        Self { name: prefix.unwrap_or(text).as_bytes().into(), is_prefix: prefix.is_some() }
    }

    /// Whether a name matches the pattern.
    pub fn has(&self, name: &[u8]) -> bool {
        if self.is_prefix { name.starts_with(&self.name) } else { *name == *self.name }
    }
}

/// The cookie that a Set-Cookie field's value sets: its name, the pair of name and value, and the attributes with the
/// semicolon before them. `None`: the cookie has no name for browsers.
pub fn divided(field: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let end = memchr::memchr(b';', field).unwrap_or(field.len());
    let (pair, attributes) = field.split_at(end);
    let name = pair[..memchr::memchr(b'=', pair)?].trim_ascii();
    (!name.is_empty()).then_some((name, pair, attributes))
}

impl CookieAttributes {
    /// Writes the attributes of a cookie, with the missing ones added.
    pub fn write(&self, attributes: &[u8], to: &mut Vec<u8>) {
        let is_named = |attribute: &[u8], wanted: &[u8]| {
            let name = attribute.split(|byte| *byte == b'=').next().unwrap_or_default();
            name.trim_ascii().eq_ignore_ascii_case(wanted)
        };
        let all = || attributes.split(|byte| *byte == b';');
        let has = |wanted: &[u8]| all().any(|attribute| is_named(attribute, wanted));
        let is_replaced = self.replaces_same_site && self.same_site.is_some();
        if is_replaced && has(b"samesite") {
            let others = all().skip(1).filter(|attribute| !is_named(attribute, b"samesite"));
            for attribute in others {
                to.push(b';');
                to.extend_from_slice(attribute);
            }
        } else {
            to.extend_from_slice(attributes);
        }
        if self.secure && !has(b"secure") {
            to.extend_from_slice(b"; Secure");
        }
        if self.http_only && !has(b"httponly") {
            to.extend_from_slice(b"; HttpOnly");
        }
        if let Some(word) = self.same_site.filter(|_| is_replaced || !has(b"samesite")) {
            to.extend_from_slice(b"; SameSite=");
            to.extend_from_slice(word.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_added_where_they_lack() {
        let all = CookieAttributes {
            secure: true,
            http_only: true,
            same_site: Some("Lax"),
            replaces_same_site: false,
        };
        let lax = CookieAttributes { same_site: Some("Lax"), ..CookieAttributes::default() };
        let replaced = CookieAttributes { replaces_same_site: true, ..lax.clone() };
        for (attributes, given, expected) in [
            (&all, "", "; Secure; HttpOnly; SameSite=Lax"),
            (&all, "; Path=/", "; Path=/; Secure; HttpOnly; SameSite=Lax"),
            (&all, ";secure ; HTTPONLY", ";secure ; HTTPONLY; SameSite=Lax"),
            (&all, "; SameSite=None; Secure=", "; SameSite=None; Secure=; HttpOnly"),
            (&lax, "; samesite", "; samesite"),
            (&replaced, "; Path=/; samesite = strict;Secure", "; Path=/;Secure; SameSite=Lax"),
            (&replaced, "; SameSite=None; SameSite=Strict", "; SameSite=Lax"),
            (&replaced, "", "; SameSite=Lax"),
            (&CookieAttributes::default(), "; a=b", "; a=b"),
        ] {
            let mut out = Vec::new();
            attributes.write(given.as_bytes(), &mut out);
            assert_eq!(out.escape_ascii().to_string(), expected, "{attributes:?} {given}");
        }
    }

    #[test]
    fn cookies_are_divided_and_named() {
        for (field, expected) in [
            ("a=b; Path=/", Some(("a", "a=b", "; Path=/"))),
            (" a = b", Some(("a", " a = b", ""))),
            ("a=", Some(("a", "a=", ""))),
            ("a; b=c", None),
            ("=b", None),
            ("", None),
        ] {
            let expected = expected.map(|(name, pair, rest): (&str, &str, &str)| {
                (name.as_bytes(), pair.as_bytes(), rest.as_bytes())
            });
            assert_eq!(divided(field.as_bytes()), expected, "{field}");
        }
        for (pattern, name, expected) in [
            ("sid", "sid", true),
            ("sid", "SID", false),
            ("sid", "sid2", false),
            ("cart_*", "cart_1", true),
            ("cart_*", "cart", false),
            ("*", "any", true),
        ] {
            assert_eq!(NamePattern::new(pattern).has(name.as_bytes()), expected, "{pattern}");
        }
    }
}
