//! URLs of servers that weir connects to as a client.

use serde_json::{Value, json};

use crate::decode::{Context, Decode, Invalid, Registry, ShownDefault, decode_text};
use crate::document::Node;
use crate::snapshot::HttpUrl;

/// Maximum length of a URL.
const URL_BYTES_MAX: usize = 2048;

/// Default path of OTLP traces over HTTP, used if the URL has no path.
const TRACES_PATH: &str = "/v1/traces";

/// The URL of the trace collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TracesUrl(pub HttpUrl);

impl Decode for TracesUrl {
    fn expected() -> String {
        "a URL, such as `http://collector.example:4318/v1/traces`".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^https?://" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let url = decode_text(node, context, |text| parse_url(text).map(with_path).map(Self))?;
        context.reaches(node.span, &url.0.endpoint());
        Some(url)
    }
}

impl ShownDefault for TracesUrl {
    fn shown(&self) -> Value {
        self.0.to_string().into()
    }
}

fn with_path(mut url: HttpUrl) -> HttpUrl {
    if url.path == "/" {
        url.path = TRACES_PATH.to_owned();
    }
    url
}

/// Parses an `https` or `http` URL.
pub(super) fn parse_url(text: &str) -> Result<HttpUrl, Invalid> {
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
    Ok(HttpUrl {
        is_secure,
        authority: authority.to_owned(),
        host: host.to_owned(),
        port,
        path: path.to_owned(),
    })
}

/// The host, without brackets, and the port.
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
    use super::*;

    #[test]
    fn a_url_without_a_path_gets_that_of_traces() {
        for (text, expected) in [
            ("http://collector:4318", "http://collector:4318/v1/traces"),
            ("http://collector:4318/", "http://collector:4318/v1/traces"),
            ("https://a.example/otlp?x=1", "https://a.example/otlp?x=1"),
            ("http://[2001:db8::1]:4318", "http://[2001:db8::1]:4318/v1/traces"),
        ] {
            let url = parse_url(text).ok().map(with_path);
            assert_eq!(url.map(|url| url.to_string()).as_deref(), Some(expected));
        }
        for text in ["collector:4318", "grpc://a", "http://", "http://a b/", "http://u:p@a/"] {
            assert!(parse_url(text).is_err(), "{text}");
        }
    }
}
