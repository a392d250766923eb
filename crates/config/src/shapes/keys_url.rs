//! Where public keys are fetched.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::decode::{Context, Decode, Invalid, Registry, Shown, decode_text};
use crate::snapshot;
use crate::tree::Node;

/// Longest URL.
const URL_BYTES_MAX: usize = 2048;

/// A URL of `https`, or of `http` on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeysUrl(pub snapshot::KeysUrl);

impl Decode for KeysUrl {
    fn expected() -> String {
        "a URL, such as `https://login.example/jwks.json`".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^https?://" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| parse(text).map(Self))
    }
}

impl Shown for KeysUrl {
    fn shown(&self) -> Value {
        self.0.to_string().into()
    }
}

pub(super) fn parse(text: &str) -> Result<snapshot::KeysUrl, Invalid> {
    let (is_secure, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => return Err(Invalid::because("it does not begin with `https://`")),
    };
    if text.len() > URL_BYTES_MAX {
        return Err(Invalid::because("it is longer than 2048 bytes"));
    }
    let (authority, path) = match rest.find(['/', '?', '#']) {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    if authority.contains('@') {
        return Err(Invalid::because("it has a user in it"));
    }
    let is_sound = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_sound(authority) || !is_sound(path) || path.contains('#') || !path.starts_with('/') {
        return Err(Invalid::because("it has characters that are not allowed in such a URL"));
    }
    let (host, port) = split(authority, if is_secure { 443 } else { 80 })
        .ok_or_else(|| Invalid::because("it has no host and port that can be connected to"))?;
    let is_here = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    if !is_secure && !is_here {
        let invalid = Invalid::because("keys fetched without TLS could be changed by an attacker");
        return Err(
            invalid.help("write `https://…`; `http://` is for 127.0.0.1, [::1] and localhost")
        );
    }
    Ok(snapshot::KeysUrl {
        is_secure,
        authority: authority.to_owned(),
        host: host.to_owned(),
        port,
        path: path.to_owned(),
    })
}

/// Host, without brackets, and port.
fn split(authority: &str, default: u16) -> Option<(&str, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, after)
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_name) {
        return None;
    }
    match port.strip_prefix(':') {
        Some(digits) => {
            let port = digits.parse().ok().filter(|port| *port != 0)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then_some((host, port))
        }
        None => port.is_empty().then_some((host, default)),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn urls() {
        for (text, expected) in [
            ("https://a.example/jwks", Some("a.example 443 /jwks")),
            ("https://a.example", Some("a.example 443 /")),
            ("https://a.example:8443/a/b?c=d", Some("a.example 8443 /a/b?c=d")),
            ("https://[2001:db8::1]:1/", Some("2001:db8::1 1 /")),
            ("http://127.0.0.1:80/x", Some("127.0.0.1 80 /x")),
            ("http://[::1]/x", Some("::1 80 /x")),
            ("http://localhost/x", Some("localhost 80 /x")),
            ("http://a.example/x", None),
            ("ftp://a.example/x", None),
            ("a.example", None),
            ("https://", None),
            ("https://a b/", None),
            ("https://a/\u{e4}", None),
            ("https://a/#b", None),
            ("https://a?b", None),
            ("https://u:p@a/", None),
            ("https://a:0/", None),
            ("https://a:65536/", None),
            ("https://a:+1/", None),
            ("https://a:/", None),
            ("https://[::1/", None),
            ("https://[::1]x/", None),
            ("https://[a]/", None),
        ] {
            let found = parse(text).ok().map(|it| format!("{} {} {}", it.host, it.port, it.path));
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        assert!(parse(&format!("https://a/{}", "b".repeat(2048))).is_err());
    }
}
