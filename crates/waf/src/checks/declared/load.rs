//! Loads an OpenAPI 3 document.

use serde_json::{Map, Value};

use super::schema::Format;
use super::{
    BodyValues, Interface, Kind, Location, Operation, Parameter, PathItem, Schema, Segment,
};
use crate::seclang::Pattern;

/// Maximum nesting depth of schemas. Deeper values are not checked.
const DEPTH_MAX: usize = 8;
/// Maximum number of values in one body.
const VALUES_MAX: usize = 2_000;
/// Maximum number of consecutive references.
const REFERENCES_MAX: usize = 16;

const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

impl Interface {
    /// Loads a document. The error names the invalid place.
    pub fn load(document: &Value) -> Result<Self, String> {
        let version = document["openapi"].as_str().unwrap_or_default();
        if !version.starts_with("3.") {
            return Err(format!("`openapi` is {version:?}: documents of version 3 are read"));
        }
        let loader = Loader { document };
        let base = document["servers"][0]["url"].as_str().unwrap_or_default();
        let base = base
            .split_once("://")
            .map_or(base, |(_, rest)| rest.find('/').map_or("", |at| &rest[at..]));
        let mut paths = Vec::new();
        let declared = document["paths"].as_object().ok_or("`paths` is missing")?;
        for (path, item) in declared {
            let item = loader.resolved(item)?;
            let operations = loader.operations(item).map_err(|it| format!("{path}: {it}"))?;
            paths.push(PathItem { segments: segments(path)?, operations });
        }
        Ok(Self { base: base.trim_end_matches('/').into(), paths })
    }
}

fn segments(path: &str) -> Result<Vec<Segment>, String> {
    let below =
        path.strip_prefix('/').ok_or_else(|| format!("the path `{path}` begins with no slash"))?;
    let segment = |text: &str| match text.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
        Some(name) => Ok(Segment::Parameter(name.into())),
        None if text.contains(['{', '}']) => {
            Err(format!("the path `{path}` has a parameter that is a part of a segment"))
        }
        None => Ok(Segment::Text(text.into())),
    };
    below.split('/').map(segment).collect()
}

struct Loader<'a> {
    document: &'a Value,
}

impl<'a> Loader<'a> {
    /// Resolves a value that may be a reference within the document.
    fn resolved(&self, value: &'a Value) -> Result<&'a Value, String> {
        let mut at = value;
        for _ in 0..REFERENCES_MAX {
            let Some(reference) = at["$ref"].as_str() else { return Ok(at) };
            let pointer = reference
                .strip_prefix('#')
                .ok_or_else(|| format!("`{reference}` is in another document"))?;
            at = self
                .document
                .pointer(pointer)
                .ok_or_else(|| format!("`{reference}` names nothing"))?;
        }
        Err("references lead to each other".into())
    }

    fn operations(&self, item: &'a Value) -> Result<Vec<Operation>, String> {
        let shared = self.parameters(&item["parameters"])?;
        let mut operations = Vec::new();
        for method in METHODS {
            let operation = &item[method];
            if operation.is_null() {
                continue;
            }
            let mut parameters = self.parameters(&operation["parameters"])?;
            for parameter in &shared {
                let is_given = parameters
                    .iter()
                    .any(|own| own.name == parameter.name && own.location == parameter.location);
                if !is_given {
                    parameters.push(parameter.clone());
                }
            }
            operations.push(Operation {
                method: method.to_ascii_uppercase().into(),
                parameters,
                bodies: self.bodies(&operation["requestBody"])?,
                is_body_required: self.resolved(&operation["requestBody"])?["required"]
                    .as_bool()
                    .unwrap_or(false),
            });
        }
        Ok(operations)
    }

    fn parameters(&self, list: &'a Value) -> Result<Vec<Parameter>, String> {
        let mut parameters = Vec::new();
        for item in list.as_array().into_iter().flatten() {
            let item = self.resolved(item)?;
            let name = item["name"].as_str().ok_or("a parameter has no `name`")?;
            let location = match item["in"].as_str() {
                Some("path") => Location::Path,
                Some("query") => Location::Query,
                Some("header") => Location::Header,
                Some("cookie") => Location::Cookie,
                other => return Err(format!("parameter {name}: `in` is {other:?}")),
            };
            let mut schema = self.resolved(&item["schema"])?;
            // Each element of a list is a separate value.
            if has_type(schema, "array") {
                schema = self.resolved(&schema["items"])?;
            }
            parameters.push(Parameter {
                location,
                name: name.into(),
                is_required: item["required"].as_bool().unwrap_or(location == Location::Path),
                schema: schema_of(schema).map_err(|it| format!("parameter {name}: {it}"))?,
            });
        }
        Ok(parameters)
    }

    fn bodies(&self, body: &'a Value) -> Result<Vec<(Box<str>, BodyValues)>, String> {
        let body = self.resolved(body)?;
        let mut bodies = Vec::new();
        let content = body["content"].as_object().into_iter().flatten();
        for (media_type, described) in content {
            let mut values =
                BodyValues { values: Vec::new(), open: Vec::new(), takes_others: false };
            let is_json = media_type == "application/json" || media_type.ends_with("+json");
            let prefix = if is_json { "json" } else { "" };
            self.values(&described["schema"], prefix, true, 0, &mut values)?;
            bodies.push((media_type.to_ascii_lowercase().into(), values));
        }
        Ok(bodies)
    }

    /// Collects the leaves of a schema with their names.
    fn values(
        &self,
        schema: &'a Value,
        name: &str,
        is_required: bool,
        depth: usize,
        to: &mut BodyValues,
    ) -> Result<(), String> {
        let schema = self.resolved(schema)?;
        if to.values.len() > VALUES_MAX {
            return Err(format!("a body has more than {VALUES_MAX} values"));
        }
        let is_composed =
            ["oneOf", "anyOf", "allOf", "not"].iter().any(|key| !schema[*key].is_null());
        if depth > DEPTH_MAX || is_composed || schema.is_null() {
            // Any value is accepted here.
            open(name, to);
            return Ok(());
        }
        if has_type(schema, "array") {
            return self.values(&schema["items"], &joined(name, "*"), false, depth + 1, to);
        }
        let properties = schema["properties"].as_object();
        if properties.is_none() && !has_type(schema, "object") {
            let schema = schema_of(schema).map_err(|it| format!("{name}: {it}"))?;
            to.values.push((name.into(), is_required, schema));
            return Ok(());
        }
        let nothing = Map::new();
        for (key, property) in properties.unwrap_or(&nothing) {
            let is_named = schema["required"].as_array().into_iter().flatten().any(|it| it == key);
            self.values(property, &joined(name, key), is_required && is_named, depth + 1, to)?;
        }
        // OpenAPI allows additional properties by default. Here they are allowed only if the document says so.
        if schema["additionalProperties"]
            .as_bool()
            .unwrap_or(schema["additionalProperties"].is_object())
        {
            open(name, to);
        }
        Ok(())
    }
}

fn open(name: &str, to: &mut BodyValues) {
    // An array element has no prefix of its own, so the whole array is open.
    let beginning = name.split('*').next().unwrap_or_default().trim_end_matches('.');
    if beginning.is_empty() {
        to.takes_others = true;
    } else {
        to.open.push(beginning.into());
    }
}

fn joined(name: &str, key: &str) -> String {
    if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") }
}

/// Whether a schema has a type. In OpenAPI 3.1 it may have several.
fn has_type(schema: &Value, wanted: &str) -> bool {
    match &schema["type"] {
        Value::String(name) => name == wanted,
        Value::Array(names) => names.iter().any(|name| name == wanted),
        _ => false,
    }
}

fn schema_of(schema: &Value) -> Result<Schema, String> {
    let kind = if has_type(schema, "string") {
        Kind::Text
    } else if has_type(schema, "integer") {
        Kind::Integer
    } else if has_type(schema, "number") {
        Kind::Number
    } else if has_type(schema, "boolean") {
        Kind::Boolean
    } else {
        Kind::Any
    };
    let count =
        |key: &str| schema[key].as_u64().map(|it| usize::try_from(it).unwrap_or(usize::MAX));
    let pattern = match schema["pattern"].as_str() {
        None => None,
        Some(text) => match Pattern::new(text) {
            Ok(Pattern::Linear(regex)) => Some(regex),
            Ok(Pattern::Backtracking(_)) => {
                return Err(format!("`pattern` {text:?} has look-around or references"));
            }
            Err(reason) => return Err(reason),
        },
    };
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let allowed = schema["enum"].as_array().into_iter().flatten();
    Ok(Schema {
        kind,
        length_min: count("minLength"),
        length_max: count("maxLength"),
        minimum: schema["minimum"].as_f64(),
        maximum: schema["maximum"].as_f64(),
        pattern,
        allowed: allowed.map(|value| text(value).into()).collect(),
        format: schema["format"].as_str().and_then(format),
        is_nullable: schema["nullable"].as_bool().unwrap_or(false) || has_type(schema, "null"),
    })
}

/// Supported formats; other formats add no constraint, as in JSON Schema.
fn format(name: &str) -> Option<Format> {
    Some(match name {
        "date" => Format::Date,
        "date-time" => Format::DateTime,
        "uuid" => Format::Uuid,
        "ipv4" => Format::Ipv4,
        "ipv6" => Format::Ipv6,
        "email" => Format::Email,
        _ => return None,
    })
}
