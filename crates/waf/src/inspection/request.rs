//! Messages, as the input of an inspection.

use std::net::IpAddr;

/// The length of a request's body, by its framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// No body.
    None,
    /// A body with this number of bytes.
    Known(u64),
    /// A body whose length is unknown until its end.
    Unknown,
}

/// A request head, as it is sent to the member.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The client's address and port.
    pub client: (IpAddr, u16),
    /// The local address and port.
    pub server: (IpAddr, u16),
    /// The method.
    pub method: &'a [u8],
    /// The target as received, before its path was normalized or rewritten.
    pub received_target: &'a [u8],
    /// The target as sent to the member.
    pub target: &'a [u8],
    /// The version: `HTTP/1.1`.
    pub protocol: &'a [u8],
    /// The names and values of the fields, in order.
    pub headers: &'a [(&'a [u8], &'a [u8])],
    /// The length of the body.
    pub body: BodyLength,
    /// The names of sealed cookies whose values were changed.
    pub changed_cookies: &'a [Vec<u8>],
    /// The unique id of the request.
    pub unique_id: &'a [u8],
}

/// A response head.
#[derive(Debug, Clone, Copy)]
pub struct Response<'a> {
    /// The status.
    pub status: u16,
    /// The version.
    pub protocol: &'a [u8],
    /// The names and values of the fields, in order.
    pub headers: &'a [(&'a [u8], &'a [u8])],
}

/// The parts of a target.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TargetParts<'a> {
    /// The target without scheme and host.
    pub uri: &'a [u8],
    /// The part before the query.
    pub path: &'a [u8],
    /// The part after the question mark.
    pub query: &'a [u8],
}

/// Splits a target into its parts (RFC 9112 section 3.2).
pub(crate) fn parts(target: &[u8]) -> TargetParts<'_> {
    let uri = without_authority(target);
    // A fragment is not allowed in a request. If there is a fragment, it is not part of the result.
    let (path, query) = match uri.iter().position(|byte| *byte == b'?') {
        Some(at) => (&uri[..at], &uri[at + 1..]),
        None => (uri, &uri[uri.len()..]),
    };
    TargetParts { uri, path, query }
}

/// The part of a path after its last separator.
pub(super) fn basename(path: &[u8]) -> &[u8] {
    let base = path.iter().rposition(|byte| matches!(byte, b'/' | b'\\')).map_or(0, |at| at + 1);
    &path[base..]
}

/// A path decoded once, as in ModSecurity 3 and Coraza. An invalid escape is unchanged.
pub(crate) fn decoded(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = memchr::memchr(b'%', rest) {
        let (plain, from) = rest.split_at(at);
        out.extend_from_slice(plain);
        let digit = |index: usize| char::from(*from.get(index)?).to_digit(16);
        match (digit(1), digit(2)) {
            (Some(high), Some(low)) => {
                out.push((high << 4 | low) as u8);
                rest = &from[3..];
            }
            _ => {
                out.push(b'%');
                rest = &from[1..];
            }
        }
    }
    out.extend_from_slice(rest);
    out
}

fn without_authority(target: &[u8]) -> &[u8] {
    let Some(at) = memchr::memmem::find(target, b"://") else { return target };
    let is_scheme = at > 0 && target[..at].iter().all(|byte| byte.is_ascii_alphanumeric());
    if !is_scheme {
        return target;
    }
    let rest = &target[at + 3..];
    match rest.iter().position(|byte| matches!(byte, b'/' | b'?')) {
        Some(path) => &rest[path..],
        None => b"/",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_parts() {
        for (target, uri, path, base, query) in [
            ("/", "/", "/", "", ""),
            ("/a/b.php?x=1?2", "/a/b.php?x=1?2", "/a/b.php", "b.php", "x=1?2"),
            ("http://h/a?b", "/a?b", "/a", "a", "b"),
            ("http://h", "/", "/", "", ""),
            ("http://h?x", "?x", "", "", "x"),
            ("/?u=http://h/x", "/?u=http://h/x", "/", "", "u=http://h/x"),
            ("*", "*", "*", "*", ""),
            ("", "", "", "", ""),
            ("/a\\b", "/a\\b", "/a\\b", "b", ""),
        ] {
            assert_eq!(basename(path.as_bytes()), base.as_bytes(), "{target}");
            let expected =
                TargetParts { uri: uri.as_bytes(), path: path.as_bytes(), query: query.as_bytes() };
            assert_eq!(parts(target.as_bytes()), expected, "{target}");
        }
    }

    #[test]
    fn paths_are_decoded_once() {
        for (path, expected) in [
            ("/a%20b%2F%2520", &b"/a b/%20"[..]),
            ("/%", b"/%"),
            ("/%2", b"/%2"),
            ("/%zz%41", b"/%zzA"),
            ("/a+b%ff", b"/a+b\xff"),
        ] {
            assert_eq!(decoded(path.as_bytes()), expected, "{path}");
        }
    }
}
