//! The JSON Schema and the reference of the documentation, both from the declarations in `raw`.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::decode::{Decode as _, KeyInfo, Registry, SectionInfo};
use crate::raw::File;

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
    let either: Vec<Value> = either
        .map(|(key, others)| {
            let any = std::iter::once(key).chain(others.split('|'));
            json!({ "anyOf": any.map(|key| json!({ "required": [key] })).collect::<Vec<_>>() })
        })
        .collect();
    if !either.is_empty() {
        definition["allOf"] = either.into();
    }
    definition
}

fn property(key: &KeyInfo) -> Value {
    let mut property = key.schema.clone();
    property["description"] = key.doc.as_str().into();
    if let Some(default) = &key.default {
        property["default"] = default.clone();
    }
    property
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
        put(&mut text, format_args!("| key | value | default | meaning |\n|---|---|---|---|\n"));
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
            put(
                &mut text,
                format_args!(
                    "| `{}` | {} | {default} | {} |\n",
                    key.key,
                    cell(&key.expected),
                    cell(&meaning(key))
                ),
            );
        }
        text.push('\n');
    }
    text
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
