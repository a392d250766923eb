//! The dashboard in a browser. `WEIR_CHROMIUM` is the path of Chromium, `WEIR_PLAYWRIGHT` that of a Python with
//! Playwright; without them the test is skipped. With `WEIR_AXE` (the path of `axe.min.js`), each view is also checked
//! for accessibility.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::{Value, json};
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::{repository, tools};

/// A token for `ann`, and its line in the configuration.
fn token() -> (String, String) {
    let output = Command::new(weir_binary())
        .args(["token", "new", "--name", "ann", "--role", "operate"])
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
        .top("policies: { routing: { rules: [ { name: closed, when: 'request.path == \"/closed\"', then: [ { respond: { status: 403 } } ] } ] } }")
        .admin(&format!("users: {{ {user} }}"))
}

#[test]
fn each_view_is_seen_and_members_are_drained() {
    let (Some(chromium), Some(python)) =
        (tools::suite("WEIR_CHROMIUM"), tools::suite("WEIR_PLAYWRIGHT"))
    else {
        return;
    };
    let (one, other) = (Member::named("one"), Member::named("other"));
    let (token, user) = token();
    let proxy = Proxy::start(&setup(&[one.address(), other.address()], &user));
    let mut client = proxy.client();
    for _ in 0..20 {
        client.get("/");
    }
    let output = Command::new(python)
        .arg(repository::root().join("tests/tests/dashboard/act.py"))
        .args([&format!("http://{}", proxy.admin()), &chromium.display().to_string(), &token])
        .arg(one.address().to_string())
        .output()
        .expect("the script");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let seen: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let expected = json!({
        "errors": [],
        "titles": [
            "Overview", "Virtual servers", "Virtual server main up", "Map", "Pools", "Pool members up",
            "Policies", "Explain a request", "Certificates", "Configuration"
        ],
        "too_wide": [],
        "findings": [],
        "disabled_without_login": true,
        "drained": "drain",
        "reloaded": true,
    });
    assert_eq!(seen, expected);
    // The other member has served the requests meanwhile.
    let before = one.request_count();
    for _ in 0..10 {
        client.get("/");
    }
    assert_eq!(one.request_count(), before);
}
