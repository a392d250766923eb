//! The authority of a request: from the Host field or the target.

use std::net::Ipv6Addr;

use crate::chars::{is_unreserved, run_length};

/// Length of `authority` without an empty port, if every parser reads it alike; else `None`.
///
/// RFC 3986 section 3.2 without userinfo, and stricter where parsers are known to differ: no
/// percent-encoding and no comma in a name, no zone and no IPvFuture in brackets, a port of at most
/// 65535, no port without a host. The empty authority is valid here; the caller decides where
/// it is allowed.
pub(crate) fn check(authority: &[u8]) -> Option<usize> {
    let host_length = if is_literal(authority) {
        sound_literal_length(authority)?
    } else {
        name_length(authority)
    };
    match &authority[host_length..] {
        [] => Some(authority.len()),
        _ if host_length == 0 => None,
        [b':'] => Some(host_length),
        [b':', digits @ ..] => is_port(digits).then_some(authority.len()),
        _ => None,
    }
}

/// Whether a text names a host, with or without a port, in a way that every parser reads alike.
pub fn is_authority(text: &[u8]) -> bool {
    !text.is_empty() && check(text) == Some(text.len())
}

/// The host of a checked authority, without its port.
pub(crate) fn host(authority: &[u8]) -> &[u8] {
    let length = if is_literal(authority) {
        memchr::memchr(b']', authority).map_or(authority.len(), |bracket| bracket + 1)
    } else {
        name_length(authority)
    };
    &authority[..length]
}

/// Whether two checked authorities name the same host and port, given the scheme's default port.
pub(crate) fn same(one: &[u8], other: &[u8], default_port: &[u8]) -> bool {
    let parts = |authority| {
        let host = host(authority);
        let port: &[u8] = &authority[host.len()..];
        (host, port.strip_prefix(b":").unwrap_or(default_port))
    };
    let ((host, port), (other_host, other_port)) = (parts(one), parts(other));
    host.eq_ignore_ascii_case(other_host) && port == other_port
}

/// Whether the host is an address in brackets.
fn is_literal(authority: &[u8]) -> bool {
    authority.first() == Some(&b'[')
}

/// The length of the IPv6 address at the start of `authority`, with its brackets.
#[inline(never)]
fn sound_literal_length(authority: &[u8]) -> Option<usize> {
    let length = memchr::memchr(b']', authority)? + 1;
    let address = std::str::from_utf8(&authority[1..length - 1]).ok()?;
    address.parse::<Ipv6Addr>().ok().map(|_| length)
}

/// The length of a possible name or IPv4 address at the start of `authority`.
#[inline(always)]
fn name_length(authority: &[u8]) -> usize {
    run_length(authority, &NAME)
}

/// Bytes of a registered name, or of an IPv4 address.
static NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = is_unreserved(byte as u8)
            || matches!(
                byte as u8,
                b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b';' | b'='
            );
        byte += 1;
    }
    table
};

fn is_port(digits: &[u8]) -> bool {
    const PORT_DIGITS_MAX: usize = 5;
    if digits.len() > PORT_DIGITS_MAX {
        return false;
    }
    let mut port = 0;
    for byte in digits {
        let digit = u32::from(byte.wrapping_sub(b'0'));
        if digit > 9 {
            return false;
        }
        port = port * 10 + digit;
    }
    port <= u32::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities() {
        for (authority, expected) in [
            ("", Some("")),
            ("example.com", Some("example.com")),
            ("EXAMPLE.com:8080", Some("EXAMPLE.com:8080")),
            ("example.com.", Some("example.com.")),
            ("a_b-c~d", Some("a_b-c~d")),
            ("example.com:", Some("example.com")),
            ("127.0.0.1:80", Some("127.0.0.1:80")),
            ("[::1]", Some("[::1]")),
            ("[::1]:443", Some("[::1]:443")),
            ("[::ffff:1.2.3.4]:", Some("[::ffff:1.2.3.4]")),
            ("a:65535", Some("a:65535")),
            ("a:65536", None),
            ("a:000080", None),
            ("a:8o", None),
            ("a:+80", None),
            ("a:80:80", None),
            (":80", None),
            (":", None),
            ("user@example.com", None),
            ("a,b", None),
            ("a b", None),
            ("a%41", None),
            ("a/b", None),
            ("a?b", None),
            ("a\\b", None),
            ("é", None),
            ("[::1", None),
            ("::1", None),
            ("[]", None),
            ("[::1]a", None),
            ("[fe80::1%25eth0]", None),
            ("[v1.a]", None),
            ("[1.2.3.4]", None),
            ("a[::1]", None),
        ] {
            let outcome = check(authority.as_bytes()).map(|length| &authority[..length]);
            assert_eq!(outcome, expected, "{authority}");
        }
    }

    #[test]
    fn hosts_and_sameness() {
        assert_eq!(host(b"a:80"), b"a");
        assert_eq!(host(b"[::1]:80"), b"[::1]");
        assert_eq!(host(b""), b"");
        assert!(same(b"A", b"a:80", b"80"));
        assert!(!same(b"a", b"a:443", b"80"));
        assert!(!same(b"a", b"", b"80"));
    }
}
