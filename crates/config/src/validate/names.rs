//! Lookup of a file's definitions by name.

use std::collections::BTreeMap;

use crate::decode::{Context, NamedItem, Spanned};
use crate::document::Span;
use crate::hints::nearest;
use crate::quote::clip;
use crate::scalar::Name;

/// The indexes of items by name.
pub(super) fn by_name<T>(items: &[NamedItem<T>]) -> BTreeMap<&str, usize> {
    let names = items.iter().map(|item| item.name.as_str());
    names.enumerate().map(|(index, name)| (name, index)).collect()
}

/// The index of a definition; an unknown name is reported.
pub(super) fn find(
    kind: &str,
    known: &BTreeMap<&str, usize>,
    name: &Spanned<Name>,
    context: &mut Context,
) -> Option<usize> {
    let wanted = name.value.0.as_str();
    let found = known.get(wanted).copied();
    if found.is_none() {
        undefined(kind, &clip(wanted), name.span, known.keys().copied(), context);
    }
    found
}

/// Reports an undefined name of this kind, with a suggestion.
pub(super) fn undefined<'a>(
    kind: &str,
    wanted: &str,
    span: Span,
    known: impl Iterator<Item = &'a str> + Clone,
    context: &mut Context,
) {
    const SHOWN_MAX: usize = 5;
    let message = format!("{kind} `{wanted}` is not defined");
    if context.is_full() {
        context.error(span, message);
        return;
    }
    let suggestion = if let Some(near) = nearest(wanted, known.clone()) {
        format!("did you mean `{near}`?")
    } else {
        let mut shown: Vec<String> =
            known.take(SHOWN_MAX + 1).map(|name| format!("`{name}`")).collect();
        if shown.len() > SHOWN_MAX {
            shown[SHOWN_MAX] = "…".into();
        }
        if shown.is_empty() {
            format!("no {kind} is defined at all")
        } else {
            format!("defined: {}", shown.join(", "))
        }
    };
    context.error_help(span, message, suggestion);
}
