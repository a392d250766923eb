//! Query parameters in the format of HTML forms: `name=value` pairs separated by `&`, with `+` for a space and
//! percent-encoding (WHATWG URL Standard, "application/x-www-form-urlencoded parsing"). An invalid escape stays unchanged.

use crate::chars::hex_value;
use crate::message::Span;

/// One parameter, as received; see [`decode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// The text before the first `=`.
    pub name: Span,
    /// The text after the first `=`; empty, at the end of the name, if there is no value.
    pub value: Span,
}

/// The parameters of a query, in order; empty parameters are skipped.
pub fn parameters(query: Span, input: &[u8]) -> impl Iterator<Item = Parameter> {
    let mut next = query.start as usize;
    query.of(input).split(|byte| *byte == b'&').filter_map(move |pair| {
        let start = next;
        let end = start + pair.len();
        next = end + 1;
        let parameter = match memchr::memchr(b'=', pair) {
            Some(length) => Parameter {
                name: Span::new(start, start + length),
                value: Span::new(start + length + 1, end),
            },
            None => Parameter { name: Span::new(start, end), value: Span::new(end, end) },
        };
        (!pair.is_empty()).then_some(parameter)
    })
}

/// Whether [`decode`] changes `text`.
pub fn is_encoded(text: &[u8]) -> bool {
    memchr::memchr2(b'%', b'+', text).is_some()
}

/// Appends a decoded name or value.
pub fn decode(text: &[u8], out: &mut Vec<u8>) {
    out.extend(decoded(text));
}

/// Whether a decoded name or value equals `expected`.
pub fn decodes_to(text: &[u8], expected: &[u8]) -> bool {
    if is_encoded(text) { decoded(text).eq(expected.iter().copied()) } else { text == expected }
}

fn decoded(mut rest: &[u8]) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let (&byte, tail) = rest.split_first()?;
        rest = tail;
        match (byte, tail) {
            (b'+', _) => Some(b' '),
            (b'%', [high, low, after @ ..]) => match (hex_value(*high), hex_value(*low)) {
                (Some(high), Some(low)) => {
                    rest = after;
                    Some(high << 4 | low)
                }
                _ => Some(b'%'),
            },
            _ => Some(byte),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_queries() {
        for (query, expected) in [
            ("", &[][..]),
            ("a", &[("a", "")]),
            ("a=", &[("a", "")]),
            ("a=1", &[("a", "1")]),
            ("a=1&b=2", &[("a", "1"), ("b", "2")]),
            ("&&a=1&", &[("a", "1")]),
            ("a==b=c", &[("a", "=b=c")]),
            ("=1&=", &[("", "1"), ("", "")]),
            ("a;b=1", &[("a;b", "1")]),
        ] {
            let input = format!("/?{query} ");
            let span = Span::new(2, 2 + query.len());
            let found: Vec<(&[u8], &[u8])> = parameters(span, input.as_bytes())
                .map(|found| (found.name.of(input.as_bytes()), found.value.of(input.as_bytes())))
                .collect();
            let expected: Vec<_> =
                expected.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
            assert_eq!(found, expected, "{query}");
        }
    }

    #[test]
    fn decoding() {
        for (text, expected) in [
            ("", &b""[..]),
            ("plain", b"plain"),
            ("a+b", b"a b"),
            ("a%20b%2B", b"a b+"),
            ("%c3%A9", b"\xc3\xa9"),
            ("%ff%00", b"\xff\0"),
            ("%", b"%"),
            ("%4", b"%4"),
            ("%zz%41", b"%zzA"),
            ("%%41", b"%A"),
            ("100%", b"100%"),
        ] {
            let mut out = Vec::new();
            decode(text.as_bytes(), &mut out);
            assert_eq!(out, expected, "{text}");
            assert_eq!(is_encoded(text.as_bytes()), text.contains(['%', '+']), "{text}");
            assert!(decodes_to(text.as_bytes(), expected), "{text}");
            assert!(!decodes_to(text.as_bytes(), b"other"), "{text}");
        }
    }
}
