//! File paths in the configuration, and lists that may be in a file.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::decode::{Context, Decode, Invalid, Registry, ShownDefault, Spanned, decode_text};
use crate::document::{Node, NodeValue};
use crate::shapes::http::AnyText;

/// The path of a file; a relative one starts at the configuration's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePath(pub PathBuf);

impl Decode for FilePath {
    fn expected() -> String {
        "a path".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "minLength": 1 })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let path = decode_text(node, context, |text| {
            if text.is_empty() || text.contains('\0') {
                return Err(Invalid::plainly());
            }
            Ok(Self(text.into()))
        })?;
        context.uses_file(node.span, &path.0.to_string_lossy());
        Some(path)
    }
}

impl ShownDefault for FilePath {
    fn shown(&self) -> Value {
        self.0.to_string_lossy().into()
    }
}

/// Where an OCSP response comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OcspSource {
    /// The responder that the certificate names.
    Fetch,
    /// A file.
    File(FilePath),
}

impl Decode for OcspSource {
    fn expected() -> String {
        "`fetch` or a file's path".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        FilePath::schema(registry)
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let path = FilePath::decode(node, context)?;
        Some(if path.0.as_os_str() == "fetch" { Self::Fetch } else { Self::File(path) })
    }
}

impl ShownDefault for OcspSource {
    fn shown(&self) -> Value {
        match self {
            Self::Fetch => "fetch".into(),
            Self::File(path) => path.shown(),
        }
    }
}

/// The items of a data set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Items {
    /// Texts or addresses.
    List(Vec<Spanned<AnyText>>),
    /// Texts by key.
    Map(Vec<(Spanned<String>, Spanned<AnyText>)>),
}

impl Decode for Items {
    fn expected() -> String {
        "a list of texts, or a map from texts to texts".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        let text = AnyText::schema(registry);
        json!({ "anyOf": [
            { "type": "array", "items": text },
            { "type": "object", "additionalProperties": text },
        ] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match &node.value {
            NodeValue::List(items) => {
                let decoded = items.iter().filter_map(|item| Spanned::decode(item, context));
                Some(Self::List(decoded.collect()))
            }
            NodeValue::Map(entries) => {
                let decoded = entries.iter().filter_map(|entry| {
                    let key =
                        Spanned { value: entry.key.clone(), span: entry.key_span, given: true };
                    let value = context
                        .within_key(&entry.key, |context| Spanned::decode(&entry.value, context));
                    Some((key, value?))
                });
                Some(Self::Map(decoded.collect()))
            }
            NodeValue::Null | NodeValue::Scalar(_) => {
                context.mismatch(node, &Self::expected(), None);
                None
            }
        }
    }
}
