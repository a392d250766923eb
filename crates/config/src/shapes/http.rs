//! Parts of HTTP messages in the configuration.

use serde_json::{Value, json};

use crate::decode::{
    Context, Decode, Invalid, Registry, ShownDefault, Spanned, decode_scalar, decode_text,
};
use crate::document::{Node, NodeValue, ScalarKind, Span};
use crate::hints::nearest;
use crate::quote::clip;
use crate::scalar::{Text, Whole, whole};
use crate::shapes::RedirectStatus;

/// Maximum length of the name of a field, cookie or parameter.
const FIELD_NAME_BYTES_MAX: usize = 256;

/// Fields for framing or for a single connection: only weir writes them.
const FRAMING_FIELDS: [&str; 11] = [
    "connection",
    "content-length",
    "date",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];

/// The name of a field, cookie or parameter: a token (RFC 9110 section 5.6.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldName(pub String);

impl FieldName {
    /// The reason why policies cannot change a field of this name, and the alternative.
    pub fn is_framing(&self) -> Option<&'static str> {
        let lower = self.0.to_ascii_lowercase();
        if let Some(prefix) = lower.strip_suffix('*') {
            let is_among = FRAMING_FIELDS.iter().any(|field| field.starts_with(prefix));
            return is_among
                .then_some("weir's own headers have this prefix: write a longer prefix");
        }
        if !FRAMING_FIELDS.contains(&lower.as_str()) {
            return None;
        }
        Some(if lower == "host" {
            "use `rewrite_host`"
        } else {
            "weir sets it itself from the message and the connection"
        })
    }
}

impl Decode for FieldName {
    fn expected() -> String {
        "the name of a header or cookie".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({
            "type": "string",
            "pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
            "maxLength": FIELD_NAME_BYTES_MAX,
        })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| {
            check_field_name(text).map_err(Invalid::because)?;
            Ok(Self(text.to_owned()))
        })
    }
}

impl ShownDefault for FieldName {
    fn shown(&self) -> Value {
        self.0.as_str().into()
    }
}

fn check_field_name(text: &str) -> Result<(), String> {
    if text.len() > FIELD_NAME_BYTES_MAX {
        return Err(format!("a name has at most {FIELD_NAME_BYTES_MAX} characters"));
    }
    if weir_http::is_token(text.as_bytes()) {
        Ok(())
    } else {
        Err(format!("\"{}\" is not a name: letters, digits and !#$%&'*+-.^_`|~", clip(text)))
    }
}

/// A map from field names to values of one type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ByField<T>(pub Vec<(Spanned<FieldName>, Spanned<T>)>);

/// Fields and the templates of their values; `""` means a field with an empty value.
pub(crate) type FieldTexts = ByField<AnyText>;

/// Fields and how their values are changed.
pub(crate) type HeaderPatterns = ByField<Pattern>;

impl<T: Decode> Decode for ByField<T> {
    fn expected() -> String {
        format!("a map from names to {}", T::expected())
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({
            "type": "object",
            "additionalProperties": T::schema(registry),
            "propertyNames": FieldName::schema(registry),
            "minProperties": 1,
        })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let NodeValue::Map(entries) = &node.value else {
            let suggestion = matches!(&node.value, NodeValue::Scalar(_))
                .then(|| "write { Name: \"value\" }".to_owned());
            context.mismatch(node, &Self::expected(), suggestion);
            return None;
        };
        if entries.is_empty() {
            let message = format!("{} is empty; it needs at least one name", context.path());
            context.error(node.span, message);
        }
        let decoded = entries.iter().filter_map(|entry| {
            let name = match check_field_name(&entry.key) {
                Ok(()) => Some(named(&entry.key, entry.key_span)),
                Err(reason) => {
                    context.error(entry.key_span, format!("{}: {reason}", context.path()));
                    None
                }
            };
            let value =
                context.within_key(&entry.key, |context| Spanned::decode(&entry.value, context));
            Some((name?, value?))
        });
        Some(Self(decoded.collect()))
    }
}

fn named(name: &str, span: Span) -> Spanned<FieldName> {
    Spanned { value: FieldName(name.to_owned()), span, given: true }
}

/// Any text, including the empty one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnyText(pub String);

impl Decode for AnyText {
    fn expected() -> String {
        "text".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "anyOf": [{ "type": "string" }, { "type": "number" }] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        // A number is taken literally; a boolean may be a mistake.
        decode_scalar(node, context, |scalar| match scalar.kind() {
            ScalarKind::Text | ScalarKind::Number => Ok(Self(scalar.text.clone())),
            ScalarKind::Boolean => {
                Err(Invalid::plainly().help(format!("quote it: \"{}\"", clip(&scalar.text))))
            }
        })
    }
}

section! {
    /// A pattern, and the replacement for each match.
    Pattern at "policies.NAME.rules[].then[].rewrite_path" {
        /// A regular expression in the syntax of Rust's `regex` crate.
        required regex: Text;
        /// The replacement for each match: `$1` and `${name}` are captures, `$$` is a dollar sign.
        required to: AnyText;
    }
    later []
}

/// A template, or a pattern with its replacement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Rewrite {
    Text(AnyText),
    Pattern(Pattern),
}

impl Decode for Rewrite {
    fn expected() -> String {
        "TEXT, or a map with `regex` and `to`".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({ "anyOf": [AnyText::schema(registry), Pattern::schema(registry)] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match node.value {
            NodeValue::Map(_) => Pattern::decode(node, context).map(Self::Pattern),
            NodeValue::Scalar(_) => AnyText::decode(node, context).map(Self::Text),
            NodeValue::Null | NodeValue::List(_) => {
                context.mismatch(node, &Self::expected(), None);
                None
            }
        }
    }
}

/// `auto`, or a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AutoOr {
    Auto,
    Always(bool),
}

impl Decode for AutoOr {
    fn expected() -> String {
        "`auto`, true or false".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "enum": ["auto", true, false] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_scalar(node, context, |scalar| match scalar.text.as_str() {
            "auto" => Ok(Self::Auto),
            "true" if scalar.kind() == ScalarKind::Boolean => Ok(Self::Always(true)),
            "false" if scalar.kind() == ScalarKind::Boolean => Ok(Self::Always(false)),
            _ => Err(Invalid::plainly()),
        })
    }
}

impl ShownDefault for AutoOr {
    fn shown(&self) -> Value {
        match self {
            Self::Auto => "auto".into(),
            Self::Always(always) => (*always).into(),
        }
    }
}

/// A final status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StatusCode(pub u16);

impl Decode for StatusCode {
    fn expected() -> String {
        "a status code from 200 to 599".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "integer", "minimum": 200, "maximum": 599 })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_scalar(node, context, |scalar| {
            let code = whole(&scalar.text).and_then(|code| u16::try_from(code).ok());
            match code {
                Some(code @ 200..=599) if scalar.kind() == ScalarKind::Number => Ok(Self(code)),
                _ => Err(Invalid::plainly()),
            }
        })
    }
}

impl ShownDefault for StatusCode {
    fn shown(&self) -> Value {
        self.0.into()
    }
}

/// Values by status code or by class of codes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ByStatus<T>(pub Vec<(StatusMatch, Spanned<T>)>);

/// One status, or a class of statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusMatch {
    /// A code: `503`.
    Code(u16),
    /// A class, by its first digit: `5xx`.
    Class(u16),
}

impl StatusMatch {
    fn parse(text: &str) -> Option<Self> {
        if let Some(digit) = text.to_ascii_lowercase().strip_suffix("xx") {
            return whole(digit)
                .filter(|digit| matches!(digit, 4 | 5))
                .map(|digit| Self::Class(digit as u16));
        }
        let code = whole(text).and_then(|code| u16::try_from(code).ok());
        code.filter(|code| (400..=599).contains(code)).map(Self::Code)
    }
}

impl<T: Decode> Decode for ByStatus<T> {
    fn expected() -> String {
        "a map from status codes (400 to 599, or 4xx, 5xx) to pages".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({
            "type": "object",
            "additionalProperties": T::schema(registry),
            "propertyNames": { "pattern": "^([45][0-9][0-9]|[45]xx)$" },
        })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let NodeValue::Map(entries) = &node.value else {
            context.mismatch(node, &Self::expected(), None);
            return None;
        };
        let decoded = entries.iter().filter_map(|entry| {
            let status = StatusMatch::parse(&entry.key);
            if status.is_none() {
                let message = format!(
                    "{}: \"{}\" is not a status of an error page",
                    context.path(),
                    clip(&entry.key)
                );
                let help = nearest(&entry.key, ["4xx", "5xx", "502", "503", "504"]);
                let help = help.map_or_else(Self::expected, |near| format!("did you mean {near}?"));
                context.error_help(entry.key_span, message, help);
            }
            let value =
                context.within_key(&entry.key, |context| Spanned::decode(&entry.value, context));
            Some((status?, value?))
        });
        Some(Self(decoded.collect()))
    }
}

section! {
    /// The redirect to the same URL over TLS.
    HttpsRedirectSettings at "virtual_servers.NAME.https_redirect" {
        /// The status of the redirect: 301, 302, 303, 307 or 308.
        default status: RedirectStatus = RedirectStatus(308);
        /// The port in the redirect URL. Port 443 is omitted.
        default port: Whole<u16, 1, 65_535> = Whole(443);
    }
    later []
}

/// Whether and how requests are redirected to the same URL over TLS.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum HttpsRedirect {
    Plainly(bool),
    Settings(HttpsRedirectSettings),
}

impl Decode for HttpsRedirect {
    fn expected() -> String {
        "`true` or `false`, or a map with `status` and `port`".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({ "anyOf": [bool::schema(registry), HttpsRedirectSettings::schema(registry)] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match node.value {
            NodeValue::Map(_) => HttpsRedirectSettings::decode(node, context).map(Self::Settings),
            _ => bool::decode(node, context).map(Self::Plainly),
        }
    }
}

impl ShownDefault for HttpsRedirect {
    fn shown(&self) -> Value {
        match self {
            Self::Plainly(is_on) => (*is_on).into(),
            Self::Settings(settings) => {
                json!({ "status": settings.status.value.0, "port": settings.port.0 })
            }
        }
    }
}

impl HttpsRedirect {
    /// Status and port, if the redirect is on.
    pub fn settings(&self) -> Option<(u16, u16)> {
        match self {
            Self::Plainly(true) => Some((308, 443)),
            Self::Plainly(false) => None,
            Self::Settings(settings) => Some((settings.status.value.0, settings.port.0)),
        }
    }
}
