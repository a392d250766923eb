//! `weir requests`, `weir logs` and `weir explain` over TLS, by role.

use std::io::BufRead as _;
use std::process::Output;

use rustix::process::Signal;
use serde_json::Value;
use weir_tests::{STEP_TIMEOUT, require};

use super::open::{Open, error_of, new_token};

/// A weir that records requests, with a user of each role, and one with a client certificate.
fn start() -> Open {
    let open = Open::start();
    let users = ["read", "operate", "admin"].map(|role| new_token(&file(&open, role), role, role));
    let certified = "    deployer: { role: admin, certificate: client.example }\n    \
                     watcher: { role: operate, certificate: partner.example }\n";
    open.reload_with(&(users.concat() + certified), "recent_requests: {}\n");
    open
}

fn file(open: &Open, role: &str) -> std::path::PathBuf {
    open.files.path().join(role)
}

/// The JSON output of a command that succeeds.
#[track_caller]
fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Asserts that a command fails because of the user's role.
#[track_caller]
fn assert_refused(output: &Output, needed: &str, role: &str) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = error_of(output);
    assert!(error.contains(&format!("this needs the role {needed}")), "{error}");
    assert!(error.contains(&format!("has the role {role}")), "{error}");
}

/// The id of the request for this path, which is recorded soon.
#[track_caller]
fn id_of(open: &Open, path: &str) -> String {
    let mut id = None;
    weir_tests::eventually("the request is recorded", STEP_TIMEOUT, || {
        let all = json(&open.weir("operate", &["requests", "--json"]));
        let mut all = all["items"].as_array().expect("a list").iter();
        id =
            all.find(|it| it["target"] == path).and_then(|it| it["id"].as_str().map(str::to_owned));
        id.is_some()
    });
    id.expect("it is there")
}

#[test]
fn requests_are_shown_and_explained_by_role() {
    require!("openssl");
    let open = start();
    let head =
        "GET /cart?token=s3cr3t1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer s3cr3t2\r\n\r\n";
    open.proxy.client().send(head).response().assert_status(200);
    let id = id_of(&open, "/cart?token=***");
    let url = open.proxy.url("/cart");
    let (requests, recorded, supposed) =
        (["requests", "--json"], ["explain", &id, "--json"], ["explain", &url, "--json"]);

    assert_refused(&open.weir("read", &requests), "operate", "read");
    for (role, output) in [
        ("read", open.weir("read", &recorded)),
        ("operate", open.weir("operate", &recorded)),
        ("read", open.weir("read", &supposed)),
        ("operate", open.weir("operate", &supposed)),
        ("operate", open.weir_certified("partner", &recorded)),
    ] {
        assert_refused(&output, "admin", role);
    }
    for output in [open.weir("admin", &recorded), open.weir_certified("client", &recorded)] {
        let why = json(&output);
        assert_eq!(why["recorded"]["id"], *id, "{why:#}");
        assert!(!why.to_string().contains("s3cr3t"), "{why:#}");
    }
    for output in [open.weir("admin", &supposed), open.weir_certified("client", &supposed)] {
        assert_eq!(json(&output)["outcome"]["kind"], "member");
    }
    let shown = json(&open.weir_certified("partner", &requests));
    assert_eq!(shown["items"][0]["id"], *id, "{shown:#}");
    assert!(!shown.to_string().contains("s3cr3t"), "{shown:#}");
    let text = open.weir("admin", &["explain", &id]);
    let text = String::from_utf8(text.stdout).expect("text");
    assert!(text.contains(&id) && text.contains("/cart?token=***"), "{text}");
}

#[test]
fn requests_are_followed_by_role_until_it_is_taken_away() {
    require!("openssl");
    let open = start();
    assert_refused(&open.weir("read", &["logs"]), "operate", "read");
    let mut followers = ["operate", "admin"].map(|role| open.begin(role, &["logs", "--json"]));
    let (told, first) = std::sync::mpsc::channel();
    let readers = followers.each_mut().map(|child| {
        let mut lines = std::io::BufReader::new(child.stdout.take().expect("its output")).lines();
        let told = told.clone();
        std::thread::spawn(move || {
            let line = lines.next().expect("a line").expect("text");
            told.send(()).expect("somebody waits");
            // The others are read, so that the follower can write.
            lines.for_each(drop);
            line
        })
    });
    let mut count = 0;
    weir_tests::eventually("both are told of a request", STEP_TIMEOUT, || {
        open.proxy.client().get("/followed").assert_status(200);
        count += first.try_iter().count();
        count == readers.len()
    });
    // The user `operate` loses the token; weir says so to the follower.
    let admin = new_token(&open.files.path().join("admin-2"), "other", "admin");
    let kept = std::fs::read_to_string(open.proxy.config_path()).expect("the configuration");
    let line = kept.lines().find(|line| line.trim_start().starts_with("admin: {"));
    let users = format!("{}\n{admin}", line.expect("the user's line"));
    open.reload_with(&users, "recent_requests: {}\n");
    let [operate, mut other] = followers;
    let output = operate.wait_with_output().expect("it ends");
    assert_ne!(output.status.code(), Some(0), "{output:?}");
    assert!(error_of(&output).contains("token"), "{output:?}");
    let pid = rustix::process::Pid::from_child(&other);
    rustix::process::kill_process(pid, Signal::INT).expect("it runs");
    assert_eq!(other.wait().expect("it ends").code(), Some(0), "Ctrl-C ends it clean");
    for reader in readers {
        let line: Value = serde_json::from_str(&reader.join().expect("a line")).expect("JSON");
        assert_eq!((&line["target"], &line["status"]), (&"/followed".into(), &200.into()));
    }
}
