//! Charsets of bodies. Rules inspect bytes, so in a readable charset each ASCII byte encodes its ASCII character.

/// Charsets that include ASCII and use ASCII bytes for nothing else. `*` stands for the members of a family.
const READABLE: [&str; 11] = [
    "utf-8",
    "utf8",
    "us-ascii",
    "ascii",
    "latin1",
    "iso-8859-*",
    "iso8859-*",
    "windows-125*",
    "cp125*",
    "koi8-*",
    "unicode-1-1-utf-8",
];

/// Whether rules can read a body with this Content-Type. Every charset that a server could find in the value must be
/// readable.
pub(crate) fn has_readable_charset(content_type: &[u8]) -> bool {
    const NAME: &[u8] = b"charset";
    let text = content_type.to_ascii_lowercase();
    memchr::memmem::find_iter(&text, NAME).all(|at| {
        let behind = text[at + NAME.len()..].trim_ascii_start();
        match behind.split_first() {
            Some((b'=', value)) => is_readable(value),
            // RFC 2231: the value is encoded, or split into several parameters.
            Some((b'*', _)) => false,
            // Another word that contains `charset`.
            _ => true,
        }
    })
}

/// Whether rules can read text in the charset with this name.
pub(super) fn is_readable_name(name: &[u8]) -> bool {
    is_readable(&name.to_ascii_lowercase())
}

fn is_readable(value: &[u8]) -> bool {
    let value = value.trim_ascii_start();
    // An empty name is not a charset.
    if matches!(value, [] | [b';', ..]) {
        return true;
    }
    let value = value.strip_prefix(b"\"").unwrap_or(value).trim_ascii_start();
    let is_end = |byte: &u8| matches!(byte, b';' | b',' | b'"') || byte.is_ascii_whitespace();
    let name = value.split(is_end).next().unwrap_or_default();
    READABLE.iter().any(|known| match known.strip_suffix('*') {
        Some(family) => name.strip_prefix(family.as_bytes()).is_some_and(is_member),
        None => name == known.as_bytes(),
    })
}

fn is_member(number: &[u8]) -> bool {
    (1..=2).contains(&number.len()) && number.iter().all(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charsets_that_rules_can_read() {
        for (content_type, expected) in [
            ("", true),
            ("text/plain", true),
            ("text/plain; charset=utf-8", true),
            ("text/plain; charset=\"UTF-8\"", true),
            ("text/plain;Charset = us-ascii;x=y", true),
            ("text/plain; charset=ISO-8859-15", true),
            ("text/plain; charset=windows-1252", true),
            ("text/plain; charset=KOI8-R", true),
            ("text/plain; charset=", true),
            ("text/plain; charset=;x=y", true),
            ("text/plain; charset", true),
            ("multipart/form-data; boundary=charset", true),
            ("text/plain; charset=utf-16", false),
            ("text/plain; charset=utf-7", false),
            ("text/plain; charset=ibm037", false),
            ("text/plain; charset=shift_jis", false),
            ("text/plain; charset=iso-2022-kr", false),
            ("text/plain; charset=iso-8859-", false),
            ("text/plain; charset=utf-8; charset=utf-16", false),
            ("text/plain; charset=utf-16; charset=utf-8", false),
            ("text/plain; charset*=us-ascii''utf-16", false),
            ("text/plain charset= \"utf-16", false),
            ("text/plain;x=\"charset=utf-7\"", false),
            ("text/plain; charset='utf-16'", false),
            ("text/plain; charset=\"\"utf-16", false),
            ("text/plain; charset=x", false),
        ] {
            assert_eq!(has_readable_charset(content_type.as_bytes()), expected, "{content_type}");
        }
    }
}
