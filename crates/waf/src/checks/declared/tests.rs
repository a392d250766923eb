use serde_json::{Value, json};

use super::super::{Action, Findings, Policy};
use super::*;

fn strict() -> Policy {
    let mut policy = Policy::default();
    Check::ALL.into_iter().for_each(|check| policy.set(check, Action::Block));
    policy
}

fn document() -> Value {
    json!({
        "openapi": "3.0.3",
        "servers": [{ "url": "https://api.example/v1/" }],
        "paths": {
            "/pets/{id}": {
                "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "integer", "minimum": 1 } }],
                "get": { "parameters": [
                    { "name": "fields", "in": "query", "schema": { "type": "array", "items": { "type": "string", "enum": ["name", "age"] } } },
                    { "$ref": "#/components/parameters/Tenant" },
                ] },
                "delete": {},
            },
            "/pets/mine": { "get": {} },
            "/pets": { "post": { "requestBody": { "content": {
                "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } },
                "application/x-www-form-urlencoded": { "schema": { "type": "object", "properties": { "name": { "type": "string", "maxLength": 5 } } } },
            } } } },
        },
        "components": {
            "parameters": { "Tenant": { "name": "X-Tenant", "in": "header", "required": true, "schema": { "type": "string", "format": "uuid" } } },
            "schemas": { "Pet": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": { "type": "string", "pattern": "^[a-z]+$", "maxLength": 8 },
                    "age": { "type": "integer", "nullable": true, "maximum": 30 },
                    "is_tame": { "type": "boolean" },
                    "born": { "type": "string", "format": "date" },
                    "tags": { "type": "array", "items": { "type": "string", "maxLength": 3 } },
                    "owner": { "type": "object", "properties": { "mail": { "type": "string", "format": "email" } } },
                    "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                    "parent": { "$ref": "#/components/schemas/Pet" },
                },
            } },
        },
    })
}

fn found(run: impl FnOnce(&Interface, &mut Findings<'_>)) -> Vec<(String, &'static str)> {
    let policy = strict();
    let mut findings = Findings::new(&policy);
    run(&Interface::load(&document()).expect("a document"), &mut findings);
    findings.into_all().into_iter().map(|it| (it.place, it.check.name())).collect()
}

#[test]
fn types_of_bodies_are_declared() {
    let mut document = document();
    let of = |document: &Value, given: Option<&str>, has_body| {
        let policy = strict();
        let mut findings = Findings::new(&policy);
        let interface = Interface::load(document).expect("a document");
        let found = interface.find(b"POST", b"/v1/pets", &mut findings).expect("declared");
        found.body_type(given, has_body, &mut findings);
        findings.into_all().first().map(|it| it.check)
    };
    for (given, has_body, expected) in [
        (Some("application/json"), true, None),
        (Some("text/plain"), true, Some(Check::UndeclaredBody)),
        (Some("application/grpc+json"), true, Some(Check::UndeclaredBody)),
        (None, true, Some(Check::UndeclaredBody)),
        (None, false, None),
    ] {
        assert_eq!(of(&document, given, has_body), expected, "{given:?}");
    }
    document["paths"]["/pets"]["post"]["requestBody"]["required"] = json!(true);
    assert_eq!(of(&document, None, false), Some(Check::ParameterMissing));
}

#[test]
fn paths_and_methods_are_declared() {
    let of = |method: &str, path: &str| {
        let all = found(|interface, findings| {
            interface.find(method.as_bytes(), path.as_bytes(), findings);
        });
        all.into_iter().map(|(_, check)| check).collect::<Vec<_>>()
    };
    for (method, path, expected) in [
        ("GET", "/v1/pets/7", &[][..]),
        ("GET", "/v1/pets/mine", &[]),
        ("DELETE", "/v1/pets/mine", &["undeclared_method"]),
        ("POST", "/v1/pets/7", &["undeclared_method"]),
        ("GET", "/v1/pets/7/toys", &["undeclared_path"]),
        ("GET", "/pets/7", &["undeclared_path"]),
        ("GET", "/v1pets/7", &["undeclared_path"]),
        ("GET", "/v1/pets/", &["undeclared_path"]),
        ("POST", "/v1/pets", &[]),
    ] {
        assert_eq!(of(method, path), expected, "{method} {path}");
    }
}

#[test]
fn parameters_are_as_declared() {
    const TENANT: &str = "123e4567-e89b-12d3-a456-426614174000";
    let of = |path: &str, query: &[(&str, &str)], tenant: Option<&str>| {
        found(|interface, findings| {
            let query: Vec<(&[u8], &[u8])> =
                query.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
            let headers: Vec<(&[u8], &[u8])> =
                tenant.iter().map(|value| (&b"x-tenant"[..], value.as_bytes())).collect();
            let values = Values { query: &query, headers: &headers, cookies: &[] };
            let operation = interface.find(b"GET", path.as_bytes(), findings).expect("declared");
            operation.parameters(&values, findings);
        })
    };
    let one = |place: &str, check| vec![(format!("parameter {place}"), check)];
    assert_eq!(of("/v1/pets/7", &[("fields", "age"), ("fields", "name")], Some(TENANT)), []);
    assert_eq!(of("/v1/pets/x", &[], Some(TENANT)), one("id", "parameter_type"));
    assert_eq!(of("/v1/pets/0", &[], Some(TENANT)), one("id", "parameter_value"));
    assert_eq!(of("/v1/pets/1", &[], None), one("X-Tenant", "parameter_missing"));
    assert_eq!(of("/v1/pets/1", &[], Some("x")), one("X-Tenant", "parameter_value"));
    assert_eq!(
        of("/v1/pets/1", &[("fields", "id")], Some(TENANT)),
        one("fields", "parameter_value")
    );
    assert_eq!(
        of("/v1/pets/1", &[("debug", "1")], Some(TENANT)),
        one("debug", "undeclared_parameter")
    );
}

#[test]
fn bodies_are_as_declared() {
    let of = |media_type: &str, values: &[(&str, &str)]| {
        found(|interface, findings| {
            let values: Vec<(&[u8], &[u8])> =
                values.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
            let operation = interface.find(b"POST", b"/v1/pets", findings).expect("declared");
            operation.body(media_type, &values, findings);
        })
    };
    let json = |values: &[(&str, &str)]| of("application/json", values);
    let one = |place: &str, check| vec![(format!("parameter {place}"), check)];
    let name = ("json.name", "rex");
    assert_eq!(json(&[name, ("json.age", "3"), ("json.is_tame", "true")]), []);
    assert_eq!(json(&[name, ("json.tags.array_0", "abc"), ("json.labels.any.thing", "x")]), []);
    assert_eq!(json(&[name, ("json.age", ""), ("json.parent.name", "max")]), []);
    assert_eq!(json(&[]), one("json.name", "parameter_missing"));
    assert_eq!(json(&[("json.name", "Rex")]), one("json.name", "parameter_value"));
    assert_eq!(json(&[("json.name", "rexrexrex")]), one("json.name", "parameter_length"));
    assert_eq!(json(&[name, ("json.age", "3.5")]), one("json.age", "parameter_type"));
    assert_eq!(json(&[name, ("json.age", "31")]), one("json.age", "parameter_value"));
    assert_eq!(json(&[name, ("json.is_tame", "1")]), one("json.is_tame", "parameter_type"));
    assert_eq!(json(&[name, ("json.born", "2026-13-01")]), one("json.born", "parameter_value"));
    assert_eq!(
        json(&[name, ("json.tags.array_1", "abcd")]),
        one("json.tags.*", "parameter_length")
    );
    assert_eq!(json(&[name, ("json.tags.x", "a")]), one("json.tags.x", "undeclared_parameter"));
    assert_eq!(
        json(&[name, ("json.owner.mail", "a b@c")]),
        one("json.owner.mail", "parameter_value")
    );
    assert_eq!(json(&[name, ("json.admin", "true")]), one("json.admin", "undeclared_parameter"));
    let form = "application/x-www-form-urlencoded";
    assert_eq!(of(form, &[("name", "Rex")]), []);
    assert_eq!(of(form, &[("name", "Rexrex")]), one("name", "parameter_length"));
    assert_eq!(of("text/xml", &[]), vec![("body".to_owned(), "undeclared_body")]);
}

#[test]
fn documents_that_cannot_be_used_say_why() {
    for (change, expected) in [
        (json!({ "openapi": "2.0" }), "documents of version 3"),
        (json!({ "paths": null }), "`paths` is missing"),
        (json!({ "paths": { "pets": {} } }), "begins with no slash"),
        (json!({ "paths": { "/a{b}": {} } }), "a part of a segment"),
        (json!({ "paths": { "/a": { "$ref": "#/nowhere" } } }), "names nothing"),
        (json!({ "paths": { "/a": { "$ref": "other.yaml" } } }), "in another document"),
        (json!({ "paths": { "/a": { "$ref": "#/paths/~1a" } } }), "lead to each other"),
        (
            json!({ "paths": { "/a": { "get": { "parameters": [{ "in": "query" }] } } } }),
            "has no `name`",
        ),
        (
            json!({ "paths": { "/a": { "get": { "parameters": [{ "name": "x", "in": "body" }] } } } }),
            "`in` is",
        ),
        (
            json!({ "paths": { "/a": { "get": { "parameters": [{ "name": "x", "in": "query", "schema": { "pattern": "(" } }] } } } }),
            "regular expression",
        ),
    ] {
        let mut document = document();
        for (key, value) in change.as_object().expect("a map") {
            document[key] = value.clone();
        }
        let error = Interface::load(&document).expect_err(expected);
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn forms_of_texts() {
    let of = |format: &str, text: &str| {
        let document = json!({
            "openapi": "3.1.0",
            "paths": { "/": { "get": { "parameters": [{ "name": "x", "in": "query", "schema": { "type": ["string", "null"], "format": format } }] } } },
        });
        let policy = strict();
        let mut findings = Findings::new(&policy);
        let interface = Interface::load(&document).expect("a document");
        let query = [(&b"x"[..], text.as_bytes())];
        let values = Values { query: &query, headers: &[], cookies: &[] };
        interface
            .find(b"GET", b"/", &mut findings)
            .expect("declared")
            .parameters(&values, &mut findings);
        findings.all().is_empty()
    };
    for (format, good, bad) in [
        (
            "date",
            &["2026-11-25", "0001-01-31", ""][..],
            &["2026-1-1", "2026-00-01", "2026-01-32", "x"][..],
        ),
        (
            "date-time",
            &["2026-11-25T10:00:00Z", "2026-11-25t10:00:00.123+01:00", "2026-11-25 23:59:60-05:30"],
            &[
                "2026-11-25",
                "2026-11-25T10:00Z",
                "2026-11-25T10:00:00",
                "2026-11-25T24:00:00Z",
                "2026-11-25T10:00:00.Z",
            ],
        ),
        (
            "uuid",
            &["123e4567-e89b-12d3-a456-426614174000"],
            &["123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400g", "-"],
        ),
        ("ipv4", &["10.0.0.1"], &["10.0.0", "::1"]),
        ("ipv6", &["::1", "2001:db8::"], &["10.0.0.1", ":1"]),
        ("email", &["a@b.example", "a+b@c.d"], &["a", "a@b", "a b@c.d", "@b.c", "<a@b.c>"]),
        ("unknown", &["anything"], &[]),
    ] {
        for text in good {
            assert!(of(format, text), "{format} {text}");
        }
        for text in bad {
            assert!(!of(format, text), "{format} {text}");
        }
    }
}
