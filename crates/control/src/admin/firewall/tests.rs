use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::document_tests::check;
use super::super::testing::Running;

const TEXT: &str = "admin: { listen: \"unix:/run/weir-test.sock\" }\n\
    profiles: { waf: { strict: { mode: block } } }\n\
    virtual_servers:\n  \
      shop: { listen: \"127.0.0.1:0\", pool: web, waf: { mode: block } }\n  \
      one: { listen: \"127.0.0.2:0\", pool: web, waf: strict }\n  \
      two: { listen: \"127.0.0.3:0\", pool: web, waf: strict }\n\
    pools: { web: { members: [ 127.0.0.1:9001 ] } }\n";

/// A listener for this configuration.
async fn running(text: &str) -> Running {
    let directory: TempDir = tempfile::tempdir().unwrap();
    let file = directory.path().join("weir.yaml");
    std::fs::write(&file, text).unwrap();
    let loaded = weir_sources::load(&file);
    let config = loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
    let snapshot = Arc::new(config.snapshot(&weir_config::Resolutions::default()));
    let address = weir_config::snapshot::Address::Unix(directory.path().join("admin.sock"));
    Running::with(snapshot, &address, directory).await
}

/// A line of the log; its client and its virtual server.
fn line(client: u64, server: &str, rule: u64) -> String {
    let found = json!({
        "id": rule, "message": "SQL Injection", "data": "1=1 in ARGS:id", "severity": "CRITICAL",
        "tags": ["attack-sqli"], "file": "sql.conf", "line": 7,
        "values": [{ "variable": "ARGS:id", "value": "1\u{c3}\u{a4}" }],
    });
    let line = json!({
        "type": "waf", "time": "2026-01-01T00:00:00.000Z", "request_id": format!("{client:032x}"),
        "client": format!("192.0.2.{client}:1000"), "virtual_server": server, "method": "GET",
        "host": "shop.example", "target": "/item?id=1", "mode": "block", "outcome": "blocked",
        "status": 403, "rule": 1_000_001, "blocked": true, "score": 5, "threshold": 5,
        "checks": [{ "name": "host_is_address", "action": "alarm", "place": "Host", "data": "" }],
        "rules": [found], "request": { "head": "GET /item?id=1 HTTP/1.1" },
    });
    format!("{line}\n")
}

async fn items(running: &Running, path: &str) -> Vec<Value> {
    let (status, answer) = running.get(path).await;
    assert_eq!(status, 200, "{answer}");
    answer["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_last_findings_are_shown() {
    let running = running(TEXT).await;
    assert_eq!(items(&running, "/v1/waf/events").await, [Value::Null; 0]);
    for client in 1..=5 {
        running.observed.admin.findings.keep(line(client, "shop", 942_100).as_bytes());
    }
    running.observed.admin.findings.keep(line(9, "one", 941_100).as_bytes());
    let all = items(&running, "/v1/waf/events").await;
    assert_eq!(all.len(), 6);
    assert_eq!(all[0]["number"], 5);
    assert_eq!(all[0]["rules"][0]["values"][0], json!({ "variable": "ARGS:id", "value": "1ä" }));
    assert_eq!(all[0]["checks"][0]["name"], "host_is_address");
    assert!(all[0].get("request").is_none());
    let page = items(&running, "/v1/waf/events?limit=2&after=4").await;
    assert_eq!(page.iter().map(|it| &it["number"]).collect::<Vec<_>>(), [3, 2]);
    assert_eq!(items(&running, "/v1/waf/events?virtual_server=one").await.len(), 1);
    assert_eq!(items(&running, "/v1/waf/events?rule=942100").await.len(), 5);
    let document = running.get("/v1/openapi.json").await.1;
    for path in ["/v1/waf/events", "/v1/waf/findings"] {
        check(&document, path, "get", &running.send("GET", path, "", "").await);
    }
}

#[tokio::test]
async fn findings_have_the_change_that_excludes_them() {
    let running = running(TEXT).await;
    for client in 1..=12 {
        running.observed.admin.findings.keep(line(client, "shop", 942_100).as_bytes());
    }
    running.observed.admin.findings.keep(line(1, "one", 942_100).as_bytes());
    running.observed.admin.findings.keep(line(1, "gone", 942_100).as_bytes());
    let found = items(&running, "/v1/waf/findings").await;
    assert_eq!(found.len(), 2);
    let (shop, one) = (&found[0], &found[1]);
    assert_eq!((&shop["requests"], &shop["clients"]), (&json!(12), &json!(12)));
    assert_eq!((&shop["is_proposed"], &one["is_proposed"]), (&json!(true), &json!(false)));
    let name = "942100-ARGS-id-item-";
    let path = shop["change"]["path"].as_str().unwrap();
    assert!(path.starts_with(&format!("/virtual_servers/shop/waf/exclusions/{name}")), "{path}");
    let value = json!({ "rule": 942_100, "variable": "ARGS:id", "path": "/item" });
    assert_eq!(shop["change"]["value"], value);
    let path = one["change"]["path"].as_str().unwrap();
    assert!(path.starts_with(&format!("/profiles/waf/strict/exclusions/{name}")), "{path}");
    assert_eq!(one["applies_to"], json!(["one", "two"]));
    assert_eq!(items(&running, "/v1/waf/findings?virtual_server=one").await.len(), 1);
}

#[tokio::test]
async fn what_is_excluded_is_marked() {
    let excluded = "waf: { mode: block, exclusions: { it: { rule: 942100, variable: \"ARGS:id\", path: /* } } }";
    let running = running(&TEXT.replacen("waf: { mode: block }", excluded, 1)).await;
    running.observed.admin.findings.keep(line(1, "shop", 942_100).as_bytes());
    running.observed.admin.findings.keep(line(1, "shop", 941_100).as_bytes());
    let found = items(&running, "/v1/waf/findings").await;
    let marks: Vec<_> = found.iter().map(|it| (&it["rule"], &it["is_excluded"])).collect();
    assert_eq!(marks, [(&json!(941_100), &json!(false)), (&json!(942_100), &json!(true))]);
}

#[tokio::test]
async fn checks_have_the_change_that_makes_them_milder() {
    let blocks = "waf: { mode: block, checks: { actions: { host_is_address: block } } }";
    let running = running(&TEXT.replacen("waf: { mode: block }", blocks, 1)).await;
    for client in 1..=12 {
        running.observed.admin.findings.keep(line(client, "shop", 942_100).as_bytes());
    }
    running.observed.admin.findings.keep(line(1, "one", 942_100).as_bytes());
    let (status, answer) = running.get("/v1/waf/findings").await;
    assert_eq!(status, 200, "{answer}");
    let (shop, one) = (&answer["checks"][0], &answer["checks"][1]);
    assert_eq!((&shop["check"], &shop["action"]), (&json!("host_is_address"), &json!("block")));
    assert_eq!((&shop["requests"], &shop["suspicious"]), (&json!(12), &json!(12)));
    assert_eq!((&shop["is_proposed"], &shop["place"]), (&json!(false), &json!("Host")));
    let path = "/virtual_servers/shop/waf/checks/actions/host_is_address";
    assert_eq!(shop["change"], json!({ "op": "set", "path": path, "value": "alarm" }));
    let path = "/profiles/waf/strict/checks/actions/host_is_address";
    assert_eq!(one["change"], json!({ "op": "set", "path": path, "value": "off" }));
    assert_eq!(one["applies_to"], json!(["one", "two"]));
}

#[tokio::test]
async fn a_check_that_is_off_has_no_change() {
    let off = "waf: { mode: block, checks: { actions: { host_is_address: off } } }";
    let running = running(&TEXT.replacen("waf: { mode: block }", off, 1)).await;
    running.observed.admin.findings.keep(line(1, "shop", 942_100).as_bytes());
    let (_, answer) = running.get("/v1/waf/findings").await;
    assert_eq!(
        (&answer["checks"][0]["action"], &answer["checks"][0]["change"]),
        (&json!("off"), &Value::Null)
    );
}
