//! Values that can be written in more than one way, or have a form of their own.

mod acme;
mod checks;
mod files;
mod http;
mod keys_url;
mod log_path;
mod payload;
mod pools;
mod replacements;
mod reported_value;
mod secret;
mod statuses;
mod tls;
mod token_hash;
mod url;
mod variables;
mod zone;

use serde_json::{Value, json};

use crate::decode::{Context, Decode, Invalid, Registry, ShownDefault, decode_scalar, decode_text};
use crate::document::{Node, NodeValue, ScalarKind};
use crate::scalar::{Text, Whole, whole};

pub(crate) use acme::{Directory, Mailbox};
pub(crate) use checks::CheckActions;
pub(crate) use files::{FilePath, Items, OcspSource};
pub(crate) use http::{
    AnyText, AutoOr, ByField, ByStatus, FieldName, FieldTexts, HeaderPatterns, HttpsRedirect,
    Pattern, Rewrite, StatusCode, StatusMatch,
};
pub(crate) use keys_url::KeysUrl;
pub(crate) use log_path::LogPath;
pub(crate) use payload::{HexBytes, Payload};
pub(crate) use pools::{PoolChoice, Share};
pub(crate) use replacements::Replacements;
pub(crate) use reported_value::ReportedValue;
pub(crate) use secret::SecretText;
pub(crate) use statuses::{FailureStatus, RedirectStatus};
pub(crate) use tls::{CipherSuite, Curve, MemberName, ServerName, TlsVersion};
pub(crate) use token_hash::TokenHash;
pub(crate) use url::TracesUrl;
pub(crate) use variables::TxTexts;
pub(crate) use zone::ZoneChoice;

/// Lowest and highest HTTP status code.
const STATUS_MIN: u16 = 100;
const STATUS_MAX: u16 = 599;

/// Maximum limit on connections.
const CONNECTIONS_MAX: u64 = 100_000_000;
/// Maximum weight of a member (as in BIG-IP's ratios and HAProxy's weights).
const WEIGHT_MAX: u64 = 256;
/// A share of the traffic; 0: no traffic.
pub(crate) type Weight = Whole<u16, 0, WEIGHT_MAX>;
/// A limit on connections.
pub(crate) type Connections = Whole<u32, 1, CONNECTIONS_MAX>;

/// Maximum length of a probe's target.
const PROBE_PATH_BYTES_MAX: usize = 4096;

/// An origin-form request target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProbePath(pub String);

impl Decode for ProbePath {
    fn expected() -> String {
        "a path that begins with `/`".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^/[!-~]*$", "maxLength": PROBE_PATH_BYTES_MAX })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| {
            if !text.starts_with('/') {
                return Err(Invalid::plainly());
            }
            if text.len() > PROBE_PATH_BYTES_MAX {
                return Err(Invalid::because(format!(
                    "the path has {} bytes, and at most {PROBE_PATH_BYTES_MAX} are allowed",
                    text.len()
                )));
            }
            if text.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'#') {
                return Err(Invalid::because(
                    "a path has neither spaces nor `#` nor characters outside ASCII",
                )
                .help("percent-encode them: a space is %20"));
            }
            Ok(Self(text.to_owned()))
        })
    }
}

impl ShownDefault for ProbePath {
    fn shown(&self) -> Value {
        self.0.as_str().into()
    }
}

/// Inclusive ranges of status codes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatusExpectation(pub Vec<(u16, u16)>);

impl Default for StatusExpectation {
    /// Success and redirection, as in BIG-IP and HAProxy.
    fn default() -> Self {
        Self(vec![(200, 399)])
    }
}

/// One code or one range.
struct StatusRange(u16, u16);

impl Decode for StatusRange {
    fn expected() -> String {
        "a status code such as 200, or a range such as \"200-299\"".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "anyOf": [
            { "type": "integer", "minimum": STATUS_MIN, "maximum": STATUS_MAX },
            { "type": "string", "pattern": "^[1-5][0-9][0-9]-[1-5][0-9][0-9]$" },
        ] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_scalar(node, context, |scalar| {
            let code = |text: &str| {
                whole(text.trim())
                    .and_then(|code| u16::try_from(code).ok())
                    .filter(|code| (STATUS_MIN..=STATUS_MAX).contains(code))
            };
            if let Some(code) = code(&scalar.text) {
                return match scalar.kind() {
                    ScalarKind::Number => Ok(Self(code, code)),
                    _ => Err(Invalid::plainly().help("remove the quotes")),
                };
            }
            if let Some((first, last)) = scalar.text.split_once('-')
                && let (Some(first), Some(last)) = (code(first), code(last))
            {
                if first > last {
                    return Err(Invalid::because("the range ends before it begins")
                        .help(format!("write \"{last}-{first}\"")));
                }
                return Ok(Self(first, last));
            }
            let class = scalar.text.to_ascii_lowercase();
            if let Some(digit) = class.strip_suffix("xx").and_then(whole)
                && (1..=5).contains(&digit)
            {
                return Err(Invalid::plainly().help(format!("write \"{digit}00-{digit}99\"")));
            }
            Err(Invalid::plainly())
        })
    }
}

impl Decode for StatusExpectation {
    fn expected() -> String {
        format!("{}, or a list of them", StatusRange::expected())
    }

    fn schema(registry: &mut Registry) -> Value {
        let one = StatusRange::schema(registry);
        let many = Vec::<StatusRange>::schema(registry);
        json!({ "anyOf": [one, many] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let ranges = match node.value {
            NodeValue::List(_) => Vec::<StatusRange>::decode(node, context)?,
            _ => vec![StatusRange::decode(node, context)?],
        };
        Some(Self(ranges.into_iter().map(|StatusRange(first, last)| (first, last)).collect()))
    }
}

impl ShownDefault for StatusExpectation {
    fn shown(&self) -> Value {
        let shown = |&(first, last): &(u16, u16)| -> Value {
            if first == last { first.into() } else { format!("{first}-{last}").into() }
        };
        match self.0.as_slice() {
            [one] => shown(one),
            many => many.iter().map(shown).collect(),
        }
    }
}

/// A network: addresses with the same prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network(pub weir_core::expression::Network);

impl Decode for Network {
    fn expected() -> String {
        "an address, or a network such as 10.0.0.0/8".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^[0-9A-Fa-f.:]+(/[0-9]+)?$" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        use weir_core::expression::{Network, NetworkError};
        decode_text(node, context, |text| match Network::parse(text) {
            Ok(network) => Ok(Self(network)),
            Err(NetworkError::Syntax) => Err(Invalid::plainly()),
            Err(error @ NetworkError::HostBits(_)) => {
                let NetworkError::HostBits(meant) = &error else { return Err(Invalid::plainly()) };
                Err(Invalid::because(error.to_string()).help(format!("write {meant}")))
            }
        })
    }
}

section! {
    /// A pattern or bytes that the body must contain. Set one of the two keys.
    BodyPattern at "pools.NAME.monitors[].expect.body" {
        /// A regular expression in the syntax of Rust's `regex` crate; it matches anywhere in the body unless anchored.
        optional regex: Text;
        /// Bytes in hexadecimal digits; spaces between them are ignored.
        optional hex: HexBytes;
    }
    later []
}

/// A condition on the content of a body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BodyExpectation {
    Substring(Text),
    Pattern(BodyPattern),
}

impl Decode for BodyExpectation {
    fn expected() -> String {
        "text, or a map with `regex` or `hex`".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({ "anyOf": [Text::schema(registry), BodyPattern::schema(registry)] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match node.value {
            NodeValue::Map(_) => BodyPattern::decode(node, context).map(Self::Pattern),
            NodeValue::Scalar(_) => Text::decode(node, context).map(Self::Substring),
            NodeValue::Null | NodeValue::List(_) => {
                context.mismatch(node, &Self::expected(), None);
                None
            }
        }
    }
}
