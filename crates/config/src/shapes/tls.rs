//! TLS values: versions, cipher suites, curves, server names.

use rustls_pki_types as pki;
use serde_json::{Value, json};
use weir_tls::client_hello::canonical_name;
use weir_tls::server::{GROUPS, SUITES, Version};

use crate::decode::{
    Context, Decode, Invalid, Registry, ShownDefault, decode_scalar, decode_text, words_schema,
};
use crate::document::Node;
use crate::hints::nearest;
use crate::quote::clip;

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsVersion {
    Tls12,
    Tls13,
}

impl TlsVersion {
    pub fn version(self) -> Version {
        match self {
            Self::Tls12 => Version::Tls12,
            Self::Tls13 => Version::Tls13,
        }
    }
}

impl Decode for TlsVersion {
    fn expected() -> String {
        "\"1.2\" or \"1.3\"".into()
    }

    fn schema(_: &mut Registry) -> Value {
        let words = words_schema(&[("1.2", "TLS 1.2 (RFC 5246)."), ("1.3", "TLS 1.3 (RFC 8446).")]);
        json!({ "anyOf": [words, { "enum": [1.2, 1.3] }] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        // A number is accepted too, because its text is the same.
        decode_scalar(node, context, |scalar| match scalar.text.as_str() {
            "1.2" => Ok(Self::Tls12),
            "1.3" => Ok(Self::Tls13),
            "1.0" | "1.1" | "3.0" => {
                Err(Invalid::plainly().help("older versions are broken (RFC 8996) and not spoken"))
            }
            _ => Err(Invalid::plainly()),
        })
    }
}

impl ShownDefault for TlsVersion {
    fn shown(&self) -> Value {
        match self {
            Self::Tls12 => "1.2".into(),
            Self::Tls13 => "1.3".into(),
        }
    }
}

/// The index of a word in a list, ignoring case.
fn place_of<'a>(
    words: impl Iterator<Item = &'a str> + Clone,
    text: &str,
) -> Result<usize, Invalid> {
    words.clone().position(|word| word.eq_ignore_ascii_case(text)).ok_or_else(|| {
        let invalid = Invalid::plainly();
        match nearest(text, words) {
            Some(near) => invalid.help(format!("did you mean `{near}`?")),
            None => invalid,
        }
    })
}

/// A cipher suite: its index in [`SUITES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CipherSuite(pub usize);

impl Decode for CipherSuite {
    fn expected() -> String {
        "a cipher suite: AES-GCM or ChaCha20-Poly1305 with ephemeral keys".into()
    }

    fn schema(_: &mut Registry) -> Value {
        let meaning = |name: &str| match name {
            _ if name.starts_with("ECDHE-ECDSA") => "TLS 1.2 with an ECDSA certificate.",
            _ if name.starts_with("ECDHE-RSA") => "TLS 1.2 with an RSA certificate.",
            _ => "TLS 1.3.",
        };
        let names = SUITES
            .iter()
            .flat_map(|(short, long, _)| [(*short, meaning(short)), (*long, meaning(short))]);
        words_schema(&names.collect::<Vec<_>>())
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| {
            // The two names of a suite are adjacent.
            let mut names = SUITES.iter().flat_map(|(short, long, _)| [*short, *long]);
            let ephemeral = format!("ECDHE-RSA-{text}");
            if names.clone().all(|name| name != text) && names.any(|name| name == ephemeral) {
                let help = format!("it has no ephemeral keys; with them it is `{ephemeral}`");
                return Err(Invalid::plainly().help(help));
            }
            let names = SUITES.iter().flat_map(|(short, long, _)| [*short, *long]);
            place_of(names, text).map(|place| Self(place / 2))
        })
    }
}

/// A key exchange group: its index in [`GROUPS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Curve(pub usize);

/// Other names for curves.
const CURVE_ALIASES: [(&str, &str); 5] = [
    ("prime256v1", "P-256"),
    ("secp256r1", "P-256"),
    ("secp384r1", "P-384"),
    ("P256", "P-256"),
    ("P384", "P-384"),
];

impl Decode for Curve {
    fn expected() -> String {
        let names: Vec<&str> = GROUPS.iter().map(|(name, _)| *name).collect();
        crate::scalar::one_of(&names)
    }

    fn schema(_: &mut Registry) -> Value {
        let meaning = |name: &str| match name {
            "X25519MLKEM768" => "X25519 with ML-KEM-768, also secure against quantum computers.",
            "X25519" => "Elliptic curve of RFC 7748.",
            "P-256" => "Elliptic curve of NIST with 256 bits.",
            "P-384" => "Elliptic curve of NIST with 384 bits.",
            "SECP256R1MLKEM768" => "P-256 with ML-KEM-768, also secure against quantum computers.",
            _ => "",
        };
        words_schema(&GROUPS.map(|(name, _)| (name, meaning(name))))
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| {
            let alias = CURVE_ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(text));
            let text = alias.map_or(text, |(_, name)| name);
            place_of(GROUPS.iter().map(|(name, _)| *name), text).map(Self)
        })
    }
}

/// A name for SNI, in lower case; a leading `*.` stands for one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerName(pub String);

impl Decode for ServerName {
    fn expected() -> String {
        "a name such as shop.example or \"*.shop.example\"".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^(\\*\\.)?[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*\\.?$" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| {
            let (star, name) = match text.strip_prefix("*.") {
                Some(name) => ("*.", name),
                None => ("", text),
            };
            let name = canonical_name(name.as_bytes());
            let name = name.ok_or_else(|| {
                Invalid::because(format!("`{}` is not a valid server name", clip(text)))
            })?;
            Ok(Self(format!("{star}{name}")))
        })
    }
}

/// A server name for members, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberName(pub String);

impl Decode for MemberName {
    fn expected() -> String {
        "a name such as shop.example".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*\\.?$" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| {
            let name = canonical_name(text.as_bytes());
            let name = name.filter(|name| pki::ServerName::try_from(name.as_str()).is_ok());
            name.map(Self).ok_or_else(|| {
                let reason = format!("`{}` is not a valid server name", clip(text));
                Invalid::because(reason).help(match text.strip_prefix("*.") {
                    Some(parent) => {
                        format!("write one name, such as a.{}: only certificates can have `*`", clip(parent))
                    }
                    None => "write letters, digits and hyphens, none of these first or last, between dots".into(),
                })
            })
        })
    }
}
