//! Cookies of a request (RFC 6265 section 4.2): `name=value` pairs between semicolons, in one Cookie
//! field or several.

use crate::chars::is_ows;
use crate::message::{Field, Span};

/// One cookie, in the bytes received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cookie {
    /// What stands before the first `=`, case-sensitive.
    pub name: Span,
    /// What follows it, quotes included.
    pub value: Span,
}

/// The cookies in the order received, without the whitespace around names and values. What has no
/// `=` has no name and is passed over.
pub fn cookies<'a>(fields: &'a [Field], input: &'a [u8]) -> impl Iterator<Item = Cookie> + 'a {
    const NAME: &[u8] = b"cookie";
    fields
        .iter()
        .filter(move |field| {
            field.name.len() == NAME.len() && field.name.of(input).eq_ignore_ascii_case(NAME)
        })
        .flat_map(move |field| crumbs(field.value, input))
}

fn crumbs(value: Span, input: &[u8]) -> impl Iterator<Item = Cookie> {
    let mut next = value.start as usize;
    value.of(input).split(|byte| *byte == b';').filter_map(move |crumb| {
        let start = next;
        let end = start + crumb.len();
        next = end + 1;
        let equals = start + memchr::memchr(b'=', crumb)?;
        Some(Cookie { name: trim(start, equals, input), value: trim(equals + 1, end, input) })
    })
}

fn trim(mut start: usize, mut end: usize, input: &[u8]) -> Span {
    while start < end && is_ows(input[start]) {
        start += 1;
    }
    while start < end && is_ows(input[end - 1]) {
        end -= 1;
    }
    Span::new(start, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h1::{self, HeadLimits};
    use crate::message::RequestHead;

    fn check(fields: &str, expected: &[(&str, &str)]) {
        let input = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let input = input.as_bytes();
        let limits = HeadLimits { head_size_max: 4096, headers_max: 10 };
        let mut head = RequestHead::new();
        h1::parse_request(input, &limits, &mut head).unwrap();
        let found: Vec<_> = cookies(&head.fields, input)
            .map(|cookie| (cookie.name.of(input), cookie.value.of(input)))
            .collect();
        let expected: Vec<_> =
            expected.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        assert_eq!(found, expected, "{fields}");
    }

    #[test]
    fn cookies_of_requests() {
        check("", &[]);
        check("Cookie:\r\n", &[]);
        check("Cookie: a=1\r\n", &[("a", "1")]);
        check("cOOKIE: a=1; b=2\r\n", &[("a", "1"), ("b", "2")]);
        check(
            "Cookie: a=1;b=2;\r\nCookies: d=4\r\nCookie: c=3\r\n",
            &[("a", "1"), ("b", "2"), ("c", "3")],
        );
        check(
            "Cookie: a = \"1 2\" ;; lonely; =x; b==\r\n",
            &[("a", "\"1 2\""), ("", "x"), ("b", "=")],
        );
    }
}
