//! Checks that schema, reference, examples and documentation agree.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::document::{self, Node, NodeValue, ScalarKind};
use crate::{Severity, json_schema, parse, reference_markdown};

const REFERENCE_BEGIN: &str = "<!-- reference: generated from crates/config/src/raw/ -->\n";
const REFERENCE_END: &str = "<!-- end of reference -->";

/// Set to 1 to rewrite the reference in the documentation instead of comparing it.
const UPDATE_VARIABLE: &str = "WEIR_UPDATE_REFERENCE";

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn examples() -> Vec<(PathBuf, String)> {
    let directory = std::fs::read_dir(project("examples")).expect("the folder of examples");
    let mut examples: Vec<(PathBuf, String)> = directory
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| (path.clone(), read(&path)))
        .collect();
    examples.sort();
    assert!(examples.len() >= 3);
    examples
}

/// Converts a node as any YAML parser would.
fn json(node: &Node) -> Value {
    match &node.value {
        NodeValue::Null => Value::Null,
        NodeValue::List(items) => items.iter().map(json).collect(),
        NodeValue::Map(entries) => {
            let members = entries.iter().map(|entry| (entry.key.clone(), json(&entry.value)));
            Value::Object(members.collect())
        }
        NodeValue::Scalar(scalar) => match scalar.kind() {
            ScalarKind::Text => scalar.text.as_str().into(),
            ScalarKind::Boolean => (scalar.text == "true").into(),
            ScalarKind::Number => scalar.text.parse::<u64>().map_or(Value::Null, Value::from),
        },
    }
}

fn to_json(text: &str) -> Value {
    let (root, findings) = document::parse(&document::Lines::new(text));
    assert_eq!(findings, []);
    json(&root.expect("a document"))
}

/// The subset of JSON Schema that the schema uses. Unknown keywords fail, so no part stays unchecked.
struct Validator {
    schema: Value,
    /// `Section.key` of every property in a valid value.
    used: BTreeSet<String>,
}

impl Validator {
    fn new() -> Self {
        Self { schema: json_schema(), used: BTreeSet::new() }
    }

    fn validate(&mut self, value: &Value) -> Result<(), String> {
        let root = self.schema["$ref"].clone();
        self.reference(&root, value)
    }

    fn reference(&mut self, reference: &Value, value: &Value) -> Result<(), String> {
        let name = reference.as_str().unwrap_or_default().replace("#/$defs/", "");
        let definition = self.schema["$defs"][&name].clone();
        assert!(definition.is_object(), "no definition {name}");
        self.apply(&name, &definition, value)
    }

    fn apply(&mut self, section: &str, schema: &Value, value: &Value) -> Result<(), String> {
        if let Value::Bool(accepts) = schema {
            return if *accepts { Ok(()) } else { Err(format!("{section}: {value} is refused")) };
        }
        for (keyword, argument) in schema.as_object().expect("a schema is an object") {
            let valid = match keyword.as_str() {
                "description" | "default" => true,
                "$ref" => {
                    self.reference(argument, value)?;
                    true
                }
                "type" => match argument.as_str().expect("one type") {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "integer" => value.is_u64(),
                    "boolean" => value.is_boolean(),
                    "number" => value.is_number(),
                    other => panic!("type {other}"),
                },
                "const" => value == argument,
                "enum" => argument.as_array().expect("a list").contains(value),
                "minimum" => value.as_u64() >= argument.as_u64(),
                "maximum" => value.as_u64() <= argument.as_u64(),
                "minLength" => value.as_str().is_some_and(|text| !text.is_empty()),
                "maxLength" => length(value) <= argument.as_u64(),
                "minItems" => value.as_array().is_some_and(|items| !items.is_empty()),
                "pattern" => matches(argument, value.as_str().unwrap_or_default()),
                "anyOf" => argument
                    .as_array()
                    .expect("a list")
                    .iter()
                    .any(|schema| self.apply(section, schema, value).is_ok()),
                "allOf" => {
                    for schema in argument.as_array().expect("a list") {
                        self.apply(section, schema, value)?;
                    }
                    true
                }
                // Beside "if".
                "then" => true,
                "if" if self.apply(section, argument, value).is_err() => true,
                "if" => {
                    self.apply(section, &schema["then"], value)?;
                    true
                }
                "minProperties" => keys(value).count() as u64 >= argument.as_u64().unwrap_or(0),
                "maxProperties" => keys(value).count() as u64 <= argument.as_u64().unwrap_or(0),
                "items" => {
                    for item in value.as_array().into_iter().flatten() {
                        self.apply(section, argument, item)?;
                    }
                    true
                }
                "required" => argument
                    .as_array()
                    .expect("a list")
                    .iter()
                    .all(|key| value.get(key.as_str().unwrap_or_default()).is_some()),
                "properties" => self.properties(section, argument, value)?,
                "propertyNames" => keys(value).all(|key| matches(&argument["pattern"], key)),
                "additionalProperties" => self.additional(section, schema, argument, value)?,
                other => panic!("keyword {other}"),
            };
            if !valid {
                return Err(format!("{section}: {value} against {keyword}: {argument}"));
            }
        }
        Ok(())
    }

    fn properties(
        &mut self,
        section: &str,
        properties: &Value,
        value: &Value,
    ) -> Result<bool, String> {
        for (key, item) in value.as_object().into_iter().flatten() {
            if let Some(schema) = properties.get(key) {
                self.apply(section, &schema.clone(), item)?;
                self.used.insert(format!("{section}.{key}"));
            }
        }
        Ok(true)
    }

    fn additional(
        &mut self,
        section: &str,
        schema: &Value,
        argument: &Value,
        value: &Value,
    ) -> Result<bool, String> {
        if argument == &Value::Bool(false) {
            return Ok(keys(value).all(|key| schema["properties"].get(key).is_some()));
        }
        for item in value.as_object().into_iter().flat_map(Map::values) {
            self.apply(section, argument, item)?;
        }
        Ok(true)
    }
}

fn keys(value: &Value) -> impl Iterator<Item = &str> {
    value.as_object().into_iter().flat_map(Map::keys).map(String::as_str)
}

fn length(value: &Value) -> Option<u64> {
    value.as_str().and_then(|text| u64::try_from(text.len()).ok())
}

fn matches(pattern: &Value, text: &str) -> bool {
    let pattern = pattern.as_str().expect("a pattern is text");
    regex::Regex::new(pattern).expect(pattern).is_match(text)
}

/// `Section.key` of every property of the schema.
fn all_keys() -> BTreeSet<String> {
    let schema = json_schema();
    let sections = schema["$defs"].as_object().expect("definitions");
    sections
        .iter()
        .flat_map(|(name, section)| {
            keys(&section["properties"]).map(move |key| format!("{name}.{key}"))
        })
        .collect()
}

#[test]
fn the_schema_accepts_the_examples_and_they_use_every_key() {
    let mut validator = Validator::new();
    for (path, text) in examples() {
        let outcome = validator.validate(&to_json(&text));
        assert_eq!(outcome, Ok(()), "{}", path.display());
    }
    let unused: Vec<String> = all_keys().difference(&validator.used).cloned().collect();
    assert!(unused.is_empty(), "no example has {unused:?}: use them in a file of examples/");
}

#[test]
fn the_schema_refuses_what_the_decoder_refuses() {
    let minimal = read(&project("examples/minimal.yaml"));
    let cases = [
        ("listen: 127.0.0.1:8080", "listen: localhost:8080"),
        ("listen: 127.0.0.1:8080", "lisen: 127.0.0.1:8080"),
        ("listen: 127.0.0.1:8080", "listen: []"),
        ("pool: web", "pool: web\n    http: { idle_timeout: 30 }"),
        ("pool: web", "pool: web\n    http: { body_size_max: 30KB }"),
        ("pool: web", "pool: web\n    type: sctp"),
        ("pool: web", "pool: web\n    udp: {}"),
        ("pool: web", "pool: web\n    type: http\n    udp: {}"),
        ("pool: web", "pool: web\n    type: tcp\n    waf: { mode: block }"),
        ("pool: web", "type: tcp"),
        ("pool: web", "pool: web\n    limits: { connections: 0 }"),
        ("    pool: web\n", ""),
        ("127.0.0.1:9001", "{ weight: 3 }"),
        ("127.0.0.1:9001", "127.0.0.1:"),
        ("127.0.0.1:9001 ]", "127.0.0.1:9001 ]\n    monitors: [ { type: ping } ]"),
        ("127.0.0.1:9001 ]", "127.0.0.1:9001 ]\n    monitors: [ { type: tcp, path: / } ]"),
    ];
    for (from, to) in cases {
        let text = minimal.replace(from, to);
        assert_ne!(text, minimal);
        assert!(parse("weir.yaml", &text).config.is_none(), "decoder: {text}");
        assert!(Validator::new().validate(&to_json(&text)).is_err(), "schema: {text}");
    }
}

#[test]
fn defaults_are_values_that_the_schema_accepts() {
    let mut validator = Validator::new();
    let sections = validator.schema["$defs"].clone();
    for (name, section) in sections.as_object().expect("definitions") {
        for (key, property) in section["properties"].as_object().expect("properties") {
            if let Some(default) = property.get("default") {
                let outcome = validator.apply(name, property, default);
                assert_eq!(outcome, Ok(()), "{name}.{key}");
            }
        }
    }
}

#[test]
fn the_reference_is_the_declarations() {
    let path = project("docs/configuration.md");
    let text = read(&path);
    let (before, rest) = text.split_once(REFERENCE_BEGIN).expect("the reference begins");
    let (reference, after) = rest.split_once(REFERENCE_END).expect("the reference ends");
    let expected = format!("\n{}", reference_markdown());
    if std::env::var_os(UPDATE_VARIABLE).is_some_and(|value| value == "1") {
        let updated = format!("{before}{REFERENCE_BEGIN}{expected}{REFERENCE_END}{after}");
        std::fs::write(&path, updated).expect("a writable file");
        return;
    }
    assert!(
        reference == expected,
        "docs/configuration.md is not up to date: run `{UPDATE_VARIABLE}=1 cargo test -p weir-config documentation`"
    );
    for key in all_keys() {
        let (_, key) = key.split_once('.').expect("section and key");
        assert!(reference.contains(&format!("| `{key}` |")), "the reference lacks {key}");
    }
}

/// Every YAML block of the documentation is valid after its missing parts are added.
#[test]
fn the_documentation_s_examples_are_sound() {
    const DOCUMENTS: [&str; 7] = [
        "docs/configuration.md",
        "docs/rollouts.md",
        "docs/first-minutes.md",
        "docs/migrate-big-ip.md",
        "docs/migrate-netscaler.md",
        "docs/migrate-haproxy.md",
        "docs/migrate-nginx.md",
    ];
    let text = DOCUMENTS.map(|path| read(&project(path)));
    let text = text.concat();
    let blocks: Vec<&str> = text
        .split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .collect();
    assert!(blocks.len() >= 5);
    for block in blocks {
        // Test certificates replace the reader's.
        let mut file = block.replace("shop.crt", "shop-ec.crt").replace("shop.key", "shop-ec.key");
        if !block.contains("virtual_servers:") {
            file.push_str("\nvirtual_servers: { added: { listen: 127.0.0.1:80, pool: web } }\n");
        }
        if !block.contains("pools:") {
            file.push_str("\npools: { web: { members: [ 127.0.0.1:9001 ] } }\n");
        }
        let loaded = parse(&project("examples/tls/weir.yaml").display().to_string(), &file);
        let errors: Vec<_> = loaded
            .diagnostics
            .iter()
            .filter(|finding| finding.severity == Severity::Error)
            .collect();
        assert!(errors.is_empty(), "{errors:?}\n{file}");
    }
}

/// The YAML examples of a document, with the number of the line before each.
fn shown(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut open) = (Vec::new(), None);
    for (number, line) in (1..).zip(text.lines()) {
        match (line.trim(), &mut open) {
            ("```yaml", None) => open = Some((number, String::new())),
            ("```", Some(_)) => found.extend(open.take()),
            (_, Some((_, example))) => *example += &format!("{line}\n"),
            _ => {}
        }
    }
    found
}

/// The documents for users.
fn documents() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(project("docs")).expect("the folder of documents");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let is_document = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md");
    paths.filter(is_document).chain([project("README.md")]).collect()
}

#[test]
fn examples_in_documents_are_yaml() {
    let (mut count, mut problems) = (0, Vec::new());
    for document in documents() {
        for (line, example) in shown(&read(&document)) {
            count += 1;
            let (_, findings) = document::parse(&document::Lines::new(&example));
            problems.extend(
                findings
                    .first()
                    .map(|finding| format!("{}:{line}: {}", document.display(), finding.message)),
            );
        }
    }
    assert!(count >= 50, "{count}");
    assert_eq!(problems, [""; 0]);
}

/// Each example, and each piece of YAML in the documents, is written with its comments so that it is read as the same.
#[test]
fn examples_are_written_as_they_are_read() {
    let mut texts: Vec<(String, String)> = Vec::new();
    for (path, text) in examples() {
        texts.push((path.display().to_string(), text));
    }
    for document in documents() {
        let of_document = shown(&read(&document)).into_iter();
        texts.extend(
            of_document.map(|(line, text)| (format!("{}:{line}", document.display()), text)),
        );
    }
    let parse = |text: &str| {
        let (name, source) = ("a.yaml".into(), document::SourceId::MAIN);
        document::Document::read(name, source, text.into(), 0).with_comments()
    };
    let values = |document: &document::Document| document.root.as_ref().map(json);
    let mut comments = 0;
    for (place, text) in texts {
        let first = parse(&text);
        let written = first.to_yaml();
        let again = parse(&written);
        assert_eq!(again.findings, [], "{place}\n{written}");
        assert_eq!(values(&again), values(&first), "{place}\n{written}");
        assert_eq!(again.to_yaml(), written, "{place}");
        // A line of a text that is no comment may contain ` #`; lines that begin with it are comments.
        let own_lines = |text: &str| {
            let lines = text.lines().map(str::trim_start).filter(|line| line.starts_with('#'));
            lines.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>()
        };
        comments += own_lines(&written).len();
        assert_eq!(own_lines(&written), own_lines(&text), "{place}\n{written}");
    }
    assert!(comments >= 50, "{comments}");
}

/// The permitted words of a value without an explanation in this schema.
fn unexplained<'s>(schema: &'s Value, words: &mut BTreeSet<&'s str>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| unexplained(item, words)),
        Value::Object(entries) => {
            let meaning = entries.get("description").and_then(Value::as_str);
            if meaning.is_none_or(str::is_empty) {
                let listed = entries.get("enum").and_then(Value::as_array).into_iter().flatten();
                words.extend(
                    entries.get("const").into_iter().chain(listed).filter_map(Value::as_str),
                );
            }
            let inner = entries.iter().filter(|(key, _)| *key != "enum" && *key != "default");
            inner.for_each(|(_, value)| unexplained(value, words));
        }
        _ => {}
    }
}

/// A word such as `off` has another meaning for each key: then the key explains it, as "`off`: no
/// limit".
#[test]
fn each_word_has_a_meaning() {
    let schema = json_schema();
    let (mut count, mut findings) = (0, Vec::new());
    for (name, section) in schema["$defs"].as_object().expect("definitions") {
        for (key, property) in section["properties"].as_object().expect("properties") {
            // The description of the key is not one of its words.
            let mut value = property.clone();
            value.as_object_mut().expect("a schema is an object").remove("description");
            let mut words = BTreeSet::new();
            unexplained(&value, &mut words);
            count += words.len();
            let explained = property["description"].as_str().unwrap_or_default();
            words.retain(|word| !explained.contains(&format!("`{word}`: ")));
            findings.extend(words.into_iter().map(|word| format!("{name}.{key}: {word}")));
        }
    }
    assert!(count >= 10, "words are found: {count}");
    assert_eq!(findings, [""; 0], "explain them");
}

#[test]
fn words_without_a_meaning_are_found() {
    let schema = serde_json::json!({ "anyOf": [
        { "const": "told", "description": "It is." },
        { "const": "untold" },
        { "const": "empty", "description": "" },
        { "type": "array", "items": { "enum": ["listed", 1] } },
        { "$ref": "#/$defs/Other" },
    ], "default": "told" });
    let mut words = BTreeSet::new();
    unexplained(&schema, &mut words);
    assert_eq!(words, BTreeSet::from(["empty", "listed", "untold"]));
}
