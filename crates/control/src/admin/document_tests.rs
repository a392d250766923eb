//! The OpenAPI document, compared with the routes and with answers of a running listener.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Value, json};

use super::openapi::parameters_of;
use super::table;
use super::testing::{Answered, JSON, Running};

/// The members in these tests.
const MEMBERS: [&str; 2] = ["127.0.0.1:9001", "[::1]:9002"];

async fn document(running: &Running) -> Value {
    let (status, document) = running.get("/v1/openapi.json").await;
    assert_eq!(status, 200);
    document
}

#[tokio::test]
async fn the_document_has_all_routes_and_no_others() {
    let running = Running::on_unix(&MEMBERS).await;
    let document = document(&running).await;
    assert_eq!(document["openapi"], "3.1.0");
    let mut documented = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys().filter(|key| *key != "parameters") {
            documented.insert((method.clone(), path.clone()));
        }
        let named: Vec<_> = item["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert_eq!(named, parameters_of(path).collect::<Vec<_>>());
    }
    let mut routed = BTreeSet::new();
    for route in table::routes() {
        routed.insert((route.method_name.to_owned(), route.path.to_owned()));
        if !route.is_change {
            routed.insert(("head".to_owned(), route.path.to_owned()));
        }
    }
    assert_eq!(documented, routed);
    // The router: all documented methods are routed, and all others get 405 with the list of documented ones.
    for path in routed.iter().map(|(_, path)| path).collect::<BTreeSet<_>>() {
        let asked = path.replace("{number}", "1").replace(['{', '}'], "");
        for method in ["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
            let is_routed = routed.contains(&(method.to_lowercase(), path.clone()));
            let status = running.send(method, &asked, JSON, "").await.status;
            assert_eq!(status != 405, is_routed, "{method} {path}: {status}");
        }
    }
}

#[tokio::test]
async fn ids_and_references_are_sound() {
    let running = Running::on_unix(&MEMBERS).await;
    let document = document(&running).await;
    let mut ids = BTreeSet::new();
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values().filter(|it| it.is_object()) {
            assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()));
        }
    }
    let mut references = BTreeSet::new();
    collect_references(&document, &mut references);
    assert!(references.len() > 20, "{references:?}");
    for reference in references {
        let pointer = reference.strip_prefix('#').expect("within the document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref") {
                found.insert(reference.clone());
            }
            map.values().for_each(|value| collect_references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_references(value, found)),
        _ => {}
    }
}

/// Forbids undocumented keys in each object, so that an answer with additional keys fails.
fn close(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(close);
            let is_object = map.contains_key("properties") || map.contains_key("allOf");
            if is_object && !map.contains_key("additionalProperties") {
                map.insert("unevaluatedProperties".to_owned(), json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Asserts that an answer matches the document for this operation.
pub(super) fn check(document: &Value, path: &str, method: &str, answer: &Answered) {
    let status = answer.status.to_string();
    let name = format!("{method} {path} {status}");
    let mut response = &document["paths"][path][method]["responses"][&status];
    assert!(response.is_object(), "{name} is not documented");
    if let Some(reference) = response["$ref"].as_str() {
        response = document.pointer(&reference[1..]).unwrap();
    }
    let Some(content) = response["content"].as_object() else {
        return assert_eq!(answer.text, "", "{name}");
    };
    let media_type = answer.field("content-type").unwrap();
    let schema =
        &content.get(media_type).unwrap_or_else(|| panic!("{name}: {media_type}"))["schema"];
    if !media_type.contains("json") {
        return;
    }
    let mut whole = schema.clone();
    whole["components"] = document["components"].clone();
    close(&mut whole);
    let validator = jsonschema::draft202012::new(&whole).unwrap();
    let body: Value = serde_json::from_str(&answer.text).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&body)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(errors, [""; 0], "{name}");
}

#[tokio::test]
async fn answers_are_as_documented() {
    let running = Running::on_unix(&MEMBERS).await;
    let document = document(&running).await;
    running.observed.reloads.begin();
    running.observed.reloads.fail("bad", &[]);
    for (method, path, asked, body, status) in [
        ("get", "/health", "/health", "", 200),
        ("get", "/metrics", "/metrics", "", 200),
        ("get", "/v1/health", "/v1/health", "", 200),
        ("get", "/v1/status", "/v1/status", "", 200),
        ("get", "/v1/process", "/v1/process", "", 200),
        ("get", "/v1/whoami", "/v1/whoami", "", 200),
        ("get", "/v1/virtual-servers", "/v1/virtual-servers", "", 200),
        ("get", "/v1/virtual-servers", "/v1/virtual-servers?after=x", "", 404),
        ("get", "/v1/virtual-servers", "/v1/virtual-servers?limit=x", "", 400),
        ("get", "/v1/virtual-servers/{name}", "/v1/virtual-servers/shop", "", 200),
        ("get", "/v1/virtual-servers/{name}", "/v1/virtual-servers/sho", "", 404),
        ("get", "/v1/policies", "/v1/policies", "", 200),
        ("get", "/v1/policies/{name}", "/v1/policies/x", "", 404),
        ("get", "/v1/certificates", "/v1/certificates", "", 200),
        ("get", "/v1/packet-path", "/v1/packet-path", "", 200),
        ("get", "/v1/pools", "/v1/pools", "", 200),
        ("get", "/v1/pools/{pool}", "/v1/pools/web", "", 200),
        ("get", "/v1/pools/{pool}/members", "/v1/pools/web/members", "", 200),
        (
            "get",
            "/v1/pools/{pool}/members/{member}",
            "/v1/pools/web/members/127.0.0.1:9001",
            "",
            200,
        ),
        (
            "get",
            "/v1/pools/{pool}/members/{member}/state",
            "/v1/pools/web/members/127.0.0.1:9001/state",
            "",
            200,
        ),
        (
            "put",
            "/v1/pools/{pool}/members/{member}/state",
            "/v1/pools/web/members/127.0.0.1:9001/state",
            r#"{"state":"drain"}"#,
            200,
        ),
        (
            "put",
            "/v1/pools/{pool}/members/{member}/state",
            "/v1/pools/web/members/127.0.0.1:9001/state",
            "{}",
            400,
        ),
        (
            "put",
            "/v1/pools/{pool}/members/{member}/state",
            "/v1/pools/web/members/1/state",
            r#"{"state":"drain"}"#,
            404,
        ),
        ("get", "/v1/members/{member}/state", "/v1/members/127.0.0.1:9001/state", "", 200),
        (
            "put",
            "/v1/members/{member}/state",
            "/v1/members/127.0.0.1:9001/state",
            r#"{"state":"configured"}"#,
            200,
        ),
        ("get", "/v1/monitors", "/v1/monitors?state=up", "", 200),
        ("get", "/v1/monitors", "/v1/monitors?state=x", "", 400),
        ("post", "/v1/reload", "/v1/reload?wait_ms=0", "{}", 202),
        ("post", "/v1/reload", "/v1/reload", "", 400),
        ("post", "/v1/reload", "/v1/reload", "{\"x\":1}", 400),
        ("get", "/v1/reloads", "/v1/reloads", "", 200),
        ("get", "/v1/reloads/{number}", "/v1/reloads/1", "", 200),
        ("get", "/v1/reloads/{number}", "/v1/reloads/9", "", 404),
        ("get", "/v1/reloads/{number}", "/v1/reloads/x", "", 400),
        ("get", "/v1/l4/flows", "/v1/l4/flows?client=::1", "", 404),
        ("post", "/v1/l4/flows/end", "/v1/l4/flows/end", "{\"all\":true}", 404),
        ("post", "/v1/l4/flows/end", "/v1/l4/flows/end", "{}", 400),
        ("get", "/v1/openapi.json", "/v1/openapi.json", "", 200),
        ("get", "/v1/versions", "/v1/versions", "", 200),
        ("get", "/v1/versions/{number}", "/v1/versions/1", "", 404),
        ("get", "/v1/changes/{number}", "/v1/changes/1", "", 404),
        ("get", "/v1/requests", "/v1/requests", "", 404),
        ("get", "/v1/requests", "/v1/requests?status=x", "", 400),
        ("get", "/v1/requests/{id}", "/v1/requests/1", "", 404),
        ("get", "/v1/requests/{id}/explanation", "/v1/requests/1/explanation", "", 404),
        ("get", "/v1/logs", "/v1/logs?virtual_server=shop", "", 200),
        ("get", "/v1/logs", "/v1/logs?virtual_server=nope", "", 404),
        ("get", "/v1/logs", "/v1/logs?limit=1", "", 400),
        ("get", "/v1/diff", "/v1/diff", "", 200),
        ("get", "/v1/configuration", "/v1/configuration", "", 200),
        ("get", "/v1/configuration/files", "/v1/configuration/files", "", 200),
    ] {
        let fields = if method == "get" { "" } else { JSON };
        let answer = running.send(&method.to_uppercase(), asked, fields, body).await;
        assert_eq!(answer.status, status, "{method} {asked}: {}", answer.text);
        check(&document, path, method, &answer);
    }
}

#[tokio::test]
async fn answers_about_sessions_are_as_documented() {
    let running = Running::on_unix(&MEMBERS).await;
    let document = document(&running).await;
    for (method, path, asked, body, status) in [
        ("get", "/v1/sessions", "/v1/sessions?type=tcp&client=10.0.0.0/8", "", 200),
        (
            "get",
            "/v1/sessions",
            "/v1/sessions?pool=web&member=127.0.0.1&age_seconds_min=0",
            "",
            200,
        ),
        ("get", "/v1/sessions", "/v1/sessions?virtual_server=nope", "", 404),
        ("get", "/v1/sessions", "/v1/sessions?pool=nope", "", 404),
        ("get", "/v1/sessions", "/v1/sessions?member=10.9.9.9", "", 404),
        ("get", "/v1/sessions", "/v1/sessions?client=10.0.0.1/8", "", 400),
        ("get", "/v1/sessions", "/v1/sessions?type=http", "", 400),
        ("get", "/v1/sessions", "/v1/sessions?age_seconds_min=-1", "", 400),
        ("post", "/v1/sessions/end", "/v1/sessions/end", "{\"all\":true}", 200),
        ("post", "/v1/sessions/end", "/v1/sessions/end", "{\"virtual_server\":\"shop\"}", 200),
        ("post", "/v1/sessions/end", "/v1/sessions/end", "{}", 400),
        ("post", "/v1/sessions/end", "/v1/sessions/end", "{\"all\":true,\"type\":\"udp\"}", 400),
        ("post", "/v1/sessions/end", "/v1/sessions/end", "{\"client\":\"x\"}", 400),
        ("post", "/v1/sessions/end", "/v1/sessions/end", "{\"pool\":\"nope\"}", 404),
    ] {
        let fields = if method == "get" { "" } else { JSON };
        let answer = running.send(&method.to_uppercase(), asked, fields, body).await;
        assert_eq!(answer.status, status, "{method} {asked}: {}", answer.text);
        check(&document, path, method, &answer);
    }
}

#[tokio::test]
async fn refused_changes_are_as_documented() {
    let running = Running::on_unix(&MEMBERS).await;
    let document = document(&running).await;
    for (method, path, asked, body, status) in [
        ("post", "/v1/changes", "/v1/changes", "{}", 400),
        ("post", "/v1/reload", "/v1/reload", "[]", 400),
        ("post", "/v1/upgrade", "/v1/upgrade", "[null,null]", 400),
        (
            "put",
            "/v1/members/{member}/state",
            "/v1/members/127.0.0.1:9001/state",
            "[\"drain\"]",
            400,
        ),
        ("post", "/v1/changes", "/v1/changes?dry_run=1", "{\"changes\":[]}", 400),
    ] {
        let answer = running.send(&method.to_uppercase(), asked, JSON, body).await;
        assert_eq!(answer.status, status, "{method} {asked}: {}", answer.text);
        check(&document, path, method, &answer);
    }
}

#[tokio::test]
async fn a_process_that_ends_is_documented() {
    let running = Running::on_unix(&MEMBERS).await;
    let document = document(&running).await;
    running.observed.draining.store(true, Relaxed);
    for method in ["get", "head"] {
        let answer = running.send(&method.to_uppercase(), "/health", "", "").await;
        assert_eq!(answer.status, 503);
        check(&document, "/health", method, &answer);
    }
    let answer = running.send("GET", "/v1/health", "", "").await;
    check(&document, "/v1/health", "get", &answer);
    assert!(answer.text.contains("draining"), "{}", answer.text);
    // Without a packet path, flows are no problem; for a busy thread of one, the document has this response.
    let busy = &document["paths"]["/v1/l4/flows"]["get"]["responses"]["503"];
    assert_eq!(busy["$ref"], "#/components/responses/503");
}

#[tokio::test]
async fn a_wrong_answer_would_be_found() {
    let running = Running::on_unix(&MEMBERS).await;
    let mut document = document(&running).await;
    let answer = running.send("GET", "/v1/whoami", "", "").await;
    check(&document, "/v1/whoami", "get", &answer);
    let properties =
        document["components"]["schemas"]["Whoami"]["properties"].as_object_mut().unwrap();
    properties.remove("peer").unwrap();
    let found = std::panic::catch_unwind(|| check(&document, "/v1/whoami", "get", &answer));
    assert!(found.is_err(), "a key that is not documented passes");
}
