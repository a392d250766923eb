//! The dashboard in a browser. `WEIR_CHROMIUM` is the path of Chromium, `WEIR_PLAYWRIGHT` that of a Python with
//! Playwright; without them the test is skipped. With `WEIR_AXE` (the path of `axe.min.js`), each view is also checked
//! for accessibility.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::{repository, tools};

/// A token for `ann`, and its line in the configuration.
fn token() -> (String, String) {
    let output = Command::new(weir_binary())
        .args(["token", "new", "--name", "ann", "--role", "admin"])
        .output()
        .expect("weir token");
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8(told).expect("text");
    let line = |start: &str| told.lines().map(str::trim).find(|line| line.starts_with(start));
    (line("weir_").expect("a token").to_owned(), line("ann:").expect("a user").to_owned())
}

fn setup(members: &[SocketAddr], user: &str) -> Setup {
    Setup::new(members)
        .virtual_server("policies: [ routing ]")
        .virtual_server("waf: { mode: block }")
        .top("state_dir: state")
        .top("recent_requests: { slow: 90ms }")
        .top("policies: { routing: { rules: [ { name: closed, when: 'request.path == \"/closed\"', then: [ { respond: { status: 403 } } ] } ] } }")
        .admin(&format!("users: {{ {user} }}"))
}

/// A member that responds slowly to one path.
fn member() -> Member {
    Member::new(|exchange| {
        if exchange.request.target() == "/slow" {
            std::thread::sleep(SLOW);
        }
        exchange.answer("here")
    })
}

/// The delay of the slow path.
const SLOW: Duration = Duration::from_millis(100);

/// A request with an injection that the firewall's rules detect.
const ATTACK: &str = "/item?text=1%27%20or%20%271%27=%271";

/// A request in which a check finds something, and no rule.
const CHECKED: &str = "/list.dat";

/// The output of a script in the browser; `None`: no browser is installed.
fn seen(script: &str, proxy: &Proxy, arguments: &[&str]) -> Option<Value> {
    let chromium = tools::suite("WEIR_CHROMIUM")?;
    let python = tools::suite("WEIR_PLAYWRIGHT")?;
    let output = Command::new(python)
        .arg(repository::root().join("tests/tests/dashboard").join(script))
        .args([&format!("http://{}", proxy.admin()), &chromium.display().to_string()])
        .args(arguments)
        .output()
        .expect("the script");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

#[test]
fn each_view_is_seen_and_acted_in() {
    let (one, other) = (member(), member());
    let (token, user) = token();
    let proxy = Proxy::start(&setup(&[one.address(), other.address()], &user));
    let report = proxy.config_path().with_file_name("state").join("reports/2026-11-01-host");
    std::fs::create_dir_all(&report).expect("a folder");
    std::fs::write(report.join("report.html"), "<!doctype html><h1>A report</h1>").expect("a file");
    let mut client = proxy.client();
    for _ in 0..20 {
        client.get("/");
    }
    client.get("/slow");
    assert_eq!(client.get(ATTACK).status, 403);
    assert_eq!(client.get(CHECKED).status, 403);
    let address = one.address().to_string();
    let arguments = [&*token, &*address, &*proxy.url(ATTACK), &*proxy.url(CHECKED)];
    let Some(seen) = seen("act.py", &proxy, &arguments) else { return };
    let expected = json!({
        "errors": [],
        "titles": [
            "Overview", "Virtual servers", "Virtual server main up", "Map", "Pools", "Pool members up",
            "Policies", "Firewall", "Requests", "Explain a request", "Certificates", "Configuration", "Reports"
        ],
        "too_wide": [],
        "findings": [],
        "disabled_without_login": true,
        "drained": "drain",
        "left_in_service": 1,
        "reloaded": true,
        "report": "A report",
        "report_scripts": "none ran",
        "excluded": 200,
        "only_logged": 200,
        "rolled_back": [403, 403],
        "slow": "GET /slow",
        "explained": "Pool members: the pool of the virtual server.",
        "stream_while_hidden": "none",
    });
    assert_eq!(seen, expected);
    // After the drain, all requests go to the other member.
    let (before, mut client) = (one.request_count(), proxy.client());
    for _ in 0..10 {
        client.get("/");
    }
    assert_eq!(one.request_count(), before);
}

/// Number of virtual servers in the large configuration. Each has a pool.
const SERVERS: usize = 1_000;
/// Number of members of each pool.
const MEMBERS: usize = 10;
/// Maximum number of bytes of a view's first load. A list loads one page of rows.
const LOOK_BYTES_MAX: u64 = 300_000;
/// Maximum number of bytes of an update without changes.
const UPDATE_BYTES_MAX: u64 = 4_000;

/// Checks a configuration with 1,000 virtual servers and 10,000 members. Prints its figures: bytes, first paint and updates.
#[test]
fn a_large_configuration_is_seen_row_by_row() {
    let member = Member::named("one");
    let mut setup = Setup::new(&[member.address()]).top("state_dir: state");
    for server in 0..SERVERS {
        let (high, low) = (server / 250, server % 250 + 1);
        let members: Vec<String> =
            (1..=MEMBERS).map(|number| format!("\"10.{high}.{low}.{number}:80\"")).collect();
        setup = setup
            .also_virtual_server(&format!(
                "server-{server:04}: {{ listen: \"127.9.{high}.{low}:0\", pool: pool-{server:04} }}"
            ))
            .also_pool(&format!("pool-{server:04}: {{ members: [ {} ] }}", members.join(", ")));
    }
    let proxy = Proxy::start(&setup);
    let Some(seen) = seen("measure.py", &proxy, &[]) else { return };
    println!("{}", serde_json::to_string_pretty(&seen).expect("JSON"));
    assert_eq!(seen["errors"], json!([]));
    for (view, figures) in seen["views"].as_object().expect("views") {
        let bytes = |name: &str| figures[name].as_u64().expect("a figure");
        assert!(bytes("first_bytes") < LOOK_BYTES_MAX, "{view}: {figures}");
        assert!(bytes("update_bytes") < UPDATE_BYTES_MAX, "{view}: {figures}");
    }
    // The page contains only elements that are visible.
    assert!(seen["elements_after_use"].as_u64() < Some(10_000), "{seen}");
}
