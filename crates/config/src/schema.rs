//! The JSON Schema and the reference of the documentation, both from the declarations in `raw`.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::decode::{Decode as _, KeyInfo, Registry, SectionInfo};
use crate::key_types::Types;
use crate::raw::File;
use crate::scalar::one_of;

/// The JSON Schema (draft 2020-12) of a configuration file, for editors and other programs.
pub fn json_schema() -> Value {
    let mut registry = Registry::default();
    let root = File::schema(&mut registry);
    let definitions: Map<String, Value> = registry
        .sections
        .iter()
        .map(|section| (section.name.to_owned(), definition(section)))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Weirgate configuration",
        "$ref": root["$ref"],
        "$defs": definitions,
    })
}

fn definition(section: &SectionInfo) -> Value {
    let properties: Map<String, Value> =
        section.keys.iter().map(|key| (key.key.to_owned(), property(key))).collect();
    let required: Vec<&str> =
        section.keys.iter().filter(|key| key.required).map(|key| key.key).collect();
    let mut definition = json!({
        "description": section.doc,
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        definition["required"] = required.into();
    }
    let either = section.keys.iter().filter_map(|key| Some((key.key, key.or_else?)));
    let either = either.map(|(key, others)| {
        let any = std::iter::once(key).chain(others.split('|'));
        json!({ "anyOf": any.map(|key| json!({ "required": [key] })).collect::<Vec<_>>() })
    });
    let conditions: Vec<Value> = either.chain(foreign(&section.keys)).collect();
    if !conditions.is_empty() {
        definition["allOf"] = conditions.into();
    }
    definition
}

/// For each group of keys with the same types: the keys are refused with any other type. Nothing, if the type is not a
/// key of the section itself.
fn foreign(keys: &[KeyInfo]) -> Vec<Value> {
    let Some(kind) = keys.iter().find(|key| key.key == "type") else { return Vec::new() };
    let default = kind.default.as_ref().and_then(Value::as_str);
    let mut groups: Vec<(&[&str], Map<String, Value>)> = Vec::new();
    for key in keys {
        let others = key.types.as_ref().map_or(&[][..], |types| &types.others);
        if others.is_empty() {
            continue;
        }
        let refused = (key.key.to_owned(), Value::Bool(false));
        match groups.iter_mut().find(|(types, _)| *types == others) {
            Some((_, keys)) => keys.extend([refused]),
            None => groups.push((others, Map::from_iter([refused]))),
        }
    }
    let condition = |(others, keys): (&[&str], Map<String, Value>)| {
        let mut with = json!({ "properties": { "type": { "enum": others } } });
        // Without the key, the default applies.
        if !default.is_some_and(|default| others.contains(&default)) {
            with["required"] = json!(["type"]);
        }
        json!({ "if": with, "then": { "properties": keys } })
    };
    groups.into_iter().map(condition).collect()
}

fn property(key: &KeyInfo) -> Value {
    let mut property = key.schema.clone();
    property["description"] = description(key).into();
    if let Some(default) = &key.default {
        property["default"] = default.clone();
    }
    property
}

/// The meaning of a key, and which types take it.
fn description(key: &KeyInfo) -> String {
    match &key.types {
        Some(Types { of, takers, others }) if !others.is_empty() => {
            format!("{} Only for {of} of type {}.", key.doc, one_of(takers))
        }
        _ => key.doc.clone(),
    }
}

/// The reference part of `docs/configuration.md`: one table per section.
pub fn reference_markdown() -> String {
    let mut registry = Registry::default();
    File::schema(&mut registry);
    let mut text = String::new();
    for section in &registry.sections {
        let title = match section.path {
            "" => "The file".to_owned(),
            path => format!("`{path}`"),
        };
        put(&mut text, format_args!("### {title}\n\n{}\n\n", section.doc));
        // A section has types for all its keys, or for none.
        let (head, line) = match section.keys.iter().any(|key| key.types.is_some()) {
            true => (" types |", "---|"),
            false => ("", ""),
        };
        put(
            &mut text,
            format_args!("| key | value | default |{head} meaning |\n|---|---|---|{line}---|\n"),
        );
        for key in &section.keys {
            let default = match (&key.default, key.required, key.or_else) {
                (_, true, _) => "required".into(),
                (_, _, Some(others)) => {
                    format!("required, unless `{}` is set", others.replace('|', "` or `"))
                }
                (Some(Value::String(text)), ..) => format!("`{text}`"),
                (Some(other), ..) => format!("`{other}`"),
                (None, ..) => "–".into(),
            };
            let types = key.types.as_ref().map(|types| format!(" {} |", shown(types)));
            put(
                &mut text,
                format_args!(
                    "| `{}` | {} | {default} |{} {} |\n",
                    key.key,
                    cell(&key.expected),
                    types.unwrap_or_default(),
                    cell(&meaning(key))
                ),
            );
        }
        text.push('\n');
    }
    text
}

/// The types that take a key, for the cell of a table.
fn shown(types: &Types) -> String {
    match &types.others[..] {
        [] => "all".to_owned(),
        [other] if types.takers.len() > 2 => format!("all except `{other}`"),
        _ => format!("`{}`", types.takers.join("`, `")),
    }
}

/// The meaning of a key, and of each word that is a permitted value.
fn meaning(key: &KeyInfo) -> String {
    let mut text = key.doc.clone();
    let mut words = Vec::new();
    put_words(&key.schema, &mut words);
    for same in words.chunk_by(|(_, one), (_, other)| one == other) {
        let names: Vec<String> = same.iter().map(|(word, _)| format!("`{word}`")).collect();
        let meaning = same.first().map_or("", |(_, meaning)| meaning);
        put(&mut text, format_args!("<br>{}: {meaning}", names.join(", ")));
    }
    text
}

/// Collects the words of a schema that have a meaning, without duplicates. Nested sections have rows of their own.
fn put_words<'s>(schema: &'s Value, words: &mut Vec<(&'s str, &'s str)>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| put_words(item, words)),
        Value::Object(entries) => {
            let text = |key: &str| entries.get(key).and_then(Value::as_str);
            if let (Some(word), Some(meaning)) = (text("const"), text("description"))
                && !words.contains(&(word, meaning))
            {
                words.push((word, meaning));
            }
            entries.values().for_each(|value| put_words(value, words));
        }
        _ => {}
    }
}

/// Formats text for a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a String cannot fail");
}
