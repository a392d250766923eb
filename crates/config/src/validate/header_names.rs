//! The names of the headers that policies change.

use weir_core::policy::{FieldAction, FieldChange};

use crate::decode::{Context, Spanned};
use crate::shapes::FieldName;

/// The actions that remove these headers; a name with a star at its end stands for all headers with that prefix.
pub(super) fn remove(
    names: &[Spanned<FieldName>],
    context: &mut Context,
) -> Option<Vec<FieldAction>> {
    let is_sound = names.iter().filter(|name| !may_be_changed(name, context)).count() == 0;
    let fields = names.iter().map(|name| {
        let text = name.value.0.as_str();
        let (name, change) = match text.strip_suffix('*') {
            Some(prefix) => (prefix, FieldChange::RemovePrefix),
            None => (text, FieldChange::Remove),
        };
        FieldAction { name: name.into(), change }
    });
    is_sound.then(|| fields.collect())
}

/// Whether policies may change a header; if not, that is reported.
pub(super) fn may_be_changed(name: &Spanned<FieldName>, context: &mut Context) -> bool {
    let Some(instead) = name.value.is_framing() else {
        return true;
    };
    let message = format!("a policy cannot change the header `{}`", name.value.0);
    context.error_help(name.span, message, instead);
    false
}
