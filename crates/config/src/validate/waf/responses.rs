//! The settings for the inspection of responses.

use std::sync::Arc;

use super::raw;
use crate::decode::{Context, Spanned};
use crate::quote::clip;
use crate::scalar::Text;
use crate::snapshot::Responses;
use weir_waf::plan::View;

/// Default media types of inspected bodies.
const TYPES: [&str; 5] =
    ["text/html", "text/plain", "text/xml", "application/json", "application/xml"];

/// The response settings of a section, if valid; the inner `None`: responses are not inspected.
pub(super) fn wanted(raw: &raw::Waf, context: &mut Context) -> Option<Option<Arc<Responses>>> {
    let Some(responses) = raw.responses.as_ref().map(|responses| &responses.value) else {
        return Some(None);
    };
    let types: Vec<Box<str>> = match &responses.types {
        None => TYPES.into_iter().map(Into::into).collect(),
        Some(types) => {
            let types: Vec<_> = types.iter().map(|name| media_type(name, context)).collect();
            types.into_iter().collect::<Option<_>>()?
        }
    };
    let bytes_max = usize::try_from(responses.size_max.value.0).unwrap_or(usize::MAX);
    Some(Some(Arc::new(Responses { bytes_max, types })))
}

/// Warns of response settings without rules that inspect responses.
pub(super) fn warn_of_no_effect(raw: &raw::Waf, view: &View, context: &mut Context) {
    if let Some(responses) = raw.responses.as_ref().filter(|_| !view.looks_at_responses()) {
        let message = "`responses` has no effect: no rule looks at responses";
        let help = "remove it, or use rules that do, such as those of OWASP CRS";
        context.warning_help(responses.span, message, help);
    }
}

/// A media type without parameters, or all types of a kind.
fn media_type(name: &Spanned<Text>, context: &mut Context) -> Option<Box<str>> {
    let text = name.value.0.to_ascii_lowercase();
    let is_token = |part: &str| {
        let is_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        !part.is_empty() && part.bytes().all(is_byte)
    };
    let is_sound = text
        .split_once('/')
        .is_some_and(|(kind, subtype)| is_token(kind) && (subtype == "*" || is_token(subtype)));
    if !is_sound {
        let message = format!("`{}` is not a media type", clip(&name.value.0));
        context.error_help(name.span, message, "write it as `text/html`, or `text/*`");
        return None;
    }
    Some(text.into())
}
