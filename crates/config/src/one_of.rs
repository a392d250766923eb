//! Maps that have exactly one of several keys.

use crate::decode::{Context, Decode};
use crate::document::{Entry, Node, NodeValue};
use crate::hints::meant;
use crate::quote::clip;

/// The result of [`the_one`].
pub(crate) enum TheOne<'a, T> {
    /// A word alone.
    Word(T),
    /// The only entry of a map, and the known key that it has or probably means.
    Entry(&'static str, &'a Entry),
}

/// The known key of a map that must have exactly one, or a word instead of the map; used by `one_of!`.
pub(crate) fn the_one<'a, T: Decode + Clone>(
    node: &'a Node,
    keys: &[&'static str],
    words: &[(&str, T)],
    context: &mut Context,
) -> Option<TheOne<'a, T>> {
    let known = || keys.iter().copied().chain(words.iter().map(|(word, _)| *word));
    match &node.value {
        NodeValue::Scalar(scalar) => {
            if let Some((_, word)) = words.iter().find(|(word, _)| *word == scalar.text) {
                return Some(TheOne::Word(word.clone()));
            }
            let suggestion = if keys.contains(&scalar.text.as_str()) {
                Some(format!("`{0}` needs a value: `{{ {0}: … }}`", scalar.text))
            } else {
                meant(&scalar.text, known()).map(|near| format!("did you mean `{near}`?"))
            };
            context.mismatch(node, &T::expected(), suggestion);
            None
        }
        NodeValue::Map(entries) => {
            let [entry] = entries.as_slice() else {
                let message = format!(
                    "{} has {} keys, and must have exactly one",
                    context.path(),
                    entries.len()
                );
                let help = "make each a separate list item: `[ { a: … }, { b: … } ]`";
                context.error_help(node.span, message, help);
                return None;
            };
            if let Some(key) = keys.iter().find(|key| **key == entry.key) {
                return Some(TheOne::Entry(key, entry));
            }
            if let Some((word, value)) = words.iter().find(|(word, _)| *word == entry.key) {
                let message = format!("`{word}` in {} takes no value", context.path());
                context.error_help(
                    entry.key_span,
                    message,
                    format!("write `{word}` without a map"),
                );
                return Some(TheOne::Word(value.clone()));
            }
            let message = format!("unknown key `{}` in {}", clip(&entry.key), context.path());
            let meant = meant(&entry.key, known());
            let suggestion = match meant {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let known: Vec<String> = known().map(|key| format!("`{key}`")).collect();
                    format!("known: {}", known.join(", "))
                }
            };
            context.error_help(entry.key_span, message, suggestion);
            let key = keys.iter().find(|key| Some(**key) == meant)?;
            Some(TheOne::Entry(key, entry))
        }
        NodeValue::Null | NodeValue::List(_) => {
            context.mismatch(node, &T::expected(), None);
            None
        }
    }
}
