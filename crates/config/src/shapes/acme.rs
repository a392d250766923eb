//! Value types of ACME: the directory URL of an authority, and a mailbox.

use serde_json::{Value, json};

use super::keys_url;
use crate::decode::{Context, Decode, Invalid, Registry, ShownDefault, decode_text};
use crate::document::Node;
use crate::snapshot;

/// The directory URL of Let's Encrypt.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// Maximum length of a mailbox (RFC 5321 section 4.5.3.1.3).
const MAILBOX_BYTES_MAX: usize = 254;

/// The URL of an authority's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directory(pub snapshot::HttpUrl);

impl Default for Directory {
    fn default() -> Self {
        let (authority, path) = LETS_ENCRYPT["https://".len()..].split_at(28);
        debug_assert!(path.starts_with('/'), "the place of the path");
        Self(snapshot::HttpUrl {
            is_secure: true,
            authority: authority.to_owned(),
            host: authority.to_owned(),
            port: 443,
            path: path.to_owned(),
        })
    }
}

impl Decode for Directory {
    fn expected() -> String {
        format!("a URL, such as `{LETS_ENCRYPT}`")
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^https://" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let url = decode_text(node, context, |text| {
            if text.starts_with("http://") {
                let invalid = Invalid::because("without TLS anybody could pose as the authority");
                return Err(
                    invalid.help("write `https://…`, and `ca: FILE` for an authority of your own")
                );
            }
            keys_url::parse(text).map(Self)
        })?;
        context.reaches(node.span, &url.0.endpoint());
        Some(url)
    }
}

impl ShownDefault for Directory {
    fn shown(&self) -> Value {
        self.0.to_string().into()
    }
}

/// A mailbox address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mailbox(pub String);

impl Decode for Mailbox {
    fn expected() -> String {
        "an email address, such as `ops@shop.example`".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^[^@\\s]+@[^@\\s]+$", "maxLength": MAILBOX_BYTES_MAX })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| {
            // `?` and `,` have a meaning of their own in a `mailto:` URL (RFC 8555 section 7.3).
            let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?,".contains(&byte);
            let is_sound = text.len() <= MAILBOX_BYTES_MAX
                && text.bytes().all(is_plain)
                && text.split_once('@').is_some_and(|(user, host)| {
                    !user.is_empty() && !host.is_empty() && !host.contains('@')
                });
            if is_sound { Ok(Self(text.to_owned())) } else { Err(Invalid::plainly()) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_what_its_text_says() {
        assert_eq!(Directory::default().0.to_string(), LETS_ENCRYPT);
        assert_eq!(keys_url::parse(LETS_ENCRYPT).ok(), Some(Directory::default().0));
    }
}
