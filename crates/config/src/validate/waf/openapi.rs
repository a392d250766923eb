//! Descriptions of applications: OpenAPI 3, as JSON or YAML.

use serde_json::{Map, Number, Value};
use weir_waf::checks::declared::Interface;

use crate::document::{self, Lines, Node, NodeValue, Scalar, Style};

/// Maximum size of a description's file.
pub(super) const FILE_BYTES_MAX: u64 = 16 << 20;

/// Parses a description. The error is the reason.
pub(super) fn load(bytes: &[u8]) -> Result<Interface, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let document = match text.trim_start().starts_with('{') {
        true => serde_json::from_str(text).map_err(|error| error.to_string())?,
        false => yaml(text)?,
    };
    Interface::load(&document)
}

fn yaml(text: &str) -> Result<Value, String> {
    let (root, findings) = document::parse(&Lines::new(text));
    match (root, findings.first()) {
        (_, Some(finding)) => Err(format!("line {}: {}", finding.span.line, finding.message)),
        (Some(root), None) => Ok(value(&root)),
        (None, None) => Err("it is empty".to_owned()),
    }
}

fn value(node: &Node) -> Value {
    match &node.value {
        NodeValue::Null => Value::Null,
        NodeValue::Scalar(scalar) => of_scalar(scalar),
        NodeValue::List(items) => Value::Array(items.iter().map(value).collect()),
        NodeValue::Map(entries) => {
            let pairs = entries.iter().map(|entry| (entry.key.clone(), value(&entry.value)));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

/// The value of an unquoted text by YAML's core schema.
fn of_scalar(scalar: &Scalar) -> Value {
    let text = scalar.text.as_str();
    if scalar.style != Style::Plain {
        return Value::String(text.to_owned());
    }
    let number = || {
        let whole = text.parse::<i64>().map(Number::from).ok();
        whole.or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64))
    };
    match text {
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        text if text.starts_with(|first: char| first.is_ascii_digit() || first == '-') => {
            number().map_or_else(|| Value::String(text.to_owned()), Value::Number)
        }
        text => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"openapi":"3.0.0","paths":{"/a":{"get":{"parameters":[
        {"name":"n","in":"query","schema":{"type":"integer","maximum":5}}]}}}}"#;
    const YAML: &str = "openapi: 3.0.0\npaths:\n  /a:\n    get:\n      parameters:\n        - name: n\n          in: query\n          schema: { type: integer, maximum: 5 }\n";

    #[test]
    fn both_forms_say_the_same() {
        let json: Value = serde_json::from_str(JSON).expect("JSON");
        assert_eq!(yaml(YAML).expect("YAML"), json);
        assert!(load(JSON.as_bytes()).is_ok() && load(YAML.as_bytes()).is_ok());
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, expected) in [
            ("", "empty"),
            ("{", "EOF"),
            ("a: [", "line"),
            ("openapi: 2.0.0", "documents of version 3"),
            ("openapi: 3.1.0", "`paths` is missing"),
            ("\u{0}", "line"),
        ] {
            let error = load(text.as_bytes()).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(load(b"\xff").is_err());
    }
}
