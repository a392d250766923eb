//! Overlays under damaged files and damaged changes.

mod invariants;

use invariants::{DIVIDER, overlay};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

const FILE: &str = include_str!("../../../examples/full.yaml");

const CHANGES: [&str; 12] = [
    r#"{"op":"set","path":"/pools/web/balance","value":"random_two"}"#,
    r#"{"op":"set","path":"/pools/new","value":{"members":["10.0.0.1:80",{"address":"10.0.0.2:80","weight":2}]}}"#,
    r#"{"op":"set","path":"/pools/new/members/10.0.0.1:80/weight","value":7}"#,
    r#"{"op":"remove","path":"/pools/new/members/10.0.0.2:80"}"#,
    r#"{"op":"remove","path":"/pools/new"}"#,
    r#"{"op":"set","path":"/log/access","value":{"format":"off"}}"#,
    r#"{"op":"remove","path":"/log"}"#,
    r#"{"op":"set","path":"/time_zone","value":"UTC"}"#,
    r#"{"op":"remove","path":"/policies"}"#,
    r#"{"op":"set","path":"/data_sets/a~1b","value":{"items":["x\u0000\n y","null","1"]}}"#,
    r#"{"op":"set","path":"/pools/web","value":null}"#,
    r#"{"op":"set","path":"/virtual_servers/z","value":{"listen":"127.0.0.1:1","pool":"new"}}"#,
];

/// All pairs of changes in front of whole files and of files that are cut anywhere.
#[test]
fn pairs_of_changes() {
    for one in CHANGES {
        for other in CHANGES {
            overlay(&format!("{FILE}{DIVIDER}[{one},{other}]"));
        }
    }
    let all = CHANGES.join(",");
    for (cut, _) in FILE.char_indices().step_by(97) {
        overlay(&format!("{}{DIVIDER}[{all}]", &FILE[..cut]));
    }
}

/// Each key of the example is removed, and set to values that it cannot have.
#[test]
fn every_key_is_removed_and_replaced() {
    let keys: Vec<&str> =
        FILE.lines().filter_map(|line| Some(line.trim_start().split_once(':')?.0)).collect();
    assert!(keys.len() > 100);
    for key in keys {
        let key = key.replace('~', "~0").replace('/', "~1");
        for section in ["pools/web", "virtual_servers/shop", "data_plane", "profiles/http"] {
            let path = serde_json::Value::from(format!("/{section}/{key}"));
            let changes = format!(
                r#"{{"op":"set","path":{path},"value":[null,true,1.5,"x",{{}}]}},{{"op":"remove","path":{path}}}"#
            );
            overlay(&format!("virtual_servers: {{}}{DIVIDER}[{changes}]"));
        }
    }
}

const SMALL: &str = "\
virtual_servers: { shop: { listen: 127.0.0.1:80, pool: web, http: plain } }
pools:
  web: { balance: round_robin, members: [ 10.0.0.1:80, { address: 10.0.0.2:80, weight: 3 } ] }
  spare: { members: [] }
policies: { block: { rules: [ { then: [ { respond: { status: 405, body: \"a\\nb\" } } ] } ] } }
profiles: { http: { plain: { head_size_max: 8KiB } } }
log: null
";

const SEGMENTS: [&str; 24] = [
    "pools",
    "web",
    "spare",
    "new",
    "members",
    "10.0.0.1:80",
    "10.0.0.2:80",
    "10.0.0.3:80",
    "weight",
    "address",
    "balance",
    "queue",
    "length_max",
    "policies",
    "block",
    "rules",
    "0",
    "profiles",
    "http",
    "plain",
    "headers_max",
    "log",
    "access",
    "virtual_servers",
];

fn values() -> Vec<Value> {
    vec![
        json!(null),
        json!(1),
        json!(-1.5),
        json!("round_robin"),
        json!("10.0.0.1:80"),
        json!({}),
        json!([]),
        json!({ "address": "10.0.0.1:80" }),
        json!({ "weight": 2 }),
        json!({ "members": ["10.0.0.1:80", { "address": "10.0.0.4:80", "weight": 0 }] }),
        json!({ "length_max": 5 }),
        json!({ "access": { "format": "off" } }),
        json!({ "plain": { "headers_max": 9 } }),
        json!(["10.0.0.3:80", { "address": "[::ffff:10.0.0.2]:80" }]),
        json!(true),
        json!("null"),
    ]
}

/// Any order of changes at likely and unlikely places.
#[test]
fn any_changes() {
    let path = prop::collection::vec(prop::sample::select(&SEGMENTS[..]), 1..6)
        .prop_map(|segments| format!("/{}", segments.join("/")));
    let likely = prop::sample::select(vec![
        "/pools/web",
        "/pools/new",
        "/pools/web/members",
        "/pools/web/members/10.0.0.1:80",
        "/pools/web/members/10.0.0.1:80/weight",
        "/pools/web/members/10.0.0.3:80",
        "/pools/new/members/10.0.0.1:80/weight",
        "/pools/web/queue/length_max",
        "/pools/web/queue",
        "/log",
        "/log/access/format",
        "/profiles/http/plain/headers_max",
    ]);
    let path = prop_oneof![path, likely.prop_map(str::to_owned)];
    let change = (path, prop::option::weighted(0.7, prop::sample::select(values()))).prop_map(
        |(path, value)| match value {
            Some(value) => json!({ "op": "set", "path": path, "value": value }),
            None => json!({ "op": "remove", "path": path }),
        },
    );
    let changes = prop::collection::vec(change, 0..8);
    let mut runner =
        TestRunner::new(Config { cases: 2_000, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&changes, |changes| {
        overlay(&format!("{SMALL}{DIVIDER}{}", Value::from(changes)));
        Ok(())
    });
    assert!(outcome.is_ok(), "{outcome:?}");
}
