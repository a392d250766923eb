//! Checks of cookies in requests: their syntax, and whether sealed cookies are unchanged.

use super::{Check, Findings};
use crate::body;

/// Maximum number of cookie names that are stored to detect repeated cookies.
const COOKIES_SEEN_MAX: usize = 256;

/// Checks the cookies of a request's Cookie fields, after sealed ones were [opened](super::CookieTerms). `changed`:
/// names of cookies with an invalid tag.
pub fn cookies(headers: &[&[u8]], changed: &[Vec<u8>], findings: &mut Findings<'_>) {
    let mut seen: Vec<&[u8]> = Vec::new();
    for (name, value) in headers.iter().flat_map(|header| body::cookies(header)) {
        if !is_well_formed(name, value) {
            findings.add(Check::CookieMalformed, &place(name), value);
        }
        if seen.contains(&name) {
            findings.add(Check::CookieRepeated, &place(name), value);
        } else if seen.len() < COOKIES_SEEN_MAX {
            seen.push(name);
        }
    }
    for name in changed {
        findings.add(Check::CookieChanged, &place(name), b"");
    }
}

fn place(name: &[u8]) -> String {
    format!("cookie {}", name.escape_ascii())
}

/// Whether a cookie conforms to RFC 6265 section 4.1.1. Blanks and commas in values are also allowed, because browsers send
/// them.
fn is_well_formed(name: &[u8], value: &[u8]) -> bool {
    let is_token = |byte: &u8| byte.is_ascii_graphic() && !br#"()<>@,;:\"/[]?={}"#.contains(byte);
    let is_value = |byte: &u8| byte.is_ascii_graphic() && !br#";\"#.contains(byte) || *byte == b' ';
    let inner = value.strip_prefix(b"\"").and_then(|it| it.strip_suffix(b"\"")).unwrap_or(value);
    name.iter().all(is_token) && inner.iter().all(|byte| is_value(byte) && *byte != b'"')
}
