//! The canonical path: one spelling that policies, the cache, the firewall and the member all see.
//!
//! RFC 3986 section 6.2.2, as a policy without choices:
//! - an escape of an unreserved character is decoded, every other one gets upper-case hex digits,
//!   so `%2F` and `%5C` never become separators;
//! - `|`, `^`, `{`, `}`, `[`, `]` and the backtick, which browsers send raw, are encoded;
//! - dot segments (spelled with `.` or `%2e`) are removed as section 5.2.4 says;
//! - empty segments (`//`) stay;
//! - an escape that is not one, `%00`, and `\` are refused.
//!
//! Canonicalising what is canonical changes nothing.

use std::fmt;

use crate::chars::{PATH, PathByte, hex_value, is_unreserved};

/// Why a path has no canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathError {
    /// `%` without two hexadecimal digits.
    Escape,
    /// `%00`.
    Nul,
    /// A byte that may not stand in a path, or no leading slash.
    Character,
}

impl fmt::Display for PathError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Escape => "invalid percent-encoding in the path",
            Self::Nul => "%00 in the path",
            Self::Character => "character not allowed in the path",
        })
    }
}

impl std::error::Error for PathError {}

/// Writes the canonical form of `path`, which starts with a slash and has no query, over `out`.
pub fn canonicalise(path: &[u8], out: &mut Vec<u8>) -> Result<(), PathError> {
    out.clear();
    if path.first() != Some(&b'/') {
        return Err(PathError::Character);
    }
    // Where in `out` the slash of the segment under way is.
    let mut segment_start = 0;
    let mut rest = path;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match PATH[usize::from(*byte)] {
            _ if *byte == b'/' => {
                remove_dot_segment(out, segment_start);
                segment_start = out.len();
                out.push(b'/');
            }
            PathByte::Plain | PathByte::Dot => out.push(*byte),
            PathByte::Encode if *byte == b'%' => {
                let [high, low, tail @ ..] = rest else {
                    return Err(PathError::Escape);
                };
                let (Some(high), Some(low)) = (hex_value(*high), hex_value(*low)) else {
                    return Err(PathError::Escape);
                };
                rest = tail;
                match high << 4 | low {
                    0 => return Err(PathError::Nul),
                    decoded if is_unreserved(decoded) => out.push(decoded),
                    decoded => push_escape(out, decoded),
                }
            }
            PathByte::Encode => push_escape(out, *byte),
            PathByte::Query | PathByte::End | PathByte::Refused => {
                return Err(PathError::Character);
            }
        }
    }
    if remove_dot_segment(out, segment_start) {
        out.push(b'/');
    }
    Ok(())
}

fn push_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

/// Takes the segment that starts at `segment_start` off `out` when it is `.` or `..`, the latter
/// together with the segment before it. Whether it did.
fn remove_dot_segment(out: &mut Vec<u8>, segment_start: usize) -> bool {
    let parent = match &out[segment_start..] {
        b"/." => false,
        b"/.." => true,
        _ => return false,
    };
    out.truncate(segment_start);
    if parent {
        out.truncate(memchr::memrchr(b'/', out).unwrap_or(0));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: Result<&str, PathError>) {
        let mut out = b"left over".to_vec();
        let outcome = canonicalise(path.as_bytes(), &mut out)
            .map(|()| String::from_utf8(out.clone()).unwrap());
        assert_eq!(outcome, expected.map(str::to_owned), "{path}");
        if outcome.is_ok() {
            let mut again = Vec::new();
            canonicalise(&out, &mut again).unwrap();
            assert_eq!(again, out, "not idempotent: {path}");
        }
    }

    #[test]
    fn canonical_paths() {
        for (path, expected) in [
            ("/", "/"),
            ("//", "//"),
            ("/a//b", "/a//b"),
            ("/a/./b", "/a/b"),
            ("/a/../b", "/b"),
            ("/a/b/../../c", "/c"),
            ("/a/b/..", "/a/"),
            ("/a/b/.", "/a/b/"),
            ("/..", "/"),
            ("/.", "/"),
            ("/../../a", "/a"),
            ("/a//../b", "/a/b"),
            ("//..", "/"),
            ("/..//a", "//a"),
            ("/...", "/..."),
            ("/.well-known/x", "/.well-known/x"),
            ("/a/.b/..c/d.", "/a/.b/..c/d."),
            ("/%2e%2E/a", "/a"),
            ("/a/.%2e/b", "/b"),
            ("/a/%2e", "/a/"),
            ("/%41%7e%2d", "/A~-"),
            ("/a%2fb%5cc", "/a%2Fb%5Cc"),
            ("/..%2fa", "/..%2Fa"),
            ("/%252e", "/%252e"),
            ("/%25%32%65", "/%252e"),
            ("/a|b^c{d}[e]`", "/a%7Cb%5Ec%7Bd%7D%5Be%5D%60"),
            ("/%c3%a9", "/%C3%A9"),
            ("/a;b=c,d:@!$&'()*+", "/a;b=c,d:@!$&'()*+"),
            ("/%0a%0D", "/%0A%0D"),
        ] {
            check(path, Ok(expected));
        }
    }

    #[test]
    fn refused_paths() {
        for (path, expected) in [
            ("/%", PathError::Escape),
            ("/%4", PathError::Escape),
            ("/%zz", PathError::Escape),
            ("/%2%65", PathError::Escape),
            ("/%+1", PathError::Escape),
            ("/%00", PathError::Nul),
            ("/a\\b", PathError::Character),
            ("/a b", PathError::Character),
            ("/a?b", PathError::Character),
            ("/a#b", PathError::Character),
            ("/é", PathError::Character),
            ("a", PathError::Character),
            ("", PathError::Character),
        ] {
            check(path, Err(expected));
        }
    }
}
