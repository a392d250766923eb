//! The health of virtual servers, pools and the process is the same wherever it is shown, by members and by requests.

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;
use weir_tests::STEP_TIMEOUT;
use weir_tests::client::Client;
use weir_tests::http2::Peer;
use weir_tests::member::{Member, Then};
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::stream::{StreamMember, reset};

/// The pause between two requests of a client that goes on.
const PAUSE: Duration = Duration::from_millis(20);

fn weir(proxy: &Proxy, arguments: &[&str]) -> Output {
    let mut command = Command::new(weir_binary());
    command.args(arguments).env("WEIR_ADMIN", proxy.admin_address()).stdin(Stdio::null());
    command.output().expect("the built command")
}

fn printed(proxy: &Proxy, arguments: &[&str]) -> String {
    String::from_utf8(weir(proxy, arguments).stdout).expect("UTF-8")
}

fn json(proxy: &Proxy, path: &str) -> Value {
    proxy.end_turns();
    serde_json::from_str(&proxy.admin_get(path)).expect("JSON")
}

/// Everything that shows the health says the same.
#[track_caller]
fn assert_everywhere(proxy: &Proxy, process: &str, of_parts: &str, figures: [f64; 3]) {
    assert_eq!(json(proxy, "/v1/health")["state"], process);
    let status = json(proxy, "/v1/status");
    assert_eq!(status["health"], process);
    assert_eq!(status["virtual_servers"][0]["health"]["state"], of_parts);
    assert_eq!(status["pools"][0]["health"]["state"], of_parts);
    assert_eq!(json(proxy, "/v1/virtual-servers/main")["health"]["state"], of_parts);
    assert_eq!(json(proxy, "/v1/pools/members")["health"]["state"], of_parts);
    let names = ["weir_health", "weir_virtual_server_health", "weir_pool_health"];
    assert_eq!(names.map(|name| proxy.metric(name, &[])), figures);

    let is_bad = matches!(of_parts, "down" | "failing");
    let text = printed(proxy, &["status"]);
    let first = text.lines().next().unwrap_or_default();
    assert!(first.contains(&format!(": {process}; runs for ")), "{text}");
    assert_eq!(first.starts_with("! "), process == "down", "{text}");
    let mark = format!("! virtual server main is {of_parts}: ");
    assert_eq!(text.contains(&mark), is_bad, "{text}");
    assert_eq!(text.contains("\n! pool members: "), is_bad, "{text}");
    let servers = printed(proxy, &["vs"]);
    assert!(servers.contains(&format!("main            {of_parts}")), "{servers}");
    let top = printed(proxy, &["top", "--once", "--json", "--interval", "200ms"]);
    let top: Value = serde_json::from_str(&top).expect("JSON");
    assert_eq!(top["virtual_servers"][0]["state"], of_parts);
    let doctor = printed(proxy, &["doctor", "--no-members", "--json"]);
    let told = format!("virtual server main is {of_parts}: ");
    assert_eq!(doctor.contains(&told), is_bad, "{doctor}");
}

#[test]
fn what_has_no_member_is_down_everywhere() {
    let mut member = Member::named("only");
    let monitor = "monitors: [ { type: tcp, interval: 500ms, timeout: 500ms, rise: 1, fall: 2 } ]";
    let proxy = Proxy::start(&Setup::new(&[member.address()]).pool(monitor).admin_socket());
    proxy.client().get("/").assert_status(200);
    assert_everywhere(&proxy, "serving", "up", [3.0; 3]);
    let address = member.address();
    member.kill();
    proxy.wait_for_member_state(address, "down", STEP_TIMEOUT);
    assert_everywhere(&proxy, "down", "down", [0.0; 3]);
    let problems = json(&proxy, "/v1/status")["problems"].to_string();
    for expected in ["virtual server main is down: pool members: ", "pool members is down: "] {
        assert!(problems.contains(expected), "{problems}");
    }
}

/// A client that goes on to ask until it is dropped: only recent requests count.
struct Asking {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Asking {
    fn of(proxy: &Proxy) -> Self {
        let (address, is_over) = (proxy.address(), Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            while !told.load(Ordering::Acquire) {
                Client::connect(address).get("/").assert_status(500);
                thread::sleep(PAUSE);
            }
        });
        Self { is_over, thread: Some(thread) }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // A panic of the client is seen in its output, and in what the test looks at.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[test]
fn what_answers_nothing_but_errors_is_failing_although_its_members_are_up() {
    let member = Member::script("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n");
    let proxy = Proxy::start(&Setup::new(&[member.address()]).admin_socket());
    let _asking = Asking::of(&proxy);
    weir_tests::eventually("both are failing", STEP_TIMEOUT, || {
        let is_failing = |path: &str| json(&proxy, path)["health"]["state"] == "failing";
        is_failing("/v1/pools/members") && is_failing("/v1/virtual-servers/main")
    });
    assert_everywhere(&proxy, "down", "failing", [0.0, 1.0, 1.0]);
    let pool = json(&proxy, "/v1/pools/members");
    assert_eq!(pool["members"][0]["state"], "up");
    let why = pool["health"]["why"].as_str().expect("a reason");
    assert!(why.contains(" requests failed in the last "), "{why}");
}

#[test]
fn a_member_that_cannot_be_reached_is_seen_without_a_monitor() {
    let nobody = Lease::new();
    let proxy = Proxy::start(&Setup::new(&[nobody.address()]).admin_socket());
    weir_tests::eventually("the pool is failing", STEP_TIMEOUT, || {
        proxy.client().get("/").assert_status(502);
        json(&proxy, "/v1/pools/members")["health"]["state"] == "failing"
    });
}

#[test]
fn websockets_that_members_break_at_once_make_their_virtual_server_failing() {
    let member = StreamMember::new(|mut stream| {
        // The head arrives in one piece.
        stream.read(&mut [0; 4_096]).map(drop)?;
        let agreed =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n";
        stream.write_all(agreed.as_bytes())?;
        stream.read(&mut [0; 1]).map(drop)?;
        reset(stream);
        Ok(())
    });
    let proxy = Proxy::start(&Setup::new(&[member.address()]).admin_socket());
    weir_tests::eventually("both are failing", STEP_TIMEOUT, || {
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n");
        assert_eq!(client.response().status, 101);
        client.send("x");
        let _ = client.stream().read_to_end(&mut Vec::new());
        let is_failing = |path: &str| json(&proxy, path)["health"]["state"] == "failing";
        is_failing("/v1/virtual-servers/main") && is_failing("/v1/pools/members")
    });
}

#[test]
fn a_pool_whose_retries_save_all_requests_is_not_failing() {
    let (member, nobody) = (Member::named("only"), Lease::new());
    let setup = Setup::new(&[member.address(), nobody.address()]).admin_socket();
    let proxy = Proxy::start(&setup);
    weir_tests::eventually("the pool is degraded", STEP_TIMEOUT, || {
        proxy.client().get("/").assert_status(200);
        let health = &json(&proxy, "/v1/pools/members")["health"];
        assert_ne!(health["state"], "failing", "{health}");
        health["why"].as_str().is_some_and(|it| it.contains("but retries save the requests: 0 of "))
    });
    assert_everywhere(&proxy, "degraded", "degraded", [2.0; 3]);
}

#[test]
fn responses_that_members_break_off_make_their_virtual_server_failing() {
    let member = Member::new(|exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")?;
        Ok(Then::Close)
    });
    let proxy = Proxy::start(&Setup::new(&[member.address()]).http("http2: true").admin_socket());
    let mut by_http2 = false;
    weir_tests::eventually("the virtual server is failing", STEP_TIMEOUT, || {
        match by_http2 {
            false => {
                let mut client = proxy.client();
                client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
                assert!(!client.response().complete);
            }
            true => {
                let mut peer = Peer::connect(proxy.address());
                let stream = peer.request("GET", "/", &[], true);
                peer.pump_until("the response breaks off", |peer| {
                    peer.streams.get(&stream).is_some_and(|it| it.reset.is_some())
                });
            }
        }
        by_http2 = !by_http2;
        json(&proxy, "/v1/virtual-servers/main")["health"]["state"] == "failing"
    });
    let problems = json(&proxy, "/v1/status")["problems"].to_string();
    assert!(problems.contains("virtual server main is failing: "), "{problems}");
}

#[test]
fn a_page_for_maintenance_is_no_failure() {
    let member = Member::named("only");
    let setup = Setup::new(&[member.address()])
        .virtual_server("policies: [ maintenance ]")
        .top(
            "policies: { maintenance: { rules: [ { then: [ { respond: { status: 503, body: later } } ] } ] } }",
        )
        .admin_socket();
    let proxy = Proxy::start(&setup);
    let asked =
        || json(&proxy, "/v1/virtual-servers/main")["health"]["recent"]["requests"].as_u64();
    weir_tests::eventually("requests are in the window", STEP_TIMEOUT, || {
        proxy.client().get("/").assert_status(503);
        asked().is_some_and(|count| count >= 10)
    });
    assert_everywhere(&proxy, "serving", "up", [3.0; 3]);
}
