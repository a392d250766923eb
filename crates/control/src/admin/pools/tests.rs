//! Pools and changes as a client sees them, over raw sockets.

use std::path::PathBuf;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use super::super::Admin;
use super::super::problem::NAMES_TOLD_MAX;
use super::*;
use crate::events::Events;
use crate::events::testing::Captured;
use crate::testing::observed_with;

/// An admin listener on a unix socket, for a pool `web` of two members.
struct Running {
    admin: Admin,
    observed: Arc<Observed>,
    events: Events,
    captured: Captured,
    directory: PathBuf,
}

impl Running {
    async fn start(name: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("weir-pools-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let members = ["127.0.0.1:9001", "[::1]:9002"];
        let members = members.map(|member| Address::Socket(member.parse().unwrap()));
        let observed = Arc::new(observed_with(&members, 1));
        let (events, captured) = Captured::new();
        let address = Address::Unix(directory.join("admin.sock"));
        let admin = Admin::start(&address, Arc::clone(&observed), events.clone()).await.unwrap();
        Self { admin, observed, events, captured, directory }
    }

    async fn exchange(&self, request: &str) -> (u16, Value) {
        let Address::Unix(path) = self.admin.address() else { panic!("{:?}", self.admin) };
        exchange(UnixStream::connect(path).await.unwrap(), request).await
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.exchange(&format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        ))
        .await
    }

    async fn post(&self, path: &str, body: &str) -> (u16, Value) {
        self.exchange(&post(path, "Content-Type: application/json\r\n", body)).await
    }

    fn lines(&self) -> Vec<String> {
        self.captured.lines(&self.events)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn post(path: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Status and JSON body of the answer.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> (u16, Value) {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect(&answer);
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_else(|_| Value::from(body)))
}

const FIRST: &str = "/pools/web/members/127.0.0.1%3A9001";

#[tokio::test]
async fn what_there_is() {
    let running = Running::start("views").await;
    let (status, pools) = running.get("/pools").await;
    assert_eq!((status, &pools["pools"][0]["name"]), (200, &Value::from("web")));
    let (status, pool) = running.get("/pools/web").await;
    assert_eq!((status, &pool["members_in_service"]), (200, &Value::from(2)));
    for path in [
        FIRST,
        "/pools/web/members/127.0.0.1:9001",
        "/pools/w%65b/members/%5B::1%5D:9002",
        "/pools/web/members/%5B0:0::1%5D:9002",
    ] {
        let (status, member) = running.get(path).await;
        assert_eq!((status, &member["administrative"]), (200, &Value::from("enabled")), "{path}");
    }
}

#[tokio::test]
async fn what_there_is_not() {
    let running = Running::start("missing").await;
    for (path, error, help) in [
        ("/pools/wep", "there is no pool `wep`", "did you mean `web`?"),
        ("/pools/x", "there is no pool `x`", "available: `web`"),
        (
            "/pools/web/members/127.0.0.1:9011",
            "pool `web` has no member `127.0.0.1:9011`",
            "its members: `127.0.0.1:9001` and `[::1]:9002`",
        ),
        (
            "/pools/web/members/a",
            "pool `web` has no member `a`",
            "its members: `127.0.0.1:9001` and `[::1]:9002`",
        ),
    ] {
        let (status, problem) = running.get(path).await;
        assert_eq!(status, 404, "{path}");
        assert_eq!((&problem["error"], &problem["help"]), (&error.into(), &help.into()), "{path}");
        if path.contains("members") {
            let (status, again) = running.post(path, r#"{"state": "drain"}"#).await;
            assert_eq!((status, again), (404, problem));
        }
    }
    let (status, problem) = running.get(&format!("/pools/{}", "%0A".repeat(1_000))).await;
    assert_eq!(status, 404);
    assert!(problem["error"].as_str().unwrap().chars().count() < 200, "{problem}");
    assert_eq!(running.get("/pools/web/members/%FF").await.0, 400);
    assert_eq!(running.get("/pools/").await.0, 404);
    assert_eq!(running.get("/pools/web/members").await.0, 404);
    assert_eq!(running.post("/pools/web", "{}").await.0, 405);
    assert_eq!(running.lines(), [""; 0]);
}

#[tokio::test]
async fn a_member_is_drained_and_enabled_again() {
    let running = Running::start("changes").await;
    let live = Arc::clone(&running.observed.table().pools[0].members[0]);
    live.occupancy.store(2, Relaxed);
    for (wanted, before, now, source, changed, in_service) in [
        ("drain", "enabled", "drain", "runtime", true, 1),
        ("drain", "drain", "drain", "runtime", false, 1),
        ("disabled", "drain", "disabled", "runtime", true, 1),
        ("enabled", "disabled", "enabled", "runtime", true, 2),
        ("configured", "enabled", "enabled", "file", true, 2),
    ] {
        let (status, answer) = running.post(FIRST, &format!(r#"{{"state":"{wanted}"}}"#)).await;
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
    let by =
        format!("by user {} (process {})", rustix::process::getuid().as_raw(), std::process::id());
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
async fn the_last_member_is_told_of() {
    let running = Running::start("last").await;
    running.post(FIRST, r#"{"state":"drain"}"#).await;
    let second = "/pools/web/members/%5B::1%5D:9002";
    let (_, answer) = running.post(second, r#"{"state":"disabled"}"#).await;
    assert_eq!(answer["members_in_service"], 0);
    let lines = running.lines();
    let end = "; nothing is under way; no member of the pool takes new requests now";
    assert!(lines[1].starts_with("warning ") && lines[1].ends_with(end), "{lines:?}");
}

#[tokio::test]
async fn only_a_well_formed_request_changes_something() {
    let running = Running::start("refused").await;
    let json = "Content-Type: application/json\r\n";
    let good = r#"{"state":"drain"}"#;
    let long = format!(r#"{{"state":"{}"}}"#, "x".repeat(BODY_SIZE_MAX));
    let page = format!("{json}Origin: http://127.0.0.1:9900\r\n");
    let opaque = format!("{json}Origin: null\r\n");
    for (fields, body, expected, reason) in [
        (json, "", 400, "EOF while parsing"),
        (json, "drain", 400, "expected value"),
        (json, "{}", 400, "missing field `state`"),
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
        let (status, problem) = running.exchange(&post(FIRST, fields, body)).await;
        let error = problem["error"].as_str().unwrap_or_default();
        assert_eq!(status, expected, "{fields}{body}: {problem}");
        assert!(error.contains(reason), "{fields}{body}: {error}");
    }
    assert_eq!(running.observed.table().pools[0].members[0].state_override(), None);
    assert_eq!(running.lines(), [""; 0]);
    let charset = "Content-Type: Application/JSON; charset=utf-8\r\n";
    assert_eq!(running.exchange(&post(FIRST, charset, good)).await.0, 200);
}

#[tokio::test]
async fn tcp_only_shows() {
    let members = [Address::Socket("127.0.0.1:9001".parse().unwrap())];
    let observed = Arc::new(observed_with(&members, 1));
    let (events, captured) = Captured::new();
    let any_port = Address::Socket("127.0.0.1:0".parse().unwrap());
    let admin = Admin::start(&any_port, Arc::clone(&observed), events.clone()).await.unwrap();
    let Address::Socket(address) = *admin.address() else { panic!("{admin:?}") };
    let connect = async || TcpStream::connect(address).await.unwrap();
    let view = format!("GET {FIRST} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_eq!(exchange(connect().await, &view).await.0, 200);
    let change = post(FIRST, "Content-Type: application/json\r\n", r#"{"state":"drain"}"#);
    let (status, problem) = exchange(connect().await, &change).await;
    assert_eq!(status, 403);
    assert!(problem["help"].as_str().unwrap().contains("unix:/run/weir/admin.sock"), "{problem}");
    assert_eq!(observed.table().pools[0].members[0].state_override(), None);
    assert_eq!(captured.lines(&events), [""; 0]);
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
