//! Cookies: reading the Cookie field, taking cookies out of it, writing Set-Cookie (RFC 6265).
//!
//! By section 4.2.1, user agents send `name=value` pairs joined by `; `; real requests are less strict, and servers accept
//! them. Here, as in nginx and HAProxy:
//! - a semicolon always ends a pair, even within quotes, and white space around names and values is
//!   dropped;
//! - the first equals sign separates name and value; later ones belong to the value;
//! - a piece without an equals sign, or with nothing before it, is not a cookie and is ignored;
//! - names are compared byte by byte: their case counts;
//! - **quotes are part of the value.** User agents store and return them as any other byte (section
//!   5.2), so `"a"` and `a` are two values; a member sees the same bytes that a condition saw.
//!
//! The same name may occur in the field several times (different paths or domains); the user agent
//! puts the most specific path first (section 5.4), so the first one counts.

use std::fmt;

use crate::chars::{is_ows, is_token_byte, trim_ows};
use crate::message::{Field, Span};

/// One cookie, in the bytes received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cookie {
    /// The text before the first `=`; never empty.
    pub name: Span,
    /// The text after it.
    pub value: Span,
}

/// The cookies of a request, from one or several Cookie fields, in the order received.
pub fn request_cookies<'a>(
    fields: &'a [Field],
    input: &'a [u8],
) -> impl Iterator<Item = Cookie> + 'a {
    const NAME: &[u8] = b"cookie";
    fields
        .iter()
        .filter(move |field| {
            field.name.len() == NAME.len() && field.name.of(input).eq_ignore_ascii_case(NAME)
        })
        .flat_map(move |field| crumbs(field.value, input))
}

/// The cookies that a response sets, in order: the text before the first semicolon of each Set-Cookie field.
pub fn set_cookies<'a>(fields: &'a [Field], input: &'a [u8]) -> impl Iterator<Item = Cookie> + 'a {
    const NAME: &[u8] = b"set-cookie";
    fields
        .iter()
        .filter(move |field| {
            field.name.len() == NAME.len() && field.name.of(input).eq_ignore_ascii_case(NAME)
        })
        .filter_map(move |field| {
            let Span { start, end } = field.value;
            let pair = pieces(field.value.of(input)).next()?;
            let end = (start as usize + pair.len()).min(end as usize);
            crumbs(Span::new(start as usize, end), input).next()
        })
}

/// The cookies of a Cookie field's value, in order.
pub fn cookies(field_value: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    crumbs(Span::new(0, field_value.len()), field_value)
        .map(|cookie| (cookie.name.of(field_value), cookie.value.of(field_value)))
}

/// The value of the first cookie called `name`.
pub fn cookie<'a>(field_value: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    cookies(field_value).find(|(found, _)| *found == name).map(|(_, value)| value)
}

/// The cookies of a piece of `input`.
fn crumbs(value: Span, input: &[u8]) -> impl Iterator<Item = Cookie> {
    let mut next = value.start as usize;
    pieces(value.of(input)).filter_map(move |crumb| {
        let start = next;
        let end = start + crumb.len();
        next = end + 1;
        let equals = start + memchr::memchr(b'=', crumb)?;
        let cookie =
            Cookie { name: trim(start, equals, input), value: trim(equals + 1, end, input) };
        (!cookie.name.is_empty()).then_some(cookie)
    })
}

/// The pieces between semicolons.
fn pieces(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let value = rest?;
        let Some(end) = memchr::memchr(b';', value) else {
            return rest.take();
        };
        rest = Some(&value[end + 1..]);
        Some(&value[..end])
    })
}

/// The part without white space around it.
fn trim(mut start: usize, mut end: usize, input: &[u8]) -> Span {
    while start < end && is_ows(input[start]) {
        start += 1;
    }
    while start < end && is_ows(input[end - 1]) {
        end -= 1;
    }
    Span::new(start, end)
}

/// Encodes the bytes of `out` from `start` on for a cookie's value (RFC 6265 section 4.1.1): other bytes are
/// percent-encoded, and `%` itself, so that decoding restores them.
pub fn encode_value(out: &mut Vec<u8>, start: usize) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let is_fit = |byte: u8| is_value_byte(byte) && byte != b'%';
    let Some(first) = out[start..].iter().position(|byte| !is_fit(*byte)) else {
        return;
    };
    let unfit = out.split_off(start + first);
    for byte in unfit {
        if is_fit(byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(&[
                b'%',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]);
        }
    }
}

/// The rest of a Cookie field after a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemainingCookies {
    /// No cookie was to be removed: the field is forwarded unchanged, nothing was written.
    Unchanged,
    /// The rest was written.
    Rewritten,
    /// Nothing remains: the field is omitted, nothing was written.
    Nothing,
}

/// Appends to `out` the value of a Cookie field without the cookies that `is_removed` selects by name and value.
///
/// All other bytes stay as they are: white space, quotes, empty pieces and pieces that are not cookies. With a cookie goes
/// the semicolon before it, and at the start of the field the semicolon and the white space after it.
pub fn write_without(
    field_value: &[u8],
    mut is_removed: impl FnMut(&[u8], &[u8]) -> bool,
    out: &mut Vec<u8>,
) -> RemainingCookies {
    let start = out.len();
    let (mut is_unchanged, mut is_first) = (true, true);
    for piece in pieces(field_value) {
        let text = trim_ows(piece);
        if let Some(equals) = memchr::memchr(b'=', text)
            && let name = trim_ows(&text[..equals])
            && !name.is_empty()
            && is_removed(name, trim_ows(&text[equals + 1..]))
        {
            is_unchanged = false;
            continue;
        }
        if !is_first {
            out.push(b';');
            out.extend_from_slice(piece);
        } else if is_unchanged {
            out.extend_from_slice(piece);
        } else {
            // It has lost what it was separated from.
            let blanks = piece.iter().take_while(|byte| is_ows(**byte)).count();
            out.extend_from_slice(&piece[blanks..]);
        }
        is_first = false;
    }
    if is_unchanged {
        out.truncate(start);
        return RemainingCookies::Unchanged;
    }
    let is_blank = |byte: &u8| is_ows(*byte) || *byte == b';';
    if out[start..].iter().all(is_blank) {
        out.truncate(start);
        return RemainingCookies::Nothing;
    }
    RemainingCookies::Rewritten
}

/// The requests from other sites that carry a cookie (RFC 6265bis section 5.6.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameSite {
    /// Only requests of the same site.
    Strict,
    /// Also navigation by a link from another site.
    Lax,
    /// All requests; user agents require `Secure` for this value.
    None,
}

impl SameSite {
    /// The word in the attribute.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "Strict",
            Self::Lax => "Lax",
            Self::None => "None",
        }
    }
}

/// A cookie to be set, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetCookie {
    /// The name, which must be a token.
    pub name: String,
    /// `Path`; without it, the user agent uses the directory of the request's path.
    pub path: Option<String>,
    /// `Domain`; without it, the cookie is only for the host that set it.
    pub domain: Option<String>,
    /// `Max-Age`; without it, the cookie ends with the user agent's session. 0 removes the cookie.
    pub max_age_s: Option<u64>,
    /// `Secure`: sent over TLS only.
    pub secure: bool,
    /// `HttpOnly`: not accessible to scripts.
    pub http_only: bool,
    /// `SameSite`; without it, user agents decide, mostly as for `Lax`.
    pub same_site: Option<SameSite>,
}

/// The reason why a user agent would misread or refuse a cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetCookieError {
    /// The name is not a token.
    Name,
    /// A byte that is not allowed in a value, or that ends it.
    Value,
    /// The path does not start with a slash, or has a control character or a semicolon.
    Path,
    /// The domain is empty or contains a byte that is not allowed in a host name.
    Domain,
    /// `SameSite=None` without `Secure`.
    SameSiteNeedsSecure,
    /// A name with the prefix `__Secure-` or `__Host-` without `Secure`.
    PrefixNeedsSecure,
    /// A name with the prefix `__Host-` with a domain, or with another path than `/`.
    PrefixNeedsHost,
}

impl fmt::Display for SetCookieError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Name => "a cookie's name is made of letters, digits and !#$%&'*+-.^_`|~",
            Self::Value => "a cookie's value has no control character, space, quote, comma, semicolon or backslash",
            Self::Path => "a cookie's path starts with a slash and has no control character and no semicolon",
            Self::Domain => "a cookie's domain is a host name",
            Self::SameSiteNeedsSecure => "user agents refuse SameSite=None without Secure",
            Self::PrefixNeedsSecure => "user agents refuse a name in __Secure- or __Host- without Secure",
            Self::PrefixNeedsHost => "user agents refuse a name in __Host- with a domain, or with another path than /",
        })
    }
}

impl std::error::Error for SetCookieError {}

impl SetCookie {
    /// Checks whether user agents will interpret the cookie as intended.
    pub fn check(&self) -> Result<(), SetCookieError> {
        if self.name.is_empty() || !self.name.bytes().all(is_token_byte) {
            return Err(SetCookieError::Name);
        }
        if let Some(path) = &self.path
            && !(path.starts_with('/') && path.bytes().all(is_attribute_byte))
        {
            return Err(SetCookieError::Path);
        }
        if let Some(domain) = &self.domain
            && (domain.is_empty() || !domain.bytes().all(is_domain_byte))
        {
            return Err(SetCookieError::Domain);
        }
        if self.same_site == Some(SameSite::None) && !self.secure {
            return Err(SetCookieError::SameSiteNeedsSecure);
        }
        self.check_prefix()
    }

    /// RFC 6265bis section 4.1.3: requirements of a name's prefix. User agents compare it without regard to case.
    fn check_prefix(&self) -> Result<(), SetCookieError> {
        let starts_with = |prefix: &[u8]| {
            let start = self.name.as_bytes().get(..prefix.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        let for_host = starts_with(b"__Host-");
        if (for_host || starts_with(b"__Secure-")) && !self.secure {
            return Err(SetCookieError::PrefixNeedsSecure);
        }
        if for_host && (self.domain.is_some() || self.path.as_deref() != Some("/")) {
            return Err(SetCookieError::PrefixNeedsHost);
        }
        Ok(())
    }

    /// The whole value of a Set-Cookie field that gives the cookie this value. It is made once per value
    /// when a configuration is loaded; a response then needs only one copy.
    pub fn field_value(&self, value: &[u8]) -> Result<Vec<u8>, SetCookieError> {
        self.check()?;
        if !value.iter().copied().all(is_value_byte) {
            return Err(SetCookieError::Value);
        }
        let mut out = Vec::with_capacity(self.name.len() + value.len() + 64);
        out.extend_from_slice(self.name.as_bytes());
        out.push(b'=');
        out.extend_from_slice(value);
        self.write_attributes(&mut out);
        Ok(out)
    }

    /// The text after the value, such as `; Path=/; HttpOnly`.
    pub fn attributes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_attributes(&mut out);
        out
    }

    fn write_attributes(&self, out: &mut Vec<u8>) {
        let mut attribute = |name: &str, value: &str| {
            out.extend_from_slice(b"; ");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(value.as_bytes());
        };
        if let Some(path) = &self.path {
            attribute("Path=", path);
        }
        if let Some(domain) = &self.domain {
            attribute("Domain=", domain);
        }
        if let Some(max_age_s) = self.max_age_s {
            attribute("Max-Age=", &max_age_s.to_string());
        }
        if self.secure {
            attribute("Secure", "");
        }
        if self.http_only {
            attribute("HttpOnly", "");
        }
        if let Some(word) = self.same_site {
            attribute("SameSite=", word.as_str());
        }
    }
}

/// `av-octet` (RFC 6265 section 4.1.1): a visible character or space, no semicolon.
fn is_attribute_byte(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b';'
}

/// Bytes of a host name, or of an IPv4 address.
fn is_domain_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')
}

/// `cookie-octet` (RFC 6265 section 4.1.1).
fn is_value_byte(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b',' | b';' | b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_read_as_servers_read_them() {
        let check = |field: &str, expected: &[(&str, &str)]| {
            let found: Vec<_> = cookies(field.as_bytes())
                .map(|(name, value)| {
                    (name.escape_ascii().to_string(), value.escape_ascii().to_string())
                })
                .collect();
            let found: Vec<_> =
                found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(found, expected, "{field}");
        };
        check("", &[]);
        check("a=b", &[("a", "b")]);
        check("a=b; c=d", &[("a", "b"), ("c", "d")]);
        check("a=b;c=d", &[("a", "b"), ("c", "d")]);
        check(" a = b ;\tc\t=\td\t", &[("a", "b"), ("c", "d")]);
        check("a=b=c==", &[("a", "b=c==")]);
        check("a=", &[("a", "")]);
        check("a", &[]);
        check("=a", &[]);
        check(" =a; b=c", &[("b", "c")]);
        check(";;; a=b;; ;", &[("a", "b")]);
        check("a=\"b\"", &[("a", "\\\"b\\\"")]);
        check("a=\"b;c=d\"", &[("a", "\\\"b"), ("c", "d\\\"")]);
        check("a=b, c=d", &[("a", "b, c=d")]);
        check("a=1; a=2", &[("a", "1"), ("a", "2")]);
        check("$Version=1; a=b; $Path=/", &[("$Version", "1"), ("a", "b"), ("$Path", "/")]);
        check("a=\u{e9}", &[("a", "\\xc3\\xa9")]);
    }

    #[test]
    fn the_first_of_a_name_counts() {
        assert_eq!(cookie(b"a=1; b=2; a=3", b"a"), Some(&b"1"[..]));
        assert_eq!(cookie(b"A=1; b=2", b"a"), None);
        assert_eq!(cookie(b"aa=1; a=", b"a"), Some(&b""[..]));
        assert_eq!(cookie(b"", b"a"), None);
    }

    #[test]
    fn removal() {
        let check = |field: &str, remaining: RemainingCookies, expected: &str| {
            let mut out = b"before:".to_vec();
            let found = write_without(
                field.as_bytes(),
                |name, value| name == b"W" || value == b"w",
                &mut out,
            );
            assert_eq!(found, remaining, "{field}");
            assert_eq!(String::from_utf8(out).unwrap(), format!("before:{expected}"), "{field}");
        };
        check("", RemainingCookies::Unchanged, "");
        check("a=b;c=d", RemainingCookies::Unchanged, "");
        check("w=1; WW=2; W", RemainingCookies::Unchanged, "");
        check("W=1", RemainingCookies::Nothing, "");
        check(" W = 1 ;; W=2;", RemainingCookies::Nothing, "");
        check("W=1; a=b", RemainingCookies::Rewritten, "a=b");
        check("a=b; W=1", RemainingCookies::Rewritten, "a=b");
        check("a=b; W=1; c=d", RemainingCookies::Rewritten, "a=b; c=d");
        check("a = b;W=1;c=d;W=2;e", RemainingCookies::Rewritten, "a = b;c=d;e");
        check("q=\"a;b\"; W=1; n=1;m=2;", RemainingCookies::Rewritten, "q=\"a;b\"; n=1;m=2;");
        check("W=1;  \ta=b ;; c", RemainingCookies::Rewritten, "a=b ;; c");
        check(" a=b; W=1", RemainingCookies::Rewritten, " a=b");
        check("W=1;;", RemainingCookies::Nothing, "");
        check("=W; W=1", RemainingCookies::Rewritten, "=W");
        check("a = w ;b=ww; w; =w", RemainingCookies::Rewritten, "b=ww; w; =w");
    }

    fn plain(name: &str) -> SetCookie {
        SetCookie {
            name: name.into(),
            path: None,
            domain: None,
            max_age_s: None,
            secure: false,
            http_only: false,
            same_site: None,
        }
    }

    #[test]
    fn set_cookie_fields() {
        let check = |cookie: SetCookie, expected: &str| {
            assert_eq!(String::from_utf8(cookie.field_value(b"v-_").unwrap()).unwrap(), expected);
        };
        check(plain("W"), "W=v-_");
        check(SetCookie { max_age_s: Some(0), ..plain("W") }, "W=v-_; Max-Age=0");
        let full = SetCookie {
            path: Some("/".into()),
            secure: true,
            http_only: true,
            same_site: Some(SameSite::Lax),
            ..plain("__Host-W")
        };
        check(full.clone(), "__Host-W=v-_; Path=/; Secure; HttpOnly; SameSite=Lax");
        check(
            SetCookie {
                domain: Some("example.com".into()),
                max_age_s: Some(60),
                same_site: Some(SameSite::None),
                name: "__Secure-W".into(),
                ..full
            },
            "__Secure-W=v-_; Path=/; Domain=example.com; Max-Age=60; Secure; HttpOnly; SameSite=None",
        );
    }

    #[test]
    fn set_cookies_that_user_agents_refuse() {
        use SetCookieError::*;
        let with_path = |path: &str| SetCookie { path: Some(path.into()), ..plain("W") };
        let with_domain = |domain: &str| SetCookie { domain: Some(domain.into()), ..plain("W") };
        for (cookie, error) in [
            (plain(""), Name),
            (plain("a b"), Name),
            (plain("a=b"), Name),
            (plain("a;"), Name),
            (plain("\u{e9}"), Name),
            (with_path(""), Path),
            (with_path("a"), Path),
            (with_path("/a;Secure"), Path),
            (with_path("/a\r\nX: y"), Path),
            (with_domain(""), Domain),
            (with_domain("a;b"), Domain),
            (with_domain("a b"), Domain),
            (SetCookie { same_site: Some(SameSite::None), ..plain("W") }, SameSiteNeedsSecure),
            (plain("__secure-W"), PrefixNeedsSecure),
            (plain("__Host-W"), PrefixNeedsSecure),
            (SetCookie { secure: true, ..plain("__HOST-W") }, PrefixNeedsHost),
            (
                SetCookie { secure: true, name: "__Host-W".into(), ..with_path("/a") },
                PrefixNeedsHost,
            ),
            (
                SetCookie {
                    secure: true,
                    name: "__Host-W".into(),
                    domain: Some("a".into()),
                    ..with_path("/")
                },
                PrefixNeedsHost,
            ),
        ] {
            assert_eq!(cookie.field_value(b""), Err(error), "{cookie:?}");
        }
        for value in ["a b", "a;b", "a,b", "\"a\"", "a\\b", "a\r\n", "\u{e9}"] {
            assert_eq!(plain("W").field_value(value.as_bytes()), Err(Value), "{value}");
        }
    }
}
