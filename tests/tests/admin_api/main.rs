//! The admin API from other hosts: TLS, tokens and client certificates, commands over it, and the audit log.

mod open;
mod own_doors;
mod requests;
mod rights;

use std::process::Command;

use serde_json::{Value, json};
use weir_tests::proxy::weir_binary;
use weir_tests::require;

use open::{Open, error_of, new_token};

#[test]
fn a_colleague_gets_a_token_uses_it_and_loses_it() {
    require!("openssl", "curl");
    let open = Open::start();
    let ann = new_token(&open.files.path().join("ann"), "ann", "operate");
    let eve = new_token(&open.files.path().join("eve"), "eve", "read");
    open.reload(&format!("{ann}{eve}"));
    let address = open.member.address().to_string();

    let drained = open.weir("ann", &["member", "members", &address, "drain", "--last"]);
    assert!(drained.status.success(), "{drained:?}");
    let shown = open.weir("eve", &["pool", "members", "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown["members"][0]["administrative"], "drain");
    let refused = open.weir("eve", &["member", "members", &address, "enable"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(error_of(&refused).contains("this needs the role operate; eve has the role read"));
    let reloaded = open.weir("ann", &["reload", "--wait", "10s"]);
    assert!(reloaded.status.success(), "{reloaded:?}");

    let top = open.weir("eve", &["top", "--once", "--json", "--interval", "200ms"]);
    let top: Value = serde_json::from_slice(&top.stdout).expect("JSON");
    assert_eq!(top["members"][0]["name"], address);

    assert!(open.curl("/health").ends_with("ok\n200"));
    assert!(open.curl("/v1/status").ends_with("401"));
    assert!(open.curl("/metrics").ends_with("401"));

    let lines = open.audit();
    let told: Vec<_> =
        lines.iter().map(|line| (line["user"].clone(), line["status"].clone())).collect();
    assert_eq!(
        told,
        [(json!("ann"), json!(200)), (json!("eve"), json!(403)), (json!("ann"), json!(202))]
    );
    assert_eq!(lines[0]["change"]["state"], "drain");
    let token = std::fs::read_to_string(open.path("ann")).expect("the token");
    let log = std::fs::read_to_string(open.path("audit.log")).expect("the log");
    assert!(!log.contains(token.trim()) && !log.contains("sha256"), "{log}");

    open.reload(&eve);
    let refused = open.weir("ann", &["member", "members", &address, "enable"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(error_of(&refused).contains("the token is unknown"), "{refused:?}");
    assert_eq!(open.proxy.metric("weir_admin_logins_failed_total", &[]), 1.0);
}

#[test]
fn what_the_commands_cannot_use_is_told() {
    require!("openssl");
    let open = Open::start();
    let ann = new_token(&open.files.path().join("ann"), "ann", "read");
    open.reload(&ann);
    let missing = open.weir("nothing", &["status"]);
    assert_eq!(missing.status.code(), Some(3));
    assert!(error_of(&missing).contains("nothing: No such file"), "{missing:?}");
    std::fs::write(open.path("two"), "weir_a\nweir_b\n").expect("a file");
    assert!(
        error_of(&open.weir("two", &["status"]))
            .contains("there is no token in it, or more than one")
    );
    let address = format!("https://localhost:{}", open.lease.address().port());
    let mut command = Command::new(weir_binary());
    command.args(["status", "--admin", &address, "--token-file", &open.path("ann")]);
    let distrusted = command.output().expect("the built command");
    assert_eq!(distrusted.status.code(), Some(3));
    assert!(error_of(&distrusted).contains("TLS: "), "{distrusted:?}");
    let shown = open.weir("ann", &["status"]);
    assert!(shown.status.success(), "{shown:?}");
}

#[test]
fn the_audit_log_is_reopened_when_it_was_moved_away() {
    require!("openssl");
    let open = Open::start();
    let ann = new_token(&open.files.path().join("ann"), "ann", "operate");
    open.reload(&ann);
    let address = open.member.address().to_string();
    assert!(open.weir("ann", &["member", "members", &address, "drain", "--last"]).status.success());
    weir_tests::eventually("the line is written", weir_tests::STEP_TIMEOUT, || {
        open.audit().len() == 1
    });
    std::fs::rename(open.path("audit.log"), open.path("audit.log.1")).expect("it is there");
    open.reload(&ann);
    assert!(open.weir("ann", &["member", "members", &address, "enable"]).status.success());
    weir_tests::eventually("the line is written", weir_tests::STEP_TIMEOUT, || {
        open.audit().len() == 1
    });
}
