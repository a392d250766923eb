//! Data sets with items from the configuration or from files.

use std::collections::HashMap;
use std::path::Path;

use weir_core::expression::{DataSet, DataSets, Network, NetworkError};
use weir_core::unseen::unseen;

use super::files::{LIST_BYTES_MAX, read_text};
use crate::decode::{Context, NamedItem, Spanned};
use crate::document::Span;
use crate::quote::clip;
use crate::raw::policy as raw;
use crate::shapes::{AnyText, FilePath, Items};

/// An item and its place: in the configuration, or in a line of a file.
struct Item {
    text: String,
    span: Span,
    line: Option<usize>,
}

/// All valid data sets; errors have been reported.
pub(super) fn data_sets(
    items: &[NamedItem<raw::DataSet>],
    directory: &Path,
    context: &mut Context,
) -> DataSets {
    let mut sets = DataSets::new();
    for item in items {
        if let Some(set) = item.value.as_ref().and_then(|raw| one(raw, item, directory, context)) {
            sets.insert(item.name.as_str(), set);
        }
    }
    sets
}

fn one(
    raw: &raw::DataSet,
    item: &NamedItem<raw::DataSet>,
    directory: &Path,
    context: &mut Context,
) -> Option<DataSet> {
    let kind = raw.kind.as_ref()?.value;
    if kind == raw::DataSetType::Map {
        return pairs(raw, item, directory, context).map(DataSet::map);
    }
    let texts = match (&raw.items, &raw.file) {
        (Some(items), None) => match &items.value {
            Items::List(list) => list.iter().map(given).collect(),
            Items::Map(_) => {
                context.error_help(items.span, "these items are a map", "set `type: map`");
                return None;
            }
        },
        (None, Some(path)) => lines(path, directory, context)?,
        _ => return neither_nor(raw, item, context),
    };
    if kind == raw::DataSetType::Strings {
        texts.iter().for_each(|item| warn_of_unseen(item, context));
        return Some(DataSet::strings(texts.iter().map(|item| &item.text)));
    }
    let set = DataSet::addresses(texts.iter().map(|item| &item.text)).ok();
    if set.is_none() {
        texts.iter().for_each(|item| refuse_address(item, context));
    }
    set
}

/// Reports an item that is neither an address nor a network.
fn refuse_address(item: &Item, context: &mut Context) {
    let Err(error) = Network::parse(&item.text) else { return };
    let place = item.line.map_or_else(String::new, |line| format!("line {line}: "));
    let message = format!("{place}\"{}\": {error}", clip(&item.text));
    let help = match error {
        NetworkError::HostBits(meant) => format!("write {meant}"),
        NetworkError::Syntax => "write it as 10.0.0.1, 10.0.0.0/8 or 2001:db8::/32".into(),
    };
    context.error_help(item.span, message, help);
}

/// Warns of an item with a character that nobody sees: no request has it, so the item matches nothing.
fn warn_of_unseen(item: &Item, context: &mut Context) {
    let Some(found) = unseen(&item.text) else { return };
    let place = item.line.map_or_else(String::new, |line| format!("line {line}: "));
    let shown = clip(&item.text);
    let message = format!("{place}\"{shown}\" has the unseen character U+{:04X}", u32::from(found));
    context.warning_help(item.span, message, "write it anew; each line of a file is one item");
}

fn given(item: &Spanned<AnyText>) -> Item {
    Item { text: item.value.0.clone(), span: item.span, line: None }
}

fn neither_nor<T>(
    raw: &raw::DataSet,
    item: &NamedItem<raw::DataSet>,
    context: &mut Context,
) -> Option<T> {
    let (span, message) = match (&raw.items, &raw.file) {
        (Some(_), Some(file)) => (file.span, "both `items` and `file` are given"),
        _ => (item.name_span, "a data set needs `items` or `file`"),
    };
    context.error_help(span, message, "give one of them");
    None
}

/// The lines of a file that contain items.
fn lines(path: &Spanned<FilePath>, directory: &Path, context: &mut Context) -> Option<Vec<Item>> {
    let text = read_text(path, directory, LIST_BYTES_MAX, context)?;
    let counts = |line: &str| !line.is_empty() && !line.starts_with('#');
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| counts(line));
    let item = |(index, line): (usize, &str)| Item {
        text: line.to_owned(),
        span: path.span,
        line: Some(index + 1),
    };
    Some(lines.map(item).collect())
}

fn pairs(
    raw: &raw::DataSet,
    item: &NamedItem<raw::DataSet>,
    directory: &Path,
    context: &mut Context,
) -> Option<Vec<(String, String)>> {
    match (&raw.items, &raw.file) {
        (Some(items), None) => match &items.value {
            Items::Map(map) => {
                for (key, _) in map {
                    let (text, span) = (key.value.clone(), key.span);
                    warn_of_unseen(&Item { text, span, line: None }, context);
                }
                let pairs =
                    map.iter().map(|(key, value)| (key.value.clone(), value.value.0.clone()));
                Some(pairs.collect())
            }
            Items::List(_) => {
                let help = "write { key: value, … }, or set `type: strings`";
                context.error_help(items.span, "these items are a list", help);
                None
            }
        },
        (None, Some(path)) => {
            let pairs = lines(path, directory, context)?.into_iter().map(|item| {
                warn_of_unseen(&item, context);
                match item.text.split_once([' ', '\t']) {
                    Some((key, value)) => Some((key.to_owned(), value.trim().to_owned())),
                    None => {
                        let line = item.line.unwrap_or(0);
                        let message = format!("line {line} has a key and no value");
                        context.error_help(item.span, message, "write `key value`");
                        None
                    }
                }
            });
            let pairs: Vec<Option<(String, String)>> = pairs.collect();
            let pairs = pairs.into_iter().collect::<Option<Vec<_>>>()?;
            warn_of_repeated(&pairs, path, context);
            Some(pairs)
        }
        _ => neither_nor(raw, item, context),
    }
}

/// Warns of the first key with two values in a file: only the last one counts.
fn warn_of_repeated(pairs: &[(String, String)], path: &Spanned<FilePath>, context: &mut Context) {
    let mut known = HashMap::with_capacity(pairs.len());
    let differs = |(key, value): &&(String, String)| {
        known.insert(key.clone(), value.clone()).is_some_and(|before| before != *value)
    };
    let Some((key, _)) = pairs.iter().find(differs) else { return };
    let shown = path.value.0.display();
    let message = format!("{shown}: the key \"{}\" is there twice, with two values", clip(key));
    context.warning_help(path.span, message, "remove one: the last one counts");
}
