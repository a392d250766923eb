//! Cookies in requests (RFC 6265 section 4.2), parsed as in ModSecurity 3.

/// The cookies in the value of a Cookie field: names and values, not decoded, with their quotes.
///
/// The value is split at `;`, and each cookie at its first `=`. Blanks before a name and at the end of the field are
/// dropped. A cookie without `=` has an empty value. A cookie without a name has an empty name: browsers send such cookies,
/// and some servers accept them. Blanks between a name and `=` belong to the name, and blanks after `=` to the value.
pub fn cookies(header: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    trim_end(header).split(|byte| *byte == b';').filter_map(|cookie| {
        let equals = memchr::memchr(b'=', cookie).unwrap_or(cookie.len());
        let (name, rest) = cookie.split_at(equals);
        let name = trim_start(name);
        let value = rest.get(1..).unwrap_or_default();
        (!name.is_empty() || !value.is_empty()).then_some((name, value))
    })
}

/// Whether the byte is a blank by C's `isspace`, as in ModSecurity. Unlike `u8::is_ascii_whitespace`, it includes the
/// vertical tab.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn trim_start(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| !is_blank(*byte)).unwrap_or(bytes.len());
    bytes.get(start..).unwrap_or_default()
}

fn trim_end(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| !is_blank(*byte)).map_or(0, |last| last + 1);
    bytes.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_divided() {
        for (header, expected) in [
            ("", &[][..]),
            (" \t", &[]),
            ("a=b", &[("a", "b")]),
            ("a=b; c=d", &[("a", "b"), ("c", "d")]),
            ("a=b;c=d;", &[("a", "b"), ("c", "d")]),
            ("a=b=c", &[("a", "b=c")]),
            ("a", &[("a", "")]),
            ("a=", &[("a", "")]),
            ("; ;;a=1", &[("a", "1")]),
            ("=b; a=1", &[("", "b"), ("a", "1")]),
            ("  =b", &[("", "b")]),
            ("a =  b ; c=d  \r\n", &[("a ", "  b "), ("c", "d")]),
            (" \x0b\x0c a=1", &[("a", "1")]),
            ("a=\"b\"; c=%41+", &[("a", "\"b\""), ("c", "%41+")]),
            ("a=1; a=2", &[("a", "1"), ("a", "2")]),
            ("a=1,b=2", &[("a", "1,b=2")]),
        ] {
            let expected: Vec<_> =
                expected.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
            assert_eq!(cookies(header.as_bytes()).collect::<Vec<_>>(), expected, "{header:?}");
        }
        assert_eq!(cookies(b"\xff=\x00").collect::<Vec<_>>(), [(&b"\xff"[..], &b"\0"[..])]);
    }
}
