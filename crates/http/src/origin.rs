//! URLs in fields that refer to a server by scheme and authority: `Location` in responses, `Destination` of `COPY` and
//! `MOVE` (RFC 4918 section 10.3).

use crate::authority;
use crate::message::Scheme;

/// The scheme and authority of a server, as seen from one side of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The scheme.
    pub scheme: Scheme,
    /// The host, and the port unless it is the default of the scheme.
    pub authority: &'a [u8],
}

impl Origin<'_> {
    /// Whether both are the same server, considering the default ports of the schemes.
    pub fn is(self, other: Origin<'_>) -> bool {
        let port = self.scheme.default_port();
        self.scheme == other.scheme && authority::same(self.authority, other.authority, port)
    }

    /// The host without the port.
    pub fn host(&self) -> &[u8] {
        authority::host(self.authority)
    }
}

/// Splits an absolute `http` or `https` URL into its origin and the rest. `None`: not such a URL.
pub fn take_apart(url: &[u8]) -> Option<(Origin<'_>, &[u8])> {
    let has = |prefix: &[u8]| {
        url.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let (scheme, rest) = if has(b"http://") {
        (Scheme::Http, &url[b"http://".len()..])
    } else if has(b"https://") {
        (Scheme::Https, &url[b"https://".len()..])
    } else {
        return None;
    };
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    let (authority, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let length = authority::check(authority).filter(|length| *length > 0)?;
    Some((Origin { scheme, authority: &authority[..length] }, rest))
}

/// Appends the URL of a resource of this server.
pub fn write_url(origin: Origin<'_>, rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(origin.scheme.name().as_bytes());
    out.extend_from_slice(b"://");
    out.extend_from_slice(origin.authority);
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(scheme: Scheme, authority: &str) -> Origin<'_> {
        Origin { scheme, authority: authority.as_bytes() }
    }

    #[test]
    fn urls_are_taken_apart() {
        let check = |url: &str, expected: Option<(Scheme, &str, &str)>| {
            let found = take_apart(url.as_bytes());
            let expected =
                expected.map(|(scheme, host, rest)| (origin(scheme, host), rest.as_bytes()));
            assert_eq!(found, expected, "{url}");
        };
        check("http://a/b?c#d", Some((Scheme::Http, "a", "/b?c#d")));
        check("HTTPS://a.b:8443", Some((Scheme::Https, "a.b:8443", "")));
        check("https://[::1]:1/x", Some((Scheme::Https, "[::1]:1", "/x")));
        check("http://a?b", Some((Scheme::Http, "a", "?b")));
        check("http://a#b", Some((Scheme::Http, "a", "#b")));
        check("http://a:/b", Some((Scheme::Http, "a", "/b")));
        for other in [
            "",
            "/a",
            "//a/b",
            "http:/a",
            "http:///a",
            "ftp://a/",
            "http://user@a/",
            "http://a b/",
            "http://a%2f/",
            "http://:80/",
            "http://a\\b/",
        ] {
            check(other, None);
        }
    }

    #[test]
    fn the_same_server_has_several_spellings() {
        let is = |one: Origin<'_>, other| (one.is(other), other.is(one));
        let http = |authority| origin(Scheme::Http, authority);
        assert_eq!(is(http("a"), http("A:80")), (true, true));
        assert_eq!(is(http("a"), http("a:443")), (false, false));
        assert_eq!(is(http("a"), http("b")), (false, false));
        assert_eq!(is(http("a"), origin(Scheme::Https, "a")), (false, false));
        let https = |authority| origin(Scheme::Https, authority);
        assert_eq!(is(https("a:443"), https("a")), (true, true));
    }

    #[test]
    fn urls_are_written() {
        let mut out = b"-".to_vec();
        write_url(origin(Scheme::Https, "a:1"), b"/b", &mut out);
        assert_eq!(out, b"-https://a:1/b");
        assert_eq!(origin(Scheme::Http, "[::1]:8").host(), b"[::1]");
    }
}
