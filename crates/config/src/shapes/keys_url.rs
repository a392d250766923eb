//! URLs of public keys.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::url::parse_url;
use crate::decode::{Context, Decode, Invalid, Registry, ShownDefault, decode_text};
use crate::document::Node;
use crate::snapshot::HttpUrl;

/// An `https` URL, or an `http` URL of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeysUrl(pub HttpUrl);

impl Decode for KeysUrl {
    fn expected() -> String {
        "a URL, such as `https://login.example/jwks.json`".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^https?://" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let url = decode_text(node, context, |text| parse(text).map(Self))?;
        context.reaches(node.span, &url.0.endpoint());
        Some(url)
    }
}

impl ShownDefault for KeysUrl {
    fn shown(&self) -> Value {
        self.0.to_string().into()
    }
}

pub(super) fn parse(text: &str) -> Result<HttpUrl, Invalid> {
    let url = parse_url(text)?;
    let is_here =
        url.host == "localhost" || url.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    if !url.is_secure && !is_here {
        let invalid = Invalid::because("keys fetched without TLS could be changed by an attacker");
        return Err(
            invalid.help("write `https://…`; `http://` is for 127.0.0.1, [::1] and localhost")
        );
    }
    Ok(url)
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
