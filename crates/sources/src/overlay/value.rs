//! Conversion of a change's value between JSON and nodes of the tree.

use serde_json::{Map, Number, Value};
use weir_config::document::{Entry, Node, NodeValue, Scalar, ScalarKind, Span, Style};
use weir_config::{Pointers, without_secrets};

/// Converts a value to nodes. `pointer`: the number of its path.
pub(super) fn node(value: &Value, pointer: usize, pointers: &mut Pointers) -> Node {
    let span = Span::overlaid(pointer);
    let scalar = |text: String, style| Node::new(span, NodeValue::Scalar(Scalar { text, style }));
    match value {
        Value::Null => Node::new(span, NodeValue::Null),
        Value::Bool(value) => scalar(value.to_string(), Style::Plain),
        Value::Number(value) => scalar(value.to_string(), Style::Plain),
        Value::String(text) => scalar(text.clone(), Style::Quoted),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let node_of = |(index, item): (usize, &Value)| {
                let below = pointers.below(pointer, &index.to_string());
                node(item, below, pointers)
            };
            Node::list(span, items.map(node_of).collect())
        }
        Value::Object(entries) => {
            let entry_of = |(key, value): (&String, &Value)| {
                let below = pointers.below(pointer, key);
                Entry {
                    key: key.clone(),
                    key_span: Span::overlaid(below),
                    value: node(value, below, pointers),
                }
            };
            Node::map(span, entries.iter().map(entry_of).collect())
        }
    }
}

/// Converts nodes to a value.
pub(crate) fn json(node: &Node) -> Value {
    match &node.value {
        NodeValue::Null => Value::Null,
        NodeValue::Scalar(scalar) => match scalar.kind() {
            ScalarKind::Boolean => Value::Bool(scalar.text.eq_ignore_ascii_case("true")),
            ScalarKind::Number => number(&scalar.text),
            ScalarKind::Text => Value::String(scalar.text.clone()),
        },
        NodeValue::List(items) => Value::Array(items.iter().map(json).collect()),
        NodeValue::Map(entries) => {
            let pairs = entries.iter().map(|entry| (entry.key.clone(), json(&entry.value)));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

/// A number; as text if JSON cannot represent it.
fn number(text: &str) -> Value {
    let whole = text.parse::<u64>().map(Number::from);
    let whole = whole.or_else(|_| text.parse::<i64>().map(Number::from));
    let number = whole.ok().or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64));
    number.map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

/// Whether two nodes have the same value, wherever they are.
pub(super) fn same(one: &Node, other: &Node) -> bool {
    match (&one.value, &other.value) {
        (NodeValue::Null, NodeValue::Null) => true,
        (NodeValue::Scalar(one), NodeValue::Scalar(other)) => {
            one.text == other.text && one.kind() == other.kind()
        }
        (NodeValue::List(one), NodeValue::List(other)) => {
            let mut pairs = one.iter().zip(other.iter());
            one.len() == other.len() && pairs.all(|(one, other)| same(one, other))
        }
        (NodeValue::Map(entries), NodeValue::Map(others)) => {
            let has_it = |entry: &Entry| {
                other.get(&entry.key).is_some_and(|value| same(&entry.value, value))
            };
            entries.len() == others.len() && entries.iter().all(has_it)
        }
        _ => false,
    }
}

/// The value without passwords and shared keys. `keys`: the keys above the value.
pub(super) fn concealed(keys: &[String], value: &Value) -> Value {
    let node = node(value, Pointers::ROOT, &mut Pointers::default());
    json(&without_secrets(keys, &node))
}

/// The approximate size as JSON.
pub(super) fn bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| bytes(item) + 1).sum::<usize>() + 2,
        Value::Object(entries) => {
            let of_entry = |(key, value): (&String, &Value)| key.len() + bytes(value) + 4;
            entries.iter().map(of_entry).sum::<usize>() + 2
        }
    }
}

/// The nesting depth of lists and maps: 0 for a scalar.
pub(super) fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(entries) => entries.values().map(depth).max(),
        _ => return 0,
    };
    deepest.unwrap_or(0) + 1
}
