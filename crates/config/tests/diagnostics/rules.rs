//! What is said about rules of policies.

use super::*;

/// A sound file with a rule of these actions in a policy; the rule is in line 11.
#[track_caller]
fn check_actions(actions: &str, expected: &[&str]) {
    let policy = format!("policies:\n  q:\n    rules:\n      - then: [ {actions} ]\n");
    let text = sound("    policies: [ q ]\n", "") + &policy;
    check(&text, expected);
}

#[test]
fn actions_that_cannot_be_meant() {
    check_actions("{ respond: { status: 204 } }", &[]);
    check_actions(
        "{ respond: { status: 204, body: x } }",
        &[
            "error 12:38 a response of status 204 has no body -> remove `body`, or choose another status",
        ],
    );
    check_actions(
        "{ replace_header: { X-A: { regex: a, to: \"b\\nX: 1\" } } }",
        &["error 12:58 a control character, which no path, query, host or field may have -> -"],
    );
    check_actions(
        "{ set_cookie: { name: a, value: b, domain: \"x; Secure\" } }",
        &["error 12:39 a cookie's domain is a host name -> -"],
    );
    check_actions(
        "{ set_cookie: { name: a, value: b, same_site: none, secure: false } }",
        &["error 12:39 user agents refuse SameSite=None without Secure -> -"],
    );
}
