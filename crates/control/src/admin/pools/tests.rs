//! Pools and changes as a client sees them, over raw sockets.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use weir_core::admin_state::AdminState;

use super::super::peer::Peer;
use super::super::problem::NAMES_TOLD_MAX;
use super::super::route::BODY_SIZE_MAX;
use super::super::testing::{JSON, Running};
use super::*;
use crate::testing::PATIENCE;

/// Two members on a unix socket.
const MEMBERS: [&str; 2] = ["127.0.0.1:9001", "[::1]:9002"];

const FIRST: &str = "/v1/pools/web/members/127.0.0.1%3A9001";
const STATE: &str = "/v1/pools/web/members/127.0.0.1%3A9001/state";

#[tokio::test]
async fn what_there_is() {
    let running = Running::on_unix(&MEMBERS).await;
    let (status, pools) = running.get("/v1/pools").await;
    assert_eq!((status, &pools["items"][0]["name"]), (200, &Value::from("web")));
    let (status, pool) = running.get("/v1/pools/web").await;
    assert_eq!((status, &pool["members_in_service"]), (200, &Value::from(2)));
    for path in [
        FIRST,
        "/v1/pools/web/members/127.0.0.1:9001",
        "/v1/pools/w%65b/members/%5B::1%5D:9002",
        "/v1/pools/web/members/%5B0:0::1%5D:9002",
    ] {
        let (status, member) = running.get(path).await;
        assert_eq!((status, &member["administrative"]), (200, &Value::from("enabled")), "{path}");
    }
}

#[tokio::test]
async fn what_there_is_not() {
    let running = Running::on_unix(&MEMBERS).await;
    for (path, error, help) in [
        ("/v1/pools/wep", "there is no pool `wep`", "did you mean `web`?"),
        ("/v1/pools/x", "there is no pool `x`", "available: `web`"),
        (
            "/v1/pools/web/members/127.0.0.1:9011",
            "pool `web` has no member `127.0.0.1:9011`",
            "its members: `127.0.0.1:9001` and `[::1]:9002`",
        ),
        (
            "/v1/pools/web/members/a",
            "pool `web` has no member `a`",
            "its members: `127.0.0.1:9001` and `[::1]:9002`",
        ),
    ] {
        let (status, problem) = running.get(path).await;
        assert_eq!(status, 404, "{path}");
        assert_eq!((&problem["detail"], &problem["help"]), (&error.into(), &help.into()), "{path}");
        if path.contains("members") {
            let (status, again) =
                running.put(&format!("{path}/state"), r#"{"state": "drain"}"#).await;
            assert_eq!((status, again), (404, problem));
        }
    }
    let (status, problem) = running.get(&format!("/v1/pools/{}", "%0A".repeat(1_000))).await;
    assert_eq!(status, 404);
    assert!(problem["detail"].as_str().unwrap().chars().count() < 200, "{problem}");
    assert_eq!(running.get("/v1/pools/web/members/%FF").await.0, 400);
    assert_eq!(running.get("/v1/pools/").await.0, 404);
    let (status, members) = running.get("/v1/pools/web/members?limit=1").await;
    assert_eq!((status, &members["next"]), (200, &json!("127.0.0.1:9001")));
    assert_eq!(running.put("/v1/pools/web", "{}").await.0, 405);
    assert_eq!(running.lines(), [""; 0]);
}

#[tokio::test]
async fn a_member_is_drained_and_enabled_again() {
    let running = Running::on_unix(&MEMBERS).await;
    let live = Arc::clone(&running.observed.table().pools[0].members[0]);
    live.occupancy.store(2, Relaxed);
    for (wanted, before, now, source, changed, in_service) in [
        ("enabled", "enabled", "enabled", "file", false, 2),
        ("configured", "enabled", "enabled", "file", false, 2),
        ("drain", "enabled", "drain", "runtime", true, 1),
        ("drain", "drain", "drain", "runtime", false, 1),
        ("disabled", "drain", "disabled", "runtime", true, 1),
        ("enabled", "disabled", "enabled", "runtime", true, 2),
        ("configured", "enabled", "enabled", "file", true, 2),
    ] {
        let (status, answer) = running.put(STATE, &format!(r#"{{"state":"{wanted}"}}"#)).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["pool"], "web");
        assert_eq!(answer["before"], before, "{wanted}");
        assert_eq!(answer["changed"], changed, "{wanted}");
        assert_eq!(answer["members_in_service"], in_service, "{wanted}");
        assert_eq!(answer["member"]["administrative"], now, "{wanted}");
        assert_eq!(answer["member"]["administrative_source"], source, "{wanted}");
        assert_eq!(running.get(FIRST).await.1, answer["member"]);
        assert_eq!(live.state(AdminState::Enabled).as_str(), now);
    }
    let (end, _other) = UnixStream::pair().expect("a pair");
    let by = format!("by {}", Peer::of_socket(&end));
    let subject = "info member web/127.0.0.1:9001 is set to";
    assert_eq!(
        running.lines(),
        [
            format!("{subject} drain, was enabled, {by}; 2 requests are under way"),
            format!("{subject} disabled, was drain, {by}; 2 requests are under way"),
            format!("{subject} enabled, was disabled, {by}"),
            format!("{subject} enabled, as the file says, was enabled, {by}"),
        ]
    );
}

#[tokio::test]
async fn the_last_member_is_taken_only_by_those_who_say_so() {
    let running = Running::on_unix(&MEMBERS).await;
    running.put(STATE, r#"{"state":"drain"}"#).await;
    let second = "/v1/pools/web/members/%5B::1%5D:9002/state";
    let everywhere = "/v1/members/%5B::1%5D:9002/state";
    for (path, state) in [(second, "disabled"), (second, "drain"), (everywhere, "drain")] {
        let (status, problem) = running.put(path, &format!(r#"{{"state":"{state}"}}"#)).await;
        let detail = "no other member of pool `web` takes new requests: clients would get 503";
        assert_eq!((status, &problem["detail"]), (409, &detail.into()));
        assert!(problem["help"].as_str().expect("help").contains("--last"), "{problem}");
    }
    assert_eq!(running.lines().len(), 1, "only the first change was made");
    let (status, answer) = running.put(second, r#"{"state":"disabled","last":true}"#).await;
    assert_eq!((status, &answer["members_in_service"]), (200, &0.into()));
    let lines = running.lines();
    let end = "; nothing is under way; no member of the pool takes new requests now";
    assert!(lines[1].starts_with("warning ") && lines[1].ends_with(end), "{lines:?}");
    // Nothing more is lost.
    assert_eq!(running.put(second, r#"{"state":"drain"}"#).await.0, 200);
    assert_eq!(running.put(second, r#"{"state":"enabled"}"#).await.0, 200);
}

#[tokio::test]
async fn the_last_one_is_judged_when_it_is_asked_for() {
    let running = Running::on_unix(&MEMBERS).await;
    let other = Arc::clone(&running.observed.table().pools[0].members[1]);
    other.set_health(weir_core::monitor::Health::Down, 1);
    assert_eq!(running.put(STATE, r#"{"state":"drain"}"#).await.0, 409);
    other.set_health(weir_core::monitor::Health::Up, 2);
    assert_eq!(running.put(STATE, r#"{"state":"drain"}"#).await.0, 200);
}

#[tokio::test]
async fn only_a_well_formed_request_changes_something() {
    let running = Running::on_unix(&MEMBERS).await;
    let json = JSON;
    let good = r#"{"state":"drain"}"#;
    let long = format!(r#"{{"state":"{}"}}"#, "x".repeat(BODY_SIZE_MAX));
    let page = format!("{json}Origin: http://127.0.0.1:9900\r\n");
    let opaque = format!("{json}Origin: null\r\n");
    for (fields, body, expected, reason) in [
        (json, "", 400, "EOF while parsing"),
        (json, "drain", 400, "expected value"),
        (json, "{}", 400, "missing field `state`"),
        (json, r#" ["drain"]"#, 400, "it is a list"),
        (json, r#"{"state":"drained"}"#, 400, "unknown variant `drained`, expected one of"),
        (json, r#"{"state":"drain","weight":2}"#, 400, "unknown field `weight`"),
        (json, r#"{"state":"drain"} {}"#, 400, "trailing characters"),
        (json, long.as_str(), 413, "at most 4096 bytes"),
        ("", good, 415, "Content-Type: application/json"),
        ("Content-Type: text/plain\r\n", good, 415, "Content-Type: application/json"),
        ("Content-Type: application/x-www-form-urlencoded\r\n", good, 415, "application/json"),
        (page.as_str(), good, 403, "come from web pages"),
        (opaque.as_str(), good, 403, "come from web pages"),
    ] {
        let (status, problem) = running.send("PUT", STATE, fields, body).await.parts();
        let error = problem["detail"].as_str().unwrap_or_default();
        assert_eq!(status, expected, "{fields}{body}: {problem}");
        assert!(error.contains(reason), "{fields}{body}: {error}");
    }
    assert_eq!(running.observed.table().pools[0].members[0].state_override(), None);
    assert_eq!(running.lines(), [""; 0]);
    let charset = "Content-Type: Application/JSON; charset=utf-8\r\n";
    assert_eq!(running.send("PUT", STATE, charset, good).await.status, 200);
}

#[tokio::test]
async fn a_change_has_to_match_the_state_that_its_client_knows() {
    let running = Running::on_unix(&MEMBERS).await;
    for path in [STATE, "/v1/members/127.0.0.1:9001/state"] {
        let read = running.send("GET", path, "", "").await;
        let tag = read.field("etag").expect("a tag").to_owned();
        let change = async |field: &str, state: &str| {
            let fields = format!("{JSON}{field}");
            let body = format!(r#"{{"state":"{state}"}}"#);
            running.send("PUT", path, &fields, &body).await.status
        };
        assert_eq!(change("If-Match: \"other\"\r\n", "drain").await, 412);
        assert_eq!(change(&format!("If-Match: W/{tag}\r\n"), "drain").await, 412);
        assert_eq!(change(&format!("If-Match: \"x\", {tag}\r\n"), "drain").await, 200);
        assert_eq!(change(&format!("If-Match: {tag}\r\n"), "disabled").await, 412, "it is old");
        assert_eq!(change("If-Match: *\r\n", "configured").await, 200);
    }
}

#[tokio::test]
async fn what_a_client_has_is_not_sent_again() {
    let running = Running::on_unix(&MEMBERS).await;
    for path in [FIRST, STATE, "/v1/pools", "/v1/pools/web", "/v1/openapi.json", "/v1/policies"] {
        let read = running.send("GET", path, "", "").await;
        let tag = read.field("etag").expect("a tag").to_owned();
        let again = running.send("GET", path, &format!("If-None-Match: {tag}\r\n"), "").await;
        assert_eq!((again.status, again.text.as_str()), (304, ""), "{path}");
        assert_eq!(again.field("etag"), Some(tag.as_str()), "{path}");
        let other = running.send("GET", path, "If-None-Match: \"x\"\r\n", "").await;
        assert_eq!(other.status, 200, "{path}");
    }
    let before = running.send("GET", FIRST, "", "").await;
    running.put(STATE, r#"{"state":"drain"}"#).await;
    let after = running.send("GET", FIRST, "", "").await;
    assert_ne!(before.field("etag"), after.field("etag"));
}

#[tokio::test]
async fn a_server_is_drained_in_all_its_pools() {
    let running = Running::on_unix(&MEMBERS).await;
    let (status, states) = running.get("/v1/members/127.0.0.1:9001/state").await;
    assert_eq!((status, &states["members"][0]["source"]), (200, &json!("file")));
    let (status, answer) =
        running.put("/v1/members/127.0.0.1:9001/state", r#"{"state":"drain"}"#).await;
    assert_eq!((status, &answer["members"][0]["pool"]), (200, &json!("web")));
    let (_, states) = running.get("/v1/members/127.0.0.1:9001/state").await;
    let expected =
        json!({ "pool": "web", "member": "127.0.0.1:9001", "state": "drain", "source": "runtime" });
    assert_eq!(states["members"], json!([expected]));
    assert_eq!(running.get("/v1/members/127.0.0.1:1/state").await.0, 404);
}

/// Changes by `weir` and others go to a log of their own.
#[tokio::test]
async fn changes_are_audited_and_views_are_not() {
    let running = Running::on_unix(&MEMBERS).await;
    running.get(FIRST).await;
    running.put(STATE, r#"{"state":"drain"}"#).await;
    running.put(STATE, r#"{"state":"secret-looking"}"#).await;
    running.put("/v1/pools/web/members/x/state", r#"{"state":"drain"}"#).await;
    running.send("DELETE", FIRST, "", "").await;
    let lines = running.audit();
    let told: Vec<_> = lines.iter().map(|line| (&line["method"], &line["status"])).collect();
    let (put, delete) = (&json!("PUT"), &json!("DELETE"));
    assert_eq!(
        told,
        [(put, &json!(200)), (put, &json!(400)), (put, &json!(404)), (delete, &json!(405))]
    );
    let change = json!({
        "pool": "web", "member": "127.0.0.1:9001", "state": "drain", "before": "enabled",
    });
    assert_eq!(lines[0]["change"], change);
    assert_eq!(lines[0]["uid"], rustix::process::getuid().as_raw());
    assert_eq!((&lines[0]["user"], &lines[0]["role"]), (&Value::Null, &json!("admin")));
    assert_eq!(lines[1]["refused"], "the document is wrong", "without a quotation");
}

/// A client may disconnect before its request begins; then there is no change. Requests are answered in any order. Both states differ from
/// that of the file, so each change to another state has an event.
#[tokio::test]
async fn changes_of_clients_that_disconnect_are_audited() {
    let running = Running::on_unix(&MEMBERS).await;
    let Address::Unix(path) = running.admin.address() else { panic!("a unix socket") };
    for state in ["drain", "disabled"].repeat(8) {
        let mut client = UnixStream::connect(path).await.unwrap();
        let body = format!(r#"{{"state":"{state}"}}"#);
        let length = format!("Content-Length: {}\r\n", body.len());
        let head = format!("PUT {STATE} HTTP/1.1\r\nHost: localhost\r\n{JSON}{length}\r\n");
        client.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut lines = Vec::new();
    let until = Instant::now() + PATIENCE;
    loop {
        lines.extend(running.audit());
        let told = |line: &&Value| {
            line["status"] == 200 && line["change"]["state"] != line["change"]["before"]
        };
        let audited = lines.iter().filter(told).count();
        let made = running.lines().iter().filter(|line| line.contains(" is set to ")).count();
        if made > 0 && made == audited {
            break;
        }
        assert!(Instant::now() < until, "{made} changes and {audited} lines: {lines:?}");
        tokio::task::yield_now().await;
    }
}

#[test]
fn names_of_the_file_lead_to_their_members() {
    let member = |address: &str, name: Option<&str>| {
        let address = Address::Socket(address.parse().unwrap());
        let pool = crate::testing::pool("web", &[address], &[]);
        snapshot::Member { name: name.map(Into::into), ..pool.members[0].clone() }
    };
    let mut pool = crate::testing::pool("web", &[], &[]);
    pool.members = vec![
        member("10.0.0.1:80", Some("app.example")),
        member("10.0.0.2:80", Some("app.example")),
        member("10.0.0.3:80", None),
    ];
    for name in ["app.example:80", "app.example", "App.Example:8080"] {
        let help = no_such_member(&[], &pool, name).help.unwrap();
        let expected = "` stands for `10.0.0.1:80` and `10.0.0.2:80`";
        assert!(help.ends_with(expected), "{name}: {help}");
    }
}

#[test]
fn lists() {
    let many: Vec<String> = (0..NAMES_TOLD_MAX + 3).map(|number| number.to_string()).collect();
    let check = |names: &[&str], expected: Option<&str>| {
        assert_eq!(listed(names.iter().copied()).as_deref(), expected, "{names:?}");
    };
    check(&[], None);
    check(&["a"], Some("`a`"));
    check(&["a", "b", "c"], Some("`a`, `b` and `c`"));
    let listed = listed(many.iter().map(String::as_str)).unwrap();
    assert!(listed.ends_with("`18`, `19` and 3 more"), "{listed}");
}
