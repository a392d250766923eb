//! The OpenAPI document (version 3.1), generated from the same list of routes as the router.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use weir_api::events::StreamEnd;
use weir_api::problem::Problem;

use super::answer::JSON;
use super::ask::{Kind, Parameter, STATUS_PATTERN};
use super::problem::MEDIA_TYPE;
use super::route::{Body, Content, Route, SchemaOf};
use super::streams::EVENTS;

/// The path of named schemas in the document.
const SCHEMAS: &str = "/components/schemas";

/// Statuses that every route can answer with.
const OF_ALL: [StatusCode; 7] = [
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::MISDIRECTED_REQUEST,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
];

/// The document for these routes.
pub(super) fn document(routes: &[Route]) -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    let mut problems = BTreeSet::new();
    for route in routes {
        let item = paths.entry(route.path).or_insert_with(|| item(route.path));
        let Some(item) = item.as_object_mut() else { continue };
        let statuses = statuses(route);
        problems.extend(statuses.iter().map(|status| status.as_u16()));
        item.insert(route.method_name.to_owned(), operation(route, &statuses, &mut schemas));
        if !route.is_change {
            item.insert("head".to_owned(), head(route, &statuses));
        }
    }
    let problem = schemas.of_answers.subschema_for::<Problem>();
    let responses: Map<String, Value> = problems
        .into_iter()
        .map(|status| (status.to_string(), response(status, &problem)))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Weirgate admin API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "State of a running weir, and changes at run time. See docs/api.md.",
        },
        "servers": [{ "url": "/" }],
        "security": [{}, { "token": [] }, { "certificate": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas.into_map(),
            "responses": responses,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "certificate": { "type": "mutualTLS" },
            },
        },
    })
}

/// Schemas of answers, which contain all keys, and of bodies, which may omit optional keys.
struct Schemas {
    of_answers: SchemaGenerator,
    of_bodies: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = SCHEMAS.into();
                settings.meta_schema = None;
            })
        };
        // A default is what a command reads in an answer of an older weir. An answer of this one has the key.
        let without_default =
            RecursiveTransform(|schema: &mut Schema| _ = schema.remove("default"));
        let of_answers = settings().for_serialize().with_transform(without_default);
        Self {
            of_answers: of_answers.into_generator(),
            of_bodies: settings().for_deserialize().into_generator(),
        }
    }

    fn answer(&mut self, schema: SchemaOf) -> Value {
        schema(&mut self.of_answers).to_value()
    }

    fn body(&mut self, schema: SchemaOf) -> Value {
        schema(&mut self.of_bodies).to_value()
    }

    fn into_map(mut self) -> Map<String, Value> {
        let mut all = self.of_answers.take_definitions(true);
        all.extend(self.of_bodies.take_definitions(true));
        all.sort_keys();
        all
    }
}

/// A path item with parameters, without operations.
fn item(path: &str) -> Value {
    let parameters: Vec<Value> = parameters_of(path)
        .map(|name| {
            let schema = match name {
                "number" => {
                    json!({ "type": "integer", "format": "int64", "minimum": 0, "maximum": i64::MAX })
                }
                _ => json!({ "type": "string", "minLength": 1 }),
            };
            json!({ "name": name, "in": "path", "required": true, "schema": schema })
        })
        .collect();
    match parameters.is_empty() {
        true => json!({}),
        false => json!({ "parameters": parameters }),
    }
}

/// The names in braces.
pub(super) fn parameters_of(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn operation(route: &Route, statuses: &[StatusCode], schemas: &mut Schemas) -> Value {
    let content = match route.content {
        Content::Document(schema) => json!({ JSON: { "schema": schemas.answer(schema) } }),
        Content::OpenApi => json!({ JSON: { "schema": { "type": "object" } } }),
        // For text that is itself a document, such as YAML, tools would apply the schema to the parsed value.
        Content::Text(media_type) if !media_type.starts_with("text/") => json!({ media_type: {} }),
        Content::Text(media_type) => json!({ media_type: { "schema": { "type": "string" } } }),
        Content::Events(events) => json!({ EVENTS: stream(events, schemas) }),
    };
    let mut responses = responses(route, statuses);
    responses["200"]["content"] = content.clone();
    for status in own_statuses(route).filter(|status| has_content(route, *status)) {
        responses[status.as_str()]["content"] = content.clone();
    }
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "description": description(route),
        "tags": [tag(route.path)],
        "parameters": parameters(route),
        "responses": responses,
    });
    if let Body::Document(schema) = route.body {
        let content = json!({ JSON: { "schema": schemas.body(schema) } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    if route.role.is_none() {
        operation["security"] = json!([]);
    }
    operation
}

/// A stream. OpenAPI 3.1 cannot describe the data of events, so this is an extension.
fn stream(events: &[(&'static str, SchemaOf)], schemas: &mut Schemas) -> Value {
    let end: (&str, SchemaOf) = ("end", SchemaGenerator::subschema_for::<StreamEnd>);
    let data: Map<String, Value> = events
        .iter()
        .chain([&end])
        .map(|(name, schema)| ((*name).to_owned(), schemas.answer(*schema)))
        .collect();
    json!({ "schema": { "type": "string" }, "x-events": data })
}

/// The HEAD operation of a GET route: the same without content.
fn head(route: &Route, statuses: &[StatusCode]) -> Value {
    let mut responses = responses(route, statuses);
    if let Some(responses) = responses.as_object_mut() {
        for (status, response) in responses {
            *response = json!({ "description": format!("As for GET: {status}") });
        }
    }
    json!({
        "operationId": format!("{}Head", route.id),
        "summary": format!("{} (headers only)", route.summary),
        "description": description(route),
        "tags": [tag(route.path)],
        "parameters": parameters(route),
        "responses": responses,
    })
}

fn description(route: &Route) -> String {
    match route.role {
        None => "For everybody, without credentials.".to_owned(),
        Some(role) => format!("Needs the role `{role}`."),
    }
}

/// The tag that groups the operations on one kind of resource.
fn tag(path: &str) -> &str {
    path.trim_start_matches("/v1").split('/').nth(1).unwrap_or_default()
}

fn parameters(route: &Route) -> Vec<Value> {
    let of_query = route.query.iter().map(|Parameter { name, kind, summary }| {
        let schema = match kind {
            Kind::Text => json!({ "type": "string", "minLength": 1 }),
            Kind::Word(words) => json!({ "type": "string", "enum": words }),
            Kind::Number { max, default } => json!({
                "type": "integer", "minimum": 1, "maximum": max, "default": default,
            }),
            Kind::Seconds { max } => json!({ "type": "integer", "minimum": 0, "maximum": max }),
            Kind::Time { max, default } => json!({
                "type": "integer", "minimum": 0, "maximum": max, "default": default,
            }),
            Kind::Ip => json!({
                "type": "string", "anyOf": [{ "format": "ipv4" }, { "format": "ipv6" }],
            }),
            Kind::Status => json!({ "type": "string", "pattern": STATUS_PATTERN }),
        };
        json!({ "name": name, "in": "query", "description": summary, "schema": schema })
    });
    let field = |name, summary| json!({ "name": name, "in": "header", "description": summary, "schema": { "type": "string" } });
    let mut all: Vec<Value> = of_query.collect();
    if has_tag(route) {
        let summary = "The `ETag` of an earlier answer: 304 if the contents are the same";
        all.push(field("If-None-Match", summary));
    }
    if takes_if_match(route) {
        let summary = "The `ETag` of the resource as it was read: 412 if it has changed since";
        all.push(field("If-Match", summary));
    }
    all
}

fn has_tag(route: &Route) -> bool {
    !route.is_change && !matches!(route.content, Content::Text(_) | Content::Events(_))
}

fn takes_if_match(route: &Route) -> bool {
    route.statuses.contains(&StatusCode::PRECONDITION_FAILED)
}

/// Whether the route answers this status with its own content, not with a problem.
fn has_content(route: &Route, status: StatusCode) -> bool {
    let is_text = matches!(route.content, Content::Text(_));
    status.is_success() || is_text && status == StatusCode::SERVICE_UNAVAILABLE
}

fn own_statuses(route: &Route) -> impl Iterator<Item = StatusCode> {
    route.statuses.iter().copied()
}

/// All statuses except 200 and 304. They are problems, unless the route has its own content for them.
fn statuses(route: &Route) -> Vec<StatusCode> {
    let mut all = OF_ALL.to_vec();
    all.push(StatusCode::INTERNAL_SERVER_ERROR);
    all.extend(own_statuses(route).filter(|status| !has_content(route, *status)));
    let is_text = matches!(route.content, Content::Text(_) | Content::Events(_));
    all.extend((!is_text).then_some(StatusCode::NOT_ACCEPTABLE));
    let has_body = !matches!(route.body, Body::None);
    let of_bodies = [StatusCode::PAYLOAD_TOO_LARGE, StatusCode::UNSUPPORTED_MEDIA_TYPE];
    all.extend(of_bodies.into_iter().filter(|_| has_body));
    all.extend(parameters_of(route.path).next().map(|_| StatusCode::NOT_FOUND));
    all.sort_unstable();
    all.dedup();
    all
}

fn responses(route: &Route, statuses: &[StatusCode]) -> Value {
    let id = json!({ "description": "Names the request in the audit log", "schema": { "type": "string" } });
    let tag = json!({ "description": "Changes with the contents", "schema": { "type": "string" } });
    let mut headers = json!({ "X-Request-Id": id });
    let mut all = Map::new();
    if has_tag(route) {
        headers["ETag"] = tag;
        all.insert("304".into(), json!({ "description": "The contents are the same" }));
    }
    all.insert("200".into(), json!({ "description": "Done", "headers": headers }));
    for status in own_statuses(route).filter(|status| has_content(route, *status)) {
        let description = status.canonical_reason();
        all.insert(status.as_str().to_owned(), json!({ "description": description }));
    }
    for status in statuses.iter().map(|status| status.as_u16()) {
        let reference = format!("#/components/responses/{status}");
        all.insert(status.to_string(), json!({ "$ref": reference }));
    }
    all.sort_keys();
    Value::Object(all)
}

/// A problem response with this status.
fn response(status: u16, problem: &Schema) -> Value {
    let status = StatusCode::from_u16(status).unwrap_or_default();
    let header = |text: &str| json!({ "description": text, "schema": { "type": "string" } });
    let mut response = json!({
        "description": status.canonical_reason(),
        "content": { MEDIA_TYPE: { "schema": problem.as_value() } },
    });
    match status {
        StatusCode::UNAUTHORIZED => {
            let header = header("How to authenticate");
            response["headers"] = json!({ "WWW-Authenticate": header });
        }
        StatusCode::TOO_MANY_REQUESTS => {
            response["headers"] = json!({ "Retry-After": header("Seconds to wait") });
        }
        _ => {}
    }
    response
}
